//! Claims that block, where all memory can be loaded and stored: each
//! operation is carried out at once, and a claim that waits sleeps until its
//! own word is written.
//!
//! This is also the pattern for whoever has a device in its place: post what
//! [`Claim::poll_op`] gives to one agent, with a notifying completion at the
//! remote end, and hand in what ends.

use super::claim::Kept;
use super::{Claim, Ended, Lock, Mode, NodeId, Standing};
use core::time::Duration;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::coll::Part;
use tsumugi_core::mem::{AddrError, LocalAddr, RemoteAddr};
use tsumugi_core::signal::Until;
use tsumugi_core::sync::AtomicU64;
use tsumugi_core::wait::WaitFor;

/// A lock that is held.
#[derive(Debug)]
#[must_use = "a lock that is not given back is held for ever"]
pub struct Held<'l> {
    lock: &'l Lock,
    mode: Mode,
    /// `None`: one operation was enough.
    kept: Option<Kept>,
}

/// Waits until the caller has the lock. If nobody is in the way, that is one
/// operation, where the lock's kind has one; only otherwise it asks for a
/// `node`. Blocking.
///
/// # Errors
///
/// [`AddrError`]: a rank died, or the lock's words are gone. The node, if one
/// was given, is of no use until the next epoch.
#[inline]
pub fn lock<'l, L: LoadStore + ?Sized>(
    part: &Part<'_, L>,
    lock: &'l Lock,
    mode: Mode,
    node: impl FnOnce() -> NodeId,
) -> Result<Held<'l>, AddrError> {
    let found = match lock.first_op(mode) {
        Some(op) => Some(part.carry(&op)?),
        None => None,
    };
    if let Some(old) = found
        && lock.has(mode, old)
    {
        return Ok(Held { lock, mode, kept: None });
    }
    let kept = claims(part, lock, mode, node(), found)?;
    Ok(Held { lock, mode, kept: Some(kept) })
}

#[cold]
fn claims<L: LoadStore + ?Sized>(
    part: &Part<'_, L>,
    lock: &Lock,
    mode: Mode,
    node: NodeId,
    found: Option<u64>,
) -> Result<Kept, AddrError> {
    let mut claim = Claim::new(*lock, node);
    match found {
        Some(old) => claim.begin_found(mode, old),
        None => claim.begin(mode),
    }
    run(part, &mut claim, None)?;
    Ok(claim.keep())
}

impl Held<'_> {
    /// Gives the lock back. What was done under it has completed. Returns the
    /// node, if it had one, to be released. Lock-free, as long as nobody has
    /// left a queue.
    ///
    /// # Errors
    ///
    /// As of [`lock`].
    #[inline]
    pub fn unlock<L: LoadStore + ?Sized>(
        self,
        part: &Part<'_, L>,
    ) -> Result<Option<NodeId>, AddrError> {
        let Self { lock, mode, kept } = self;
        match (kept, lock.last_op(mode)) {
            (None, Some(op)) => {
                let old = part.carry(&op)?;
                if lock.is_given_back(mode, old) {
                    return Ok(None);
                }
                let mut claim = Claim::new(*lock, NodeId::NONE);
                claim.release_found(mode, old);
                goes(part, claim).map(|_| None)
            }
            (Some(kept), _) => {
                let mut claim = Claim::kept(*lock, mode, kept);
                claim.release();
                goes(part, claim).map(Some)
            }
            (None, None) => unreachable!("what was had by one operation is given back by one"),
        }
    }
}

#[cold]
fn goes<L: LoadStore + ?Sized>(part: &Part<'_, L>, mut claim: Claim) -> Result<NodeId, AddrError> {
    run(part, &mut claim, None)?;
    Ok(claim.node())
}

/// Waits until the claim has the lock. Blocking.
///
/// # Errors
///
/// [`AddrError`]: a rank died, or the lock's words are gone. The claim is over
/// then, and its node with it, until the next epoch.
///
/// # Panics
///
/// If the claim does not rest.
pub fn acquire<L: LoadStore + ?Sized>(
    part: &Part<'_, L>,
    claim: &mut Claim,
    mode: Mode,
) -> Result<(), AddrError> {
    claim.begin(mode);
    run(part, claim, None).map(|_| ())
}

/// Takes the lock if nobody is in the way. How it ended, if it did not.
///
/// # Errors
///
/// As of [`acquire`].
///
/// # Panics
///
/// If the claim does not rest.
pub fn try_acquire<L: LoadStore + ?Sized>(
    part: &Part<'_, L>,
    claim: &mut Claim,
    mode: Mode,
) -> Result<Option<Ended>, AddrError> {
    claim.begin_try(mode);
    run(part, claim, None)
}

/// Waits for the lock for `limit` at most. How it ended, if not with the lock.
///
/// # Errors
///
/// As of [`acquire`].
///
/// # Panics
///
/// If the claim does not rest.
pub fn acquire_for<L: LoadStore + ?Sized>(
    part: &Part<'_, L>,
    claim: &mut Claim,
    mode: Mode,
    wait: &dyn WaitFor,
    limit: Duration,
) -> Result<Option<Ended>, AddrError> {
    claim.begin(mode);
    run(part, claim, Some((wait, limit)))
}

/// Gives the lock back. What was done under it has completed. Lock-free, as
/// long as nobody has left a queue.
///
/// # Errors
///
/// As of [`acquire`].
///
/// # Panics
///
/// If the claim does not hold the lock.
pub fn release<L: LoadStore + ?Sized>(
    part: &Part<'_, L>,
    claim: &mut Claim,
) -> Result<(), AddrError> {
    claim.release();
    run(part, claim, None).map(|_| ())
}

/// Runs a claim until it holds the lock or rests.
fn run<L: LoadStore + ?Sized>(
    part: &Part<'_, L>,
    claim: &mut Claim,
    mut limit: Option<(&dyn WaitFor, Duration)>,
) -> Result<Option<Ended>, AddrError> {
    loop {
        while let Some((id, op)) = claim.poll_op() {
            claim.handle_completed(id, part.carry(&op));
        }
        match claim.standing() {
            Standing::Held => return Ok(None),
            Standing::Resting(ended) => return Ok(Some(ended)),
            Standing::Failed(error) => return Err(error),
            Standing::Asking | Standing::Going => {}
        }
        let (at, until) = claim.waits_for().expect("it waits, or has something to do");
        match wait_for(part, at, until, limit) {
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

fn wait_for<L: LoadStore + ?Sized>(
    part: &Part<'_, L>,
    at: RemoteAddr,
    until: Until,
    limit: Option<(&dyn WaitFor, Duration)>,
) -> Result<Option<u64>, AddrError> {
    let at = part.memory.local(LocalAddr { key: at.key, offset: at.offset }, 8)?;
    // SAFETY: `local` answered for 8 bytes; the claim has stored the word by an
    // operation before, which refuses one that is not aligned; and words of
    // nodes are only ever accessed as atomics.
    let word = unsafe { at.cast::<AtomicU64>().as_ref() };
    match limit {
        None => part.waiters.wait(part.lot, word, until, part.wait).map(Some),
        Some((wait, limit)) => part.waiters.wait_for(part.lot, word, until, wait, limit),
    }
}
