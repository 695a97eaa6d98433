//! Operations on global memory that begin now and end later, on ranks that are threads:
//! lists, strides, orders, flushes and waits on words.

use std::time::Duration;
use tsumugi::global::{After, Change, Copy, ListCopy};
use tsumugi::{
    AddrError, Config, Error, Global, GlobalAddr, GlobalPtr, Path, Rank, Runtime, Signal, Until,
};
use tsumugi_core::op::Kind;

const RANKS: u32 = 4;
const WORDS: usize = 600;

/// Runs `main` on [`RANKS`] ranks, once with each path for operations.
fn run_ranks(main: impl Fn(&Runtime, &Global, &[GlobalPtr<u64>]) -> Result<(), Error> + Sync) {
    let main = |rt: &Runtime| {
        let global = rt.global()?;
        let words = global.expose::<u64>(WORDS)?;
        let own = rt.rank().0 as usize;
        let values: Vec<u64> = (0..WORDS).map(|word| (own << 32 | word) as u64).collect();
        global.put_slice(words.at(0), &values)?;
        let all: Vec<GlobalPtr<u64>> = rt
            .allgather(words.at(0).addr().to_bits())?
            .into_iter()
            .map(|bits| GlobalPtr::new(GlobalAddr::from_bits(bits)))
            .collect();
        main(rt, &global, &all)?;
        rt.barrier()
    };
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        Config::default().path(path).run_ranks(RANKS, main).unwrap();
    }
}

fn value(rank: usize, word: usize) -> u64 {
    (rank << 32 | word) as u64
}

/// Blocks at two strides, one forwards and one backwards. The caller is the source, the
/// destination, neither, or both.
#[test]
fn strided_blocks_land_in_their_places() {
    run_ranks(|rt, global, all| {
        if rt.rank() != Rank(0) {
            return Ok(());
        }
        for (dst, src) in [(1, 0), (0, 1), (3, 2), (0, 0)] {
            let to = global.index(all[dst], 500)?;
            let from = global.index(all[src], 90)?;
            // Blocks of two words: to every third word, from every tenth word backwards.
            let copy = Copy::new(to.addr(), from.addr(), 16).strided(10, 24, -80);
            global.begin(copy).wait()?;
            let mut found = [0; 30];
            global.get_slice(to, &mut found)?;
            for (block, found) in found.chunks(3).enumerate() {
                let first = 90 - 10 * block;
                let kept = value(dst, 500 + 3 * block + 2);
                assert_eq!(found, [value(src, first), value(src, first + 1), kept]);
            }
            let kept: Vec<u64> = (500..530).map(|word| value(dst, word)).collect();
            global.put_slice(to, &kept)?;
        }
        Ok(())
    });
}

/// A list names blocks at any places in the memory of two ranks.
#[test]
fn blocks_of_a_list_land_in_their_places() {
    run_ranks(|rt, global, all| {
        if rt.rank() != Rank(0) {
            return Ok(());
        }
        for (to, from) in [(1, 0), (0, 2), (3, 2)] {
            let entries: Vec<[u64; 3]> = (0..25)
                .map(|entry| {
                    let dst = global.index(all[to], 500 + 2 * entry)?;
                    let src = global.index(all[from], 7 * entry)?;
                    Ok([dst.addr().to_bits(), src.addr().to_bits(), 8])
                })
                .collect::<Result<_, AddrError<GlobalAddr>>>()?;
            let list = global.expose::<u64>(3 * entries.len())?;
            global.put_slice(list.at(0), entries.as_flattened())?;
            let count = entries.len() as u32;
            let [from_rank, to_rank] = [from, to].map(|rank| Rank(rank as u32));
            let entries = list.at(0).addr();
            global.begin(ListCopy { entries, count, from: from_rank, to: to_rank }).wait()?;
            for entry in 0..25 {
                let at = global.index(all[to], 500 + 2 * entry)?;
                assert_eq!(global.get(at)?, value(from, 7 * entry as usize));
                let next = global.get(global.index(at, 1)?)?;
                assert_eq!(next, value(to, 501 + 2 * entry as usize));
            }
            // The list has entries of other ranks than it says.
            let wrong = ListCopy { entries, count, from: to_rank, to: from_rank };
            let error = global.begin(wrong).wait().unwrap_err();
            assert!(matches!(error, AddrError::OtherRank { .. }), "{error}");
        }
        Ok(())
    });
}

/// An operation begins only after all operations of its condition have ended, with each
/// kind of condition.
#[test]
fn an_operation_begins_when_its_condition_holds() {
    run_ranks(|rt, global, all| {
        if rt.rank() != Rank(0) {
            return Ok(());
        }
        let at = |rank: usize, word: i64| global.index(all[rank], word);
        for round in 1..20u64 {
            // Swaps write the round to three ranks, in no order.
            let put = |rank| Ok::<_, Error>(Change::atomic(Kind::Swap, at(rank, 0)?.addr(), round));
            let begun = [global.begin(put(1)?), global.begin(put(2)?), global.begin(put(3)?)];
            let handles = [0, 1, 2].map(|index: usize| begun[index].handle());
            let copy = |from: usize| {
                let (dst, src) = (at(0, from as i64)?, at(from, 0)?);
                Ok::<_, Error>(Copy::new(dst.addr(), src.addr(), 8))
            };
            let after = [
                global.begin_after(copy(1)?, After::One(handles[0])),
                global.begin_after(copy(2)?, After::Each(&handles)),
                global.begin_after(copy(3)?, After::UpTo(handles[2])),
            ];
            // `Cont`: the same ranks as of the operation before, so only that must end first.
            let moved = Copy::new(at(0, 4)?.addr(), at(3, 0)?.addr(), 8);
            let last = [
                global.begin_after(moved, After::Cont),
                global.begin_after(
                    Change::atomic(Kind::FetchAdd, at(0, 4)?.addr(), 1u64),
                    After::All,
                ),
            ];
            assert_eq!(global.flush(Rank(0)).wait(), Ok(0));
            assert!(after.iter().chain(&last).all(|operation| operation.has_ended()));
            drop(begun);
            for operation in after {
                assert_eq!(operation.wait(), Ok(0));
            }
            let [moved, added] = last;
            assert_eq!((moved.wait(), added.wait()), (Ok(0), Ok(round)));
            let mut found = [0; 5];
            global.get_slice(at(0, 0)?, &mut found)?;
            assert_eq!(found[1..], [round, round, round, round + 1]);
        }
        Ok(())
    });
}

/// A caller that begins more operations than there is room for sleeps in `begin`, and
/// gets an error from `try_begin_after`.
#[test]
fn a_caller_that_begins_too_many_operations_waits_or_gets_an_error() {
    run_ranks(|rt, global, all| {
        let peer = all[(rt.rank().0 as usize + 1) % RANKS as usize];
        let add = Change::atomic(Kind::FetchAdd, peer.addr(), 1u64);
        (0..3000).for_each(|_| drop(global.begin(add)));
        global.flush_all().wait()?;
        rt.barrier()?;
        let own = rt.rank().0 as usize;
        assert_eq!(global.get(all[own])?, value(own, 0) + 3000);
        rt.barrier()?;
        // An operation that has ended keeps its place until its handle is dropped.
        let mut kept = Vec::new();
        while let Ok(operation) = global.try_begin_after(add, After::Nothing) {
            kept.push(operation);
            assert!(kept.len() < 100_000, "{} operations are kept, without a limit", kept.len());
            while !kept[kept.len() - 1].has_ended() {
                tsumugi::ult::yield_now();
            }
        }
        drop(kept);
        global.begin(add).wait()?;
        Ok(())
    });
}

/// A put, a copy and an atomic each change a word with a signal, which wakes the ULT that
/// waits for the word.
#[test]
fn signals_of_operations_wake_waiters() {
    run_ranks(|rt, global, all| {
        let (own, next) = (rt.rank().0 as usize, (rt.rank().0 as usize + 1) % RANKS as usize);
        let flag = |rank: usize| global.index(all[rank], 599);
        global.put(flag(own)?, 0)?;
        rt.barrier()?;
        let elsewhere = Err(AddrError::OtherRank { addr: flag(next)?.addr() });
        assert_eq!(global.wait_until(flag(next)?, Until::Equal(0)), elsewhere);
        let brief = Duration::from_millis(1);
        assert_eq!(global.wait_until_timeout(flag(own)?, Until::Equal(9), brief), Ok(None));
        rt.barrier()?;
        global.put_signal(global.index(all[next], 10)?, &[1, 2], flag(next)?, Signal::Add(1))?;
        assert_eq!(global.wait_until(flag(own)?, Until::AtLeast(1)), Ok(1));
        assert_eq!(global.get(global.index(all[own], 11)?)?, 2);
        rt.barrier()?;
        if own == 0 {
            for rank in 0..RANKS as usize {
                // A copy from each rank to the next one, begun by rank 0.
                let (dst, src) = ((rank + 1) % RANKS as usize, rank);
                let (to, from) = (global.index(all[dst], 20)?, global.index(all[src], 0)?);
                let copy = Copy::new(to.addr(), from.addr(), 8).then_add(flag(dst)?.addr(), 1);
                drop(global.begin(copy));
            }
        }
        assert_eq!(global.wait_until(flag(own)?, Until::AtLeast(2)), Ok(2));
        let before = (own + RANKS as usize - 1) % RANKS as usize;
        assert_eq!(global.get(global.index(all[own], 20)?)?, value(before, 0));
        rt.barrier()?;
        let add = Change::atomic(Kind::FetchAdd, flag(next)?.addr(), 5u64).notifying();
        assert_eq!(global.begin(add).wait(), Ok(2));
        assert_eq!(global.wait_until(flag(own)?, Until::Equal(7)), Ok(7));
        assert_eq!(global.signal(flag(own)?, Signal::Set(0)), Ok(7));
        Ok(())
    });
}
