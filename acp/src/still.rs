//! Stops all other threads of the process for a moment.
//!
//! ```text
//!  the caller      signal to each ───► all are in ──── changes pages ──── go on
//!  other threads        └─► handler: "I am in", sleeps ─────────────────► returns
//! ```
//!
//! A page that holds data of the program also holds data of any thread: the
//! allocator's lists, blocks of other threads, their stacks. A page can only be
//! exchanged while no thread writes to it, and the caller controls only its own
//! thread.
//!
//! The signal is the highest real-time signal that the program does not use. As
//! with a profiler's signal, a thread that sleeps in the kernel meanwhile may see
//! `EINTR` where `SA_RESTART` does not apply.

use std::ffi::{CStr, c_int};
use std::mem::{offset_of, zeroed};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tsumugi_core::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// While this value lives, the other threads of the process are stopped. The caller
/// must not wait for any of them meanwhile, so it must not take a lock or use the
/// allocator.
#[derive(Debug)]
pub(super) struct Still(());

impl Still {
    /// Stops all other threads. Blocks until each of them has entered the signal
    /// handler, at its next return from the kernel.
    ///
    /// # Errors
    ///
    /// The reason why the threads could not be stopped; then they go on.
    ///
    /// # Safety
    ///
    /// At most one `Still` at a time; until it is dropped, the caller takes no lock
    /// and allocates nothing.
    pub(super) unsafe fn begin() -> Result<Self, &'static str> {
        let signal = (*SIGNAL.get_or_init(install))
            .ok_or("no real-time signal is free to stop the other threads")?;
        let limit = Instant::now() + WITHIN;
        // Release: pairs with the Acquire in `on_signal`, as does the next one.
        COUNT.store(0, Ordering::Release);
        // The number is odd from now on.
        let round = ROUND.fetch_add(1, Ordering::Release) + 1;
        // The code from here on allocates nothing: a thread may be stopped while it
        // holds the allocator's lock.
        let still = Self(());
        let mut asked = Threads { round, signal, list: [0; THREADS_MAX], count: 0 };
        while !Threads::all(|thread| asked.ask(thread))? {
            if Instant::now() > limit {
                return Err("a thread of this process could not be stopped within the time limit");
            }
            std::thread::yield_now();
        }
        Ok(still)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `stand` where that loads the word;
        // elsewhere a stopped thread returns through the kernel.
        ROUND.fetch_add(1, Ordering::Release);
        // SAFETY: the word is static.
        unsafe { libc::syscall(libc::SYS_futex, ROUND.as_ptr(), WAKE, c_int::MAX) };
    }
}

/// The threads that have been sent the signal.
struct Threads {
    round: u32,
    signal: c_int,
    list: [c_int; THREADS_MAX],
    count: usize,
}

impl Threads {
    /// Whether a thread is stopped; sends it the signal once.
    fn ask(&mut self, thread: c_int) -> Result<bool, &'static str> {
        let wanted = word_of(self.round, thread);
        // Acquire: pairs with the store in `stand`, so that the caller sees all
        // that the thread has written.
        let is_in = |slot: &AtomicU64| slot.load(Ordering::Acquire) == wanted;
        // Relaxed: a thread that is not found now is looked up again.
        let count = COUNT.load(Ordering::Relaxed).min(THREADS_MAX);
        if STILL[..count].iter().any(is_in) {
            return Ok(true);
        }
        if !self.list[..self.count].contains(&thread) {
            *self.list.get_mut(self.count).ok_or("the process has over 1,024 threads")? = thread;
            self.count += 1;
            // A thread that has just ended is not listed again.
            // SAFETY: system calls that touch no memory.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, self.signal) };
        }
        Ok(false)
    }

    /// Whether `is` returns true for each other thread of the process.
    fn all(mut is: impl FnMut(c_int) -> Result<bool, &'static str>) -> Result<bool, &'static str> {
        const LIST: &CStr = c"/proc/self/task";
        // SAFETY: plain calls; the descriptor is closed before this function
        // returns.
        let (own, list) = unsafe {
            let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
            (libc::syscall(libc::SYS_gettid) as c_int, libc::open(LIST.as_ptr(), flags))
        };
        if list < 0 {
            return Err("the threads in /proc/self/task cannot be listed");
        }
        let mut place = Entries([0; 4096]);
        let all = loop {
            // SAFETY: the kernel writes at most as many bytes as the buffer has.
            let got = unsafe {
                libc::syscall(libc::SYS_getdents64, list, place.0.as_mut_ptr(), place.0.len())
            };
            match usize::try_from(got) {
                Ok(0) => break Ok(true),
                Ok(got) => match place.all(got, |thread| Ok(thread == own || is(thread)?)) {
                    Ok(true) => {}
                    other => break other,
                },
                Err(_) => break Err("the threads in /proc/self/task cannot be listed"),
            }
        };
        // SAFETY: the descriptor was opened above.
        unsafe { libc::close(list) };
        all
    }
}

/// A buffer for the directory entries that the kernel returns.
#[repr(align(8))]
struct Entries([u8; 4096]);

impl Entries {
    /// Whether `is` returns true for each number in the first `bytes` bytes. `is`
    /// is called for all of them.
    fn all(
        &self,
        bytes: usize,
        mut is: impl FnMut(c_int) -> Result<bool, &'static str>,
    ) -> Result<bool, &'static str> {
        let (mut at, mut all) = (0, true);
        while at < bytes {
            let length = offset_of!(libc::dirent64, d_reclen) + at;
            let name = offset_of!(libc::dirent64, d_name) + at;
            let digits = self.0[name..].iter().take_while(|byte| byte.is_ascii_digit());
            let number = digits.fold(0, |number, digit| number * 10 + c_int::from(digit - b'0'));
            // "." and ".." are not numbers.
            all &= number == 0 || is(number)?;
            at += usize::from(u16::from_ne_bytes([self.0[length], self.0[length + 1]]));
        }
        Ok(all)
    }
}

/// Installs the handler, for good: a signal may still be on its way to a thread
/// that blocks it now.
fn install() -> Option<c_int> {
    let is_free = |signal: &c_int| {
        // SAFETY: the call only queries; all zeroes are a valid sigaction.
        unsafe {
            let mut now: libc::sigaction = zeroed();
            libc::sigaction(*signal, null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_DFL
        }
    };
    let signal = (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(is_free)?;
    // SAFETY: the handler makes only calls that are allowed in a signal handler.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigfillset(&mut action.sa_mask);
        (libc::sigaction(signal, &action, null_mut()) == 0).then_some(signal)
    }
}

extern "C" fn on_signal(_signal: c_int) {
    // Acquire: pairs with the Release in `begin`.
    let round = ROUND.load(Ordering::Acquire);
    if round.is_multiple_of(2) {
        return;
    }
    // Relaxed: the counter only assigns slots.
    let Some(slot) = STILL.get(COUNT.fetch_add(1, Ordering::Relaxed)) else { return };
    // SAFETY: errno is restored.
    unsafe {
        let errno = *libc::__errno_location();
        let thread = libc::syscall(libc::SYS_gettid) as c_int;
        stand(slot, word_of(round, thread), round);
        *libc::__errno_location() = errno;
    }
}

/// Publishes that the thread is stopped, and sleeps until the round is over.
/// Nothing is written from the first to the last, because the stack may be on a
/// page that is exchanged.
///
/// # Safety
///
/// Called in the signal handler.
#[cfg(target_arch = "x86_64")]
unsafe fn stand(slot: &AtomicU64, word: u64, round: u32) {
    // SAFETY: a store to a word (a Release, as every store is on this architecture:
    // pairs with `ask`), and system calls that write nothing.
    unsafe {
        std::arch::asm!(
            "mov qword ptr [{slot}], {word}",
            "2:",
            "mov eax, {futex}",
            "mov esi, {wait}",
            "mov edx, {round:e}",
            "xor r10d, r10d",
            "syscall",
            "cmp dword ptr [rdi], {round:e}",
            "je 2b",
            slot = in(reg) slot.as_ptr(),
            word = in(reg) word,
            round = in(reg) round,
            futex = const libc::SYS_futex,
            wait = const WAIT,
            in("rdi") ROUND.as_ptr(),
            out("rax") _,
            out("rsi") _,
            out("rdx") _,
            out("r10") _,
            out("rcx") _,
            out("r11") _,
        );
    }
}

/// The same function for other architectures, where no thread's stack may be on a
/// page that is exchanged.
///
/// # Safety
///
/// Called in the signal handler.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stand(slot: &AtomicU64, word: u64, round: u32) {
    // Release: pairs with the Acquire in `ask`.
    slot.store(word, Ordering::Release);
    // Acquire: pairs with the Release in `drop`.
    while ROUND.load(Ordering::Acquire) == round {
        // SAFETY: the word is static.
        unsafe {
            libc::syscall(libc::SYS_futex, ROUND.as_ptr(), WAIT, round, null::<libc::timespec>())
        };
    }
}

/// The word by which a stopped thread reports itself: the round and the thread's
/// number.
fn word_of(round: u32, thread: c_int) -> u64 {
    u64::from(round) << 32 | thread as u64
}

const WAIT: c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
const THREADS_MAX: usize = 1024;
/// How long to wait for a thread, which may block the signal.
const WITHIN: Duration = Duration::from_secs(10);

// Static, because signal handlers belong to the process.
static SIGNAL: OnceLock<Option<c_int>> = OnceLock::new();
/// Odd while threads must stay stopped.
static ROUND: AtomicU32 = AtomicU32::new(0);
/// The stopped threads, each with its round.
static STILL: [AtomicU64; THREADS_MAX] = [const { AtomicU64::new(0) }; THREADS_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);
