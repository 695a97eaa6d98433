//! Looking inside a running scheduler.
//!
//! | what | how |
//! |---|---|
//! | all ULTs: state, what they wait for, since when | [`Spawner::dump`] |
//! | the same with backtraces of those that sleep | [`Spawner::inspect`] |
//! | all of it as text, with the counters | [`Spawner::report`], [`Spawner::report_on`] a signal |
//! | a ULT that does not let go of its worker | [`Spawner::watch`] |
//! | what ran when, for Perfetto | [`Spawner::trace`] |
//!
//! Nothing of this runs, and nothing is written down, until it is asked for.

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
use crate::slab::Slot;
use core::fmt::Write;
use core::time::Duration;
use tsumugi_core::stats::Counts;

impl Spawner {
    /// What each worker has done so far, see [`counts`](Self::counts).
    pub fn counts_by_worker(&self) -> Vec<Counts> {
        self.shared.counts().collect()
    }

    /// Shows every ULT that is alive, those that sleep with a backtrace. For
    /// that all workers stand still for a moment; if one does not come within
    /// `patience`, because its ULT computes, no backtraces are shown. Whether
    /// they were. x86-64 only; elsewhere there are none.
    ///
    /// The workers stand while `show` runs: it must not wait for a ULT.
    pub fn inspect(
        &self,
        patience: Duration,
        show: &mut dyn FnMut(UltInfo, Option<String>),
    ) -> bool {
        let standstill = if backtrace::POSSIBLE { self.shared.halt(patience) } else { None };
        let visit = self.shared.visit();
        self.shared.slab.each(|task| {
            let Some(info) = self.info(task, visit.as_ref()) else { return };
            let is_still = standstill.is_some() && backtrace::is_still(info.state);
            // SAFETY: nobody resumes it, because all workers stand.
            let backtrace = if is_still { unsafe { backtrace::of(task) } } else { None };
            show(info, backtrace);
        });
        standstill.is_some()
    }

    /// Counters and ULTs as text, with backtraces where that is possible.
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
            text.push_str("no backtraces: a worker did not stand still\n");
        }
        text
    }

    fn id_of(&self, slot: Slot) -> (UltId, Option<String>) {
        // SAFETY: descriptors stay as long as the scheduler that we count.
        let task = unsafe { slot.as_ref() };
        (UltId::of(slot), self.shared.slab.name(task))
    }
}
