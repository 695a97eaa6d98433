//! The state of the active messages: the machine under its lock, and the callers that
//! wait.

use super::greeting::{Greeting, Greetings};
use super::lanes::{CALLS_MAX, LANDING_BYTES, LANDINGS, STAGING_CELLS, shape, words};
use super::outbound::{self, RemoteOps};
use crate::deadline::Deadline;
use crate::death::DeathWatch;
use crate::endpoint_card::EndpointCard;
use crate::error::Error;
use crate::leaked_slice::{LeakedSlice, lend, zeroes};
use crate::net::{Parcel, Transport};
use crate::node_ranks::NodeRanks;
use crate::peers::{Peers, near};
use crate::service::Service;
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
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{Access, LocalAddr, PeerIndex, Region, RegionKey, RemoteAddr};
use tsumugi_core::sync::mapped::AtomicU64 as Word;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::wait::Waker;
use tsumugi_pvas::{Direct, Member};

/// The function that a message calls.
pub enum Function {
    /// Runs on the thread that takes the message, and must not block.
    Here(Box<dyn Fn(Message<'_>) -> HandlerAnswer + Send + Sync>),
    /// Takes the message to another thread, and with it the duty to answer.
    Elsewhere(Box<Start>),
}

/// Begins to serve a message: gets the sender, the payload, and the place for the
/// answer if the sender waits for one.
type Start = dyn Fn(Rank, Box<[u8]>, Option<ReplyTo>) + Send + Sync;

/// The active messages of one rank.
pub struct Am {
    pub(super) member: Member,
    pub(super) direct: Direct,
    /// The transport of operations to ranks of other nodes, if there are any.
    pub(super) remote: OnceLock<RemoteOps>,
    pub(super) shape: AmShape,
    pub(super) lanes: &'static [Word],
    /// Regions of the lanes, the staging cells and the landing buffers.
    pub(super) regions: [Region; 3],
    pub(super) landing: NonNull<u8>,
    pub(super) state: Mutex<AmState>,
    pub(super) functions: RwLock<HashMap<u32, Arc<Function>>>,
    /// A thread is pumping.
    pub(super) is_pumped: AtomicBool,
    /// There is work for a pump that no doorbell has announced.
    pub(super) is_stirred: AtomicBool,
    pub(super) deadline: Deadline,
    pub(super) deaths: DeathWatch,
    pub(super) greetings: Arc<Greetings>,
    /// Keys of the lanes for ranks of other nodes.
    pub(super) blocks: RwLock<Vec<RegionKey>>,
}

/// The state under the lock. The machine and its tables name peers by their indices.
pub(super) struct AmState {
    pub(super) machine: AmMachine<'static>,
    pub(super) peers: Peers,
    /// Peers to which a greeting is to be sent, and greetings for which there was no
    /// memory.
    pub(super) to_greet: VecDeque<PeerIndex>,
    pub(super) put_off: Vec<(Rank, Greeting)>,
    /// An entry for each call of the machine.
    pub(super) calls: Vec<CallEntry>,
    /// Senders that wait for room, for each peer.
    pub(super) stuck: Vec<VecDeque<Stuck>>,
    pub(super) stuck_len: usize,
    /// Answers of ULTs that were cut off before there was room.
    pub(super) owed: Vec<(ReplyTo, HandlerAnswer)>,
    /// The rank has ended: no thread pumps any more.
    pub(super) has_ended: bool,
    /// Operations on other nodes have ended since waiters were last woken.
    pub(super) has_room: bool,
    pub(super) peer_table: LeakedSlice<am::AmPeer>,
    pub(super) blocks: LeakedSlice<am::LaneBlock<'static>>,
    pub(super) regions: Vec<Region>,
    pub(super) _tables: LeakedTables,
}

/// The facade's state of a call under way.
#[derive(Default)]
pub(super) struct CallEntry {
    pub(super) waiting: Option<NonNull<WaitingCall>>,
    /// The owner of the payload, if that is not the caller's stack.
    pub(super) kept: Option<Box<dyn Any + Send>>,
}

/// A sender that waits for room; `sleeper` is an address on its stack that names it.
pub(super) struct Stuck {
    pub(super) sleeper: usize,
    pub(super) waker: Waker,
}

/// On the caller's stack until the call has ended; accessed under the lock.
#[derive(Default)]
pub(super) struct WaitingCall {
    pub(super) result: Option<Result<Inline, CallError>>,
    pub(super) waker: Option<Waker>,
}

/// The machine's tables that do not grow, freed with the state.
type LeakedTables =
    (LeakedSlice<am::PendingCall>, LeakedSlice<am::StagingCell>, LeakedSlice<am::LandingBuffer>);

// SAFETY: `landing` is memory that stays mapped; the pointers in the entries are
// only used under the lock, while their callers wait.
unsafe impl Send for Am {}
// SAFETY: the same; all that changes is atomic or under the lock.
unsafe impl Sync for Am {}

impl Am {
    /// Makes the lanes of this rank.
    pub(crate) fn new(member: &Member) -> Result<Self, Error> {
        let (neighbours, direct) = (NodeRanks::of(member), member.direct());
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
            remote: OnceLock::new(),
            shape,
            lanes,
            regions: [lanes_region, staging_region, landing_region],
            landing,
            state: Mutex::new(AmState {
                machine,
                peers: Peers::new(neighbours),
                to_greet: VecDeque::new(),
                put_off: Vec::new(),
                calls: (0..CALLS_MAX).map(|_| CallEntry::default()).collect(),
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
    pub fn key(&self) -> RegionKey {
        self.regions[0].key
    }

    /// The regions that the transport must register.
    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Whether a region of this rank contains lanes for other ranks.
    pub(crate) fn has_lanes(&self, key: RegionKey) -> bool {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        key == self.key() || blocks.contains(&key)
    }

    /// Connects the lanes of the node's ranks, in their order.
    pub(crate) fn connect(&self, cards: &[EndpointCard]) {
        let mut state = self.lock();
        let own = state.peers.find(self.member.rank()).expect("a rank is one of its node");
        for (peer, card) in (0..).map(PeerIndex).zip(cards) {
            let rank = state.peers.rank(peer);
            let lanes = RemoteAddr { rank, key: card.calls, offset: 0 };
            state.machine.connect(peer, lanes, own);
        }
    }

    /// Sets the transport of operations on ranks of other nodes. Once, before there
    /// are any.
    pub fn set_transport(&self, transport: Arc<dyn Transport>) {
        let (greetings, member) = (self.greetings.clone(), self.member.clone());
        let greeted = Box::new(move |from, bytes: &[u8]| greetings.put(from, bytes, &member));
        transport.on_parcel(Parcel::Greeting, greeted);
        let remote = RemoteOps::new(transport, &self.member, outbound::PLACES);
        assert!(self.remote.set(remote).is_ok(), "the transport is set once");
    }

    /// Sets the function that messages for `handler` call. The function that was set
    /// before is dropped when the table is unlocked: values of the program in it may
    /// set handlers, call or sleep in their drop. After the end of the rank, the new
    /// function is dropped.
    pub fn set(&self, handler: HandlerId, function: Function) {
        let function = Arc::new(function);
        let mut functions = self.functions.write().unwrap_or_else(PoisonError::into_inner);
        // `close` empties the table after it has set this.
        let unused = match self.lock().has_ended {
            true => Some(function),
            false => functions.insert(handler.0, function),
        };
        drop(functions);
        drop(unused);
    }

    /// Checks that a request may be sent to a peer.
    pub(super) fn check_room(
        &self,
        state: &AmState,
        to: PeerIndex,
        wants_reply: bool,
    ) -> Result<(), SendError> {
        state.machine.check_room(to, wants_reply)?;
        match self.remote.get() {
            Some(remote) if !remote.is_near(state.peers.rank(to)) && remote.is_full() => {
                Err(SendError::Busy(Why::NoMemory))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_alive(&self, rank: Rank) -> bool {
        match self.remote.get() {
            Some(remote) if !remote.is_near(rank) => remote.is_alive(rank),
            _ => self.member.control_of(rank).is_alive(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, AmState> {
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
            || self.remote.get().is_some_and(RemoteOps::has_work)
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
        self.remote.get().is_some() && self.lock().machine.staged() > 0
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
        let functions = take(&mut *self.functions.write().unwrap_or_else(PoisonError::into_inner));
        // Without the lock, as in `set`.
        drop(functions);
    }
}

impl AmState {
    /// Ends all calls. Returns the wakers to be used, and the owners of payloads.
    pub(super) fn close(&mut self) -> (Vec<Waker>, Vec<Box<dyn Any + Send>>) {
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
    pub(super) fn reply_owed(&mut self) -> bool {
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
    pub(super) fn end(
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

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here(_) => "Here",
            Self::Elsewhere(_) => "Elsewhere",
        })
    }
}

impl fmt::Debug for Am {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Am({:?})", self.shape)
    }
}
