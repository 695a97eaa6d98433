//! All lanes of a rank, in memory that its peers can reach.
//!
//! ```text
//!  memory of rank j, for each rank i:
//!    lines    64 bytes each            i writes
//!    return   64 bytes                 j writes, i reads when it needs room
//!    need     64 bytes                 i writes
//!    slots    of 2 KiB by default      i writes
//! ```
//!
//! All ranks have the same layout. This is the only place where addresses become
//! memory: the caller is responsible for each address that it passes.

use super::line::{Lane, LaneLine, LaneReceiver, LaneSender, NeedLine, ReturnLine};
use super::packet::{INLINE_WORDS, Offer, Packet, PacketLoad};
use super::shape::{MessageShape, SetupError};
use super::split::{Split, SplitSide};
use super::wire::{Copy, LaneTransport, Returned};
use crate::mem::{LocalRank, PeerIndex};
use core::fmt;
use core::ptr::{self, NonNull};

/// The lanes of one rank: from its peers, and to them.
pub struct NodeLanes<'t> {
    shape: MessageShape,
    own: LocalRank,
    ends: &'t mut [LaneEnd],
}

/// Both lanes between this rank and a peer.
#[derive(Debug, Default)]
pub struct LaneEnd {
    from: Option<LaneFromPeer>,
    to: Option<LaneToPeer>,
}

#[derive(Debug)]
struct LaneFromPeer {
    lane: LaneReceiver<'static>,
    slots: NonNull<u8>,
}

#[derive(Debug)]
struct LaneToPeer {
    lane: LaneSender<'static>,
    slots: NonNull<u8>,
    /// Lines that this rank had taken from the peer when it sent the last packet
    /// there.
    heard: u32,
}

impl MessageShape {
    /// Alignment of the memory of lanes.
    pub const ALIGN: usize = 64;

    /// Returns the bytes of exposed memory that a rank provides for its peers: by
    /// default 48 KiB and a little for each.
    pub const fn memory_size(&self) -> usize {
        self.peers as usize * self.lane_bytes()
    }

    const fn lane_bytes(&self) -> usize {
        self.slots_at() + self.slots as usize * self.slot_bytes as usize
    }

    const fn slots_at(&self) -> usize {
        (self.lines as usize + 2) * size_of::<LaneLine>()
    }
}

impl LaneEnd {
    /// No lanes.
    pub const EMPTY: Self = Self { from: None, to: None };
}

impl<'t> NodeLanes<'t> {
    /// Makes the lanes of `rank`, which are in `memory`; it cannot send to any
    /// peer yet.
    ///
    /// # Errors
    ///
    /// [`SetupError::Shape`] if the shape is not valid, or `rank` is not below its number
    /// of ranks; [`SetupError::Tables`] if there are fewer ends than ranks.
    ///
    /// # Safety
    ///
    /// `memory` points to [`memory_size`](MessageShape::memory_size) bytes, aligned to
    /// [`MessageShape::ALIGN`] and zero until a peer writes to them. They live as long
    /// as `ends` are used, and are used only for the lanes of this rank and this
    /// shape, by one `NodeLanes` on each side.
    ///
    /// Every address that is given to the machine over these lanes is in memory
    /// that lives, and that the machine may read or write, for as long as the
    /// machine says. The same holds at its peers, for addresses that are in
    /// reach.
    pub unsafe fn new(
        own: LocalRank,
        shape: MessageShape,
        memory: NonNull<u8>,
        ends: &'t mut [LaneEnd],
    ) -> Result<Self, SetupError> {
        if !shape.is_valid() || own.0 >= shape.peers {
            return Err(SetupError::Shape(shape));
        }
        let (entries, needed) = (ends.len(), shape.peers as usize);
        if entries < needed {
            return Err(SetupError::Tables { entries, needed });
        }
        for (index, end) in ends[..needed].iter_mut().enumerate() {
            // SAFETY: inside `memory`, as the caller of `new` promises.
            let (lane, slots) = unsafe { lane_at(shape, memory, index) };
            // SAFETY: the only receiver: the caller promises one `NodeLanes` on each
            // side.
            let lane = unsafe { LaneReceiver::new(lane) };
            *end = LaneEnd { from: Some(LaneFromPeer { lane, slots }), to: None };
        }
        Ok(Self { shape, own, ends })
    }

    /// Sets where the lanes of a peer are; this rank itself is a peer, too.
    /// Before this call there is no room in the lane to the peer.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new): `memory` is the memory of `peer`, mapped here.
    /// `connect` is called once for each peer.
    pub unsafe fn connect(&mut self, peer: PeerIndex, memory: NonNull<u8>) {
        // SAFETY: inside `memory`, as the caller of `connect` promises.
        let (lane, slots) = unsafe { lane_at(self.shape, memory, self.own.0 as usize) };
        // SAFETY: the only sender: the caller promises one call for each peer.
        let lane = unsafe { LaneSender::new(lane) };
        self.ends[peer.0 as usize].to = Some(LaneToPeer { lane, slots, heard: 0 });
    }

    /// Returns the split word of the lane to a rank (if this rank sends) or from
    /// it. On it both sides claim the parts that they copy.
    ///
    /// # Panics
    ///
    /// If the peer's lanes are not [connected](Self::connect).
    pub fn split(&self, peer: PeerIndex, side: SplitSide) -> &'static Split {
        let end = &self.ends[peer.0 as usize];
        match side {
            SplitSide::Sender => end.to.as_ref().expect(CONNECTED).lane.split(),
            SplitSide::Receiver => end.from.as_ref().expect(CONNECTED).lane.split(),
        }
    }

    #[inline(always)]
    fn from(&mut self, peer: PeerIndex) -> &mut LaneFromPeer {
        self.ends[peer.0 as usize].from.as_mut().expect("each peer has a receiving end")
    }

    #[inline(always)]
    fn to(&mut self, peer: PeerIndex) -> &mut LaneToPeer {
        self.ends[peer.0 as usize].to.as_mut().expect(CONNECTED)
    }

    /// Calls `each` for each slot of a set that has bytes: with the slot's
    /// offset, the offset of its bytes in the message of `len` bytes, and their
    /// number.
    fn each_slot(
        shape: MessageShape,
        slots: u32,
        len: u64,
        mut each: impl FnMut(usize, usize, usize),
    ) {
        let size = shape.slot_bytes as usize;
        let (mut rest, mut at) = (slots & shape.slot_mask(), 0);
        while rest != 0 && at < len as usize {
            each(rest.trailing_zeros() as usize * size, at, (len as usize - at).min(size));
            at += size;
            rest &= rest - 1;
        }
    }
}

impl LaneTransport for NodeLanes<'_> {
    #[inline(always)]
    fn has_room(&mut self, to: PeerIndex, lines: u32) -> bool {
        match &mut self.ends[to.0 as usize].to {
            Some(end) => end.lane.has_room(lines),
            None => false,
        }
    }

    #[inline(always)]
    fn push(&mut self, to: PeerIndex, packet: &Packet, load: PacketLoad) {
        let (at, len) = match load {
            PacketLoad::Inline(at) => (at, usize::from(packet.count)),
            PacketLoad::Empty | PacketLoad::Offer(_) => (0, 0),
        };
        let LaneEnd { from, to } = &mut self.ends[to.0 as usize];
        let heard = from.as_ref().map_or(0, |incoming| incoming.lane.taken());
        let outgoing = to.as_mut().expect(CONNECTED);
        outgoing.lane.push(packet, load, |word| {
            let bytes: *const u8 = ptr::with_exposed_provenance(at as usize);
            let left = len - word * 8;
            // SAFETY: the caller of `new` promises that `len` bytes at `at` can
            // be read.
            unsafe { read_word(bytes.add(word * 8), left) }
        });
        // Not where each packet answers another: the line would come no earlier,
        // and the peer's answer later.
        if core::mem::replace(&mut outgoing.heard, heard) == heard {
            outgoing.lane.fetch_ahead();
        }
    }

    #[inline(always)]
    fn peek(&mut self, from: PeerIndex) -> Option<Packet> {
        self.from(from).lane.peek()
    }

    #[inline(always)]
    fn deliver(&mut self, from: PeerIndex, at: u64, len: u64) {
        let bytes: *mut u8 = ptr::with_exposed_provenance_mut(at as usize);
        let len = len as usize;
        self.from(from).lane.inline(len.div_ceil(8), |index, word| {
            // SAFETY: the caller of `new` promises that `len` bytes at `at` can
            // be written.
            unsafe { write_word(bytes.add(index * 8), len - index * 8, word) }
        });
    }

    #[inline]
    fn keep(&mut self, from: PeerIndex, into: &mut [u64; INLINE_WORDS]) {
        let lane = &mut self.from(from).lane;
        let count = lane.peek().map_or(0, |packet| usize::from(packet.count));
        lane.inline(count.div_ceil(8), |index, word| into[index] = word);
    }

    #[inline]
    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        let bytes: *mut u8 = ptr::with_exposed_provenance_mut(at as usize);
        for (index, word) in kept.iter().take((len as usize).div_ceil(8)).enumerate() {
            // SAFETY: as in `deliver`.
            unsafe { write_word(bytes.add(index * 8), len as usize - index * 8, *word) }
        }
    }

    #[inline]
    fn offer(&mut self, from: PeerIndex) -> Offer {
        self.from(from).lane.offer()
    }

    #[inline(always)]
    fn pop(&mut self, from: PeerIndex) {
        self.from(from).lane.pop();
    }

    fn returned(&mut self, to: PeerIndex) -> Returned {
        self.ends[to.0 as usize].to.as_ref().map_or(Returned::default(), |end| end.lane.returned())
    }

    fn give_back(&mut self, from: PeerIndex, returned: Returned) -> bool {
        self.from(from).lane.give_back(returned)
    }

    #[inline(always)]
    fn untold(&mut self, from: PeerIndex) -> u32 {
        self.from(from).lane.untold()
    }

    fn set_starved(&mut self, to: PeerIndex) {
        if let Some(end) = &mut self.ends[to.0 as usize].to {
            end.lane.set_starved();
        }
    }

    #[inline(always)]
    fn is_starved(&mut self, from: PeerIndex) -> bool {
        self.from(from).lane.is_starved()
    }

    fn fence(&mut self) {
        LaneReceiver::fence();
    }

    /// Does nothing: the owner of these lanes wakes the ranks that sleep.
    fn ring(&mut self, _from: PeerIndex) {}

    fn write_slots(&mut self, to: PeerIndex, slots: u32, at: u64, len: u64) {
        let source: *const u8 = ptr::with_exposed_provenance(at as usize);
        let memory = self.to(to).slots;
        Self::each_slot(self.shape, slots, len, |slot, at, len| {
            // SAFETY: a slot of the shape, which is the sender's alone until a
            // packet names it; `source` as promised at `new`.
            unsafe { ptr::copy_nonoverlapping(source.add(at), memory.as_ptr().add(slot), len) };
        });
    }

    fn read_slots(&mut self, from: PeerIndex, slots: u32, at: u64, len: u64) {
        let target: *mut u8 = ptr::with_exposed_provenance_mut(at as usize);
        let memory = self.from(from).slots;
        Self::each_slot(self.shape, slots, len, |slot, at, len| {
            // SAFETY: a slot of the shape, which a packet has named and which was
            // not given back; `target` as promised at `new`.
            unsafe { ptr::copy_nonoverlapping(memory.as_ptr().add(slot), target.add(at), len) };
        });
    }

    fn split_to(&mut self, to: PeerIndex, id: u32) -> bool {
        self.split(to, SplitSide::Sender).open(id)
    }

    fn split_from(&mut self, from: PeerIndex, id: u32) -> bool {
        self.split(from, SplitSide::Receiver).open(id)
    }

    fn copy(&mut self, copy: &Copy) {
        let from: *const u8 = ptr::with_exposed_provenance(copy.from as usize);
        let to: *mut u8 = ptr::with_exposed_provenance_mut(copy.to as usize);
        // SAFETY: an own buffer and one in reach, as promised at `new`. A peer
        // that names an address outside its buffers breaks that promise.
        unsafe { ptr::copy_nonoverlapping(from, to, copy.len as usize) };
    }
}

// SAFETY: the memory does not belong to the thread that made the lanes, and one
// thread at a time uses them.
unsafe impl Send for LaneEnd {}

impl fmt::Debug for NodeLanes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeLanes({}, {:?})", self.own, self.shape)
    }
}

/// Returns the lane of sender `index` in the memory of a rank, and its slots.
///
/// # Safety
///
/// As for [`NodeLanes::new`].
unsafe fn lane_at(
    shape: MessageShape,
    memory: NonNull<u8>,
    index: usize,
) -> (Lane<'static>, NonNull<u8>) {
    let lines = shape.lines as usize;
    // SAFETY: the lane of a rank of the shape lies inside the memory; zero bytes
    // are valid lines; all of it is written through atomics and cells.
    unsafe {
        let start = memory.add(index * shape.lane_bytes());
        let line: *const LaneLine = start.as_ptr().cast();
        let lane = Lane {
            lines: core::slice::from_raw_parts(line, lines),
            returned: &*line.add(lines).cast::<ReturnLine>(),
            need: &*line.add(lines + 1).cast::<NeedLine>(),
        };
        (lane, start.add(shape.slots_at()))
    }
}

/// Why a lane must be connected: a lane that is not has no room.
const CONNECTED: &str = "a lane with room is connected";

/// Reads the next up to 8 of `left` bytes.
#[inline(always)]
unsafe fn read_word(bytes: *const u8, left: usize) -> u64 {
    if left >= 8 {
        // SAFETY: the caller has 8 readable bytes, as `left` shows.
        return unsafe { bytes.cast::<u64>().read_unaligned() };
    }
    let mut word = [0; 8];
    // SAFETY: the caller has `left` readable bytes.
    unsafe { ptr::copy_nonoverlapping(bytes, word.as_mut_ptr(), left) };
    u64::from_ne_bytes(word)
}

/// Writes up to 8 of `left` bytes.
#[inline(always)]
unsafe fn write_word(bytes: *mut u8, left: usize, word: u64) {
    if left >= 8 {
        // SAFETY: the caller has 8 writable bytes, as `left` shows.
        return unsafe { bytes.cast::<u64>().write_unaligned(word) };
    }
    let word = word.to_ne_bytes();
    // SAFETY: the caller has `left` writable bytes.
    unsafe { ptr::copy_nonoverlapping(word.as_ptr(), bytes, left) };
}
