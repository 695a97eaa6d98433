//! Two nodes whose network is cut and joined again. `ci/netns.sh` cuts the network, and
//! reads the lines that the ranks print.

use crate::roles::say;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tsumugi::{AddrError, Error, Rank, Runtime};

/// Writes to a rank of the other node in three ways, another value each time, until that
/// rank is lost. From then on the own memory must not change until the test
/// [is over](is_over), except by puts that were in flight.
pub fn apart(rt: &Runtime) -> Result<(), Error> {
    let (words, many) = (rt.share::<u64>(2)?, rt.share::<u32>(MANY)?);
    let near: Vec<Rank> = rt.neighbours().collect();
    let remote: Vec<Rank> = rt.ranks().filter(|rank| !near.contains(rank)).collect();
    let seat = near.iter().position(|rank| *rank == rt.rank()).expect("its own neighbour");
    let (own, remote) = (rt.rank(), remote[seat]);
    let (sum, word, bytes) = (words.at(remote, 0), words.at(remote, 1), many.at(remote, 0));
    rt.barrier()?;
    say("working");
    let ways: [Way; 3] = [
        Box::new(move |rt, _| rt.fetch_add(sum, 1).map(drop)),
        Box::new(move |rt, number| rt.put(word, number.into())),
        Box::new(move |rt, number| rt.put_slice(bytes, &[number; MANY])),
    ];
    let all = ways.map(|way| {
        let until_lost = move |rt: &Runtime| (1..).find_map(|number| way(rt, number).err());
        rt.spawn(until_lost)
    });
    for lost in all {
        let error = lost.join().expect("no way panics").expect("each way ends with an error");
        let AddrError::PeerLost { rank } = error else { return Err(error.into()) };
        assert!(!near.contains(&rank), "{rank}");
    }
    let mine = || {
        let mut all = vec![0; MANY];
        rt.get_slice(many.at(own, 0), &mut all)?;
        Ok::<_, AddrError>((rt.get(words.at(own, 0))?, rt.get(words.at(own, 1))?, all))
    };
    let is_udp = std::env::var("TSUMUGI_PROVIDER").is_ok_and(|name| name.starts_with("udp"));
    let (sum, word, all) = mine()?;
    say(&format!("{own} is apart"));
    while !is_over() {
        let now = mine()?;
        // Over udp a put that the other rank's network library had sent before may land:
        // one of each way.
        let may_land = |before: u64, now: u64| before == now || (is_udp && before + 1 == now);
        let are_puts = may_land(word, now.1)
            && all.iter().zip(&now.2).all(|(was, is)| may_land((*was).into(), (*is).into()));
        if now.0 != sum || !are_puts {
            say(&format!("{own} was written to by {remote}, which it had given up"));
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    say(&format!("{own} has seen the end"));
    Err(Error::program("nothing is left to do"))
}

/// Whether the file that `TSUMUGI_TEST_OVER` names exists: the test is over.
pub fn is_over() -> bool {
    let over = std::env::var_os("TSUMUGI_TEST_OVER").expect("TSUMUGI_TEST_OVER is set");
    Path::new(&over).exists()
}

/// One operation; its argument is the number of its turn.
type Way = Box<dyn Fn(&Runtime, u32) -> Result<(), AddrError> + Send>;

/// The number of words of four bytes that a put writes.
const MANY: usize = 1000;
