//! The interface of windows, on ranks that are threads.

mod every_way;
#[path = "job/locks.rs"]
#[allow(dead_code, reason = "another test has the locks")]
mod locks;

use every_way::run_ranks;
use locks::DESIGNS;
use std::time::{Duration, Instant};
use tsumugi::window::{AccessRefused, Design, WindowError, WindowOptions};
use tsumugi::{AddrError, Config, Error, Rank};

#[test]
fn words_under_holds_of_a_window_lose_no_write() {
    run_ranks(3, |rt| locks::windows(rt, 40));
}

#[test]
fn all_ranks_hold_all_targets_together() {
    run_ranks(4, |rt| {
        for design in DESIGNS {
            let window = WindowOptions::new().design(design).create::<u64>(rt, 1)?;
            for _ in 0..20 {
                let held = window.lock_all()?;
                // No rank leaves the barrier before all ranks hold all targets.
                rt.barrier()?;
                held.release()?;
                let held = window.exclusive(rt.rank())?;
                held.release()?;
                rt.barrier()?;
            }
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn exclusive_holds_of_two_targets_do_not_exclude_each_other() {
    run_ranks(2, |rt| {
        for design in [Design::Each, Design::Tree, Design::TwoLevel] {
            let window = WindowOptions::new().design(design).create::<u64>(rt, 1)?;
            let held = window.exclusive(rt.rank())?;
            rt.barrier()?;
            held.release()?;
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn a_lock_that_would_wait_for_itself_is_refused() {
    run_ranks(2, |rt| {
        for design in DESIGNS {
            let window = WindowOptions::new().design(design).create::<u64>(rt, 1)?;
            if rt.rank() == Rank(0) {
                let held = window.exclusive(Rank(1))?;
                let again = held.exclusive(Rank(1)).map(drop).unwrap_err();
                assert_eq!(again, WindowError::Held { target: Rank(1) });
                if design == Design::Global {
                    let other = held.exclusive(Rank(0)).map(drop).unwrap_err();
                    assert_eq!(other, WindowError::Refused(AccessRefused::OneLock));
                }
                held.release()?;
                let nobody = window.exclusive(Rank(2)).map(drop).unwrap_err();
                let no_such = AddrError::NoSuchRank { rank: Rank(2), size: 2 };
                assert_eq!(nobody, WindowError::Addr(no_such));
            }
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn a_hold_of_all_targets_has_each_target_already() {
    run_ranks(2, |rt| {
        for design in DESIGNS {
            let window = WindowOptions::new().design(design).create::<u64>(rt, 1)?;
            let held = window.lock_all()?;
            for target in [Rank(0), Rank(1)] {
                let again = held.shared(target).map(drop).unwrap_err();
                assert_eq!(again, WindowError::Held { target });
                let again = held.exclusive(target).map(drop).unwrap_err();
                assert_eq!(again, WindowError::Held { target });
            }
            held.release()?;
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn a_rank_that_computes_does_not_block_other_ranks() {
    run_ranks(3, |rt| {
        let window = WindowOptions::new().design(Design::Tree).create::<u64>(rt, 1)?;
        rt.barrier()?;
        // Rank 0 runs the leaf of the tree lock.
        if rt.rank() == Rank(0) {
            let start = Instant::now();
            while rt.get(window.at(Rank(0), 0))? < 2 {
                assert!(start.elapsed() < Duration::from_secs(60), "the others wait");
                std::hint::spin_loop();
            }
        } else {
            for _ in 0..5 {
                window.lock_all()?.release()?;
                window.exclusive(rt.rank())?.release()?;
            }
            rt.fetch_add(window.at(Rank(0), 0), 1)?;
        }
        rt.barrier()
    });
}

#[test]
fn values_put_in_an_epoch_are_visible_after_it() {
    run_ranks(3, |rt| locks::epochs(rt, 50));
}

#[test]
fn a_wait_for_a_dead_holder_fails_with_its_rank() {
    for design in DESIGNS {
        let ended = Config::default().run_ranks(3, |rt| {
            let window = WindowOptions::new().design(design).create::<u64>(rt, 1)?;
            if rt.rank() == Rank(1) {
                std::mem::forget(window.exclusive(Rank(0))?);
                rt.barrier()?;
                return Err(Error::program("gone with the window"));
            }
            rt.barrier()?;
            // The lost rank is the holder, or a rank that has ended because of it.
            let lost = window.lock_all().map(drop).unwrap_err();
            let is_lost = matches!(lost, WindowError::Addr(AddrError::PeerLost { .. }));
            assert!(is_lost, "{design:?}: {lost}");
            Ok(())
        });
        assert!(ended.unwrap_err().to_string().contains("gone with the window"));
    }
}

#[test]
fn windows_come_and_go() {
    run_ranks(2, |rt| {
        for round in 0..30 {
            let window = WindowOptions::new().design(Design::Tree).create::<u64>(rt, 1)?;
            window.exclusive(Rank(round % 2))?.release()?;
            drop(window);
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn a_private_copy_changes_when_it_is_synchronised() {
    run_ranks(3, |rt| {
        let window = rt.window::<u64>(3)?;
        let (own, next) = (u64::from(rt.rank().0), Rank((rt.rank().0 + 1) % 3));
        let before = (own + 2) % 3;
        let mut private = window.private()?;
        // No rank puts before all ranks have made their private copies.
        rt.barrier()?;
        for round in 1..=20 {
            private[0] = round * 10 + own;
            window.put(next, 1, &[round * 10 + own])?;
            window.fence()?;
            let told = round * 10 + before;
            let earlier = if round > 1 { told - 10 } else { 0 };
            assert_eq!(private[1], earlier, "the copy has not changed before the sync");
            assert_eq!(window.get(rt.rank(), 1)?, told);
            private.fence()?;
            assert_eq!(private[1], told);
            assert_eq!(window.get(next, 0)?, round * 10 + u64::from(next.0));
            rt.barrier()?;
        }
        // Both the copy and the window have changed, which is a conflict.
        private[2] = 7;
        window.put(next, 2, &[8])?;
        window.fence()?;
        assert_eq!(private.sync(), Err(WindowError::Conflict { index: 2 }));
        assert_eq!((private[2], window.get(rt.rank(), 2)?), (7, 8));
        // Under an exclusive hold of the own target, the changes of other ranks are whole.
        private[2] = 0;
        rt.barrier()?;
        private.sync()?;
        for _ in 0..20 {
            let held = window.exclusive(next)?;
            let value = window.get(next, 2)?;
            window.put(next, 2, &[value + 1])?;
            held.release()?;
            let held = window.exclusive(rt.rank())?;
            private.sync()?;
            private[2] += 1;
            private.sync()?;
            held.release()?;
        }
        rt.barrier()?;
        private.sync()?;
        assert_eq!(private[2], 8 + 40);
        Ok(())
    });
}
