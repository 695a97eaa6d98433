//! All ranks, and the effect of each step.

use super::node::{Node, Use};
use super::step::{Step, digest_of};
use super::{LONG, PART, Real};
use crate::program::{End as Ending, Message, Op, PeerIndex, sender};
use crate::wire::{End, Net, address_of_message, address_of_post};
use std::cell::RefCell;
use std::ops::Range;
use tsumugi_core::mem;
use tsumugi_core::msg::locked_matching::Board;
use tsumugi_core::msg::{
    Begun, CallError, Claimed, Copy, CopyJob, Label, LaneTransport as _, MatchingDesign,
    MessageBytes, Pattern, ReceivedMessage, RequestError, SplitSide,
};

pub struct World<'w, 'm> {
    pub real: &'w Real<'w>,
    pub net: &'w RefCell<Net>,
    pub boards: &'m [Board<'m>],
    pub nodes: Vec<Node<'m>>,
    pub works: Vec<Work>,
}

/// A copy under way.
pub struct Work {
    pub rank: PeerIndex,
    pub job: CopyJob,
    /// For a copy by both sides: the part that this side has claimed, and whether it has claimed
    /// any.
    pub part: Option<Range<u64>>,
    pub has_claimed: bool,
}

impl Work {
    /// The copy, if it is certain.
    pub fn copy(&self) -> Option<Copy> {
        let Copy { from, to, .. } = self.job.copy;
        match (&self.part, self.job.split) {
            (_, None) => Some(self.job.copy),
            (None, _) => None,
            (Some(part), _) => {
                let len = part.end - part.start;
                Some(Copy { from: from + part.start, to: to + part.start, len, ..self.job.copy })
            }
        }
    }
}

impl World<'_, '_> {
    pub fn size(&self) -> PeerIndex {
        self.nodes.len() as PeerIndex
    }

    pub fn next(&self, rank: PeerIndex) -> Option<Op> {
        self.real.judged.next(rank, self.nodes[usize::from(rank)].done as u8)
    }

    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for rank in 0..self.size() {
            let node = &self.nodes[usize::from(rank)];
            if node.is_dead {
                continue;
            }
            if self.real.judged.program.mortal == Some(rank) {
                steps.push(Step::Die { rank });
                if self.real.design == MatchingDesign::Locked {
                    steps.push(Step::DieLocking { rank, of: 0 });
                }
            }
            if self.next(rank).is_some() {
                steps.push(Step::Do { rank });
            }
            let net = self.net.borrow();
            for from in 0..self.size() {
                let lane = &net.lanes[usize::from(from)][usize::from(rank)];
                if lane.seen < lane.packets.len() {
                    steps.push(Step::Take { rank, from });
                }
                if self.nodes[usize::from(from)].is_dead && !node.lost[usize::from(from)] {
                    steps.push(Step::Lose { rank, peer: from });
                }
            }
            let may_be_done = self.real.design == MatchingDesign::Locked
                && node.posts.iter().any(|post| post.0 == Ending::Open)
                && digest_of(&self.boards[usize::from(rank)]) != node.seen;
            if node.machine.wants_poll() || net.has_news(rank) || may_be_done {
                steps.push(Step::Look { rank });
            }
        }
        for (index, work) in self.works.iter().enumerate() {
            if !self.nodes[usize::from(work.rank)].is_dead {
                steps.push(Step::Copied { index: index as u8 });
            }
        }
        steps
    }

    pub fn take(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Do { rank } => self.act(rank),
            Step::Take { rank, from } => {
                self.net.borrow_mut().lanes[usize::from(from)][usize::from(rank)].seen += 1;
                let mut end = End { net: self.net, rank };
                let machine = &mut self.nodes[usize::from(rank)].machine;
                machine.advance_from(&mut end, mem::PeerIndex(from.into()));
            }
            Step::Look { rank } => {
                let mut end = End { net: self.net, rank };
                self.nodes[usize::from(rank)].machine.advance(&mut end);
            }
            Step::Copied { index } => self.copied(usize::from(index)),
            Step::Die { rank } => {
                self.nodes[usize::from(rank)].is_dead = true;
                self.net.borrow_mut().told(rank, &[1]);
            }
            Step::DieLocking { rank, of } => {
                // The board learns of the death at once, the other machines later.
                self.boards[usize::from(of)].lock(mem::LocalRank(rank.into()));
                self.boards[usize::from(of)].lost(mem::LocalRank(rank.into()));
                self.nodes[usize::from(rank)].is_dead = true;
                self.net.borrow_mut().told(rank, &[2]);
            }
            Step::Lose { rank, peer } => self.lose(rank, peer),
        }
        if let Step::Do { rank } | Step::Take { rank, .. } | Step::Look { rank } = step {
            let seen = digest_of(&self.boards[usize::from(rank)]);
            self.nodes[usize::from(rank)].seen = seen;
        }
        for rank in 0..self.size() {
            self.collect(rank)?;
        }
        self.check()
    }

    /// Runs the next operation of a rank's program.
    fn act(&mut self, rank: PeerIndex) {
        let op = self.next(rank).expect("there is more to do");
        let mut end = End { net: self.net, rank };
        let real = self.real;
        let node = &mut self.nodes[usize::from(rank)];
        node.done += 1;
        self.net.borrow_mut().told(rank, &[node.done as u64]);
        match op {
            Op::Send { to, tag } => {
                let message = rank << 4 | node.sends;
                node.sends += 1;
                let at = address_of_message(message);
                let bytes = MessageBytes { at, len: real.size_of(message), in_reach: true };
                let label = Label { context: 0, tag: tag.into() };
                match node.machine.send(&mut end, mem::PeerIndex(to.into()), label, bytes) {
                    Ok(Begun::Done(())) => self.sent(rank, message),
                    Ok(Begun::Pending(request)) => {
                        node.machine.watch(request);
                        node.uses.insert(request.to_bits(), Use::Send(message));
                    }
                    Err(error) => panic!("rank {rank} can not send: {error}"),
                }
            }
            Op::Post { from, tag } => {
                let post = node.posts.len();
                let source = from.map(|from| mem::PeerIndex(from.into()));
                let pattern = Pattern { context: 0, source, tag: tag.map(u32::from) };
                let into =
                    MessageBytes { at: address_of_post(rank, post), len: LONG, in_reach: true };
                match node.machine.receive(&mut end, pattern, into) {
                    Ok(Begun::Done(received)) => {
                        node.posts.push((Ending::Open, None));
                        self.received(rank, post, Ok(received));
                    }
                    Ok(Begun::Pending(request)) => {
                        node.machine.watch(request);
                        node.uses.insert(request.to_bits(), Use::Post(post));
                        node.posts.push((Ending::Open, Some(request)));
                    }
                    Err(CallError::PeerLost { .. }) => node.posts.push((Ending::Lost, None)),
                    Err(error) => panic!("rank {rank} can not receive: {error}"),
                }
            }
            Op::Cancel { post } => {
                if let (Ending::Open, Some(request)) = node.posts[usize::from(post)] {
                    node.machine.cancel(&mut end, request);
                }
            }
        }
    }

    pub fn copied(&mut self, index: usize) {
        let work = self.works.remove(index);
        let mut end = End { net: self.net, rank: work.rank };
        if let Some(copy) = work.copy() {
            end.copy(&copy);
        }
        if let Some(split) = work.job.split {
            return self.claim(work, split);
        }
        self.net.borrow_mut().told(work.rank, &[work.job.request.to_bits()]);
        let machine = &mut self.nodes[usize::from(work.rank)].machine;
        machine.job_done(&mut end, work.job.request, Ok(()));
    }

    /// Claims the next part of a copy that both sides make, or ends it.
    fn claim(&mut self, mut work: Work, (id, side): (u32, SplitSide)) {
        let Work { rank, job, .. } = work;
        let claimed = {
            let net = self.net.borrow();
            let split = net.split(rank, job.copy.peer, side);
            let claimed = split.claim(id, side, job.copy.len, PART);
            if matches!(claimed, Claimed::Over(_))
                && side == SplitSide::Receiver
                && work.has_claimed
            {
                split.close();
            }
            claimed
        };
        let (from, other) = match &claimed {
            Claimed::Part(part) => (part.start, 2),
            Claimed::Over(other) => (0, u64::from(*other)),
        };
        self.net.borrow_mut().told(rank, &[job.request.to_bits(), from, other]);
        match claimed {
            Claimed::Part(part) => {
                (work.part, work.has_claimed) = (Some(part), true);
                self.works.push(work);
            }
            Claimed::Over(other) => {
                let mut end = End { net: self.net, rank };
                let machine = &mut self.nodes[usize::from(rank)].machine;
                machine.split_done(&mut end, job.request, [work.has_claimed, other]);
            }
        }
    }

    /// Reports a loss after all packets of the dead rank were seen.
    fn lose(&mut self, rank: PeerIndex, peer: PeerIndex) {
        self.see_all(rank, peer);
        let node = &mut self.nodes[usize::from(rank)];
        node.lost[usize::from(peer)] = true;
        let mut end = End { net: self.net, rank };
        node.machine.lost(&mut end, mem::PeerIndex(peer.into()));
        end.net.borrow_mut().told(rank, &[u64::from(peer)]);
    }

    pub fn see_all(&self, rank: PeerIndex, from: PeerIndex) {
        let lane = &mut self.net.borrow_mut().lanes[usize::from(from)][usize::from(rank)];
        lane.seen = lane.packets.len();
    }

    /// Collects the copies that a machine requests, and the requests that have ended.
    pub fn collect(&mut self, rank: PeerIndex) -> Result<(), String> {
        if self.nodes[usize::from(rank)].is_dead {
            return Ok(());
        }
        while let Some(job) = self.nodes[usize::from(rank)].machine.poll_job() {
            self.works.push(Work { rank, job, part: None, has_claimed: false });
        }
        loop {
            let node = &mut self.nodes[usize::from(rank)];
            let Some(request) = node.machine.poll_ended() else { return Ok(()) };
            let Some(result) = node.machine.take(request) else {
                return Err(format!("rank {rank}: {request:?} has not ended, or twice"));
            };
            self.net.borrow_mut().told(rank, &[request.to_bits(), u64::from(result.is_ok())]);
            match self.nodes[usize::from(rank)].uses.remove(&request.to_bits()) {
                Some(Use::Send(message)) => self.sent(rank, message),
                Some(Use::Post(post)) => self.received(rank, post, result),
                None => return Err(format!("rank {rank}: {request:?} ends twice")),
            }
        }
    }

    fn sent(&mut self, rank: PeerIndex, message: Message) {
        self.nodes[usize::from(rank)].ended.push(message);
        self.net.borrow_mut().closed.push(address_of_message(message));
    }

    fn received(
        &mut self,
        rank: PeerIndex,
        post: usize,
        result: Result<ReceivedMessage, RequestError>,
    ) {
        let mut net = self.net.borrow_mut();
        let at = address_of_post(rank, post);
        net.closed.push(at);
        let entry = &mut self.nodes[usize::from(rank)].posts[post];
        entry.0 = match result {
            Err(RequestError::Cancelled) => Ending::Cancelled,
            Err(_) => Ending::Lost,
            Ok(received) => match net.content(at) {
                None => {
                    net.broken.get_or_insert(format!("receive {post}: nothing is in its buffer"));
                    Ending::Open
                }
                Some((message, len)) => {
                    let is_it = received.source.0 == u32::from(sender(message))
                        && received.len == len
                        && len == self.real.size_of(message)
                        && received.tag == self.real.tag_of(message);
                    if !is_it {
                        let what = format!("{received:?}, but {message:#x}, {len} bytes are there");
                        net.broken.get_or_insert(what);
                    }
                    Ending::Got(message)
                }
            },
        };
    }
}
