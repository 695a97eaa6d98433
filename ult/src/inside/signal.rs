//! Writing a report when the process gets a signal.
//!
//! The handler only adds to an eventfd; a thread that waits on the eventfd makes the
//! report. The descriptor is never closed, because a handler on another thread may be
//! about to use it.

use crate::sched::Spawner;
use alloc::sync::Arc;
use std::io;
use std::time::Duration;
use tsumugi_core::sync::AtomicBool;
use tsumugi_core::sync::mapped::{AtomicU32, Ordering};

/// Reports on a signal until it is dropped.
#[derive(Debug)]
pub struct ReportOn {
    signal: i32,
    before: Before,
    event: i32,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Before(libc::sigaction);

/// The descriptor for the handler, plus one. A signal belongs to the process, so
/// there is one report on a signal per process.
static EVENT: AtomicU32 = AtomicU32::new(0);

impl Spawner {
    /// Gives `show` a [`report`](Self::report) whenever the process gets `signal`
    /// (`SIGUSR2`, for example), on an OS thread of its own. There is one at a time
    /// in a process.
    ///
    /// ```
    /// # use tsumugi_ult::{Config, Scheduler, StackArea};
    /// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
    /// let scheduler = Scheduler::new(config)?;
    /// let _on = scheduler.spawner().report_on(libc::SIGUSR2, |text| eprint!("{text}"))?;
    /// scheduler.run(|| ());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists), if the process has a report on a
    /// signal already; or the system's error, if it refuses a descriptor, the handler or a
    /// thread.
    pub fn report_on(
        &self,
        signal: i32,
        mut show: impl FnMut(String) + Send + 'static,
    ) -> io::Result<ReportOn> {
        // SAFETY: the call touches no memory of ours.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        check(event.min(0))?;
        let word = event as u32 + 1;
        if EVENT.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // SAFETY: we made the descriptor, and no other code has it.
            unsafe { libc::close(event) };
            let why = "the process has a report on a signal already: drop it first";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        let before = match install(signal) {
            Ok(before) => before,
            Err(error) => {
                EVENT.store(0, Ordering::Release);
                return Err(error);
            }
        };
        let stop = Arc::new(AtomicBool::new(false));
        let mut on = ReportOn { signal, before, event, stop: stop.clone(), thread: None };
        let spawner = self.clone();
        let thread = crate::thread::start("ult-report".into(), move || {
            while wait(event) {
                // Acquire: pairs with the Release in `drop`.
                if stop.load(Ordering::Acquire) {
                    return;
                }
                show(spawner.report(PATIENCE));
            }
        });
        on.thread = Some(thread?);
        Ok(on)
    }
}

impl Drop for ReportOn {
    fn drop(&mut self) {
        // SAFETY: this puts the previous action back.
        unsafe { libc::sigaction(self.signal, &self.before.0, core::ptr::null_mut()) };
        EVENT.store(0, Ordering::Release);
        // Release: pairs with the thread's Acquire load.
        self.stop.store(true, Ordering::Release);
        add(self.event);
        if let Some(thread) = self.thread.take() {
            // A panic in `show` has been printed.
            let _ = thread.join();
        }
    }
}

fn install(signal: i32) -> io::Result<Before> {
    // SAFETY: plain structures; the handler makes one call, and that is
    // async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        let mut before: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        check(libc::sigaction(signal, &action, &mut before))?;
        Ok(Before(before))
    }
}

extern "C" fn on_signal(_signal: i32) {
    // Acquire: pairs with `report_on`.
    let word = EVENT.load(Ordering::Acquire);
    if word != 0 {
        // SAFETY: errno belongs to this thread, and is put back.
        unsafe {
            let errno = *libc::__errno_location();
            add(word as i32 - 1);
            *libc::__errno_location() = errno;
        }
    }
}

fn add(event: i32) {
    let one = 1u64;
    // SAFETY: `one` has eight bytes. The write fails only when the counter is full,
    // and then the thread is about to wake in any case.
    unsafe { libc::write(event, (&raw const one).cast(), 8) };
}

/// Waits until the handler, or the end, has added to the eventfd; false on an error.
fn wait(event: i32) -> bool {
    let mut count = 0u64;
    loop {
        // SAFETY: `count` has eight bytes.
        if unsafe { libc::read(event, (&raw mut count).cast(), 8) } == 8 {
            return true;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}

fn check(answer: i32) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl core::fmt::Debug for Before {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Before")
    }
}

/// How long to wait for the workers to stand still.
const PATIENCE: Duration = Duration::from_millis(200);
