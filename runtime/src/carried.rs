//! Operations that a ULT carries out, by blocking calls, for a caller that does not wait.
//!
//! Operations of several steps (a put and a signal, an access to a page that moves, a
//! barrier) are blocking code. A ULT is the state machine of such an operation: it costs a
//! descriptor and a stack from the pools of its scheduler, and allocates nothing.
//!
//! ```text
//!  caller ── slot: the operation ──► ULT: takes it, carries it out, puts the result into
//!            the slot ──► completes the tag ──► ticket, waker or callback
//! ```
//!
//! Progress: beginning never waits, but for growth of the scheduler's tables. If the
//! scheduler has ended, the calling thread carries the operation out itself.

use crate::block_pool::PoolBox;
use crate::engine_call::hint;
use crate::handle::RankHandle;
use crate::node::RankNode;
use crate::panic;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tsumugi_core::completion::{OnEnd, Ticket, Why};
use tsumugi_core::mem::AddrError;
use tsumugi_core::tag::Tag;
use tsumugi_ult::Here;

/// An operation that blocks while it is carried out.
pub trait Carry: Send + 'static {
    /// Its result.
    type Output: Send + 'static;

    /// Carries the operation out. Blocking.
    fn carry(self) -> Self::Output;
}

/// An operation that a ULT carries out. If this is dropped, the operation goes on, and its
/// result is dropped.
#[must_use = "the result of an operation that is dropped is lost"]
pub struct CarriedTicket<'a, C: Carry>(Ticket<'a, PoolBox<CallStage<C>>>);

/// How far the operation is.
enum CallStage<C: Carry> {
    Begun(C),
    /// The ULT has the operation. It stays so if the operation panics.
    Running,
    Ended(C::Output),
}

/// An operation with a callback; lies in the slot until its ULT runs.
struct CarriedThen<C, F>(PoolBox<(C, F)>);

impl RankHandle {
    /// Begins an operation on a ULT of this rank. Never waits.
    ///
    /// # Errors
    ///
    /// The operation: as many are in flight as the rank has room for.
    pub fn begin_carried<C: Carry>(&self, call: C) -> Result<CarriedTicket<'_, C>, (C, Why)> {
        let host = self.node().host();
        let back = |stage| match stage {
            CallStage::Begun(call) => (call, Why::NoTag),
            _ => unreachable!("a table gives back what it got"),
        };
        // SAFETY: the box is in a slot of the same node, in a ticket that borrows the
        // node, or with a ULT that keeps the node.
        let boxed = unsafe { host.blocks().try_box(hint(), CallStage::Begun(call)) };
        let boxed = boxed.map_err(back)?;
        let ticket = host.completions().try_begin(hint(), boxed);
        let ticket = ticket.map_err(|boxed| back(boxed.into_inner()))?;
        self.spawn_for(ticket.tag(), run::<C>);
        Ok(CarriedTicket(ticket))
    }

    /// Begins an operation on a ULT of this rank, which calls `then` with the result. Never
    /// waits.
    ///
    /// # Errors
    ///
    /// Both: as many operations are in flight as the rank has room for.
    pub fn begin_carried_then<C, F>(&self, call: C, then: F) -> Result<(), (C, F, Why)>
    where
        C: Carry,
        F: FnOnce(C::Output) + Send + 'static,
    {
        let host = self.node().host();
        let back = |(call, then)| (call, then, Why::NoTag);
        // SAFETY: as in `begin_carried`.
        let boxed = unsafe { host.blocks().try_box(hint(), (call, then)) }.map_err(back)?;
        let tag = host.completions().try_begin_owned(hint(), CarriedThen(boxed));
        let tag = tag.map_err(|CarriedThen(boxed)| back(boxed.into_inner()))?;
        self.spawn_for(tag, run_then);
        Ok(())
    }

    /// Starts a ULT that runs `run` for the operation.
    fn spawn_for(&self, tag: Tag, run: fn(&RankNode, Tag)) {
        let node = self.shared_node().clone();
        // 24 bytes, for which a ULT's descriptor has room.
        if self.spawner().worker().is_some() {
            // The worker's own pool of descriptors, to which ULTs that end return theirs.
            drop(tsumugi_ult::spawn(move || run(&node, tag)));
            return;
        }
        if let Err(run_here) = self.spawner().try_spawn(move || run(&node, tag)) {
            run_here();
        }
    }
}

/// Carries out the operation of the slot, and puts its result there.
fn run<C: Carry>(node: &RankNode, tag: Tag) {
    let table = node.host().completions();
    // SAFETY: the slot has such a box, and the operation is in flight until the completion
    // below: until then nothing else uses the value in the box.
    let at = unsafe { table.buffer_of::<PoolBox<CallStage<C>>>(tag).as_ref() }.as_ptr();
    // SAFETY: the same.
    let stage = unsafe { at.replace(CallStage::Running) };
    let CallStage::Begun(call) = stage else { unreachable!("an operation runs once") };
    if let Some(output) = panic::contain(WHAT, || call.carry()) {
        // SAFETY: the same.
        unsafe { at.write(CallStage::Ended(output)) };
    }
    table.complete(tag, Ok(0));
}

/// Has the callback in the slot carry out its operation.
fn run_then(node: &RankNode, tag: Tag) {
    node.host().completions().complete(tag, Ok(0));
}

/// On the stack of the ULT, which may block.
impl<C: Carry, F: FnOnce(C::Output) + Send + 'static> OnEnd for CarriedThen<C, F> {
    fn ended(self, _: Result<u64, AddrError>) {
        let (call, then) = self.0.into_inner();
        if let Some(output) = panic::contain(WHAT, || call.carry()) {
            panic::call_back(|| then(output));
        }
    }
}

impl<C: Carry> CarriedTicket<'_, C> {
    /// Whether the operation has ended.
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// Waits for the result. Blocking.
    ///
    /// # Panics
    ///
    /// If the operation has panicked.
    pub fn wait(self) -> C::Output {
        self.0.wait(&Here).buf.into_inner().output()
    }

    /// Polls for the result, as a future.
    ///
    /// # Panics
    ///
    /// If the operation has panicked.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<C::Output> {
        Pin::new(&mut self.0).poll(context).map(|outcome| outcome.buf.into_inner().output())
    }
}

impl<C: Carry> CallStage<C> {
    fn output(self) -> C::Output {
        match self {
            Self::Ended(output) => output,
            Self::Begun(_) | Self::Running => panic!("the operation has panicked"),
        }
    }
}

impl<C: Carry> fmt::Debug for CarriedTicket<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CarriedTicket({:?})", self.0)
    }
}

const WHAT: &str = "an operation that a ULT carries out";
