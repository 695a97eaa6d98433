//! A collective in flight, which owns its buffers and which the rank's threads drive.
//!
//! ```text
//!  slot of the host table ◄── begin: reserves it, then takes a record
//!    │ owns the buffers, the operation and the result
//!    ▼
//!  record: workers and the helper move its schedule ──► the end: the result goes into the
//!          slot, the slot ends ──► ticket, waker or callback; the record is used again
//! ```
//!
//! A collective that is dropped in flight goes on to its end, because the other members wait
//! for this rank.

use super::buffers::{CollBuffers, CollScratch};
use super::exchange::Exchange;
use super::group::GroupHandle;
use super::service::{Collectives, Driven, ended_error};
use crate::block_pool::PoolBox;
use crate::engine_call::hint;
use crate::error::Error;
use crate::panic;
use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;
use tsumugi_core::coll::schedule::{CollPlan, CollTables, CombineOrder};
use tsumugi_core::completion::{OnEnd, Ticket, Why};
use tsumugi_core::mem::AddrError;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::tag::Tag;
use tsumugi_core::wait::{Reason, Wait};
use tsumugi_ult::Here;

/// What a collective in flight owns: its buffers, and its operation.
pub trait CollOwner: Send + 'static {
    /// What the caller gets back at the end.
    type Output: Send + 'static;

    /// Combines elements: see [`CombineFn`](super::CombineFn). Not called by collectives
    /// without an operation.
    fn combine(&self, from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder);

    /// What the caller gets back.
    fn output(self) -> Self::Output;
}

/// A collective that has not begun.
#[derive(Debug)]
pub struct CollCall {
    /// The steps of this member.
    pub plan: CollPlan,
    /// The memory that the steps need, and their tables of blocks.
    pub scratch: CollScratch,
    /// What this rank contributes.
    pub input: *const u8,
    /// The place of the result; may be the input.
    pub output: *mut u8,
    /// Whether the collective has an operation.
    pub combines: bool,
}

/// The state of a collective that has begun.
#[derive(Debug)]
pub enum CollBegun<'a, P: CollOwner> {
    /// It has ended inside the call.
    Ended(Result<P::Output, Error>),
    /// It is in flight.
    InFlight(CollInFlight<'a, P>),
}

/// A collective in flight. If it is dropped, it goes on to its end, and its result is lost.
#[must_use = "a collective that fails says so by its result"]
pub struct CollInFlight<'a, P: CollOwner> {
    ticket: Ticket<'a, PoolBox<OwnedCollective<P>>>,
    /// Which collective of the group it is.
    number: u32,
    /// Dropped after the ticket, of which it keeps the table.
    group: GroupHandle,
}

/// What the slot of a collective in flight owns.
struct OwnedCollective<P> {
    end: CollEnd,
    parts: ManuallyDrop<P>,
}

/// How a collective has ended.
#[derive(Default)]
struct CollEnd {
    result: Option<Result<(), Error>>,
    /// Messages in progress may still use the buffers, which are never freed then.
    leaks: bool,
}

/// A collective with a callback; lies in its slot.
struct ThenCollective<P, F>(PoolBox<(OwnedCollective<P>, F)>);

/// A collective under way, as the threads that move it see it.
pub(super) struct CollRecord {
    work: Mutex<Driving>,
    has_ended: AtomicBool,
}

/// What the thread that moves a collective uses.
struct Driving {
    /// `None`: no collective is under way.
    group: Option<GroupHandle>,
    /// `None`: the record was never used.
    exchange: Option<Exchange>,
    buffers: CollBuffers,
    scratch: CollScratch,
    combine: Option<ErasedCombine>,
    tag: Tag,
    end: NonNull<CollEnd>,
}

// SAFETY: the pointers are to memory that the operation's slot owns until the operation is
// completed, which happens once, by a thread that has the lock; any thread may use it.
unsafe impl Send for Driving {}

/// The operation of an owner of any type.
#[derive(Clone, Copy)]
struct ErasedCombine {
    run: unsafe fn(*const (), *const u8, *mut u8, usize, CombineOrder),
    parts: *const (),
}

// SAFETY: the owner is `Send`, and only the thread with the lock of the record uses it.
unsafe impl Send for ErasedCombine {}
// SAFETY: the same.
unsafe impl Sync for ErasedCombine {}

impl GroupHandle {
    /// Begins a collective that owns `parts`. Never waits.
    ///
    /// # Errors
    ///
    /// `parts`: as many operations are in flight as the rank has room for, and nothing
    /// happened. Other errors are the end of the collective.
    ///
    /// # Safety
    ///
    /// The buffers of `call` have the bytes that the plan needs, and stay where they are and
    /// valid until `parts` is dropped or gives them back, however it is moved; no other code
    /// uses them until then.
    pub unsafe fn begin_owned<P: CollOwner>(
        &self,
        call: CollCall,
        parts: P,
    ) -> Result<CollBegun<'_, P>, (P, Why)> {
        if let Err(error) = self.service().check() {
            return Ok(CollBegun::Ended(Err(error)));
        }
        let tables = self.service().messages().host().tables();
        let back = |owned: OwnedCollective<P>| (owned.into_parts(), Why::NoTag);
        // SAFETY: the box is in a slot beside the pool, or in a ticket that borrows both.
        let boxed = unsafe { tables.blocks().try_box(hint(), OwnedCollective::new(parts)) };
        let begun = boxed.map_err(back).and_then(|boxed| {
            let owned = boxed.as_ptr();
            let ticket = tables.completions().try_begin(hint(), boxed);
            Ok((ticket.map_err(|boxed| back(boxed.into_inner()))?, owned))
        });
        let (ticket, owned) = match begun {
            Ok(begun) => begun,
            Err(busy) => {
                self.keep_scratch(call.scratch);
                return Err(busy);
            }
        };
        // SAFETY: the box stays where it is until the operation is completed.
        let number = unsafe { self.start(call, ticket.tag(), owned) };
        match ticket.try_finish() {
            Ok(outcome) => Ok(CollBegun::Ended(outcome.buf.into_inner().output())),
            Err(ticket) => {
                Ok(CollBegun::InFlight(CollInFlight { ticket, number, group: self.clone() }))
            }
        }
    }

    /// Begins a collective that owns `parts`; `then` gets its end. Never waits.
    ///
    /// # Errors
    ///
    /// Both, as for [`begin_owned`](Self::begin_owned).
    ///
    /// # Safety
    ///
    /// As for [`begin_owned`](Self::begin_owned).
    pub unsafe fn begin_owned_then<P, F>(
        &self,
        call: CollCall,
        parts: P,
        then: F,
    ) -> Result<(), (P, F, Why)>
    where
        P: CollOwner,
        F: FnOnce(Result<P::Output, Error>) + Send + 'static,
    {
        if let Err(error) = self.service().check() {
            panic::call_back(|| then(Err(error)));
            return Ok(());
        }
        let tables = self.service().messages().host().tables();
        let back = |(owned, then): (OwnedCollective<P>, F)| (owned.into_parts(), then, Why::NoTag);
        // SAFETY: the box is in a slot beside the pool, or with the thread that ends the
        // collective, which keeps both.
        let boxed = unsafe { tables.blocks().try_box(hint(), (OwnedCollective::new(parts), then)) };
        let begun = boxed.map_err(back).and_then(|boxed| {
            // SAFETY: the box has such a pair.
            let owned = unsafe { NonNull::new_unchecked(&raw mut (*boxed.as_ptr().as_ptr()).0) };
            let tag = tables.completions().try_begin_owned(hint(), ThenCollective(boxed));
            Ok((tag.map_err(|ThenCollective(boxed)| back(boxed.into_inner()))?, owned))
        });
        let (tag, owned) = match begun {
            Ok(begun) => begun,
            Err(busy) => {
                self.keep_scratch(call.scratch);
                return Err(busy);
            }
        };
        // SAFETY: the box stays where it is until the operation is completed.
        unsafe { self.start(call, tag, owned) };
        Ok(())
    }

    /// Starts the collective of an operation; returns its number.
    ///
    /// # Safety
    ///
    /// That of [`begin_owned`](Self::begin_owned); the operation with this tag is in flight,
    /// and `owned` stays where it is until it is completed.
    unsafe fn start<P: CollOwner>(
        &self,
        mut call: CollCall,
        tag: Tag,
        owned: NonNull<OwnedCollective<P>>,
    ) -> u32 {
        let scratch = self.fit(&mut call.scratch, call.plan.scratch_bytes());
        // SAFETY: `owned` is valid.
        let (parts, end) = unsafe {
            let owned = owned.as_ptr();
            (&raw const (*owned).parts, NonNull::new_unchecked(&raw mut (*owned).end))
        };
        let combine = ErasedCombine { run: run_combine::<P>, parts: parts.cast() };
        let exchange = Exchange::new(call.plan, self);
        let number = exchange.number();
        let record = CollRecord::take(self.service());
        *record.work() = Driving {
            group: Some(self.clone()),
            exchange: Some(exchange),
            buffers: CollBuffers { input: call.input, output: call.output, scratch },
            scratch: call.scratch,
            combine: call.combines.then_some(combine),
            tag,
            end,
        };
        record.advance();
        self.service().drive(record);
        number
    }
}

/// Calls the operation of the `P` at `parts`.
///
/// # Safety
///
/// `parts` points to a `P`, which no other thread uses now.
unsafe fn run_combine<P: CollOwner>(
    parts: *const (),
    from: *const u8,
    into: *mut u8,
    bytes: usize,
    order: CombineOrder,
) {
    // SAFETY: the caller's promise; `ManuallyDrop` has the layout of what it has.
    unsafe { &*parts.cast::<P>() }.combine(from, into, bytes, order);
}

impl ErasedCombine {
    /// Any thread of the rank calls it, so an operation that would wait panics, as a callback
    /// does.
    fn call(self, from: *const u8, into: *mut u8, bytes: usize, order: CombineOrder) {
        let spans = (from.expose_provenance(), into.expose_provenance());
        tsumugi_ult::callback(move || {
            // All of it is moved in, because only the whole is `Send`.
            let Self { run, parts } = { self };
            let from = std::ptr::with_exposed_provenance(spans.0);
            let into = std::ptr::with_exposed_provenance_mut(spans.1);
            // SAFETY: the slot has the owner until the operation is completed, and the caller
            // has the lock of the record.
            unsafe { run(parts, from, into, bytes, order) }
        });
    }
}

impl CollRecord {
    /// A record without a collective.
    fn new() -> Self {
        let idle = Driving {
            group: None,
            exchange: None,
            buffers: CollBuffers::NONE,
            scratch: CollScratch::default(),
            combine: None,
            tag: Tag::NONE,
            end: NonNull::dangling(),
        };
        Self { work: Mutex::new(idle), has_ended: AtomicBool::new(false) }
    }

    /// A record without a collective: one of a collective that has ended, if there is one.
    /// A thread that was about to move that one may move the next one in its place.
    fn take(service: &Collectives) -> Arc<Self> {
        let idle: Option<Arc<dyn Any + Send + Sync>> =
            service.idle_record().map(|record| record as _);
        let idle = idle.and_then(|record| record.downcast::<Self>().ok());
        let record = idle.unwrap_or_else(|| Arc::new(Self::new()));
        record.has_ended.store(false, Ordering::Relaxed);
        record
    }

    fn work(&self) -> MutexGuard<'_, Driving> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the result into the slot, and completes the operation.
    fn finish(&self, mut work: MutexGuard<'_, Driving>, result: Result<(), Error>, leaks: bool) {
        let group = work.group.take().expect("the collective is under way");
        let (tag, scratch) = (work.tag, std::mem::take(&mut work.scratch));
        // SAFETY: the slot has the end until the operation is completed, below.
        unsafe { work.end.write(CollEnd { result: Some(result), leaks }) };
        drop(work);
        // Release: a thread that sees it uses the record again.
        self.has_ended.store(true, Ordering::Release);
        // Before the caller learns of the end: its next collective takes this record.
        group.service().retire(self);
        match leaks {
            true => std::mem::forget(scratch),
            false => group.keep_scratch(scratch),
        }
        let tables = group.service().messages().host().tables();
        tables.completions().complete(tag, Ok(0));
    }
}

impl Driven for CollRecord {
    fn has_ended(&self) -> bool {
        // Acquire: pairs with the Release in `finish`.
        self.has_ended.load(Ordering::Acquire)
    }

    fn advance(&self) -> bool {
        let Ok(mut guard) = self.work.try_lock() else { return false };
        let work = &mut *guard;
        let Some((group, exchange)) = work.group.as_ref().zip(work.exchange.as_mut()) else {
            return false;
        };
        let mut any = false;
        let (result, leaks) = loop {
            let tables = CollTables {
                sent: &work.scratch.blocks[0],
                received: &work.scratch.blocks[1],
                ..group.tables()
            };
            let combine = work.combine;
            let combine = combine.map(|combine| move |a, b, c, d| combine.call(a, b, c, d));
            let combine = combine.as_ref().map(|combine| combine as &super::CombineFn<'_>);
            let posted = panic::contain("the operation of a collective", || {
                // SAFETY: the promise of `begin_owned`.
                unsafe { exchange.post(group, &tables, &work.buffers, combine) }
            });
            if posted.is_none() {
                exchange.unwatch(group);
                let error = Error::program("the operation of a collective has panicked");
                break (Err(error), true);
            }
            if let Some(result) = exchange.poll_done() {
                break (result, false);
            }
            if !exchange.look(group) {
                return any;
            }
            any = true;
        };
        self.finish(guard, result, leaks);
        true
    }

    fn abandon(&self) {
        let work = self.work();
        if work.group.is_some() {
            // Messages in progress may still use the buffers.
            self.finish(work, Err(ended_error()), true);
        }
    }

    fn waits_for(&self) -> Option<Reason> {
        // A thread that moves the collective does not wait, but it may compute for long.
        let work = (0..REPORT_LOOKS).find_map(|_| {
            let work = self.work.try_lock().ok();
            if work.is_none() {
                thread::sleep(REPORT_LOOK);
            }
            work
        })?;
        work.exchange.as_ref()?.waits_for(work.group.as_ref()?)
    }
}

impl<P: CollOwner> CollInFlight<'_, P> {
    /// Whether the collective has ended; moves it on if it has not. Never waits.
    pub fn is_done(&self) -> bool {
        self.ticket.is_done() || {
            self.group.service().make_progress();
            self.ticket.is_done()
        }
    }

    /// Waits for the end. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`run`](GroupHandle::run).
    pub fn wait(self) -> Result<P::Output, Error> {
        self.wait_named(NO_NAME)
    }

    /// Does the same; reports name the call that has begun the collective.
    ///
    /// # Errors
    ///
    /// Those of [`run`](GroupHandle::run).
    pub fn wait_named(self, call: &'static str) -> Result<P::Output, Error> {
        tsumugi_ult::assert_may_block("collective");
        for _ in 0..LOOKS {
            if self.is_done() {
                break;
            }
            Here.yield_now();
        }
        let Self { ticket, number, group } = self;
        let reason = Reason { what: call, at: group.numbered(number), wanted: IN_FLIGHT };
        let output = ticket.wait_because(&Here, reason).buf.into_inner().output();
        drop(group);
        output
    }

    /// The same collective, without the borrow of its group.
    pub fn detach(self) -> CollInFlight<'static, P> {
        let Self { ticket, number, group } = self;
        // SAFETY: the group keeps the messages of its rank, which keep the table of the
        // ticket; a collective in flight drops or uses up the ticket before the group.
        let ticket = unsafe {
            std::mem::transmute::<
                Ticket<'_, PoolBox<OwnedCollective<P>>>,
                Ticket<'static, PoolBox<OwnedCollective<P>>>,
            >(ticket)
        };
        CollInFlight { ticket, number, group }
    }

    /// Polls for the end, as a future.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Result<P::Output, Error>> {
        if !self.ticket.is_done() {
            self.group.service().make_progress();
        }
        let outcome = ready!(Pin::new(&mut self.ticket).poll(context));
        Poll::Ready(outcome.buf.into_inner().output())
    }
}

impl<P> OwnedCollective<P> {
    fn new(parts: P) -> Self {
        Self { end: CollEnd::default(), parts: ManuallyDrop::new(parts) }
    }

    /// The parts of a collective that has not begun, or whose buffers are free.
    fn into_parts(self) -> P {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once, because `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.parts) }
    }
}

impl<P: CollOwner> OwnedCollective<P> {
    /// The result of a collective that has ended.
    fn output(mut self) -> Result<P::Output, Error> {
        self.end.result.take().expect("the collective has ended")?;
        Ok(self.into_parts().output())
    }
}

impl<P> Drop for OwnedCollective<P> {
    fn drop(&mut self) {
        if !self.end.leaks {
            // SAFETY: not used again.
            unsafe { ManuallyDrop::drop(&mut self.parts) };
        }
    }
}

impl<P, F> OnEnd for ThenCollective<P, F>
where
    P: CollOwner,
    F: FnOnce(Result<P::Output, Error>) + Send + 'static,
{
    fn ended(self, _: Result<u64, AddrError>) {
        let (owned, then) = self.0.into_inner();
        let output = owned.output();
        panic::call_back(|| then(output));
    }
}

/// What a waiter for a collective in flight has in the place of a rank for which it waits: that
/// changes while it sleeps, and the service knows it.
pub(crate) const IN_FLIGHT: u64 = u64::MAX;
/// The call that has begun a collective, if it has no name for the program.
pub(crate) const NO_NAME: &str = "collective";

/// How often, and after which times, a report looks whether another thread has done with the
/// collective: that thread may have lost its core.
const REPORT_LOOKS: u32 = 200;
const REPORT_LOOK: Duration = Duration::from_micros(500);

/// How often a waiter looks before it sleeps.
const LOOKS: u32 = 16;

impl<P: CollOwner> fmt::Debug for CollInFlight<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CollInFlight({:?})", self.group)
    }
}
