//! Updates of all ranks on one word, with each agent: no update is lost.
//!
//! ```text
//!  ULTs of rank 0 ─┐
//!  ULTs of rank 1 ─┼─ fetch-add ─► a word of rank 0 = the number of updates
//!  ULTs of rank 2 ─┘  compare-swap ─► another word
//! ```
//!
//! The old values that the updates return are added up, too: each number comes once.

use std::time::{Duration, Instant};
use tsumugi::{Agent, Error, MemoryOptions, Rank, Remote, Runtime};

/// Runs so many updates with the device as the agent, and as many with the processors.
/// Collective.
pub fn play(rt: &Runtime, updates: u64) -> Result<(), Error> {
    for agent in [Agent::Device, Agent::Cpu] {
        let words = MemoryOptions::new().agent(agent).share::<u64>(rt, 2)?;
        let (word, swapped) = (words.at(Rank(0), 0), words.at(Rank(0), 1));
        // An update by the processor on this node takes an instruction, so a round has more
        // of them.
        let is_near = rt.neighbours().any(|rank| rank == Rank(0)) || rt.rank() == Rank(0);
        let burst = if is_near && words.agent() == Agent::Cpu { BURST } else { 1 };
        let bursts = rt.sum(burst)?;
        let rounds = updates.div_ceil(bursts * ULTS);
        rt.barrier()?;
        let start = Instant::now();
        let swaps = rt.spawn(move |rt| add_by_swap(rt, swapped, rounds));
        let found = update(rt, word, rounds, [burst, bursts])?;
        swaps.join().expect("no panic")?;
        rt.barrier()?;
        let (by, took) = (words.agent(), start.elapsed());
        let all = rounds * bursts * ULTS;
        assert_eq!(rt.get(word)?, all, "{agent:?}");
        assert_eq!(rt.get(swapped)?, rounds * u64::from(rt.size()), "{agent:?}");
        assert_eq!(rt.sum(found)?, (0..all).fold(0, u64::wrapping_add), "{agent:?}");
        crate::roles::say(&format!("{all} updates by {by:?}: all there after {took:?}"));
        words_of_others(rt, agent)?;
    }
    Ok(())
}

/// The sum of the old values that the updates of this rank return.
fn update(
    rt: &Runtime,
    word: Remote<u64>,
    rounds: u64,
    [burst, bursts]: [u64; 2],
) -> Result<u64, Error> {
    let ults: Vec<_> = (0..ULTS)
        .map(|ult| {
            rt.spawn(move |rt| {
                let mut found = 0u64;
                for round in 0..rounds {
                    if ult == 0 && rounds > LONG && round % LONG == 0 {
                        crate::roles::say(&format!("{}: round {round} of {rounds}", rt.rank()));
                    }
                    if round % CHUNK == 0 {
                        keep_pace(rt, word, round.saturating_sub(2 * CHUNK) * ULTS * bursts)?;
                    }
                    for _ in 0..burst {
                        found = found.wrapping_add(rt.fetch_add(word, 1)?);
                    }
                }
                Ok::<u64, Error>(found)
            })
        })
        .collect();
    ults.into_iter().try_fold(0u64, |sum, ult| Ok(sum.wrapping_add(ult.join().expect("no panic")?)))
}

/// Waits until the word has reached `all`, so that no rank is done long before another
/// one and the updates of all ranks meet.
fn keep_pace(rt: &Runtime, word: Remote<u64>, all: u64) -> Result<(), Error> {
    while rt.get(word)? < all {
        tsumugi::ult::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Adds 1 so many times to a word by compare-and-swap; all ranks compete for the word.
fn add_by_swap(rt: &Runtime, word: Remote<u64>, times: u64) -> Result<(), Error> {
    let mut old = rt.get(word)?;
    for _ in 0..times {
        loop {
            let found = rt.compare_swap(word, old, old + 1)?;
            if found == old {
                break;
            }
            old = found;
        }
        old += 1;
    }
    Ok(())
}

/// Every operation, of each rank on words of the next rank and on its own.
fn words_of_others(rt: &Runtime, agent: Agent) -> Result<(), Error> {
    let words = MemoryOptions::new().agent(agent).share::<u64>(rt, 4)?;
    let many = MemoryOptions::new().agent(agent).share::<u32>(rt, 5)?;
    let next = Rank((rt.rank().0 + 1) % rt.size());
    for rank in [next, rt.rank()] {
        let word = words.at(rank, 0);
        rt.put(word, 0b1100)?;
        assert_eq!(rt.swap(word, 0b0101)?, 0b1100);
        assert_eq!(rt.fetch_or(word, 0b1000)?, 0b0101);
        assert_eq!(rt.fetch_xor(word, 0b1111)?, 0b1101);
        assert_eq!(rt.fetch_and(word, 0b0110)?, 0b0010);
        assert_eq!(rt.compare_swap(word, 2, 9)?, 2);
        assert_eq!(rt.get(word)?, 9);
        let half = many.at(rank, 4);
        rt.put_slice(many.at(rank, 2), &[3, 4, 5])?;
        assert_eq!(rt.fetch_add(half, 2)?, 5);
        assert_eq!(rt.compare_swap(half, 7, 1)?, 7);
        let mut back = [0; 3];
        rt.get_slice(many.at(rank, 2), &mut back)?;
        assert_eq!(back, [3, 4, 1]);
        rt.barrier()?;
    }
    // The signals of all ranks wake the ULT that waits for the word.
    for rank in rt.ranks() {
        rt.signal(words.at(rank, 1), tsumugi::Signal::Add(1))?;
    }
    let all = tsumugi::Until::AtLeast(u64::from(rt.size()));
    rt.wait_until(words.at(rt.rank(), 1), all)?;
    // The signal of a put wakes the waiter after the bytes have landed.
    let values = [7, 8];
    let signal = tsumugi::Signal::Set(u64::from(next.0) + 5);
    rt.put_signal(many.at(next, 0), &values, words.at(next, 3), signal)?;
    let told = tsumugi::Until::Equal(u64::from(rt.rank().0) + 5);
    rt.wait_until(words.at(rt.rank(), 3), told)?;
    let mut found = [0; 2];
    rt.get_slice(many.at(rt.rank(), 0), &mut found)?;
    assert_eq!(found, values, "{agent:?}");
    let stale = rt.get(words.at(next, 0).add(1 << 20));
    assert!(matches!(stale, Err(tsumugi::AddrError::OutOfRange { .. })), "{stale:?}");
    rt.barrier()
}

const ULTS: u64 = 32;
/// Rounds of a ULT between two checks of how far the other ranks are.
const CHUNK: u64 = 20;
/// Rounds after which a line is printed.
const LONG: u64 = 1000;
/// Updates of a round if each is an instruction.
const BURST: u64 = 15;
