//! The machine of a rank, and the waiters of its requests.

use super::label::SendMode;
use super::orphans::REQUESTS_FIRST;
use super::post::{ParcelPost, with_room};
use super::route::on_wire;
use super::wire::NodeWire;

use crate::leaked_slice::{LeakedSlice, lend};
use std::any::Any;
use std::ptr::NonNull;
use tsumugi_core::completion::Why;
use tsumugi_core::mem::Rank;
use tsumugi_core::mem::{LocalRank, PeerIndex};
use tsumugi_core::msg::locked_matching::Board;
use tsumugi_core::msg::{
    self, Begun, CallError, INLINE_BYTES_MAX, Label, MatchingDesign, MessageBytes, MessageMachine,
    MessageShape, Pattern, REQUESTS_MAX, ReceivedMessage, RequestError, RequestId, Thresholds,
};
use tsumugi_core::sync::AtomicBool;
use tsumugi_core::tag::Tag;
use tsumugi_core::wait::Waker;

/// The state of messages, under the lock.
pub(super) struct MessageState {
    pub(super) machine: MessageMachine<'static>,
    pub(super) near: NodeWire,
    /// Present if the job has other nodes.
    pub(super) post: Option<Box<ParcelPost>>,
    /// An entry for each request of the machine.
    entries: Vec<RequestEntry>,
    /// Wakers of threads that wait for any message to come.
    pub(super) probers: Vec<Waker>,
    /// The least length of a receive that may be announced to a peer.
    pub(super) offered_from: u32,
    /// Something has come for which the probers were not woken yet.
    pub(super) has_moved: bool,
    /// The rank has ended: nothing begins any more, and no thread sleeps for a
    /// message.
    pub(super) has_ended: bool,
    /// The memory that the machine borrows; dropped last.
    tables: MessageTables,
    boards: LeakedSlice<Board<'static>>,
}

/// The machine's tables, freed with the state.
type MessageTables = (
    LeakedSlice<msg::MessagePeer>,
    LeakedSlice<msg::RequestEntry>,
    LeakedSlice<msg::UnexpectedMessage>,
    LeakedSlice<msg::LoggedMessage>,
    LeakedSlice<msg::MirroredOffer>,
);

/// What happens when a request ends.
#[derive(Default)]
pub(super) enum RequestEntry {
    /// Its handle finds the result.
    #[default]
    Handle,
    /// A thread that sleeps is woken.
    Waiting(NonNull<WaitingRequest>),
    /// The operation with this tag of the rank's host table ends; it owns the buffer.
    Host(Tag),
    /// The handle has gone: this owner of the buffer is dropped.
    Kept { _buffer: Box<dyn Any + Send> },
}

/// On the stack of a waiter, until its wait is over; accessed under the lock.
#[derive(Default)]
pub(super) struct WaitingRequest {
    /// Requests that must still end.
    pub(super) left: usize,
    pub(super) waker: Option<Waker>,
}

/// What is to be woken after the lock was given back.
pub(super) enum Woken {
    Thread(Waker),
    Host(Tag),
}

/// All that is to be woken after one turn with the lock.
pub(super) type WokenList = heapless::Vec<Woken, WOKEN_MAX>;

/// Why an operation did not begin.
#[derive(Clone, Copy, Debug)]
pub(super) enum WireRefusal {
    /// There is no room in the tables.
    Busy(Why),
    /// The rank does not exist.
    NoSuchRank { rank: Rank },
    /// The peer has died.
    PeerLost { peer: PeerIndex },
    /// This rank has ended.
    Ended,
}

impl From<CallError> for WireRefusal {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Busy(why) => Self::Busy(why),
            // Only in a job of one node, where the index of each peer is its rank.
            CallError::NoSuchPeer { peer, .. } => Self::NoSuchRank { rank: Rank(peer.0) },
            CallError::PeerLost { peer } => Self::PeerLost { peer },
        }
    }
}

/// The pattern for the machine in a job of one node, where the index of each peer is
/// its rank.
#[inline(always)]
pub(super) fn by_rank(pattern: Pattern<Rank>) -> Pattern {
    let Pattern { context, source, tag } = pattern;
    Pattern { context, source: source.map(|rank| PeerIndex(rank.0)), tag }
}

impl MessageState {
    /// Makes a machine over these lanes.
    pub(super) fn new(
        own: LocalRank,
        shape: MessageShape,
        design: MatchingDesign,
        near: NodeWire,
        post: Option<Box<ParcelPost>>,
        boards: Vec<Board<'static>>,
    ) -> Self {
        let (lent, tables) = tables_of(shape, REQUESTS_FIRST, shape.unexpected());
        let mut machine = MessageMachine::new(own, shape, design, Thresholds::DEFAULT, lent)
            .unwrap_or_else(|error| panic!("{error}"));
        let (boards, lent_boards) = lend(boards);
        if !boards.is_empty() {
            machine.put_up(boards);
        }
        Self {
            machine,
            near,
            post,
            entries: (0..REQUESTS_FIRST).map(|_| RequestEntry::default()).collect(),
            probers: Vec::new(),
            offered_from: Thresholds::DEFAULT.offered_from(),
            has_moved: false,
            has_ended: false,
            tables,
            boards: lent_boards,
        }
    }

    /// The index of a rank.
    ///
    /// # Errors
    ///
    /// There is no such rank; on one node the machine checks that.
    #[inline(always)]
    pub(super) fn peer_of(&mut self, rank: Rank) -> Result<PeerIndex, WireRefusal> {
        if self.post.is_none() { Ok(PeerIndex(rank.0)) } else { self.remote_peer(rank) }
    }

    /// Returns the pattern for the machine, with the index of its source.
    ///
    /// # Errors
    ///
    /// There is no such rank, as for [`peer_of`](Self::peer_of).
    #[inline(always)]
    pub(super) fn by_index(&mut self, pattern: Pattern<Rank>) -> Result<Pattern, WireRefusal> {
        let Pattern { context, source, tag } = pattern;
        match source {
            Some(rank) if self.post.is_some() => {
                Ok(Pattern { context, source: Some(self.remote_peer(rank)?), tag })
            }
            _ => Ok(by_rank(pattern)),
        }
    }

    #[inline(never)]
    fn remote_peer(&mut self, rank: Rank) -> Result<PeerIndex, WireRefusal> {
        let Some(post) = &mut self.post else { return Ok(PeerIndex(rank.0)) };
        let peer = post.peer_of(rank);
        self.catch_up();
        peer.ok_or(WireRefusal::NoSuchRank { rank })
    }

    /// Begins to send a message.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        to: Rank,
        label: Label,
        from: MessageBytes,
        mode: SendMode,
    ) -> Result<Begun<()>, WireRefusal> {
        let to = self.peer_of(to)?;
        on_wire!(self, |machine, wire| {
            if from.len > INLINE_BYTES_MAX as u64 {
                // The receive for this message may have been announced by now.
                machine.look(wire, to);
            }
            Ok(match mode {
                SendMode::Standard => machine.send(wire, to, label, from)?,
                SendMode::Synchronous => machine.send_synchronous(wire, to, label, from)?,
            })
        })
    }

    /// The rank of a peer.
    #[inline(always)]
    pub(super) fn rank_of(&self, peer: PeerIndex) -> Rank {
        match &self.post {
            None => Rank(peer.0),
            Some(post) => post.peers().rank(peer),
        }
    }

    /// Describes a message to the program: its source is a rank.
    #[inline(always)]
    pub(super) fn named(&self, received: ReceivedMessage) -> ReceivedMessage<Rank> {
        let ReceivedMessage { source, tag, len, truncated } = received;
        ReceivedMessage { source: self.rank_of(source), tag, len, truncated }
    }

    /// Adds the new peers to the machine.
    fn catch_up(&mut self) {
        while let Some(post) = &self.post
            && self.machine.peers() < post.peers().count()
        {
            let next = PeerIndex(self.machine.peers());
            let is_alive = post.member().is_alive(post.peers().rank(next));
            let peers = with_room(next.0 + 1, post.member());
            let Some(peer) = self.machine.admit() else {
                self.grow(peers, self.machine.requests(), 0);
                continue;
            };
            self.use_thresholds(peer, Thresholds::FAR);
            if !is_alive {
                self.lose_peer(peer);
            }
        }
    }

    /// Makes the machine's tables longer: for so many peers and requests, and with so many
    /// more places for unexpected messages.
    #[cold]
    fn grow(&mut self, peers: u32, requests: usize, more: usize) {
        let old = self.machine.shape();
        let shape = MessageShape { peers: peers.max(old.peers), ..old };
        // The places of all peers to come, and those beyond the shape.
        let beyond = self.machine.places() - old.unexpected();
        let unexpected = (shape.unexpected() + beyond).max(self.tables.2.len()) + more;
        let (lent, tables) = tables_of(shape, requests, unexpected);
        self.machine.grow(lent).unwrap_or_else(|error| panic!("{error}"));
        self.tables = tables;
        self.entries.resize_with(requests, RequestEntry::default);
    }

    /// Makes room for as many requests again. Returns false if there are as many as there can
    /// be: [`requests_max`](Self::requests_max).
    #[cold]
    pub(super) fn grow_requests(&mut self) -> bool {
        let requests = self.machine.requests();
        let more = (2 * requests).min(self.requests_max());
        if more > requests {
            self.grow(self.tables.0.len() as u32, more, 0);
        }
        more > requests
    }

    /// The requests that can be under way: with boards only as many as a board has posts.
    pub(super) fn requests_max(&self) -> usize {
        if self.has_boards() { REQUESTS_FIRST } else { REQUESTS_MAX }
    }

    fn has_boards(&self) -> bool {
        self.boards.len() > 0
    }

    /// Makes room for more unexpected messages, if a receive waits for a message that may be
    /// behind those for which there is room. Returns whether it has.
    #[inline]
    pub(super) fn widen_if_cramped(&mut self) -> bool {
        self.machine.is_cramped() && self.widen()
    }

    #[cold]
    fn widen(&mut self) -> bool {
        let more = self.machine.places() / 2;
        self.grow(self.tables.0.len() as u32, self.machine.requests(), more);
        self.machine.widen(more as u32).unwrap_or_else(|error| panic!("{error}"));
        true
    }

    /// Sets the thresholds for messages to a peer.
    pub(super) fn use_thresholds(&mut self, peer: PeerIndex, to: Thresholds) {
        let set = self.machine.set_thresholds(peer, to);
        set.unwrap_or_else(|error| panic!("{error}"));
        self.offered_from = self.offered_from.min(to.offered_from());
    }

    /// Whether a parcel waits for the network.
    pub(super) fn has_unsent(&self) -> bool {
        self.post.as_ref().is_some_and(|post| post.has_unsent())
    }

    /// Handles what has come from other nodes. Returns whether anything has.
    #[inline]
    pub(super) fn take_arrived(&mut self) -> bool {
        if self.post.is_some() { self.look_at_arrived() } else { false }
    }

    #[cold]
    fn look_at_arrived(&mut self) -> bool {
        let mut has_moved = false;
        while !self.has_ended
            && let Some(peer) = self.post.as_mut().and_then(|post| post.mail().poll_arrived())
        {
            self.catch_up();
            has_moved |= on_wire!(self, |machine, wire| machine.look(wire, peer));
        }
        while let Some((request, result)) = self.post.as_mut().and_then(|post| post.poll_fetched())
        {
            on_wire!(self, |machine, wire| machine.job_done(wire, request, result));
            has_moved = true;
        }
        has_moved
    }

    /// Collects the wakers of requests that have ended, as far as there is room.
    pub(super) fn note_ended(&mut self, woken: &mut WokenList) {
        while !woken.is_full()
            && let Some(request) = self.machine.poll_ended()
        {
            match std::mem::take(&mut self.entries[index(request)]) {
                RequestEntry::Handle => {}
                RequestEntry::Kept { .. } => {
                    // The handle has gone, so the result is dropped.
                    self.machine.take(request);
                }
                RequestEntry::Host(tag) => {
                    let _ = woken.push(Woken::Host(tag));
                }
                RequestEntry::Waiting(waiting) => {
                    // SAFETY: the waiter takes the pointer back, under the lock, before
                    // its frame ends.
                    let waiting = unsafe { &mut *waiting.as_ptr() };
                    // More requests may have ended than it waits for.
                    waiting.left = waiting.left.saturating_sub(1);
                    if waiting.left == 0
                        && let Some(waker) = waiting.waker.take()
                    {
                        let _ = woken.push(Woken::Thread(waker));
                    }
                }
            }
        }
    }

    /// Registers `waiting` for the ends of `requests`. Returns how many have ended,
    /// or were named before. `None`, and nothing has changed: another thread waits
    /// for one of them.
    pub(super) fn register(
        &mut self,
        requests: impl Iterator<Item = RequestId> + Clone,
        waiting: NonNull<WaitingRequest>,
    ) -> Option<usize> {
        let mut ended = 0;
        for request in requests.clone() {
            let entry = &mut self.entries[index(request)];
            let is_own = matches!(entry, RequestEntry::Waiting(other) if *other == waiting);
            if !self.machine.watch(request) || is_own {
                ended += 1;
            } else if matches!(entry, RequestEntry::Waiting(_)) {
                self.unregister(requests, waiting);
                return None;
            } else {
                *entry = RequestEntry::Waiting(waiting);
            }
        }
        Some(ended)
    }

    /// Ends the registration of `waiting`.
    pub(super) fn unregister(
        &mut self,
        requests: impl Iterator<Item = RequestId>,
        waiting: NonNull<WaitingRequest>,
    ) {
        for request in requests {
            let entry = &mut self.entries[index(request)];
            if matches!(entry, RequestEntry::Waiting(other) if *other == waiting) {
                *entry = RequestEntry::Handle;
            }
        }
    }

    /// Ends the part of the rank in messages: what no peer can reach ends now. Returns
    /// the wakers of all threads that wait.
    pub(super) fn seal(&mut self) -> Vec<Waker> {
        self.has_ended = true;
        self.machine.seal();
        let mut woken = std::mem::take(&mut self.probers);
        for entry in &mut self.entries {
            let RequestEntry::Waiting(waiting) = *entry else { continue };
            *entry = RequestEntry::Handle;
            // SAFETY: as in `note_ended`.
            woken.extend(unsafe { &mut *waiting.as_ptr() }.waker.take());
        }
        woken
    }

    /// Ends the requests of a sealed rank, when no peer reaches their buffers any
    /// more.
    pub(super) fn end_all(&mut self) {
        on_wire!(self, |machine, wire| machine.end_all(wire));
    }

    /// Whether a thread sleeps until the request has ended.
    pub(super) fn is_waited_for(&self, request: RequestId) -> bool {
        matches!(self.entries[index(request)], RequestEntry::Waiting(_))
    }

    /// Lets the end of the request end the operation with this tag. Returns false, and
    /// changes nothing, if the request has ended.
    pub(super) fn attach(&mut self, request: RequestId, tag: Tag) -> bool {
        let is_under_way = self.machine.watch(request);
        if is_under_way {
            self.entries[index(request)] = RequestEntry::Host(tag);
        }
        is_under_way
    }

    /// Drops the handle; `kept` stays until the request ends.
    pub(super) fn abandon(&mut self, request: RequestId, kept: Box<dyn Any + Send>) {
        if self.machine.take(request).is_none() {
            self.entries[index(request)] = RequestEntry::Kept { _buffer: kept };
            self.machine.watch(request);
        }
    }

    #[inline(always)]
    pub(super) fn take(
        &mut self,
        request: RequestId,
    ) -> Option<Result<ReceivedMessage<Rank>, RequestError<Rank>>> {
        if self.is_waited_for(request) {
            // Another thread waits, and must be woken first if the request has
            // ended.
            return None;
        }
        Some(match self.machine.take(request)? {
            Ok(received) => Ok(self.named(received)),
            Err(RequestError::Cancelled) => Err(RequestError::Cancelled),
            Err(RequestError::Ended) => Err(RequestError::Ended),
            Err(RequestError::PeerLost { peer }) => {
                Err(RequestError::PeerLost { peer: self.rank_of(peer) })
            }
            Err(RequestError::Failed { peer }) => {
                Err(RequestError::Failed { peer: self.rank_of(peer) })
            }
        })
    }

    /// Reports deaths to the machine. Ranks that are no peers are found dead when they
    /// become peers.
    pub(super) fn lose(&mut self, is_lost: impl Fn(Rank) -> bool) {
        self.catch_up();
        for peer in (0..self.machine.peers()).map(PeerIndex) {
            if is_lost(self.rank_of(peer)) {
                self.lose_peer(peer);
            }
        }
    }

    fn lose_peer(&mut self, peer: PeerIndex) {
        on_wire!(self, |machine, wire| machine.lost(wire, peer));
        if let Some(post) = &mut self.post {
            post.lose(peer);
        }
    }
}

/// Makes empty tables for a machine of that shape.
fn tables_of(
    shape: MessageShape,
    requests: usize,
    unexpected: usize,
) -> (msg::MessageTables<'static>, MessageTables) {
    let (peers, lent_peers) = lend(vec![msg::MessagePeer::EMPTY; shape.peers as usize]);
    let (requests, lent_requests) = lend(vec![msg::RequestEntry::EMPTY; requests]);
    let (unexpected, lent_unexpected) = lend(vec![msg::UnexpectedMessage::EMPTY; unexpected]);
    let (log, lent_log) = lend(vec![msg::LoggedMessage::EMPTY; shape.log()]);
    let (mirror, lent_mirror) = lend(vec![msg::MirroredOffer::EMPTY; shape.mirrored()]);
    let tables = msg::MessageTables { peers, requests, unexpected, log, mirror };
    (tables, (lent_peers, lent_requests, lent_unexpected, lent_log, lent_mirror))
}

/// Bytes of the tables by ranks of a job.
pub(super) fn tables_bytes(shape: MessageShape) -> usize {
    shape.peers as usize * size_of::<msg::MessagePeer>()
        + shape.unexpected() * size_of::<msg::UnexpectedMessage>()
        + shape.log() * size_of::<msg::LoggedMessage>()
        + shape.mirrored() * size_of::<msg::MirroredOffer>()
}

/// Bytes of a rank's sends and receives.
pub(super) fn requests_bytes() -> usize {
    let request =
        size_of::<msg::RequestEntry>() + size_of::<RequestEntry>() + size_of::<AtomicBool>();
    REQUESTS_FIRST * request
}

/// The index of a request's entry.
pub(super) fn index(request: RequestId) -> usize {
    request.to_bits() as u32 as usize
}

const WOKEN_MAX: usize = 16;
