//! Waits for words that no thread does: a waiter in the parking lot ends an operation of
//! the rank's host table.

use crate::block_pool::PoolBox;
use crate::engine_call::hint;
use crate::handle::RankHandle;
use crate::node::RankNode;
use crate::panic;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};
use tsumugi_core::completion::{OnEnd, Ticket, Why};
use tsumugi_core::mem::{AddrError, Remote};
use tsumugi_core::signal::{DetachedWaiter, Until};
use tsumugi_core::sync::AtomicU64;
use tsumugi_core::tag::Tag;
use tsumugi_core::wait::Waker;
use tsumugi_ult::Here;

/// A wait for a word in flight. A wait that is dropped ends.
#[must_use = "a wait that is dropped ends"]
pub struct SignalInFlight<'a> {
    node: &'a RankNode,
    /// Taken by the calls that consume this.
    ticket: Option<Ticket<'a, PoolBox<SignalWait>>>,
}

/// The state of a wait that has begun.
#[derive(Debug)]
pub enum SignalBegun<'a> {
    /// It is over.
    Ended(Result<u64, AddrError>),
    /// It is in flight.
    InFlight(SignalInFlight<'a>),
}

/// A waiter, and the operation that it ends.
struct SignalWait {
    waiter: DetachedWaiter,
    node: NonNull<RankNode>,
    tag: Tag,
}

/// A wait with a callback; lies in its slot.
struct ThenSignal<F>(PoolBox<(SignalWait, F)>);

// SAFETY: the waiter's pointers are used by the protocol of the parking lot, from any
// thread; the node is used only while it drains its waiters.
unsafe impl Send for SignalWait {}

impl RankHandle {
    /// Begins to wait until a word of this rank's memory satisfies `until`. Never waits.
    ///
    /// # Errors
    ///
    /// As many operations are in flight as the rank has room for.
    pub fn begin_wait(&self, word: Remote<u64>, until: Until) -> Result<SignalBegun<'_>, Why> {
        let word = match self.look_at(word, until) {
            Ok(word) => word,
            Err(over) => return Ok(SignalBegun::Ended(over)),
        };
        let (node, tables) = (self.node(), self.node().host());
        // SAFETY: the box is in a slot beside the pool, or in a ticket that borrows both.
        let boxed = unsafe { tables.blocks().try_box(hint(), SignalWait::new(word, until, node)) };
        let boxed = boxed.map_err(|_| Why::NoTag)?;
        let ticket = tables.completions().try_begin(hint(), boxed).map_err(|_| Why::NoTag)?;
        // SAFETY: the slot has the box, and no other thread knows the tag.
        let boxed: &mut PoolBox<SignalWait> =
            unsafe { tables.completions().buffer_of(ticket.tag()).as_mut() };
        boxed.tag = ticket.tag();
        let wait = boxed.as_ptr();
        // SAFETY: the box stays until the tag was completed, or longer.
        unsafe { SignalWait::park(wait, node) };
        Ok(SignalBegun::InFlight(SignalInFlight { node, ticket: Some(ticket) }))
    }

    /// Begins to wait; `then` gets the result. Never waits.
    ///
    /// # Errors
    ///
    /// `then`: as many operations are in flight as the rank has room for.
    pub fn begin_wait_then<F>(
        &self,
        word: Remote<u64>,
        until: Until,
        then: F,
    ) -> Result<(), (F, Why)>
    where
        F: FnOnce(Result<u64, AddrError>) + Send + 'static,
    {
        let word = match self.look_at(word, until) {
            Ok(word) => word,
            Err(over) => {
                panic::call_back(|| then(over));
                return Ok(());
            }
        };
        let (node, tables) = (self.node(), self.node().host());
        let both = (SignalWait::new(word, until, node), then);
        // SAFETY: the box is in a slot beside the pool, or with the thread that ends the
        // wait, which keeps both.
        let boxed = unsafe { tables.blocks().try_box(hint(), both) };
        let boxed = boxed.map_err(|(_, then)| (then, Why::NoTag))?;
        let tag = tables.completions().try_begin_owned(hint(), ThenSignal(boxed));
        let tag = tag.map_err(|ThenSignal(boxed)| (boxed.into_inner().1, Why::NoTag))?;
        // SAFETY: the slot has the callback, and no other thread knows the tag.
        let place = unsafe { tables.completions().buffer_of::<ThenSignal<F>>(tag).as_mut() };
        let wait = &mut place.0.0;
        wait.tag = tag;
        let wait = NonNull::from(wait);
        // SAFETY: the box stays until the tag was completed.
        unsafe { SignalWait::park(wait, node) };
        Ok(())
    }

    /// The word, unless the wait is over.
    fn look_at(
        &self,
        word: Remote<u64>,
        until: Until,
    ) -> Result<&AtomicU64, Result<u64, AddrError>> {
        let word = self.own_word(word).map_err(Err)?;
        let node = self.node();
        match node.waiters().try_wait(node.parking_lot(), word, until) {
            Some(over) => Err(over),
            None => Ok(word),
        }
    }
}

impl SignalWait {
    fn new(word: &AtomicU64, until: Until, node: &RankNode) -> Self {
        let waiter = DetachedWaiter::new(word, until);
        Self { waiter, node: NonNull::from(node), tag: Tag::NONE }
    }

    /// Parks the waiter.
    ///
    /// # Safety
    ///
    /// The wait has its tag, and stays at its place until the tag was completed. Words of
    /// registered memory stay mapped.
    unsafe fn park(this: NonNull<Self>, node: &RankNode) {
        // SAFETY: the caller's promise.
        unsafe {
            let waiter = NonNull::new_unchecked(&raw mut (*this.as_ptr()).waiter);
            node.waiters().park_detached(node.parking_lot(), waiter, waker(this));
        }
    }
}

/// A waker that ends the wait, or parks it again.
fn waker(this: NonNull<SignalWait>) -> Waker {
    unsafe fn wake(this: *const ()) {
        let this = this.cast::<SignalWait>().cast_mut();
        // SAFETY: the wait stays until its tag was completed, below; its node is the one
        // that drains its waiters now.
        unsafe {
            let (node, tag) = ((*this).node.as_ref(), (*this).tag);
            let waiter = NonNull::new_unchecked(&raw mut (*this).waiter);
            let waker = waker(NonNull::new_unchecked(this));
            if let Some(over) = node.waiters().resume(node.parking_lot(), waiter, waker) {
                node.host().completions().complete(tag, over);
            }
        }
    }
    // SAFETY: the parking lot uses the waker once, while the wait stays.
    unsafe { Waker::new(this.as_ptr().cast_const().cast(), wake) }
}

impl SignalInFlight<'_> {
    /// Whether the wait is over; looks at the signals that have come if it is not.
    pub fn is_done(&self) -> bool {
        let is_done = || self.ticket.as_ref().is_none_or(Ticket::is_done);
        is_done() || {
            self.node.waiters().drain(self.node.parking_lot());
            is_done()
        }
    }

    /// Waits for the result. Blocking.
    pub fn wait(mut self) -> Result<u64, AddrError> {
        let ticket = self.ticket.take().expect("a wait has a ticket until it is over");
        ticket.wait(&Here).result
    }

    /// Polls for the result, as a future.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Result<u64, AddrError>> {
        let ticket = self.ticket.as_mut().expect("a wait is not polled after its end");
        let outcome = std::task::ready!(Pin::new(ticket).poll(context));
        self.ticket = None;
        Poll::Ready(outcome.result)
    }
}

impl Drop for SignalInFlight<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.as_ref().filter(|ticket| !ticket.is_done()) else { return };
        let boxed = self.node.host().completions().buffer_of::<PoolBox<SignalWait>>(ticket.tag());
        // SAFETY: the box is in the slot until the ticket is dropped, after this; others
        // only read it.
        let wait = unsafe { &**boxed.as_ptr() };
        self.node.waiters().leave(self.node.parking_lot(), &wait.waiter);
    }
}

impl<F: FnOnce(Result<u64, AddrError>) + Send + 'static> OnEnd for ThenSignal<F> {
    fn ended(self, result: Result<u64, AddrError>) {
        let (_, then) = self.0.into_inner();
        panic::call_back(|| then(result));
    }
}

impl fmt::Debug for SignalInFlight<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignalInFlight({:?})", self.ticket)
    }
}
