//! The machine of a rank, and who waits for which of its requests.

use super::post::Post;
use super::route::on_wire;
use super::wire::NodeWire;
use crate::Rank;
use crate::lend::{Lent, lend};
use std::any::Any;
use std::ptr::NonNull;
use tsumugi_core::msg::board::Board;
use tsumugi_core::msg::{self, Design, Ended, Machine, Received, Request, Shape, Thresholds};
use tsumugi_core::sync::AtomicBool;
use tsumugi_core::wait::Waker;

/// Under the lock.
pub(super) struct State {
    pub(super) machine: Machine<'static>,
    pub(super) near: NodeWire,
    /// If the job has other nodes.
    pub(super) post: Option<Box<Post>>,
    /// One for each request of the machine.
    entries: Vec<Entry>,
    /// Those that wait for any message to come.
    pub(super) probers: Vec<Waker>,
    /// The least room of a receive that any peer may be told of.
    pub(super) offered_from: u32,
    /// Something has come that they have not been told of.
    pub(super) has_moved: bool,
    /// What the machine works on; goes last.
    _tables: Tables,
}

/// The machine's tables, freed with the state.
type Tables = (
    Lent<msg::Peer>,
    Lent<msg::Entry>,
    Lent<msg::Unexpected>,
    Lent<msg::Logged>,
    Lent<msg::Mirrored>,
    Lent<Board<'static>>,
);

/// What the facade knows of a request.
#[derive(Default)]
pub(super) struct Entry {
    waiting: Option<NonNull<Waiting>>,
    /// What keeps its bytes when its handle has gone.
    kept: Option<Box<dyn Any + Send>>,
}

/// On the stack of whoever waits, until that is over; touched under the lock.
#[derive(Default)]
pub(super) struct Waiting {
    /// Requests that must end yet.
    pub(super) left: usize,
    pub(super) waker: Option<Waker>,
}

/// Woken, and dropped, when the lock has been given back.
pub(super) type Woken = heapless::Vec<Waker, WOKEN_MAX>;

impl State {
    /// A machine over these lanes.
    pub(super) fn new(
        rank: Rank,
        shape: Shape,
        design: Design,
        near: NodeWire,
        post: Option<Box<Post>>,
        boards: Vec<Board<'static>>,
    ) -> Self {
        let (peers, lent_peers) = lend(vec![msg::Peer::EMPTY; shape.peers as usize]);
        let (requests, lent_requests) = lend(vec![msg::Entry::EMPTY; REQUESTS_MAX]);
        let (unexpected, lent_unexpected) = lend(vec![msg::Unexpected::EMPTY; shape.unexpected()]);
        let (log, lent_log) = lend(vec![msg::Logged::EMPTY; shape.log()]);
        let (mirror, lent_mirror) = lend(vec![msg::Mirrored::EMPTY; shape.mirrored()]);
        let tables = msg::Tables { peers, requests, unexpected, log, mirror };
        let mut machine = Machine::new(rank, shape, design, Thresholds::DEFAULT, tables)
            .unwrap_or_else(|error| panic!("{error}"));
        let (boards, lent_boards) = lend(boards);
        if !boards.is_empty() {
            machine.put_up(boards);
        }
        Self {
            machine,
            near,
            post,
            entries: (0..REQUESTS_MAX).map(|_| Entry::default()).collect(),
            probers: Vec::new(),
            offered_from: Thresholds::DEFAULT.offered_from(),
            has_moved: false,
            _tables: (
                lent_peers,
                lent_requests,
                lent_unexpected,
                lent_log,
                lent_mirror,
                lent_boards,
            ),
        }
    }

    /// From here on messages to that rank go by these.
    pub(super) fn use_thresholds(&mut self, rank: Rank, to: Thresholds) {
        let set = self.machine.set_thresholds(rank, to);
        set.unwrap_or_else(|error| panic!("{error}"));
        self.offered_from = self.offered_from.min(to.offered_from());
    }

    /// A rank of another node.
    pub(super) fn set_far(&mut self, rank: Rank) {
        self.machine.set_far(rank);
        self.use_thresholds(rank, Thresholds::FAR);
    }

    /// Whether something waits for the network.
    pub(super) fn has_unsent(&self) -> bool {
        self.post.as_ref().is_some_and(|post| post.has_unsent())
    }

    /// Takes what has come from other nodes. Whether anything has.
    #[inline]
    pub(super) fn take_arrived(&mut self) -> bool {
        if self.post.is_some() { self.look_at_arrived() } else { false }
    }

    #[cold]
    fn look_at_arrived(&mut self) -> bool {
        let mut has_moved = false;
        while let Some(rank) = self.post.as_mut().and_then(|post| post.mail().poll_arrived()) {
            has_moved |= on_wire!(self, |machine, wire| machine.look(wire, rank));
        }
        while let Some((request, result)) = self.post.as_mut().and_then(|post| post.poll_fetched())
        {
            on_wire!(self, |machine, wire| machine.job_done(wire, request, result));
            has_moved = true;
        }
        has_moved
    }

    /// Notes who is to be woken by what has ended, as far as there is room.
    pub(super) fn note_ended(&mut self, woken: &mut Woken) {
        while !woken.is_full()
            && let Some(request) = self.machine.poll_ended()
        {
            let entry = &mut self.entries[index(request)];
            if entry.kept.take().is_some() {
                // Nobody asks for it any more.
                self.machine.take(request);
            } else if let Some(waiting) = entry.waiting.take() {
                // SAFETY: whoever waits takes the pointer back, under the
                // lock, before it returns.
                let waiting = unsafe { &mut *waiting.as_ptr() };
                waiting.left -= 1;
                if waiting.left == 0
                    && let Some(waker) = waiting.waker.take()
                {
                    let _ = woken.push(waker);
                }
            }
        }
    }

    /// Lets `waiting` know when one of `requests` has ended; how many have.
    pub(super) fn register(
        &mut self,
        requests: impl Iterator<Item = Request>,
        waiting: NonNull<Waiting>,
    ) -> usize {
        let mut ended = 0;
        for request in requests {
            if self.machine.watch(request) {
                self.entries[index(request)].waiting = Some(waiting);
            } else {
                ended += 1;
            }
        }
        ended
    }

    pub(super) fn unregister(&mut self, requests: impl Iterator<Item = Request>) {
        for request in requests {
            self.entries[index(request)].waiting = None;
        }
    }

    /// The handle goes; `kept` stays until the end.
    pub(super) fn abandon(&mut self, request: Request, kept: Box<dyn Any + Send>) {
        if self.machine.take(request).is_none() {
            self.entries[index(request)].kept = Some(kept);
            self.machine.watch(request);
        }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, request: Request) -> Option<Result<Received, Ended>> {
        self.machine.take(request)
    }

    /// Tells the machine of ranks that have died.
    pub(super) fn lose(&mut self, lost: impl Iterator<Item = Rank>) {
        for rank in lost {
            on_wire!(self, |machine, wire| machine.lost(wire, rank));
            if let Some(post) = &mut self.post {
                post.lose(rank);
            }
        }
    }
}

/// Bytes of what is known of the ranks of a job.
pub(super) fn tables_bytes(shape: Shape) -> usize {
    shape.peers as usize * size_of::<msg::Peer>()
        + shape.unexpected() * size_of::<msg::Unexpected>()
        + shape.log() * size_of::<msg::Logged>()
        + shape.mirrored() * size_of::<msg::Mirrored>()
}

/// Bytes of a rank's sends and receives.
pub(super) fn requests_bytes() -> usize {
    let request = size_of::<msg::Entry>() + size_of::<Entry>() + size_of::<AtomicBool>();
    REQUESTS_MAX * request
}

/// Which entry is that request's.
pub(super) fn index(request: Request) -> usize {
    request.to_bits() as u32 as usize
}

const WOKEN_MAX: usize = 16;
/// Sends and receives of a rank that can be under way.
pub(super) const REQUESTS_MAX: usize = 4096;
