//! The parking lot of a rank, and its waiters: see the module above.

use crate::mem::{AddrError, Rank};
use crate::mutate;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, UnsafeCell, edge, spin_loop};
use crate::wait::{Reason, Wait, WaitFor, Waker};
use core::fmt;
use core::ptr;
use core::time::Duration;

/// The condition for which a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Until {
    /// The word equals this value.
    Equal(u64),
    /// The word no longer equals this value.
    NotEqual(u64),
    /// The word, as a count that wraps, has reached this value.
    AtLeast(u64),
    /// One of these bits is set.
    AnyBit(u64),
}

impl Until {
    /// Whether `value` satisfies the condition.
    #[inline]
    pub const fn holds(self, value: u64) -> bool {
        match self {
            Self::Equal(wanted) => value == wanted,
            Self::NotEqual(old) => value != old,
            Self::AtLeast(wanted) => value.wrapping_sub(wanted) as i64 >= 0,
            Self::AnyBit(mask) => value & mask != 0,
        }
    }

    const fn value(self) -> u64 {
        match self {
            Self::Equal(v) | Self::NotEqual(v) | Self::AtLeast(v) | Self::AnyBit(v) => v,
        }
    }
}

/// The part of a rank's parking lot that notifiers use. All zeroes: no thread waits.
#[repr(C)]
pub struct ParkingLot {
    fired: [AtomicU64; FIRED_WORDS],
    /// 0, or the number of the rank that died first, plus one.
    lost: AtomicU32,
    pub(super) waiting: [AtomicU32; BUCKETS],
    /// 0, or the number of the rank that died last, plus one.
    latest: AtomicU32,
}

/// The parked waiters of a rank. All zeroes: no thread waits.
pub struct Waiters {
    parked: [AtomicPtr<ParkedWaiter>; BUCKETS],
    /// For each bucket the number of waiters that have given up while their nodes
    /// are parked or held by a drainer.
    quitting: [AtomicU32; BUCKETS],
}

/// A waiter. It lies on the waiter's stack from its sleep to its wake, or in a
/// `DetachedWaiter`.
pub(super) struct ParkedWaiter {
    pub(super) next: UnsafeCell<*mut ParkedWaiter>,
    pub(super) word: *const AtomicU64,
    pub(super) until: Until,
    /// [`PARKED`], [`GAVE_UP`] or [`WOKEN`].
    pub(super) state: AtomicU32,
    pub(super) waker: UnsafeCell<Option<Waker>>,
}

impl ParkingLot {
    /// A parking lot without waiters.
    pub fn new() -> Self {
        Self {
            fired: core::array::from_fn(|_| AtomicU64::new(0)),
            lost: AtomicU32::new(0),
            waiting: core::array::from_fn(|_| AtomicU32::new(0)),
            latest: AtomicU32::new(0),
        }
    }

    /// Announces that a sequentially consistent operation has changed the word at
    /// `at`. Returns true if a thread may wait for the word: then the caller must
    /// ring the owner's bells.
    #[inline(always)]
    #[must_use = "on true the owner's bells must be rung"]
    pub fn announce(&self, at: u64) -> bool {
        let bucket = bucket_of(at);
        edge("signal_announce_unordered");
        // SeqCst: after the change of the word; pairs with the increment in
        // `Waiters::enter`.
        self.waiting[bucket].load(Ordering::SeqCst) != 0 && self.fire(bucket)
    }

    /// Ends every wait, present and future, because `rank` has died. The caller must
    /// ring the owner's bells afterwards.
    pub fn break_off(&self, rank: Rank) {
        let word = rank.0 + 1;
        // SeqCst, both: before the words that end the waits. The first dead rank is
        // kept, because a rank that dies later may have ended on account of it.
        let _ = self.lost.compare_exchange(0, word, Ordering::SeqCst, Ordering::SeqCst);
        self.latest.store(word, Ordering::SeqCst);
        for word in &self.fired {
            word.store(u64::MAX, Ordering::SeqCst);
        }
    }

    /// The rank that died first, if any.
    pub fn lost(&self) -> Option<Rank> {
        self.lost.load(Ordering::SeqCst).checked_sub(1).map(Rank)
    }

    /// The rank that died last, if any: if it changes, another rank has died.
    pub fn latest_lost(&self) -> Option<Rank> {
        self.latest.load(Ordering::SeqCst).checked_sub(1).map(Rank)
    }

    /// Whether `drain` has work to do.
    #[inline]
    pub fn has_fired(&self) -> bool {
        self.fired.iter().any(|word| word.load(Ordering::SeqCst) != 0)
    }

    #[cold]
    fn fire(&self, bucket: usize) -> bool {
        self.fired[bucket / 64].fetch_or(1 << (bucket % 64), Ordering::SeqCst);
        true
    }
}

impl Waiters {
    /// A table without waiters.
    pub fn new() -> Self {
        Self {
            parked: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            quitting: core::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    /// Waits until the word satisfies `until`, and returns the value that did.
    /// `word` lies in memory of the parking lot's owner. All writes that the notifier
    /// made before it changed the word are visible afterwards.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if a rank has died while the condition did not hold.
    pub fn wait(
        &self,
        parking_lot: &ParkingLot,
        word: &AtomicU64,
        until: Until,
        wait: &dyn Wait,
    ) -> Result<u64, AddrError> {
        loop {
            if let Some(over) = look(parking_lot, word, until) {
                return over;
            }
            let node = self.enter(parking_lot, word, until);
            // SAFETY: `publish` stores the waker in the node and returns true; only
            // the drainer that takes the node out uses the waker, once.
            unsafe {
                wait.sleep(node.reason(), &mut |waker| self.publish(parking_lot, &node, waker));
            }
        }
    }

    /// Like [`wait`](Self::wait), for at most `limit`. `Ok(None)`: the limit has
    /// passed.
    ///
    /// # Errors
    ///
    /// Those of [`wait`](Self::wait).
    pub fn wait_timeout(
        &self,
        parking_lot: &ParkingLot,
        word: &AtomicU64,
        until: Until,
        wait: &dyn WaitFor,
        limit: Duration,
    ) -> Result<Option<u64>, AddrError> {
        let mut has_quit = false;
        loop {
            if let Some(over) = look(parking_lot, word, until) {
                return over.map(Some);
            }
            if has_quit {
                return Ok(None);
            }
            let node = self.enter(parking_lot, word, until);
            // A waiter that gives up is woken by a drainer like all others, perhaps
            // by its own thread: so the sleep always ends by its waker.
            // SAFETY: as in `wait`; and the waker is never withdrawn.
            let slept = unsafe {
                wait.sleep_for(
                    node.reason(),
                    limit,
                    &mut |waker| self.publish(parking_lot, &node, waker),
                    &mut || {
                        has_quit = true;
                        self.quit(parking_lot, &node);
                        false
                    },
                )
            };
            debug_assert!(slept.is_ok(), "the waker is never withdrawn");
        }
    }

    /// Checks the waiters of all words that were announced, and wakes those with a
    /// condition that holds. Any thread of the owner may call it at any time.
    /// Returns the number of waiters woken.
    pub fn drain(&self, parking_lot: &ParkingLot) -> usize {
        let mut woken = 0;
        for (index, fired) in parking_lot.fired.iter().enumerate() {
            if fired.load(Ordering::SeqCst) == 0 {
                continue;
            }
            // SeqCst: before the loads of the words; pairs with `fire`.
            let mut bits = fired.swap(0, Ordering::SeqCst);
            while bits != 0 {
                let bucket = index * 64 + bits.trailing_zeros() as usize;
                if bucket < BUCKETS {
                    woken += self.drain_bucket(parking_lot, bucket);
                }
                bits &= bits - 1;
            }
        }
        woken
    }

    /// Registers a waiter in the parking lot. The waiter must check the word once more
    /// after it is parked.
    fn enter(&self, parking_lot: &ParkingLot, word: &AtomicU64, until: Until) -> ParkedWaiter {
        let word = &raw const *word;
        // SeqCst: before the check after parking; pairs with `announce`.
        parking_lot.waiting[bucket_of(word as u64)].fetch_add(1, Ordering::SeqCst);
        ParkedWaiter {
            next: UnsafeCell::new(ptr::null_mut()),
            word,
            until,
            state: AtomicU32::new(PARKED),
            waker: UnsafeCell::new(None),
        }
    }

    /// Parks a waiter's node with its waker: the commit of the waiter's sleep.
    fn publish(&self, parking_lot: &ParkingLot, node: &ParkedWaiter, waker: Waker) -> bool {
        // These are copied out of the caller's frame, which may be gone as soon as
        // the node is parked.
        let (this, parking_lot, bucket) = (self, parking_lot, node.bucket());
        let node = (&raw const *node).cast_mut();
        // SAFETY: the node is not parked yet, so no other thread can reach it.
        unsafe { (*node).waker.with_mut(|slot| *slot = Some(waker)) };
        // SAFETY: the node stays at its place until the waker is woken. After this
        // call no memory of the waiter is touched.
        if unsafe { this.park(parking_lot, bucket, node) } {
            this.drain_bucket(parking_lot, bucket);
        }
        true
    }

    /// Ensures that the node of a waiter that gives up is woken soon.
    pub(super) fn quit(&self, parking_lot: &ParkingLot, node: &ParkedWaiter) {
        let bucket = node.bucket();
        // SeqCst: before the state, so that a thread that parks this node again, or
        // another node of the bucket, drains once more; pairs with `park`.
        self.quitting[bucket].fetch_add(1, Ordering::SeqCst);
        let quit = node.state.compare_exchange(PARKED, GAVE_UP, Ordering::SeqCst, Ordering::SeqCst);
        if quit.is_err() {
            // A drainer is about to wake the node.
            self.quitting[bucket].fetch_sub(1, Ordering::SeqCst);
            return;
        }
        self.drain_bucket(parking_lot, bucket);
    }

    /// Parks a node that has its waker. Returns true if the wait may be over
    /// already: a drainer may have checked the bucket before the push, so the caller
    /// must drain.
    ///
    /// # Safety
    ///
    /// The node lives until its waker is woken, and is not parked.
    pub(super) unsafe fn park(
        &self,
        parking_lot: &ParkingLot,
        bucket: usize,
        node: *mut ParkedWaiter,
    ) -> bool {
        // SAFETY: the caller promises a live node. The fields are copied first
        // because the node may be woken and gone once it is pushed.
        let (word, until) = unsafe { ((*node).word, (*node).until) };
        let head = &self.parked[bucket];
        let mut first = head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node is not pushed yet, so only this thread can reach it.
            unsafe { (*node).next.with_mut(|next| *next = first) };
            // SeqCst: before the load of the word below; pairs with `drain`.
            match head.compare_exchange_weak(first, node, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(changed) => first = changed,
            }
        }
        mutate!("signal_no_second_look": {} => return false);
        edge("signal_park_unordered");
        // SAFETY: the word lies in its owner's registered memory, which stays mapped
        // as long as the parking lot does.
        let holds = until.holds(unsafe { (*word).load(Ordering::SeqCst) });
        let quitting = &self.quitting[bucket];
        let quitters =
            mutate!("signal_quitter_unseen": quitting.load(Ordering::SeqCst) != 0 => false);
        holds || quitters || parking_lot.lost().is_some()
    }

    pub(super) fn drain_bucket(&self, parking_lot: &ParkingLot, bucket: usize) -> usize {
        let (mut woken, mut again) = (0, true);
        while again {
            again = false;
            // SeqCst: pairs with `park`; only one drainer gets a node.
            let mut node = self.parked[bucket].swap(ptr::null_mut(), Ordering::SeqCst);
            while !node.is_null() {
                // SAFETY: a node stays valid until it is woken, and only the drainer
                // that took the list wakes its nodes; the word is valid as in
                // `park`.
                let (next, over) = unsafe {
                    let over = (*node).until.holds((*(*node).word).load(Ordering::SeqCst))
                        || (*node).state.load(Ordering::SeqCst) == GAVE_UP;
                    ((*node).next.with(|next| *next), over)
                };
                if over || parking_lot.lost().is_some() {
                    parking_lot.waiting[bucket].fetch_sub(1, Ordering::SeqCst);
                    // SAFETY: the node is valid, as above.
                    if unsafe { (*node).state.swap(WOKEN, Ordering::SeqCst) } == GAVE_UP {
                        self.quitting[bucket].fetch_sub(1, Ordering::SeqCst);
                        // SAFETY: the node is valid, as above.
                        unsafe { (*node).state.store(LEFT, Ordering::SeqCst) };
                    }
                    // SAFETY: the node is valid, as above; the waker was set before
                    // the push.
                    let waker = unsafe { (*node).waker.with_mut(|slot| (*slot).take()) };
                    waker.expect("a parked node has a waker").wake();
                    woken += 1;
                } else {
                    // SAFETY: the node is valid, as above, and it is in no list,
                    // because this drainer has taken it out.
                    again |= unsafe { self.park(parking_lot, bucket, node) };
                }
                node = next;
            }
            if again {
                // A change came in between, or another drainer holds the node of a
                // waiter that gives up and needs a moment.
                spin_loop();
            }
        }
        woken
    }
}

impl ParkedWaiter {
    pub(super) fn bucket(&self) -> usize {
        bucket_of(self.word as u64)
    }

    fn reason(&self) -> Reason {
        Reason { what: "signal", at: self.word as u64, wanted: self.until.value() }
    }
}

/// The result of a wait that is over, `None` if it is not.
pub(super) fn look(
    parking_lot: &ParkingLot,
    word: &AtomicU64,
    until: Until,
) -> Option<Result<u64, AddrError>> {
    // Acquire: pairs with the notifier's change.
    let value = word.load(Ordering::Acquire);
    if until.holds(value) {
        return Some(Ok(value));
    }
    parking_lot.lost().map(|rank| Err(AddrError::PeerLost { rank }))
}

impl Default for ParkingLot {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Waiters {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a node is reached only through `parked`, and only by the thread that took
// it out.
unsafe impl Send for Waiters {}
// SAFETY: the same.
unsafe impl Sync for Waiters {}

impl fmt::Debug for ParkingLot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting: u32 = self.waiting.iter().map(|n| n.load(Ordering::Relaxed)).sum();
        write!(f, "ParkingLot({waiting} waiting)")
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiters")
    }
}

#[inline(always)]
fn bucket_of(at: u64) -> usize {
    if cfg!(tsumugi_loom) {
        // A model must be the same in every execution, at whatever addresses its
        // words lie.
        return 0;
    }
    // Fibonacci hashing: the high bits of the product are well mixed.
    ((at >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKETS.trailing_zeros())) as usize
}

/// The waiter waits.
pub(super) const PARKED: u32 = 0;
/// The waiter has given up; the next drainer that finds the node wakes it.
const GAVE_UP: u32 = 1;
/// The node's waker was used, or will be at once.
pub(super) const WOKEN: u32 = 2;
/// The waiter was woken, and has given up or was left by its owner.
pub(super) const LEFT: u32 = 3;

const BUCKETS: usize = if cfg!(tsumugi_loom) { 2 } else { 512 };
const FIRED_WORDS: usize = BUCKETS.div_ceil(64);

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
