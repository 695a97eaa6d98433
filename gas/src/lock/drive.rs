//! Claims that block: each operation returns when it has been carried out, and a
//! claim that waits sleeps until its own word is written.
//!
//! A caller that uses a device instead follows the same pattern: it posts the
//! operations of [`Claim::poll_op`] to one agent, with a notifying completion at the
//! remote end, and hands in the completions.
//!
//! A lock without contention takes a dozen instructions, and each function call
//! would add some. So in optimised code all of it, down to the atomic on the word,
//! is inlined into one function. In code that is not optimised, such a function
//! would take many kilobytes of a ULT's stack, and each step is a call.

use super::claim::{Claim, Ended, Kept, Standing};
use super::kind::Mode;
use super::node::NodeId;
use super::words::{Carries, Lock};
use core::time::Duration;
use tsumugi_core::mem::{AddrError, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::signal::Until;

/// How a rank's claims carry out operations and wait.
pub trait Means {
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
    fn carry_as(&self, _claim: &Claim, op: &Op) -> Result<u64, AddrError> {
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
        _claim: &Claim,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError> {
        self.wait(at, until, limit)
    }
}

struct AtOnce<'m, M>(&'m M);

impl<M: Means> Carries for AtOnce<'_, M> {
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
pub struct Held {
    mode: Mode,
    /// `None`: the lock was taken by one operation.
    kept: Option<Kept>,
}

/// Others have the lock. The caller must release the node that it gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The node to release.
    pub node: NodeId,
    /// Whether the node must be released as left in a queue.
    pub has_left: bool,
}

/// Waits until the caller has the lock. Without contention that is one operation, if
/// the lock's kind has such an operation; otherwise it calls `node` for a node, with
/// the claim that needs it. If `node` waits, and the caller will never go on, a
/// claim that is a [blocked reader](Claim::is_blocked_reader) is to be
/// [passed on](pass_on). Blocking.
///
/// # Errors
///
/// [`AddrError::PeerLost`] if a rank has died that the claim needs, or any rank while
/// the claim waits; another [`AddrError`] if the words of the lock or of a node are out
/// of reach. The node, if `node` returned one, must not be used until the next epoch.
#[cfg_attr(not(debug_assertions), inline(always))]
pub fn lock(
    means: &impl Means,
    lock: &Lock,
    mode: Mode,
    node: impl FnOnce(&Claim) -> NodeId,
) -> Result<Held, AddrError> {
    match lock.first(mode, &AtOnce(means)).flatten() {
        Some(old) if lock.has(mode, old) => Ok(Held::alone(mode)),
        found => claims(means, lock, mode, node, found),
    }
}

#[cold]
#[inline(never)]
fn claims(
    means: &impl Means,
    lock: &Lock,
    mode: Mode,
    node: impl FnOnce(&Claim) -> NodeId,
    found: Option<u64>,
) -> Result<Held, AddrError> {
    let mut claim = Claim::new(*lock, NodeId::NONE);
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
    Ok(Held { mode, kept })
}

/// Takes the lock if no other claim is in the way. Lock-free.
///
/// # Errors
///
/// [`AddrError::PeerLost`] if a rank has died that the claim needs; another
/// [`AddrError`] if the words of the lock or of the node are out of reach. The node must
/// not be used until the next epoch.
pub fn try_lock(
    means: &impl Means,
    lock: &Lock,
    mode: Mode,
    node: NodeId,
) -> Result<Result<Held, Refused>, AddrError> {
    let mut claim = Claim::new(*lock, node);
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
pub fn lock_within(
    means: &impl Means,
    lock: &Lock,
    mode: Mode,
    limit: Duration,
    node: NodeId,
) -> Result<Result<Held, Refused>, AddrError> {
    let mut claim = Claim::new(*lock, node);
    claim.begin(mode);
    asks(means, mode, claim, Some(limit))
}

fn asks(
    means: &impl Means,
    mode: Mode,
    mut claim: Claim,
    limit: Option<Duration>,
) -> Result<Result<Held, Refused>, AddrError> {
    Ok(match run(means, &mut claim, limit)? {
        None => Ok(Held { mode, kept: Some(claim.keep()) }),
        Some(ended) => {
            let has_left = ended == Ended::Left { in_queue: true };
            Err(Refused { node: claim.node(), has_left })
        }
    })
}

impl Held {
    /// A lock that was taken by one operation, so that nothing has to be kept.
    #[inline]
    pub const fn alone(mode: Mode) -> Self {
        Self { mode, kept: None }
    }

    /// The mode in which the lock is held.
    #[inline]
    pub const fn mode(&self) -> Mode {
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
    pub fn unlock(self, means: &impl Means, lock: &Lock) -> Result<Option<NodeId>, AddrError> {
        let Self { mode, kept: None } = self else { return self.lets_go(means, lock) };
        match lock.last(mode, &AtOnce(means)).flatten() {
            Some(old) if lock.is_given_back(mode, old) => Ok(None),
            last => gives_back(means, lock, mode, last),
        }
    }

    #[cold]
    #[inline(never)]
    fn lets_go(self, means: &impl Means, lock: &Lock) -> Result<Option<NodeId>, AddrError> {
        let kept = self.kept.expect("a claim of several operations is kept");
        let mut claim = Claim::kept(*lock, self.mode, kept);
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
    means: &impl Means,
    lock: &Lock,
    mode: Mode,
    last: Option<u64>,
) -> Result<Option<NodeId>, AddrError> {
    let mut claim = Claim::kept(*lock, mode, Kept::ALONE);
    match last {
        Some(old) => {
            claim = Claim::new(*lock, NodeId::NONE);
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
    means: &impl Means,
    mut claim: Claim,
    result: Option<Result<u64, AddrError>>,
    node: impl FnOnce() -> NodeId,
) -> Result<Option<Refused>, AddrError> {
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
    let has_left = ended == Some(Ended::Left { in_queue: true });
    Ok((claim.node() != NodeId::NONE).then(|| Refused { node: claim.node(), has_left }))
}

/// Carries out the next operation, if there is one. Returns whether there was one.
fn step(means: &impl Means, claim: &mut Claim) -> bool {
    let Some((id, op)) = claim.poll_op() else { return false };
    let result = means.carry_as(claim, &op);
    claim.handle_completed(id, result);
    true
}

/// Runs a claim until it holds the lock or rests.
fn run(
    means: &impl Means,
    claim: &mut Claim,
    mut limit: Option<Duration>,
) -> Result<Option<Ended>, AddrError> {
    loop {
        while step(means, claim) {}
        match claim.standing() {
            Standing::Held => return Ok(None),
            Standing::Resting(ended) => return Ok(Some(ended)),
            Standing::Failed(error) => return Err(error),
            Standing::Asking | Standing::Going => {}
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
