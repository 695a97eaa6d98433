//! How a caller waits for a message: the waiter polls for a while, and then sleeps.

use super::Received;
use super::drive::{Messages, Under};
use super::route::on_wire;
use super::state::{MessageState, WaitingRequest, by_rank, index};
use crate::error::MessageError;
use std::fmt;
use std::num::NonZero;
use std::ptr::NonNull;
use std::thread;
use std::time::Duration;
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::mem::Rank;
use tsumugi_core::msg::{self, MessageBytes, Pattern, RequestError, RequestId};
use tsumugi_core::sync::{Ordering, UnsafeCell, spin_loop};
use tsumugi_core::wait::{Reason, Wait};
use tsumugi_pvas::partition::ControlBlock;
use tsumugi_ult::{Here, is_alone};

impl Messages {
    /// Waits until the message has ended.
    #[inline(always)]
    pub fn finish(&self, under: Under) -> Result<Received, MessageError> {
        match under {
            Under::Ended(result) => result,
            Under::Way(request, room) => self.end_of(request, room),
        }
    }

    /// Does the same for a message that is a part of something else, which `reason` names in
    /// reports.
    #[inline]
    pub(crate) fn finish_because(
        &self,
        under: Under,
        reason: impl FnOnce() -> Reason,
    ) -> Result<Received, MessageError> {
        let Under::Way(request, room) = under else { return self.finish(under) };
        match self.whole_of(request) {
            Some(whole) => Ok(whole.received()),
            None => self.end_of_any(request, room, Some(&reason())),
        }
    }

    /// Does the same for a message with a handle that has gone.
    pub fn finish_orphan(&self, under: Under) -> Result<Received, MessageError> {
        if let Some(request) = under.request() {
            self.orphans.set(index(request), false);
        }
        self.finish(under)
    }

    /// Waits for the end of a request with a buffer of `room` bytes.
    #[inline(always)]
    pub(super) fn end_of(&self, request: RequestId, room: usize) -> Result<Received, MessageError> {
        match self.whole_of(request) {
            Some(whole) => Ok(whole.received()),
            None => self.end_of_any(request, room, None),
        }
    }

    /// Takes the result of a message that has ended with all its bytes. `None`: it has not, or
    /// its result waits for another thread; nothing has happened. Never waits, and polls nothing.
    #[inline(always)]
    pub fn take_whole(&self, under: Under) -> Option<Received> {
        match under {
            Under::Ended(result) => result.ok(),
            Under::Way(request, _) => self.whole_of(request).map(Whole::received),
        }
    }

    /// Takes the result if all went well; it is returned in registers, see `begin`.
    #[inline(never)]
    fn whole_of(&self, request: RequestId) -> Option<Whole> {
        let mut state = self.lock();
        let msg::ReceivedMessage { source, tag, len, .. } = state.machine.take_whole(request)?;
        let source = state.rank_of(source);
        Some(Whole { source, tag, more: NonZero::new(len as usize + 1)? })
    }

    #[inline(never)]
    fn end_of_any(
        &self,
        request: RequestId,
        room: usize,
        reason: Option<&Reason>,
    ) -> Result<Received, MessageError> {
        let ended = self.lock().take(request);
        received_of_ended(ended.unwrap_or_else(|| self.wait_for_end(request, reason)), room)
    }

    fn wait_for_end(
        &self,
        request: RequestId,
        reason: Option<&Reason>,
    ) -> Result<msg::ReceivedMessage<Rank>, RequestError<Rank>> {
        let from = self.lock().machine.about(request).0;
        let mut leave = || self.leave(request);
        loop {
            if let Some(ended) = self.watch(from, |state| state.take(request), &mut leave) {
                return ended;
            }
            self.sleep_or_leave(std::iter::once(request), 1, reason, &mut leave);
            if let Some(ended) = self.lock().take(request) {
                return ended;
            }
            self.end_with_rank();
        }
    }

    /// Waits until the message has ended; its result stays to be taken, so other threads may
    /// cancel it meanwhile.
    pub fn wait(&self, under: Under) {
        let Under::Way(request, _) = under else { return };
        let from = self.lock().machine.about(request).0;
        let has_ended =
            |state: &mut MessageState| (!state.machine.is_under_way(request)).then_some(());
        while self.watch(from, has_ended, &mut || ()).is_none() {
            self.sleep_for(std::iter::once(request), 1);
            if has_ended(&mut self.lock()).is_some() {
                break;
            }
            self.end_with_rank();
        }
    }

    /// Waits until all messages have ended.
    pub fn wait_all(&self, unders: impl Iterator<Item = Under> + Clone) {
        let requests = unders.filter_map(Under::request);
        let mut rest = requests.clone();
        let mut next = rest.next();
        let mut all = |state: &mut MessageState| {
            // A request that another thread has taken has ended, too.
            while next.is_some_and(|request| !state.machine.is_under_way(request)) {
                next = rest.next();
            }
            next.is_none().then_some(())
        };
        if self.watch(None, &mut all, &mut || ()).is_none() {
            let count = requests.clone().count();
            loop {
                self.sleep_for(requests.clone(), count);
                if all(&mut self.lock()).is_some() {
                    break;
                }
                self.end_with_rank();
            }
        }
    }

    /// Waits until one message has ended, and returns its index.
    pub fn wait_any(&self, unders: impl Iterator<Item = Under> + Clone) -> usize {
        loop {
            let state = self.lock();
            let is_over = |under: Under| {
                under.request().is_none_or(|request| state.machine.has_ended(request))
            };
            if let Some(first) = unders.clone().position(is_over) {
                return first;
            }
            drop(state);
            let requests = unders.clone().filter_map(Under::request);
            let any = |state: &mut MessageState| {
                let mut requests = requests.clone();
                requests.any(|request| state.machine.has_ended(request)).then_some(())
            };
            if self.watch(None, any, &mut || ()).is_none() {
                self.sleep_for(requests, 1);
                self.end_with_rank();
            }
        }
    }

    /// Moves all messages on, for a caller that looks for the end of one. Never waits.
    pub fn make_progress(&self) {
        self.work();
        self.end_if_over();
    }

    /// Whether the message has ended; moves it on if not.
    pub fn is_done(&self, under: Under) -> bool {
        let Under::Way(request, _) = under else { return true };
        self.lock().machine.has_ended(request) || {
            self.work();
            self.end_if_over();
            self.lock().machine.has_ended(request)
        }
    }

    /// For a thread that waits when its rank has ended: ends the requests, or sleeps
    /// for a while if a peer may still access their buffers.
    fn end_with_rank(&self) {
        if self.lock().has_ended && !self.end_if_over() {
            tsumugi_ult::sleep(LOOK_AGAIN);
        }
    }

    /// If this rank has ended, and no other rank of the node accesses memory of
    /// others for a message any more, ends all requests. Returns whether it does.
    fn end_if_over(&self) -> bool {
        let mut state = self.lock();
        let is_over = |control: &ControlBlock| control.is_closed() || !control.is_alive();
        if !state.has_ended || !self.member.space().controls().all(is_over) {
            return false;
        }
        state.end_all();
        drop(state);
        self.work();
        true
    }

    /// Waits for a message that matches, and leaves it in its queue.
    pub fn probe(&self, pattern: Pattern<Rank>) -> Result<Received, MessageError> {
        let (source, size) = (pattern.source, self.member.size());
        if let Some(rank) = source.filter(|rank| rank.0 >= size) {
            return Err(MessageError::NoSuchRank { rank, size });
        }
        let pattern = self.by_index(pattern);
        let found = |state: &mut MessageState| {
            if state.has_ended {
                return Some(Err(MessageError::Ended));
            }
            let is_lost = pattern.source.is_some_and(|peer| state.machine.is_lost(peer));
            let lost = source.filter(|_| is_lost);
            let found = state.machine.probe(&pattern);
            let found = found.map(|found| Ok(looked_at(state.named(found))));
            found.or(lost.map(|rank| Err(MessageError::PeerLost { rank })))
        };
        loop {
            if let Some(result) = self.watch(pattern.source, found, &mut || ()) {
                return result;
            }
            let mut publish = |waker| {
                let mut state = self.lock();
                let is_there = found(&mut state).is_some();
                if !is_there {
                    state.probers.push(waker);
                }
                !is_there
            };
            // SAFETY: a thread that takes the probers out wakes each of them.
            unsafe {
                Here.sleep(reason(COMING, source, pattern.tag, pattern.context), &mut publish)
            };
        }
    }

    /// Returns a message that matches, if one is there, and leaves it in its queue.
    pub fn try_probe(&self, pattern: Pattern<Rank>) -> Option<Received> {
        self.work();
        let mut state = self.lock();
        // A rank that does not exist has sent no message.
        let pattern = state.by_index(pattern).ok()?;
        let found = state.machine.probe(&pattern)?;
        Some(looked_at(state.named(found)))
    }

    /// The pattern for the machine; its source must be a rank of the job.
    #[inline]
    fn by_index(&self, pattern: Pattern<Rank>) -> Pattern {
        if !self.has_net() {
            return by_rank(pattern);
        }
        self.lock().by_index(pattern).expect("the rank is one of the job")
    }

    /// Polls for a while until `found` returns something, above all from the peer
    /// `from`. `leave` runs if the caller is cut off meanwhile by the end of its
    /// scheduler.
    #[inline]
    fn watch<T>(
        &self,
        from: Option<PeerIndex>,
        mut found: impl FnMut(&mut MessageState) -> Option<T>,
        leave: &mut dyn FnMut(),
    ) -> Option<T> {
        if !self.may_watch() {
            self.work();
            let result = found(&mut self.lock());
            let is_crowded = self.rounds == 0 && is_alone();
            return if result.is_none() && is_crowded { self.look_seldom(found) } else { result };
        }
        let look = |state: &mut MessageState, look| {
            let has_moved = on_wire!(state, |machine, wire| match from {
                Some(peer) if look > 0 => machine.advance_from(wire, peer),
                _ => machine.advance(wire),
            });
            (has_moved, found(state))
        };
        self.look(look, leave)
    }

    /// Lets other ranks of the core run, and looks again, a few times, for a caller that would
    /// sleep: what it waits for is often there then, and no peer has to wake it. A peer that wakes
    /// a thread often loses its core to it, between two messages.
    #[inline(never)]
    fn look_seldom<T>(&self, mut found: impl FnMut(&mut MessageState) -> Option<T>) -> Option<T> {
        (0..CROWDED_LOOKS).find_map(|_| {
            thread::yield_now();
            self.work();
            found(&mut self.lock())
        })
    }

    /// Polls for a short message for a while, before a receive is posted for it: so
    /// the message goes from its lane straight into the buffer.
    #[inline]
    pub(super) fn look_for(
        &self,
        pattern: Pattern<Rank>,
        into: MessageBytes,
    ) -> Option<msg::ReceivedMessage<Rank>> {
        let source = pattern.source.filter(|rank| rank.0 < self.member.size())?;
        if !self.may_watch() {
            return None;
        }
        let pattern = self.by_index(pattern);
        let from = pattern.source?;
        let look = |state: &mut MessageState, look| {
            on_wire!(state, |machine, wire| match machine.receive_next(wire, &pattern, into) {
                Some(received) => (false, Some(Some(received))),
                None => {
                    let has_moved = look + 1 == LOOKS && machine.advance(wire);
                    // The message that is here is for a posted receive.
                    (has_moved, (!machine.is_quiet(wire, from)).then_some(None))
                }
            })
        };
        let received = self.look(look, &mut || ()).flatten()?;
        let msg::ReceivedMessage { tag, len, truncated, .. } = received;
        Some(msg::ReceivedMessage { source, tag, len, truncated })
    }

    /// Whether no other thread polls; to be checked before [`look`](Self::look).
    #[inline]
    fn may_watch(&self) -> bool {
        // Relaxed: two threads that poll do no harm.
        self.rounds > 0 && !self.is_watched.load(Ordering::Relaxed)
    }

    /// Polls for a while; each look returns whether something has moved, and what
    /// was found. A thread that is cut off lets another one poll, and runs `leave`.
    #[inline]
    fn look<T>(
        &self,
        mut look: impl FnMut(&mut MessageState, u32) -> (bool, Option<T>),
        leave: &mut dyn FnMut(),
    ) -> Option<T> {
        if self.is_seen {
            return self.look_seen(look, leave);
        }
        self.is_watched.store(true, Ordering::Relaxed);
        let mut result = None;
        let mut leave = || {
            self.is_watched.store(false, Ordering::Relaxed);
            leave();
        };
        for _ in 0..self.rounds {
            self.poll_net();
            let mut state = self.lock();
            let mut has_moved = state.take_arrived();
            for number in 0..LOOKS {
                let (moved, found) = look(&mut state, number);
                has_moved |= moved;
                result = found;
                if has_moved || result.is_some() {
                    break;
                }
                spin_loop();
            }
            state.has_moved |= has_moved;
            if state.machine.has_news() || has_moved && !state.probers.is_empty() {
                self.work_on(state, false);
            } else {
                drop(state);
            }
            if result.is_some() {
                break;
            }
            if !has_moved {
                // SAFETY: `leave` only takes locks, and a thread that yields holds
                // none of them.
                unsafe { Here.yield_or_leave(&mut leave) };
            }
        }
        self.is_watched.store(false, Ordering::Relaxed);
        result
    }

    /// Ends the request of a blocking receive that was cut off. A message that comes
    /// from now on is for the next receive. A message that has begun to come still
    /// goes to its buffer, on a stack that stays. Another thread that waits for the
    /// request is woken.
    #[cold]
    fn leave(&self, request: RequestId) {
        let mut state = self.lock();
        on_wire!(state, |machine, wire| machine.cancel(wire, request));
        if !state.is_waited_for(request) {
            state.abandon(request, Box::new(()));
        }
        drop(state);
        self.work();
    }

    /// Sleeps until `count` of the requests have ended. If another thread sleeps for
    /// one of them, this only yields, because a request wakes one thread.
    fn sleep_for(&self, requests: impl Iterator<Item = RequestId> + Clone, count: usize) {
        self.sleep_or_leave(requests, count, None, &mut || ());
    }

    /// Does the same; `leave` runs if the sleeper is cut off by the end of its
    /// scheduler.
    fn sleep_or_leave(
        &self,
        requests: impl Iterator<Item = RequestId> + Clone,
        count: usize,
        because: Option<&Reason>,
        leave: &mut dyn FnMut(),
    ) {
        let waiting = UnsafeCell::new(WaitingRequest::default());
        let state = self.lock();
        let first = requests.clone().next().expect("the caller waits for at least one message");
        let (peer, tag) = state.machine.about(first);
        let peer = peer.map(|peer| state.rank_of(peer));
        let (context, is_receive) = state.machine.kind_of(first).unwrap_or_default();
        drop(state);
        let pointer = waiting.with_mut(NonNull::new).expect("a variable has an address");
        let mut is_shared = false;
        let mut publish = |waker| {
            let this = self;
            let mut state = this.lock();
            if state.has_ended {
                return false;
            }
            waiting.with_mut(|waiting| {
                let Some(ended) = state.register(requests.clone(), pointer) else {
                    is_shared = true;
                    return false;
                };
                if ended >= count {
                    state.unregister(requests.clone(), pointer);
                    return false;
                }
                // SAFETY: under the lock, and the sleeper has not returned.
                unsafe { (*waiting).left = count - ended };
                // SAFETY: the same.
                unsafe { (*waiting).waker = Some(waker) };
                true
            })
        };
        let mut leave = || {
            self.lock().unregister(requests.clone(), pointer);
            leave();
        };
        let what = if is_receive { COMING } else { GOING };
        let because = because.copied().unwrap_or_else(|| reason(what, peer, tag, context));
        // SAFETY: the last of the requests to end takes the waker out and uses it.
        // `leave` only takes locks, and no sleeper holds one of them.
        unsafe { Here.sleep_or_leave(because, &mut publish, &mut leave) };
        if requests.clone().nth(count).is_some() {
            self.lock().unregister(requests.clone(), pointer);
        }
        if is_shared {
            self.work();
            // SAFETY: as above; a thread that yields holds none of these locks
            // either.
            unsafe { Here.yield_or_leave(&mut leave) };
        }
    }
}

/// A message that was received whole, in two words.
struct Whole {
    source: Rank,
    tag: u32,
    /// One more than its length.
    more: NonZero<usize>,
}

impl Whole {
    #[inline(always)]
    fn received(self) -> Received {
        Received { source: self.source, tag: self.tag, bytes: self.more.get() - 1 }
    }
}

#[inline(always)]
pub(super) fn received_of(
    received: msg::ReceivedMessage<Rank>,
    room: usize,
) -> Result<Received, MessageError> {
    let msg::ReceivedMessage { source, tag, len, truncated } = received;
    let bytes = len as usize;
    match truncated {
        false => Ok(Received { source, tag, bytes }),
        true => Err(MessageError::Truncated { source, tag, bytes, room }),
    }
}

fn received_of_ended(
    result: Result<msg::ReceivedMessage<Rank>, RequestError<Rank>>,
    room: usize,
) -> Result<Received, MessageError> {
    match result {
        Ok(received) => received_of(received, room),
        Err(RequestError::Cancelled) => Err(MessageError::Cancelled),
        Err(RequestError::Ended) => Err(MessageError::Ended),
        Err(RequestError::PeerLost { peer: rank }) => Err(MessageError::PeerLost { rank }),
        Err(RequestError::Failed { peer: rank }) => Err(MessageError::Failed { rank }),
    }
}

fn looked_at(found: msg::ReceivedMessage<Rank>) -> Received {
    Received { source: found.source, tag: found.tag, bytes: found.len as usize }
}

/// The reason of a wait for a message. The place is the context and the other rank, or
/// `u32::MAX` for any.
fn reason(what: &'static str, peer: Option<Rank>, tag: Option<u32>, context: u16) -> Reason {
    let peer = peer.map_or(u32::MAX, |rank| rank.0);
    let at = u64::from(context) << 32 | u64::from(peer);
    Reason { what, at, wanted: tag.map_or(u64::MAX, u64::from) }
}

/// The words of a report for a wait.
pub(crate) struct MessageWait<'a> {
    reason: &'a Reason,
    /// The name that the program has for the context.
    context: Option<String>,
}

impl<'a> MessageWait<'a> {
    /// `None`: the wait is for something else.
    pub(crate) fn of(reason: &'a Reason, messages: &Messages) -> Option<Self> {
        [COMING, GOING].contains(&reason.what).then(|| Self {
            reason,
            context: messages.context_names.get().and_then(|name| name((reason.at >> 32) as u16)),
        })
    }
}

impl fmt::Display for MessageWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reason { what, at, wanted } = *self.reason;
        let peer = Some(at as u32).filter(|peer| *peer != u32::MAX);
        match (what, peer) {
            (GOING, Some(rank)) => write!(f, " waits until rank {rank} takes a message")?,
            (GOING, None) => write!(f, " waits until a message is taken")?,
            (_, Some(rank)) => write!(f, " waits for a message from rank {rank}")?,
            (_, None) => write!(f, " waits for a message from any rank")?,
        }
        match wanted {
            u64::MAX => write!(f, " with any tag")?,
            tag => write!(f, " with tag {tag}")?,
        }
        match &self.context {
            Some(name) => write!(f, " on {name}"),
            None => Ok(()),
        }
    }
}

/// A wait for a message that comes, and for one that this rank has sent.
const COMING: &str = "message";
const GOING: &str = "message sent";

/// How often a caller lets other ranks run before it sleeps, if they outnumber the cores. Fewer
/// and more were slower in the exchange of `benches/compare`.
const CROWDED_LOOKS: u32 = 2;
/// How long a thread of a rank that has ended waits before it looks at its peers again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Looks of a thread each time that it has the lock.
pub(super) const LOOKS: u32 = 8;
