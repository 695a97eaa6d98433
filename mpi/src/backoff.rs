//! How a thread that has looked in vain lets others run.
//!
//! The calls that test end at once, and programs call them in loops. With many more threads in
//! such loops than cores, the threads that carry messages get a core only after all the others
//! had their turn. So each thread sleeps now and then, for so long that all of them together
//! leave the cores to others for most of the time.

use std::cell::Cell;
use std::thread;
use std::time::Duration;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// A thread of the program, no ULT, that has looked in vain.
struct Looker {
    /// How often, since its last sleep.
    looks: Cell<u32>,
}

impl Looker {
    fn new() -> Self {
        LOOKERS.fetch_add(1, Ordering::Relaxed);
        Self { looks: Cell::new(0) }
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        LOOKERS.fetch_sub(1, Ordering::Relaxed);
    }
}

thread_local! {
    static LOOKER: Looker = Looker::new();
}

/// Has the calling thread, which is no ULT, sleep now and then if many more threads than
/// `cores` look in vain.
pub(crate) fn back_off(cores: u32) {
    let sleeps = LOOKER.try_with(|looker| {
        let looks = looker.looks.get() + 1;
        let lookers = LOOKERS.load(Ordering::Relaxed);
        let sleeps = looks >= LOOKS && lookers > cores.saturating_mul(THREADS_PER_CORE);
        looker.looks.set(if sleeps { 0 } else { looks.min(LOOKS) });
        sleeps.then_some(lookers)
    });
    // A thread that ends has no looks any more.
    if let Ok(Some(lookers)) = sleeps {
        thread::sleep((SLEEP * lookers).min(SLEEP_MAX));
    }
}

static LOOKERS: AtomicU32 = AtomicU32::new(0);
/// Looks before a sleep.
const LOOKS: u32 = 32;
/// Threads for each core that need no sleep.
const THREADS_PER_CORE: u32 = 4;
/// For each thread that looks; about the time of [`LOOKS`] looks.
const SLEEP: Duration = Duration::from_micros(50);
const SLEEP_MAX: Duration = Duration::from_millis(5);
