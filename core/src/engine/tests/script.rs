//! A device under the control of a test.

use super::super::*;
use crate::backend::Completion;
use crate::completion::Completions;
use crate::mem::{Rank, RegionKey, RemoteAddr, Width};
use crate::sync::{AtomicU32, Ordering};
use std::boxed::Box;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::vec::Vec;

/// The script of a device, and the calls that it got.
#[derive(Default)]
pub(super) struct Script {
    /// Operations that one post takes.
    pub(super) room: usize,
    pub(super) posted: Vec<Tag>,
    /// The completions of the next polls.
    pub(super) done: VecDeque<Completion>,
    pub(super) posts: usize,
    pub(super) polls: usize,
    pub(super) turns: usize,
    pub(super) arms: usize,
    pub(super) can_arm: bool,
    /// Called in the next poll.
    pub(super) hook: Option<Box<dyn FnOnce() + Send>>,
}

#[derive(Clone)]
pub(super) struct Device(Arc<Mutex<Script>>);

impl Device {
    /// A device whose posts take `room` operations each.
    pub(super) fn new(room: usize) -> Self {
        Self(Arc::new(Mutex::new(Script { room, ..Script::default() })))
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }

    pub(super) fn indices(&self) -> Vec<usize> {
        self.script().posted.iter().map(|tag| tag.index()).collect()
    }

    pub(super) fn ends(&self, tag: Tag, value: u64) {
        self.script().done.push_back(Completion { tag, result: Ok(value) });
    }

    /// Ends all operations that were posted and have not ended.
    pub(super) fn end_all(&self) {
        let mut script = self.script();
        let posted = core::mem::take(&mut script.posted);
        script.done.extend(posted.into_iter().map(|tag| Completion { tag, result: Ok(0) }));
    }
}

impl Script {
    pub(super) fn post(&mut self, ops: &[Op]) -> usize {
        let taken = self.room.min(ops.len());
        self.posted.extend(ops[..taken].iter().map(|op| op.tag));
        taken
    }

    pub(super) fn poll(&mut self, into: &mut [Completion]) -> usize {
        let count = into.len().min(self.done.len());
        into.iter_mut().zip(self.done.drain(..count)).for_each(|(place, done)| *place = done);
        count
    }
}

impl Endpoint for Device {
    fn post(&mut self, ops: &[Op]) -> usize {
        let mut script = self.script();
        script.posts += 1;
        script.post(ops)
    }

    fn poll(&mut self, into: &mut [Completion]) -> usize {
        let mut script = self.script();
        script.polls += 1;
        let (count, hook) = (script.poll(into), script.hook.take());
        drop(script);
        hook.into_iter().for_each(|hook| hook());
        count
    }

    fn turn(&mut self, ops: &[Op], into: &mut [Completion]) -> (usize, usize) {
        let mut script = self.script();
        script.turns += 1;
        (script.post(ops), script.poll(into))
    }

    fn arm(&mut self) -> bool {
        let mut script = self.script();
        script.arms += 1;
        script.can_arm
    }
}

pub(super) fn get() -> Op {
    let at = RemoteAddr { rank: Rank(0), key: RegionKey::new(0, 1), offset: 0 };
    Op::get_word(at, Width::W8)
}

/// An operation that counts its end.
pub(super) fn counted(completions: &Completions<'_>, ends: &AtomicU32) -> Op {
    fn count(ends: *mut (), _: Result<u64, AddrError>) {
        // SAFETY: the count of a test, which outlives its operations.
        unsafe { &*ends.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: an atomic.
    let callback = unsafe { Callback::new(count, (&raw const *ends).cast_mut().cast()) };
    get().tagged(completions.try_begin_callback(0, callback).unwrap())
}

/// An operation with a callback that panics.
pub(super) fn panicking(completions: &Completions<'_>) -> Op {
    fn panics(_: *mut (), _: Result<u64, AddrError>) {
        panic!("a callback has had enough");
    }
    // SAFETY: it touches nothing.
    let callback = unsafe { Callback::new(panics, core::ptr::null_mut()) };
    get().tagged(completions.try_begin_callback(0, callback).unwrap())
}

pub(super) fn counts(counts: &PortCounts) -> [u64; 4] {
    [&counts.doorbells, &counts.posted, &counts.completed, &counts.stale]
        .map(|count| count.load(Ordering::Relaxed))
}
