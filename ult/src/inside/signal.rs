//! A report when a signal comes.
//!
//! The handler only writes a byte to a pipe; a thread at its other end makes
//! the report.

use crate::sched::Spawner;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;
use tsumugi_core::sync::mapped::{AtomicU32, Ordering};

/// Reports on a signal until it is dropped.
#[derive(Debug)]
pub struct ReportOn {
    signal: i32,
    before: Before,
    pipe: Option<OwnedFd>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Before(libc::sigaction);

/// The pipe's end for the handler, plus one. A signal is a process's, so one
/// report of a process.
static PIPE: AtomicU32 = AtomicU32::new(0);

impl Spawner {
    /// Gives `show` a [`report`](Self::report) whenever the process gets
    /// `signal` (`SIGUSR2`, say), on an OS thread of its own. One at a time in
    /// a process.
    ///
    /// ```
    /// # use tsumugi_ult::{Config, Scheduler, StackArea};
    /// # let config = Config { main_stack_bytes: 256 << 10, ..Config::new(StackArea::map(1 << 20)?) };
    /// let scheduler = Scheduler::new(config)?;
    /// let _on = scheduler.spawner().report_on(libc::SIGUSR2, |text| eprint!("{text}"))?;
    /// scheduler.run(|| ());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `AlreadyExists`, if there is one; or the system's.
    pub fn report_on(
        &self,
        signal: i32,
        mut show: impl FnMut(String) + Send + 'static,
    ) -> io::Result<ReportOn> {
        let mut ends = [0; 2];
        // SAFETY: it fills the two.
        check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        // SAFETY: two new ends, ours.
        let (reader, pipe) =
            unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        let word = pipe.as_raw_fd() as u32 + 1;
        if PIPE.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let before = match install(signal) {
            Ok(before) => before,
            Err(error) => {
                PIPE.store(0, Ordering::Release);
                return Err(error);
            }
        };
        let mut on = ReportOn { signal, before, pipe: Some(pipe), thread: None };
        let spawner = self.clone();
        let thread = std::thread::Builder::new().name("ult-report".into()).spawn(move || {
            let mut reader = File::from(reader);
            // Ends when the other end is closed.
            while reader.read_exact(&mut [0]).is_ok() {
                show(spawner.report(PATIENCE));
            }
        });
        on.thread = Some(thread?);
        Ok(on)
    }
}

impl Drop for ReportOn {
    fn drop(&mut self) {
        // SAFETY: what was there before.
        unsafe { libc::sigaction(self.signal, &self.before.0, core::ptr::null_mut()) };
        PIPE.store(0, Ordering::Release);
        self.pipe = None;
        if let Some(thread) = self.thread.take() {
            // A panic in `show` has been printed.
            let _ = thread.join();
        }
    }
}

fn install(signal: i32) -> io::Result<Before> {
    // SAFETY: plain structures; the handler makes one call that a handler may.
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
    let word = PIPE.load(Ordering::Acquire);
    if word != 0 {
        // SAFETY: one byte that is there; errno is put back.
        unsafe {
            let errno = *libc::__errno_location();
            libc::write(word as i32 - 1, [1u8].as_ptr().cast(), 1);
            *libc::__errno_location() = errno;
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
