//! Messages to and from ranks of other nodes, as parcels of [`NetworkLanes`].
//!
//! ```text
//!  polling thread ─parcel─► bag ──┐            under the lock of messages:
//!                                 └─► unpack ─► lanes ─► the machine
//!  network ◄── try_send ── flush ◄───────────── lanes ◄┘
//! ```
//!
//! Parcels come on the thread that polls the network, which may hold the lock and
//! must not wait: they are copied into the bag, and the next thread that has the
//! lock takes them out. A parcel that the network refuses stays in the lane, and no
//! worker sleeps until it is sent.
//!
//! The lane to a rank is made at the first message to it or from it: less than a KiB
//! each. Bytes that were not sent or not taken yet are in chunks that all lanes
//! share; when few are left, [more are made](POOL_CHUNKS).

use crate::leaked_slice::{LeakedSlice, lend};
use crate::net::{Parcel, ParcelError, Transport};
use crate::peers::Peers;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::msg::{
    Buffers, ChunkPlace, LaneChunk, MessageShape, NetworkLane, NetworkLaneEnd, NetworkLanes,
    PARCEL_BYTES_MIN, Packet, PacketLoad, RequestError, RequestId,
};
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering, fence};
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// The network lanes of a rank, under the lock of its messages. The lanes are indexed
/// by peer.
pub(crate) struct ParcelPost {
    member: Member,
    peers: Peers,
    mail: NetworkLanes<'static>,
    shape: MessageShape,
    transport: Arc<dyn Transport>,
    bag: Arc<Bag>,
    /// The last contents of the bag, and a buffer for the next parcel.
    unpacked: Vec<u8>,
    room: Box<[u8]>,
    // The memory that the mail borrows; dropped last.
    ends: LeakedSlice<NetworkLaneEnd<'static>>,
    lanes: Vec<(LeakedSlice<NetworkLane<'static>>, LeakedSlice<ChunkPlace<'static>>)>,
    chunks: Vec<LeakedSlice<LaneChunk<'static>>>,
}

/// The receive queue: parcels that were not handled yet.
#[derive(Debug, Default)]
pub(crate) struct Bag {
    is_full: AtomicBool,
    refused: AtomicU64,
    /// For each parcel: the sender, the length, and the bytes.
    bytes: Mutex<Vec<u8>>,
    /// Results of fetches.
    fetched: Mutex<VecDeque<FetchResult>>,
}

/// The request, the sender, and the result of a fetch.
type FetchResult = (RequestId, Rank, Result<(), AddrError>);

/// The memory of this process.
pub(crate) struct Exposed;

/// The same memory, of which peers can be given places to fetch from.
struct OutgoingParcels<'p>(&'p dyn Transport);

impl ParcelPost {
    /// Makes the lanes of a machine of this shape.
    pub(crate) fn new(
        member: &Member,
        peers: Peers,
        shape: MessageShape,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let (mail_ends, ends) = lend(ends_of(shape.peers));
        let mail = NetworkLanes::new(shape, mail_ends).unwrap_or_else(|error| panic!("{error}"));
        let room = vec![0; transport.parcel_bytes_max()].into_boxed_slice();
        assert!(room.len() >= PARCEL_BYTES_MIN, "a parcel of {} bytes is too short", room.len());
        let bag = Arc::new(Bag::default());
        receive_into(&bag, member, &*transport);
        let unpacked = Vec::with_capacity(BAG_BYTES);
        Self {
            member: member.clone(),
            peers,
            mail,
            shape,
            transport,
            bag,
            unpacked,
            room,
            ends,
            lanes: Vec::new(),
            chunks: Vec::new(),
        }
    }

    pub(crate) fn bag(&self) -> &Arc<Bag> {
        &self.bag
    }

    /// The peers; the machine may not have the last ones yet.
    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    /// The index of a rank of the job. `None`: there is no such rank.
    pub(crate) fn peer_of(&mut self, rank: Rank) -> Option<PeerIndex> {
        if rank.0 >= self.member.size() {
            return None;
        }
        let peer = self.peers.take(rank);
        if peer.0 as usize >= self.ends.len() {
            let (mail_ends, ends) = lend(ends_of(with_room(self.peers.count(), &self.member)));
            self.mail.grow(mail_ends).unwrap_or_else(|error| panic!("{error}"));
            self.ends = ends;
        }
        Some(peer)
    }

    /// The rank that has these messages, as a member of its node.
    pub(crate) fn member(&self) -> &Member {
        &self.member
    }

    /// The peer, if it is a neighbour.
    #[inline(always)]
    pub(crate) fn near(&self, peer: PeerIndex) -> Option<PeerIndex> {
        self.peers.local(peer).map(|_| peer)
    }

    /// The lanes, with all parcels that have come.
    #[inline]
    pub(crate) fn mail(&mut self) -> &mut NetworkLanes<'static> {
        if self.bag.is_full() {
            self.unpack();
        }
        self.feed();
        &mut self.mail
    }

    /// The lanes, with a lane to this peer.
    #[inline]
    pub(crate) fn mail_to(&mut self, peer: PeerIndex) -> &mut NetworkLanes<'static> {
        if !self.mail.is_connected(peer) {
            self.connect(peer);
        }
        self.mail()
    }

    /// Puts a packet into a lane.
    pub(crate) fn push(&mut self, to: PeerIndex, packet: &Packet, load: PacketLoad) {
        if self.bag.is_full() {
            self.unpack();
        }
        self.feed();
        let mut buffers = OutgoingParcels(&*self.transport);
        self.mail.push(to, packet, load, &mut buffers);
    }

    /// The next request with a fetch that has ended.
    pub(crate) fn poll_fetched(&mut self) -> Option<(RequestId, Result<(), RequestError>)> {
        let next = self.bag.fetched.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let (request, from, result) = next?;
        let peer = self.peers.find(from)?;
        let result = result.map_err(|error| match error {
            AddrError::PeerLost { .. } => RequestError::PeerLost { peer },
            _ => RequestError::Failed { peer },
        });
        Some((request, result))
    }

    /// Sends parcels that wait, as far as the network takes them.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if self.mail.has_unsent() {
            self.send();
        }
    }

    /// Whether a parcel waits for the network.
    pub(crate) fn has_unsent(&self) -> bool {
        self.mail.has_unsent()
    }

    /// Ends the lane of a peer after its rank has died; the machine was notified
    /// before.
    pub(crate) fn lose(&mut self, peer: PeerIndex) {
        if self.near(peer).is_none() {
            self.mail.lost(peer);
        }
    }

    fn send(&mut self) {
        // Each rank with a parcel that finds no room has one try.
        let mut refused = 0;
        while refused < TRIES
            && let Some((to, len)) = self.mail.poll_parcel(&mut self.room)
        {
            let (rank, parcel) = (self.peers.rank(to), &self.room[..len]);
            match self.transport.try_send(rank, Parcel::Message, parcel) {
                Ok(()) => self.mail.posted(to),
                Err(ParcelError::Full) => {
                    self.mail.refused(to);
                    refused += 1;
                }
                Err(ParcelError::TooLong) => unreachable!("a parcel of {len} bytes is too long"),
                // The rank will take nothing any more.
                Err(ParcelError::Addr(_)) => self.mail.posted(to),
            }
        }
    }

    fn unpack(&mut self) {
        let mut unpacked = std::mem::take(&mut self.unpacked);
        self.bag.empty_into(&mut unpacked);
        let mut rest = &unpacked[..];
        while let Some((from, bytes, more)) = split(rest) {
            rest = more;
            let peer = self.peer_of(from).filter(|peer| self.near(*peer).is_none());
            if let Some(peer) = peer
                && !self.mail.is_connected(peer)
            {
                self.connect(peer);
            }
            self.feed();
            if peer.is_none_or(|peer| self.mail.take(peer, bytes).is_err()) {
                // Relaxed: a count.
                self.bag.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        unpacked.clear();
        self.unpacked = unpacked;
    }

    #[cold]
    fn connect(&mut self, peer: PeerIndex) {
        let (places, lent_places) = lend(places_of(&self.shape));
        let lane = NetworkLane::new(&self.shape, places).unwrap_or_else(|error| panic!("{error}"));
        let (lane, lent_lane) = lend(vec![lane]);
        self.mail.connect(peer, &mut lane[0]);
        self.lanes.push((lent_lane, lent_places));
    }

    /// Makes chunks, if the next call that writes into a lane could lack them.
    #[inline(always)]
    fn feed(&mut self) {
        if self.mail.is_short() {
            self.feed_now();
        }
    }

    #[cold]
    fn feed_now(&mut self) {
        let count = POOL_CHUNKS.max(NetworkLane::places(&self.shape));
        let (chunks, lent) = lend((0..count).map(|_| LaneChunk::EMPTY).collect());
        self.mail.feed(chunks);
        self.chunks.push(lent);
    }
}

impl Bag {
    /// Whether there are parcels that were not handled yet.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        // Acquire: pairs with the Release in `put`.
        self.is_full.load(Ordering::Acquire)
    }

    /// How many parcels were malformed.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn put(&self, from: Rank, parcel: &[u8]) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend_from_slice(&from.0.to_ne_bytes());
        bytes.extend_from_slice(&(parcel.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(parcel);
        // Release: pairs with the Acquire in `is_full`.
        self.is_full.store(true, Ordering::Release);
    }

    fn put_fetched(&self, id: u64, from: Rank, result: Result<(), AddrError>) {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        fetched.push_back((RequestId::from_bits(id), from, result));
        // Release: pairs with the Acquire in `is_full`.
        self.is_full.store(true, Ordering::Release);
    }

    fn empty_into(&self, into: &mut Vec<u8>) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *bytes, into);
        // Relaxed: the thread that fills it again takes the lock after this one.
        self.is_full.store(false, Ordering::Relaxed);
    }
}

impl Buffers for Exposed {
    fn read(&mut self, at: u64, into: &mut [u8]) {
        let from: *const u8 = std::ptr::with_exposed_provenance(at as usize);
        // SAFETY: the machine gives addresses of buffers that were lent to it, and
        // not more than their lengths.
        unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let to: *mut u8 = std::ptr::with_exposed_provenance_mut(at as usize);
        // SAFETY: the same.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Buffers for OutgoingParcels<'_> {
    fn read(&mut self, at: u64, into: &mut [u8]) {
        Exposed.read(at, into);
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        Exposed.write(at, bytes);
    }

    fn place(&mut self, at: u64, len: u64) -> Option<u64> {
        self.0.place(at as usize, len as usize)
    }
}

/// Makes the transport put parcels, and the results of fetches, into the bag.
fn receive_into(bag: &Arc<Bag>, member: &Member, transport: &dyn Transport) {
    let (into, own) = (bag.clone(), member.clone());
    let on_parcel = move |from, bytes: &[u8]| {
        into.put(from, bytes);
        ring(&own);
    };
    transport.on_parcel(Parcel::Message, Box::new(on_parcel));
    let (into, own) = (bag.clone(), member.clone());
    let on_fetched = move |id, from, result| {
        into.put_fetched(id, from, result);
        ring(&own);
    };
    transport.on_fetched(Box::new(on_fetched));
}

/// Wakes a thread that looks for messages: the thread that polls the network may be
/// another one.
fn ring(member: &Member) {
    // SeqCst: after the bag is full, and before the check of the workers that attend.
    fence(Ordering::SeqCst);
    let control = member.control();
    control.bells().ring_helped(&SystemFutex, || control.set_neglected());
}

fn ends_of(peers: u32) -> Vec<NetworkLaneEnd<'static>> {
    (0..peers).map(|_| NetworkLaneEnd::EMPTY).collect()
}

fn places_of(shape: &MessageShape) -> Vec<ChunkPlace<'static>> {
    (0..NetworkLane::places(shape)).map(|_| None).collect()
}

/// The number of peers for a table that must have at least `peers`: with some to
/// spare, because a table that is too short is copied.
pub(super) fn with_room(peers: u32, member: &Member) -> u32 {
    (peers + (peers / 8).max(STEP) - 1).min(member.size())
}

/// Splits the first parcel of a bag from the others.
fn split(bytes: &[u8]) -> Option<(Rank, &[u8], &[u8])> {
    let (from, rest) = bytes.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    let (parcel, rest) = rest.split_at(u32::from_ne_bytes(*len) as usize);
    Some((Rank(u32::from_ne_bytes(*from)), parcel, rest))
}

impl fmt::Debug for ParcelPost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParcelPost({} lanes)", self.lanes.len())
    }
}

/// Parcels that may find no room before the rest is left for later.
const TRIES: u32 = 4;
/// Peers by which a table grows at least; in tests each new peer makes it grow.
const STEP: u32 = if cfg!(test) { 1 } else { 64 };
/// Chunks that are made at first, and again each time there are too few.
pub(super) const POOL_CHUNKS: usize = 64;
/// Bytes that a bag is expected to hold; one bag is filled while the other is
/// emptied.
pub(super) const BAG_BYTES: usize = 64 << 10;
pub(super) const BAGS: usize = 2;
