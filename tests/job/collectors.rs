//! Ranks that run collectives until one of them dies.

use crate::roles::say;
use tsumugi::group::{Group, Sum};
use tsumugi::{AddrError, CollError, Error, Rank, Runtime, Status};

/// Several ULTs run collectives, each on groups of its own: short and long, blocking and
/// begun. All of them end when a rank has died, and name it.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    let world = rt.world();
    let half = world.split(Some(rt.rank().0 / 2), 0)?.expect("a color");
    let groups = [world.duplicate()?, world.duplicate()?, half, world.clone()];
    world.barrier()?;
    let ults: Vec<_> = (0..)
        .zip(groups)
        .map(|(number, group)| rt.spawn(move |_| until_lost(&group, number)))
        .collect();
    say("working");
    let mut lost = None;
    for ult in ults {
        let by = ult.join().expect("no ULT panics");
        assert!(*lost.get_or_insert(by) == by, "{lost:?}, {by}");
    }
    say(&format!("{} lost {}", rt.rank(), lost.expect("there are groups")));
    // Every later collective ends at once.
    assert!(world.barrier().is_err());
    assert!(matches!(world.ops().barrier().try_begin(), Ok(Status::Done(Err(_)))));
    Err(Error::program("a rank has died"))
}

fn until_lost(group: &Group, number: usize) -> Rank {
    loop {
        let ended = match number {
            0 => group.alltoall(&vec![1u64; 20_000 * group.size() as usize]).map(drop),
            1 => {
                let begun = group.ops().allreduce(vec![1u64; 50_000], Sum).try_begin();
                begun.expect("there is room").wait().map(drop)
            }
            2 => group.barrier(),
            _ => group.split(Some(0), 0).map(drop),
        };
        match ended {
            Ok(()) => {}
            Err(Error::Coll(CollError::Addr(AddrError::PeerLost { rank }))) => return rank,
            Err(other) => panic!("{other}"),
        }
    }
}
