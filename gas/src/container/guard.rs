//! The lock of a container, or of a part of one: claims of [`crate::lock`] on
//! global addresses.
//!
//! ```text
//!  lock, 64 bytes: five words of a claim's │ two for its owner │ broken
//! ```
//!
//! A lock that is free for what is wanted takes one operation where it lies, or
//! two; who has to wait sleeps for a word of its own memory. Phases: a reader
//! waits for one writer at most, a writer for those that came before it.
//!
//! # When a rank dies
//!
//! It may have held the lock, or stood in its queue; which, nobody knows. So who
//! waits waits on, and looks at the lock: as long as its words change, those
//! that live pass it on. A lock that stands still for [`STILL`] pauses is
//! broken, and so is one whose queue leads to the dead: whoever finds that
//! writes the rank into its last word, and from then on each claim ends with
//! [`AccessError::PeerLost`], which names it, without going into the queue.
//! Nobody ever gets a lock that another still has.

use super::ContainerError;
use super::store::{self, Store, after, words};
use crate::address::GlobalAddr;
use crate::error::AccessError;
use crate::lock::{Claim, Kind, Lock, Mode, NODE_BYTES, NodeId, NodeTable, Standing};
use crate::request::Word;
use tsumugi_core::mem::{AddrError, Rank, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind as OpKind, Op};
use tsumugi_core::signal::Until;
use tsumugi_core::sync::mutant;

/// A lock that is held until this is dropped.
pub(super) struct Guard<'s, S: Store + ?Sized> {
    store: &'s S,
    lock: Lock,
    mode: Mode,
    /// `None`: one operation was enough.
    claim: Option<Claim>,
}

/// Waits for the lock at `at`.
pub(super) fn lock<S: Store + ?Sized>(
    store: &S,
    at: GlobalAddr,
    mode: Mode,
) -> Result<Guard<'_, S>, ContainerError> {
    if store.lost().is_some() {
        check(store, at)?;
    }
    let mode = if mutant("container_always_shared") { Mode::Shared } else { mode };
    let home = RemoteAddr { rank: NOBODY, key: WORDS, offset: at.to_bits() };
    let lock = Lock { home, nodes: NodeTable { key: NODES, offset: 0 }, kind: Kind::Neutral };
    let found = match lock.first_op(mode) {
        Some(op) => Some(carry(store, &op)?),
        None => None,
    };
    if found.is_some_and(|old| lock.has(mode, old)) {
        return Ok(Guard { store, lock, mode, claim: None });
    }
    let mut claim = Claim::new(lock, store.take_node());
    match found {
        Some(old) => claim.begin_found(mode, old),
        None => claim.begin(mode),
    }
    // A node whose claim fails is of no use any more.
    run(store, &mut claim).inspect_err(|error| give_up(store, at, error))?;
    Ok(Guard { store, lock, mode, claim: Some(claim) })
}

/// Waits for two locks, in an order that all have.
pub(super) fn lock_two<S: Store + ?Sized>(
    store: &S,
    one: (GlobalAddr, Mode),
    other: (GlobalAddr, Mode),
) -> Result<(Guard<'_, S>, Option<Guard<'_, S>>), ContainerError> {
    if one.0 == other.0 {
        let is_shared = one.1 == Mode::Shared && other.1 == Mode::Shared;
        let mode = if is_shared { Mode::Shared } else { Mode::Exclusive };
        return Ok((lock(store, one.0, mode)?, None));
    }
    let is_first = one.0 < other.0 || mutant("container_two_in_any_order");
    let (first, second) = if is_first { (one, other) } else { (other, one) };
    let first = lock(store, first.0, first.1)?;
    Ok((first, Some(lock(store, second.0, second.1)?)))
}

impl<S: Store + ?Sized> Drop for Guard<'_, S> {
    fn drop(&mut self) {
        let store = self.store;
        let claim = match (self.claim.take(), self.lock.last_op(self.mode)) {
            (Some(mut claim), _) => {
                claim.release();
                Some(claim)
            }
            (None, Some(op)) => match carry(store, &op) {
                Ok(old) if !self.lock.is_given_back(self.mode, old) => {
                    let mut claim = Claim::new(self.lock, NodeId::NONE);
                    claim.release_found(self.mode, old);
                    Some(claim)
                }
                _ => None,
            },
            (None, None) => None,
        };
        let Some(mut claim) = claim else { return };
        // Whose lock is out of reach cannot give it back; nor can another ask
        // for it.
        match run(store, &mut claim) {
            Ok(()) if claim.node() != NodeId::NONE => store.release_node(claim.node(), false),
            Ok(()) => {}
            Err(error) => give_up(store, GlobalAddr::from_bits(self.lock.home.offset), &error),
        }
    }
}

/// Runs a claim until it holds the lock or has given it back.
fn run<S: Store + ?Sized>(store: &S, claim: &mut Claim) -> Result<(), ContainerError> {
    loop {
        while let Some((id, op)) = claim.poll_op() {
            let result = carry(store, &op);
            claim.handle_completed(id, result.map_err(|error| as_addr_error(error, op.remote)));
            if let Err(error) = result {
                return Err(error.into());
            }
        }
        match claim.standing() {
            Standing::Held | Standing::Resting(_) => return Ok(()),
            Standing::Failed(AddrError::PeerLost { rank }) => {
                return Err(AccessError::PeerLost { rank }.into());
            }
            Standing::Failed(_) => {
                return Err(AccessError::Nowhere { addr: GlobalAddr::NULL }.into());
            }
            Standing::Asking | Standing::Going => {}
        }
        let Some((at, until)) = claim.waits_for() else { continue };
        let at = place(store, at)?;
        let value = match store.wait(at, until) {
            Err(AccessError::PeerLost { rank }) => {
                let home = GlobalAddr::from_bits(claim.lock().home.offset);
                wait_on(store, home, (at, until), rank)?
            }
            value => value?,
        };
        claim.handle_word(value);
    }
}

/// Waits for a word of its own while some rank is dead: as long as the lock
/// does not stand still.
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
        if still >= STILL && !mutant("container_waits_for_the_dead") {
            return Err(AccessError::PeerLost { rank: dead }.into());
        }
        store.pause();
    }
}

/// A claim has failed on its way: nobody passes the lock on any more.
#[cold]
fn give_up<S: Store + ?Sized>(store: &S, home: GlobalAddr, error: &ContainerError) {
    if let ContainerError::Access(AccessError::PeerLost { rank }) = *error
        && !mutant("container_breaks_in_silence")
    {
        let at = after(store, home, BROKEN_AT);
        // If it is out of reach, so is the lock.
        let _ = store.word(Word::atomic(OpKind::PutWord, at, u64::from(rank.0) + 1));
    }
}

/// Whether a lock is broken.
#[cold]
fn check<S: Store + ?Sized>(store: &S, at: GlobalAddr) -> Result<(), ContainerError> {
    let broken = store::word(store, after(store, at, BROKEN_AT))?;
    match broken.checked_sub(1) {
        None => Ok(()),
        Some(rank) => Err(AccessError::PeerLost { rank: Rank(rank as u32) }.into()),
    }
}

fn carry<S: Store + ?Sized>(store: &S, op: &Op) -> Result<u64, AccessError> {
    let addr = place(store, op.remote)?;
    let word = Word::of(op, addr).ok_or(AccessError::Unsupported { addr })?;
    store.word(word)
}

/// What a claim's address means.
fn place<S: Store + ?Sized>(store: &S, at: RemoteAddr) -> Result<GlobalAddr, AccessError> {
    match at.key {
        WORDS => Ok(GlobalAddr::from_bits(at.offset)),
        _ => Ok(after(store, store.nodes(at.rank)?, at.offset)),
    }
}

fn as_addr_error(error: AccessError, addr: RemoteAddr) -> AddrError {
    match error {
        AccessError::PeerLost { rank } => AddrError::PeerLost { rank },
        _ => AddrError::Unsupported { addr },
    }
}

/// Bytes of a rank's nodes, of which there may be so many.
pub const fn nodes_bytes(nodes: u32) -> u64 {
    nodes as u64 * NODE_BYTES
}

/// A lock's words are named by their global address, nodes by their rank.
const WORDS: RegionKey = RegionKey::from_bits(0);
const NODES: RegionKey = RegionKey::from_bits(1);
const NOBODY: Rank = Rank(0);
/// Words of a lock that claims use.
const CLAIM_WORDS: usize = 5;
/// Where a lock says that it is broken, and by whom.
const BROKEN_AT: u64 = 56;
/// Pauses after which a lock that has not changed is broken: a tenth of a
/// second, where one is a millisecond. A launcher gives those that are left
/// three.
pub(super) const STILL: u32 = 100;
