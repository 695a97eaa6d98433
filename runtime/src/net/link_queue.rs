//! The endpoint of a link: that of the device, or one with injected faults.

use super::device::DeviceQueue;
use super::fault::FaultyQueue;
use std::fmt;
use tsumugi_backends::ofi::{Arrival, DeviceFailure};
use tsumugi_core::backend::{Completion, Endpoint};
use tsumugi_core::mem::Rank;
use tsumugi_core::op::Op;

/// One endpoint of a device, perhaps with injected faults.
pub(super) enum LinkQueue<'d> {
    Plain(DeviceQueue<'d>),
    Faulty(Box<FaultyQueue<'d>>),
}

/// Runs the same code for each variant.
macro_rules! of_each {
    ($this:expr, $it:ident => $do:expr) => {
        match $this {
            Self::Plain($it) => $do,
            Self::Faulty($it) => $do,
        }
    };
}

impl LinkQueue<'_> {
    pub(super) fn index(&self) -> usize {
        of_each!(self, queue => queue.index())
    }

    /// Whether a packet to that rank, sent now, would overtake an operation posted
    /// before.
    #[inline]
    pub(super) fn holds(&self, rank: Rank) -> bool {
        match self {
            Self::Plain(queue) => queue.holds(rank),
            Self::Faulty(_) => false,
        }
    }

    /// The last error of the device, if there was one.
    pub(super) fn last_failure(&mut self) -> Option<DeviceFailure> {
        of_each!(self, queue => queue.last_failure())
    }

    /// Hands over what has arrived, and returns how many arrivals there were. There
    /// may be more if this is the number that is handed over at once.
    pub(super) fn receive(&mut self, handle: &mut dyn FnMut(Arrival<'_>)) -> usize {
        of_each!(self, queue => queue.receive(handle))
    }
}

impl Endpoint for LinkQueue<'_> {
    #[inline]
    fn post(&mut self, ops: &[Op]) -> usize {
        of_each!(self, queue => queue.post(ops))
    }

    #[inline]
    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        of_each!(self, queue => queue.poll(completions))
    }

    #[inline]
    fn turn(&mut self, ops: &[Op], completions: &mut [Completion]) -> (usize, usize) {
        of_each!(self, queue => queue.turn(ops, completions))
    }

    fn arm(&mut self) -> bool {
        of_each!(self, queue => queue.arm())
    }
}

impl fmt::Debug for LinkQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_each!(self, queue => queue.fmt(f))
    }
}
