//! Saying that a ULT must not suspend for a while.
//!
//! ```text
//!   let held = MUTEX.lock();            of std's: belongs to this OS thread
//!   let _here = NoSuspend::new();       this says so
//!   queue.send(1);                      waits? then it is reported, with both places
//! ```
//!
//! Progress: blocking, on a short lock, where suspensions are checked; wait-free
//! where they are not.

use crate::check::{Record, SuspensionCheck};
use crate::host;
use crate::park::ult;
use crate::sched::shared::Shared;
use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::panic::{Location, RefUnwindSafe, UnwindSafe};

/// As long as it lives, the ULT that made it must not suspend: what its scheduler
/// does about a suspension is [`Config::suspension_check`](crate::Config). It
/// stands beside whatever belongs to an OS thread, such as a guard of `std`'s
/// locks:
///
/// ```
/// # use tsumugi_ult::{Config, Scheduler, StackArea};
/// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
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
/// What counts is that a call suspends, or would but for what came in that very
/// moment: a lock that is free is taken without. A join of a ULT that has not
/// ended counts, and so do each yield and each park.
///
/// It is nothing where suspensions are not checked (builds without debug
/// assertions, unless they are asked to), on a thread that runs no ULT, in a task
/// of a foreign scheduler, and inside of [`callback`](crate::callback) and
/// [`on_os_stack`](crate::on_os_stack). One that is forgotten counts until its ULT
/// has ended.
#[must_use = "it says something as long as it lives"]
pub struct NoSuspend {
    kept: Option<Kept>,
    /// It belongs to the ULT that made it.
    stays: PhantomData<*mut ()>,
}

struct Kept {
    record: Arc<Record>,
    number: u64,
    panics: bool,
}

impl NoSuspend {
    /// From here on the calling ULT must not suspend.
    #[track_caller]
    pub fn new() -> Self {
        Self { kept: Kept::by_caller(Location::caller()), stays: PhantomData }
    }
}

impl Kept {
    fn by_caller(made_at: &'static Location<'static>) -> Option<Self> {
        let slot = ult()?;
        // SAFETY: the running ULT, and a running ULT's home.
        let (task, home) = unsafe {
            let task = slot.as_ref();
            (task, &*task.home().cast::<Shared>())
        };
        if home.suspension_check == SuspensionCheck::Off {
            return None;
        }
        // SAFETY: the running ULT's own.
        let record = unsafe { Record::of(task.locals.with_mut(|locals| locals)) };
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
            panic!("the ULT has suspended ({what}) under the NoSuspend of {made_at}");
        }
    }
}

// A drop that panics has taken it off the record before.
impl UnwindSafe for NoSuspend {}
impl RefUnwindSafe for NoSuspend {}

impl fmt::Debug for NoSuspend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoSuspend")
    }
}

/// Runs `f` on the value that the OS thread has for `key`, as
/// [`LocalKey::with`](std::thread::LocalKey::with), under a [`NoSuspend`] of the
/// caller's place: a suspension in `f` would leave it with another thread's value.
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
pub fn with_thread_local<T: 'static, R>(
    key: &'static std::thread::LocalKey<T>,
    f: impl FnOnce(&T) -> R,
) -> R {
    let _here = NoSuspend::new();
    key.with(f)
}
