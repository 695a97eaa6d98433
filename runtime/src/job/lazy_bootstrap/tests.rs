use super::*;
use std::net::TcpListener;
use std::thread;
use std::time::Instant;
use tsumugi_backends::boot::card::CardHead;
use tsumugi_backends::boot::tcp::{Client, Secret, Server};
use tsumugi_core::boot::Bootstrap;

const LIMIT: Duration = Duration::from_secs(30);

/// Makes the lazy bootstraps of four ranks on two nodes that have met through a server.
fn bootstraps() -> (Server, Vec<Arc<LazyBootstrap>>) {
    let secret = Secret::new("the secret of these tests").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(listener, 4, secret.clone(), LIMIT).unwrap();
    let address = vec![server.address().to_string()];
    let nodes = Arc::new(Nodes::new([1, 1, 2, 2]));
    let meet = |rank: u32| {
        let client = Client::new(Rank(rank), 4, address.clone(), secret.clone(), LIMIT);
        let mut client = client.unwrap();
        client.publish(&card(rank).to_bytes()).unwrap();
        client.barrier().unwrap();
        let bootstrap = LazyBootstrap::new(Box::new(client));
        bootstrap.open(&nodes);
        bootstrap
    };
    let bootstraps = thread::scope(|scope| {
        let meet = &meet;
        let ranks: Vec<_> = (0..4).map(|rank| scope.spawn(move || meet(rank))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    (server, bootstraps)
}

fn card(rank: u32) -> RankCard {
    let head = CardHead { node: 1 + u64::from(rank / 2), token: 0, network: 7 };
    RankCard { head, host: format!("host {}", rank / 2), network: vec![rank as u8; 9] }
}

/// Polls until the card has come, as a NIC endpoint does.
fn find(bootstrap: &Arc<LazyBootstrap>, rank: u32) -> Result<Vec<u8>, BootError> {
    let (mut bytes, begun) = ([0; CARD_BYTES_MAX], Instant::now());
    loop {
        if let Some(len) = bootstrap.look(Rank(rank), &mut bytes)? {
            return Ok(bytes[..len].to_vec());
        }
        assert!(begun.elapsed() < LIMIT, "no card and no error");
        thread::yield_now();
    }
}

fn leave(bootstraps: &[Arc<LazyBootstrap>]) {
    thread::scope(|scope| {
        for bootstrap in bootstraps {
            scope.spawn(|| bootstrap.leave().unwrap());
        }
    });
}

#[test]
fn a_card_is_requested_once_and_when_it_is_needed() {
    let (_server, bootstraps) = bootstraps();
    assert_eq!(bootstraps[0].fetched(), 0, "no card was requested");
    assert_eq!(bootstraps[0].host_of(1), None);
    assert_eq!(find(&bootstraps[0], 3), Ok(vec![3; 9]));
    assert_eq!((bootstraps[0].fetched(), bootstraps[1].fetched()), (1, 0));
    assert_eq!(bootstraps[0].host_of(1), Some("host 1".into()));
    assert!(bootstraps[0].requests().cards.is_empty(), "the NIC endpoint has the card now");
    // A request by another NIC endpoint of the same rank.
    assert_eq!(find(&bootstraps[0], 3), Ok(vec![3; 9]));
    leave(&bootstraps);
    let closed = bootstraps[0].look(Rank(2), &mut [0; CARD_BYTES_MAX]);
    assert_eq!(closed, Err(BootError::Disconnected));
}

#[test]
fn cards_arrive_at_a_rank_that_waits_in_the_barrier() {
    let (_server, bootstraps) = bootstraps();
    thread::scope(|scope| {
        for bootstrap in &bootstraps[..3] {
            scope.spawn(|| bootstrap.meet().unwrap());
        }
        // The ranks are at the barrier, or about to be; the last rank comes only
        // when each of them has had an answer.
        for bootstrap in &bootstraps[..3] {
            assert_eq!(find(bootstrap, 3), Ok(vec![3; 9]));
            assert_eq!(find(bootstrap, 0), Ok(vec![0; 9]));
        }
        bootstraps[3].meet().unwrap();
    });
    leave(&bootstraps);
}

#[test]
fn many_threads_request_many_cards() {
    let (_server, bootstraps) = bootstraps();
    thread::scope(|scope| {
        for bootstrap in &bootstraps {
            for rank in (0..4).cycle().take(16) {
                scope.spawn(move || assert_eq!(find(bootstrap, rank), Ok(vec![rank as u8; 9])));
            }
        }
    });
    leave(&bootstraps);
}

#[test]
fn a_server_that_is_gone_is_an_error_without_a_wait() {
    let (server, bootstraps) = bootstraps();
    drop(server);
    let begun = Instant::now();
    assert_eq!(find(&bootstraps[0], 2), Err(BootError::Disconnected));
    assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
    assert_eq!(bootstraps[0].why(Rank(2)), Some(BootError::Disconnected));
    assert_eq!(bootstraps[0].why(Rank(3)), None);
    // `look` never waits for the server.
    let begun = Instant::now();
    assert_eq!(bootstraps[1].look(Rank(2), &mut [0; CARD_BYTES_MAX]), Ok(None));
    assert!(begun.elapsed() < LIMIT / 2, "{:?}", begun.elapsed());
}
