//! Lanes in shared memory.
//!
//! Each rank holds, in its exposed memory, the lanes to it from every rank of
//! the node, itself too:
//!
//! ```text
//!  lane of rank 0: lines 16 KiB │ slots 32 KiB │ returned, needed 128 B
//!  lane of rank 1: ...
//! ```
//!
//! It stays until the job ends: a peer's last word may come late.

use crate::lend::zeroes;
use crate::{Error, Rank};
use std::fmt;
use std::ptr::NonNull;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{Access, Need, RegionKey, RemoteAddr};
use tsumugi_core::msg::{
    Copy, INLINE_WORDS, Kind, Lane, LaneReceiver, LaneSender, Line, Load, NeedLine, Offer, Packet,
    ReturnLine, Returned, Shape, Wire,
};
use tsumugi_core::sync::{Ordering, fence};
use tsumugi_core::wait::Bells;
use tsumugi_pvas::copy::{self, Mode};
use tsumugi_pvas::{Direct, Gauge, Member, fence as halves};
use tsumugi_ult::SystemFutex;

/// This rank's lanes, before the others know of them.
pub(crate) struct Lanes {
    at: NonNull<u8>,
    key: RegionKey,
    shape: Shape,
    /// For fences in two halves.
    is_registered: bool,
}

/// All lanes from and to this rank.
pub(crate) struct NodeWire {
    peers: Vec<Peer>,
    slot_bytes: usize,
}

/// Both lanes between this rank and another.
struct Peer {
    sender: LaneSender<'static>,
    receiver: LaneReceiver<'static>,
    slots_there: NonNull<u8>,
    slots_here: NonNull<u8>,
    bells: &'static Bells,
    /// Its workers pass a fence for us before they sleep.
    sleeps_fenced: bool,
}

impl Lanes {
    /// Bytes of the lane from one rank.
    pub(crate) const fn lane_bytes(shape: Shape) -> usize {
        slots_end(shape) + size_of::<ReturnLine>() + size_of::<NeedLine>()
    }

    /// Lanes that were never used.
    pub(crate) fn new(member: &Member, workers: usize) -> Result<Self, Error> {
        let shape = shape(member.size());
        let bytes = shape.peers as usize * Self::lane_bytes(shape);
        let at = zeroes(member, bytes)?;
        // SAFETY: exposed memory, which stays mapped and is never given back:
        // plain bytes and words.
        let region = unsafe { member.direct().register(at, bytes as u64, Access::ReadWrite)? };
        let is_registered = halves::register();
        // With more than one worker it is not enough to see who sleeps: who
        // looks for work must be seen, too.
        member.control().set_sleeps_fenced(is_registered && workers == 1);
        Ok(Self { at, key: region.key, shape, is_registered })
    }

    /// For the others.
    pub(crate) fn key(&self) -> RegionKey {
        self.key
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The lanes, when everybody has told their keys.
    ///
    /// # Errors
    ///
    /// A peer that is gone.
    pub(crate) fn connect(
        &self,
        member: &Member,
        keys: impl Iterator<Item = RegionKey>,
    ) -> Result<NodeWire, Error> {
        let (direct, own) = (member.direct(), member.rank());
        let lane_bytes = Self::lane_bytes(self.shape);
        let peers = (0..).map(Rank).zip(keys).map(|(rank, key)| {
            let there = theirs(&direct, RemoteAddr { rank, key, offset: 0 }, own, lane_bytes)?;
            // SAFETY: within our lanes.
            let here = unsafe { self.at.add(rank.0 as usize * lane_bytes) };
            // SAFETY: zeroed lanes, each with one sender and one receiver: we
            // are called once.
            let (sender, receiver) = unsafe {
                let (there, here) = (lane(there, self.shape), lane(here, self.shape));
                (LaneSender::new(there), LaneReceiver::new(here))
            };
            let control = member.control_of(rank);
            let bells: *const Bells = control.bells();
            Ok(Peer {
                sender,
                receiver,
                // SAFETY: within the lane.
                slots_there: unsafe { there.add(lines_end(self.shape)) },
                // SAFETY: the same.
                slots_here: unsafe { here.add(lines_end(self.shape)) },
                // SAFETY: a space that has a heap is never unmapped.
                bells: unsafe { &*bells },
                sleeps_fenced: self.is_registered && control.sleeps_fenced(),
            })
        });
        let peers = peers.collect::<Result<_, Error>>()?;
        Ok(NodeWire { peers, slot_bytes: self.shape.slot_bytes as usize })
    }
}

/// What messages cost a rank that is alone on its node, and what one rank more
/// there adds at most.
pub(crate) fn footprint() -> (usize, usize) {
    super::state::footprint(Lanes::lane_bytes(shape(1)), shape(1))
}

/// How much room there is in a job of so many ranks: tables of messages that
/// nobody has received yet grow with their number.
fn shape(peers: u32) -> Shape {
    let quota = (UNEXPECTED_MAX / peers.max(1)).clamp(16, 256);
    Shape { quota: 1 << quota.ilog2(), ..Shape::of(peers) }
}

impl NodeWire {
    #[inline(always)]
    fn peer(&mut self, rank: Rank) -> &mut Peer {
        &mut self.peers[rank.0 as usize]
    }

    /// Whether a packet has come, from anybody.
    pub(super) fn has_arrived(&mut self) -> bool {
        self.peers.iter_mut().any(|peer| peer.receiver.peek().is_some())
    }

    /// Copies bytes between slots and a buffer, slot by slot.
    fn each_slot(
        &self,
        first: NonNull<u8>,
        slots: u32,
        len: u64,
        mut copy: impl FnMut(NonNull<u8>, usize, usize),
    ) {
        let (mut slots, mut done, len) = (slots, 0, len as usize);
        while slots != 0 && done < len {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            let bytes = self.slot_bytes.min(len - done);
            // SAFETY: a shape has at most 32 slots, which lie there.
            copy(unsafe { first.add(slot * self.slot_bytes) }, done, bytes);
            done += bytes;
        }
    }
}

impl Wire for NodeWire {
    #[inline(always)]
    fn has_room(&mut self, to: Rank, lines: u32) -> bool {
        self.peer(to).sender.has_room(lines)
    }

    #[inline(always)]
    fn push(&mut self, to: Rank, packet: &Packet, load: Load) {
        let peer = self.peer(to);
        let (at, len) = match load {
            Load::Inline(at) => (at, usize::from(packet.count)),
            Load::Empty | Load::Offer(_) => (0, 0),
        };
        peer.sender.push(packet, load, |word| {
            // SAFETY: bytes of the message, which the sender has lent.
            unsafe { load_word(at as *const u8, word * 8, len) }
        });
        match packet.kind {
            Kind::Rts | Kind::Cts | Kind::Data => peer.ring_helped(),
            _ => peer.ring(),
        }
    }

    #[inline(always)]
    fn peek(&mut self, from: Rank) -> Option<Packet> {
        self.peer(from).receiver.peek()
    }

    #[inline(always)]
    fn deliver(&mut self, from: Rank, at: u64, len: u64) {
        let len = len as usize;
        self.peer(from).receiver.inline(len.div_ceil(8), |word, value| {
            // SAFETY: within the room that the receiver has lent.
            unsafe { store_word(at as *mut u8, word * 8, len, value) };
        });
    }

    fn keep(&mut self, from: Rank, into: &mut [u64; INLINE_WORDS]) {
        let receiver = &mut self.peer(from).receiver;
        let count = receiver.peek().map_or(0, |packet| usize::from(packet.count));
        receiver.inline(count.div_ceil(8), |word, value| into[word] = value);
    }

    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        let len = (len as usize).min(size_of_val(kept));
        // SAFETY: within the room that the receiver has lent.
        unsafe { (at as *mut u8).copy_from_nonoverlapping(kept.as_ptr().cast(), len) };
    }

    #[inline]
    fn offer(&mut self, from: Rank) -> Offer {
        self.peer(from).receiver.offer()
    }

    #[inline(always)]
    fn pop(&mut self, from: Rank) {
        self.peer(from).receiver.pop();
    }

    fn returned(&mut self, to: Rank) -> Returned {
        self.peer(to).sender.returned()
    }

    fn give_back(&mut self, from: Rank, returned: Returned) -> bool {
        self.peer(from).receiver.give_back(returned)
    }

    #[inline(always)]
    fn untold(&mut self, from: Rank) -> u32 {
        self.peer(from).receiver.untold()
    }

    fn set_starved(&mut self, to: Rank) {
        self.peer(to).sender.set_starved();
    }

    #[inline(always)]
    fn is_starved(&mut self, from: Rank) -> bool {
        self.peer(from).receiver.is_starved()
    }

    fn fence(&mut self) {
        LaneReceiver::fence();
    }

    fn ring(&mut self, from: Rank) {
        self.peer(from).ring();
    }

    fn write_slots(&mut self, to: Rank, slots: u32, at: u64, len: u64) {
        let first = self.peer(to).slots_there;
        self.each_slot(first, slots, len, |slot, done, bytes| {
            let from = at as *const u8;
            // SAFETY: a slot that is free, and bytes that the sender has lent.
            unsafe { from.add(done).copy_to_nonoverlapping(slot.as_ptr(), bytes) };
        });
    }

    fn read_slots(&mut self, from: Rank, slots: u32, at: u64, len: u64) {
        let first = self.peer(from).slots_here;
        self.each_slot(first, slots, len, |slot, done, bytes| {
            let to = at as *mut u8;
            // SAFETY: a slot that was written for us, and room that the
            // receiver has lent.
            unsafe { to.add(done).copy_from_nonoverlapping(slot.as_ptr(), bytes) };
        });
    }

    #[inline]
    fn copy(&mut self, copy: &Copy) {
        // SAFETY: both buffers are lent to the message.
        unsafe { carry_out(copy) };
    }
}

impl Peer {
    /// Wakes a worker of the rank if one sleeps.
    #[inline(always)]
    fn ring(&self) {
        if self.sleeps_fenced {
            self.bells.ring_fenced(&SystemFutex);
        } else {
            self.bells.ring(&SystemFutex);
        }
    }

    /// The same, or its helper if all compute.
    #[cold]
    fn ring_helped(&self) {
        // SeqCst: after the packet, before the bells are looked at.
        fence(Ordering::SeqCst);
        self.bells.ring_helped(&SystemFutex);
    }
}

/// Copies the bytes of a message.
///
/// # Safety
///
/// Both buffers are as long as it says, in reach of this process, and the
/// message's.
unsafe fn carry_out(copy: &Copy) {
    // SAFETY: the caller's; two buffers of messages do not overlap.
    between(copy, |mode, from, to, len| unsafe { copy::copy(mode, from, to, len) });
}

/// The same for a long one, by which the gauge sees how far its peer is.
///
/// # Safety
///
/// The same.
pub(super) unsafe fn carry_out_long(copy: &Copy, gauge: &Gauge) {
    // SAFETY: the same.
    between(copy, |mode, from, to, len| unsafe { gauge.copy(mode, from, to, len) });
}

/// Has a copy done, unless there is nothing to do.
fn between(copy: &Copy, by: impl FnOnce(Mode, NonNull<u8>, NonNull<u8>, usize)) {
    let mode = if copy.streaming { Mode::Streaming } else { Mode::Plain };
    let ends = [copy.from, copy.to].map(|at| NonNull::new(at as *mut u8));
    if let [Some(from), Some(to)] = ends
        && from != to
    {
        by(mode, from, to, copy.len as usize);
    }
}

/// The lane from `own` in another rank's memory.
fn theirs(
    direct: &Direct,
    lanes: RemoteAddr,
    own: Rank,
    lane_bytes: usize,
) -> Result<NonNull<u8>, Error> {
    let lane = lanes.add(u64::from(own.0) * lane_bytes as u64);
    Ok(direct.resolve(lane, lane_bytes as u64, Need::Write)?)
}

/// # Safety
///
/// A lane that was zeroed, for the rest of the job.
unsafe fn lane(at: NonNull<u8>, shape: Shape) -> Lane<'static> {
    // SAFETY: aligned and zeroed, and used as a lane alone.
    unsafe {
        let end = at.add(slots_end(shape));
        Lane {
            lines: std::slice::from_raw_parts(at.cast::<Line>().as_ptr(), shape.lines as usize),
            returned: end.cast::<ReturnLine>().as_ref(),
            need: end.add(size_of::<ReturnLine>()).cast::<NeedLine>().as_ref(),
        }
    }
}

const fn lines_end(shape: Shape) -> usize {
    shape.lines as usize * size_of::<Line>()
}

const fn slots_end(shape: Shape) -> usize {
    lines_end(shape) + (shape.slots * shape.slot_bytes) as usize
}

/// The word that starts `offset` bytes on, of `len` bytes; zeroes beyond.
///
/// # Safety
///
/// They can be read, and `offset` lies within.
#[inline(always)]
unsafe fn load_word(at: *const u8, offset: usize, len: usize) -> u64 {
    let left = len - offset;
    let mut word = [0; 8];
    // SAFETY: the caller's.
    unsafe {
        let at = at.add(offset);
        if left >= 8 {
            return at.cast::<u64>().read_unaligned();
        }
        word.as_mut_ptr().copy_from_nonoverlapping(at, left);
    }
    u64::from_ne_bytes(word)
}

/// # Safety
///
/// They can be written, and `offset` lies within.
#[inline(always)]
unsafe fn store_word(at: *mut u8, offset: usize, len: usize, word: u64) {
    let left = len - offset;
    // SAFETY: the caller's.
    unsafe {
        let at = at.add(offset);
        if left >= 8 {
            at.cast::<u64>().write_unaligned(word);
        } else {
            at.copy_from_nonoverlapping(word.to_ne_bytes().as_ptr(), left);
        }
    }
}

/// Unexpected messages of a rank in a job of many.
const UNEXPECTED_MAX: u32 = 4096;

// SAFETY: a rank's wire is used by whoever holds its lock; what it points to
// is shared memory made for that.
unsafe impl Send for NodeWire {}

impl fmt::Debug for NodeWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeWire({} peers)", self.peers.len())
    }
}
