//! The shared data of one worker.

use super::record::Notes;
use super::turn::Turn;
use crate::bias::Bias;
use crate::deque::Deque;
use crate::fences::Fences;
use crate::inject::Inject;
use crate::mail::Mail;
use crate::offer::Offer;
use crate::task::Task;
use core::ptr;
use tsumugi_core::stats::Counters;
use tsumugi_core::sync::{CachePadded, shown};

/// The shared data of one worker: its owner pushes, thieves take.
pub(crate) struct Seat {
    pub(super) place: CachePadded<Place>,
    /// A slot through which a spinning worker is handed a ULT that ran there last.
    pub(crate) mail: Mail<Task>,
    /// A slot with the oldest ULTs of `ready`, for a worker that has nothing.
    pub(crate) offer: Offer<Task>,
    /// New and woken ULTs, the youngest first.
    pub(crate) ready: Deque<Task>,
    /// ULTs that yielded, and ULTs from outside, the oldest first.
    pub(crate) yielded: Deque<Task>,
    /// ULTs that must run on this worker, pushed by other threads.
    pub(crate) pinned: Inject<Task>,
    pub(crate) counters: Counters,
    pub(crate) notes: CachePadded<Notes>,
}

/// What the worker writes at every switch.
pub(super) struct Place {
    /// The bias of the park words, and this worker's turn. Only the bias of the
    /// first seat is used: in a scheduler of one worker, that worker is its owner.
    pub(super) parks: Bias<Turn>,
    /// The ULT that runs; null while the hub runs.
    pub(super) current: shown::AtomicPtr<Task>,
}

impl Seat {
    pub(super) fn new(shared: bool, fences: Fences) -> Self {
        Self {
            place: CachePadded::new(Place {
                parks: Bias::through(Turn::new()),
                current: shown::AtomicPtr::new(ptr::null_mut()),
            }),
            mail: Mail::new(),
            offer: Offer::new(shared, fences),
            ready: Deque::new(SLOTS, shared, fences),
            yielded: Deque::new(SLOTS, shared, fences),
            pinned: Inject::new(),
            counters: Counters::new(),
            notes: CachePadded::new(Notes::new()),
        }
    }
}

/// Number of entries that a deque has before it grows.
pub(crate) const SLOTS: usize = if cfg!(tsumugi_loom) { 2 } else { 256 };
