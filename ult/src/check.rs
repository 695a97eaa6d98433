//! Whether suspensions are checked, and what is kept and said of those that
//! break a rule.
//!
//! | what a ULT does | how that is seen |
//! |---|---|
//! | it suspends under a `NoSuspend` | the ULT's record has the guards that live |
//! | it suspends while it unwinds | its OS thread panics, and did not when the ULT went on there |
//!
//! Both are facts of the ULT that is named: none is reported for what another one
//! did. What is not here has no fact to go by. The standard library tells of no
//! guard of its locks and of no reference into a `thread_local!`; and words on a
//! stack that look like one may be left from a call that has returned. A scan of
//! stacks was tried, and reported such words.
//!
//! Once a ULT has gone to sleep while it unwinds, the counts of the thread that it
//! leaves and of the one where it goes on are wrong for good, and other threads'
//! panics show through. So the first of a process is reported, and no other.
//!
//! A ULT's record is made when it first has something to record, and dropped
//! with the values that the ULT has for itself, see `local`.
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

/// What is done about a suspension that breaks a rule of
/// [`spawn`](crate::spawn#suspension): one under a
/// [`NoSuspend`](crate::NoSuspend), or of a ULT that unwinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspensionCheck {
    /// Nothing is looked at: the default in builds without debug assertions.
    Off,
    /// A line on standard error: for a `NoSuspend` once for each name, reason and
    /// place, for unwinding once in a process, because the standard library's
    /// counts of panics are wrong after the first. With a backtrace if
    /// `RUST_BACKTRACE` asks for them.
    Report,
    /// The same, and a `NoSuspend` that a suspension was under panics when it is
    /// dropped. Not at the suspension itself: what waits there may have lent
    /// memory that unwinding would give up. A suspension while unwinding is
    /// reported only, because a panic would end the process. The default in
    /// builds with debug assertions.
    Panic,
    /// The same line, and the process is aborted there, for either of the two.
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

/// What is known of one ULT.
pub(crate) struct Record(Lock<Known>);

struct Known {
    guards: Vec<Guard>,
    made: u64,
}

/// A `NoSuspend` that lives, or was forgotten.
struct Guard {
    number: u64,
    made_at: &'static Location<'static>,
    /// What the first suspension under it was for.
    broken_by: Option<&'static str>,
}

impl Record {
    /// That of a ULT, made now if there was none.
    ///
    /// # Safety
    ///
    /// `home` is the caller's own, as for [`Locals::find`].
    pub(crate) unsafe fn of(home: *mut *mut Locals) -> Arc<Self> {
        let known = || Known { guards: Vec::new(), made: 0 };
        // SAFETY: the caller's; the value stays while its ULT runs.
        unsafe { &*Locals::find(home, place(), || Arc::new(Self(Lock::new(known())))) }.clone()
    }

    /// That of a ULT, if there is one.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    pub(crate) unsafe fn seen(home: *mut *mut Locals) -> Option<Arc<Self>> {
        // SAFETY: the caller's.
        unsafe { Locals::seen::<Arc<Self>>(home, place()) }.cloned()
    }

    /// A guard begins to live; its number.
    pub(crate) fn begins(&self, made_at: &'static Location<'static>) -> u64 {
        self.0.with(|known| {
            known.made += 1;
            known.guards.push(Guard { number: known.made, made_at, broken_by: None });
            known.made
        })
    }

    /// A guard is dropped; where it was made, and what a suspension under it was
    /// for, if there was one.
    pub(crate) fn ends(&self, number: u64) -> Option<(&'static Location<'static>, &'static str)> {
        self.0.with(|known| {
            let at = known.guards.iter().position(|guard| guard.number == number)?;
            let guard = known.guards.remove(at);
            Some((guard.made_at, guard.broken_by?))
        })
    }

    /// The ULT suspends; where the youngest guard was made that lives.
    pub(crate) fn suspends(&self, what: &'static str) -> Option<&'static Location<'static>> {
        self.0.with(|known| {
            known.guards.iter_mut().for_each(|guard| {
                guard.broken_by.get_or_insert(what);
            });
            known.guards.last().map(|guard| guard.made_at)
        })
    }
}

/// A ULT suspends while it unwinds; whether it is the first of the process.
#[cfg(not(tsumugi_loom))]
pub(crate) fn is_first_to_unwind() -> bool {
    static IS_LATE: AtomicBool = AtomicBool::new(false);
    // Relaxed: it publishes nothing; of two at once either is the first.
    !IS_LATE.swap(true, Ordering::Relaxed)
}

#[cfg(tsumugi_loom)]
pub(crate) fn is_first_to_unwind() -> bool {
    false
}

/// Says what `who` did, unless that was said of the same `name` before.
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
        // A `String` takes everything.
        let _ = writeln!(line, "{backtrace}");
    }
}

#[cfg(not(all(feature = "std", not(tsumugi_loom))))]
fn add_backtrace(_: &mut String) {}

/// Whether it is said for the first time, and not much was said before.
#[cfg(not(tsumugi_loom))]
fn is_news(name: &str, did: &str) -> bool {
    static TOLD: Lock<[u64; TOLD_MAX]> = Lock::new([0; TOLD_MAX]);
    // FNV-1a, and 0 for a free place.
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

/// The key of records.
fn place() -> *const () {
    static PLACE: u8 = 0;
    (&raw const PLACE).cast()
}

/// Lines of one process: names can be made up without end.
#[cfg(not(tsumugi_loom))]
const TOLD_MAX: usize = 100;

#[cfg(all(test, feature = "std", not(tsumugi_loom)))]
mod tests {
    use super::*;

    #[test]
    fn guards_end_in_any_order() {
        let mut home: *mut Locals = core::ptr::null_mut();
        // SAFETY: the test's own home.
        let (record, again) = unsafe { (Record::of(&mut home), Record::seen(&mut home)) };
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
        assert_eq!(record.ends(third), None, "it has ended");
        assert_eq!(record.ends(fourth), None, "nothing was under it");
        assert_eq!(record.suspends("lock"), None);
        // SAFETY: the same.
        unsafe { Locals::drop_all(&mut home) };
    }

    #[test]
    fn each_is_said_once() {
        assert!(is_news("a name", "suspends (one)"));
        assert!(!is_news("a name", "suspends (one)"));
        assert!(is_news("a name", "suspends (two)"));
        assert!(is_news("another", "suspends (one)"));
    }
}
