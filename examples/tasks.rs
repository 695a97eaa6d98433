//! Operations as values in async code: each rank adds up a histogram that is distributed
//! over all ranks, with many operations in flight in one task. No operation allocates.
//!
//! ```sh
//! tsumugi run -n 2 target/release/examples/tasks
//! ```
//!
//! The tasks run on ULTs here (`ult::block_on`); a task of tokio awaits the same values.

use std::collections::VecDeque;
use tsumugi::ult::{block_on, yield_now};
use tsumugi::{Error, Rank, Runtime, Shared, Signal, Status, Until};

/// Words of the histogram on each rank.
const WORDS: usize = 64;
/// Additions of each rank.
const ADDITIONS: usize = 1000;

#[tsumugi::main]
fn main(rt: &Runtime) -> Result<(), Error> {
    let counts = rt.share::<u64>(WORDS)?;
    rt.barrier()?;
    pipelined(rt, &counts)?;
    let total = block_on(summed(rt, &counts))?;
    assert_eq!(total as usize, ADDITIONS * rt.size() as usize);
    let next = Rank((rt.rank().0 + 1) % rt.size());
    block_on(greeted(rt, next))?;
    if rt.rank() == Rank(0) {
        println!("{} ranks have made {total} additions", rt.size());
    }
    rt.barrier()
}

/// Adds to words of all ranks, with as many additions in flight as there is room for.
fn pipelined(rt: &Runtime, counts: &Shared<u64>) -> Result<(), Error> {
    let mut in_flight = VecDeque::with_capacity(ADDITIONS);
    for number in 0..ADDITIONS {
        let rank = Rank((number % rt.size() as usize) as u32);
        let mut add = rt.ops().add(counts.at(rank, number % WORDS), 1);
        loop {
            match add.try_begin() {
                // On this node: it has ended.
                Ok(Status::Done(result)) => break result?,
                Ok(Status::Pending(one)) => break in_flight.push_back(one),
                Err(busy) => {
                    // The operation has come back. The oldest one makes room.
                    add = busy.operation;
                    match in_flight.pop_front() {
                        Some(oldest) => oldest.wait()?,
                        None => yield_now(),
                    }
                }
            }
        }
    }
    in_flight.into_iter().try_for_each(|one| one.wait())?;
    rt.barrier()
}

/// Reads all words; each await lets other ULTs run.
async fn summed(rt: &Runtime, counts: &Shared<u64>) -> Result<u64, Error> {
    let mut total = 0;
    for rank in rt.ranks() {
        for word in 0..WORDS {
            total += rt.ops().get(counts.at(rank, word)).await?;
        }
    }
    Ok(total)
}

/// Sends a message to the next rank, and awaits that of the rank before, and then a signal.
async fn greeted(rt: &Runtime, next: Rank) -> Result<(), Error> {
    let (comm, bell) = (rt.comm(), rt.starter(rt.rank()));
    let text = format!("hello from {}", rt.rank()).into_bytes();
    let sent = comm.ops().send(next, 1, text).await?;
    let (received, _) = comm.ops().recv(tsumugi::Source::Any, 1, vec![0; 64]).await?;
    assert!(received.bytes > 0 && !sent.is_empty());
    rt.ops().signal(rt.starter(next), Signal::Add(1)).await?;
    rt.ops().wait_until(bell, Until::AtLeast(1)).await?;
    Ok(())
}
