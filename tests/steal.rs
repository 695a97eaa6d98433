//! Deques from which other ranks steal, on ranks that are threads.

mod every_way;
mod stealing;

use every_way::run_ranks;
use tsumugi as api;
use tsumugi::{AddrError, Error, Plain, Rank, RankDeque, Runtime};

#[test]
fn each_item_is_taken_once() {
    run_ranks(3, |rt| stealing::play(rt, 2000));
}

#[test]
fn a_full_deque_gives_the_item_back_and_the_newest_is_taken_first() {
    run_ranks(2, |rt| {
        fill(rt, |number| [number as u8; 5])?;
        fill(rt, |number| number as u16)?;
        fill(rt, |number| [number, !number, 7])?;
        let mut nothing = rt.rank_deque::<[u8; 0]>(2)?;
        assert_eq!(nothing.push([]), Ok(()));
        assert_eq!((nothing.pop(), nothing.pop()), (Some([]), None));
        rt.barrier()
    });
}

fn fill<T: Plain + PartialEq + std::fmt::Debug>(
    rt: &Runtime,
    item: impl Fn(u64) -> T,
) -> Result<(), Error> {
    let mut deque: RankDeque<T> = rt.rank_deque(5)?;
    assert_eq!(deque.capacity(), 8);
    for number in 0..8 {
        assert_eq!(deque.push(item(number)), Ok(()));
    }
    assert_eq!(deque.push(item(8)), Err(item(8)));
    rt.barrier()?;
    // Each rank steals the oldest item of the next one.
    let next = Rank((rt.rank().0 + 1) % rt.size());
    assert_eq!(deque.steal(next)?, Some(item(0)));
    rt.barrier()?;
    assert_eq!(deque.pop_if(|newest| *newest == item(6)), None);
    assert_eq!(deque.pop_if(|newest| *newest == item(7)), Some(item(7)));
    assert_eq!(deque.pop(), Some(item(6)));
    assert_eq!(deque.len(), 5);
    // A rank may steal from itself.
    assert_eq!(deque.stealer().steal(rt.rank())?, Some(item(1)));
    assert_eq!(deque.push(item(9)), Ok(()));
    let rest: Vec<_> = std::iter::from_fn(|| deque.pop()).collect();
    assert_eq!(rest, [9, 5, 4, 3, 2].map(item));
    rt.barrier()?;
    assert_eq!(deque.steal(next)?, None);
    Ok(())
}

#[test]
fn wrong_values_are_refused_by_name() {
    run_ranks(2, |rt| {
        let refused = rt.rank_deque::<u64>(0).map(drop).unwrap_err();
        assert!(refused.to_string().contains("a deque of 0 items"), "{refused}");
        let deque = rt.rank_deque::<u64>(4)?;
        let none = AddrError::NoSuchRank { rank: Rank(9), size: Rank(2).0 };
        assert_eq!(deque.steal(Rank(9)), Err(none));
        let own = 8 << rt.rank().0;
        assert!(matches!(rt.rank_deque::<u64>(own), Err(Error::LengthsDiffer { .. })));
        // As much memory, in other places.
        let refused = match rt.rank() {
            Rank(0) => rt.rank_deque::<[u64; 2]>(4).map(drop),
            _ => rt.rank_deque::<u64>(8).map(drop),
        };
        assert!(matches!(refused, Err(Error::LengthsDiffer { .. })), "{refused:?}");
        assert!(matches!(rt.rank_deque::<[u64; 1 << 40]>(1 << 23), Err(Error::OutOfMemory { .. })));
        rt.barrier()
    });
}
