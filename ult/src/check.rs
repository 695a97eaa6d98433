//! The check of suspensions: whether it is on, its record of each ULT, and its
//! reports of suspensions that break a rule.
//!
//! | what a ULT does | how the check sees it |
//! |---|---|
//! | it suspends under a `NoSuspend` | the ULT's record lists the guards that live |
//! | it suspends while it unwinds | its OS thread panics, and did not when the ULT resumed there |
//!
//! Both are facts about the ULT that the report names: no ULT is reported for what
//! another ULT did. Other breaches leave no fact to check. The standard library
//! reports neither the guards of its locks nor references into a `thread_local!`, and
//! words on a stack that look like one may be left from a call that has returned. A
//! scan of stacks was tried, and reported such words.
//!
//! Once a ULT has gone to sleep while it unwinds, the panic counts of the thread that
//! it leaves and of the thread where it resumes are wrong for good, and ULTs that do
//! not unwind seem to. So only the first such suspension of a process is reported.
//!
//! A ULT's record is made when there is first something to record, and dropped with
//! the ULT's local values, see `local`.
//!
//! Progress: blocking, on short locks.

use crate::host;
use crate::local::Locals;
use crate::lock::Lock;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::panic::Location;
#[cfg(not(tsumugi_loom))]
use tsumugi_core::sync::{AtomicBool, Ordering};

/// The reaction to a suspension that breaks a rule of
/// [`spawn`](crate::spawn#suspension): a suspension under a
/// [`NoSuspend`](crate::NoSuspend), or of a ULT that unwinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuspensionCheck {
    /// Nothing is checked: the default in builds without debug assertions.
    Off,
    /// Writes a line to standard error: for a `NoSuspend` once for each name, reason
    /// and place, for unwinding once in a process, because the standard library's
    /// counts of panics are wrong after the first time. The line has a backtrace if
    /// `RUST_BACKTRACE` requests them.
    Report,
    /// Does the same, and a `NoSuspend` that a suspension was under panics when it is
    /// dropped. The panic does not come at the suspension itself, because the code
    /// that waits there may have lent memory that unwinding would free. A suspension
    /// while unwinding is reported only, because a panic would end the process. The
    /// default in builds with debug assertions.
    Panic,
    /// Writes the same line and aborts the process at the suspension, for both rules.
    Abort,
}

impl Default for SuspensionCheck {
    /// [`Panic`](Self::Panic) in builds with debug assertions (of this crate), and
    /// std; [`Off`](Self::Off) in others.
    fn default() -> Self {
        let is_on = cfg!(all(debug_assertions, feature = "std", not(tsumugi_loom)));
        if is_on { Self::Panic } else { Self::Off }
    }
}

/// The check's record of one ULT.
pub(crate) struct SuspensionRecord(Lock<KnownGuards>);

struct KnownGuards {
    guards: Vec<GuardRecord>,
    made: u64,
}

/// A `NoSuspend` that lives, or was forgotten (`mem::forget`).
struct GuardRecord {
    number: u64,
    made_at: &'static Location<'static>,
    /// What the first suspension under the guard was for.
    broken_by: Option<&'static str>,
}

impl SuspensionRecord {
    /// The record of a ULT, made now if there is none.
    ///
    /// # Safety
    ///
    /// `home` belongs to the calling ULT, as for [`Locals::find`].
    pub(crate) unsafe fn of(home: *mut *mut Locals) -> Arc<Self> {
        let known = || KnownGuards { guards: Vec::new(), made: 0 };
        // SAFETY: `home` belongs to the caller; the value stays while its ULT runs.
        unsafe { &*Locals::find(home, place(), || Arc::new(Self(Lock::new(known())))) }.clone()
    }

    /// The record of a ULT, if there is one.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    pub(crate) unsafe fn seen(home: *mut *mut Locals) -> Option<Arc<Self>> {
        // SAFETY: `home` belongs to the caller.
        unsafe { Locals::seen::<Arc<Self>>(home, place()) }.cloned()
    }

    /// Adds a guard that begins to live; returns its number.
    pub(crate) fn begins(&self, made_at: &'static Location<'static>) -> u64 {
        self.0.with(|known| {
            known.made += 1;
            known.guards.push(GuardRecord { number: known.made, made_at, broken_by: None });
            known.made
        })
    }

    /// Removes a guard that is dropped. Returns where it was made, and what a
    /// suspension under it was for, if there was one.
    pub(crate) fn ends(&self, number: u64) -> Option<(&'static Location<'static>, &'static str)> {
        self.0.with(|known| {
            let at = known.guards.iter().position(|guard| guard.number == number)?;
            let guard = known.guards.remove(at);
            Some((guard.made_at, guard.broken_by?))
        })
    }

    /// Notes that the ULT suspends. Returns where the youngest living guard was made.
    pub(crate) fn suspends(&self, what: &'static str) -> Option<&'static Location<'static>> {
        self.0.with(|known| {
            known.guards.iter_mut().for_each(|guard| {
                guard.broken_by.get_or_insert(what);
            });
            known.guards.last().map(|guard| guard.made_at)
        })
    }
}

/// Notes that a ULT suspends while it unwinds; true for the first time in the
/// process.
#[cfg(not(tsumugi_loom))]
pub(crate) fn is_first_to_unwind() -> bool {
    static IS_LATE: AtomicBool = AtomicBool::new(false);
    // Relaxed: the flag publishes nothing; of two threads at once either may be the
    // first.
    !IS_LATE.swap(true, Ordering::Relaxed)
}

#[cfg(tsumugi_loom)]
pub(crate) fn is_first_to_unwind() -> bool {
    false
}

/// Reports what the ULT `who` did, unless the same was reported of this `name`
/// before.
pub(crate) fn tell(check: SuspensionCheck, who: &str, name: &str, did: &str) {
    let aborts = check == SuspensionCheck::Abort;
    if aborts || is_news(name, did) {
        let mut line = alloc::format!("tsumugi: ULT {who} {did}\n");
        add_backtrace(&mut line);
        host::say(line.as_bytes());
    }
    if aborts {
        host::abort();
    }
}

#[cfg(all(feature = "std", not(tsumugi_loom)))]
fn add_backtrace(line: &mut String) {
    use core::fmt::Write;
    use std::backtrace::{Backtrace, BacktraceStatus};
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        // Writing to a `String` does not fail.
        let _ = writeln!(line, "{backtrace}");
    }
}

#[cfg(not(all(feature = "std", not(tsumugi_loom))))]
fn add_backtrace(_: &mut String) {}

/// Whether this report is new, and the process has not made too many.
#[cfg(not(tsumugi_loom))]
fn is_news(name: &str, did: &str) -> bool {
    static TOLD: Lock<[u64; TOLD_MAX]> = Lock::new([0; TOLD_MAX]);
    // An FNV-1a hash; 0 marks a free entry.
    let bytes = name.bytes().chain([0]).chain(did.bytes());
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let news = bytes.fold(0xcbf2_9ce4_8422_2325, mix).max(1);
    TOLD.with(|told| {
        let found = told.iter_mut().find(|told| [0, news].contains(told));
        found.is_some_and(|place| core::mem::replace(place, news) == 0)
    })
}

#[cfg(tsumugi_loom)]
fn is_news(_: &str, _: &str) -> bool {
    false
}

/// The key under which a ULT's record lies among its local values.
fn place() -> *const () {
    static PLACE: u8 = 0;
    (&raw const PLACE).cast()
}

/// The most reports of one process, because a program may make up names without end.
#[cfg(not(tsumugi_loom))]
const TOLD_MAX: usize = 100;

#[cfg(all(test, feature = "std", not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn guards_end_in_any_order() {
        let mut home: *mut Locals = core::ptr::null_mut();
        // SAFETY: `home` belongs to the test.
        let (record, again) =
            unsafe { (SuspensionRecord::of(&mut home), SuspensionRecord::seen(&mut home)) };
        assert!(Arc::ptr_eq(&record, &again.unwrap()));
        let here = Location::caller();
        let [first, second, third] =
            [record.begins(here), record.begins(here), record.begins(here)];
        assert!(record.ends(second).is_none());
        assert_eq!(record.suspends("lock"), Some(here));
        assert_eq!(record.suspends("sleep"), Some(here));
        let fourth = record.begins(here);
        assert_eq!(record.ends(first), Some((here, "lock")));
        assert_eq!(record.ends(third), Some((here, "lock")));
        assert_eq!(record.ends(third), None, "the guard has ended");
        assert_eq!(record.ends(fourth), None, "no suspension was under the guard");
        assert_eq!(record.suspends("lock"), None);
        // SAFETY: as above.
        unsafe { Locals::drop_all(&mut home) };
    }

    #[test]
    fn each_report_is_made_once() {
        assert!(is_news("a name", "suspends (one)"));
        assert!(!is_news("a name", "suspends (one)"));
        assert!(is_news("a name", "suspends (two)"));
        assert!(is_news("another", "suspends (one)"));
    }
}
