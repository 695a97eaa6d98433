//! Locks as a program sees them, on ranks that are threads.

use std::time::Duration;
use tsumugi::lock::{Kind, Mode};
use tsumugi::{AddrError, Config, Error, Path, Rank, Runtime, Shared};

const KINDS: [Kind; 4] = [Kind::Mutex, Kind::Readers, Kind::Neutral, Kind::Writers];

fn run_ranks(size: u32, main: impl Fn(&Runtime) -> Result<(), Error> + Sync) {
    Config::default().run_ranks(size, &main).unwrap();
    Config::default().path(Path::Delegate).run_ranks(size, &main).unwrap();
}

/// Two words that are equal unless somebody writes, and lose an increment if
/// two do.
fn write(rt: &Runtime, pair: &Shared<u64>) -> Result<(), Error> {
    for index in 0..2 {
        let value = rt.get(pair.at(Rank(0), index))?;
        tsumugi::ult::yield_now();
        rt.put(pair.at(Rank(0), index), value + 1)?;
    }
    Ok(())
}

fn read(rt: &Runtime, pair: &Shared<u64>) -> Result<(), Error> {
    let first = rt.get(pair.at(Rank(0), 0))?;
    tsumugi::ult::yield_now();
    assert_eq!(rt.get(pair.at(Rank(0), 1))?, first, "a reader beside a writer");
    Ok(())
}

#[test]
fn what_a_lock_protects_is_whole() {
    run_ranks(3, |rt| {
        for kind in KINDS {
            let lock = rt.share_lock(Rank(1), kind)?;
            let pair = rt.share::<u64>(2)?;
            let wrote: u64 = rt.ults().scope(|scope| {
                let (lock, pair) = (&lock, &pair);
                let ult = |ult| scope.spawn(move || churn(rt, lock, pair, ult + rt.rank().0));
                let ults: Vec<_> = (0..ULTS).map(ult).collect();
                ults.into_iter().map(|ult| ult.join().expect("no panic").unwrap()).sum()
            });
            assert_eq!(rt.sum(wrote)?, rt.get(pair.at(Rank(0), 0))?, "{kind:?}");
            rt.barrier()?;
        }
        Ok(())
    });
}

/// Asks in every way; how often it wrote.
fn churn(
    rt: &Runtime,
    lock: &tsumugi::SharedLock,
    pair: &Shared<u64>,
    seed: u32,
) -> Result<u64, Error> {
    let mut wrote = 0;
    for round in seed..seed + ROUNDS {
        let mode = if round.is_multiple_of(2) { Mode::Exclusive } else { Mode::Shared };
        let held = match round % 3 {
            0 => Some(lock.lock(mode)?),
            1 => lock.try_lock(mode)?,
            _ => lock.lock_within(mode, Duration::from_micros(u64::from(round % 50)))?,
        };
        let Some(held) = held else { continue };
        if mode == Mode::Exclusive {
            write(rt, pair)?;
            wrote += 1;
        } else {
            read(rt, pair)?;
        }
        held.release()?;
    }
    Ok(wrote)
}

#[test]
fn who_gives_up_is_not_waited_for() {
    run_ranks(2, |rt| {
        for kind in KINDS {
            let lock = rt.share_lock(Rank(0), kind)?;
            if rt.rank() == Rank(0) {
                let held = lock.write()?;
                rt.barrier()?;
                rt.barrier()?;
                held.release()?;
            } else {
                rt.barrier()?;
                assert!(lock.try_lock(Mode::Exclusive)?.is_none());
                let limit = Duration::from_millis(2);
                assert!(lock.lock_within(Mode::Exclusive, limit)?.is_none());
                assert!(lock.lock_within(Mode::Shared, limit)?.is_none());
                rt.barrier()?;
            }
            lock.write()?.release()?;
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn readers_are_inside_together() {
    run_ranks(3, |rt| {
        for kind in [Kind::Readers, Kind::Neutral, Kind::Writers] {
            let lock = rt.share_lock(Rank(2), kind)?;
            let _held = lock.read()?;
            // Nobody passes before all have it.
            rt.barrier()?;
            assert!(lock.try_lock(Mode::Exclusive)?.is_none());
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn a_lock_of_no_rank_is_named() {
    run_ranks(2, |rt| {
        let error = rt.share_lock(Rank(2), Kind::Mutex).map(drop).unwrap_err();
        let no_such = AddrError::NoSuchRank { rank: Rank(2), size: 2 };
        assert!(matches!(error, Error::Addr(error) if error == no_such), "{error}");
        Ok(())
    });
}

#[test]
fn who_waits_for_a_dead_holder_is_told_who_it_was() {
    let ended = Config::default().run_ranks(2, |rt| {
        let lock = rt.share_lock(Rank(0), Kind::Neutral)?;
        if rt.rank() == Rank(1) {
            std::mem::forget(lock.write()?);
            rt.barrier()?;
            return Err(Error::program("gone with the lock"));
        }
        rt.barrier()?;
        let error = lock.read().map(drop).unwrap_err();
        assert_eq!(error, AddrError::PeerLost { rank: Rank(1) });
        Ok(())
    });
    assert!(ended.unwrap_err().to_string().contains("gone with the lock"));
}

const ULTS: u32 = 20;
const ROUNDS: u32 = 60;
