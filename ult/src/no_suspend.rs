//! A guard that marks a time in which a ULT must not suspend.
//!
//! ```text
//!   let held = MUTEX.lock();            std's guard belongs to this OS thread
//!   let _here = NoSuspend::new();       marks that
//!   queue.send(1);                      if it waits, a report names both places
//! ```
//!
//! Progress: blocking, on a short lock, where suspensions are checked; wait-free
//! where they are not.

use crate::check::{SuspensionCheck, SuspensionRecord};
use crate::host;
use crate::park::ult;
use crate::sched::shared::SchedulerShared;
use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::panic::{Location, RefUnwindSafe, UnwindSafe};

/// A guard: as long as it lives, the ULT that made it must not suspend.
/// [`Config::suspension_check`](crate::Config) sets what the scheduler does about a
/// suspension. A program puts the guard beside a value that belongs to an OS thread,
/// such as a guard of `std`'s locks:
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
/// # Scheduler::new(config)?.run(|| {
/// use std::sync::Mutex;
/// use tsumugi_ult::NoSuspend;
///
/// static COUNT: Mutex<u32> = Mutex::new(0);
/// let (mut count, _here) = (COUNT.lock().unwrap(), NoSuspend::new());
/// *count += 1;
/// // A `tsumugi_ult::yield_now()` here would be reported with this line.
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A call counts if it suspends, or would have suspended but for an event that came
/// in that very moment; to take a lock that is free does not count. A join of a ULT
/// that has not ended counts, and so do each yield and each park.
///
/// The guard does nothing where suspensions are not checked (builds without debug
/// assertions, unless the check is requested), on a thread that runs no ULT, in a
/// task of a foreign scheduler, and inside of [`callback`](crate::callback) and
/// [`on_os_stack`](crate::on_os_stack). A guard that is forgotten (`mem::forget`)
/// counts until its ULT has ended.
#[must_use = "the guard forbids suspensions only as long as it lives"]
pub struct NoSuspend {
    kept: Option<CheckedGuard>,
    /// Not `Send`: the guard belongs to the ULT that made it.
    stays: PhantomData<*mut ()>,
}

struct CheckedGuard {
    record: Arc<SuspensionRecord>,
    number: u64,
    panics: bool,
}

impl NoSuspend {
    /// A guard; from here on the calling ULT must not suspend.
    #[track_caller]
    pub fn new() -> Self {
        Self { kept: CheckedGuard::by_caller(Location::caller()), stays: PhantomData }
    }
}

impl CheckedGuard {
    fn by_caller(made_at: &'static Location<'static>) -> Option<Self> {
        let slot = ult()?;
        // SAFETY: the running ULT is alive, and so is its scheduler's shared part.
        let (task, home) = unsafe {
            let task = slot.as_ref();
            (task, &*task.home().cast::<SchedulerShared>())
        };
        if home.suspension_check == SuspensionCheck::Off {
            return None;
        }
        // SAFETY: the locals belong to the running ULT.
        let record = unsafe { SuspensionRecord::of(task.locals.with_mut(|locals| locals)) };
        let number = record.begins(made_at);
        Some(Self { record, number, panics: home.suspension_check == SuspensionCheck::Panic })
    }
}

impl Default for NoSuspend {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for NoSuspend {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        if let Some((made_at, what)) = kept.record.ends(kept.number)
            && kept.panics
            && !host::panicking()
        {
            panic!("the ULT has suspended ({what}) under the NoSuspend made at {made_at}");
        }
    }
}

// A drop that panics has taken the guard off the record before.
impl UnwindSafe for NoSuspend {}
impl RefUnwindSafe for NoSuspend {}

impl fmt::Debug for NoSuspend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoSuspend")
    }
}

/// Runs `f` on the OS thread's value of `key`, as
/// [`LocalKey::with`](std::thread::LocalKey::with), under a [`NoSuspend`] with the
/// caller's place. After a suspension in `f`, the value could be another thread's.
/// What goes in and what comes back is `Send`, because the ULT may go to another
/// thread afterwards and the value stays:
///
/// ```compile_fail,E0277
/// use std::rc::Rc;
/// std::thread_local! { static NAME: Rc<str> = Rc::from("a name"); }
///
/// let of_the_thread = tsumugi_ult::with_thread_local(&NAME, Rc::clone);
/// ```
///
/// ```
/// use std::cell::Cell;
/// use tsumugi_ult::with_thread_local;
///
/// std::thread_local! {
///     static CALLS: Cell<u32> = const { Cell::new(0) };
/// }
///
/// with_thread_local(&CALLS, |calls| calls.set(calls.get() + 1));
/// assert_eq!(with_thread_local(&CALLS, Cell::get), 1);
/// ```
#[cfg(all(feature = "std", not(tsumugi_loom)))]
#[track_caller]
pub fn with_thread_local<T: 'static, R: Send>(
    key: &'static std::thread::LocalKey<T>,
    f: impl FnOnce(&T) -> R + Send,
) -> R {
    let _here = NoSuspend::new();
    key.with(f)
}
