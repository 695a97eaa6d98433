//! What one thread does without atomic instructions, as long as it is alone.
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
//! One of the two sees the other ([`Fences`]): the thread finds that it has to
//! use atomic instructions, or the other that the thread is inside, and waits
//! in whatever way suits. The fence costs the other a barrier on all
//! processors, microseconds, but once: a bias that was ended never comes back.
//!
//! Who is meant is a word that no other thread has at the time: for a worker,
//! the address of its seat. A later worker that has the same address has it
//! from an allocator that has it from the one before, and so sees all that that
//! one did.
//!
//! The park words of a scheduler of one worker have a bias from the beginning;
//! a lock gets one when one thread has taken it [`STREAK`] times and nobody
//! else ever has. So whoever ends it has paid back a barrier by that many
//! lighter lockings.
//!
//! Progress: all calls are wait-free, but [`end_and_wait`](Bias::end_and_wait),
//! which blocks the first time while the thread is inside.
//!
//! # References
//!
//! - Kawachiya, Koseki, Onodera: Lock Reservation: Java Locks Can Mostly Do
//!   Without Atomic Operations. OOPSLA 2002.
//! - Dice, Moir, Scherer: Quickly Reacquirable Locks. 2003.

use crate::fences::Fences;
use crate::futex::os_yield;
use core::fmt;
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering, mutant};

/// Whose something is.
pub struct Bias<I = AtomicBool> {
    owner: AtomicUsize,
    /// Written by the owner.
    inside: I,
    /// How often in a row the same one came; written by whoever has the lock.
    streak: AtomicU32,
}

/// Where the owner says whether it is inside, perhaps in a word that it writes
/// in any case. `go_in` and `leave` are the owner's.
pub trait Inside {
    /// The owner is inside.
    fn go_in(&self);

    /// It is outside. Releases what it did.
    fn leave(&self);

    /// Whether it is inside; if not, what it did is seen. Any thread.
    fn has_owner(&self) -> bool;
}

impl Inside for AtomicBool {
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

/// What the end of a bias found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was nobody's, or has ended before.
    Before,
    /// The owner is not inside, and will not be.
    Outside,
    /// The owner is inside, or just finds out that it may not be.
    Inside,
}

impl Bias {
    /// Nobody's yet.
    #[cfg(not(tsumugi_loom))]
    pub const fn new() -> Self {
        Self {
            owner: AtomicUsize::new(NOBODY),
            inside: AtomicBool::new(false),
            streak: AtomicU32::new(0),
        }
    }

    /// Nobody's yet.
    #[cfg(tsumugi_loom)]
    pub fn new() -> Self {
        Self {
            owner: AtomicUsize::new(NOBODY),
            inside: AtomicBool::new(false),
            streak: AtomicU32::new(0),
        }
    }
}

impl<I: Inside> Bias<I> {
    /// Nobody's yet; who owns it goes in and out there.
    pub(crate) fn through(inside: I) -> Self {
        Self { owner: AtomicUsize::new(NOBODY), inside, streak: AtomicU32::new(0) }
    }

    /// Where the owner goes in and out.
    #[inline(always)]
    pub(crate) fn inside(&self) -> &I {
        &self.inside
    }

    /// Whether everybody uses atomic instructions, for good.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.owner.load(Ordering::Acquire) == SHARED
    }

    /// Whether it is this thread's; no owner has the name 0.
    #[inline(always)]
    pub fn is_of(&self, me: usize) -> bool {
        self.owner.load(Ordering::Relaxed) == me
    }

    /// Whether it is some thread's, or was until just now.
    pub fn is_taken(&self) -> bool {
        // Acquire: as in `is_shared`, which this may be the first to find.
        let owner = self.owner.load(Ordering::Acquire);
        is_name(owner) || owner == ENDING
    }

    /// Whether the owner is inside. By the owner.
    #[inline(always)]
    pub fn is_inside(&self) -> bool {
        self.inside.has_owner()
    }

    /// Goes inside, if it is this thread's.
    #[inline(always)]
    pub fn enter(&self, me: usize) -> bool {
        self.is_of(me) && self.go_in(me)
    }

    /// Goes inside what was this thread's a moment ago, if it still is.
    #[inline(always)]
    pub fn go_in(&self, me: usize) -> bool {
        self.inside.go_in();
        self.may_stay(me)
    }

    /// After the caller said that it is inside: whether it is this thread's. If
    /// not, it is outside again.
    #[inline(always)]
    pub(crate) fn may_stay(&self, me: usize) -> bool {
        if self.is_still_of(me) {
            return true;
        }
        self.leave();
        false
    }

    /// Goes outside.
    #[inline(always)]
    pub fn leave(&self) {
        self.inside.leave();
    }

    /// Whether it is still this thread's, after it has gone in or out: if not,
    /// others may have seen it inside.
    #[inline(always)]
    pub fn is_still_of(&self, me: usize) -> bool {
        if !mutant("bias_no_light") {
            // Pairs with the heavy half in `look_inside`.
            Fences::LIGHTEST.light();
        }
        self.is_of(me)
    }

    /// Makes it this thread's, if it was nobody's; of a thread that has no
    /// name, all threads'. Before anybody relies on it.
    pub fn claim(&self, me: usize) -> bool {
        let new = if me == NAMELESS { SHARED } else { me };
        // Relaxed: it is this thread's own; others end it first.
        self.owner.compare_exchange(NOBODY, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Notes that this thread took the lock that this is the bias of, which
    /// keeps others from being here. True: it is this thread's from now on,
    /// which is inside.
    #[cold]
    pub fn note(&self, me: usize) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        let candidate = me | CANDIDATE;
        // Only the end of a bias comes in between, and that is for good.
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
        // Release, as the end of a bias takes what was done inside: pairs with
        // the exchange in `end`.
        let claimed =
            self.owner.compare_exchange(candidate, me, Ordering::Release, Ordering::Relaxed);
        if claimed.is_err() {
            self.leave();
        }
        claimed.is_ok()
    }

    /// Ends the bias; `me` is the caller, who has no need of a barrier if it
    /// is its own. Of several that come at once, one hears of it, and is called
    /// back, with whether the owner is inside, before anybody uses atomic
    /// instructions in the owner's place: what those find there is then right.
    pub fn end(&self, me: usize, prepare: impl FnOnce(bool)) -> Ended {
        let mut owner = self.owner.load(Ordering::Relaxed);
        loop {
            if matches!(owner, SHARED | ENDING) {
                return Ended::Before;
            }
            let next = if is_name(owner) { ENDING } else { SHARED };
            // Acquire: pairs with the Release in `note`.
            match self.owner.compare_exchange(owner, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) if next == SHARED => return Ended::Before,
                Ok(_) => break,
                Err(changed) => owner = changed,
            }
        }
        let inside = if owner == me { self.is_inside() } else { self.look_inside() };
        let is_early = mutant("bias_shared_early");
        if is_early {
            self.owner.store(SHARED, Ordering::Release);
        }
        prepare(inside);
        if !is_early {
            // Release: pairs with the Acquire in `is_shared` and
            // `end_and_wait`: what was prepared is seen.
            self.owner.store(SHARED, Ordering::Release);
        }
        if inside { Ended::Inside } else { Ended::Outside }
    }

    /// Ends the bias and waits until its owner is outside. By any other
    /// thread, before it uses atomic instructions.
    #[inline]
    pub fn end_and_wait(&self) {
        // Acquire: pairs with the Release below: plain stores are seen.
        if self.owner.load(Ordering::Acquire) != SHARED {
            self.end_for_good();
        }
    }

    #[cold]
    fn end_for_good(&self) {
        // Two may be here: each waits for itself. What is shared stays so.
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

    /// After the end found the owner inside: waits until it is not.
    pub fn wait_outside(&self) {
        while self.inside.has_owner() && !mutant("bias_no_wait") {
            os_yield();
        }
    }

    fn look_inside(&self) -> bool {
        if !mutant("bias_no_heavy") {
            // Pairs with the light half in `is_still_of`.
            Fences::LIGHTEST.heavy();
        }
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
            owner if is_name(owner) => "Bias(one thread's)",
            _ => "Bias(nobody's)",
        })
    }
}

/// Whether a word is a thread, and not one that may become the owner.
fn is_name(owner: usize) -> bool {
    !matches!(owner, NOBODY | SHARED | ENDING) && owner & CANDIDATE == 0
}

/// How often one thread must have taken a lock that nobody else has, before it
/// is biased.
pub const STREAK: u32 = if cfg!(tsumugi_loom) { 1 } else { 1024 };

/// The name of all threads that can be no owners.
const NAMELESS: usize = 0;
// Words that are no addresses, which are even and larger than these.
const CANDIDATE: usize = 1;
const SHARED: usize = 2;
const ENDING: usize = 4;
const NOBODY: usize = 6;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    const ME: usize = 64;
    const OTHER: usize = 128;

    /// A barrier is for those who have said that they will ask for some.
    fn register() {
        let _ = Fences::of_system();
    }

    #[test]
    fn a_streak_makes_it_ones_own_until_another_comes() {
        register();
        let bias = Bias::new();
        for _ in 0..STREAK {
            assert!(!bias.note(ME) && !bias.is_of(ME));
        }
        assert!(bias.note(ME) && bias.is_of(ME) && bias.is_inside());
        bias.leave();
        assert!(bias.enter(ME) && !bias.enter(OTHER));
        assert_eq!(bias.end(OTHER, |inside| assert!(inside)), Ended::Inside);
        assert!(bias.is_shared() && !bias.is_still_of(ME));
        assert_eq!(bias.end(OTHER, |_| panic!("it has ended")), Ended::Before);
        assert!(!bias.note(ME) && !bias.enter(ME), "never again");
    }

    #[test]
    fn two_in_turn_share_it_at_once() {
        let bias = Bias::new();
        assert!(!bias.note(ME) && !bias.is_shared());
        assert!(!bias.note(OTHER) && bias.is_shared());
        let nobodys = Bias::new();
        assert!(!nobodys.is_of(NAMELESS) && !nobodys.enter(NAMELESS));
        assert!(!nobodys.note(NAMELESS) && nobodys.is_shared());
        let nameless = Bias::new();
        nameless.claim(NAMELESS);
        assert!(nameless.is_shared());
    }

    #[test]
    fn ones_own_end_needs_no_barrier() {
        let bias = Bias::new();
        assert!(bias.claim(ME) && !bias.claim(OTHER));
        assert_eq!(bias.end(ME, |inside| assert!(!inside)), Ended::Outside);
    }
}
