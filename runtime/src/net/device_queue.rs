//! One endpoint of a device, perhaps with injected faults.
//!
//! ```text
//!  DeviceQueue ─┬─ Ofi(OfiEndpoint)
//!               ├─ Verbs(VerbsEndpoint)
//!               └─ Faulty(dyn WrappedQueue) ─► another DeviceQueue
//! ```

use std::fmt;
use tsumugi_backends::ofi::{Arrival, DeviceFailure, OfiEndpoint};
use tsumugi_backends::verbs::VerbsEndpoint;
use tsumugi_core::backend::{Completion, Endpoint};
use tsumugi_core::mem::Rank;
use tsumugi_core::op::Op;
#[cfg(any(test, feature = "testing"))]
use tsumugi_test_networks::hub::HubEndpoint;

/// See the module.
pub(super) enum DeviceQueue<'d> {
    Ofi(OfiEndpoint<'d>),
    Verbs(VerbsEndpoint<'d>),
    #[cfg(any(test, feature = "testing"))]
    Hub(HubEndpoint<'d>),
    Faulty(Box<dyn WrappedQueue + 'd>),
}

/// A queue around another one, which injects faults. The methods are those of
/// [`DeviceQueue`] and of [`Endpoint`].
pub(super) trait WrappedQueue: Send + fmt::Debug {
    fn index(&self) -> usize;
    fn last_failure(&mut self) -> Option<DeviceFailure>;
    fn receive(&mut self, handle: &mut dyn FnMut(Arrival<'_>)) -> usize;
    fn post(&mut self, ops: &[Op]) -> usize;
    fn poll(&mut self, completions: &mut [Completion]) -> usize;
    fn arm(&mut self) -> bool;
}

/// Runs the same code for each variant.
macro_rules! of_each {
    ($this:expr, $it:ident => $do:expr) => {
        match $this {
            Self::Ofi($it) => $do,
            Self::Verbs($it) => $do,
            #[cfg(any(test, feature = "testing"))]
            Self::Hub($it) => $do,
            Self::Faulty($it) => $do,
        }
    };
}

impl DeviceQueue<'_> {
    pub(super) fn index(&self) -> usize {
        of_each!(self, endpoint => endpoint.index())
    }

    /// Whether a packet to that rank, sent now, would overtake an operation posted
    /// before.
    #[inline]
    pub(super) fn holds(&self, rank: Rank) -> bool {
        match self {
            Self::Ofi(endpoint) => endpoint.holds(rank),
            Self::Verbs(endpoint) => endpoint.holds(rank),
            // The hub keeps no order.
            #[cfg(any(test, feature = "testing"))]
            Self::Hub(_) => false,
            Self::Faulty(_) => false,
        }
    }

    /// The last error of the device, if there was one.
    pub(super) fn last_failure(&mut self) -> Option<DeviceFailure> {
        match self {
            Self::Ofi(endpoint) => endpoint.failures().last,
            Self::Verbs(endpoint) => endpoint.failures().last,
            #[cfg(any(test, feature = "testing"))]
            Self::Hub(endpoint) => endpoint.failures().last,
            Self::Faulty(queue) => queue.last_failure(),
        }
    }

    /// Hands over what has arrived, and returns how many arrivals there were. There
    /// may be more if this is the number that is handed over at once.
    pub(super) fn receive(&mut self, handle: &mut dyn FnMut(Arrival<'_>)) -> usize {
        of_each!(self, endpoint => endpoint.receive(handle))
    }
}

impl Endpoint for DeviceQueue<'_> {
    #[inline]
    fn post(&mut self, ops: &[Op]) -> usize {
        of_each!(self, endpoint => endpoint.post(ops))
    }

    #[inline]
    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        of_each!(self, endpoint => endpoint.poll(completions))
    }

    #[inline]
    fn turn(&mut self, ops: &[Op], completions: &mut [Completion]) -> (usize, usize) {
        match self {
            Self::Ofi(endpoint) => endpoint.turn(ops, completions),
            Self::Verbs(endpoint) => endpoint.turn(ops, completions),
            #[cfg(any(test, feature = "testing"))]
            Self::Hub(endpoint) => endpoint.turn(ops, completions),
            Self::Faulty(queue) => (queue.post(ops), queue.poll(completions)),
        }
    }

    fn arm(&mut self) -> bool {
        of_each!(self, endpoint => endpoint.arm())
    }
}

impl fmt::Debug for DeviceQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_each!(self, endpoint => endpoint.fmt(f))
    }
}
