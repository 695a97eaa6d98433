//! A biased lock's owner word: one thread works without atomic instructions as long
//! as no other thread comes.
//!
//! ```text
//!           claim            end, by another
//!   NOBODY ───────► a thread ───────────────► ENDING ──► SHARED
//!     └──────────────────────end────────────────────────►┘
//!
//!   the thread                         another
//!   inside := 1                        owner := ENDING
//!   light fence                        heavy fence
//!   is the owner still me?             is inside 1?
//! ```
//!
//! At least one of the two threads sees the other ([`Fences`]): the owner finds that
//! it must use atomic instructions, or the other thread finds that the owner is
//! inside, and waits for it to leave. The heavy fence costs the other thread a
//! barrier on all processors, some microseconds, but only once: a bias that was ended
//! never comes back.
//!
//! The owner's name is a word that no other thread has at the same time: for a
//! worker, the address of its slot. A later worker may have the same address. It got
//! that memory through the allocator from the earlier worker, and so sees all that
//! the earlier worker did.
//!
//! The park words of a scheduler of one worker are biased from the beginning. A lock
//! becomes biased when one thread has taken it [`STREAK`] times and no other thread
//! ever has. So that many cheaper lockings have paid for the barrier that the end of
//! the bias costs.
//!
//! Progress: all calls are wait-free but [`end_and_wait`](Bias::end_and_wait), which
//! blocks the first time while the owner is inside.
//!
//! # References
//!
//! - Kawachiya, Koseki, Onodera: Lock Reservation: Java Locks Can Mostly Do
//!   Without Atomic Operations. OOPSLA 2002.
//! - Dice, Moir, Scherer: Quickly Reacquirable Locks. 2003.

use crate::fences::Fences;
use crate::futex::os_yield;
use core::fmt;
use tsumugi_core::mutate;
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// The owner of a lock or a word, if there is one.
pub struct Bias<I = AtomicBool> {
    owner: AtomicUsize,
    /// Written by the owner.
    inside: I,
    /// How many times in a row the same thread took the lock; written by the lock's
    /// holder.
    streak: AtomicU32,
}

/// The place where the owner marks that it is inside, perhaps in a word that it
/// writes in any case. Only the owner calls `go_in` and `leave`.
pub trait InsideMark {
    /// Marks the owner as inside.
    fn go_in(&self);

    /// Marks the owner as outside, and releases its writes.
    fn leave(&self);

    /// Whether the owner is inside. If not, the caller sees the owner's writes. Any
    /// thread.
    fn has_owner(&self) -> bool;
}

impl InsideMark for AtomicBool {
    #[inline(always)]
    fn go_in(&self) {
        self.store(true, Ordering::Relaxed);
    }

    #[inline(always)]
    fn leave(&self) {
        // Release: pairs with the Acquire in `has_owner`.
        self.store(false, Ordering::Release);
    }

    #[inline(always)]
    fn has_owner(&self) -> bool {
        // Acquire: pairs with the Release in `leave`.
        self.load(Ordering::Acquire)
    }
}

/// The result of ending a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BiasEnd {
    /// There was no owner, or the bias had ended before.
    Before,
    /// The owner is outside, and will not go in again.
    Outside,
    /// The owner is inside, or is about to find that it may not be.
    Inside,
}

impl Bias {
    /// A bias without an owner.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self {
            owner: AtomicUsize::new(NOBODY),
            inside: AtomicBool::new(false),
            streak: AtomicU32::new(0),
        }
    }

    /// A bias without an owner.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self {
            owner: AtomicUsize::new(NOBODY),
            inside: AtomicBool::new(false),
            streak: AtomicU32::new(0),
        }
    }
}

impl<I: InsideMark> Bias<I> {
    /// A bias without an owner; the owner will mark itself in `inside`.
    pub(crate) fn through(inside: I) -> Self {
        Self { owner: AtomicUsize::new(NOBODY), inside, streak: AtomicU32::new(0) }
    }

    /// The place where the owner marks itself as inside.
    #[inline(always)]
    pub(crate) fn inside(&self) -> &I {
        &self.inside
    }

    /// Whether the bias has ended, so that all threads must use atomic instructions.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.owner.load(Ordering::Acquire) == SHARED
    }

    /// Whether the thread `me` is the owner; no owner has the name 0.
    #[inline(always)]
    pub fn is_of(&self, me: usize) -> bool {
        self.owner.load(Ordering::Relaxed) == me
    }

    /// Whether there is an owner, or was one until just now.
    pub fn is_taken(&self) -> bool {
        // Acquire: as in `is_shared`, because this load may be the first to find the
        // owner.
        let owner = self.owner.load(Ordering::Acquire);
        is_name(owner) || owner == ENDING
    }

    /// Whether the owner is inside. Called by the owner.
    #[inline(always)]
    pub fn is_inside(&self) -> bool {
        self.inside.has_owner()
    }

    /// Marks the owner as inside, if the owner is `me`.
    #[inline(always)]
    pub fn enter(&self, me: usize) -> bool {
        self.is_of(me) && self.go_in(me)
    }

    /// Marks `me` as inside, if it is still the owner; the caller has seen that it
    /// was.
    #[inline(always)]
    pub fn go_in(&self, me: usize) -> bool {
        self.inside.go_in();
        self.may_stay(me)
    }

    /// Whether `me` may stay inside, after the caller has marked itself as inside. If
    /// `me` is no longer the owner, marks it as outside again.
    #[inline(always)]
    pub(crate) fn may_stay(&self, me: usize) -> bool {
        if self.is_still_of(me) {
            return true;
        }
        self.leave();
        false
    }

    /// Marks the owner as outside.
    #[inline(always)]
    pub fn leave(&self) {
        self.inside.leave();
    }

    /// Whether `me` is still the owner, after it has gone in or out. If not, other
    /// threads may have seen it inside.
    #[inline(always)]
    pub fn is_still_of(&self, me: usize) -> bool {
        // Pairs with the heavy half in `look_inside`.
        mutate!("bias_no_light": Fences::LIGHTEST.light() => ());
        self.is_of(me)
    }

    /// Makes `me` the owner, if there is none. A thread without a name ends the bias
    /// in place of that. The caller must do this before any thread relies on the
    /// bias.
    pub fn claim(&self, me: usize) -> bool {
        let new = if me == NAMELESS { SHARED } else { me };
        // Relaxed: `me` is the calling thread; other threads end the bias before they
        // use it.
        self.owner.compare_exchange(NOBODY, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes that the thread `me` took the lock that this bias belongs to. The lock
    /// keeps other threads out of this call. Returns true if `me` is the owner from
    /// now on; it is then marked as inside.
    #[cold]
    pub fn note(&self, me: usize) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        let candidate = me | CANDIDATE;
        // Between the load and the exchange only the end of the bias can come, which
        // is final.
        let replace = |new| {
            self.owner.compare_exchange(owner, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        if owner == NOBODY && me != NAMELESS {
            self.streak.store(0, Ordering::Relaxed);
            replace(candidate);
            return false;
        }
        if owner != candidate || me == NAMELESS {
            if owner & CANDIDATE != 0 || owner == NOBODY {
                replace(SHARED);
            }
            return false;
        }
        let streak = self.streak.load(Ordering::Relaxed) + 1;
        self.streak.store(streak, Ordering::Relaxed);
        if streak < STREAK {
            return false;
        }
        self.inside.go_in();
        // Release: the thread that ends the bias must see what was done under the
        // lock; pairs with the exchange in `end`.
        let claimed =
            self.owner.compare_exchange(candidate, me, Ordering::Release, Ordering::Relaxed);
        if claimed.is_err() {
            self.leave();
        }
        claimed.is_ok()
    }

    /// Ends the bias; `me` is the caller, which needs no barrier if it is the owner.
    /// If several threads call at once, one of them runs `prepare`, with whether the
    /// owner is inside, before any thread uses atomic instructions in the owner's
    /// place. So such a thread finds what `prepare` wrote.
    pub fn end(&self, me: usize, prepare: impl FnOnce(bool)) -> BiasEnd {
        let mut owner = self.owner.load(Ordering::Relaxed);
        loop {
            if matches!(owner, SHARED | ENDING) {
                return BiasEnd::Before;
            }
            let next = if is_name(owner) { ENDING } else { SHARED };
            // Acquire: pairs with the Release in `note`.
            match self.owner.compare_exchange(owner, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) if next == SHARED => return BiasEnd::Before,
                Ok(_) => break,
                Err(changed) => owner = changed,
            }
        }
        let inside = if owner == me { self.is_inside() } else { self.look_inside() };
        mutate!("bias_shared_early": () => self.owner.store(SHARED, Ordering::Release));
        prepare(inside);
        // Release: pairs with the Acquire in `is_shared` and `end_and_wait`, so
        // that those threads see what `prepare` wrote.
        mutate!("bias_shared_early": self.owner.store(SHARED, Ordering::Release) => ());
        if inside { BiasEnd::Inside } else { BiasEnd::Outside }
    }

    /// Ends the bias and waits until its owner is outside. A thread other than the
    /// owner calls this before it uses atomic instructions.
    #[inline]
    pub fn end_and_wait(&self) {
        // Acquire: pairs with the Release below, so that the owner's plain stores are
        // seen.
        if self.owner.load(Ordering::Acquire) != SHARED {
            self.end_for_good();
        }
    }

    #[cold]
    fn end_for_good(&self) {
        // Two threads may be here, and each waits for the owner by itself. SHARED is
        // final.
        let end = |owner| (owner != SHARED).then_some(ENDING);
        // Acquire: as in `end_and_wait`.
        if self.owner.fetch_update(Ordering::Relaxed, Ordering::Acquire, end).is_err() {
            return;
        }
        if self.look_inside() {
            self.wait_outside();
        }
        // Release: pairs with the Acquire in `end_and_wait`.
        self.owner.store(SHARED, Ordering::Release);
    }

    /// Waits until the owner is outside, after the end of the bias found it inside.
    pub fn wait_outside(&self) {
        while mutate!("bias_no_wait": self.inside.has_owner() => false) {
            os_yield();
        }
    }

    fn look_inside(&self) -> bool {
        // Pairs with the light half in `is_still_of`.
        mutate!("bias_no_heavy": Fences::LIGHTEST.heavy() => ());
        self.inside.has_owner()
    }
}

impl Default for Bias {
    fn default() -> Self {
        Self::new()
    }
}

impl<I> fmt::Debug for Bias<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.owner.load(Ordering::Relaxed);
        f.write_str(match owner {
            SHARED | ENDING => "Bias(shared)",
            owner if is_name(owner) => "Bias(owned)",
            _ => "Bias(not owned)",
        })
    }
}

/// Whether a word names an owner; a candidate for ownership does not count.
fn is_name(owner: usize) -> bool {
    !matches!(owner, NOBODY | SHARED | ENDING) && owner & CANDIDATE == 0
}

/// How many times one thread must have taken a lock, and no other thread, before the
/// lock becomes biased.
pub const STREAK: u32 = if cfg!(tsumugi_loom) { 1 } else { 1024 };

/// The name of all threads that cannot be owners.
const NAMELESS: usize = 0;
// Special words. Names of owners are addresses, which are even and larger than these.
const CANDIDATE: usize = 1;
const SHARED: usize = 2;
const ENDING: usize = 4;
const NOBODY: usize = 6;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    const ME: usize = 64;
    const OTHER: usize = 128;

    /// Registers the process for barriers: only a registered process may request one.
    fn register() {
        let _ = Fences::of_system();
    }

    #[test]
    fn a_streak_sets_an_owner_until_another_thread_comes() {
        register();
        let bias = Bias::new();
        for _ in 0..STREAK {
            assert!(!bias.note(ME) && !bias.is_of(ME));
        }
        assert!(bias.note(ME) && bias.is_of(ME) && bias.is_inside());
        bias.leave();
        assert!(bias.enter(ME) && !bias.enter(OTHER));
        assert_eq!(bias.end(OTHER, |inside| assert!(inside)), BiasEnd::Inside);
        assert!(bias.is_shared() && !bias.is_still_of(ME));
        assert_eq!(bias.end(OTHER, |_| panic!("the bias has ended")), BiasEnd::Before);
        assert!(!bias.note(ME) && !bias.enter(ME), "a shared bias has no owner again");
    }

    #[test]
    fn two_users_in_turn_share_a_bias_at_once() {
        let bias = Bias::new();
        assert!(!bias.note(ME) && !bias.is_shared());
        assert!(!bias.note(OTHER) && bias.is_shared());
        let unnamed = Bias::new();
        assert!(!unnamed.is_of(NAMELESS) && !unnamed.enter(NAMELESS));
        assert!(!unnamed.note(NAMELESS) && unnamed.is_shared());
        let nameless = Bias::new();
        nameless.claim(NAMELESS);
        assert!(nameless.is_shared());
    }

    #[test]
    fn the_owner_ends_its_bias_without_a_barrier() {
        let bias = Bias::new();
        assert!(bias.claim(ME) && !bias.claim(OTHER));
        assert_eq!(bias.end(ME, |inside| assert!(!inside)), BiasEnd::Outside);
    }
}
