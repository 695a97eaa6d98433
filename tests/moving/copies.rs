//! Checked-out copies that ranks keep, beside pages that move.

use tsumugi::array::{ArrayOptions, Read, ReadWrite, Write};
use tsumugi::{Error, Runtime};

/// Rounds in which each of `len` elements is written by one rank, through a cache that is
/// too small for all copies, while pages move. After a fence, all ranks see all values
/// that were checked in before it. Collective.
pub fn rounds(rt: &Runtime, len: usize, seed: u64) -> Result<(), Error> {
    let options = ArrayOptions::new().page_len(7).known(9).cached_bytes(BYTES);
    let array = options.create::<u64>(rt, len)?;
    let (rank, size) = (u64::from(rt.rank().0), u64::from(rt.size()));
    for round in 0..3u64 {
        // The writer of an element changes with the round, so a page has several writers.
        let writer = move |index: usize| (index / STRIPE) as u64 * 5 + round + seed;
        let ults: Vec<_> = (0..2)
            .map(|ult| {
                let array = array.clone();
                rt.spawn(move |_| {
                    let starts = (0..len).step_by(STRIPE).filter(|at| writer(*at) % size == rank);
                    for (turn, start) in starts.enumerate().filter(|(turn, _)| turn % 2 == ult) {
                        let range = start..(start + STRIPE).min(len);
                        if turn % 3 == 0 {
                            let mut lent = array.checkout(range.clone(), Write)?;
                            lent.iter_mut().for_each(|value| *value = u64::MAX);
                            drop(lent);
                        }
                        let mut lent = array.checkout(range.clone(), ReadWrite)?;
                        tsumugi::ult::yield_now();
                        for (index, value) in range.clone().zip(lent.iter_mut()) {
                            *value = value_of(index, round);
                        }
                        drop(lent);
                        if turn % 4 == 0 {
                            array.own(range)?;
                        }
                        if turn % 16 == 0 {
                            array.release()?;
                        }
                    }
                    Ok::<(), Error>(())
                })
            })
            .collect();
        ults.into_iter().try_for_each(|ult| ult.join().expect("no panic"))?;
        array.fence()?;
        for start in (0..len).step_by(500) {
            let range = start..(start + 500).min(len);
            let lent = array.checkout(range.clone(), Read)?;
            let mut direct = vec![0; range.len()];
            array.get_slice(start, &mut direct)?;
            for (index, value) in range.clone().zip(lent.iter()) {
                assert_eq!(*value, value_of(index, round), "element {index}, round {round}");
            }
            assert_eq!(*lent, direct, "the copy and the array");
            assert!(array.copies_bytes() <= BYTES, "{} bytes", array.copies_bytes());
        }
        rt.barrier()?;
    }
    Ok(())
}

const fn value_of(index: usize, round: u64) -> u64 {
    index as u64 * 10 + round
}

const BYTES: usize = 64 << 10;
const STRIPE: usize = 45;
