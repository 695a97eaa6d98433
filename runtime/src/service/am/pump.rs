//! The receiver's side: takes messages that have arrived and carries out operations.

use super::lanes::{BATCH, LANDING_BYTES};
use super::outbound::RemoteOps;
use super::state::{Am, AmState, Function};
use crate::panic;
use std::mem::take;
use std::sync::Arc;
use std::sync::{MutexGuard, PoisonError};
use tsumugi_core::am::{
    AmEvent, AmOutput, HandlerAnswer, HandlerId, Incoming, Message, RequestBody, SendError,
};
use tsumugi_core::backend::execute;
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{Ordering, fence};
use tsumugi_core::time::Instant;
use tsumugi_core::wait::Waker;
use tsumugi_ult::SystemFutex;

impl Am {
    /// Takes messages that have arrived: runs handlers, ends calls, wakes senders
    /// that wait for room. Returns whether there were any; returns false at once if
    /// another thread is pumping.
    pub(super) fn serve(&self) -> bool {
        // Acquire and Release: the handlers of one thread happen before the handlers
        // of the next thread.
        if self.is_pumped.swap(true, Ordering::Acquire) {
            return false;
        }
        self.is_stirred.store(false, Ordering::SeqCst);
        let mut state = self.lock();
        if self.deaths.take(&self.member) {
            for peer in state.peers.all() {
                if !self.is_alive(state.peers.rank(peer)) {
                    state.machine.handle(AmEvent::Lost(peer), Instant::ZERO);
                }
            }
        }
        self.meet(&mut state);
        state.machine.handle(AmEvent::Rang, self.deadline.now());
        self.deadline.note(state.machine.next_deadline(), &self.member);
        let is_owed = state.reply_owed();
        drop(state);
        if let Some(remote) = self.remote.get() {
            remote.offer_again();
        }
        let done = self.do_all();
        if is_owed {
            self.is_stirred.store(true, Ordering::SeqCst);
        }
        self.is_pumped.store(false, Ordering::Release);
        done > 0
    }

    /// Does all work of the machine. Returns how many items of work there were.
    fn do_all(&self) -> usize {
        let (mut done, mut looked_again) = (0, false);
        loop {
            let mut state = self.lock();
            let Some(out) = state.machine.poll() else {
                drop(state);
                // Cells for a dead rank make room without an operation, so the
                // machine may want one more poll.
                if self.post() == 0
                    && (std::mem::replace(&mut looked_again, true)
                        || !self.lock().machine.wants_poll())
                {
                    break;
                }
                continue;
            };
            (done, looked_again) = (done + 1, false);
            match out {
                AmOutput::Run(request) => {
                    drop(state);
                    self.run(request);
                }
                AmOutput::Done { token, result } => {
                    let (waker, kept) = state.end(token, result);
                    drop(state);
                    drop(kept);
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                }
                AmOutput::Released { token } => {
                    let kept = state.calls[token.index()].kept.take();
                    drop(state);
                    drop(kept);
                }
            }
        }
        let state = self.lock();
        let is_landing = state.machine.is_landing();
        self.give_room(state);
        if is_landing {
            self.is_stirred.store(true, Ordering::SeqCst);
        }
        done
    }

    /// Runs the handler of a request and sends the answer.
    fn run(&self, request: Incoming) {
        let Incoming { from, handler, body, mut reply_to } = request;
        let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        let function = functions.get(&handler.0).cloned();
        drop(functions);
        let bytes = match &body {
            RequestBody::Inline(inline) => &**inline,
            // SAFETY: a landing buffer, which the machine's own get has filled;
            // nothing else writes it until it is released.
            RequestBody::Landed(landed) => unsafe {
                let start = self.landing.add(landed.index() * LANDING_BYTES);
                std::slice::from_raw_parts(start.as_ptr(), landed.bytes as usize)
            },
        };
        let answer = match function.as_deref() {
            None => Some(HandlerAnswer::UnknownHandler),
            Some(Function::Here(function)) => {
                let wants_reply = reply_to.is_some();
                let message = Message { from, handler, bytes, wants_reply };
                let call = || tsumugi_ult::callback(|| function(message));
                Some(self.contain(handler, call).unwrap_or(HandlerAnswer::Failed))
            }
            Some(Function::Elsewhere(function)) => {
                if let Some(reply_to) = &mut reply_to {
                    self.lock().machine.defer(reply_to);
                }
                // The function is part of the runtime, not of the program: it is not
                // contained.
                function(from, bytes.into(), reply_to.take());
                None
            }
        };
        if let Some(replaced) = function.and_then(Arc::into_inner) {
            self.drop_replaced(handler, replaced);
        }
        let mut state = self.lock();
        if let RequestBody::Landed(landed) = body {
            state.machine.release(landed);
        }
        if let (Some(answer), Some(reply_to)) = (answer, reply_to) {
            let replied = state.machine.reply(reply_to, &answer);
            debug_assert!(replied.is_ok(), "a reply that is not deferred has room");
        }
        drop(state);
        self.post();
    }

    /// Drops a function that was replaced while it ran. Like the function itself, its
    /// values must not sleep: this thread pumps.
    #[cold]
    fn drop_replaced(&self, handler: HandlerId, replaced: Function) {
        self.contain(handler, || tsumugi_ult::callback(|| drop(replaced)));
    }

    /// Calls a function of the program for messages to `handler`. A panic in it is
    /// contained, and all else goes on.
    pub fn contain<R>(&self, handler: HandlerId, call: impl FnOnce() -> R) -> Option<R> {
        panic::contain(format_args!("{}: {handler}", self.member.rank()), call)
    }

    /// Carries out or begins the operations of the machine. Returns how many
    /// operations that were, and how many have ended.
    #[inline]
    pub(super) fn post(&self) -> usize {
        match self.remote.get() {
            None => self.post_near(),
            Some(remote) => self.post_all(remote),
        }
    }

    fn post_near(&self) -> usize {
        let (mut posted, mut ended) = (0, [None; BATCH]);
        loop {
            let mut state = self.lock();
            for event in ended.iter_mut().filter_map(Option::take) {
                state.machine.handle(event, Instant::ZERO);
            }
            let mut ops = [None; BATCH];
            for op in &mut ops {
                *op = state.machine.poll_op();
                if op.is_none() {
                    break;
                }
            }
            drop(state);
            if ops[0].is_none() {
                return posted;
            }
            for (op, event) in ops.iter().flatten().zip(&mut ended) {
                *event = Some(AmEvent::Completed { tag: op.tag, result: self.carry_out(op) });
                posted += 1;
            }
        }
    }

    /// Does the same where some operations are on ranks of other nodes.
    #[inline(never)]
    fn post_all(&self, remote: &RemoteOps) -> usize {
        let (mut posted, mut ended, mut has_ended) = (0, [None; BATCH], false);
        loop {
            let mut state = self.lock();
            for event in ended.iter_mut().filter_map(Option::take) {
                state.machine.handle(event, Instant::ZERO);
            }
            let count = remote.take_ended(|tag, result| {
                state.machine.handle(AmEvent::Completed { tag, result }, Instant::ZERO);
            });
            posted += count;
            has_ended |= count > 0;
            state.has_room |= count > 0;
            let mut ops = [None; BATCH];
            for op in &mut ops {
                *op = state.machine.poll_op();
                if op.is_none() {
                    break;
                }
            }
            drop(state);
            for (op, event) in ops.iter().flatten().zip(&mut ended) {
                if remote.is_near(op.remote.rank) {
                    *event = Some(AmEvent::Completed { tag: op.tag, result: self.carry_out(op) });
                    posted += 1;
                } else {
                    posted += usize::from(remote.begin(op));
                }
            }
            if ops[0].is_none() {
                // There may be room now for refused operations.
                return posted + if has_ended { remote.offer_again() } else { 0 };
            }
        }
    }

    #[inline(always)]
    fn carry_out(&self, op: &Op) -> Result<u64, AddrError> {
        let mut quietly = *op;
        quietly.notify = false;
        let result = execute(&self.direct, &quietly);
        if op.notify && result.is_ok() {
            self.ring(op.remote.rank);
        }
        result
    }

    /// Wakes a worker of this rank after a peer on another node has changed a word
    /// of its lanes. The calling thread has seen that change, or has carried it out.
    pub fn stir(&self) {
        // SeqCst: after the change of the word, of any ordering, and before the
        // check of the sleepers. Lanes of remote ranks are looked at when this flag is
        // set.
        self.is_stirred.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.ring(self.member.rank());
    }

    /// Wakes a worker of `rank`, which is of this node, or its helper if all workers
    /// compute.
    pub(super) fn ring(&self, rank: Rank) {
        self.member.control_of(rank).bells().ring_helped(&SystemFutex, || {});
    }

    /// Wakes the senders for which there may be room now; of each peer as many as a
    /// lane has cells.
    pub(super) fn give_room(&self, mut state: MutexGuard<'_, AmState>) {
        let has_room = take(&mut state.has_room);
        if !(state.machine.take_room() || has_room) || state.stuck_len == 0 {
            return;
        }
        let mut woken = Vec::new();
        for peer in 0..state.stuck.len() {
            if state.stuck[peer].is_empty() {
                continue;
            }
            // A cast has room whenever a call has. If more senders are woken than
            // find room, the rest wait again.
            let count = match self.check_room(&state, PeerIndex(peer as u32), false) {
                Ok(()) => self.shape.cells as usize,
                Err(SendError::Busy(_)) => 0,
                Err(_) => usize::MAX,
            };
            let stuck = &mut state.stuck[peer];
            let count = count.min(stuck.len());
            woken.extend(stuck.drain(..count).map(|stuck| stuck.waker));
            state.stuck_len -= count;
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}
