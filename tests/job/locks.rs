//! Locks and windows that the ULTs of all ranks take at once, on one node or several. The
//! test checks the data that they protect, and not the words of the locks.

use std::time::Duration;
use tsumugi::lock::{LockKind, LockMode, LockOptions};
use tsumugi::window::{Design, WindowOptions};
use tsumugi::{AddrError, Agent, Error, Rank, Runtime, Shared, SharedLock, Window};

/// Runs the whole test, with so many rounds of each ULT. Collective.
pub fn play(rt: &Runtime, rounds: u32) -> Result<(), Error> {
    locks(rt, rounds)?;
    windows(rt, rounds)?;
    epochs(rt, rounds)
}

/// Locks of each kind.
pub fn locks(rt: &Runtime, rounds: u32) -> Result<(), Error> {
    locks_for(Agent::Cpu, rt, rounds)
}

/// The same with words whose agent is the device, where that is possible.
pub fn by_device(rt: &Runtime, rounds: u32) -> Result<(), Error> {
    locks_for(Agent::Device, rt, rounds)?;
    windows_for(Agent::Device, rt, rounds)
}

fn locks_for(agent: Agent, rt: &Runtime, rounds: u32) -> Result<(), Error> {
    for kind in [LockKind::Mutex, LockKind::Readers, LockKind::Neutral, LockKind::Writers] {
        let lock = LockOptions::new().agent(agent).kind(kind).create(rt, Rank(rt.size() - 1))?;
        let pair = Pair { rt, words: &rt.share::<u64>(2)? };
        let lock = &lock;
        let wrote = on_ults(rt, move |seed| ask(lock, pair, seed..seed + rounds))?;
        assert_eq!(wrote, rt.get(pair.words.at(Rank(0), 0))?, "{kind:?}");
        if rt.rank() == Rank(0) {
            println!("{wrote} writes under {kind:?} by {:?}", lock.agent());
        }
        rt.barrier()?;
    }
    Ok(())
}

/// Windows of each design.
pub fn windows(rt: &Runtime, rounds: u32) -> Result<(), Error> {
    windows_for(Agent::Cpu, rt, rounds)
}

fn windows_for(agent: Agent, rt: &Runtime, rounds: u32) -> Result<(), Error> {
    for design in DESIGNS {
        let window = &WindowOptions::new().agent(agent).design(design).create::<u64>(rt, 2)?;
        let wrote = on_ults(rt, move |seed| hold(rt, window, seed..seed + rounds))?;
        let all = window.lock_all()?;
        let there: Result<u64, AddrError> = rt.ranks().map(|rank| window.get(rank, 0)).sum();
        assert_eq!(there?, wrote, "{design:?}");
        if rt.rank() == Rank(0) {
            println!("{wrote} writes under {design:?} by {:?}", window.agent());
        }
        all.release()?;
        rt.barrier()?;
    }
    Ok(())
}

/// Fences, and epochs between neighbours: a value that was put before a fence or before
/// the end of an epoch is visible after it, and later values are not.
pub fn epochs(rt: &Runtime, rounds: u32) -> Result<(), Error> {
    let window = rt.window::<u64>(2)?;
    let (own, size) = (rt.rank().0, rt.size());
    let [before, next] = [size - 1, 1].map(|by| Rank((own + by) % size));
    let value = |rank: Rank, round: u32| u64::from(round) << 32 | u64::from(rank.0);
    for round in 1..=rounds {
        let exposure = window.post(&[before])?;
        let epoch = window.start(&[next])?;
        window.put(next, 0, &[value(rt.rank(), round)])?;
        epoch.complete()?;
        exposure.wait()?;
        assert_eq!(window.get(rt.rank(), 0)?, value(before, round), "after an epoch");
        window.put(next, 1, &[value(rt.rank(), round)])?;
        window.fence()?;
        assert_eq!(window.get(rt.rank(), 1)?, value(before, round), "after a fence");
        window.fence()?;
    }
    if rt.rank() == Rank(0) {
        println!("{rounds} epochs and {} fences of {size} ranks", 2 * rounds);
    }
    rt.barrier()
}

/// The last rank dies while it holds a lock and a target of a window.
pub fn die(rt: &Runtime) -> Result<(), Error> {
    let lock = rt.share_lock(Rank(0), LockKind::Neutral)?;
    let window = rt.window::<u64>(1)?;
    let dead = Rank(rt.size() - 1);
    if rt.rank() == dead {
        std::mem::forget((lock.write()?, window.exclusive(Rank(0))?));
    }
    rt.barrier()?;
    if rt.rank() == dead {
        tsumugi::ult::sleep(Duration::from_millis(50));
        std::process::abort();
    }
    let lost = AddrError::PeerLost { rank: dead };
    assert_eq!(lock.read().map(drop).unwrap_err(), lost);
    assert_eq!(Error::from(window.lock_all().map(drop).unwrap_err()).to_string(), lost.to_string());
    Err(Error::program(format!("{dead} has died and held the locks")))
}

/// Runs `work` on [`ULTS`] ULTs of each rank; returns the sum of all results. Collective.
fn on_ults(
    rt: &Runtime,
    work: impl Fn(u32) -> Result<u64, Error> + Copy + Send,
) -> Result<u64, Error> {
    let own: Result<u64, Error> = rt.ults().scope(|scope| {
        let first = rt.rank().0 * 7;
        let ults: Vec<_> =
            (first..first + ULTS).map(|seed| scope.spawn(move || work(seed))).collect();
        ults.into_iter().map(|ult| ult.join().expect("no panic")).sum()
    });
    rt.sum(own?)
}

/// Takes a lock in every way; returns the number of writes.
fn ask(lock: &SharedLock, pair: Pair<'_>, rounds: std::ops::Range<u32>) -> Result<u64, Error> {
    let mut wrote = 0;
    for round in rounds {
        let mode = if round.is_multiple_of(2) { LockMode::Exclusive } else { LockMode::Shared };
        let held = match round % 3 {
            0 => Some(lock.lock(mode)?),
            1 => lock.try_lock(mode)?,
            _ => lock.lock_timeout(mode, Duration::from_micros(u64::from(round % 50)))?,
        };
        let Some(held) = held else { continue };
        if mode == LockMode::Exclusive {
            pair.write()?;
            wrote += 1;
        } else {
            pair.read()?;
        }
        held.release()?;
    }
    Ok(wrote)
}

/// Locks targets of a window in every way; returns the number of writes.
fn hold(rt: &Runtime, window: &Window<u64>, rounds: std::ops::Range<u32>) -> Result<u64, Error> {
    let mut wrote = 0;
    for round in rounds {
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
                // Locks a second target, in the order of the ranks.
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

/// Two words that are equal except during a write. Two writes at once lose an increment.
#[derive(Clone, Copy)]
struct Pair<'a> {
    rt: &'a Runtime,
    words: &'a Shared<u64>,
}

impl Pair<'_> {
    fn write(self) -> Result<(), Error> {
        for index in 0..2 {
            let value = self.rt.get(self.words.at(Rank(0), index))?;
            tsumugi::ult::yield_now();
            self.rt.put(self.words.at(Rank(0), index), value + 1)?;
        }
        Ok(())
    }

    fn read(self) -> Result<(), Error> {
        let first = self.rt.get(self.words.at(Rank(0), 0))?;
        tsumugi::ult::yield_now();
        assert_eq!(self.rt.get(self.words.at(Rank(0), 1))?, first, "a reader beside a writer");
        Ok(())
    }
}

/// A write to the two words of a target.
fn write(window: &Window<u64>, target: Rank) -> Result<(), Error> {
    for index in 0..2 {
        let value = window.get(target, index)?;
        tsumugi::ult::yield_now();
        window.put(target, index, &[value + 1])?;
        window.flush(target)?;
    }
    Ok(())
}

fn read(window: &Window<u64>, target: Rank) -> Result<(), Error> {
    let first = window.get(target, 0)?;
    tsumugi::ult::yield_now();
    assert_eq!(window.get(target, 1)?, first, "{target} was written beside a reader");
    Ok(())
}

pub const DESIGNS: [Design; 4] = [Design::Each, Design::Tree, Design::Global, Design::TwoLevel];
const ULTS: u32 = 10;
