//! Claims that block: each operation is over when it has been carried out, and
//! a claim that waits sleeps until its own word is written.
//!
//! This is also the pattern for whoever has a device in its place: post what
//! [`Claim::poll_op`] gives to one agent, with a notifying completion at the
//! remote end, and hand in what ends.
//!
//! What a lock takes that nobody is in the way of is a dozen instructions, of
//! which each call in between would be some: all the way down to the word it
//! is one function where code is optimised. Where it is not, such a function
//! would take many kilobytes of a ULT's stack, and each step is a call.

use super::claim::Kept;
use super::{Carries, Claim, Ended, Lock, Mode, NodeId, Standing};
use core::time::Duration;
use tsumugi_core::mem::{AddrError, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::signal::Until;

/// How a rank's claims get things done.
pub trait Means {
    /// Carries an operation out, with remote completion.
    ///
    /// # Errors
    ///
    /// [`AddrError`].
    fn carry(&self, op: &Op) -> Result<u64, AddrError>;

    /// The same, in the name of a claim: if its caller will never go on, the claim is
    /// to be [passed on](pass_on), with what the operation comes to.
    ///
    /// # Errors
    ///
    /// Those of [`carry`](Self::carry).
    fn carry_as(&self, _claim: &Claim, op: &Op) -> Result<u64, AddrError> {
        self.carry(op)
    }

    /// Adds to a word that the caller's processor can change at once.
    /// `None`: it cannot, and nothing has happened.
    fn try_add(&self, _at: RemoteAddr, _delta: u64) -> Option<u64> {
        None
    }

    /// The same, for a word that becomes `new` if it is `expected`.
    fn try_swap(&self, _at: RemoteAddr, _expected: u64, _new: u64) -> Option<u64> {
        None
    }

    /// Waits until the own word at `at` satisfies `until`; what it is then.
    /// With a limit for that long at most: `None` if it has passed.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`], which names a rank that died.
    fn wait(
        &self,
        at: RemoteAddr,
        until: Until,
        limit: Option<Duration>,
    ) -> Result<Option<u64>, AddrError>;

    /// The same, in the name of a claim: if whoever waits will never go on, it is
    /// to be [passed on](pass_on).
    ///
    /// # Errors
    ///
    /// Those of [`wait`](Self::wait).
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
#[must_use = "a lock that is not given back is held for ever"]
pub struct Held {
    mode: Mode,
    /// `None`: one operation was enough.
    kept: Option<Kept>,
}

/// Others have the lock. The node that was given is to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which.
    pub node: NodeId,
    /// Whether it is to be released as one that was left in a queue.
    pub has_left: bool,
}

/// Waits until the caller has the lock. If nobody is in the way, that is one
/// operation, where the lock's kind has one; only otherwise it asks for a
/// `node`, for the claim that is given: where that waits, and its caller will never
/// go on, a claim that is a [blocked reader](Claim::is_blocked_reader) is to be
/// [passed on](pass_on). Blocking.
///
/// # Errors
///
/// [`AddrError`]: a rank died, or the lock's words are gone. The node, if one
/// was given, is of no use until the next epoch.
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

/// Takes the lock if nobody is in the way. Lock-free.
///
/// # Errors
///
/// As of [`lock`].
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
/// As of [`lock`].
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
    /// What was had by one operation, and nothing is to be remembered of.
    #[inline]
    pub const fn alone(mode: Mode) -> Self {
        Self { mode, kept: None }
    }

    /// As what it is held.
    #[inline]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether one operation was enough.
    #[inline]
    pub const fn is_alone(&self) -> bool {
        self.kept.is_none()
    }

    /// Gives back the lock, which is the one that was asked for. What was done
    /// under it has completed. Returns the node, if it had one, to be released.
    /// Lock-free, as long as nobody has left a queue.
    ///
    /// # Errors
    ///
    /// As of [`lock`].
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
        let kept = self.kept.expect("it had more than one operation");
        let mut claim = Claim::kept(*lock, self.mode, kept);
        claim.release();
        run(means, &mut claim, None)?;
        Ok(Some(claim.node()))
    }
}

/// The last operation of what was had by one, if there was none yet, and what
/// others wait for.
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

/// Ends a claim whose owner asked for the lock, or was giving it back, and never
/// goes on: it leaves, or gives back what it has come to hold. `result` is that of
/// the operation that was under way, if one was. A claim that has to wait and has no
/// node gets one. The one that it had then, if any, is to be released. Blocking.
///
/// # Errors
///
/// As of [`lock`].
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
            // The lock knows nothing of it.
            return Ok(None);
        }
        claim.waits_in(node());
    }
    // False: it does not wait, and does so for no time where it would.
    claim.leave();
    let ended = run(means, &mut claim, Some(Duration::ZERO))?;
    if ended.is_none() {
        claim.release();
        run(means, &mut claim, None)?;
    }
    let has_left = ended == Some(Ended::Left { in_queue: true });
    Ok((claim.node() != NodeId::NONE).then(|| Refused { node: claim.node(), has_left }))
}

/// Carries out the operation that comes next, if there is one.
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
        let (at, until) = claim.waits_for().expect("it waits, or has something to do");
        match means.wait_as(claim, at, until, limit) {
            Ok(Some(value)) => claim.handle_word(value),
            Ok(None) => {
                // Once: the word decides, if it was written meanwhile.
                limit = None;
                claim.leave();
            }
            Err(AddrError::PeerLost { rank }) => claim.handle_lost(rank),
            Err(error) => return Err(error),
        }
    }
}
