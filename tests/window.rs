//! Windows as a program sees them, on ranks that are threads.

use std::time::{Duration, Instant};
use tsumugi::window::{Design, Refused, WindowError};
use tsumugi::{AddrError, Config, Error, Path, Rank, Runtime, Window};

const DESIGNS: [Design; 4] = [Design::Each, Design::Tree, Design::Global, Design::TwoLevel];

fn run_ranks(size: u32, main: impl Fn(&Runtime) -> Result<(), Error> + Sync) {
    Config::default().run_ranks(size, &main).unwrap();
    Config::default().path(Path::Delegate).run_ranks(size, &main).unwrap();
}

/// Adds 1 to both of a pair, as one that is alone may.
fn write(window: &Window<u64>, target: Rank) -> Result<(), Error> {
    for index in 0..2 {
        let value = window.get(target, index)?;
        tsumugi::ult::yield_now();
        window.put(target, index, &[value + 1])?;
    }
    Ok(())
}

fn read(window: &Window<u64>, target: Rank) -> Result<(), Error> {
    let first = window.get(target, 0)?;
    tsumugi::ult::yield_now();
    assert_eq!(window.get(target, 1)?, first, "{target} was written beside a reader");
    Ok(())
}

#[test]
fn what_is_held_is_whole() {
    run_ranks(3, |rt| {
        for design in DESIGNS {
            let window = rt.window_by::<u64>(design, 2)?;
            let wrote: u64 = rt.ults().scope(|scope| {
                let window = &window;
                let ult = |ult| scope.spawn(move || churn(rt, window, ult + rt.rank().0));
                let ults: Vec<_> = (0..ULTS).map(ult).collect();
                ults.into_iter().map(|ult| ult.join().expect("no panic").unwrap()).sum()
            });
            let wrote = rt.sum(wrote)?;
            let all = window.lock_all()?;
            let there: Result<u64, AddrError> = rt.ranks().map(|rank| window.get(rank, 0)).sum();
            assert_eq!(there?, wrote, "{design:?}");
            all.release()?;
            rt.barrier()?;
        }
        Ok(())
    });
}

/// Holds this and that; how often it wrote.
fn churn(rt: &Runtime, window: &Window<u64>, seed: u32) -> Result<u64, Error> {
    let mut wrote = 0;
    for round in seed..seed + ROUNDS {
        let target = Rank(round / 3 % rt.size());
        match round % 5 {
            0 => {
                let held = window.lock_all()?;
                rt.ranks().try_for_each(|rank| read(window, rank))?;
                held.release()?;
            }
            1 | 2 => {
                let held = window.shared(target)?;
                read(window, target)?;
                held.release()?;
            }
            _ => {
                let held = window.exclusive(target)?;
                write(window, target)?;
                wrote += 1;
                // In the order of the ranks, one more.
                if target.0 + 1 < rt.size() && window.design() != Design::Global {
                    let next = Rank(target.0 + 1);
                    let more = held.exclusive(next)?;
                    write(window, next)?;
                    wrote += 1;
                    more.release()?;
                }
                held.release()?;
            }
        }
    }
    Ok(wrote)
}

#[test]
fn all_hold_all_together() {
    run_ranks(4, |rt| {
        for design in DESIGNS {
            let window = rt.window_by::<u64>(design, 1)?;
            for _ in 0..20 {
                let held = window.lock_all()?;
                // Nobody passes before everybody is inside.
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
fn exclusive_holds_of_two_targets_do_not_meet() {
    run_ranks(2, |rt| {
        for design in [Design::Each, Design::Tree, Design::TwoLevel] {
            let window = rt.window_by::<u64>(design, 1)?;
            let held = window.exclusive(rt.rank())?;
            rt.barrier()?;
            held.release()?;
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn what_would_wait_for_itself_is_refused() {
    run_ranks(2, |rt| {
        for design in DESIGNS {
            let window = rt.window_by::<u64>(design, 1)?;
            if rt.rank() == Rank(0) {
                let held = window.exclusive(Rank(1))?;
                let again = held.exclusive(Rank(1)).map(drop).unwrap_err();
                assert_eq!(again, WindowError::Held { target: Rank(1) });
                if design == Design::Global {
                    let other = held.exclusive(Rank(0)).map(drop).unwrap_err();
                    assert_eq!(other, WindowError::Refused(Refused::OneLock));
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
fn a_rank_that_computes_keeps_nobody_waiting() {
    run_ranks(3, |rt| {
        let window = rt.window_by::<u64>(Design::Tree, 1)?;
        rt.barrier()?;
        // Rank 0 runs the leaf.
        if rt.rank() == Rank(0) {
            let start = Instant::now();
            while rt.get(window.at(Rank(0), 0))? < 2 {
                assert!(start.elapsed() < Duration::from_secs(20), "the others wait");
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
fn epochs_bring_what_was_put() {
    run_ranks(3, |rt| {
        let window = rt.window::<u64>(3)?;
        let (own, next) = (rt.rank().0, Rank((rt.rank().0 + 1) % 3));
        let before = Rank((own + 2) % 3);
        for round in 1..=50 {
            let exposure = window.post(&[before])?;
            let epoch = window.start(&[next])?;
            window.put(next, 0, &[round * 10 + u64::from(own)])?;
            epoch.complete()?;
            exposure.wait()?;
            assert_eq!(window.get(rt.rank(), 0)?, round * 10 + u64::from(before.0));
            window.put(next, 1, &[round])?;
            window.fence()?;
            assert_eq!(window.get(rt.rank(), 1)?, round);
            window.fence()?;
        }
        Ok(())
    });
}

#[test]
fn who_waits_for_a_dead_holder_is_told_who_it_was() {
    for design in DESIGNS {
        let ended = Config::default().run_ranks(3, |rt| {
            let window = rt.window_by::<u64>(design, 1)?;
            if rt.rank() == Rank(1) {
                std::mem::forget(window.exclusive(Rank(0))?);
                rt.barrier()?;
                return Err(Error::program("gone with the window"));
            }
            rt.barrier()?;
            // That one, or one that has ended of it.
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
            let window = rt.window_by::<u64>(Design::Tree, 1)?;
            window.exclusive(Rank(round % 2))?.release()?;
            drop(window);
            rt.barrier()?;
        }
        Ok(())
    });
}

const ULTS: u32 = 12;
const ROUNDS: u32 = 40;
