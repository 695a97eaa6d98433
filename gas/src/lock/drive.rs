//! Claims that block: each operation returns when it has been carried out, and a
//! claim that waits sleeps until its own word is written.
//!
//! A caller that uses a device instead follows the same pattern: it posts the
//! operations of [`LockClaim::poll_op`] to one agent, with a notifying completion at the
//! remote end, and hands in the completions.
//!
//! A lock without contention takes a dozen instructions, and each function call
//! would add some. So in optimised code all of it, down to the atomic on the word,
//! is inlined into one function. In code that is not optimised, such a function
//! would take many kilobytes of a ULT's stack, and each step is a call.

use super::claim::{ClaimEnd, ClaimStatus, KeptClaim, LockClaim};
use super::kind::LockMode;
use super::node::NodeId;
use super::words::{Lock, WordOps};
use core::time::Duration;
use tsumugi_core::mem::{AddrError, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::signal::Until;

/// How a rank's claims carry out operations and wait.
pub trait LockDriver {
    /// Carries out an operation, with remote completion.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the rank of the word has died; another [`AddrError`]
    /// if the word is out of reach, for example [`AddrError::StaleKey`] if its memory
    /// was unregistered.
    fn carry(&self, op: &Op) -> Result<u64, AddrError>;

    /// Carries out an operation for a claim. If the caller will never go on, the
    /// claim is to be [passed on](pass_on), with the result of the operation.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the rank of the word has died; another [`AddrError`]
    /// if the word is out of reach.
    fn carry_as(&self, _claim: &LockClaim, op: &Op) -> Result<u64, AddrError> {
        self.carry(op)
    }

    /// Adds to a word that the caller's processor can change at once. `None`: the
    /// processor cannot, and nothing has happened.
    fn try_add(&self, _at: RemoteAddr, _delta: u64) -> Option<u64> {
        None
    }

    /// Changes such a word from `expected` to `new`, by a compare-and-swap.
    fn try_swap(&self, _at: RemoteAddr, _expected: u64, _new: u64) -> Option<u64> {
        None
    }

    /// Waits until the own word at `at` satisfies `until`, and returns its value
    /// then. With a limit, it waits for that long at most, and returns `None` if the
    /// limit has passed.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if a rank has died, which the error names; another
    /// [`AddrError`] if the word is not one to wait for.
    fn wait(
        &self,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError>;

    /// Waits for a claim. If the caller will never go on, the claim is to be
    /// [passed on](pass_on).
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if a rank has died, which the error names; another
    /// [`AddrError`] if the word is not one to wait for.
    fn wait_as(
        &self,
        _claim: &LockClaim,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        self.wait(at, until, limit)
    }
}

struct LocalOps<'m, M>(&'m M);

impl<M: LockDriver> WordOps for LocalOps<'_, M> {
    type Ended = Option<u64>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn adds(&self, at: RemoteAddr, delta: u64) -> Self::Ended {
        self.0.try_add(at, delta)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn swaps(&self, at: RemoteAddr, expected: u64, new: u64) -> Self::Ended {
        self.0.try_swap(at, expected, new)
    }
}

/// A lock that is held.
#[derive(Debug)]
#[must_use = "a lock that is not released stays held"]
pub struct HeldLock {
    mode: LockMode,
    /// `None`: the lock was taken by one operation.
    kept: Option<KeptClaim>,
}

/// Others have the lock. The caller must release the node that it gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRefused {
    /// The node to release.
    pub node: NodeId,
    /// Whether the node must be released as left in a queue.
    pub has_left: bool,
}

/// Waits until the caller has the lock. Without contention that is one operation, if
/// the lock's kind has such an operation; otherwise it calls `node` for a node, with
/// the claim that needs it. If `node` waits, and the caller will never go on, a
/// claim that is a [blocked reader](LockClaim::is_blocked_reader) is to be
/// [passed on](pass_on). Blocking.
///
/// # Errors
///
/// [`AddrError::PeerLost`] if a rank has died that the claim needs, or any rank while
/// the claim waits; another [`AddrError`] if the words of the lock or of a node are out
/// of reach. The node, if `node` returned one, must not be used until the next epoch.
#[cfg_attr(not(debug_assertions), inline(always))]
pub fn lock(
    means: &impl LockDriver,
    lock: &Lock,
    mode: LockMode,
    node: impl FnOnce(&LockClaim) -> NodeId,
) -> Result<HeldLock, AddrError> {
    match lock.first(mode, &LocalOps(means)).flatten() {
        Some(old) if lock.has(mode, old) => Ok(HeldLock::alone(mode)),
        found => claims(means, lock, mode, node, found),
    }
}

#[cold]
#[inline(never)]
fn claims(
    means: &impl LockDriver,
    lock: &Lock,
    mode: LockMode,
    node: impl FnOnce(&LockClaim) -> NodeId,
    found: Option<u64>,
) -> Result<HeldLock, AddrError> {
    let mut claim = LockClaim::new(*lock, NodeId::NONE);
    match found {
        Some(old) => claim.begin_found(mode, old),
        None => claim.begin(mode),
    }
    if !claim.lacks_node() {
        // One operation may be enough.
        step(means, &mut claim);
    }
    if claim.lacks_node() {
        let node = node(&claim);
        claim.waits_in(node);
    }
    run(means, &mut claim, None)?;
    let kept = (claim.node() != NodeId::NONE).then(|| claim.keep());
    Ok(HeldLock { mode, kept })
}

/// Takes the lock if no other claim is in the way. Lock-free.
///
/// # Errors
///
/// [`AddrError::PeerLost`] if a rank has died that the claim needs; another
/// [`AddrError`] if the words of the lock or of the node are out of reach. The node must
/// not be used until the next epoch.
pub fn try_lock(
    means: &impl LockDriver,
    lock: &Lock,
    mode: LockMode,
    node: NodeId,
) -> Result<Result<HeldLock, LockRefused>, AddrError> {
    let mut claim = LockClaim::new(*lock, node);
    claim.begin_try(mode);
    asks(means, mode, claim, None)
}

/// Waits for the lock for `limit` at most. Blocking.
///
/// # Errors
///
/// [`AddrError::PeerLost`] if a rank has died that the claim needs, or any rank while
/// the claim waits; another [`AddrError`] if the words of the lock or of a node are out
/// of reach. The node must not be used until the next epoch.
pub fn lock_timeout(
    means: &impl LockDriver,
    lock: &Lock,
    mode: LockMode,
    limit: Duration,
    node: NodeId,
) -> Result<Result<HeldLock, LockRefused>, AddrError> {
    let mut claim = LockClaim::new(*lock, node);
    claim.begin(mode);
    asks(means, mode, claim, Some(limit))
}

fn asks(
    means: &impl LockDriver,
    mode: LockMode,
    mut claim: LockClaim,
    limit: Option<Duration>,
) -> Result<Result<HeldLock, LockRefused>, AddrError> {
    Ok(match run(means, &mut claim, limit)? {
        None => Ok(HeldLock { mode, kept: Some(claim.keep()) }),
        Some(ended) => {
            let has_left = ended == ClaimEnd::Left { in_queue: true };
            Err(LockRefused { node: claim.node(), has_left })
        }
    })
}

impl HeldLock {
    /// A lock that was taken by one operation, so that nothing has to be kept.
    #[inline]
    pub const fn alone(mode: LockMode) -> Self {
        Self { mode, kept: None }
    }

    /// The mode in which the lock is held.
    #[inline]
    pub const fn mode(&self) -> LockMode {
        self.mode
    }

    /// Whether the lock was taken by one operation.
    #[inline]
    pub const fn is_alone(&self) -> bool {
        self.kept.is_none()
    }

    /// Gives back the lock, which must be the one that was taken. Operations under
    /// the lock must have completed. Returns the node, if the claim had one; the
    /// caller must release it. Lock-free, as long as no claim has left a queue.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if a rank has died that the claim needs, or any rank
    /// while the claim waits; another [`AddrError`] if the words of the lock or of a
    /// node are out of reach. The node of the claim, if it had one, must not be used
    /// until the next epoch.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn unlock(self, means: &impl LockDriver, lock: &Lock) -> Result<Option<NodeId>, AddrError> {
        let Self { mode, kept: None } = self else { return self.lets_go(means, lock) };
        match lock.last(mode, &LocalOps(means)).flatten() {
            Some(old) if lock.is_given_back(mode, old) => Ok(None),
            last => gives_back(means, lock, mode, last),
        }
    }

    #[cold]
    #[inline(never)]
    fn lets_go(self, means: &impl LockDriver, lock: &Lock) -> Result<Option<NodeId>, AddrError> {
        let kept = self.kept.expect("a claim of several operations is kept");
        let mut claim = LockClaim::kept(*lock, self.mode, kept);
        claim.release();
        run(means, &mut claim, None)?;
        Ok(Some(claim.node()))
    }
}

/// Gives back a lock that was taken by one operation: carries out the last
/// operation, if `last` does not have its result, and wakes the claims that wait.
#[cold]
#[inline(never)]
fn gives_back(
    means: &impl LockDriver,
    lock: &Lock,
    mode: LockMode,
    last: Option<u64>,
) -> Result<Option<NodeId>, AddrError> {
    let mut claim = LockClaim::kept(*lock, mode, KeptClaim::ALONE);
    match last {
        Some(old) => {
            claim = LockClaim::new(*lock, NodeId::NONE);
            claim.release_found(mode, old);
        }
        None => claim.release(),
    }
    run(means, &mut claim, None)?;
    Ok(None)
}

/// Ends a claim of a caller that asked for the lock, or was giving it back, and
/// never goes on: the claim leaves, or gives back the lock if it gets it. `result`
/// is that of the operation that was under way, if there was one. A claim that has
/// to wait and has no node gets one from `node`. The caller must release the node
/// that is returned, if any. Blocking.
///
/// # Errors
///
/// [`AddrError::PeerLost`] if a rank has died that the claim needs, or any rank while
/// the claim waits; another [`AddrError`] if the words of the lock or of a node are out
/// of reach. The node of the claim, if it had one, must not be used until the next
/// epoch.
pub fn pass_on(
    means: &impl LockDriver,
    mut claim: LockClaim,
    result: Option<Result<u64, AddrError>>,
    node: impl FnOnce() -> NodeId,
) -> Result<Option<LockRefused>, AddrError> {
    if let (Some(id), Some(result)) = (claim.under_way(), result) {
        claim.handle_completed(id, result);
    }
    if claim.lacks_node() {
        if !claim.is_blocked_reader() {
            // The lock does not count the claim.
            return Ok(None);
        }
        claim.waits_in(node());
    }
    // False: the claim does not wait. If it has to wait later, it does so with a
    // limit of zero.
    claim.leave();
    let ended = run(means, &mut claim, Some(Duration::ZERO))?;
    if ended.is_none() {
        claim.release();
        run(means, &mut claim, None)?;
    }
    let has_left = ended == Some(ClaimEnd::Left { in_queue: true });
    Ok((claim.node() != NodeId::NONE).then(|| LockRefused { node: claim.node(), has_left }))
}

/// Carries out the next operation, if there is one. Returns whether there was one.
fn step(means: &impl LockDriver, claim: &mut LockClaim) -> bool {
    let Some((id, op)) = claim.poll_op() else { return false };
    let result = means.carry_as(claim, &op);
    claim.handle_completed(id, result);
    true
}

/// Runs a claim until it holds the lock or rests.
fn run(
    means: &impl LockDriver,
    claim: &mut LockClaim,
    mut limit: Option<Duration>,
) -> Result<Option<ClaimEnd>, AddrError> {
    loop {
        while step(means, claim) {}
        match claim.standing() {
            ClaimStatus::Held => return Ok(None),
            ClaimStatus::Resting(ended) => return Ok(Some(ended)),
            ClaimStatus::Failed(error) => return Err(error),
            ClaimStatus::Asking | ClaimStatus::Going => {}
        }
        let (at, until) = claim.waits_for().expect("a claim without an operation waits");
        match means.wait_as(claim, at, until, limit) {
            Ok(Some(value)) => claim.handle_word(value),
            Ok(None) => {
                // Only once: after that the word decides, if it was written
                // meanwhile.
                limit = None;
                claim.leave();
            }
            Err(AddrError::PeerLost { rank }) => claim.handle_lost(rank),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
