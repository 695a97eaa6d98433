//! A device that delivers completions twice, late and in any order, behind a table of
//! completions: an engine sees such a device, and a user only what the table lets
//! through.
//!
//! The suite requires that an operation completes once. An endpoint in a fault
//! wrapper does not keep that, nor does the simulator's endpoint. The table drops a
//! second completion by the generation of its tag.

use std::ptr::NonNull;
use tsumugi_core::backend::{Capabilities, Completion, Domain, Endpoint};
use tsumugi_core::completion::{CompletionTable, Completions, Ticket};
use tsumugi_core::mem::{Access, Rank, Region, RegionKey, RegisterError};
use tsumugi_core::op::Op;
use tsumugi_core::tag::Tag;

/// A device, its table of operations in flight, and the function that makes it move.
#[allow(missing_debug_implementations)]
pub struct Once<D> {
    domain: D,
    table: Box<CompletionTable<1>>,
    pump: Box<dyn Fn() + Sync>,
}

/// A queue of the device.
#[allow(missing_debug_implementations)]
pub struct OnceEndpoint<'d, E> {
    inner: E,
    operations: Completions<'d>,
    /// The tickets of operations in flight. The buffer that each owns is the caller's
    /// tag.
    tickets: Vec<Ticket<'d, Tag>>,
    pump: &'d (dyn Fn() + Sync),
}

impl<D: Domain> Once<D> {
    /// Wraps `domain`. `pump` is called before each poll, because simulated time
    /// stands still otherwise.
    pub fn new(domain: D, pump: impl Fn() + Sync + 'static) -> Self {
        Self { domain, table: Box::default(), pump: Box::new(pump) }
    }
}

impl<D: Domain> Domain for Once<D> {
    type Endpoint<'d>
        = OnceEndpoint<'d, D::Endpoint<'d>>
    where
        Self: 'd;

    fn capabilities(&self) -> Capabilities {
        let inner = self.domain.capabilities();
        let in_flight_max = inner.in_flight_max.min(self.table.view().capacity());
        Capabilities { in_flight_max, in_order: false, ..inner }
    }

    fn rank(&self) -> Rank {
        self.domain.rank()
    }

    fn size(&self) -> u32 {
        self.domain.size()
    }

    unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller keeps the contract of `register`.
        unsafe { self.domain.register(base, bytes, access) }
    }

    fn unregister(&self, key: RegionKey) -> bool {
        self.domain.unregister(key)
    }

    fn endpoint(&self) -> Self::Endpoint<'_> {
        OnceEndpoint {
            inner: self.domain.endpoint(),
            operations: self.table.view(),
            tickets: Vec::new(),
            pump: &*self.pump,
        }
    }
}

impl<E: Endpoint> Endpoint for OnceEndpoint<'_, E> {
    fn post(&mut self, ops: &[Op]) -> usize {
        for (taken, op) in ops.iter().enumerate() {
            let Ok(ticket) = self.operations.try_begin(0, op.tag) else { return taken };
            if self.inner.post(&[op.tagged(ticket.tag())]) == 0 {
                // SAFETY: the endpoint has not taken the operation.
                unsafe { ticket.retract() };
                return taken;
            }
            self.tickets.push(ticket);
        }
        ops.len()
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        (self.pump)();
        let mut came = [Completion::EMPTY; 8];
        let count = self.inner.poll(&mut came);
        for completion in &came[..count] {
            self.operations.complete(completion.tag, completion.result);
        }
        let mut delivered = 0;
        while delivered < completions.len()
            && let Some(at) = self.tickets.iter().position(Ticket::is_done)
        {
            let outcome = self.tickets.swap_remove(at).try_finish().expect("it is done");
            completions[delivered] = Completion { tag: outcome.buf, result: outcome.result };
            delivered += 1;
        }
        delivered
    }

    fn arm(&mut self) -> bool {
        self.inner.arm()
    }
}
