//! Partitioned communication: a message whose parts the program makes ready one by one. It is
//! sent when all of them are.
//!
//! A sender tells the receiver once, when it is made, the number of its channel; the data of
//! each start has this number as its tag. So a receive takes the data of the send that was made
//! for it, whatever other messages have the same tag.

use crate::abi::{self, MPI_Status};
use crate::fault::{Answer, fail, need};
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::datatype::DatatypeRef;
use crate::object::exchange::{SLOTS, tag as inner_tag};
use crate::object::generalized::give_way;
use crate::object::receipt::received;
use crate::object::table::lock;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};
use tsumugi_core::mem::Rank;
use tsumugi_core::msg::Label;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_runtime::service::messages::{Messages, Source, Tags, Under, pattern};

/// One side of a partitioned message.
pub(crate) struct Partitioned {
    pub(crate) elements: Elements,
    pub(crate) partitions: usize,
    /// `None`: MPI_PROC_NULL.
    pub(crate) peer: Option<Rank>,
    pub(crate) is_send: bool,
    pub(crate) tag: c_int,
    pub(crate) comm: CommRef,
    /// The context of agreements.
    pub(crate) agreements: u16,
    flow: Mutex<Flow>,
}

/// The elements of all partitions.
pub(crate) struct Elements {
    pub(crate) buffer: *mut c_void,
    pub(crate) count: i64,
    pub(crate) datatype: DatatypeRef,
}

// SAFETY: by the contract of the call the program leaves its memory alone while the message is
// under way.
unsafe impl Send for Elements {}
// SAFETY: the same.
unsafe impl Sync for Elements {}

#[derive(Default)]
struct Flow {
    /// The number that the data has as its tag; a receive learns it.
    channel: Option<u32>,
    /// Whether each partition is ready.
    ready: Vec<bool>,
    begun: Option<(Under, Data)>,
}

/// A receive that waits for its channel, or a channel that no receive has taken.
enum Meeting {
    Waits(Arc<Partitioned>),
    Offered(u32),
}

/// By context, peer and tag, in the order in which they came.
type Meetings = Vec<((u16, Rank, c_int), VecDeque<Meeting>)>;
static MEETINGS: Mutex<Meetings> = Mutex::new(Vec::new());
static NEXT_CHANNEL: AtomicU32 = AtomicU32::new(0);

impl Partitioned {
    /// One side, which tells or learns the channel.
    pub(crate) fn new(
        elements: Elements,
        partitions: usize,
        (peer, tag, is_send): (Option<Rank>, c_int, bool),
        comm: CommRef,
        agreements: u16,
        messages: &Messages,
    ) -> Answer<Arc<Self>> {
        let mut flow = Flow::default();
        if let (true, Some(peer)) = (is_send, peer) {
            // Relaxed: the number says all.
            let next = NEXT_CHANNEL.fetch_add(1, Ordering::Relaxed) % CHANNELS_MAX;
            let channel = CHANNELS | next;
            let words = [tag.cast_unsigned(), channel];
            let label = Label { context: agreements, tag: inner_tag(comm.context(), SLOTS - 1) };
            let (at, bytes) = ((&raw const words).cast(), size_of_val(&words));
            // SAFETY: the words stay until the call returns.
            unsafe { messages.send(peer, label, at, bytes) }?;
            flow.channel = Some(channel);
        }
        let flow = Mutex::new(flow);
        let side =
            Arc::new(Self { elements, partitions, peer, is_send, tag, comm, agreements, flow });
        if let (false, Some(peer)) = (is_send, peer) {
            let key = (side.comm.context(), peer, tag);
            meet(&mut lock(&MEETINGS), key, Meeting::Waits(side.clone()));
        }
        Ok(side)
    }

    /// Takes the channels that have come, each for the first receive that waits for it.
    fn learn(&self, messages: &Messages, peer: Rank) -> Answer {
        let (context, tag) = (self.comm.context(), inner_tag(self.comm.context(), SLOTS - 1));
        let of = pattern(self.agreements, Source::Is(peer), Tags::Is(tag));
        let mut meetings = lock(&MEETINGS);
        while messages.try_probe(of).is_some() {
            let mut head = [0u32; 2];
            let (at, room) = ((&raw mut head).cast(), size_of_val(&head));
            // SAFETY: the words stay until the call returns.
            unsafe { messages.receive(of, at, room) }?;
            meet(&mut meetings, (context, peer, head[0] as c_int), Meeting::Offered(head[1]));
        }
        Ok(())
    }

    /// Begins the receive once the channel is known.
    pub(crate) fn advance(&self, messages: &Messages) -> Answer {
        let Some(peer) = self.peer.filter(|_| !self.is_send) else { return Ok(()) };
        if lock(&self.flow).channel.is_none() {
            self.learn(messages, peer)?;
        }
        let mut flow = lock(&self.flow);
        let (None, Some(channel)) = (&flow.begun, flow.channel) else { return Ok(()) };
        let Elements { buffer, count, datatype } = &self.elements;
        let mut data = Data::incoming(*buffer, *count, datatype.clone())?;
        let of = pattern(self.agreements, Source::Is(peer), Tags::Is(channel));
        // SAFETY: the contract of the call; the data is kept until the end.
        let under = unsafe { messages.begin_receive(of, data.at(), data.bytes) }?;
        flow.begun = Some((under, data));
        Ok(())
    }

    /// Begins a new round.
    pub(crate) fn restart(&self) {
        let mut flow = lock(&self.flow);
        flow.ready = vec![false; self.partitions];
        flow.begun = None;
    }

    /// A partition of the send is ready.
    pub(crate) fn ready(&self, messages: &Messages, partition: c_int) -> Answer {
        need!(self.is_send, abi::ERR_REQUEST, "the request is a receive");
        let mut flow = lock(&self.flow);
        let at = usize::try_from(partition).ok().filter(|at| *at < self.partitions);
        let Some(at) = at else {
            fail!(abi::ERR_ARG, "partition {partition} of {}", self.partitions)
        };
        need!(!flow.ready[at], abi::ERR_ARG, "partition {partition} is ready already");
        flow.ready[at] = true;
        let (Some(peer), true) = (self.peer, flow.ready.iter().all(|ready| *ready)) else {
            return Ok(());
        };
        let Elements { buffer, count, datatype } = &self.elements;
        // SAFETY: the contract of the call: the elements are valid for reads.
        let mut data = unsafe { Data::outgoing(*buffer, *count, datatype.clone()) }?;
        let channel = flow.channel.expect("a send has its channel from the beginning");
        let label = Label { context: self.agreements, tag: channel };
        // SAFETY: the same; the data is kept until the end.
        let under = unsafe { messages.begin_send(peer, label, data.at(), data.bytes) }?;
        flow.begun = Some((under, data));
        Ok(())
    }

    /// Whether the message has ended; moves it on. Never waits.
    pub(crate) fn is_done(&self, messages: &Messages) -> bool {
        if self.peer.is_none() {
            return !self.is_send || lock(&self.flow).ready.iter().all(|ready| *ready);
        }
        if self.advance(messages).is_err() {
            return true;
        }
        let under = lock(&self.flow).begun.as_ref().map(|(under, _)| *under);
        under.is_some_and(|under| messages.is_done(under))
    }

    /// Waits until the message has ended.
    pub(crate) fn wait(&self, messages: &Messages) {
        while !self.is_done(messages) {
            messages.make_progress();
            give_way();
        }
    }

    /// The result, at the end.
    pub(crate) fn finish(&self, messages: &Messages) -> (MPI_Status, Answer) {
        self.wait(messages);
        let begun = lock(&self.flow).begun.take();
        match begun {
            Some((under, data)) if self.is_send => {
                let result = messages.finish(under);
                drop(data);
                (MPI_Status::EMPTY, result.map(drop).map_err(Into::into))
            }
            Some((under, data)) => {
                let (mut status, result) = received(messages, &self.comm, under, data);
                status.tag = self.tag;
                (status, result)
            }
            None if self.is_send => (MPI_Status::EMPTY, Ok(())),
            None => {
                let no_process = MPI_Status { source: abi::PROC_NULL, ..MPI_Status::EMPTY };
                (no_process, self.advance(messages))
            }
        }
    }
}

/// Brings a receive and a channel of one kind together, or adds the one that came first.
fn meet(meetings: &mut Meetings, key: (u16, Rank, c_int), new: Meeting) {
    let at = meetings.iter().position(|(of, _)| *of == key).unwrap_or_else(|| {
        meetings.push((key, VecDeque::new()));
        meetings.len() - 1
    });
    let list = &mut meetings[at].1;
    match (list.pop_front(), new) {
        (Some(Meeting::Waits(receive)), Meeting::Offered(channel))
        | (Some(Meeting::Offered(channel)), Meeting::Waits(receive)) => {
            lock(&receive.flow).channel = Some(channel);
        }
        (first, new) => {
            first.into_iter().for_each(|first| list.push_front(first));
            list.push_back(new);
        }
    }
    if meetings[at].1.is_empty() {
        meetings.swap_remove(at);
    }
}

/// The tags of channels: those of slots that no other message has.
const CHANNELS: u32 = 0b11 << 30;
const CHANNELS_MAX: u32 = 0x3ffe_0000;
