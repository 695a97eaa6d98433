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
//! Progress: beginning never waits, but for growth of the scheduler's tables.
//!
//! # The end of the rank
//!
//! After `main` has ended well, the rank ends when these operations have ended. If `main` fails
//! or panics, its ULTs are cut off, and the operations end with [`Carry::cut_off`], and so
//! do later ones. The blocks of operations in flight are marked in their pool, by which they
//! are found.

use crate::block_pool::PoolBox;
use crate::engine_call::hint;
use crate::handle::RankHandle;
use crate::host_operations::HostTables;
use crate::node::RankNode;
use crate::panic;
use std::fmt;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};
use tsumugi_core::completion::{OnEnd, Ticket, Why};
use tsumugi_core::mem::AddrError;
use tsumugi_core::tag::Tag;
use tsumugi_ult::Here;

/// An operation that blocks while it is carried out.
pub trait Carry: Send + 'static {
    /// Its result.
    type Output: Send + 'static;

    /// Carries the operation out. Called once. Blocking. If the rank ends meanwhile, the
    /// call does not return, and the operation stays where it is.
    fn carry(&mut self) -> Self::Output;

    /// The result of an operation that has not ended before its rank: an error.
    fn cut_off(&mut self) -> Self::Output;
}

/// An operation that a ULT carries out. If this is dropped, the operation goes on, and its
/// result is dropped.
#[must_use = "the result of an operation that is dropped is lost"]
pub struct CarriedTicket<'a, C: Carry>(Ticket<'a, PoolBox<CarriedBlock<C, ()>>>);

/// What an operation owns, with its callback or `()`.
#[repr(C)]
struct CarriedBlock<C: Carry, F> {
    head: CarriedHead,
    stage: CallStage<C>,
    then: F,
}

/// The beginning of the block of any operation that a ULT carries out.
struct CarriedHead {
    tag: Tag,
    /// Gives the operation of this block the result of one that is cut off.
    cut_off: unsafe fn(NonNull<CarriedHead>),
}

/// How far the operation is.
enum CallStage<C: Carry> {
    Begun(C),
    Ended(C::Output),
    Panicked,
}

/// An operation with a callback, in its slot.
#[repr(transparent)]
struct CarriedThen<C: Carry, F>(PoolBox<CarriedBlock<C, F>>);

impl RankHandle {
    /// Begins an operation on a ULT of this rank. Never waits.
    ///
    /// # Errors
    ///
    /// The operation: as many are in flight as the rank has room for.
    pub fn begin_carried<C: Carry>(&self, call: C) -> Result<CarriedTicket<'_, C>, (C, Why)> {
        let host = self.node().host();
        let back = |block: CarriedBlock<C, ()>| (block.into_parts().0, Why::NoTag);
        // SAFETY: the box is in a slot of the same node, in a ticket that borrows the
        // node, or with a ULT that keeps the node.
        let boxed = unsafe { host.blocks().try_box(hint(), CarriedBlock::new(call, ())) };
        let boxed = boxed.map_err(back)?;
        let ticket = host.completions().try_begin(hint(), boxed);
        let ticket = ticket.map_err(|boxed| back(boxed.into_inner()))?;
        // SAFETY: the slot has such a box, which no other thread uses yet.
        unsafe { self.spawn_for::<C, ()>(ticket.tag()) };
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
        let back = |block: CarriedBlock<C, F>| {
            let (call, then) = block.into_parts();
            (call, then, Why::NoTag)
        };
        // SAFETY: as in `begin_carried`.
        let boxed = unsafe { host.blocks().try_box(hint(), CarriedBlock::new(call, then)) };
        let boxed = boxed.map_err(back)?;
        let tag = host.completions().try_begin_owned(hint(), CarriedThen(boxed));
        let tag = tag.map_err(|CarriedThen(boxed)| back(boxed.into_inner()))?;
        // SAFETY: the slot has such a box, which no other thread uses yet.
        unsafe { self.spawn_for::<C, F>(tag) };
        Ok(())
    }

    /// Starts a ULT for the operation.
    ///
    /// # Safety
    ///
    /// The slot has a `PoolBox<CarriedBlock<C, F>>`, which no other thread uses yet.
    unsafe fn spawn_for<C: Carry, F: 'static>(&self, tag: Tag) {
        // SAFETY: the caller's promise.
        let boxed = unsafe { box_of::<C, F>(self.node().host(), tag) };
        // SAFETY: the same.
        unsafe { (*boxed.as_ptr().as_ptr()).head.tag = tag };
        boxed.mark();
        let node = self.shared_node().clone();
        // 24 bytes, for which a ULT's descriptor has room.
        let run: fn(&RankNode, Tag) = run::<C, F>;
        if self.spawner().worker().is_some() {
            // The worker's own pool of descriptors, to which ULTs that end return theirs.
            drop(tsumugi_ult::spawn(move || run(&node, tag)));
            return;
        }
        if self.spawner().try_spawn(move || run(&node, tag)).is_err() {
            // The rank ends, or has ended.
            if boxed.unmark() {
                // SAFETY: no ULT has the operation; the head comes first.
                unsafe { cut_off::<C, F>(boxed.as_ptr().cast()) };
                self.node().host().completions().complete(tag, Ok(0));
            }
        }
    }
}

impl HostTables {
    /// Whether an operation that a ULT carries out is in flight.
    pub(crate) fn has_carried(&self) -> bool {
        self.blocks().has_marked()
    }

    /// Ends the operations that ULTs carry out. The scheduler has ended, so no ULT runs.
    pub(crate) fn cut_off_carried(&self) {
        while let Some(block) = self.blocks().take_marked() {
            let head = block.cast::<CarriedHead>();
            // SAFETY: only blocks of these operations are marked; the caller has taken the
            // mark, so nothing else ends the operation, and its ULT does not run any more.
            let tag = unsafe {
                (head.as_ref().cut_off)(head);
                head.as_ref().tag
            };
            self.completions().complete(tag, Ok(0));
        }
    }
}

/// The box of an operation in flight.
///
/// # Safety
///
/// The slot has such a box, and the operation is not completed while the result is used.
unsafe fn box_of<C: Carry, F: 'static>(
    host: &HostTables,
    tag: Tag,
) -> &PoolBox<CarriedBlock<C, F>> {
    // SAFETY: the caller's promise; a `CarriedThen` has the layout of its box.
    unsafe { host.completions().buffer_of::<()>(tag).cast().as_ref() }
}

/// Carries out the operation of the slot, and puts its result there.
fn run<C: Carry, F: 'static>(node: &RankNode, tag: Tag) {
    // SAFETY: the slot has such a box, and the operation is in flight until the completion
    // below.
    let boxed = unsafe { box_of::<C, F>(node.host(), tag) };
    // SAFETY: until then nothing else uses the stage, except when this ULT is cut off.
    let stage = unsafe { &mut (*boxed.as_ptr().as_ptr()).stage };
    let CallStage::Begun(call) = stage else { unreachable!("an operation runs once") };
    let output = panic::contain(WHAT, || call.carry());
    *stage = output.map_or(CallStage::Panicked, CallStage::Ended);
    if boxed.unmark() {
        node.host().completions().complete(tag, Ok(0));
    }
}

/// Gives an operation the result of one that is cut off.
///
/// # Safety
///
/// The head is that of a `CarriedBlock<C, F>`, which nothing else uses.
unsafe fn cut_off<C: Carry, F>(head: NonNull<CarriedHead>) {
    // SAFETY: the caller's promise; the head comes first.
    let stage = unsafe { &mut (*head.cast::<CarriedBlock<C, F>>().as_ptr()).stage };
    if let CallStage::Begun(call) = stage {
        let output = call.cut_off();
        // The ULT that was cut off may have references to the operation, which is not
        // dropped.
        std::mem::forget(std::mem::replace(stage, CallStage::Ended(output)));
    }
}

/// On the stack of the ULT, which may block.
impl<C: Carry, F: FnOnce(C::Output) + Send + 'static> OnEnd for CarriedThen<C, F> {
    fn ended(self, _: Result<u64, AddrError>) {
        let CarriedBlock { stage, then, .. } = self.0.into_inner();
        if let CallStage::Ended(output) = stage {
            panic::call_back(|| then(output));
        }
    }
}

impl<C: Carry, F> CarriedBlock<C, F> {
    fn new(call: C, then: F) -> Self {
        let head = CarriedHead { tag: Tag::NONE, cut_off: cut_off::<C, F> };
        Self { head, stage: CallStage::Begun(call), then }
    }

    /// The parts of an operation that was not begun.
    fn into_parts(self) -> (C, F) {
        match self.stage {
            CallStage::Begun(call) => (call, self.then),
            _ => unreachable!("a table gives back what it got"),
        }
    }

    fn output(self) -> C::Output {
        match self.stage {
            CallStage::Ended(output) => output,
            CallStage::Begun(_) | CallStage::Panicked => panic!("the operation has panicked"),
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

impl<C: Carry> fmt::Debug for CarriedTicket<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CarriedTicket({:?})", self.0)
    }
}

const WHAT: &str = "an operation that a ULT carries out";
