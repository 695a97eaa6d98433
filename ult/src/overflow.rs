//! Reports of a stack overflow, written before the process dies of it.
//!
//! The first scheduler of a process installs a handler for SIGSEGV, and the last one
//! removes it; both keep a count. The handler runs on a signal stack of its own. It
//! asks the scheduler of the ULT on this thread whether the address is in that ULT's
//! guard page, and if so names the ULT. Then, as for any other address, the handler
//! that was there before has its turn. That handler may put the default back and
//! return, as that of Rust's std does: a fault then comes again, and kills. A signal
//! that no fault has caused does not come again, so it is sent once more.

use crate::host;
use core::fmt::{self, Write};
use tsumugi_core::mem::Rank;

/// What reports of a scheduler say about the program to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The rank with which a report begins; `None`: the job has one rank, or there is
    /// no job.
    pub rank: Option<Rank>,
    /// What makes the stacks of ULTs larger.
    pub stack_bytes: &'static str,
    /// What makes main's stack larger.
    pub main_stack_bytes: &'static str,
}

/// A ULT that ran out of its stack.
pub(crate) struct Overflow<'a> {
    pub(crate) origin: Origin,
    pub(crate) id: u64,
    pub(crate) name: Option<&'a str>,
    pub(crate) stack_bytes: usize,
}

impl Default for Origin {
    /// A program that uses schedulers alone.
    fn default() -> Self {
        Self {
            rank: None,
            stack_bytes: "Config::stack_bytes",
            main_stack_bytes: "Config::main_stack_bytes",
        }
    }
}

impl Overflow<'_> {
    /// Writes the report to standard error, without allocation and without a lock.
    pub(crate) fn report(&self) {
        let mut line = ReportLine { bytes: [0; 256], used: 0 };
        // A name that is too long is cut off; `ReportLine` takes what fits.
        let _ = match self.origin.rank {
            Some(rank) => write!(line, "{rank}: ULT {}", self.id),
            None => write!(line, "tsumugi: ULT {}", self.id),
        };
        if let Some(name) = self.name {
            let _ = write!(line, " (\"{name:.100}\")");
        }
        let cure = match self.name {
            Some("main") => self.origin.main_stack_bytes,
            _ => self.origin.stack_bytes,
        };
        let bytes = self.stack_bytes;
        let _ = writeln!(line, " overflowed its stack of {bytes} bytes; {cure} makes it larger");
        host::say(&line.bytes[..line.used]);
    }

    /// Reports the overflow and aborts, after a canary was found overwritten.
    #[cold]
    pub(crate) fn abort(&self) -> ! {
        self.report();
        host::abort()
    }
}

struct ReportLine {
    bytes: [u8; 256],
    used: usize,
}

impl Write for ReportLine {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let fits = s.len().min(self.bytes.len() - self.used);
        self.bytes[self.used..self.used + fits].copy_from_slice(&s.as_bytes()[..fits]);
        self.used += fits;
        Ok(())
    }
}

#[cfg(all(feature = "std", not(tsumugi_loom)))]
pub(crate) use handler::{OverflowHandler, SignalStack};

#[cfg(all(feature = "std", not(tsumugi_loom)))]
mod handler {
    use super::Overflow;
    use core::ffi::c_void;
    use core::mem::MaybeUninit;
    use core::ptr;
    use std::sync::Mutex;

    /// The function that checks whether this thread's ULT overflowed its stack at an
    /// address.
    pub(crate) type Ask = fn(usize) -> Option<Overflow<'static>>;

    /// One scheduler's share in the handler.
    pub(crate) struct OverflowHandler(());

    /// The handler's stack on one worker's thread, if the thread had none.
    pub(crate) struct SignalStack(Option<*mut c_void>);

    struct Installed {
        holders: usize,
        installed: bool,
        ask: Option<Ask>,
        before: MaybeUninit<libc::sigaction>,
    }

    /// The lock for installing the handler, the only state of this crate that belongs
    /// to the whole process. The handler reads `STATE` without the lock, see
    /// `on_segv`.
    static INSTALLED: Mutex<()> = Mutex::new(());
    static mut STATE: Installed =
        Installed { holders: 0, installed: false, ask: None, before: MaybeUninit::uninit() };

    impl OverflowHandler {
        pub(crate) fn install(ask: Ask) -> Self {
            let _alone = INSTALLED.lock().unwrap_or_else(|broken| broken.into_inner());
            // SAFETY: under the lock. The handler reads `ask` and `before` only while
            // it is installed, and they change only while it is not.
            unsafe {
                let state = &raw mut STATE;
                (*state).holders += 1;
                if !(*state).installed {
                    (*state).installed = true;
                    (*state).ask = Some(ask);
                    // Read first, so that `before` is complete when the handler is
                    // installed.
                    libc::sigaction(libc::SIGSEGV, ptr::null(), (*state).before.as_mut_ptr());
                    let mut action: libc::sigaction = core::mem::zeroed();
                    action.sa_sigaction = on_segv as *const () as usize;
                    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                    libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut());
                }
            }
            Self(())
        }
    }

    impl Drop for OverflowHandler {
        fn drop(&mut self) {
            let _alone = INSTALLED.lock().unwrap_or_else(|broken| broken.into_inner());
            // SAFETY: as in `install`.
            unsafe {
                let state = &raw mut STATE;
                (*state).holders -= 1;
                if (*state).holders > 0 {
                    return;
                }
                let mut now = MaybeUninit::<libc::sigaction>::uninit();
                libc::sigaction(libc::SIGSEGV, ptr::null(), now.as_mut_ptr());
                // A handler that was installed later and calls ours must find ours in
                // place.
                if now.assume_init().sa_sigaction == on_segv as *const () as usize {
                    libc::sigaction(libc::SIGSEGV, (*state).before.as_ptr(), ptr::null_mut());
                    (*state).installed = false;
                }
            }
        }
    }

    extern "C" fn on_segv(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the system calls this with a valid `info`; the fields of STATE that
        // are read here were written before the handler was installed.
        unsafe {
            let state = &raw const STATE;
            let at = (*info).si_addr() as usize;
            let is_fault = (*info).si_code > 0;
            let ask = (*state).ask.filter(|_| is_fault);
            if let Some(overflow) = ask.and_then(|ask| ask(at)) {
                overflow.report();
                // The access runs again, and the default action of this signal ends
                // the process.
                libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                return;
            }
            let before = (*state).before.assume_init_ref();
            match before.sa_sigaction {
                libc::SIG_IGN if !is_fault => return,
                libc::SIG_DFL | libc::SIG_IGN => {
                    libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                }
                handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                        core::mem::transmute(handler);
                    handler(signal, info, context);
                }
                handler => {
                    let handler: extern "C" fn(i32) = core::mem::transmute(handler);
                    handler(signal);
                }
            }
            let mut now = MaybeUninit::<libc::sigaction>::uninit();
            if !is_fault
                && libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) == 0
                && now.assume_init_ref().sa_sigaction == libc::SIG_DFL
            {
                libc::raise(signal);
            }
        }
    }

    impl SignalStack {
        /// Gives the calling thread a signal stack, unless it has one.
        pub(crate) fn ensure() -> Self {
            // SAFETY: the calls get structures of ours, and a mapping that this
            // function made.
            unsafe {
                let mut now: libc::stack_t = core::mem::zeroed();
                libc::sigaltstack(ptr::null(), &mut now);
                if now.ss_flags & libc::SS_DISABLE == 0 {
                    return Self(None);
                }
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let base = libc::mmap(ptr::null_mut(), SIGNAL_STACK_BYTES, access, flags, -1, 0);
                if base == libc::MAP_FAILED {
                    // Without a signal stack an overflow still kills, but without a
                    // report.
                    return Self(None);
                }
                let stack = libc::stack_t { ss_sp: base, ss_flags: 0, ss_size: SIGNAL_STACK_BYTES };
                libc::sigaltstack(&stack, ptr::null_mut());
                Self(Some(base))
            }
        }
    }

    impl Drop for SignalStack {
        fn drop(&mut self) {
            let Some(base) = self.0 else { return };
            // SAFETY: the stack is removed from this thread first, then unmapped.
            unsafe {
                let mut none: libc::stack_t = core::mem::zeroed();
                none.ss_flags = libc::SS_DISABLE;
                none.ss_size = SIGNAL_STACK_BYTES;
                libc::sigaltstack(&none, ptr::null_mut());
                libc::munmap(base, SIGNAL_STACK_BYTES);
            }
        }
    }

    const SIGNAL_STACK_BYTES: usize = 65536;
}
