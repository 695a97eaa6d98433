//! Ranks that add items to their deques and take them, while ULTs of all ranks steal: on one
//! node or several.

use super::api::ult::yield_now;
use super::api::{AddrError, Error, Rank, Runtime, Stealer};
use std::collections::BTreeSet;

/// An item: the rank that added it, its number, and both together, by which a torn item is
/// seen.
type Item = [u64; 3];

/// Adds so many items at each rank, and checks that each is taken once. Collective.
pub fn play(rt: &Runtime, items: u64) -> Result<(), Error> {
    let mut deque = rt.rank_deque::<Item>(50)?;
    let over = rt.share::<u64>(1)?;
    let done = over.at(Rank(0), 0);
    let thieves: Vec<_> = (0..2)
        .map(|first| {
            let stealer = deque.stealer();
            rt.spawn(move |rt| {
                let mut stolen = Vec::new();
                // The thefts after the last item was added take all that are left, or
                // leave them to the other thief.
                loop {
                    let is_last = rt.get(done)? == u64::from(rt.size());
                    steal_from_all(rt, &stealer, first, &mut stolen)?;
                    if is_last {
                        return Ok::<_, AddrError>(stolen);
                    }
                    yield_now();
                }
            })
        })
        .collect();
    let (own, mut taken) = (u64::from(rt.rank().0), Vec::new());
    for number in 0..items {
        let mut item = [own, number, own ^ number];
        while let Err(back) = deque.push(item) {
            item = back;
            taken.extend(deque.pop());
        }
        match number % 5 {
            0 => taken.extend(deque.pop()),
            3 => yield_now(),
            _ => {}
        }
    }
    rt.fetch_add(done, 1)?;
    for thief in thieves {
        taken.extend(thief.join().expect("a thief does not panic")?);
    }
    taken.extend(std::iter::from_fn(|| deque.pop()));
    rt.barrier()?;
    assert!(deque.is_empty());
    assert!(taken.iter().all(|[rank, number, both]| rank ^ number == *both), "torn: {taken:?}");
    let distinct: BTreeSet<_> = taken.iter().copied().collect();
    assert_eq!(distinct.len(), taken.len(), "items were taken twice");
    let (ranks, numbers) = (u64::from(rt.size()), taken.iter().map(|[_, number, _]| number));
    assert_eq!(rt.sum(taken.len() as u64)?, items * ranks);
    assert_eq!(rt.sum(numbers.sum::<u64>())?, ranks * items * (items - 1) / 2);
    Ok(())
}

fn steal_from_all(
    rt: &Runtime,
    stealer: &Stealer<Item>,
    first: u32,
    stolen: &mut Vec<Item>,
) -> Result<(), AddrError> {
    for rank in 0..rt.size() {
        stolen.extend(stealer.steal(Rank((rank + first) % rt.size()))?);
    }
    Ok(())
}
