//! A moment in which no other thread of the process runs.
//!
//! ```text
//!  the caller      signal to each ───► all are in ──── changes pages ──── go on
//!  other threads        └─► handler: "I am in", sleeps ─────────────────► returns
//! ```
//!
//! What lies on a page beside a program's own data is anybody's: the
//! allocator's lists, other threads' blocks, their stacks. A page can only
//! become another one while nobody writes to it, and the only thread that the
//! caller can speak for is its own.
//!
//! The signal is the highest real-time signal that the program does not use.
//! As with a profiler's, a thread that sleeps in the kernel meanwhile may see
//! `EINTR` where `SA_RESTART` does not cover it.

use std::ffi::{CStr, c_int};
use std::mem::{offset_of, zeroed};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tsumugi_core::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// While it lives, the other threads of the process stand still. Nothing may
/// be asked of them meanwhile, so neither of a lock nor of the allocator.
#[derive(Debug)]
pub(super) struct Still(());

impl Still {
    /// Stops all other threads. An error says why they go on. Blocks until
    /// they have come to their next return from the kernel.
    ///
    /// # Safety
    ///
    /// One at a time; until it is dropped, the caller takes no lock and
    /// allocates nothing.
    pub(super) unsafe fn begin() -> Result<Self, &'static str> {
        let signal = (*SIGNAL.get_or_init(install)).ok_or("all real-time signals are in use")?;
        let limit = Instant::now() + WITHIN;
        // Release: pairs with the Acquire in `on_signal`, as the next one.
        COUNT.store(0, Ordering::Release);
        // Odd from now on.
        let round = ROUND.fetch_add(1, Ordering::Release) + 1;
        // What follows allocates nothing: a thread may stand still while it
        // has the allocator.
        let still = Self(());
        let mut asked = Threads { round, signal, list: [0; THREADS_MAX], count: 0 };
        while !Threads::all(|thread| asked.ask(thread))? {
            if Instant::now() > limit {
                return Err("a thread of this process does not let itself be stopped");
            }
            std::thread::yield_now();
        }
        Ok(still)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        // Release: pairs with nothing; who slept returns by the kernel.
        ROUND.fetch_add(1, Ordering::Release);
        // SAFETY: a word that is there for good.
        unsafe { libc::syscall(libc::SYS_futex, ROUND.as_ptr(), WAKE, c_int::MAX) };
    }
}

/// Threads that have been sent the signal.
struct Threads {
    round: u32,
    signal: c_int,
    list: [c_int; THREADS_MAX],
    count: usize,
}

impl Threads {
    /// Whether a thread stands still; it is asked to, once.
    fn ask(&mut self, thread: c_int) -> Result<bool, &'static str> {
        let wanted = word_of(self.round, thread);
        // Acquire: pairs with the store in `stand`; what the thread has written
        // is there.
        let is_in = |slot: &AtomicU64| slot.load(Ordering::Acquire) == wanted;
        // Relaxed: a thread that is not found is looked for again.
        let count = COUNT.load(Ordering::Relaxed).min(THREADS_MAX);
        if STILL[..count].iter().any(is_in) {
            return Ok(true);
        }
        if !self.list[..self.count].contains(&thread) {
            *self.list.get_mut(self.count).ok_or("there are more than 1,024 threads")? = thread;
            self.count += 1;
            // One that has just ended is not listed again.
            // SAFETY: plain calls.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, self.signal) };
        }
        Ok(false)
    }

    /// Whether `is` says so of each other thread of the process.
    fn all(mut is: impl FnMut(c_int) -> Result<bool, &'static str>) -> Result<bool, &'static str> {
        const LIST: &CStr = c"/proc/self/task";
        // SAFETY: plain calls; the list is closed before this returns.
        let (own, list) = unsafe {
            let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
            (libc::syscall(libc::SYS_gettid) as c_int, libc::open(LIST.as_ptr(), flags))
        };
        if list < 0 {
            return Err("the system does not say which threads there are");
        }
        let mut place = Entries([0; 4096]);
        let all = loop {
            // SAFETY: the kernel writes as many bytes as there are at most.
            let got = unsafe {
                libc::syscall(libc::SYS_getdents64, list, place.0.as_mut_ptr(), place.0.len())
            };
            match usize::try_from(got) {
                Ok(0) => break Ok(true),
                Ok(got) => match place.all(got, |thread| Ok(thread == own || is(thread)?)) {
                    Ok(true) => {}
                    other => break other,
                },
                Err(_) => break Err("the system does not say which threads there are"),
            }
        };
        // SAFETY: opened above.
        unsafe { libc::close(list) };
        all
    }
}

/// What the kernel lists of a folder.
#[repr(align(8))]
struct Entries([u8; 4096]);

impl Entries {
    /// Whether `is` says so of each number in the first `bytes`. All are
    /// asked.
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
            // "." and ".." are no numbers.
            all &= number == 0 || is(number)?;
            at += usize::from(u16::from_ne_bytes([self.0[length], self.0[length + 1]]));
        }
        Ok(all)
    }
}

/// Routes the signal to the handler, for good: one may still be on its way to a
/// thread that does not take it now.
fn install() -> Option<c_int> {
    let is_free = |signal: &c_int| {
        // SAFETY: only asked; zeroes are a valid sigaction.
        unsafe {
            let mut now: libc::sigaction = zeroed();
            libc::sigaction(*signal, null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_DFL
        }
    };
    let signal = (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(is_free)?;
    // SAFETY: the handler makes calls that a handler may.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigfillset(&mut action.sa_mask);
        (libc::sigaction(signal, &action, null_mut()) == 0).then_some(signal)
    }
}

extern "C" fn on_signal(_signal: c_int) {
    // Acquire: pairs with `begin`.
    let round = ROUND.load(Ordering::Acquire);
    if round.is_multiple_of(2) {
        return;
    }
    // Relaxed: it only counts.
    let Some(slot) = STILL.get(COUNT.fetch_add(1, Ordering::Relaxed)) else { return };
    // SAFETY: errno is put back.
    unsafe {
        let errno = *libc::__errno_location();
        let thread = libc::syscall(libc::SYS_gettid) as c_int;
        stand(slot, word_of(round, thread), round);
        *libc::__errno_location() = errno;
    }
}

/// Says that the thread stands still, and sleeps until the round is over. From
/// the one to the other nothing is written: the stack may be on a page that
/// changes.
///
/// # Safety
///
/// In the handler.
#[cfg(target_arch = "x86_64")]
unsafe fn stand(slot: &AtomicU64, word: u64, round: u32) {
    // SAFETY: a store to a word (Release, as all are here: pairs with `ask`),
    // and system calls that write nothing.
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

/// The same where no thread's stack is on a page that changes.
///
/// # Safety
///
/// In the handler.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stand(slot: &AtomicU64, word: u64, round: u32) {
    // Release: pairs with `ask`.
    slot.store(word, Ordering::Release);
    // Acquire: pairs with the Release in `drop`.
    while ROUND.load(Ordering::Acquire) == round {
        // SAFETY: a word that is there for good.
        unsafe {
            libc::syscall(libc::SYS_futex, ROUND.as_ptr(), WAIT, round, null::<libc::timespec>())
        };
    }
}

/// What a thread says that stands still.
fn word_of(round: u32, thread: c_int) -> u64 {
    u64::from(round) << 32 | thread as u64
}

const WAIT: c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
const THREADS_MAX: usize = 1024;
/// A thread that blocks the signal is not waited for longer.
const WITHIN: Duration = Duration::from_secs(10);

// Of the process, as signals are.
static SIGNAL: OnceLock<Option<c_int>> = OnceLock::new();
/// Odd while threads are to stand still.
static ROUND: AtomicU32 = AtomicU32::new(0);
/// Those that do, each with the round.
static STILL: [AtomicU64; THREADS_MAX] = [const { AtomicU64::new(0) }; THREADS_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);
