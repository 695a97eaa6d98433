//! The callers' side: calls, casts, and deferred answers.

use super::lanes::LANDING_BYTES;
use super::outside::Outside;
use super::state::{Am, AmState, CallEntry, Stuck, WaitingCall};
use crate::error::Error;
use std::any::Any;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::time::Duration;
use tsumugi_core::am::{
    CallError, CallPayload, HandlerAnswer, HandlerId, Inline, ReplyTo, SendError,
};
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::{Ordering, UnsafeCell};
use tsumugi_core::wait::{Reason, Wait};
use tsumugi_ult::Here;

impl Am {
    /// Checks the length of bytes that another rank is to read.
    ///
    /// # Errors
    ///
    /// [`SendError::TooLong`].
    pub fn check_long(&self, bytes: u64) -> Result<(), SendError> {
        let bytes_max = LANDING_BYTES as u64;
        if bytes > bytes_max { Err(SendError::TooLong { bytes, bytes_max }) } else { Ok(()) }
    }

    /// Calls `handler` of `to` and waits for the answer. `kept` is dropped when the
    /// payload is not read any more.
    pub fn call(
        &self,
        to: Rank,
        handler: HandlerId,
        payload: CallPayload<'_>,
        kept: Option<Box<dyn Any + Send>>,
        limit: Option<Duration>,
    ) -> Result<Inline, Error> {
        // Before the machine has the address on this stack where the answer goes.
        tsumugi_ult::assert_may_block("call");
        let deadline = limit.map(|limit| self.deadline.now() + limit);
        let (mut kept, mut timer, waiting) = (kept, None, UnsafeCell::new(WaitingCall::default()));
        self.send(to, true, |state, to| {
            let token = state.machine.call(to, handler, payload, deadline)?;
            // A time limit counts as an outside event that may still wake a ULT.
            timer = limit.map(|_| Outside::new(&self.member));
            let waiting = waiting.with_mut(NonNull::new);
            state.calls[token.index()] = CallEntry { waiting, kept: kept.take() };
            Ok(())
        })?;
        let reason = Reason { what: "call", at: u64::from(to.0), wanted: u64::from(handler.0) };
        let mut publish = |waker| {
            let (this, waiting) = (self, &waiting);
            let _state = this.lock();
            // SAFETY: under the lock, and the call has not returned: it waits for
            // this answer or for the waker.
            waiting.with_mut(|waiting| unsafe {
                let asleep = (*waiting).result.is_none();
                if asleep {
                    (*waiting).waker = Some(waker);
                }
                asleep
            })
        };
        // After a caller is cut off by the end of its scheduler, the limit wakes
        // nothing.
        let mut leave = || drop(timer.take());
        // SAFETY: the end of the call takes the waker out and uses it. `leave` only
        // counts down.
        unsafe { Here.sleep_or_leave(reason, &mut publish, &mut leave) };
        let _state = self.lock();
        // SAFETY: under the lock.
        let result = waiting.with_mut(|waiting| unsafe { (*waiting).result.take() });
        Ok(result.expect("a caller is woken by the end of its call")?)
    }

    /// Sends `bytes` to `handler` of `to`, and waits if there is no room.
    pub fn cast(&self, to: Rank, handler: HandlerId, bytes: &[u8]) -> Result<(), Error> {
        self.send(to, false, |state, to| state.machine.cast(to, handler, bytes))
    }

    /// Sends the answer of a call that its handler has deferred.
    pub fn answer(&self, reply_to: ReplyTo, answer: &HandlerAnswer) {
        let mut owed = Some(reply_to);
        loop {
            let mut state = self.lock();
            if state.has_ended {
                // The caller has already got an error, because this rank is gone.
                return;
            }
            // If there is no room, an operation is about to complete.
            owed = owed.and_then(|reply_to| state.machine.reply(reply_to, answer).err());
            drop(state);
            if owed.is_none() {
                break;
            }
            self.post();
            let mut leave = || owed.take().into_iter().for_each(|owed| self.owe(owed, *answer));
            // SAFETY: `leave` only takes locks, and a thread that yields holds none
            // of them.
            unsafe { Here.yield_or_leave(&mut leave) };
        }
        self.post_and_stir();
    }

    /// Keeps the answer of a ULT that was cut off: the threads that pump send it.
    #[cold]
    fn owe(&self, reply_to: ReplyTo, answer: HandlerAnswer) {
        self.lock().owed.push((reply_to, answer));
        self.stir();
    }

    /// Begins a send; sleeps for room as often as it must.
    fn send(
        &self,
        to: Rank,
        wants_reply: bool,
        mut begin: impl FnMut(&mut AmState, PeerIndex) -> Result<(), SendError>,
    ) -> Result<(), Error> {
        loop {
            let mut state = self.lock();
            if state.has_ended {
                return Err(CallError::Ended.into());
            }
            let begun = match self.remote.get() {
                // In a job of one node the index of each peer is its rank.
                None => begin(&mut state, PeerIndex(to.0)),
                Some(_) => {
                    let peer = self.peer_of(&mut state, to)?;
                    self.meet(&mut state);
                    let room = self.check_room(&state, peer, wants_reply);
                    room.and_then(|()| begin(&mut state, peer))
                }
            };
            self.deadline.note(state.machine.next_deadline(), &self.member);
            drop(state);
            match begun {
                Ok(()) => break,
                Err(SendError::Busy(_)) => self.wait_for_room(to, wants_reply),
                Err(SendError::PeerLost { .. }) => {
                    return Err(CallError::PeerLost { rank: to }.into());
                }
                Err(SendError::NoSuchPeer { .. }) => {
                    let size = self.member.size();
                    return Err(Error::Addr(AddrError::NoSuchRank { rank: to, size }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.post_and_stir();
        Ok(())
    }

    fn wait_for_room(&self, to: Rank, wants_reply: bool) {
        let reason = Reason { what: "room for a call", at: u64::from(to.0), wanted: 0 };
        let frame = 0_u8;
        let sleeper = (&raw const frame).addr();
        let mut publish = |waker| {
            // Copied: the caller's frame may be gone once the waker is published.
            let (this, to) = (self, to);
            let mut state = this.lock();
            if state.has_ended {
                return false;
            }
            let Some(peer) = state.peers.find(to) else { return false };
            let is_full = this.check_room(&state, peer, wants_reply);
            if !matches!(is_full, Err(SendError::Busy(_))) {
                return false;
            }
            state.stuck[peer.0 as usize].push_back(Stuck { sleeper, waker });
            state.stuck_len += 1;
            true
        };
        // SAFETY: the thread that makes room takes the waker out and uses it.
        // `leave_stuck` only takes locks, and no sleeper holds one of them.
        unsafe { Here.sleep_or_leave(reason, &mut publish, &mut || self.leave_stuck(sleeper)) };
    }

    /// Removes a sleeper that is cut off and will never use room: its room, also the
    /// room for which it was already woken, goes to the sleepers behind it.
    #[cold]
    fn leave_stuck(&self, sleeper: usize) {
        let mut state = self.lock();
        state.stuck.iter_mut().for_each(|stuck| stuck.retain(|one| one.sleeper != sleeper));
        state.stuck_len = state.stuck.iter().map(VecDeque::len).sum();
        state.has_room = true;
        self.give_room(state);
    }

    /// Posts for a sender; further work that results is left to the threads that
    /// pump.
    fn post_and_stir(&self) {
        self.post();
        let state = self.lock();
        let wants_poll = state.machine.wants_poll();
        self.give_room(state);
        if wants_poll {
            self.is_stirred.store(true, Ordering::SeqCst);
            self.ring(self.member.rank());
        }
    }
}
