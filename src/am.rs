//! Active messages between the ranks of a job: drives the state machine of
//! [`tsumugi_core::am`] over the partitions of its node, and by a [`Carrier`]
//! between nodes.
//!
//! ```text
//!  call, cast ─► lock: machine ─► operations: on this node, carried out by
//!                     ▲  │        the caller; on others, begun by the caller,
//!                     │  │        and their ends wake the thread that pumps
//!   a worker that polls, │ or the helper: one at a time
//!                     │  ▼
//!                   pump ─► handlers, in order · callers woken · room given
//! ```
//!
//! The lock of the machine is held for a few hundred instructions, and never while
//! an operation is carried out, a handler runs or a thread is woken. Handlers run
//! one at a time on each rank, on the stack of a worker or of the helper.
//!
//! Memory of each rank, from its exposed area: `2 * CELLS * 256` bytes of lanes (8
//! KiB) for each rank of its node, and as much, in a large job down to a quarter of
//! it, for each rank of another node with which it exchanges calls, 64 ranks at a
//! time; 16 KiB of staging cells, and landing buffers for long payloads. The memory
//! stays until the job ends, because a last write of a peer may come late. A rank of
//! another node without such calls costs nothing. `tsumugi info --memory` lists all
//! of it.

mod carrier;
mod meet;
mod onward;
mod outbound;
mod pump;
mod send;

pub(crate) use carrier::Carrier;
use meet::{Greeting, Greetings};
pub(crate) use outbound::Far;

use crate::card::Card;
use crate::deadline::Deadline;
use crate::death::DeathWatch;
use crate::lend::{Lent, lend, zeroes};
use crate::neighbours::Neighbours;
use crate::peers::{PEER_BYTES, Peers, near};
use crate::service::Service;
use crate::{Error, Rank};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::mem::take;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tsumugi_core::am::{
    self, AmMachine, AmShape, CallError, DoorbellOrder, HandlerAnswer, HandlerId, Inline, Message,
    ReplyTo, SendError, Token,
};
use tsumugi_core::completion::Why;
use tsumugi_core::mem::{Access, LocalAddr, PeerIndex, Region, RegionKey, RemoteAddr};
use tsumugi_core::sync::mapped::AtomicU64 as Word;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::wait::Waker;
use tsumugi_pvas::{Direct, Member};

/// The function that a message calls.
pub(crate) enum Function {
    /// Runs on the thread that takes the message, and must not block.
    Here(Box<dyn Fn(Message<'_>) -> HandlerAnswer + Send + Sync>),
    /// Takes the message to another thread, and with it the duty to answer.
    Elsewhere(Box<Start>),
}

/// Begins to serve a message: gets the sender, the payload, and the place for the
/// answer if the sender waits for one.
type Start = dyn Fn(Rank, Box<[u8]>, Option<ReplyTo>) + Send + Sync;

/// The active messages of one rank.
pub(crate) struct Am {
    member: Member,
    direct: Direct,
    /// The carrier of operations to ranks of other nodes, if there are any.
    far: OnceLock<Far>,
    shape: AmShape,
    lanes: &'static [Word],
    /// Regions of the lanes, the staging cells and the landing buffers.
    regions: [Region; 3],
    landing: NonNull<u8>,
    state: Mutex<State>,
    functions: RwLock<HashMap<u32, Arc<Function>>>,
    /// A thread is pumping.
    is_pumped: AtomicBool,
    /// There is work for a pump that no doorbell has announced.
    is_stirred: AtomicBool,
    deadline: Deadline,
    deaths: DeathWatch,
    greetings: Arc<Greetings>,
    /// Keys of the lanes for ranks of other nodes.
    blocks: RwLock<Vec<RegionKey>>,
}

/// The state under the lock. The machine and its tables name peers by their indices.
struct State {
    machine: AmMachine<'static>,
    peers: Peers,
    /// Peers to which a greeting is to be sent, and greetings for which there was no
    /// memory.
    to_greet: VecDeque<PeerIndex>,
    put_off: Vec<(Rank, Greeting)>,
    /// An entry for each call of the machine.
    calls: Vec<Entry>,
    /// Senders that wait for room, for each peer.
    stuck: Vec<VecDeque<Stuck>>,
    stuck_len: usize,
    /// Answers of ULTs that were cut off before there was room.
    owed: Vec<(ReplyTo, HandlerAnswer)>,
    /// The rank has ended: no thread pumps any more.
    has_ended: bool,
    /// Operations on other nodes have ended since waiters were last woken.
    has_room: bool,
    peer_table: Lent<am::AmPeer>,
    blocks: Lent<am::LaneBlock<'static>>,
    regions: Vec<Region>,
    _tables: Tables,
}

/// The facade's state of a call under way.
#[derive(Default)]
struct Entry {
    waiting: Option<NonNull<Waiting>>,
    /// The owner of the payload, if that is not the caller's stack.
    kept: Option<Box<dyn Any + Send>>,
}

/// A sender that waits for room; `sleeper` is an address on its stack that names it.
struct Stuck {
    sleeper: usize,
    waker: Waker,
}

/// On the caller's stack until the call has ended; accessed under the lock.
#[derive(Default)]
struct Waiting {
    result: Option<Result<Inline, CallError>>,
    waker: Option<Waker>,
}

/// The machine's tables that do not grow, freed with the state.
type Tables = (Lent<am::PendingCall>, Lent<am::StagingCell>, Lent<am::LandingBuffer>);

// SAFETY: `landing` is memory that stays mapped; the pointers in the entries are
// only used under the lock, while their callers wait.
unsafe impl Send for Am {}
// SAFETY: the same; all that changes is atomic or under the lock.
unsafe impl Sync for Am {}

/// Memory that calls take at a rank.
pub(crate) struct Footprint {
    /// Bytes without any other rank.
    pub(crate) bytes: usize,
    /// Bytes without any other rank that take memory only when they are used.
    pub(crate) later_bytes: usize,
    /// Bytes for each rank with which there are calls, on any node; and for the
    /// lanes of such a rank, on this node or on another one.
    pub(crate) rank_bytes: usize,
    pub(crate) lane_bytes: usize,
    pub(crate) far_lane_bytes: usize,
}

/// The lanes of a rank with `peers` neighbours. Lanes to other nodes have fewer
/// cells the more ranks the job has.
fn shape(peers: u32, ranks: u32) -> AmShape {
    let later = (LATER_CELLS / ranks.max(1)).clamp(4, AmShape::CELLS);
    AmShape { peers, cells: AmShape::CELLS, later_cells: 1 << later.ilog2() }
}

/// Computes the memory for a job of `ranks` ranks from the types.
pub(crate) fn footprint(ranks: u32) -> Footprint {
    let lanes = |peers| shape(peers, ranks).memory_size();
    let peer = size_of::<am::AmPeer>() + size_of::<VecDeque<Waker>>() + PEER_BYTES;
    let calls = CALLS_MAX * (size_of::<am::PendingCall>() + size_of::<Entry>());
    let staging = STAGING_CELLS * (size_of::<am::StagingCell>() + am::CELL_BYTES);
    Footprint {
        bytes: calls + staging + LANDINGS * size_of::<am::LandingBuffer>() + outbound::footprint(),
        later_bytes: LANDINGS * LANDING_BYTES,
        rank_bytes: peer,
        lane_bytes: (lanes(65) - lanes(1)).div_ceil(64),
        far_lane_bytes: shape(1, ranks).block().memory_size().div_ceil(am::BLOCK_PEERS as usize),
    }
}

impl Am {
    /// Makes the lanes of this rank.
    pub(crate) fn new(member: &Member) -> Result<Self, Error> {
        let (neighbours, direct) = (Neighbours::of(member), member.direct());
        let own = neighbours.local(member.rank()).expect("a rank is one of its node");
        let shape = shape(neighbours.count(), member.size());
        let lanes_bytes = shape.memory_size();
        let staging_bytes = STAGING_CELLS * am::CELL_BYTES;
        let lanes = zeroes(member, lanes_bytes)?;
        let staging = zeroes(member, staging_bytes)?;
        let landing = zeroes(member, LANDINGS * LANDING_BYTES)?;
        // SAFETY: exposed memory, which stays mapped and is never given back, of
        // plain bytes and words.
        let (lanes_region, staging_region, landing_region) = unsafe {
            (
                direct.register_runtime(lanes, lanes_bytes as u64, Access::ReadWrite)?,
                direct.register_runtime(staging, staging_bytes as u64, Access::Local)?,
                direct.register_runtime(
                    landing,
                    (LANDINGS * LANDING_BYTES) as u64,
                    Access::Local,
                )?,
            )
        };
        // SAFETY: the blocks are zeroed and aligned, and stay for the rest of the
        // job.
        let (lanes, staging) =
            unsafe { (words(lanes, lanes_bytes), words(staging, staging_bytes)) };
        let (peers, peers_lent) = lend(vec![am::AmPeer::EMPTY; shape.peers as usize]);
        let (calls, calls_lent) = lend(vec![am::PendingCall::EMPTY; CALLS_MAX]);
        let (slots, slots_lent) = lend(vec![am::StagingCell::EMPTY; STAGING_CELLS]);
        let (landings, landings_lent) = lend(vec![am::LandingBuffer::EMPTY; LANDINGS]);
        let memory = am::AmMemory {
            lanes,
            staging,
            staging_at: LocalAddr { key: staging_region.key, offset: 0 },
            landing_at: LocalAddr { key: landing_region.key, offset: 0 },
            landing_bytes: LANDING_BYTES as u64,
        };
        let tables = am::AmTables { peers, calls, slots, landings };
        // The doorbell after the cell: another thread may carry out each of them.
        let machine = AmMachine::new(near(own), shape, DoorbellOrder::AfterCell, memory, tables)
            .unwrap_or_else(|error| panic!("{error}"));
        Ok(Self {
            member: member.clone(),
            direct,
            far: OnceLock::new(),
            shape,
            lanes,
            regions: [lanes_region, staging_region, landing_region],
            landing,
            state: Mutex::new(State {
                machine,
                peers: Peers::new(neighbours),
                to_greet: VecDeque::new(),
                put_off: Vec::new(),
                calls: (0..CALLS_MAX).map(|_| Entry::default()).collect(),
                stuck: (0..shape.peers).map(|_| VecDeque::new()).collect(),
                stuck_len: 0,
                owed: Vec::new(),
                has_ended: false,
                has_room: false,
                peer_table: peers_lent,
                blocks: lend(Vec::new()).1,
                regions: Vec::new(),
                _tables: (calls_lent, slots_lent, landings_lent),
            }),
            functions: RwLock::default(),
            is_pumped: AtomicBool::new(false),
            is_stirred: AtomicBool::new(false),
            deadline: Deadline::new(),
            deaths: DeathWatch::default(),
            greetings: Arc::default(),
            blocks: RwLock::default(),
        })
    }

    /// The key of the lanes, for the other ranks.
    pub(crate) fn key(&self) -> RegionKey {
        self.regions[0].key
    }

    /// The regions that the carrier must register.
    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Whether a region of this rank contains lanes for other ranks.
    pub(crate) fn has_lanes(&self, key: RegionKey) -> bool {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        key == self.key() || blocks.contains(&key)
    }

    /// Connects the lanes of the node's ranks, in their order.
    pub(crate) fn connect(&self, cards: &[Card]) {
        let mut state = self.lock();
        let own = state.peers.find(self.member.rank()).expect("a rank is one of its node");
        for (peer, card) in (0..).map(PeerIndex).zip(cards) {
            let rank = state.peers.rank(peer);
            let lanes = RemoteAddr { rank, key: card.calls, offset: 0 };
            state.machine.connect(peer, lanes, own);
        }
    }

    /// Sets the carrier of operations on ranks of other nodes. Once, before there
    /// are any.
    pub(crate) fn carry_by(&self, carrier: Arc<dyn Carrier>) {
        let (greetings, member) = (self.greetings.clone(), self.member.clone());
        carrier.on_greeting(Box::new(move |from, bytes| greetings.put(from, bytes, &member)));
        let far = Far::new(carrier, &self.member, outbound::PLACES);
        assert!(self.far.set(far).is_ok(), "the carrier is set once");
    }

    /// Sets the function that messages for `handler` call.
    pub(crate) fn set(&self, handler: HandlerId, function: Function) {
        let mut functions = self.functions.write().unwrap_or_else(PoisonError::into_inner);
        functions.insert(handler.0, Arc::new(function));
    }

    /// Checks that a request may be sent to a peer.
    fn check_room(&self, state: &State, to: PeerIndex, wants_reply: bool) -> Result<(), SendError> {
        state.machine.check_room(to, wants_reply)?;
        match self.far.get() {
            Some(far) if !far.is_near(state.peers.rank(to)) && far.is_full() => {
                Err(SendError::Busy(Why::NoMemory))
            }
            _ => Ok(()),
        }
    }

    fn is_alive(&self, rank: Rank) -> bool {
        match self.far.get() {
            Some(far) if !far.is_near(rank) => far.is_alive(rank),
            _ => self.member.control_of(rank).is_alive(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Am {
    #[inline]
    fn has_work(&self) -> bool {
        am::has_rung(self.lanes, self.shape)
            || self.is_stirred.load(Ordering::SeqCst)
            || self.greetings.has_any()
            || self.deaths.has_news(&self.member)
            || self.far.get().is_some_and(Far::has_work)
    }

    #[inline]
    fn is_neglected(&self) -> bool {
        self.has_work() || self.deadline.has_passed()
    }

    #[inline]
    fn pump(&self) -> bool {
        self.is_neglected() && self.serve()
    }

    fn on_busy(&self) {
        if self.has_work() {
            self.serve();
        }
    }

    fn is_busy(&self) -> bool {
        self.far.get().is_some() && self.lock().machine.staged() > 0
    }

    fn until_deadline(&self) -> Option<Duration> {
        self.deadline.left()
    }

    fn rang(&self, key: RegionKey) -> bool {
        let is_own = self.has_lanes(key);
        if is_own {
            self.stir();
        }
        is_own
    }

    /// Closes the active messages: peers get the answer that this rank is gone,
    /// nothing of the program is kept, and calls of this rank end with
    /// [`CallError::Ended`], also the calls under way.
    fn close(&self) {
        let (ended, kept) = self.lock().close();
        ended.into_iter().for_each(Waker::wake);
        drop(kept);
        self.direct.unregister(self.key());
        let blocks = take(&mut *self.blocks.write().unwrap_or_else(PoisonError::into_inner));
        for key in blocks {
            self.direct.unregister(key);
        }
        take(&mut *self.functions.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    /// Ends all calls. Returns the wakers to be used, and the owners of payloads.
    fn close(&mut self) -> (Vec<Waker>, Vec<Box<dyn Any + Send>>) {
        self.has_ended = true;
        let stuck = self.stuck.iter_mut().flat_map(|stuck| stuck.drain(..));
        let mut woken: Vec<Waker> = stuck.map(|stuck| stuck.waker).collect();
        self.stuck_len = 0;
        for waiting in self.calls.iter_mut().filter_map(|entry| entry.waiting.take()) {
            // SAFETY: the caller waits for its result, as in `end`.
            let waiting = unsafe { &mut *waiting.as_ptr() };
            waiting.result = Some(Err(CallError::Ended));
            woken.extend(waiting.waker.take());
        }
        (woken, self.calls.iter_mut().filter_map(|entry| entry.kept.take()).collect())
    }

    /// Sends the owed answers, as far as there is room. Returns whether some are
    /// left.
    fn reply_owed(&mut self) -> bool {
        while let Some((reply_to, answer)) = self.owed.pop() {
            if let Err(reply_to) = self.machine.reply(reply_to, &answer) {
                self.owed.push((reply_to, answer));
                return true;
            }
        }
        false
    }

    /// Ends a call and stores its result for the caller. Returns the waker and the
    /// owner of the payload, which must be used and dropped without the lock.
    fn end(
        &mut self,
        token: Token,
        result: Result<Inline, CallError>,
    ) -> (Option<Waker>, Option<Box<dyn Any + Send>>) {
        let entry = &mut self.calls[token.index()];
        let is_read_still = result == Err(CallError::Timeout);
        let kept = if is_read_still { None } else { entry.kept.take() };
        let Some(waiting) = entry.waiting.take() else { return (None, kept) };
        // SAFETY: the caller waits until it finds a result there, and it looks for
        // the result under the lock, which this function holds.
        let waiting = unsafe { &mut *waiting.as_ptr() };
        waiting.result = Some(result);
        (waiting.waker.take(), kept)
    }
}

/// A count of an outside event, not of a worker, that may wake a ULT; while it
/// lives, the rank is not quiet.
pub(crate) struct Outside<'m>(&'m Member);

impl<'m> Outside<'m> {
    pub(crate) fn new(member: &'m Member) -> Self {
        member.control().outside().fetch_add(1, Ordering::SeqCst);
        Self(member)
    }
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        self.0.control().outside().fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Am {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Am({:?})", self.shape)
    }
}

/// The block as words.
///
/// # Safety
///
/// `start` has `bytes` initialised bytes, aligned to 8, that are only accessed as
/// words or plain bytes, for the rest of the job.
unsafe fn words(start: NonNull<u8>, bytes: usize) -> &'static [Word] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.as_ptr().cast(), bytes / 8) }
}

/// Calls of this rank that can be under way.
const CALLS_MAX: usize = 1024;
const STAGING_CELLS: usize = 64;
/// Cells of all lanes together to peers of other nodes, if a large job's ranks were
/// all such peers; each lane has at least four.
const LATER_CELLS: u32 = 4096;
const LANDINGS: usize = 4;
/// The longest payload.
pub(crate) const LANDING_BYTES: usize = 256 << 10;
/// Operations that are carried out between two turns with the lock.
const BATCH: usize = 8;

#[cfg(test)]
mod tests;
