//! Lanes in shared memory.
//!
//! Each rank holds, in its memory for rings, the lanes to it from every rank
//! of the node, itself too: [`tsumugi_core::msg::Lanes`]. Ranks are numbered
//! here as they stand on the node: `route` knows which that is. What is added here is
//! that whoever sleeps at the other end is woken, and that long copies go past
//! the caches. It stays until the job ends: a peer's last word may come late.

use super::post::{BAG_BYTES, BAGS, POOL_CHUNKS};
use super::state::REQUESTS_MAX;
use crate::config::Chosen;
use crate::lend::{Lent, lend, zeroes};
use crate::neighbours::Neighbours;
use crate::seats::SEAT_BYTES;
use crate::{Error, Rank};
use std::fmt;
use std::ptr::NonNull;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::mem::{Access, Need, RegionKey, RemoteAddr};
use tsumugi_core::msg::board::{Board, BoardShape};
use tsumugi_core::msg::{
    self, Chunk, Copy, Design, FarLane, INLINE_WORDS, Kind, LaneEnd, Load, MailEnd, Offer, Packet,
    Place, Returned, Shape, Side, Split, Wire,
};
use tsumugi_core::sync::{Ordering, fence};
use tsumugi_core::wait::Bells;
use tsumugi_pvas::copy::{self, Mode};
use tsumugi_pvas::{Control, Gauge, Member, fence as halves};
use tsumugi_ult::SystemFutex;

/// This rank's lanes, before the others know of them.
pub(crate) struct Lanes {
    at: NonNull<u8>,
    key: RegionKey,
    /// Of a machine and lanes for the neighbours alone.
    shape: Shape,
    /// All of a job have boards of the same size.
    board: BoardShape,
    neighbours: Neighbours,
    /// Behind the lanes, where the design has them.
    has_board: bool,
    /// For fences in two halves.
    is_registered: bool,
}

/// All lanes from and to this rank, and how their other ends are woken.
pub(crate) struct NodeWire {
    lanes: msg::Lanes<'static>,
    peers: Vec<Peer>,
    /// What the lanes are made of; goes last.
    _ends: Lent<LaneEnd>,
}

/// Who is at the other end.
struct Peer {
    control: &'static Control,
    bells: &'static Bells,
    /// Up to here copies between its memory and ours go in pieces.
    pieces_max: u64,
    /// Its workers pass a fence for us before they sleep.
    sleeps_fenced: bool,
}

impl Lanes {
    /// Lanes that were never used, and a board if the design has one.
    pub(crate) fn new(
        member: &Member,
        neighbours: Neighbours,
        chosen: &Chosen,
    ) -> Result<Self, Error> {
        let shape = Shape { peers: neighbours.count(), ..shape(member.size()) };
        let lanes_bytes = shape.memory_size();
        let board = BoardShape { peers: member.size(), posts: REQUESTS_MAX as u32 };
        let has_board = chosen.messages == Design::Locked;
        let board_bytes = if has_board { Board::memory_size(board) } else { 0 };
        let bytes = lanes_bytes + board_bytes;
        let at = zeroes(member, bytes)?;
        if has_board {
            // SAFETY: behind the lanes, for the rest of the job.
            let made = unsafe { Board::init(at.add(lanes_bytes), board) };
            made.unwrap_or_else(|error| panic!("{error}"));
        }
        // SAFETY: exposed memory, which stays mapped and is never given back:
        // plain bytes and words.
        let region =
            unsafe { member.direct().register_runtime(at, bytes as u64, Access::ReadWrite)? };
        let is_registered = halves::register();
        // With more than one worker it is not enough to see who sleeps: who
        // looks for work must be seen, too. And whoever does not spin sleeps as
        // often as others send, and each time interrupts a processor that computes:
        // `tsumugi bench message --only halo10` shows it.
        let is_rare = chosen.workers == 1 && chosen.spin > 0;
        member.control().set_sleeps_fenced(is_registered && is_rare);
        Ok(Self { at, key: region.key, shape, board, neighbours, has_board, is_registered })
    }

    /// For the others.
    pub(crate) fn key(&self) -> RegionKey {
        self.key
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// The lanes, when all neighbours have told their keys, and their boards.
    ///
    /// # Errors
    ///
    /// A peer that is gone.
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
        let own = neighbours.local(member.rank()).expect("a rank is its own neighbour");
        let mut boards = Vec::new();
        let (ends, lent) = lend((0..shape.peers).map(|_| LaneEnd::EMPTY).collect());
        // SAFETY: zeroed lanes that stay until the job ends; we are called
        // once. Addresses are those of buffers that their owners have lent.
        let lanes = unsafe { msg::Lanes::new(own, shape, self.at, ends) };
        let mut lanes = lanes.unwrap_or_else(|error| panic!("{error}"));
        let peers = (0..).map(Rank).zip(neighbours.ranks()).map(|(local, rank)| {
            let key = key_of(rank);
            let there = direct.resolve(RemoteAddr { rank, key, offset: 0 }, size, Need::Write)?;
            // SAFETY: that rank's lanes, once.
            unsafe { lanes.connect(local, there) };
            if self.has_board {
                // SAFETY: that rank's board, behind its lanes.
                let board = unsafe { Board::attach(there.add(lanes_bytes), board) };
                boards.push(board.unwrap_or_else(|error| panic!("{error}")));
            }
            let control = control_of(rank, member);
            let sleeps_fenced = self.is_registered && control.sleeps_fenced();
            let pieces_max = member.way_to(rank).1.pieces_max;
            Ok(Peer { control, bells: control.bells(), pieces_max, sleeps_fenced })
        });
        let peers = peers.collect::<Result<_, Error>>()?;
        Ok((NodeWire { lanes, peers, _ends: lent }, boards))
    }
}

/// What messages cost a rank without any other, what a rank more on its node
/// adds at most in tables, and for its lane, which is touched when it is used.
pub(crate) fn footprint() -> (usize, usize, usize) {
    let lane = shape(1).memory_size();
    (super::state::requests_bytes(), super::state::tables_bytes(shape(1)), lane)
}

/// Bytes of the tables of a rank of a job of `ranks`, of which it has or had to
/// do with `peers`, its node's among them.
pub(crate) fn tables_bytes(ranks: u32, peers: u32) -> usize {
    super::state::tables_bytes(Shape { peers, ..shape(ranks) })
}

/// What messages cost for each rank of another node that sends or is sent any,
/// with room that tables have for more; what they cost for all of those
/// together; and what lies in the two lanes of one if they are full.
pub(crate) fn far_footprint(ranks: u32) -> (usize, usize, usize) {
    let entries = tables_bytes(ranks, 2) - tables_bytes(ranks, 1) + size_of::<MailEnd<'static>>();
    let places = FarLane::places(&shape(1));
    let lane = places * size_of::<Place<'static>>() + size_of::<FarLane<'static>>();
    let chunk = size_of::<Chunk<'static>>();
    let all = POOL_CHUNKS * chunk + BAGS * BAG_BYTES;
    (lane + entries + entries / 8 + SEAT_BYTES, all, places * chunk)
}

/// The head of a rank of this node.
fn control_of(rank: Rank, member: &Member) -> &'static Control {
    let control: *const Control = member.control_of(rank);
    // SAFETY: a space that has a heap is never unmapped.
    unsafe { &*control }
}

/// How much room there is in a job of so many ranks: tables of messages that
/// nobody has received yet grow with their number.
fn shape(peers: u32) -> Shape {
    let peers = peers.max(1);
    let quota = (UNEXPECTED_MAX / peers).clamp(8, 256);
    let mirror = (OFFERS_MAX / peers).clamp(8, 32);
    Shape { quota: 1 << quota.ilog2(), mirror, ..Shape::of(peers) }
}

impl NodeWire {
    /// The words of the lanes to that neighbour and from it on which long
    /// messages are split: first the side of the front.
    pub(super) fn splits(&self, rank: Rank) -> [&'static Split; 2] {
        [Side::Sender, Side::Receiver].map(|side| self.lanes.split(rank, side))
    }

    /// From here on copies go so.
    pub(super) fn use_pieces(&mut self, rank: Rank, max: u64) {
        self.peers[rank.0 as usize].pieces_max = max;
    }

    #[inline(always)]
    fn peer(&self, rank: Rank) -> &Peer {
        &self.peers[rank.0 as usize]
    }
}

impl Wire for NodeWire {
    #[inline(always)]
    fn has_room(&mut self, to: Rank, lines: u32) -> bool {
        self.lanes.has_room(to, lines)
    }

    #[inline(always)]
    fn push(&mut self, to: Rank, packet: &Packet, load: Load) {
        self.lanes.push(to, packet, load);
        match packet.kind {
            Kind::Rts | Kind::Cts | Kind::Data => self.peer(to).ring_helped(),
            // Nobody needs to wake for that.
            Kind::Part => {}
            _ => self.peer(to).ring(),
        }
    }

    #[inline(always)]
    fn peek(&mut self, from: Rank) -> Option<Packet> {
        self.lanes.peek(from)
    }

    #[inline(always)]
    fn deliver(&mut self, from: Rank, at: u64, len: u64) {
        self.lanes.deliver(from, at, len);
    }

    #[inline]
    fn keep(&mut self, from: Rank, into: &mut [u64; INLINE_WORDS]) {
        self.lanes.keep(from, into);
    }

    #[inline]
    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        self.lanes.deliver_kept(kept, at, len);
    }

    #[inline]
    fn offer(&mut self, from: Rank) -> Offer {
        self.lanes.offer(from)
    }

    #[inline(always)]
    fn pop(&mut self, from: Rank) {
        self.lanes.pop(from);
    }

    fn returned(&mut self, to: Rank) -> Returned {
        self.lanes.returned(to)
    }

    fn give_back(&mut self, from: Rank, returned: Returned) -> bool {
        self.lanes.give_back(from, returned)
    }

    #[inline(always)]
    fn untold(&mut self, from: Rank) -> u32 {
        self.lanes.untold(from)
    }

    fn set_starved(&mut self, to: Rank) {
        self.lanes.set_starved(to);
        // It may sleep, and have more to grant.
        self.peer(to).bells.ring(&SystemFutex);
    }

    #[inline(always)]
    fn is_starved(&mut self, from: Rank) -> bool {
        self.lanes.is_starved(from)
    }

    fn fence(&mut self) {
        self.lanes.fence();
    }

    fn ring(&mut self, from: Rank) {
        self.peer(from).ring();
    }

    fn write_slots(&mut self, to: Rank, slots: u32, at: u64, len: u64) {
        self.lanes.write_slots(to, slots, at, len);
    }

    fn read_slots(&mut self, from: Rank, slots: u32, at: u64, len: u64) {
        self.lanes.read_slots(from, slots, at, len);
    }

    fn split_to(&mut self, to: Rank, id: u32) -> bool {
        self.lanes.split_to(to, id)
    }

    fn split_from(&mut self, from: Rank, id: u32) -> bool {
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
        // Loads, as the processor fetches farther ahead of them than of hints.
        for line in (0..len as usize).step_by(LINE_BYTES) {
            // SAFETY: a buffer that is lent to the message; its sender has
            // written these bytes and told so.
            unsafe { at.add(line).read_volatile() };
        }
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
        self.bells.ring_helped(&SystemFutex, || self.control.set_neglected());
    }
}

/// Copies the bytes of a short message.
///
/// # Safety
///
/// Both buffers are as long as it says, in reach of this process, and the
/// message's.
unsafe fn carry_out(copy: &Copy, in_pieces: bool) {
    between(copy, |mode, from, to, len| {
        let mode = if in_pieces { Mode::Pieces } else { mode };
        // SAFETY: the caller's; two buffers of messages do not overlap.
        unsafe { copy::copy(mode, from, to, len) };
    });
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

const LINE_BYTES: usize = 64;
/// Unexpected messages of a rank in a job of many.
const UNEXPECTED_MAX: u32 = 4096;
/// And receives that are offered to it.
const OFFERS_MAX: u32 = 16_384;

// SAFETY: a rank's wire is used by whoever holds its lock; what it points to
// is shared memory made for that.
unsafe impl Send for NodeWire {}

impl fmt::Debug for NodeWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeWire({} peers)", self.peers.len())
    }
}
