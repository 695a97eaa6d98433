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

use super::greeting::Greeting;
use super::lanes::words;
use super::state::{Am, AmState};
use crate::error::Error;
use crate::leaked_slice::{give_back, lend, zeroes};
use crate::net::{Parcel, ParcelError};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::PoisonError;
use tsumugi_core::am::{self, AmEvent, BLOCK_PEERS};
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{Access, AddrError, PeerIndex, Region, RegisterError, RemoteAddr};
use tsumugi_core::sync::Ordering;
use tsumugi_core::time::Instant;

impl Am {
    /// Returns the index of a rank, which may become a peer now.
    pub(super) fn peer_of(&self, state: &mut AmState, rank: Rank) -> Result<PeerIndex, Error> {
        let size = self.member.size();
        if rank.0 >= size {
            return Err(Error::Addr(AddrError::NoSuchRank { rank, size }));
        }
        match state.peers.find(rank) {
            Some(peer) => Ok(peer),
            None => self.new_peer(state, rank),
        }
    }

    #[cold]
    fn new_peer(&self, state: &mut AmState, rank: Rank) -> Result<PeerIndex, Error> {
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
    pub(super) fn meet(&self, state: &mut AmState) {
        let Some(remote) = self.remote.get() else { return };
        let mut came = std::mem::take(&mut state.put_off);
        came.extend(self.greetings.take());
        for (rank, greeting) in came {
            let is_sound = greeting.own.0 < BLOCK_PEERS && self.is_remote(state, rank);
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
            let sent = remote.transport().try_send(rank, Parcel::Greeting, &greeting.to_bytes());
            // A greeting to a lost rank counts as sent.
            if sent == Err(ParcelError::Full) {
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
    fn is_remote(&self, state: &AmState, rank: Rank) -> bool {
        let peer = state.peers.find(rank);
        rank.0 < self.member.size() && peer.is_none_or(|peer| state.peers.local(peer).is_none())
    }

    /// Adds a block of lanes and table entries for more ranks.
    fn grow(&self, state: &mut AmState) -> Result<(), Error> {
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
        let shown = self.remote.get().map_or(Ok(()), |remote| remote.transport().register(&region));
        if let Err(error) = shown {
            self.direct.unregister(region.key);
            return Err(error);
        }
        Ok(region)
    }
}
