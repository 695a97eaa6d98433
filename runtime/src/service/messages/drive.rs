//! The driver of the state machine of [`tsumugi_core::msg`] over the partitions of a
//! node.
//!
//! ```text
//!  send, recv ─► lock: machine ─► packets into lanes, short copies
//!                   ▲   │
//!   a waiter,       │   ▼
//!   an idle worker, turn ─► long copies, without the lock · sleepers woken
//!   the helper
//! ```
//!
//! The lock is held for some hundreds of instructions, and never while a thread is
//! woken or a long message is copied. A thread that waits for a message first polls
//! for it for a while, if no other one does; then it sleeps, and a worker without a ULT
//! polls for all. In a rank of several workers a thread that polls is seen by peers, which
//! then ring nobody for a short message; the [watch](super::watch) is that thread's part.
//!
//! A peer of this node that sends rings the doorbell only if a worker sleeps. It needs
//! no fence for that if the worker runs the heavy half of an asymmetric fence
//! ([`tsumugi_pvas::fence`]) before it sleeps (`sleeps_fenced`); otherwise the sender
//! executes a fence. The helper is woken for long messages and for what comes by the
//! network: short messages of the node are there when the receiver comes for them.

use super::Received;
use super::lookers::Lookers;
use super::orphans::Orphans;
use super::post::{Bag, ParcelPost};
use super::route::on_wire;
use super::state::{MessageState, Woken, WokenList, index};
use super::wire::{MessageLanes, carry_out_long};
use crate::config::Chosen;
use crate::death::DeathWatch;
use crate::endpoint_card::EndpointCard;
use crate::error::{Error, MessageError};
use crate::host_operations::HostOperations;
use crate::net::Transport;
use crate::node_ranks::NodeRanks;
use crate::peers::Peers;
use crate::service::Service;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tsumugi_core::mem::{LocalRank, PeerIndex};
use tsumugi_core::msg::locked_matching::Board;
use tsumugi_core::msg::{
    Copy, CopyJob, INLINE_BYTES_MAX, MessageCounts, RequestError, RequestId, Split, Thresholds,
};
use tsumugi_core::sync::AtomicBool;
#[cfg(any(test, feature = "testing"))]
use tsumugi_core::sync::Ordering;
use tsumugi_core::wait::Waker;
use tsumugi_pvas::calibrate::SPLIT_LEAST;
use tsumugi_pvas::{DistanceProbe, Member, cma, distance};
use tsumugi_ult::internals::{BiasedGuard, BiasedLock};

/// The messages of one rank.
pub struct Messages {
    pub(super) member: Member,
    state: BiasedLock<MessageState>,
    /// A mark is removed before its request is free.
    pub(super) orphans: Orphans,
    /// A thread that waits polls for messages.
    pub(super) is_watched: AtomicBool,
    /// How many rounds such a thread polls; 0 where that would be at the cost of
    /// others.
    pub(super) rounds: u32,
    /// The rank has several workers, so peers and workers see who looks for messages.
    pub(super) is_seen: bool,
    /// What the attendant knows of callers that look for messages.
    pub(super) lookers: Lookers,
    deaths: DeathWatch,
    neighbours: NodeRanks,
    /// For each neighbour the probe of its distance, from the times of long copies;
    /// and the words in which both sides claim parts of one copy.
    probes: Box<[DistanceProbe]>,
    splits: Box<[[&'static Split; 2]]>,
    /// For each neighbour the process from which the kernel lets this rank copy, if
    /// it does; found out at the first use.
    kernels: Box<[OnceLock<Option<u32>>]>,
    /// The transport to other nodes, and the queue of parcels that have come from there.
    net: Option<(Arc<dyn Transport>, Arc<Bag>)>,
    /// The table of this rank's posted receives, if the design has boards.
    board: Option<Board<'static>>,
    /// The operations of the rank that the ends of requests may end.
    host: Arc<HostOperations>,
    /// The names of contexts, for reports.
    pub(super) context_names: OnceLock<ContextName>,
}

/// The name that a library on top has for a context, such as that of a communicator of MPI.
/// It is called by a thread that reports, while other threads may stand still: it waits for
/// none of them.
pub type ContextName = fn(u16) -> Option<String>;

/// A message that has begun.
#[derive(Clone, Copy, Debug)]
pub enum Under {
    /// The message has ended at once.
    Ended(Result<Received, MessageError>),
    /// The machine has the request; the number is the length of a receive's buffer.
    Way(RequestId, usize),
}

impl Under {
    /// Whether there is nothing to wait for.
    pub(crate) const fn has_ended_at_once(self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// Whether both are one request of the machine.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.request().is_some() && self.request() == other.request()
    }

    pub(super) fn request(self) -> Option<RequestId> {
        match self {
            Self::Ended(_) => None,
            Self::Way(request, _) => Some(request),
        }
    }
}

pub(super) type StateGuard<'a> = BiasedGuard<'a, MessageState>;

// SAFETY: all that is not atomic is under the lock; the pointers in the state are
// only used under it, while their owners wait.
unsafe impl Send for Messages {}
// SAFETY: the same.
unsafe impl Sync for Messages {}

impl Messages {
    /// Makes the messages of a rank, when all ranks of its node have exchanged the
    /// places of their lanes.
    pub(crate) fn new(
        member: &Member,
        lanes: &MessageLanes,
        cards: &[EndpointCard],
        transport: Option<Arc<dyn Transport>>,
        chosen: &Chosen,
    ) -> Result<Self, Error> {
        let (near, boards) = lanes.connect(member, |rank| {
            let place = member.local_of(rank).expect("a lane leads to a rank of this node");
            cards[place.0 as usize].messages
        })?;
        let (shape, neighbours) = (lanes.shape(), lanes.neighbours().clone());
        let post = transport.map(|transport| {
            let peers = Peers::new(neighbours.clone());
            (transport.clone(), Box::new(ParcelPost::new(member, peers, shape, transport)))
        });
        let (net, post) =
            post.map(|(transport, post)| ((transport, post.bag().clone()), post)).unzip();
        let splits = (0..neighbours.count()).map(|peer| near.splits(PeerIndex(peer))).collect();
        let own = neighbours.local(member.rank()).expect("a rank is one of its node");
        let board = boards.get(own.0 as usize).copied();
        let mut state = MessageState::new(own, shape, chosen.messages, near, post, boards);
        let probes = (0..).map(PeerIndex).zip(neighbours.ranks()).map(|(peer, rank)| {
            state.use_thresholds(peer, thresholds_of(&member.distance_to(rank).1));
            member.distance_probe_of(rank)
        });
        let probes = probes.collect();
        let kernels = neighbours.ranks().map(|_| OnceLock::new()).collect();
        Ok(Self {
            member: member.clone(),
            state: BiasedLock::new(state),
            orphans: Orphans::new(),
            is_watched: AtomicBool::new(false),
            rounds: chosen.idleness().spins,
            is_seen: chosen.workers > 1,
            lookers: Lookers::default(),
            deaths: DeathWatch::default(),
            neighbours,
            probes,
            splits,
            kernels,
            net,
            board,
            host: Arc::default(),
            context_names: OnceLock::new(),
        })
    }

    /// Has reports name contexts so. The first call counts.
    pub fn name_contexts(&self, name: ContextName) {
        let _ = self.context_names.set(name);
    }

    /// The name of a context, for reports.
    pub(crate) fn context_name(&self, context: u16) -> Option<String> {
        self.context_names.get().and_then(|name| name(context))
    }

    /// The operations of the rank that no engine carries out.
    pub(crate) fn host(&self) -> &Arc<HostOperations> {
        &self.host
    }

    /// Whether the machine still keeps the request's result.
    pub fn is_held(&self, under: Under) -> bool {
        match under {
            Under::Ended(_) => false,
            Under::Way(request, _) => self.lock().machine.is_held(request),
        }
    }

    /// Marks that the handle has gone and that its scope takes the result.
    #[inline]
    pub fn orphan(&self, under: Under) {
        if let Under::Way(request, _) = under {
            self.orphans.set(index(request), true);
        }
    }

    /// Whether the handle of the request has gone, and its scope wants the result.
    #[inline]
    pub fn is_orphan(&self, under: Under) -> bool {
        match under {
            Under::Ended(_) => true,
            Under::Way(request, _) => {
                // If it is held after the load, it was held at the load: then the
                // mark is of this request, and not of a later one in the same place.
                self.orphans.has(index(request)) && self.is_held(under)
            }
        }
    }

    /// Drops the handle; `kept` keeps the bytes until the request ends.
    pub fn abandon(&self, under: Under, kept: Box<dyn Any + Send>) {
        if let Under::Way(request, _) = under {
            self.lock().abandon(request, kept);
        }
    }

    /// Ends a request that has not matched yet, as cancelled.
    pub fn cancel(&self, under: Under) {
        if let Under::Way(request, _) = under {
            let mut state = self.lock();
            on_wire!(state, |machine, wire| machine.cancel(wire, request));
            drop(state);
            self.work();
        }
    }

    /// Ends the part of this rank in messages, at the end of its job. Threads that wait
    /// are woken: their calls end with [`MessageError::Ended`] as soon as no peer can
    /// reach their buffers. When this returns, no thread of this rank accesses memory
    /// of a peer any more.
    pub(crate) fn close(&self) {
        let woken = self.lock().seal();
        woken.into_iter().for_each(Waker::wake);
        self.work();
        while self.lock().machine.is_copying() {
            // A copy of another thread, or of the network.
            tsumugi_ult::sleep(COPY_LOOK);
            self.work();
        }
    }

    /// Whether a message has ended, as far as is known: nothing is polled.
    pub(crate) fn has_ended(&self, under: Under) -> bool {
        under.request().is_none_or(|request| self.lock().machine.has_ended(request))
    }

    /// Counts of what was sent and received so far.
    pub fn counts(&self) -> MessageCounts {
        let mut counts = *self.lock().machine.counts();
        // Parcels that were malformed.
        counts.dropped += self.net.as_ref().map_or(0, |(_, bag)| bag.refused());
        counts
    }

    /// Takes parcels from other nodes into the bag. Called without the lock: the
    /// handler of parcels must not wait for it.
    #[inline]
    pub(crate) fn poll_net(&self) -> bool {
        self.net.as_ref().is_some_and(|(transport, _)| transport.poll())
    }

    /// Breaks the board's lock after its holder has died; ranks that wait for that
    /// lock may have messages of this one.
    fn free_board(&self) {
        if let Some(board) = &self.board
            && self.deaths.has_news(&self.member)
        {
            for (local, rank) in (0..).map(LocalRank).zip(self.neighbours.ranks()) {
                if !self.member.is_alive(rank) {
                    board.lost(local);
                }
            }
        }
    }

    /// The probe of a neighbour. `None`: the peer is of another node.
    fn distance_probe(&self, peer: PeerIndex) -> Option<&DistanceProbe> {
        self.probes.get(peer.0 as usize)
    }

    /// Moves on what there is to be moved. Returns whether anything has.
    pub(crate) fn work(&self) -> bool {
        self.poll_net() | self.work_on(self.lock(), false)
    }

    pub(super) fn work_on<'a>(&'a self, mut state: StateGuard<'a>, rests: bool) -> bool {
        let mut has_moved = false;
        if self.deaths.take(&self.member) {
            state.lose(|rank| !self.member.is_alive(rank));
            has_moved = true;
        }
        loop {
            let arrived = state.take_arrived();
            let moved = arrived
                | on_wire!(state, |machine, wire| {
                    if rests { machine.rest(wire) } else { machine.advance(wire) }
                })
                | state.widen_if_cramped();
            has_moved |= moved;
            let mut woken = WokenList::new();
            state.note_ended(&mut woken);
            if std::mem::take(&mut state.has_moved) | moved {
                while !woken.is_full()
                    && let Some(prober) = state.probers.pop()
                {
                    let _ = woken.push(Woken::Thread(prober));
                }
            }
            let mut job = state.machine.poll_job();
            if job.is_some() && self.is_seen && self.gives_way() {
                // Peers may have rung nobody until now, and the copy may take long.
                has_moved |= on_wire!(state, |machine, wire| machine.advance_all(wire));
                state.note_ended(&mut woken);
            }
            if woken.is_empty() && job.is_none() {
                return has_moved;
            }
            has_moved = true;
            drop(state);
            woken.into_iter().for_each(|woken| self.wake(woken));
            // The parts of a message follow each other at once.
            while let Some(one) = job.take() {
                if let Some(outcome) = self.carry_out(&one) {
                    job = self.job_done(&one, outcome);
                }
            }
            state = self.lock();
        }
    }

    fn wake(&self, woken: Woken) {
        match woken {
            Woken::Thread(waker) => waker.wake(),
            Woken::Host(tag) => {
                self.host.tables().completions().complete(tag, Ok(0));
            }
        }
    }

    /// Reports the result of a copy to the machine. Returns the next copy to be
    /// done.
    fn job_done(&self, job: &CopyJob, outcome: CopyOutcome) -> Option<CopyJob> {
        let mut state = self.lock();
        if let Some(distance) = self.distance_probe(job.copy.peer).and_then(DistanceProbe::changed)
        {
            let measured = self.member.thresholds(distance);
            state.use_thresholds(job.copy.peer, thresholds_of(&measured));
            state.near.use_pieces(job.copy.peer, measured.pieces_max);
        }
        on_wire!(state, |machine, wire| match outcome {
            CopyOutcome::Moved(result) => machine.job_done(wire, job.request, result),
            CopyOutcome::Split(claimed) => machine.split_done(wire, job.request, claimed),
        });
        state.machine.poll_job()
    }

    /// Copies the bytes of a long message. Returns the result, or `None` if it comes
    /// later.
    fn carry_out(&self, job: &CopyJob) -> Option<CopyOutcome> {
        let Copy { peer, from, to, len, .. } = job.copy;
        if job.copy.by_kernel {
            return Some(CopyOutcome::Moved(self.fetch_by_kernel(&job.copy)));
        }
        if let Some(probe) = self.distance_probe(peer) {
            // SAFETY: the machine lends both buffers to the message, and of a split
            // copy only the parts that this side has claimed.
            let carry_out = |copy: &Copy| unsafe { carry_out_long(copy, probe) };
            let Some((id, side)) = job.split else {
                carry_out(&job.copy);
                return Some(CopyOutcome::Moved(Ok(())));
            };
            let split = self.splits[peer.0 as usize][side as usize];
            let claimed = split.share(id, side, len, SPLIT_LEAST, |part| {
                let len = part.end - part.start;
                carry_out(&Copy { from: from + part.start, to: to + part.start, len, ..job.copy });
            });
            return Some(CopyOutcome::Split(claimed));
        }
        let to = std::ptr::with_exposed_provenance_mut(to as usize);
        let rank = self.lock().rank_of(peer);
        let begun = self.net.as_ref().is_some_and(|(transport, _)| {
            // SAFETY: the buffer is lent to the message until the machine gets the
            // result.
            unsafe { transport.fetch(rank, from, to, len, job.request.to_bits()) }
        });
        if begun { None } else { Some(CopyOutcome::Moved(Err(RequestError::Failed { peer }))) }
    }

    /// Copies from a buffer of a neighbour that only the kernel can reach.
    fn fetch_by_kernel(&self, copy: &Copy) -> Result<(), RequestError> {
        let Copy { peer, from, to, len, .. } = *copy;
        let kernel = &self.kernels[peer.0 as usize];
        let pid = kernel.get_or_init(|| {
            // A neighbour: the ranks of the node are the first peers.
            let local = LocalRank(peer.0);
            let space = self.member.space();
            space.cma(local).ok().map(|()| space.control(local).pid())
        });
        let pid = pid.ok_or(RequestError::Failed { peer })?;
        let to = std::ptr::with_exposed_provenance_mut(to as usize);
        // SAFETY: a buffer of this length that is lent to the message.
        let to = unsafe { std::slice::from_raw_parts_mut(to, len as usize) };
        // SAFETY: memory of another process, or the buffer from which the message is
        // sent.
        let read = unsafe { cma::read_from(pid, from as usize, to) };
        read.map_err(|_| RequestError::Failed { peer })
    }

    /// Whether the job has other nodes.
    #[inline(always)]
    pub(super) fn has_net(&self) -> bool {
        self.net.is_some()
    }

    #[inline(always)]
    pub(super) fn lock(&self) -> StateGuard<'_> {
        self.state.lock()
    }
}

impl Service for Messages {
    /// Handles packets that have come, and moves requests on. Returns whether there
    /// was anything; returns false at once if another thread has the lock.
    fn pump(&self) -> bool {
        self.help() | self.state.try_lock().is_some_and(|state| self.work_on(state, false))
    }

    /// Does the same once more for a thread that is about to sleep.
    fn has_work(&self) -> bool {
        self.free_board();
        // No other thread would send the parcels that the network has refused.
        let has_moved = self.poll_net() | self.work_on(self.lock(), true);
        has_moved || self.net.is_some() && self.lock().has_unsent()
    }

    /// Whether a peer has found no thread here that would handle its long message.
    #[inline]
    fn is_neglected(&self) -> bool {
        self.member.control().is_neglected()
            || self.net.as_ref().is_some_and(|(_, bag)| bag.is_full())
    }

    /// The helper's work for a rank that is neglected. It looks at all lanes: it may find no
    /// reason to look again.
    fn help(&self) -> bool {
        self.free_board();
        let has_come = self.net.as_ref().is_some_and(|(_, bag)| bag.is_full());
        (self.member.control().take_neglected() | has_come) && self.work_on(self.lock(), true)
    }

    /// The only worker does nothing: packets are looked at when it is idle again, or by the
    /// helper, which the sender of a long message wakes. A short message is there when its
    /// receiver comes for it. Of several workers, another one may sleep for which no peer
    /// has rung.
    fn on_busy(&self) {
        if self.is_seen {
            self.look_again();
        }
    }
}

/// Converts measured thresholds to words that are compared with a message's length.
fn thresholds_of(measured: &distance::Thresholds) -> Thresholds {
    let word = |bytes: u64| bytes.min(u64::from(u32::MAX)) as u32;
    Thresholds {
        inline_max: word(measured.inline_max).min(INLINE_BYTES_MAX as u32),
        direct_from: word(measured.direct_from),
        alone_from: word(measured.alone_from),
        direct_max: word(measured.direct_max),
        nt_from: word(measured.nt_from),
        pull_from: word(measured.pull_from),
        eager_max: word(measured.eager_max),
        ask_from: word(measured.ask_from),
        both_from: word(measured.both_from),
        kernel_from: word(measured.kernel_from),
        chunk: word(measured.chunk),
        halves_from: word(measured.halves_from),
        ..Thresholds::DEFAULT
    }
}

/// How long the end of a rank waits before it looks at its last copies again.
const COPY_LOOK: Duration = Duration::from_micros(100);

/// The result of a copy.
enum CopyOutcome {
    /// Its bytes were copied, or could not be.
    Moved(Result<(), RequestError>),
    /// Both sides have copied; whether this side has claimed any part, and the other
    /// side.
    Split([bool; 2]),
}

#[cfg(any(test, feature = "testing"))]
impl Messages {
    /// Whether a thread that waits for a message polls now.
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed) || self.attendance().is_watched()
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({})", self.member.rank())
    }
}
