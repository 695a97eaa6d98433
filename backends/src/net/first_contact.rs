//! Peers that cannot be reached yet: a link that has just come up, a rank that
//! has just begun.
//!
//! ```text
//!  met ─► refused ─► pause of 20 ms ─► posted again ─► reached
//!            ▲                             │
//!            └─────────────────────────────┤ for 3 s
//!                                          └─► lost
//! ```
//!
//! A post that a library refuses was not done, so it can be repeated.

use super::card::{CardError, EndpointCard};
use super::failure::DeviceFailure;
use super::nic_endpoint::{DomainShared, NicEndpoint, NicPeer};
use super::wire::NetWire;
use core::ffi::c_int;
use std::time::{Duration, Instant};
use tsumugi_core::boot::CARD_BYTES_MAX;
use tsumugi_core::mem::{AddrError, Rank};

impl<W: NetWire> NicEndpoint<W> {
    /// The peer; the NIC endpoint makes contact now if it has not before. `None`: the
    /// peer's card has not come yet.
    pub(super) fn peer(
        &mut self,
        shared: &DomainShared,
        rank: Rank,
    ) -> Result<Option<NicPeer>, AddrError> {
        let lost = AddrError::PeerLost { rank };
        match self.peers.get(&rank.0) {
            Some(peer) if peer.lost => return Err(lost),
            Some(peer) => return Ok(Some(*peer)),
            None => {}
        }
        let contacted_ms = self.make_contact(shared, rank);
        contacted_ms.map_err(|failure| {
            self.failures.add(failure);
            lost
        })
    }

    /// The NIC endpoint's age in milliseconds.
    pub(super) fn age(&self) -> u32 {
        self.opened.elapsed().as_millis() as u32
    }

    pub(super) fn make_contact(
        &mut self,
        shared: &DomainShared,
        rank: Rank,
    ) -> Result<Option<NicPeer>, DeviceFailure> {
        let failure = DeviceFailure::new(Some(rank), None, libc::ENODATA, 0);
        let own = shared.own.get().ok_or(failure)?;
        let theirs;
        let card = if rank == shared.rank {
            own
        } else {
            let cards = shared.cards.get().ok_or(failure)?;
            let mut bytes = [0; CARD_BYTES_MAX];
            let untold = |why| DeviceFailure { card: Some(CardError::Untold { why }), ..failure };
            let Some(count) = cards(rank, &mut bytes).map_err(untold)? else { return Ok(None) };
            let count = count.min(CARD_BYTES_MAX);
            theirs = EndpointCard::parse(&bytes[..count], own).map_err(|card| DeviceFailure {
                card: Some(card),
                code: libc::EPROTO,
                ..failure
            })?;
            &theirs
        };
        let place = &card.endpoints[self.index % card.endpoints.len()];
        let failed = |code| DeviceFailure { code, ..failure };
        let addr = self.wire.insert(rank, &place.address).map_err(failed)?;
        let key = self.wire.map_key(&place.key, place.origin).map_err(failed)?;
        let contacted_ms = self.age();
        let peer =
            NicPeer { addr, origin: place.origin, key, lost: false, injected: 0, contacted_ms };
        self.peers.insert(rank.0, peer);
        Ok(Some(peer))
    }

    /// Called when a post was refused with the error `code`. Returns whether the
    /// reason is that the peer cannot be reached yet: a link that has just come up,
    /// or a rank that has just started. Then nothing was done, and the post must be
    /// repeated.
    #[cold]
    pub(super) fn is_not_yet_reachable(&mut self, rank: Rank, code: c_int) -> bool {
        let now = self.age();
        let is_new =
            |peer: &NicPeer| !peer.lost && now.wrapping_sub(peer.contacted_ms) < FIRST_CONTACT_MS;
        let is_not_yet_reachable =
            UNREACHABLE.contains(&code) && self.peers.get(&rank.0).is_some_and(is_new);
        if is_not_yet_reachable {
            self.backoffs.retain(|(other, _)| *other != rank);
            self.backoffs.push((rank, Instant::now() + BACKOFF));
        }
        is_not_yet_reachable
    }

    /// Whether it is too soon to post to that rank again.
    #[inline]
    pub(super) fn must_back_off(&mut self, rank: Rank) -> bool {
        !self.backoffs.is_empty() && self.is_backing_off(rank)
    }

    #[cold]
    fn is_backing_off(&mut self, rank: Rank) -> bool {
        let now = Instant::now();
        self.backoffs.retain(|(_, until)| *until > now);
        self.backoffs.iter().any(|(other, _)| *other == rank)
    }
}

/// The errors of a post to a peer that is not there, or not yet.
const UNREACHABLE: [c_int; 7] = [
    libc::ECONNREFUSED,
    libc::ECONNABORTED,
    libc::EHOSTUNREACH,
    libc::EHOSTDOWN,
    libc::ENETUNREACH,
    libc::ENOTCONN,
    libc::ETIMEDOUT,
];

/// For this time after the first contact such an error may mean that the peer is
/// not there yet: deaths are known within 5 s.
const FIRST_CONTACT_MS: u32 = 3000;

/// The pause before a post is repeated.
const BACKOFF: Duration = Duration::from_millis(20);
