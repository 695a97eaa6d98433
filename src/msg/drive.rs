//! What drives the machine of [`tsumugi_core::msg`] over the partitions of a
//! node.
//!
//! ```text
//!  send, recv ─► lock: machine ─► packets into lanes, short copies
//!                   ▲   │
//!   whoever waits,  │   ▼
//!   an idle worker, turn ─► long copies, without the lock · sleepers woken
//!   the helper
//! ```
//!
//! The lock is held for some hundred instructions, and never while somebody is
//! woken or a long message is copied. Who waits for a message first looks for
//! it himself for a while, if his rank has one worker and no other ULT wants
//! that; then he sleeps, and workers that are idle look for all.
//!
//! A peer that sends rings only where a worker sleeps. It needs no fence for
//! that: the worker passes one for all ([`tsumugi_pvas::fence`]) before it
//! sleeps. The helper is rung for long messages alone: short ones are there
//! when the receiver comes for them.

use super::Received;
use super::state::{REQUESTS_MAX, State, Waiting, Woken, index};
use super::wire::{Lanes, carry_out_long};
use crate::card::Card;
use crate::config::Chosen;
use crate::{Error, MessageError, Rank};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use tsumugi_core::completion::Why;
use tsumugi_core::mem::AddrError;
use tsumugi_core::msg::{
    self, Begun, Bytes, CallError, Counts, Ended, INLINE_BYTES_MAX, Label, Pattern, Request,
    Thresholds,
};
use tsumugi_core::sync::{AtomicBool, AtomicU32, Ordering, UnsafeCell, spin_loop};
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_pvas::{Gauge, Member, distance};
use tsumugi_ult::Here;
use tsumugi_ult::biased::{BiasedGuard, BiasedLock};

/// The messages of one rank.
pub struct Messages {
    member: Member,
    state: BiasedLock<State>,
    /// Of each request: its handle has gone, and its scope wants the result.
    orphans: Box<[AtomicBool]>,
    /// Somebody who waits looks for messages himself.
    is_watched: AtomicBool,
    /// How often; 0 where that would be at the cost of others.
    rounds: u32,
    /// The last death that the machine was told of.
    lost: AtomicU32,
    contexts: AtomicU32,
    /// How far each rank seems to be, by the long copies.
    gauges: Box<[Gauge]>,
}

/// A message that has begun.
#[derive(Clone, Copy, Debug)]
pub enum Under {
    /// It was over at once.
    Ended(Result<Received, MessageError>),
    /// It is the machine's; a receive has so much room.
    Way(Request, usize),
}

impl Under {
    fn request(self) -> Option<Request> {
        match self {
            Self::Ended(_) => None,
            Self::Way(request, _) => Some(request),
        }
    }
}

type Guard<'a> = BiasedGuard<'a, State>;

// SAFETY: what is not atomic is under the lock; the pointers in it are used as
// said there.
unsafe impl Send for Messages {}
// SAFETY: the same.
unsafe impl Sync for Messages {}

impl Messages {
    /// The messages of a rank, when everybody has told where its lanes are.
    pub(crate) fn new(
        member: &Member,
        lanes: &Lanes,
        cards: &[Card],
        chosen: &Chosen,
    ) -> Result<Self, Error> {
        let wire = lanes.connect(member, cards.iter().map(|card| card.messages))?;
        let mut state = State::new(member.rank(), lanes.shape(), chosen.messages, wire);
        let gauges = (0..member.size()).map(Rank).map(|rank| {
            let (distance, thresholds) = member.way_to(rank);
            state.use_thresholds(rank, thresholds_of(&thresholds));
            Gauge::new(distance)
        });
        let gauges = gauges.collect();
        Ok(Self {
            member: member.clone(),
            state: BiasedLock::new(state),
            orphans: (0..REQUESTS_MAX).map(|_| AtomicBool::new(false)).collect(),
            is_watched: AtomicBool::new(false),
            rounds: if chosen.workers == 1 { chosen.spin.saturating_mul(10) } else { 0 },
            lost: AtomicU32::new(0),
            contexts: AtomicU32::new(1),
            gauges,
        })
    }

    /// Sends, and waits until the bytes may be changed.
    ///
    /// # Safety
    ///
    /// They are readable, and stay as they are until then.
    #[inline]
    pub(crate) unsafe fn send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<(), MessageError> {
        // SAFETY: the caller's.
        let under = unsafe { self.begin_send(to, label, at, bytes) }?;
        self.finish(under).map(|_| ())
    }

    /// Receives, and waits for it.
    ///
    /// # Safety
    ///
    /// The room is writable, and nobody else uses it until then.
    #[inline]
    pub(crate) unsafe fn receive(
        &self,
        pattern: Pattern,
        at: *mut u8,
        room: usize,
    ) -> Result<Received, MessageError> {
        // SAFETY: the caller's.
        let under = unsafe { self.begin_receive(pattern, at, room) }?;
        self.finish(under)
    }

    /// Begins to send; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// The bytes are readable, and stay as they are until it was finished.
    #[inline]
    pub(crate) unsafe fn begin_send(
        &self,
        to: Rank,
        label: Label,
        at: *const u8,
        bytes: usize,
    ) -> Result<Under, MessageError> {
        let from = self.outgoing(at, bytes);
        self.begin(|State { machine, wire, .. }| {
            if bytes > INLINE_BYTES_MAX {
                // The receive that it is for may be known by now.
                machine.look(wire, to);
            }
            Ok(match machine.send(wire, to, label, from)? {
                Begun::Done(()) => Under::Ended(Ok(Received { source: to, tag: label.tag, bytes })),
                Begun::Pending(request) => Under::Way(request, usize::MAX),
            })
        })
    }

    /// Begins to receive; waits only while the tables are full.
    ///
    /// # Safety
    ///
    /// The room is writable, and nobody else uses it until it was finished.
    #[inline]
    pub(crate) unsafe fn begin_receive(
        &self,
        pattern: Pattern,
        at: *mut u8,
        room: usize,
    ) -> Result<Under, MessageError> {
        let into = self.incoming(at, room);
        self.begin(|State { machine, wire, .. }| {
            if let Some(received) = machine.receive_next(wire, &pattern, into) {
                return Ok(Under::Ended(received_of(received, room)));
            }
            Ok(match machine.receive(wire, pattern, into)? {
                Begun::Done(received) => Under::Ended(received_of(received, room)),
                Begun::Pending(request) => Under::Way(request, room),
            })
        })
    }

    /// Waits for a message that fits, gives it room, and receives it.
    ///
    /// # Safety
    ///
    /// `room_for` answers where there is room for so many bytes, which is
    /// nobody else's until this returns.
    pub(crate) unsafe fn receive_whole(
        &self,
        pattern: Pattern,
        mut room_for: impl FnMut(usize) -> *mut u8,
    ) -> Result<Received, MessageError> {
        let (mut at, mut room) = (room_for(0), 0);
        loop {
            let found = self.probe(pattern)?;
            if found.bytes > room {
                (at, room) = (room_for(found.bytes), found.bytes);
            }
            let into = self.incoming(at, room);
            let begun = self.begin(|State { machine, wire, .. }| {
                // Another thread may have taken it, and the next be longer.
                let Some(first) = machine.probe(&pattern) else { return Ok(None) };
                if first.len > room as u64 {
                    return Ok(None);
                }
                let (source, tag) = (Some(first.source), Some(first.tag));
                let exactly = Pattern { source, tag, ..pattern };
                Ok(Some(match machine.receive(wire, exactly, into)? {
                    Begun::Done(received) => Under::Ended(received_of(received, room)),
                    Begun::Pending(request) => Under::Way(request, room),
                }))
            })?;
            if let Some(under) = begun {
                return self.finish(under);
            }
        }
    }

    /// Waits for the end.
    #[inline]
    pub(crate) fn finish(&self, under: Under) -> Result<Received, MessageError> {
        match under {
            Under::Ended(result) => result,
            Under::Way(request, room) => {
                let ended = {
                    let mut state = self.lock();
                    state.take(request).ok_or_else(|| state.machine.about(request).0)
                };
                let watched =
                    ended.or_else(|from| self.watch(from, |state| state.take(request)).ok_or(()));
                let result = watched.unwrap_or_else(|()| {
                    self.sleep_for(std::iter::once(request), 1);
                    self.lock().take(request).expect("a request that has ended stays")
                });
                self.orphans[index(request)].store(false, Ordering::Relaxed);
                received_of_ended(result, room)
            }
        }
    }

    /// Waits until all have ended.
    pub(crate) fn wait_all(&self, unders: impl Iterator<Item = Under> + Clone) {
        let requests = unders.filter_map(Under::request);
        let count = requests.clone().count();
        if count > 0 {
            self.wait_for(requests, count);
        }
    }

    /// Waits until one has ended, and answers which.
    pub(crate) fn wait_any(&self, unders: impl Iterator<Item = Under> + Clone) -> usize {
        loop {
            let state = self.lock();
            let is_over = |under: Under| {
                under.request().is_none_or(|request| state.machine.has_ended(request))
            };
            if let Some(first) = unders.clone().position(is_over) {
                return first;
            }
            drop(state);
            self.wait_for(unders.clone().filter_map(Under::request), 1);
        }
    }

    /// Whether it has ended; moves it on if not.
    pub(crate) fn is_done(&self, under: Under) -> bool {
        let Under::Way(request, _) = under else { return true };
        self.lock().machine.has_ended(request) || {
            self.work();
            self.lock().machine.has_ended(request)
        }
    }

    /// Whether its result is still to be had.
    pub(crate) fn is_held(&self, under: Under) -> bool {
        match under {
            Under::Ended(_) => false,
            Under::Way(request, _) => self.lock().machine.is_held(request),
        }
    }

    /// The handle goes, and leaves the result to its scope.
    #[inline]
    pub(crate) fn orphan(&self, under: Under) {
        if let Under::Way(request, _) = under {
            self.orphans[index(request)].store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_orphan(&self, under: Under) -> bool {
        match under {
            Under::Ended(_) => true,
            Under::Way(request, _) => self.orphans[index(request)].load(Ordering::Relaxed),
        }
    }

    /// The handle goes; `kept` keeps the bytes until the end.
    pub(crate) fn abandon(&self, under: Under, kept: Box<dyn Any + Send>) {
        if let Under::Way(request, _) = under {
            self.lock().abandon(request, kept);
        }
    }

    pub(crate) fn cancel(&self, under: Under) {
        if let Under::Way(request, _) = under {
            let mut state = self.lock();
            let State { machine, wire, .. } = &mut *state;
            machine.cancel(wire, request);
            drop(state);
            self.work();
        }
    }

    /// Waits for a message that fits, and leaves it.
    pub(crate) fn probe(&self, pattern: Pattern) -> Result<Received, MessageError> {
        let found = |state: &mut State| match pattern.source {
            Some(rank) if rank.0 >= self.member.size() => {
                Some(Err(MessageError::NoSuchRank { rank, size: self.member.size() }))
            }
            source => {
                let lost = source.filter(|rank| state.machine.is_lost(*rank));
                let found = state.machine.probe(&pattern).map(|found| Ok(looked_at(found)));
                found.or(lost.map(|rank| Err(MessageError::PeerLost { rank })))
            }
        };
        loop {
            if let Some(result) = self.watch(pattern.source, found) {
                return result;
            }
            Here.sleep(reason(pattern.source, pattern.tag), &mut |waker| {
                let mut state = self.lock();
                let is_there = found(&mut state).is_some();
                if !is_there {
                    state.probers.push(waker);
                }
                !is_there
            });
        }
    }

    /// A message that fits, if one is there.
    pub(crate) fn try_probe(&self, pattern: Pattern) -> Option<Received> {
        self.work();
        self.lock().machine.probe(&pattern).map(looked_at)
    }

    /// The next communicator's number: the same on every rank that asks in
    /// the same order.
    pub(crate) fn next_context(&self) -> Result<u16, MessageError> {
        let next = self.contexts.fetch_add(1, Ordering::Relaxed);
        u16::try_from(next).map_err(|_| MessageError::NoContext)
    }

    /// What was sent so far.
    pub fn counts(&self) -> Counts {
        *self.lock().machine.counts()
    }

    /// Takes what has come and moves on what can be. Whether there was
    /// anything. At once, if another thread is at it.
    pub(crate) fn poll(&self) -> bool {
        self.state.try_lock().is_some_and(|state| self.work_on(state, false))
    }

    /// The same, once more, of a thread that is about to sleep.
    pub(crate) fn rest(&self) -> bool {
        self.work_on(self.lock(), true)
    }

    /// Whether a peer has found nobody to look at a long message.
    #[inline]
    pub(crate) fn is_neglected(&self) -> bool {
        self.member.control().is_neglected()
    }

    /// What the helper does then.
    pub(crate) fn help(&self) -> bool {
        self.member.control().take_neglected() && self.work()
    }

    fn gauge(&self, rank: Rank) -> &Gauge {
        &self.gauges[rank.0 as usize]
    }

    fn work(&self) -> bool {
        self.work_on(self.lock(), false)
    }

    fn work_on<'a>(&'a self, mut state: Guard<'a>, rests: bool) -> bool {
        let mut has_moved = false;
        if let Some(seen) = self.death() {
            self.lost.store(seen, Ordering::Relaxed);
            let ranks = (0..self.member.size()).map(Rank);
            state.lose(ranks.filter(|rank| !self.member.control_of(*rank).is_alive()));
            has_moved = true;
        }
        loop {
            let State { machine, wire, .. } = &mut *state;
            let moved = if rests { machine.rest(wire) } else { machine.advance(wire) };
            has_moved |= moved;
            let mut woken = Woken::new();
            state.note_ended(&mut woken);
            if std::mem::take(&mut state.has_moved) | moved {
                while !woken.is_full()
                    && let Some(prober) = state.probers.pop()
                {
                    let _ = woken.push(prober);
                }
            }
            let job = state.machine.poll_job();
            if woken.is_empty() && job.is_none() {
                return has_moved;
            }
            has_moved = true;
            drop(state);
            woken.into_iter().for_each(Waker::wake);
            if let Some(job) = &job {
                // SAFETY: the machine's: both buffers are lent to the message.
                unsafe { carry_out_long(&job.copy, self.gauge(job.copy.peer)) };
            }
            state = self.lock();
            if let Some(job) = job {
                if let Some(distance) = self.gauge(job.copy.peer).changed() {
                    let thresholds = thresholds_of(&self.member.thresholds(distance));
                    state.use_thresholds(job.copy.peer, thresholds);
                }
                let State { machine, wire, .. } = &mut *state;
                machine.job_done(wire, job.request, Ok(()));
            }
        }
    }

    /// Begins something, as soon as there is room in the tables.
    #[inline]
    fn begin<T>(
        &self,
        mut begin: impl FnMut(&mut State) -> Result<T, CallError>,
    ) -> Result<T, MessageError> {
        loop {
            let mut state = self.lock();
            let begun = begin(&mut state);
            if state.machine.has_news() || !state.probers.is_empty() {
                // What came may be what a prober waits for.
                state.has_moved = true;
                self.work_on(state, false);
            } else {
                drop(state);
            }
            match begun {
                Ok(begun) => return Ok(begun),
                Err(CallError::Busy(Why::NoTag)) => {
                    return Err(MessageError::TooMany { limit: REQUESTS_MAX });
                }
                Err(CallError::Busy(_)) => {
                    self.work();
                    Here.yield_now();
                }
                Err(CallError::Addr(AddrError::NoSuchRank { rank, size })) => {
                    return Err(MessageError::NoSuchRank { rank, size });
                }
                Err(CallError::Addr(error)) => {
                    let AddrError::PeerLost { rank } = error else {
                        unreachable!("{error}: a message has no other address than a rank")
                    };
                    return Err(MessageError::PeerLost { rank });
                }
            }
        }
    }

    /// Looks for something for a while, from that rank above all.
    #[inline]
    fn watch<T>(
        &self,
        from: Option<Rank>,
        mut found: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        // Relaxed: two that watch do no harm.
        if self.rounds == 0 || self.is_watched.load(Ordering::Relaxed) {
            self.work();
            return found(&mut self.lock());
        }
        self.is_watched.store(true, Ordering::Relaxed);
        let mut result = None;
        for _ in 0..self.rounds {
            let mut state = self.lock();
            let mut has_moved = false;
            for look in 0..LOOKS {
                let State { machine, wire, .. } = &mut *state;
                has_moved = match from {
                    Some(rank) if look > 0 => machine.advance_from(wire, rank),
                    _ => machine.advance(wire),
                };
                result = found(&mut state);
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
                Here.yield_now();
            }
        }
        self.is_watched.store(false, Ordering::Relaxed);
        result
    }

    fn wait_for(&self, requests: impl Iterator<Item = Request> + Clone, count: usize) {
        let ended = |state: &mut State| {
            let ended = requests.clone().filter(|request| state.machine.has_ended(*request));
            (ended.count() >= count).then_some(())
        };
        if self.watch(None, ended).is_none() {
            self.sleep_for(requests, count);
        }
    }

    /// Sleeps until `count` of the requests have ended.
    fn sleep_for(&self, requests: impl Iterator<Item = Request> + Clone, count: usize) {
        let waiting = UnsafeCell::new(Waiting::default());
        let (peer, tag) =
            self.lock().machine.about(requests.clone().next().expect("one is waited for"));
        Here.sleep(reason(peer, tag), &mut |waker| {
            let this = self;
            let mut state = this.lock();
            waiting.with_mut(|waiting| {
                let pointer = NonNull::new(waiting).expect("a local");
                let ended = state.register(requests.clone(), pointer);
                if ended >= count {
                    state.unregister(requests.clone());
                    return false;
                }
                // SAFETY: under the lock, and the sleeper has not returned.
                unsafe { (*waiting).left = count - ended };
                // SAFETY: the same.
                unsafe { (*waiting).waker = Some(waker) };
                true
            })
        });
        if requests.clone().nth(count).is_some() {
            self.lock().unregister(requests);
        }
    }

    /// A buffer that peers may read if they can reach it.
    #[inline]
    fn outgoing(&self, at: *const u8, bytes: usize) -> Bytes {
        let (place, len) = (NonNull::new(at.cast_mut()), bytes as u64);
        let space = self.member.space();
        // It is not asked of what travels in its packet.
        let in_reach = bytes > INLINE_BYTES_MAX
            && place.is_some_and(|place| space.place_of(place, len).is_some());
        Bytes { at: at as u64, len, in_reach }
    }

    /// A buffer that they may write.
    #[inline]
    fn incoming(&self, at: *mut u8, room: usize) -> Bytes {
        let (place, len) = (NonNull::new(at), room as u64);
        let space = self.member.space();
        let in_reach = place.is_some_and(|place| space.is_offered(place, len));
        Bytes { at: at as u64, len, in_reach }
    }

    /// A death that the machine was not told of.
    fn death(&self) -> Option<u32> {
        let lost = self.member.control().lot().lost()?.0 + 1;
        (lost != self.lost.load(Ordering::Relaxed)).then_some(lost)
    }

    #[inline(always)]
    fn lock(&self) -> Guard<'_> {
        self.state.lock()
    }
}

fn received_of(received: msg::Received, room: usize) -> Result<Received, MessageError> {
    let msg::Received { source, tag, len, truncated } = received;
    let bytes = len as usize;
    match truncated {
        false => Ok(Received { source, tag, bytes }),
        true => Err(MessageError::Truncated { source, tag, bytes, room }),
    }
}

fn received_of_ended(
    result: Result<msg::Received, Ended>,
    room: usize,
) -> Result<Received, MessageError> {
    match result {
        Ok(received) => received_of(received, room),
        Err(Ended::Cancelled) => Err(MessageError::Cancelled),
        Err(Ended::PeerLost { rank }) => Err(MessageError::PeerLost { rank }),
        Err(Ended::Failed { rank }) => Err(MessageError::Failed { rank }),
    }
}

/// The same, in words that a message's length is compared with.
fn thresholds_of(measured: &distance::Thresholds) -> Thresholds {
    let word = |bytes: u64| bytes.min(u64::from(u32::MAX)) as u32;
    Thresholds {
        inline_max: word(measured.inline_max).min(INLINE_BYTES_MAX as u32),
        direct_from: word(measured.direct_from),
        direct_max: word(measured.direct_max),
        nt_from: word(measured.nt_from),
        pull_from: word(measured.pull_from),
        eager_max: word(measured.eager_max),
    }
}

fn looked_at(found: msg::Received) -> Received {
    Received { source: found.source, tag: found.tag, bytes: found.len as usize }
}

fn reason(source: Option<Rank>, tag: Option<u32>) -> Reason {
    let at = source.map_or(u64::MAX, |rank| u64::from(rank.0));
    Reason { what: "message", at, wanted: tag.map_or(u64::MAX, u64::from) }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({})", self.member.rank())
    }
}

/// Looks that a thread takes with the lock in its hands.
const LOOKS: u32 = 8;
