//! The lock of a container, or of a part of a container: claims of [`crate::lock`]
//! on global addresses.
//!
//! ```text
//!  lock, 64 bytes: five words of a claim's │ two for its owner │ broken
//! ```
//!
//! Taking a lock without contention takes one or two operations at the rank of the
//! lock; a claim that has to wait sleeps for a word of its own rank's memory.
//! Phases: a reader waits for one writer at most, a writer for the claims that came
//! before it.
//!
//! # When a rank dies
//!
//! The dead rank may have held the lock, or may be in its queue; no other rank can
//! know which. So a claim that waits goes on waiting, and reads the lock repeatedly:
//! as long as the lock's words change, live ranks pass the lock on. A lock that does
//! not change for [`STILL`] pauses counts as broken, and so does a lock with a queue
//! that leads to the dead rank. A claim that finds this writes the rank into the
//! lock's last word, and from then on each claim ends with
//! [`AddrError::PeerLost`], which names that rank, without entering the queue. A
//! claim never gets a lock that another claim still has.

use super::error::ContainerError;
use super::store::{self, Store, after, words};
use crate::address::GlobalAddr;
use crate::lock::{
    ClaimStatus, Lock, LockClaim, LockKind, LockMode, NODE_BYTES, NodeId, NodeTable,
};
use crate::request::WordRequest;
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::mutate;
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::signal::Until;

/// A lock that is held until this value is dropped.
pub(super) struct ContainerGuard<'s, S: Store + ?Sized> {
    store: &'s S,
    lock: Lock,
    mode: LockMode,
    /// `None`: the lock was taken by one operation.
    claim: Option<LockClaim>,
}

/// Waits for the lock at `at`.
pub(super) fn lock<S: Store + ?Sized>(
    store: &S,
    at: GlobalAddr,
    mode: LockMode,
) -> Result<ContainerGuard<'_, S>, ContainerError> {
    if store.lost().is_some() {
        check(store, at)?;
    }
    let mode = mutate!("container_always_shared": mode => LockMode::Shared);
    let home = RemoteAddr { rank: NOBODY, key: WORDS, offset: at.to_bits() };
    let lock = Lock { home, nodes: NodeTable { key: NODES, offset: 0 }, kind: LockKind::Neutral };
    let found = match lock.first_op(mode) {
        Some(op) => Some(carry(store, &op)?),
        None => None,
    };
    if found.is_some_and(|old| lock.has(mode, old)) {
        return Ok(ContainerGuard { store, lock, mode, claim: None });
    }
    let mut claim = LockClaim::new(lock, store.take_node());
    match found {
        Some(old) => claim.begin_found(mode, old),
        None => claim.begin(mode),
    }
    // If the claim fails, its node cannot be used any more.
    run(store, &mut claim).inspect_err(|error| give_up(store, at, error))?;
    Ok(ContainerGuard { store, lock, mode, claim: Some(claim) })
}

/// Waits for two locks, in the order of their addresses, which is the same for all
/// callers.
pub(super) fn lock_two<S: Store + ?Sized>(
    store: &S,
    one: (GlobalAddr, LockMode),
    other: (GlobalAddr, LockMode),
) -> Result<(ContainerGuard<'_, S>, Option<ContainerGuard<'_, S>>), ContainerError> {
    if one.0 == other.0 {
        let is_shared = one.1 == LockMode::Shared && other.1 == LockMode::Shared;
        let mode = if is_shared { LockMode::Shared } else { LockMode::Exclusive };
        return Ok((lock(store, one.0, mode)?, None));
    }
    let is_first = mutate!("container_two_in_any_order": one.0 < other.0 => true);
    let (first, second) = if is_first { (one, other) } else { (other, one) };
    let first = lock(store, first.0, first.1)?;
    Ok((first, Some(lock(store, second.0, second.1)?)))
}

impl<S: Store + ?Sized> Drop for ContainerGuard<'_, S> {
    fn drop(&mut self) {
        let store = self.store;
        let claim = match (self.claim.take(), self.lock.last_op(self.mode)) {
            (Some(mut claim), _) => {
                claim.release();
                Some(claim)
            }
            (None, Some(op)) => match carry(store, &op) {
                Ok(old) if !self.lock.is_given_back(self.mode, old) => {
                    let mut claim = LockClaim::new(self.lock, NodeId::NONE);
                    claim.release_found(self.mode, old);
                    Some(claim)
                }
                _ => None,
            },
            (None, None) => None,
        };
        let Some(mut claim) = claim else { return };
        // If the lock is out of reach, it cannot be given back; no other claim can
        // ask for it, either.
        match run(store, &mut claim) {
            Ok(()) if claim.node() != NodeId::NONE => store.release_node(claim.node(), false),
            Ok(()) => {}
            Err(error) => give_up(store, GlobalAddr::from_bits(self.lock.home.offset), &error),
        }
    }
}

/// Runs a claim until it holds the lock or has given it back.
fn run<S: Store + ?Sized>(store: &S, claim: &mut LockClaim) -> Result<(), ContainerError> {
    loop {
        while let Some((id, op)) = claim.poll_op() {
            let result = carry(store, &op);
            claim.handle_completed(id, result.map_err(|error| error.at(op.remote)));
            if let Err(error) = result {
                return Err(error.into());
            }
        }
        match claim.standing() {
            ClaimStatus::Held | ClaimStatus::Resting(_) => return Ok(()),
            ClaimStatus::Failed(error) => {
                let home = GlobalAddr::from_bits(claim.lock().home.offset);
                return Err(error.at(home).into());
            }
            ClaimStatus::Asking | ClaimStatus::Going => {}
        }
        let Some((at, until)) = claim.waits_for() else { continue };
        let at = place(store, at)?;
        let value = match store.wait(at, until) {
            Err(AddrError::PeerLost { rank }) => {
                let home = GlobalAddr::from_bits(claim.lock().home.offset);
                wait_on(store, home, (at, until), rank)?
            }
            value => value?,
        };
        claim.handle_word(value);
    }
}

/// Waits for the claim's own word while some rank is dead, as long as the lock goes
/// on changing.
#[cold]
fn wait_on<S: Store + ?Sized>(
    store: &S,
    home: GlobalAddr,
    (at, until): (GlobalAddr, Until),
    dead: Rank,
) -> Result<u64, ContainerError> {
    let (mut seen, mut still) = ([0; CLAIM_WORDS], 0);
    loop {
        let value = store::word(store, at)?;
        if until.holds(value) {
            return Ok(value);
        }
        check(store, home)?;
        let now = words(store, home)?;
        still = if now == seen { still + 1 } else { 0 };
        seen = now;
        if mutate!("container_waits_for_the_dead": still >= STILL => false) {
            return Err(AddrError::PeerLost { rank: dead }.into());
        }
        store.pause();
    }
}

/// Marks the lock as broken after a claim has failed on its way, because the claim
/// does not pass the lock on any more.
#[cold]
fn give_up<S: Store + ?Sized>(store: &S, home: GlobalAddr, error: &ContainerError) {
    if let ContainerError::Access(AddrError::PeerLost { rank }) = *error
        && mutate!("container_breaks_in_silence": true => false)
    {
        let at = after(store, home, BROKEN_AT);
        // If this word is out of reach, so is the lock.
        let _ = store.word(WordRequest::atomic(OpKind::PutWord, at, u64::from(rank.0) + 1));
    }
}

/// Returns an error if the lock is broken.
#[cold]
fn check<S: Store + ?Sized>(store: &S, at: GlobalAddr) -> Result<(), ContainerError> {
    let broken = store::word(store, after(store, at, BROKEN_AT))?;
    match broken.checked_sub(1) {
        None => Ok(()),
        Some(rank) => Err(AddrError::PeerLost { rank: Rank(rank as u32) }.into()),
    }
}

fn carry<S: Store + ?Sized>(store: &S, op: &Op) -> Result<u64, AddrError<GlobalAddr>> {
    let addr = place(store, op.remote)?;
    let word = WordRequest::of(op, addr).ok_or(AddrError::Unsupported { addr })?;
    store.word(word)
}

/// The global address that a claim's address stands for.
fn place<S: Store + ?Sized>(
    store: &S,
    at: RemoteAddr,
) -> Result<GlobalAddr, AddrError<GlobalAddr>> {
    match at.key {
        WORDS => Ok(GlobalAddr::from_bits(at.offset)),
        _ => Ok(after(store, store.nodes(at.rank)?, at.offset)),
    }
}

/// The number of bytes that a rank's queue nodes take, if there are `nodes` of them.
pub const fn nodes_bytes(nodes: u32) -> u64 {
    nodes as u64 * NODE_BYTES
}

/// In a claim, the words of a lock have this key and their global address as offset;
/// nodes have their rank and the other key.
const WORDS: RegionKey = RegionKey::from_bits(0);
const NODES: RegionKey = RegionKey::from_bits(1);
const NOBODY: Rank = Rank(0);
/// The number of words of a lock that claims use.
const CLAIM_WORDS: usize = 5;
/// The offset of a lock's word that says that it is broken, and by the death of
/// which rank.
const BROKEN_AT: u64 = 56;
/// The number of pauses after which a lock that has not changed counts as broken: a
/// tenth of a second, if a pause is a millisecond. After the death of a rank, a
/// launcher lets the other ranks run for three tenths by default, which is longer.
pub(super) const STILL: u32 = 100;
