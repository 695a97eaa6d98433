//! Looking inside a running scheduler.
//!
//! | information | call |
//! |---|---|
//! | all ULTs: state, what they wait for, since when | [`Spawner::dump`] |
//! | the same, with a backtrace of each sleeping ULT | [`Spawner::inspect`] |
//! | all of it as text, with the counters | [`Spawner::report`], [`Spawner::report_on`] a signal |
//! | a ULT that does not let go of its worker | [`Spawner::watch`] |
//! | the runs of all ULTs over time, for Perfetto | [`Spawner::trace`] |
//!
//! Nothing of this runs, and nothing is recorded, until the program requests it.

mod standstill;
mod notes;
mod backtrace;
mod signal;
mod trace;
mod watch;

pub use signal::ReportOn;
pub use trace::{Recording, Trace};
pub use watch::{Stuck, Watchdog};

use crate::sched::{Spawner, UltId, UltInfo};
use crate::slab::TaskSlot;
use core::fmt::Write;
use core::time::Duration;
use tsumugi_core::stats::CounterValues;

impl Spawner {
    /// The counters of each worker, see [`counts`](Self::counts).
    pub fn counts_by_worker(&self) -> Vec<CounterValues> {
        self.shared.counts().collect()
    }

    /// Shows every living ULT, each sleeping one with a backtrace. For the backtraces
    /// all workers stand still for a moment; if a worker does not stand within
    /// `patience`, because its ULT computes, there are no backtraces. Returns whether
    /// there were. Backtraces are for x86-64 only.
    ///
    /// The workers stand still while `show` runs, so `show` must not wait for a ULT.
    pub fn inspect(
        &self,
        patience: Duration,
        show: &mut dyn FnMut(UltInfo, Option<String>),
    ) -> bool {
        let standstill = if backtrace::POSSIBLE { self.shared.halt(patience) } else { None };
        let visit = self.shared.visit();
        self.shared.slab.each(&mut |task| {
            let Some(info) = self.info(task, visit.as_ref()) else { return };
            let is_still = standstill.is_some() && backtrace::is_still(info.state);
            // SAFETY: all workers stand still, so none resumes the ULT.
            let backtrace = if is_still { unsafe { backtrace::of(task) } } else { None };
            show(info, backtrace);
        });
        standstill.is_some()
    }

    /// The counters and ULTs as text, with backtraces where they are possible.
    pub fn report(&self, patience: Duration) -> String {
        // Writing to a string does not fail.
        let mut text = String::new();
        for (worker, counts) in self.counts_by_worker().into_iter().enumerate() {
            let _ = write!(text, "worker {worker}:");
            for (counter, count) in counts.iter() {
                let _ = write!(text, " {counter} {count}");
            }
            text.push('\n');
        }
        let now = self.now();
        let whole = self.inspect(patience, &mut |ult, backtrace| {
            let _ = write!(text, "ULT {}", ult.id);
            if let Some(name) = &ult.name {
                let _ = write!(text, " \"{name}\"");
            }
            let _ = write!(text, " {:?}", ult.state);
            if let Some(reason) = ult.reason {
                let _ = write!(text, ": {}", reason.what);
            }
            if let Some(since) = ult.since {
                let _ = write!(text, ", for {:.3} s", now.since(since).as_secs_f64());
            }
            text.push('\n');
            text.push_str(&backtrace.unwrap_or_default());
        });
        if backtrace::POSSIBLE && !whole {
            let _ = writeln!(text, "no backtraces: a worker did not stop within {patience:?}");
        }
        text
    }

    fn id_of(&self, slot: TaskSlot) -> (UltId, Option<String>) {
        // SAFETY: descriptors stay as long as the scheduler, of which this holds a
        // count.
        let task = unsafe { slot.as_ref() };
        (UltId::of(slot), self.shared.slab.name(task))
    }
}
