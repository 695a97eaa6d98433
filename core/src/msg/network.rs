//! Lanes to ranks of other nodes, over parcels. A parcel is the payload of a
//! network packet: bytes that arrive once and whole or never, in any order.
//!
//! A network lane is as long as a near one and has as many slots, but both of its
//! ends have memory for it: the sender keeps what was not sent, the receiver what
//! was not taken. The returned counts (credits) limit what may still be sent, so
//! that no packet is sent without a place for it. The memory consists of chunks
//! that all lanes share: an empty lane has none.
//!
//! ```text
//!   sender                                            receiver
//!   push ─► outbox ── parcels, at most 32 on the way ─► inbox ─► peek, pop
//!             ▲                                           │
//!             └──── returned, need, acknowledged ◄────────┘
//!                  on parcels of the other way, or alone
//! ```
//!
//! Packets that wait share parcels. Addresses are not sent. A long message that
//! has a [`place`](Buffers::place) in the network is fetched by its receiver; all
//! others go through slots, as many at once as there are. `outbox` decides what
//! goes when, `inbox` restores the order, `parcel` is the format, `chunk` and
//! `ring` are the memory.
//!
//! # How to drive it
//!
//! 1. [`connect`](NetworkLanes::connect) before the first packet to or from a rank: less
//!    than a KiB for each. [`feed`](NetworkLanes::feed) with chunks whenever it
//!    [is short](NetworkLanes::is_short) of them; at most [`NetworkLane::places`] for each
//!    lane are ever in use, by default 98 KiB, if both directions are full.
//! 2. [`take`](NetworkLanes::take) each parcel that has come, then
//!    [`poll_arrived`](NetworkLanes::poll_arrived): ranks with packets in their lanes.
//! 3. The calls of a [`LaneTransport`](super::LaneTransport) for remote ranks.
//! 4. [`poll_parcel`](NetworkLanes::poll_parcel) until `None`: send the parcel, then call
//!    [`posted`](NetworkLanes::posted), or [`refused`](NetworkLanes::refused) if the network has
//!    no room: then the parcel is built again later. Do this also before the rank
//!    stops polling for a while, as long as
//!    [parcels are unsent](NetworkLanes::has_unsent).
//!
//! Progress: every call is wait-free, on one thread at a time.

mod buffers;
mod chunk;
mod inbox;
mod lane;
mod outbox;
mod parcel;
mod ring;
mod window;

pub use buffers::Buffers;
pub use chunk::{ChunkPlace, LaneChunk};
pub use lane::{NetworkLane, NetworkLaneEnd};
pub use parcel::{PARCEL_BYTES_MIN, ParcelError};

use self::chunk::Pool;
use self::parcel::ParsedParcel;
use self::ring::chunks_of;
use super::list::IndexList;
use super::packet::{INLINE_WORDS, Offer, Packet, PacketLoad};
use super::shape::{MessageShape, SetupError};
use super::wire::Returned;
use crate::mem::PeerIndex;
use crate::mutate;
use core::fmt;

/// The lanes between this rank and all remote ranks.
pub struct NetworkLanes<'t> {
    shape: MessageShape,
    ends: &'t mut [NetworkLaneEnd<'t>],
    /// Ends that may have a parcel to be sent, and ends that got one.
    ready: IndexList<0>,
    arrived: IndexList<1>,
    pool: Pool<'t>,
}

impl<'t> NetworkLanes<'t> {
    /// Makes the lanes of a job's machine, one end for each rank, none connected.
    ///
    /// # Errors
    ///
    /// [`SetupError::Shape`] if the shape is not valid; [`SetupError::Tables`] if there are
    /// fewer ends than ranks.
    pub fn new(
        shape: MessageShape,
        ends: &'t mut [NetworkLaneEnd<'t>],
    ) -> Result<Self, SetupError> {
        if !shape.is_valid() {
            return Err(SetupError::Shape(shape));
        }
        let (entries, needed) = (ends.len(), shape.peers as usize);
        if entries < needed {
            return Err(SetupError::Tables { entries, needed });
        }
        let pool = Pool::default();
        Ok(Self { shape, ends, ready: IndexList::EMPTY, arrived: IndexList::EMPTY, pool })
    }

    /// Replaces the ends by a longer table; the old ends move there.
    ///
    /// # Errors
    ///
    /// [`SetupError::Tables`]: the new table is shorter; nothing has happened.
    pub fn grow(&mut self, ends: &'t mut [NetworkLaneEnd<'t>]) -> Result<(), SetupError> {
        let (entries, needed) = (ends.len(), self.ends.len());
        if entries < needed {
            return Err(SetupError::Tables { entries, needed });
        }
        self.ends.swap_with_slice(&mut ends[..needed]);
        self.ends = ends;
        Ok(())
    }

    /// Sets the lane between this rank and a remote rank.
    ///
    /// # Panics
    ///
    /// If there is no such rank, or it has a lane.
    pub fn connect(&mut self, peer: PeerIndex, lane: &'t mut NetworkLane<'t>) {
        let before = self.ends[peer.0 as usize].lane.replace(lane);
        assert!(before.is_none(), "{peer} has a lane already");
    }

    /// Adds chunks, the memory for packets and bytes in lanes.
    pub fn feed(&mut self, chunks: &'t mut [LaneChunk<'t>]) {
        for chunk in chunks {
            self.pool.give(chunk);
        }
    }

    /// Returns whether there may be too few chunks for the next call: then the
    /// caller must feed it first, with [`NetworkLane::places`] chunks at least.
    #[inline]
    pub const fn is_short(&self) -> bool {
        let (lines, slots) = chunks_of(&self.shape);
        self.pool.free() <= lines + slots
    }

    /// Returns how many chunks no lane uses.
    pub const fn chunks_free(&self) -> usize {
        self.pool.free()
    }

    /// Returns whether a rank was connected.
    #[inline]
    pub fn is_connected(&self, peer: PeerIndex) -> bool {
        self.ends.get(peer.0 as usize).is_some_and(|end| end.lane.is_some())
    }

    /// Takes a parcel that has come. Its content is not trusted. If the parcel is
    /// refused, the rank that sent it has a fault, and its lane stays where it
    /// is.
    ///
    /// # Errors
    ///
    /// Nothing has happened then.
    ///
    /// - [`ParcelError::NoLane`]: there is no rank `from`, or it was not connected, or it
    ///   was lost.
    /// - [`ParcelError::Broken`]: an earlier parcel of this lane was refused.
    /// - [`ParcelError::Short`], [`ParcelError::Kind`], [`ParcelError::Inline`],
    ///   [`ParcelError::Slot`]: the head or a record is not in the format of parcels.
    /// - [`ParcelError::Number`], [`ParcelError::Lines`], [`ParcelError::Acknowledged`]:
    ///   the head does not agree with the parcels before.
    ///
    /// # Panics
    ///
    /// May panic if it [is short](Self::is_short) of chunks.
    pub fn take(&mut self, from: PeerIndex, bytes: &[u8]) -> Result<(), ParcelError> {
        let end = self.ends.get_mut(from.0 as usize).filter(|end| !end.is_lost);
        let lane = end.and_then(|end| end.lane.as_mut()).ok_or(ParcelError::NoLane)?;
        let (acked, numbered) = match ParsedParcel::parse(bytes, &self.shape)? {
            ParsedParcel::Acknowledged(acked) => (acked, None),
            ParsedParcel::Numbered(head, records) => {
                lane.inbox.check(&head)?;
                (head.acked, Some((head, records)))
            }
        };
        if !lane.out.acknowledge(acked) {
            return Err(ParcelError::Acknowledged(acked));
        }
        let news =
            numbered.and_then(|(head, records)| lane.inbox.put(&mut self.pool, &head, records));
        if let Some(news) = news {
            lane.out.learn(news.returned);
            if news.asks {
                lane.out.asked();
            }
            let end = &mut self.ends[from.0 as usize];
            if !core::mem::replace(&mut end.has_arrived, true) {
                self.arrived.push(self.ends, from.0 as usize);
            }
        }
        self.schedule_pump(from);
        Ok(())
    }

    /// Returns the next rank with packets or counts that became visible.
    #[inline]
    pub fn poll_arrived(&mut self) -> Option<PeerIndex> {
        let index = self.arrived.pop(self.ends)?;
        self.ends[index].has_arrived = false;
        Some(PeerIndex(index as u32))
    }

    /// Writes the next parcel to be sent. Returns its target and its length. The
    /// parcel is offered again unless the caller reports it as
    /// [posted](Self::posted).
    ///
    /// # Panics
    ///
    /// If `into` is shorter than [`PARCEL_BYTES_MIN`].
    pub fn poll_parcel(&mut self, into: &mut [u8]) -> Option<(PeerIndex, usize)> {
        assert!(
            into.len() >= PARCEL_BYTES_MIN,
            "a parcel needs {PARCEL_BYTES_MIN} bytes, not {}",
            into.len()
        );
        while let Some(index) = self.ready.first() {
            let lane = self.ends[index].lane.as_mut().expect("a ready end has a lane");
            let len = lane.out.build(&self.shape, &lane.inbox, into);
            if len > 0 {
                return Some((PeerIndex(index as u32), len));
            }
            self.ready.pop(self.ends);
            self.ends[index].is_ready = false;
        }
        None
    }

    /// Takes the report that the network has the last polled parcel to that rank.
    pub fn posted(&mut self, to: PeerIndex) {
        if let Some((NetworkLane { out, inbox }, pool)) = self.lane_and_pool(to) {
            out.post(pool, inbox);
        }
        self.turn(to);
    }

    /// Takes the report that the network has no room for that parcel: other ranks
    /// come first now, and this rank again later.
    pub fn refused(&mut self, to: PeerIndex) {
        mutate!("mail_refused_forgotten": self.turn(to) => self.posted(to));
    }

    /// Returns whether there may be parcels to be sent.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns whether packets to a rank wait here, perhaps for an
    /// acknowledgement.
    pub fn keeps_back(&self, to: PeerIndex) -> bool {
        let lane = self.ends.get(to.0 as usize).and_then(|end| end.lane.as_ref());
        lane.is_some_and(|lane| lane.out.has_unsent())
    }

    /// Takes the death of a rank: all that was to be sent to it is dropped, and
    /// no parcel is taken from it any more. Packets that are here can still be
    /// read. To be called after [`MessageMachine::lost`](super::MessageMachine::lost).
    pub fn lost(&mut self, peer: PeerIndex) {
        let index = peer.0 as usize;
        let Some(end) = self.ends.get_mut(index) else { return };
        end.is_lost = true;
        if let Some(lane) = &mut end.lane {
            lane.out.drop_all(&mut self.pool);
        }
        if core::mem::take(&mut end.is_ready) {
            self.ready.remove(self.ends, index);
        }
    }

    // The calls below are as in a `LaneTransport`.

    /// Returns whether `lines` more lines fit into the lane to that rank.
    pub fn has_room(&mut self, to: PeerIndex, lines: u32) -> bool {
        self.lane(to).is_some_and(|lane| lane.out.has_room(lines))
    }

    /// Puts a packet into the lane; there must be room.
    ///
    /// # Panics
    ///
    /// May panic if it [is short](Self::is_short) of chunks.
    pub fn push(
        &mut self,
        to: PeerIndex,
        packet: &Packet,
        load: PacketLoad,
        buffers: &mut impl Buffers,
    ) {
        let (lane, pool) = self.lane_and_pool(to).expect("a lane with room is connected");
        lane.out.push(pool, packet, load, buffers);
        self.schedule_pump(to);
    }

    /// Returns the next packet of the lane from that rank; it stays there.
    pub fn peek(&mut self, from: PeerIndex) -> Option<Packet> {
        self.lane(from)?.inbox.peek()
    }

    /// Copies the first `len` inline bytes of the next packet to an address.
    pub fn deliver(&mut self, from: PeerIndex, at: u64, len: u64, buffers: &mut impl Buffers) {
        if let Some(lane) = self.lane(from) {
            lane.inbox.deliver(at, len, buffers);
        }
    }

    /// Copies the inline bytes of the next packet to the start of `into`.
    pub fn keep(&mut self, from: PeerIndex, into: &mut [u64; INLINE_WORDS]) {
        if let Some(lane) = self.lane(from) {
            lane.inbox.keep(into);
        }
    }

    /// Returns the offer in the next packet.
    pub fn offer(&mut self, from: PeerIndex) -> Offer {
        self.lane(from).expect("the lane has a packet").inbox.offer()
    }

    /// Takes the next packet out of the lane.
    pub fn pop(&mut self, from: PeerIndex) {
        if let Some((lane, pool)) = self.lane_and_pool(from) {
            lane.inbox.pop(pool);
        }
    }

    /// Returns the counts that that rank has returned last.
    pub fn returned(&mut self, to: PeerIndex) -> Returned {
        self.lane(to).map_or(Returned::default(), |lane| lane.out.returned)
    }

    /// Returns counts to that rank. Returns whether that rank had requested more.
    pub fn give_back(&mut self, from: PeerIndex, returned: Returned) -> bool {
        let shape = self.shape;
        let Some((NetworkLane { out, inbox }, pool)) = self.lane_and_pool(from) else {
            return false;
        };
        let was_starved = inbox.answer();
        let lines = inbox.give_back(pool, returned.slots);
        out.give_back(&shape, Returned { lines, ..returned }, was_starved);
        self.schedule_pump(from);
        was_starved
    }

    /// Returns how many lines were taken from that rank's lane and not given
    /// back.
    pub fn untold(&mut self, from: PeerIndex) -> u32 {
        self.lane(from).map_or(0, |lane| lane.inbox.untold())
    }

    /// Requests more from the receiver than it has returned.
    pub fn set_starved(&mut self, to: PeerIndex) {
        if let Some(lane) = self.lane(to) {
            lane.out.ask();
            self.schedule_pump(to);
        }
    }

    /// Returns whether the sender has requested more since the last `give_back`
    /// to it.
    pub fn is_starved(&mut self, from: PeerIndex) -> bool {
        self.lane(from).is_some_and(|lane| lane.inbox.is_starved())
    }

    /// Copies bytes into these slots of the lane to that rank.
    ///
    /// # Panics
    ///
    /// May panic if it [is short](Self::is_short) of chunks.
    pub fn write_slots(
        &mut self,
        to: PeerIndex,
        slots: u32,
        at: u64,
        len: u64,
        buffers: &mut impl Buffers,
    ) {
        let shape = self.shape;
        if let Some((lane, pool)) = self.lane_and_pool(to) {
            lane.out.write_slots(pool, &shape, slots, at, len, buffers);
        }
    }

    /// Copies bytes out of these slots of the lane from that rank. The slots can
    /// be read only once.
    pub fn read_slots(
        &mut self,
        from: PeerIndex,
        slots: u32,
        at: u64,
        len: u64,
        buffers: &mut impl Buffers,
    ) {
        let shape = self.shape;
        if let Some((lane, pool)) = self.lane_and_pool(from) {
            lane.inbox.read_slots(pool, &shape, slots, at, len, buffers);
        }
    }

    fn lane(&mut self, peer: PeerIndex) -> Option<&mut NetworkLane<'t>> {
        self.ends.get_mut(peer.0 as usize)?.lane.as_deref_mut()
    }

    fn lane_and_pool(&mut self, peer: PeerIndex) -> Option<(&mut NetworkLane<'t>, &mut Pool<'t>)> {
        let lane = self.ends.get_mut(peer.0 as usize)?.lane.as_deref_mut()?;
        Some((lane, &mut self.pool))
    }

    /// Puts a rank on the list of ranks that may have a parcel to be sent.
    fn schedule_pump(&mut self, peer: PeerIndex) {
        let index = peer.0 as usize;
        let end = &mut self.ends[index];
        let wants = end.lane.as_ref().is_some_and(|lane| lane.out.wants(&lane.inbox));
        if wants && !end.is_lost && !core::mem::replace(&mut end.is_ready, true) {
            self.ready.push(self.ends, index);
        }
    }

    /// Moves the rank behind the others.
    fn turn(&mut self, peer: PeerIndex) {
        let index = peer.0 as usize;
        if core::mem::take(&mut self.ends[index].is_ready) {
            self.ready.remove(self.ends, index);
        }
        self.schedule_pump(peer);
    }
}

impl fmt::Debug for NetworkLanes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NetworkLanes({:?})", self.shape)
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
