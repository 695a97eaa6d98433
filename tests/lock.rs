//! The interface of locks, on ranks that are threads.

mod every_way;
#[path = "job/locks.rs"]
#[allow(dead_code, reason = "another test has the windows")]
mod locks;

use every_way::run_ranks;
use std::time::Duration;
use tsumugi::lock::{LockKind, LockMode};
use tsumugi::{AddrError, Config, Error, Rank};

const KINDS: [LockKind; 4] =
    [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers];

#[test]
fn words_under_a_lock_lose_no_write() {
    run_ranks(3, |rt| locks::locks(rt, 60));
}

#[test]
fn a_waiter_that_gives_up_does_not_block_the_lock() {
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
                assert!(lock.try_lock(LockMode::Exclusive)?.is_none());
                let limit = Duration::from_millis(2);
                assert!(lock.lock_timeout(LockMode::Exclusive, limit)?.is_none());
                assert!(lock.lock_timeout(LockMode::Shared, limit)?.is_none());
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
        for kind in [LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
            let lock = rt.share_lock(Rank(2), kind)?;
            let _held = lock.read()?;
            // No rank leaves the barrier before all ranks hold the lock.
            rt.barrier()?;
            assert!(lock.try_lock(LockMode::Exclusive)?.is_none());
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn a_lock_at_a_rank_that_does_not_exist_is_an_error() {
    run_ranks(2, |rt| {
        let error = rt.share_lock(Rank(2), LockKind::Mutex).map(drop).unwrap_err();
        let no_such = AddrError::NoSuchRank { rank: Rank(2), size: 2 };
        assert!(matches!(error, Error::Addr(error) if error == no_such), "{error}");
        Ok(())
    });
}

#[test]
fn a_wait_for_a_dead_holder_fails_with_its_rank() {
    let ended = Config::default().run_ranks(2, |rt| {
        let lock = rt.share_lock(Rank(0), LockKind::Neutral)?;
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
