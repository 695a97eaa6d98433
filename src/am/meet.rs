//! The connection to a rank of another node: each of the two sends the other a
//! greeting with the place of its lanes.
//!
//! ```text
//!  first call to B ─► an index, lanes ── greeting ────► an index, lanes
//!                                                          │
//!  waits for room ◄─ connected ◄───────── greeting ────────┘ connected
//! ```
//!
//! A rank that makes a table entry for a peer sends one greeting with the
//! place of its lanes, whether or not the peer's greeting has come before. So both
//! ranks get the address, also when both begin at once. A greeting that arrives is
//! put on a list, which the next thread that pumps takes. If there is no memory for
//! lanes, the greeting stays on the list: a caller waits until there is memory, or
//! until its time limit.
//!
//! A greeting is checked before it is used: the sender's rank comes from the network
//! and not from the greeting, so the lanes can only be the sender's own.

use super::{Am, State, words};
use crate::lend::{give_back, lend, zeroes};
use crate::{Error, Rank};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::am::{self, AmEvent, BLOCK_PEERS};
use tsumugi_core::mem::{
    Access, AddrError, PeerIndex, Region, RegionKey, RegisterError, RemoteAddr,
};
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::time::Instant;
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// The place of lanes: the key of their memory, and the index of the receiver's
/// lanes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    key: RegionKey,
    own: PeerIndex,
}

/// Greetings that have arrived and were not handled.
#[derive(Debug, Default)]
pub(super) struct Greetings {
    has_any: AtomicBool,
    came: Mutex<Vec<(Rank, Greeting)>>,
}

impl Am {
    /// Returns the index of a rank, which may become a peer now.
    pub(super) fn peer_of(&self, state: &mut State, rank: Rank) -> Result<PeerIndex, Error> {
        let size = self.member.size();
        if rank.0 >= size {
            return Err(AddrError::NoSuchRank { rank, size }.into());
        }
        match state.peers.find(rank) {
            Some(peer) => Ok(peer),
            None => self.new_peer(state, rank),
        }
    }

    #[cold]
    fn new_peer(&self, state: &mut State, rank: Rank) -> Result<PeerIndex, Error> {
        if state.peers.count() == state.machine.peers() {
            self.grow(state)?;
        }
        let peer = state.peers.take(rank);
        state.to_greet.push_back(peer);
        if !self.is_alive(rank) {
            // Its death may have been declared before it was a peer.
            state.machine.handle(AmEvent::Lost(peer), Instant::ZERO);
        }
        Ok(peer)
    }

    /// Handles greetings that have arrived, and sends the greetings that are due, as
    /// far as the network takes them.
    pub(super) fn meet(&self, state: &mut State) {
        let Some(far) = self.far.get() else { return };
        let mut came = std::mem::take(&mut state.put_off);
        came.extend(self.greetings.take());
        for (rank, greeting) in came {
            let is_sound = greeting.own.0 < BLOCK_PEERS && self.far_rank(state, rank);
            if !is_sound {
                continue;
            }
            match self.peer_of(state, rank) {
                Ok(peer) => {
                    let lanes = RemoteAddr { rank, key: greeting.key, offset: 0 };
                    state.machine.connect(peer, lanes, greeting.own);
                    // The peer may have called before its greeting came.
                    self.is_stirred.store(true, Ordering::SeqCst);
                }
                Err(_) => state.put_off.push((rank, greeting)),
            }
        }
        while let Some(peer) = state.to_greet.pop_front() {
            let (later, rank) = (peer.0 - self.shape.peers, state.peers.rank(peer));
            let key = state.regions[(later / BLOCK_PEERS) as usize].key;
            let greeting = Greeting { key, own: PeerIndex(later % BLOCK_PEERS) };
            if !far.carrier().greet(rank, &greeting.to_bytes()) {
                state.to_greet.push_front(peer);
                break;
            }
        }
        if !(state.put_off.is_empty() && state.to_greet.is_empty()) {
            // There is no event when the network has room, or the heap memory: each
            // look tries again. SeqCst: as in `put`.
            self.greetings.has_any.store(true, Ordering::SeqCst);
        }
    }

    /// Whether `rank` exists and has no lanes here from the start.
    fn far_rank(&self, state: &State, rank: Rank) -> bool {
        let peer = state.peers.find(rank);
        rank.0 < self.member.size() && peer.is_none_or(|peer| state.peers.local(peer).is_none())
    }

    /// Adds a block of lanes and table entries for more ranks.
    fn grow(&self, state: &mut State) -> Result<(), Error> {
        let shape = self.shape.block();
        let bytes = shape.memory_size();
        let at = zeroes(&self.member, bytes)?;
        let region = self.name_block(at, bytes as u64).inspect_err(|_| {
            // SAFETY: as it was lent, and no peer has its key.
            unsafe { give_back(&self.member, at, bytes) };
        })?;
        // SAFETY: the block is zeroed and aligned, and stays for the rest of the
        // job.
        let lanes = unsafe { words(at, bytes) };
        let (had_peers, had_blocks) = (state.peer_table.len(), state.blocks.len());
        let (peers, peers_lent) = lend(vec![am::AmPeer::EMPTY; had_peers + BLOCK_PEERS as usize]);
        let (blocks, blocks_lent) = lend(vec![am::LaneBlock::EMPTY; had_blocks + 1]);
        let grown = state.machine.grow(lanes, peers, blocks);
        grown.unwrap_or_else(|error| panic!("{error}"));
        (state.peer_table, state.blocks) = (peers_lent, blocks_lent);
        state.stuck.resize_with(had_peers + BLOCK_PEERS as usize, VecDeque::new);
        state.regions.push(region);
        self.blocks.write().unwrap_or_else(PoisonError::into_inner).push(region.key);
        Ok(())
    }

    /// Registers the memory of a block, so that peers of other nodes can access it.
    fn name_block(&self, at: NonNull<u8>, bytes: u64) -> Result<Region, RegisterError> {
        // SAFETY: exposed memory, which stays mapped, of plain bytes and words. It
        // is given back only if no peer has its key.
        let region = unsafe { self.direct.register_runtime(at, bytes, Access::ReadWrite)? };
        let shown = self.far.get().map_or(Ok(()), |far| far.carrier().show(&region));
        if let Err(error) = shown {
            self.direct.unregister(region.key);
            return Err(error);
        }
        Ok(region)
    }
}

impl Greeting {
    fn to_bytes(self) -> [u8; 8] {
        let (key, own) = (self.key.to_bits().to_le_bytes(), self.own.0.to_le_bytes());
        std::array::from_fn(|at| if at < 4 { key[at] } else { own[at - 4] })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (key, own) = bytes.split_at_checked(4)?;
        let word = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
        Some(Self { key: RegionKey::from_bits(word(key)?), own: PeerIndex(word(own)?) })
    }
}

impl Greetings {
    /// Takes a greeting that has arrived, on any thread; a malformed one is dropped.
    pub(super) fn put(&self, from: Rank, bytes: &[u8], member: &Member) {
        let Some(greeting) = Greeting::parse(bytes) else { return };
        self.came.lock().unwrap_or_else(PoisonError::into_inner).push((from, greeting));
        // SeqCst: before the check of the sleepers; pairs with `has_any` of a
        // sleeper.
        self.has_any.store(true, Ordering::SeqCst);
        member.control().bells().ring_helped(&SystemFutex, || {});
    }

    /// Whether a greeting is to be handled or to be sent.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        // SeqCst: a sleeper looks here after it has announced that it will sleep.
        self.has_any.load(Ordering::SeqCst)
    }

    fn take(&self) -> Vec<(Rank, Greeting)> {
        if !self.has_any() {
            return Vec::new();
        }
        // SeqCst: the flag is cleared before the list is taken, so that a greeting
        // that comes later is seen at the next look.
        self.has_any.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.came.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_the_same_after_encoding() {
        let greeting = Greeting { key: RegionKey::from_bits(0x8123_4567), own: PeerIndex(63) };
        assert_eq!(Greeting::parse(&greeting.to_bytes()), Some(greeting));
        for len in [0, 3, 4, 7, 9] {
            assert_eq!(Greeting::parse(&[1; 9][..len]), None, "{len} bytes");
        }
    }
}
