//! Lanes to ranks of other nodes, over parcels: bytes that arrive once and
//! whole or never, in any order.
//!
//! A far lane is as long as a near one and has as many slots, but both of its
//! ends have memory for it: the sender keeps what was not sent, the receiver
//! what was not taken. What was returned says how much more may come, so that
//! nothing is ever sent for which there is no place. That memory is of chunks
//! which all lanes share: one in which nothing lies has none.
//!
//! ```text
//!   sender                                            receiver
//!   push ─► outbox ── parcels, at most 32 on the way ─► inbox ─► peek, pop
//!             ▲                                           │
//!             └─── returned, asked, acknowledged ◄────────┘
//!                  on parcels of the other way, or alone
//! ```
//!
//! Packets that wait share parcels. Addresses stay here. A long message whose
//! bytes have a [`place`](Buffers::place) in the network is fetched by its
//! receiver, all others go through slots, as many at once as there are.
//! `outbox` says what goes when, `inbox` how order is restored,
//! `parcel` what the bytes are, `chunk` and `ring` where they lie.
//!
//! # How to drive it
//!
//! 1. [`connect`](Mail::connect) before the first packet to or from a rank: less
//!    than a KiB for each. [`feed`](Mail::feed) with chunks whenever it
//!    [is short](Mail::is_short) of them; at most [`FarLane::places`] for each
//!    lane are ever in use, 98 KiB as a rule, if as much waits both ways.
//! 2. [`take`](Mail::take) what has come, then
//!    [`poll_arrived`](Mail::poll_arrived): whose lanes are worth a look.
//! 3. The calls of a [`Wire`](super::Wire) for far ranks.
//! 4. [`poll_parcel`](Mail::poll_parcel) until `None`: send it, then
//!    [`posted`](Mail::posted), or [`refused`](Mail::refused) if there is no
//!    room: it is built again later. Before nobody looks for a while, too, as
//!    long as there [is something unsent](Mail::has_unsent).
//!
//! Progress: every call is wait-free, on one thread at a time.

mod chunk;
mod inbox;
mod outbox;
mod parcel;
mod ring;

pub use chunk::{Chunk, Place};
pub use parcel::{PARCEL_BYTES_MIN, ParcelError};

use self::chunk::{Pool, chunks_of};
use self::inbox::Inbox;
use self::outbox::Outbox;
use self::parcel::Parcel;
use self::ring::{Ring, Slots};
use super::list::{Link, Linked, List};
use super::packet::{INLINE_WORDS, Load, Offer, Packet};
use super::setup::{SetupError, Shape};
use super::wire::Returned;
use crate::mem::Rank;
use crate::sync::mutant;
use core::fmt;

/// Where the buffers of messages are.
pub trait Buffers {
    /// Copies bytes from this address on.
    fn read(&mut self, at: u64, into: &mut [u8]);

    /// Copies bytes to it.
    fn write(&mut self, at: u64, bytes: &[u8]);

    /// The word by which far ranks can fetch so many bytes from this address
    /// on, if they can: what a [`Job`](super::Job) of theirs says.
    fn place(&mut self, at: u64, len: u64) -> Option<u64> {
        let _ = (at, len);
        None
    }
}

/// The lanes between this rank and all far ones.
pub struct Mail<'t> {
    shape: Shape,
    ends: &'t mut [MailEnd<'t>],
    /// Those that may have a parcel to be sent, and that got one.
    ready: List<0>,
    arrived: List<1>,
    pool: Pool<'t>,
}

/// Both lanes between this rank and a far one.
#[derive(Debug)]
pub struct MailEnd<'t> {
    lane: Option<&'t mut FarLane<'t>>,
    links: [Link; 2],
    is_ready: bool,
    has_arrived: bool,
    is_lost: bool,
}

/// What lies between two ranks, at one of them.
#[derive(Debug)]
pub struct FarLane<'t> {
    out: Outbox<'t>,
    inbox: Inbox<'t>,
}

impl<'t> FarLane<'t> {
    /// How many places a lane has for chunks.
    pub const fn places(shape: &Shape) -> usize {
        let (lines, slots) = chunks_of(shape);
        2 * (lines + slots) + 1
    }

    /// A lane that was never used: all of its places are empty.
    ///
    /// # Errors
    ///
    /// [`SetupError`]: no shape, or too few places.
    pub fn new(shape: &Shape, places: &'t mut [Place<'t>]) -> Result<Self, SetupError> {
        if !shape.is_valid() {
            return Err(SetupError::Shape(*shape));
        }
        let (entries, needed) = (places.len(), Self::places(shape));
        if entries < needed {
            return Err(SetupError::Tables { entries, needed });
        }
        let (lines, slots) = chunks_of(shape);
        let (out_lines, rest) = places.split_at_mut(lines);
        let (out_slots, rest) = rest.split_at_mut(slots);
        let (in_lines, rest) = rest.split_at_mut(lines);
        let (in_slots, held) = rest.split_at_mut(slots);
        let ring = |places| Ring::new(shape.lines, places);
        let out = Outbox::new(ring(out_lines), Slots::new(shape, out_slots));
        let inbox = Inbox::new(ring(in_lines), Slots::new(shape, in_slots), held);
        Ok(Self { out, inbox })
    }
}

impl MailEnd<'_> {
    /// Not connected.
    pub const EMPTY: Self = Self {
        lane: None,
        links: [Link::NONE; 2],
        is_ready: false,
        has_arrived: false,
        is_lost: false,
    };
}

impl<'t> Mail<'t> {
    /// Lanes of a job's machine, one end for each rank, none connected.
    ///
    /// # Errors
    ///
    /// [`SetupError`]: no shape, or too few ends.
    pub fn new(shape: Shape, ends: &'t mut [MailEnd<'t>]) -> Result<Self, SetupError> {
        if !shape.is_valid() {
            return Err(SetupError::Shape(shape));
        }
        let (entries, needed) = (ends.len(), shape.peers as usize);
        if entries < needed {
            return Err(SetupError::Tables { entries, needed });
        }
        let pool = Pool::default();
        Ok(Self { shape, ends, ready: List::EMPTY, arrived: List::EMPTY, pool })
    }

    /// Goes on with more ends.
    ///
    /// # Errors
    ///
    /// [`SetupError::Tables`]: there are fewer; nothing has happened.
    pub fn grow(&mut self, ends: &'t mut [MailEnd<'t>]) -> Result<(), SetupError> {
        let (entries, needed) = (ends.len(), self.ends.len());
        if entries < needed {
            return Err(SetupError::Tables { entries, needed });
        }
        self.ends.swap_with_slice(&mut ends[..needed]);
        self.ends = ends;
        Ok(())
    }

    /// Gives the lane between this rank and a far one.
    ///
    /// # Panics
    ///
    /// If there is no such rank, or it has one.
    pub fn connect(&mut self, rank: Rank, lane: &'t mut FarLane<'t>) {
        let before = self.ends[rank.0 as usize].lane.replace(lane);
        assert!(before.is_none(), "{rank} is connected");
    }

    /// Gives memory for what lies in lanes.
    pub fn feed(&mut self, chunks: &'t mut [Chunk<'t>]) {
        for chunk in chunks {
            self.pool.give(chunk);
        }
    }

    /// Whether there may be too few chunks for the next call: then it is to be
    /// fed first, with [`FarLane::places`] of them at least.
    #[inline]
    pub const fn is_short(&self) -> bool {
        let (lines, slots) = chunks_of(&self.shape);
        self.pool.free() <= lines + slots
    }

    /// Chunks that no lane uses.
    pub const fn chunks_free(&self) -> usize {
        self.pool.free()
    }

    /// Whether a rank was connected.
    #[inline]
    pub fn is_connected(&self, rank: Rank) -> bool {
        self.ends.get(rank.0 as usize).is_some_and(|end| end.lane.is_some())
    }

    /// Takes a parcel that has come. Nothing is believed that it says; if it
    /// is refused, the rank that sent it is not to be trusted: its lane stays
    /// where it is.
    ///
    /// # Errors
    ///
    /// [`ParcelError`]; nothing has happened.
    ///
    /// # Panics
    ///
    /// If it [is short](Self::is_short) of chunks, it may.
    pub fn take(&mut self, from: Rank, bytes: &[u8]) -> Result<(), ParcelError> {
        let end = self.ends.get_mut(from.0 as usize).filter(|end| !end.is_lost);
        let lane = end.and_then(|end| end.lane.as_mut()).ok_or(ParcelError::NoLane)?;
        let (acked, numbered) = match Parcel::parse(bytes, &self.shape)? {
            Parcel::Acknowledged(acked) => (acked, None),
            Parcel::Numbered(head, records) => {
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
        self.rouse(from);
        Ok(())
    }

    /// The next rank of which something became visible.
    #[inline]
    pub fn poll_arrived(&mut self) -> Option<Rank> {
        let index = self.arrived.pop(self.ends)?;
        self.ends[index].has_arrived = false;
        Some(Rank(index as u32))
    }

    /// Writes the next parcel that is to be sent: to whom, and how long it is.
    /// It is asked for again unless it is [posted](Self::posted).
    ///
    /// # Panics
    ///
    /// If there is room for less than [`PARCEL_BYTES_MIN`].
    pub fn poll_parcel(&mut self, into: &mut [u8]) -> Option<(Rank, usize)> {
        assert!(into.len() >= PARCEL_BYTES_MIN, "{} bytes for a parcel", into.len());
        while let Some(index) = self.ready.first() {
            let lane = self.ends[index].lane.as_mut().expect("only such are ready");
            let len = lane.out.build(&self.shape, &lane.inbox, into);
            if len > 0 {
                return Some((Rank(index as u32), len));
            }
            self.ready.pop(self.ends);
            self.ends[index].is_ready = false;
        }
        None
    }

    /// The network has the parcel to that rank which was polled last.
    pub fn posted(&mut self, to: Rank) {
        if let Some((FarLane { out, inbox }, pool)) = self.lane_and_pool(to) {
            out.post(pool, inbox);
        }
        self.turn(to);
    }

    /// It has no room for it: other ranks come first now, and this one once
    /// more later.
    pub fn refused(&mut self, to: Rank) {
        if mutant("mail_refused_forgotten")
            && let Some((FarLane { out, inbox }, pool)) = self.lane_and_pool(to)
        {
            out.post(pool, inbox);
        }
        self.turn(to);
    }

    /// Whether there may be parcels to be sent.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether packets to a rank wait here, maybe until it acknowledges some.
    pub fn keeps_back(&self, to: Rank) -> bool {
        let lane = self.ends.get(to.0 as usize).and_then(|end| end.lane.as_ref());
        lane.is_some_and(|lane| lane.out.has_unsent())
    }

    /// A rank has died: what was for it is dropped, and nothing more is taken
    /// of it. What is here can still be read. To be called after the machine
    /// was told.
    pub fn lost(&mut self, rank: Rank) {
        let index = rank.0 as usize;
        let Some(end) = self.ends.get_mut(index) else { return };
        end.is_lost = true;
        if let Some(lane) = &mut end.lane {
            lane.out.drop_all(&mut self.pool);
            lane.inbox.close();
        }
        if core::mem::take(&mut end.is_ready) {
            self.ready.remove(self.ends, index);
        }
    }

    // As in a `Wire`.

    /// Whether `lines` more lines fit into the lane to that rank.
    pub fn has_room(&mut self, to: Rank, lines: u32) -> bool {
        self.lane(to).is_some_and(|lane| lane.out.has_room(lines))
    }

    /// Puts a packet into the lane, for which there is room.
    ///
    /// # Panics
    ///
    /// If it [is short](Self::is_short) of chunks, it may.
    pub fn push(&mut self, to: Rank, packet: &Packet, load: Load, buffers: &mut impl Buffers) {
        let (lane, pool) = self.lane_and_pool(to).expect("there was room");
        lane.out.push(pool, packet, load, buffers);
        self.rouse(to);
    }

    /// The next packet of the lane from that rank; it stays there.
    pub fn peek(&mut self, from: Rank) -> Option<Packet> {
        self.lane(from)?.inbox.peek()
    }

    /// Copies the first `len` inline bytes of that packet to an address.
    pub fn deliver(&mut self, from: Rank, at: u64, len: u64, buffers: &mut impl Buffers) {
        if let Some(lane) = self.lane(from) {
            lane.inbox.deliver(at, len, buffers);
        }
    }

    /// Copies its inline bytes to the start of `into`.
    pub fn keep(&mut self, from: Rank, into: &mut [u64; INLINE_WORDS]) {
        if let Some(lane) = self.lane(from) {
            lane.inbox.keep(into);
        }
    }

    /// The offer that rides on it.
    pub fn offer(&mut self, from: Rank) -> Offer {
        self.lane(from).expect("a packet was there").inbox.offer()
    }

    /// Takes the packet out of the lane.
    pub fn pop(&mut self, from: Rank) {
        if let Some((lane, pool)) = self.lane_and_pool(from) {
            lane.inbox.pop(pool);
        }
    }

    /// What that rank has returned last.
    pub fn returned(&mut self, to: Rank) -> Returned {
        self.lane(to).map_or(Returned::default(), |lane| lane.out.returned)
    }

    /// Returns to that rank. Whether it had asked for more.
    pub fn give_back(&mut self, from: Rank, returned: Returned) -> bool {
        let shape = self.shape;
        let Some((FarLane { out, inbox }, pool)) = self.lane_and_pool(from) else { return false };
        let was_starved = inbox.answer();
        let lines = inbox.give_back(pool, returned.slots);
        out.give_back(&shape, Returned { lines, ..returned }, was_starved);
        self.rouse(from);
        was_starved
    }

    /// Lines of the lane from that rank taken since they were given back.
    pub fn untold(&mut self, from: Rank) -> u32 {
        self.lane(from).map_or(0, |lane| lane.inbox.untold())
    }

    /// Says to the receiver that more is needed than it has returned.
    pub fn set_starved(&mut self, to: Rank) {
        if let Some(lane) = self.lane(to) {
            lane.out.ask();
            self.rouse(to);
        }
    }

    /// Whether the sender has said so since something was given back to it.
    pub fn is_starved(&mut self, from: Rank) -> bool {
        self.lane(from).is_some_and(|lane| lane.inbox.is_starved())
    }

    /// Copies bytes into these slots of the lane to that rank.
    ///
    /// # Panics
    ///
    /// If it [is short](Self::is_short) of chunks, it may.
    pub fn write_slots(
        &mut self,
        to: Rank,
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

    /// Copies bytes out of these slots of the lane from that rank, which are
    /// not asked for again.
    pub fn read_slots(
        &mut self,
        from: Rank,
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

    fn lane(&mut self, rank: Rank) -> Option<&mut FarLane<'t>> {
        self.ends.get_mut(rank.0 as usize)?.lane.as_deref_mut()
    }

    fn lane_and_pool(&mut self, rank: Rank) -> Option<(&mut FarLane<'t>, &mut Pool<'t>)> {
        let lane = self.ends.get_mut(rank.0 as usize)?.lane.as_deref_mut()?;
        Some((lane, &mut self.pool))
    }

    /// There may be a parcel for that rank.
    fn rouse(&mut self, rank: Rank) {
        let index = rank.0 as usize;
        let end = &mut self.ends[index];
        let wants = end.lane.as_ref().is_some_and(|lane| lane.out.wants(&lane.inbox));
        if wants && !end.is_lost && !core::mem::replace(&mut end.is_ready, true) {
            self.ready.push(self.ends, index);
        }
    }

    /// The rank goes behind the others.
    fn turn(&mut self, rank: Rank) {
        let index = rank.0 as usize;
        if core::mem::take(&mut self.ends[index].is_ready) {
            self.ready.remove(self.ends, index);
        }
        self.rouse(rank);
    }
}

impl Linked<0> for MailEnd<'_> {
    fn link(&mut self) -> &mut Link {
        &mut self.links[0]
    }
    fn next(&self) -> u32 {
        self.links[0].next()
    }
}

impl Linked<1> for MailEnd<'_> {
    fn link(&mut self) -> &mut Link {
        &mut self.links[1]
    }
    fn next(&self) -> u32 {
        self.links[1].next()
    }
}

impl fmt::Debug for Mail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mail({:?})", self.shape)
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
