//! A rank of another node is met: each tells the other where its lanes are.
//!
//! ```text
//!  first call to B ─► a seat, lanes ──── greeting ────► a seat, lanes
//!                                                          │
//!  waits for room ◄─ connected ◄───────── greeting ────────┘ connected
//! ```
//!
//! Whoever gives a seat to a rank tells it once where its lanes are, before or
//! after it was told the same: so both know, whoever was first, and if both were
//! at once. A greeting that comes is put where whoever pumps finds it. If there
//! is no memory for lanes, it stays there: whoever calls waits until there is,
//! or for as long as it wants to.
//!
//! What a greeting says is checked before it is believed: that the lanes are the
//! sender's own is not for it to say.

use super::{Am, State, words};
use crate::lend::{give_back, lend, zeroes};
use crate::{Error, Rank};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use tsumugi_core::am::{self, BLOCK_PEERS, Event};
use tsumugi_core::mem::{Access, AddrError, Region, RegionKey, RegisterError, RemoteAddr};
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::time::Instant;
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// Where lanes are: the key of their memory, from its start on, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    key: RegionKey,
    own: Rank,
}

/// Those that have come and were not looked at.
#[derive(Debug, Default)]
pub(super) struct Greetings {
    has_any: AtomicBool,
    came: Mutex<Vec<(Rank, Greeting)>>,
}

impl Am {
    /// The seat of a rank; one of another node may be met now.
    pub(super) fn seat_of(&self, state: &mut State, rank: Rank) -> Result<Rank, Error> {
        let size = self.member.size();
        if rank.0 >= size {
            return Err(AddrError::NoSuchRank { rank, size }.into());
        }
        match state.seats.find(rank) {
            Some(seat) => Ok(seat),
            None => self.seat_newly(state, rank),
        }
    }

    #[cold]
    fn seat_newly(&self, state: &mut State, rank: Rank) -> Result<Rank, Error> {
        if state.seats.count() == state.machine.peers() {
            self.grow(state)?;
        }
        let seat = state.seats.take(rank);
        state.to_greet.push_back(seat);
        if !self.is_alive(rank) {
            // Its death may have been told before it had a seat.
            state.machine.handle(Event::Lost(seat), Instant::ZERO);
        }
        Ok(seat)
    }

    /// Looks at greetings, and sends those that are due, as far as the network
    /// takes them.
    pub(super) fn meet(&self, state: &mut State) {
        let Some(far) = self.far.get() else { return };
        let mut came = std::mem::take(&mut state.put_off);
        came.extend(self.greetings.take());
        for (rank, greeting) in came {
            let is_sound = greeting.own.0 < BLOCK_PEERS && self.far_rank(state, rank);
            if !is_sound {
                continue;
            }
            match self.seat_of(state, rank) {
                Ok(seat) => {
                    let lanes = RemoteAddr { rank, key: greeting.key, offset: 0 };
                    state.machine.connect(seat, lanes, greeting.own);
                    // It may have called before.
                    self.is_stirred.store(true, Ordering::SeqCst);
                }
                Err(_) => state.put_off.push((rank, greeting)),
            }
        }
        while let Some(seat) = state.to_greet.pop_front() {
            let (later, rank) = (seat.0 - self.shape.peers, state.seats.rank(seat));
            let key = state.regions[(later / BLOCK_PEERS) as usize].key;
            let greeting = Greeting { key, own: Rank(later % BLOCK_PEERS) };
            if !far.carrier().greet(rank, &greeting.to_bytes()) {
                state.to_greet.push_front(seat);
                break;
            }
        }
        if !(state.put_off.is_empty() && state.to_greet.is_empty()) {
            // Nobody tells when there is room, or memory: it is tried at each
            // look. SeqCst: as in `put`.
            self.greetings.has_any.store(true, Ordering::SeqCst);
        }
    }

    /// Whether that is a rank which has no lanes here from the start.
    fn far_rank(&self, state: &State, rank: Rank) -> bool {
        let seat = state.seats.find(rank);
        rank.0 < self.member.size() && seat.is_none_or(|seat| !state.seats.is_near(seat))
    }

    /// Lanes and entries for some ranks more.
    fn grow(&self, state: &mut State) -> Result<(), Error> {
        let shape = self.shape.block();
        let bytes = shape.memory_size();
        let at = zeroes(&self.member, bytes)?;
        let region = self.name_block(at, bytes as u64).inspect_err(|_| {
            // SAFETY: as it was lent, and nobody was told of it.
            unsafe { give_back(&self.member, at, bytes) };
        })?;
        // SAFETY: the block, zeroed and aligned, for the rest of the job.
        let lanes = unsafe { words(at, bytes) };
        let (had_peers, had_blocks) = (state.peers.len(), state.blocks.len());
        let (peers, peers_lent) = lend(vec![am::Peer::EMPTY; had_peers + BLOCK_PEERS as usize]);
        let (blocks, blocks_lent) = lend(vec![am::Block::EMPTY; had_blocks + 1]);
        let grown = state.machine.grow(lanes, peers, blocks);
        grown.unwrap_or_else(|error| panic!("{error}"));
        (state.peers, state.blocks) = (peers_lent, blocks_lent);
        state.stuck.resize_with(had_peers + BLOCK_PEERS as usize, VecDeque::new);
        state.regions.push(region);
        self.blocks.write().unwrap_or_else(PoisonError::into_inner).push(region.key);
        Ok(())
    }

    /// The region of a block, which peers of other nodes may reach.
    fn name_block(&self, at: NonNull<u8>, bytes: u64) -> Result<Region, RegisterError> {
        // SAFETY: exposed memory, which stays mapped: plain bytes and words.
        // It is given back only if nobody was told of it.
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
        Some(Self { key: RegionKey::from_bits(word(key)?), own: Rank(word(own)?) })
    }
}

impl Greetings {
    /// One has come, on whatever thread; what makes no sense is dropped.
    pub(super) fn put(&self, from: Rank, bytes: &[u8], member: &Member) {
        let Some(greeting) = Greeting::parse(bytes) else { return };
        self.came.lock().unwrap_or_else(PoisonError::into_inner).push((from, greeting));
        // SeqCst: before the look at who sleeps.
        self.has_any.store(true, Ordering::SeqCst);
        member.control().bells().ring_helped(&SystemFutex, || {});
    }

    /// Whether there is something to be looked at, or to be sent.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        // SeqCst: a sleeper looks here after it said that it would sleep.
        self.has_any.load(Ordering::SeqCst)
    }

    fn take(&self) -> Vec<(Rank, Greeting)> {
        if !self.has_any() {
            return Vec::new();
        }
        // SeqCst: before the list is looked at, so that what comes after is
        // seen the next time.
        self.has_any.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.came.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_what_was_said() {
        let greeting = Greeting { key: RegionKey::from_bits(0x8123_4567), own: Rank(63) };
        assert_eq!(Greeting::parse(&greeting.to_bytes()), Some(greeting));
        for len in [0, 3, 4, 7, 9] {
            assert_eq!(Greeting::parse(&[1; 9][..len]), None, "{len} bytes");
        }
    }
}
