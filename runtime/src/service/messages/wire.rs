//! Message lanes in shared memory.
//!
//! Each rank has, in its exposed memory, the lanes to it from every rank of the node
//! and from itself: [`tsumugi_core::msg::NodeLanes`]. Ranks are numbered here by their
//! places on the node, which `route` finds. This module adds the wake-up of a
//! sleeper at the other end, and copies of long messages that bypass the caches. The
//! memory stays until the job ends, because a last write of a peer may come late.

use super::orphans::REQUESTS_FIRST;
use crate::config::Chosen;
use crate::error::Error;
use crate::leaked_slice::{LeakedSlice, lend, zeroes};
use crate::node_ranks::NodeRanks;
use std::fmt;
use std::ptr::NonNull;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{Access, Need, PeerIndex, RegionKey, RemoteAddr};
use tsumugi_core::msg::locked_matching::{Board, BoardShape};
use tsumugi_core::msg::{
    self, Copy, INLINE_WORDS, LaneEnd, LaneTransport, MatchingDesign, MessageShape, Offer, Packet,
    PacketKind, PacketLoad, Returned, Split, SplitSide,
};
use tsumugi_core::sync::{Ordering, fence};
use tsumugi_core::wait::DoorbellSet;
use tsumugi_pvas::copy::{self, CopyMode};
use tsumugi_pvas::{ControlBlock, DistanceProbe, Member, fence as halves};
use tsumugi_ult::SystemFutex;

/// This rank's lanes, before the other ranks have their key.
pub(crate) struct MessageLanes {
    at: NonNull<u8>,
    key: RegionKey,
    /// The shape of a machine and lanes for the neighbours alone.
    shape: MessageShape,
    /// All ranks of a job have boards of the same size.
    board: BoardShape,
    neighbours: NodeRanks,
    /// A board lies behind the lanes, because the design has boards.
    has_board: bool,
    /// The process is registered for asymmetric fences.
    is_registered: bool,
}

/// All lanes from and to this rank, and the doorbells at their other ends.
pub(crate) struct NodeWire {
    lanes: msg::NodeLanes<'static>,
    peers: Vec<LanePeer>,
    /// The memory that the lanes borrow; dropped last.
    _ends: LeakedSlice<LaneEnd>,
}

/// The rank at the other end of a lane.
struct LanePeer {
    control: &'static ControlBlock,
    bells: &'static DoorbellSet,
    /// Copies between its memory and ours go in pieces up to this length.
    pieces_max: u64,
    /// Its workers run the heavy fence for this rank before they sleep.
    sleeps_fenced: bool,
}

impl MessageLanes {
    /// Makes lanes that were never used, and a board if the design has one.
    pub(crate) fn new(
        member: &Member,
        neighbours: NodeRanks,
        chosen: &Chosen,
    ) -> Result<Self, Error> {
        let shape = MessageShape { peers: neighbours.count(), ..shape(member.size()) };
        let lanes_bytes = shape.memory_size();
        let board = BoardShape { peers: member.size(), posts: REQUESTS_FIRST as u32 };
        let has_board = chosen.messages == MatchingDesign::Locked;
        let board_bytes = if has_board { Board::memory_size(board) } else { 0 };
        let bytes = lanes_bytes + board_bytes;
        let at = zeroes(member, bytes)?;
        if has_board {
            // SAFETY: zeroed memory behind the lanes, for the rest of the job.
            let made = unsafe { Board::init(at.add(lanes_bytes), board) };
            made.unwrap_or_else(|error| panic!("{error}"));
        }
        // SAFETY: exposed memory, which stays mapped and is never given back, of
        // plain bytes and words.
        let region =
            unsafe { member.direct().register_runtime(at, bytes as u64, Access::ReadWrite)? };
        let is_registered = halves::register();
        // With more than one worker the sender must see not only sleepers but also
        // threads that look for messages. And a worker that does not spin sleeps as
        // often as peers send, and each time its fence interrupts all processors
        // that compute: `tsumugi bench message --only halo10` shows it.
        let is_rare = chosen.workers == 1 && chosen.spin > 0;
        member.control().set_sleeps_fenced(is_registered && is_rare);
        Ok(Self { at, key: region.key, shape, board, neighbours, has_board, is_registered })
    }

    /// The key of the lanes, for the other ranks.
    pub(crate) fn key(&self) -> RegionKey {
        self.key
    }

    pub(crate) fn shape(&self) -> MessageShape {
        self.shape
    }

    pub(crate) fn neighbours(&self) -> &NodeRanks {
        &self.neighbours
    }

    /// Connects the lanes, and the boards, when all neighbours have exchanged their
    /// keys.
    ///
    /// # Errors
    ///
    /// [`Error::Addr`]: a peer is gone, or its key is not valid.
    pub(crate) fn connect(
        &self,
        member: &Member,
        key_of: impl Fn(Rank) -> RegionKey,
    ) -> Result<(NodeWire, Vec<Board<'static>>), Error> {
        let (direct, neighbours) = (member.direct(), &self.neighbours);
        let (shape, board) = (self.shape, self.board);
        let lanes_bytes = shape.memory_size();
        let board_bytes = if self.has_board { Board::memory_size(board) } else { 0 };
        let size = (lanes_bytes + board_bytes) as u64;
        let own = neighbours.local(member.rank()).expect("a rank is one of its node");
        let mut boards = Vec::new();
        let (ends, lent) = lend((0..shape.peers).map(|_| LaneEnd::EMPTY).collect());
        // SAFETY: zeroed lanes that stay until the job ends; this is called once.
        // Addresses in packets are those of buffers that their owners have lent.
        let lanes = unsafe { msg::NodeLanes::new(own, shape, self.at, ends) };
        let mut lanes = lanes.unwrap_or_else(|error| panic!("{error}"));
        let peers = (0..).map(PeerIndex).zip(neighbours.ranks()).map(|(peer, rank)| {
            let key = key_of(rank);
            let there = direct.resolve(RemoteAddr { rank, key, offset: 0 }, size, Need::Write)?;
            // SAFETY: that rank's lanes, connected once.
            unsafe { lanes.connect(peer, there) };
            if self.has_board {
                // SAFETY: that rank's board, behind its lanes.
                let board = unsafe { Board::attach(there.add(lanes_bytes), board) };
                boards.push(board.unwrap_or_else(|error| panic!("{error}")));
            }
            let control = control_of(rank, member);
            let sleeps_fenced = self.is_registered && control.sleeps_fenced();
            let pieces_max = member.distance_to(rank).1.pieces_max;
            Ok(LanePeer { control, bells: control.bells(), pieces_max, sleeps_fenced })
        });
        let peers = peers.collect::<Result<_, Error>>()?;
        Ok((NodeWire { lanes, peers, _ends: lent }, boards))
    }
}

/// The control block of a rank of this node.
fn control_of(rank: Rank, member: &Member) -> &'static ControlBlock {
    let control: *const ControlBlock = member.control_of(rank);
    // SAFETY: a space that has a heap is never unmapped.
    unsafe { &*control }
}

/// The sizes of tables in a job of `peers` ranks: the table of unexpected messages
/// grows with the number of ranks.
pub(super) fn shape(peers: u32) -> MessageShape {
    let peers = peers.max(1);
    let quota = (UNEXPECTED_MAX / peers).clamp(8, 256);
    let mirror = (OFFERS_MAX / peers).clamp(8, 32);
    MessageShape { quota: 1 << quota.ilog2(), mirror, ..MessageShape::of(peers) }
}

impl NodeWire {
    /// The words of the lanes to that neighbour and from it in which both sides
    /// claim parts of long messages: first the word of the sender's side.
    pub(super) fn splits(&self, peer: PeerIndex) -> [&'static Split; 2] {
        [SplitSide::Sender, SplitSide::Receiver].map(|side| self.lanes.split(peer, side))
    }

    /// Sets the length up to which copies go in pieces.
    pub(super) fn use_pieces(&mut self, peer: PeerIndex, max: u64) {
        self.peers[peer.0 as usize].pieces_max = max;
    }

    #[inline(always)]
    fn peer(&self, peer: PeerIndex) -> &LanePeer {
        &self.peers[peer.0 as usize]
    }
}

impl LaneTransport for NodeWire {
    #[inline(always)]
    fn has_room(&mut self, to: PeerIndex, lines: u32) -> bool {
        self.lanes.has_room(to, lines)
    }

    #[inline(always)]
    fn push(&mut self, to: PeerIndex, packet: &Packet, load: PacketLoad) {
        self.lanes.push(to, packet, load);
        match packet.kind {
            PacketKind::Rts | PacketKind::Cts | PacketKind::Data => self.peer(to).ring_helped(),
            // No worker needs to wake for that.
            PacketKind::Part => {}
            _ => self.peer(to).ring(),
        }
    }

    #[inline(always)]
    fn peek(&mut self, from: PeerIndex) -> Option<Packet> {
        self.lanes.peek(from)
    }

    #[inline(always)]
    fn deliver(&mut self, from: PeerIndex, at: u64, len: u64) {
        self.lanes.deliver(from, at, len);
    }

    #[inline]
    fn keep(&mut self, from: PeerIndex, into: &mut [u64; INLINE_WORDS]) {
        self.lanes.keep(from, into);
    }

    #[inline]
    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        self.lanes.deliver_kept(kept, at, len);
    }

    #[inline]
    fn offer(&mut self, from: PeerIndex) -> Offer {
        self.lanes.offer(from)
    }

    #[inline(always)]
    fn pop(&mut self, from: PeerIndex) {
        self.lanes.pop(from);
    }

    fn returned(&mut self, to: PeerIndex) -> Returned {
        self.lanes.returned(to)
    }

    fn give_back(&mut self, from: PeerIndex, returned: Returned) -> bool {
        self.lanes.give_back(from, returned)
    }

    #[inline(always)]
    fn untold(&mut self, from: PeerIndex) -> u32 {
        self.lanes.untold(from)
    }

    fn set_starved(&mut self, to: PeerIndex) {
        self.lanes.set_starved(to);
        // The peer may sleep, and may have credits to return.
        self.peer(to).bells.ring(&SystemFutex);
    }

    #[inline(always)]
    fn is_starved(&mut self, from: PeerIndex) -> bool {
        self.lanes.is_starved(from)
    }

    fn fence(&mut self) {
        self.lanes.fence();
    }

    fn ring(&mut self, from: PeerIndex) {
        self.peer(from).ring();
    }

    fn write_slots(&mut self, to: PeerIndex, slots: u32, at: u64, len: u64) {
        self.lanes.write_slots(to, slots, at, len);
    }

    fn read_slots(&mut self, from: PeerIndex, slots: u32, at: u64, len: u64) {
        self.lanes.read_slots(from, slots, at, len);
    }

    fn split_to(&mut self, to: PeerIndex, id: u32) -> bool {
        self.lanes.split_to(to, id)
    }

    fn split_from(&mut self, from: PeerIndex, id: u32) -> bool {
        self.lanes.split_from(from, id)
    }

    #[inline]
    fn copy(&mut self, copy: &Copy) {
        let in_pieces = copy.len <= self.peer(copy.peer).pieces_max;
        // SAFETY: both buffers are lent to the message.
        unsafe { carry_out(copy, in_pieces) };
    }

    fn come(&mut self, at: u64, len: u64) {
        let at = at as *const u8;
        // Loads, because the processor prefetches farther ahead of loads than of
        // hints.
        for line in (0..len as usize).step_by(LINE_BYTES) {
            // SAFETY: a buffer that is lent to the message; the sender has written
            // these bytes and has announced that.
            unsafe { at.add(line).read_volatile() };
        }
    }
}

impl LanePeer {
    /// Wakes a worker of the rank if one sleeps and no thread looks for messages.
    #[inline(always)]
    fn ring(&self) {
        if self.sleeps_fenced {
            self.bells.ring_fenced(&SystemFutex);
        } else {
            self.bells.ring_unattended(&SystemFutex);
        }
    }

    /// Wakes a worker if one sleeps, or the helper if all workers compute.
    #[cold]
    fn ring_helped(&self) {
        // SeqCst: after the packet, and before the check of the sleepers.
        fence(Ordering::SeqCst);
        self.bells.ring_helped(&SystemFutex, || self.control.set_neglected());
    }
}

/// Copies the bytes of a short message.
///
/// # Safety
///
/// Both buffers have the length of the copy, are in reach of this process, and are
/// lent to the message.
unsafe fn carry_out(copy: &Copy, in_pieces: bool) {
    between(copy, |mode, from, to, len| {
        let mode = if in_pieces { CopyMode::Pieces } else { mode };
        // SAFETY: the caller's promise; two buffers of messages do not overlap.
        unsafe { copy::copy(mode, from, to, len) };
    });
}

/// Copies the bytes of a long message; the probe measures the distance of the peer.
///
/// # Safety
///
/// That of [`carry_out`].
pub(super) unsafe fn carry_out_long(copy: &Copy, probe: &DistanceProbe) {
    // SAFETY: the caller's promise, as in `carry_out`.
    between(copy, |mode, from, to, len| unsafe { probe.copy(mode, from, to, len) });
}

/// Runs a copy with its mode, unless there is nothing to copy.
fn between(copy: &Copy, by: impl FnOnce(CopyMode, NonNull<u8>, NonNull<u8>, usize)) {
    let mode = if copy.streaming { CopyMode::Streaming } else { CopyMode::Plain };
    let ends = [copy.from, copy.to].map(|at| NonNull::new(at as *mut u8));
    if let [Some(from), Some(to)] = ends
        && from != to
    {
        by(mode, from, to, copy.len as usize);
    }
}

const LINE_BYTES: usize = 64;
/// Unexpected messages of a rank in a job of many ranks.
const UNEXPECTED_MAX: u32 = 4096;
/// Receives that are announced to a rank in such a job.
const OFFERS_MAX: u32 = 16_384;

// SAFETY: only the thread that has the lock of the rank's messages uses the wire;
// the pointers are to shared memory, which any thread may use.
unsafe impl Send for NodeWire {}

impl fmt::Debug for NodeWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeWire({} peers)", self.peers.len())
    }
}
