//! Roles of ranks that die or that never end by themselves, and of ranks that lose a
//! peer.

use crate::roles::say;
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tsumugi::group::Sum;
use tsumugi::{AddrError, CallError, Error, MessageError, Rank, Runtime, Until};

/// Rank 1 accesses the last rank for the first time after the launcher has ended: the
/// last rank counts as lost, and no rank hangs.
pub fn late(rt: &Runtime) -> Result<(), Error> {
    let words = rt.share::<u64>(1)?;
    rt.barrier()?;
    say("working");
    let launcher = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == launcher {
        thread::sleep(Duration::from_millis(20));
    }
    if rt.rank() == Rank(1) {
        let last = Rank(rt.size() - 1);
        let lost = rt.fetch_add(words.at(last, 0), 1).expect_err("the card is not available");
        assert_eq!(lost, AddrError::PeerLost { rank: last });
        say(&format!("without a launcher: {lost}"));
        return Err(lost.into());
    }
    // A rank that was accessed before can still be accessed.
    let known = Rank(if rt.rank().0 < 2 { 0 } else { rt.rank().0 });
    rt.fetch_add(words.at(known, 0), 1)?;
    thread::sleep(Duration::from_secs(1));
    Err(Error::program("there is no launcher any more"))
}

/// Many ULTs sleep on a signal that never comes, while the main thread accesses all
/// ranks, of which one will be killed.
pub fn waiters(rt: &Runtime) -> Result<(), Error> {
    let words = Arc::new(rt.share::<u64>(64)?);
    for index in 0..32 {
        let words = words.clone();
        rt.spawn(move |rt| {
            let lost = rt.wait_until(words.own().at(index), Until::Equal(1)).unwrap_err();
            assert!(matches!(lost, AddrError::PeerLost { .. }), "{lost}");
        });
    }
    say(&format!("working {}", std::process::id()));
    loop {
        for rank in rt.ranks() {
            rt.fetch_add(words.at(rank, 40), 1)?;
            tsumugi::ult::yield_now();
        }
    }
}

/// Computes for ever without a call, and so never gets an error after a death.
pub fn computes() -> Result<(), Error> {
    say(&format!("computing {}", std::process::id()));
    loop {
        black_box(());
    }
}

pub fn forever(rt: &Runtime) -> Result<(), Error> {
    let words = rt.share::<u64>(1);
    match words {
        Ok(words) => rt.wait_until(words.own().at(0), Until::Equal(1)).map(|_| ())?,
        Err(error) => return Err(error),
    }
    Ok(())
}

pub fn overflow(rt: &Runtime) -> Result<(), Error> {
    fn deeper(depth: u64) -> u64 {
        let frame = black_box([depth; 64]);
        if depth == u64::MAX { 0 } else { deeper(depth + 1) + frame[7] }
    }
    rt.spawn(|_| say(&deeper(0).to_string())).join().unwrap();
    Ok(())
}

/// Waits for a signal that no rank ever sends.
pub fn stall(rt: &Runtime) -> Result<(), Error> {
    let words = rt.share::<u64>(1)?;
    rt.wait_until(words.own().at(0), Until::Equal(77))?;
    Ok(())
}

/// The last rank takes no part in a collective of all, in one of a group of all but the
/// first, and in one that others have begun.
pub fn stall_collectives(rt: &Runtime) -> Result<(), Error> {
    let world = rt.world();
    let (part, other) = (world.split((rt.rank() != Rank(0)).then_some(0), 0)?, world.duplicate()?);
    if rt.rank().0 + 1 == rt.size() {
        return stall(rt);
    }
    let begun = other.ops().allgather(vec![1u64], vec![0; rt.size() as usize]).try_begin();
    let waits = part.map(|part| rt.spawn(move |_| part.broadcast(&mut [0u64], 1)));
    let words = rt.share::<u64>(1)?;
    drop((words, world.allreduce(&mut [1u64], Sum), waits));
    begun.expect("there is room").wait().map(drop)
}

/// ULTs of all ranks exchange messages of all kinds with the last rank until it is gone.
pub fn exchangers(rt: &Runtime) -> Result<(), Error> {
    const ULTS: u32 = 12;
    let last = Rank(rt.size() - 1);
    let with = |rank: Rank, number: u32| {
        rt.spawn(move |rt| {
            let bytes = [64, 5000, 60_000, 2 << 20][number as usize % 4];
            let (comm, tag) = (rt.comm(), number);
            let (sent, mut received) = (rt.buffer::<u8>(bytes)?, rt.buffer::<u8>(bytes)?);
            loop {
                let ended = comm.send_recv(rank, tag, &sent, rank, tag, &mut received);
                match ended {
                    Ok(_) => tsumugi::ult::yield_now(),
                    Err(error) => return Err::<(), Error>(error.into()),
                }
            }
        })
    };
    let peers = if rt.rank() == last { rt.size() - 1 } else { 1 };
    let others = (0..peers).map(|rank| if rt.rank() == last { Rank(rank) } else { last });
    let ults: Vec<_> =
        others.flat_map(|rank| (0..ULTS).map(move |number| (rank, number))).collect();
    let ults: Vec<_> = ults.into_iter().map(|(rank, number)| with(rank, number)).collect();
    say(&format!("working {}", std::process::id()));
    let lost = ults.into_iter().map(|ult| ult.join().unwrap()).filter(|ended| {
        matches!(ended, Err(Error::Message(MessageError::PeerLost { rank })) if *rank == last)
    });
    say(&format!("lost {} exchanges", lost.count()));
    Ok(())
}

/// ULTs call a rank that will be killed.
pub fn callers(rt: &Runtime) -> Result<(), Error> {
    let never = Arc::new(rt.share::<u64>(1)?);
    rt.handler(1, |message| message.bytes[..1].to_vec());
    rt.service(2, move |rt, _, _| {
        let _ = rt.wait_until(never.own().at(0), Until::Equal(1));
        []
    });
    rt.barrier()?;
    let last = Rank(rt.size() - 1);
    let ults: Vec<_> = (0..40)
        .map(|ult| {
            rt.spawn(move |rt| {
                loop {
                    // Some calls wait for an answer, and some for room.
                    let answer = rt.call(last, 1 + u32::from(ult % 4 == 0), &[1; 400]);
                    if let Err(error) = answer {
                        return matches!(error, Error::Call(CallError::PeerLost { rank }) if rank == last);
                    }
                }
            })
        })
        .collect();
    say(&format!("calling {}", std::process::id()));
    if rt.rank() == last {
        return forever(rt);
    }
    let lost = ults.into_iter().map(|ult| ult.join().unwrap());
    say(&format!("lost {} calls", lost.filter(|lost| *lost).count()));
    Ok(())
}

/// A call that rank 0 never answers.
pub fn unanswered(rt: &Runtime) -> Result<(), Error> {
    let never = Arc::new(rt.share::<u64>(1)?);
    rt.service(77, move |rt, _, _| {
        let _ = rt.wait_until(never.own().at(0), Until::Equal(1));
        []
    });
    rt.barrier()?;
    rt.call(Rank(0), 77, b"")?;
    Ok(())
}
