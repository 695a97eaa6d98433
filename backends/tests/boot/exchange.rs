//! Ranks that meet, reconnect, leave, and do not arrive.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_backends::boot::tcp::{
    Agent, BootMessage, Client, HEARD, Inbox, ProcessEnd, SIGNAL, Secret, Server,
};
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX, OpenBootstrap};
use tsumugi_core::mem::Rank;

pub const LONG: Duration = Duration::from_secs(30);
const SOME: Duration = Duration::from_secs(5);

pub fn secret() -> Secret {
    Secret::new("a word that these tests share").unwrap()
}

pub fn server(size: u32, limit: Duration) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Server::start(listener, size, secret(), limit).unwrap()
}

pub fn client(rank: u32, size: u32, address: SocketAddr, limit: Duration) -> Client {
    Client::new(Rank(rank), size, vec![address.to_string()], secret(), limit).unwrap()
}

/// A whole start of a rank: it publishes its card and reads the cards of all ranks.
fn start(client: &mut Client) -> Result<(), BootError> {
    let (rank, size) = (client.rank(), client.size());
    client.publish(format!("card of {rank}").as_bytes())?;
    client.barrier()?;
    let mut heads = Vec::new();
    client.heads(&mut |peer, head| heads.push((peer, head[..9].to_vec())))?;
    let head = |peer| (Rank(peer), format!("card of {}", Rank(peer)).as_bytes()[..9].to_vec());
    assert_eq!(heads, (0..size).map(head).collect::<Vec<_>>());
    let mut card = [0; CARD_BYTES_MAX];
    for peer in (0..size).map(Rank) {
        let len = client.card(peer, &mut card)?;
        assert_eq!(&card[..len], format!("card of {peer}").as_bytes());
    }
    Ok(())
}

#[test]
fn every_rank_gets_the_card_of_every_rank() {
    let mut server = server(5, LONG);
    let address = server.address();
    thread::scope(|scope| {
        for rank in 0..5 {
            scope.spawn(move || {
                let mut client = client(rank, 5, address, LONG);
                start(&mut client).unwrap();
                client.leave().unwrap();
            });
        }
    });
    server.drain(LONG);
}

#[test]
fn a_card_arrives_while_the_barrier_is_pending() {
    let server = server(2, LONG);
    let address = server.address();
    let mut clients = [0, 1].map(|rank| client(rank, 2, address, LONG));
    for client in &mut clients {
        client.publish(format!("card of {}", client.rank()).as_bytes()).unwrap();
    }
    let [first, second] = &mut clients;
    first.arrive().unwrap();
    let mut card = [0; CARD_BYTES_MAX];
    assert_eq!(first.card(Rank(1), &mut card), Ok(14));
    assert_eq!(first.has_met(Duration::from_millis(1)), Ok(false));
    second.arrive().unwrap();
    // The end of the barrier comes before or after a card.
    for _ in 0..100 {
        assert_eq!(first.card(Rank(1), &mut card), Ok(14));
    }
    while !first.has_met(Duration::from_millis(1)).unwrap() {}
    while !second.has_met(Duration::from_millis(1)).unwrap() {}
    assert_eq!(second.has_met(Duration::ZERO), Ok(true), "a barrier that has ended needs no wait");
    clients.iter_mut().for_each(|client| client.leave().unwrap());
}

#[test]
fn a_rank_that_published_no_card_is_named() {
    let server = server(2, LONG);
    let mut first = client(0, 2, server.address(), LONG);
    first.publish(&[1; 40]).unwrap();
    let mut seen = 0;
    let heads = first.heads(&mut |_, _| seen += 1);
    assert_eq!((heads, seen), (Err(BootError::NoCard { rank: Rank(1) }), 1));
}

#[test]
fn addresses_are_tried_in_turn_until_the_server_listens() {
    // The address is free from the drop of this listener until the server listens on it.
    let listener = TcpListener::bind("127.0.0.7:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let late = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        let listener = TcpListener::bind(address).unwrap();
        Server::start(listener, 1, secret(), LONG).unwrap()
    });
    let addresses = vec!["127.0.0.1:1".to_owned(), address.to_string()];
    let mut client = Client::new(Rank(0), 1, addresses, secret(), LONG).unwrap();
    start(&mut client).unwrap();
    client.leave().unwrap();
    late.join().unwrap();
}

#[test]
fn a_rank_that_dies_or_never_comes_is_named() {
    let dying = server(3, LONG);
    let address = dying.address();
    let mut waiting = client(0, 3, address, LONG);
    waiting.publish(b"0").unwrap();
    let mut dies = client(1, 3, address, LONG);
    dies.publish(b"1").unwrap();
    let mut stays = client(2, 3, address, LONG);
    stays.publish(b"2").unwrap();
    drop(dies);
    assert_eq!(waiting.barrier(), Err(BootError::PeerLost { rank: Rank(1) }));
    assert_eq!(stays.barrier(), Err(BootError::PeerLost { rank: Rank(1) }));
    let short = Duration::from_millis(100);
    let lonely = server(2, short);
    let mut first = client(0, 2, lonely.address(), LONG);
    // The server's limit may have passed before the rank publishes its card.
    let ended = first.publish(b"0").and_then(|()| first.barrier());
    assert_eq!(ended, Err(BootError::Missing { rank: Rank(1) }));
}

#[test]
fn a_server_that_closes_or_never_existed_is_an_error() {
    let going = server(2, LONG);
    let address = going.address();
    let mut of_launcher = client(0, 2, address, LONG);
    let mut of_rank = client(1, 2, address, LONG).served_by(Rank(0));
    of_launcher.publish(b"0").unwrap();
    of_rank.publish(b"1").unwrap();
    drop(going);
    let begin = Instant::now();
    let other = thread::spawn(move || of_launcher.barrier());
    assert_eq!(of_rank.barrier(), Err(BootError::PeerLost { rank: Rank(0) }));
    assert_eq!(other.join().unwrap(), Err(BootError::Disconnected));
    assert!(begin.elapsed() < LONG, "not the whole limit");
    let short = Duration::from_millis(50);
    assert!(client(0, 2, address, short).publish(b"0").is_err());
}

/// A connection over which a test sends single bytes.
pub struct Raw(pub TcpStream);

impl Raw {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self(stream)
    }

    /// Reads until the other end closes; returns the messages that it sent.
    pub fn rest(&mut self) -> Vec<BootMessage> {
        let (mut inbox, mut said, mut bytes) = (Inbox::default(), Vec::new(), [0; 512]);
        // A reset of the connection ends it as well.
        while let Ok(read @ 1..) = self.0.read(&mut bytes) {
            inbox.push(&bytes[..read]);
            while let Ok(Some(message)) = inbox.pop() {
                said.push(message);
            }
        }
        said
    }
}

#[test]
fn a_job_starts_beside_connections_of_strangers() {
    let server = server(2, LONG);
    let address = server.address();
    let mut noise = Raw::connect(address);
    noise.0.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let silent = Raw::connect(address);
    let mut half = Raw::connect(address);
    half.0.write_all(&[99, 0, 0, 0, 16]).unwrap();
    half.0.shutdown(Shutdown::Write).unwrap();
    let mut long = Raw::connect(address);
    long.0.write_all(&u32::MAX.to_le_bytes()).unwrap();
    let mut early = Raw::connect(address);
    early.0.write_all(&BootMessage::Get { rank: 0 }.to_frame()).unwrap();
    thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || start(&mut client(rank, 2, address, LONG)).unwrap());
        }
    });
    for (what, raw) in [("noise", &mut noise), ("half", &mut half), ("long", &mut long)] {
        let said = raw.rest();
        assert!(matches!(said[..], [BootMessage::Challenge { .. }]), "{what}: {said:?}");
    }
    let said = early.rest();
    assert!(
        matches!(said[..], [_, BootMessage::Refuse { .. }]),
        "a connection without a hello gets no card: {said:?}"
    );
    drop(silent);
}

#[test]
fn a_client_without_the_secret_is_refused() {
    let server = server(1, LONG);
    let address = vec![server.address().to_string()];
    let other = Secret::new("a word that is somebody else's").unwrap();
    let mut stranger = Client::new(Rank(0), 1, address.clone(), other, LONG).unwrap();
    let why = "it does not know the job's secret";
    assert_eq!(stranger.publish(b"x"), Err(BootError::Refused { why }));
    // A rank with another size of the job, and a rank whose number is taken.
    let mut two = Client::new(Rank(0), 2, address.clone(), secret(), LONG).unwrap();
    assert!(matches!(two.publish(b"x"), Err(BootError::Refused { .. })));
    let mut right = Client::new(Rank(0), 1, address.clone(), secret(), LONG).unwrap();
    start(&mut right).unwrap();
    let mut double = Client::new(Rank(0), 1, address, secret(), LONG).unwrap();
    let why = "another process has this rank already";
    assert_eq!(double.publish(b"x"), Err(BootError::Refused { why }));
    right.leave().unwrap();
}

/// The client detects a server that does not know the secret before it sends its card.
#[test]
fn a_server_has_to_know_the_secret_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let imposter = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&BootMessage::Challenge { nonce: [7; 16] }.to_frame()).unwrap();
        let mut hello = [0; 128];
        let read = stream.read(&mut hello).unwrap();
        stream.write_all(&BootMessage::Welcome { proof: [0; 32] }.to_frame()).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        (read, rest)
    });
    let mut victim = client(0, 1, address, LONG);
    assert!(matches!(victim.publish(b"secret card"), Err(BootError::Refused { .. })));
    let (hello, rest) = imposter.join().unwrap();
    assert!(hello > 0);
    assert_eq!(rest, b"", "nothing after the hello");
}

/// A proof that was overheard is not valid in another connection.
#[test]
fn a_hello_cannot_be_replayed() {
    let server = server(1, LONG);
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let (there, here) = (server.address(), relay.local_addr().unwrap());
    let overhears = thread::spawn(move || {
        let (mut victim, _) = relay.accept().unwrap();
        let mut real = TcpStream::connect(there).unwrap();
        let mut bytes = [0; 512];
        let read = real.read(&mut bytes).unwrap();
        victim.write_all(&bytes[..read]).unwrap();
        let read = victim.read(&mut bytes).unwrap();
        bytes[..read].to_vec()
    });
    // The client retries when the relay has closed.
    let victim = thread::spawn(move || client(0, 1, here, SOME).publish(b"x"));
    let hello = overhears.join().unwrap();
    assert!(victim.join().unwrap().is_err());
    let mut again = Raw::connect(there);
    again.0.write_all(&hello).unwrap();
    let said = again.rest();
    assert!(matches!(said[..], [_, BootMessage::Refuse { .. }]), "{said:?}");
}

/// The connection breaks before each answer, and the client reconnects.
#[test]
fn a_broken_connection_is_restored() {
    let server = server(1, LONG);
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let (there, here) = (server.address(), relay.local_addr().unwrap());
    thread::spawn(move || {
        // The first three connections end after the greeting.
        for connection in 0.. {
            let Ok((victim, _)) = relay.accept() else { return };
            let real = TcpStream::connect(there).unwrap();
            let (mut down_from, mut down_to) =
                (real.try_clone().unwrap(), victim.try_clone().unwrap());
            thread::spawn(move || {
                let mut left = if connection < 3 { 2 } else { usize::MAX };
                let mut bytes = [0; 512];
                while let (Ok(read @ 1..), 1..) = (down_from.read(&mut bytes), left) {
                    left -= 1;
                    if down_to.write_all(&bytes[..read]).is_err() {
                        return;
                    }
                }
                let _ = down_to.shutdown(Shutdown::Both);
                let _ = down_from.shutdown(Shutdown::Both);
            });
            let (mut up_from, mut up_to) = (victim, real);
            thread::spawn(move || std::io::copy(&mut up_from, &mut up_to));
        }
    });
    let mut client = client(0, 1, here, LONG);
    start(&mut client).unwrap();
    client.leave().unwrap();
    drop(server);
}

#[test]
fn agents_report_ranks_that_ended_before_they_finished() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (told, ends) = mpsc::channel();
    let told = Box::new(move |ends| told.send(ends).unwrap());
    let server = Server::start_with_agents(listener, 3, secret(), LONG, told).unwrap();
    let address = server.address();
    let mut ranks = [0, 1].map(|rank| client(rank, 3, address, LONG));
    for rank in &mut ranks {
        rank.publish(b"a card").unwrap();
    }
    ranks[0].leave().unwrap();
    let mut agent = Agent::new(3, vec![address.to_string()], secret(), LONG).unwrap();
    agent.prepare();
    let end = |rank, how| ProcessEnd { rank, pid: 5, how };
    // Rank 2 has never arrived, and there is no rank 3.
    agent.tell(vec![end(0, HEARD), end(1, 0), end(2, 0), end(2, SIGNAL | 9), end(3, 1)]).unwrap();
    assert_eq!(ends.recv().unwrap(), [end(1, 0), end(2, SIGNAL | 9)]);
    // A server that expects no agents refuses one.
    let server = self::server(3, LONG);
    let address = server.address().to_string();
    let mut agent = Agent::new(3, vec![address], secret(), SOME).unwrap();
    assert!(matches!(agent.tell(vec![end(1, 1)]), Err(BootError::Refused { .. })));
}

/// A listener that accepts no connection and refuses none.
fn silent() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: a plain call on an open descriptor.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let (address, mut waiting) = (listener.local_addr().unwrap(), Vec::new());
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
        waiting.push(stream);
    }
    (listener, waiting)
}

#[test]
fn addresses_without_an_answer_do_not_delay_others() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (told, ends) = mpsc::channel();
    let told = Box::new(move |ends| told.send(ends).unwrap());
    let server = Server::start_with_agents(listener, 1, secret(), LONG, told).unwrap();
    let (silent, _waiting) = silent();
    // Tried one after the other, the addresses would take longer than the call may.
    let mut addresses = vec![silent.local_addr().unwrap().to_string(); 15];
    addresses.push(server.address().to_string());
    let mut agent = Agent::new(1, addresses, secret(), SOME).unwrap();
    let end = ProcessEnd { rank: 0, pid: 5, how: SIGNAL | 9 };
    agent.tell(vec![end]).unwrap();
    assert_eq!(ends.recv().unwrap(), [end]);
}
