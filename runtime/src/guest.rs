//! Numbers for the OS threads that are no workers and access memory of ranks: the main
//! thread of a C program, threads of other libraries.
//!
//! A *guest* is a thread with such a number, which no other thread of the process has
//! at the same time. What exists once for each worker, so that its owner alone writes
//! it (hazard pointers), then exists for guests, too. A process has [`GUESTS`]
//! numbers; a thread takes one with its first access and gives it back when it ends.
//!
//! ```text
//!  word of the thread   0 ──first access──► number + 1 ──end──► NONE
//!                            └─ all are taken ─► NONE
//! ```
//!
//! Progress: wait-free.

use tsumugi_core::sync::{AtomicU32, Ordering};

/// The number of guests that a process can have at a time.
pub const GUESTS: usize = 4;

/// The number of the calling thread, below [`GUESTS`]; `None` if other threads have
/// all numbers. A thread keeps its number, so a ULT must not use it across a call that
/// suspends.
#[inline(always)]
pub fn guest() -> Option<usize> {
    match word() {
        0 => enter(),
        NONE => None,
        number => Some(number as usize - 1),
    }
}

/// The number of the calling thread if it has one by now, else a number of at least
/// [`NO_GUEST`]; a caller without a frame of its own then goes to where [`guest`] is called.
#[inline(always)]
pub fn number_so_far() -> usize {
    // 0 becomes the largest number.
    word().wrapping_sub(1) as usize
}

/// No guest has this number or a larger one.
pub const NO_GUEST: usize = NONE as usize - 1;

/// Takes a number.
#[cold]
#[inline(never)]
fn enter() -> Option<usize> {
    let number = NUMBERS.take();
    set_word(number.map_or(NONE, |number| number + 1));
    // A thread whose values are being destroyed keeps no number.
    let is_kept = number.is_some_and(|number| {
        STAY.try_with(|stay| stay.0.store(number + 1, Ordering::Relaxed)).is_ok()
    });
    if !is_kept {
        number.into_iter().for_each(|number| NUMBERS.give_back(number));
        set_word(NONE);
        return None;
    }
    number.map(|number| number as usize)
}

/// The numbers that are taken: one bit each.
struct Numbers(AtomicU32);

impl Numbers {
    fn take(&self) -> Option<u32> {
        // Acquire: pairs with the Release in `give_back`, so that what the guest before
        // has written under this number is seen.
        let taken = self.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            let free = taken.trailing_ones();
            (free < GUESTS as u32).then(|| taken | 1 << free)
        });
        taken.ok().map(u32::trailing_ones)
    }

    fn give_back(&self, number: u32) {
        // Release: pairs with the Acquire in `take`.
        self.0.fetch_and(!(1 << number), Ordering::Release);
    }
}

/// Gives the number of its thread back when the thread ends.
struct Stay(AtomicU32);

impl Drop for Stay {
    fn drop(&mut self) {
        let number = self.0.load(Ordering::Relaxed);
        set_word(NONE);
        if number > 0 {
            NUMBERS.give_back(number - 1);
        }
    }
}

static NUMBERS: Numbers = Numbers(AtomicU32::new(0));
thread_local! {
    static STAY: Stay = const { Stay(AtomicU32::new(0)) };
}

/// The word of a thread that has no number, and asks for none.
const NONE: u32 = u32::MAX;

// A word for each thread that code anywhere reads in two instructions. In a shared
// library a thread-local variable of Rust would take a call.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
core::arch::global_asm!(
    ".pushsection .tbss.tsumugi_guest, \"awT\", @nobits",
    ".globl tsumugi_guest",
    ".hidden tsumugi_guest",
    ".type tsumugi_guest, @object",
    ".size tsumugi_guest, 8",
    ".p2align 3",
    "tsumugi_guest:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's word.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
#[inline(always)]
fn word() -> u32 {
    let word: u32;
    // SAFETY: reads this thread's word. The block is not `pure`: a ULT may have moved.
    unsafe {
        core::arch::asm!(
            "mov {place}, qword ptr [rip + tsumugi_guest@GOTTPOFF]",
            "mov {word:e}, dword ptr fs:[{place}]",
            place = out(reg) _,
            word = lateout(reg) word,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn set_word(word: u32) {
    // SAFETY: writes this thread's word.
    unsafe {
        core::arch::asm!(
            "mov {place}, qword ptr [rip + tsumugi_guest@GOTTPOFF]",
            "mov dword ptr fs:[{place}], {word:e}",
            place = out(reg) _,
            word = in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
thread_local!(static WORD: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
fn word() -> u32 {
    WORD.get()
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
fn set_word(word: u32) {
    WORD.set(word);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn a_number_is_one_threads_at_a_time_and_comes_back() {
        for _ in 0..3 {
            let all = Barrier::new(GUESTS / 2);
            let mut numbers: Vec<_> = thread::scope(|scope| {
                let one = || {
                    let number = guest();
                    all.wait();
                    assert_eq!(guest(), number, "a thread keeps its number");
                    number
                };
                let threads: Vec<_> = (0..GUESTS / 2).map(|_| scope.spawn(one)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(numbers.iter().all(Option::is_some), "some thread has no number");
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), GUESTS / 2, "two threads had one number");
        }
    }

    #[test]
    fn numbers_run_out() {
        let numbers = Numbers(AtomicU32::new(0));
        let taken: Vec<_> = (0..GUESTS).filter_map(|_| numbers.take()).collect();
        assert_eq!(taken, (0..GUESTS as u32).collect::<Vec<_>>());
        assert_eq!(numbers.take(), None);
        numbers.give_back(2);
        assert_eq!(numbers.take(), Some(2));
    }
}
