//! Whoever waits: looks for a while, and then sleeps.

use super::Received;
use super::drive::{Messages, Under};
use super::route::on_wire;
use super::state::{State, Waiting, index};
use crate::{MessageError, Rank};
use std::ptr::NonNull;
use tsumugi_core::msg::{self, Ended, Pattern, Request};
use tsumugi_core::sync::{Ordering, UnsafeCell, spin_loop};
use tsumugi_core::wait::{Reason, Wait};
use tsumugi_ult::Here;

impl Messages {
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
            self.poll_far();
            let mut state = self.lock();
            let mut has_moved = state.take_arrived();
            for look in 0..LOOKS {
                has_moved |= on_wire!(state, |machine, wire| match from {
                    Some(rank) if look > 0 => machine.advance_from(wire, rank),
                    _ => machine.advance(wire),
                });
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
}

pub(super) fn received_of(received: msg::Received, room: usize) -> Result<Received, MessageError> {
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

fn looked_at(found: msg::Received) -> Received {
    Received { source: found.source, tag: found.tag, bytes: found.len as usize }
}

fn reason(source: Option<Rank>, tag: Option<u32>) -> Reason {
    let at = source.map_or(u64::MAX, |rank| u64::from(rank.0));
    Reason { what: "message", at, wanted: tag.map_or(u64::MAX, u64::from) }
}

/// Looks that a thread takes with the lock in its hands.
const LOOKS: u32 = 8;
