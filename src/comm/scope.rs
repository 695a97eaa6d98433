//! Messages with borrowed buffers: the scope does not end before the messages have
//! ended.

use super::request::{Receiving, Sending};
use crate::{Comm, MessageError, Plain, Rank, Source, Tags};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tsumugi_runtime::service::messages::Under;

/// The scope in which messages with borrowed buffers begin, see [`Comm::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    comm: &'scope Comm,
    begun: RefCell<Begun>,
    /// Invariant in both lifetimes, as [`std::thread::Scope`] is.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The messages that have begun in a scope; the first ones are stored in the scope
/// itself.
#[derive(Default)]
struct Begun {
    first: heapless::Vec<Under, FIRST>,
    more: Vec<Under>,
}

impl Comm {
    /// Runs `body`, in which messages may begin with buffers that are borrowed from
    /// outside, and waits for those messages that have not ended when `body`
    /// returns.
    ///
    /// If `body` panics, receives without a message are cancelled, and so are sends
    /// that wait for room. A long send that was announced to its receiver cannot be
    /// cancelled, because the receiver may be reading its buffer: the panic leaves the
    /// scope when the receiver has taken the message or has died, or when this rank
    /// has ended.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> Result<(), tsumugi::Error> {
    /// # tsumugi::run(|rt| {
    /// let comm = rt.comm();
    /// let (sent, mut received) = ([1u32, 2, 3], [0u32; 3]);
    /// comm.scope(|scope| {
    ///     scope.irecv(rt.rank(), 7, &mut received)?;
    ///     scope.isend(rt.rank(), 7, &sent)?;
    ///     scope.wait_all()
    /// })?;
    /// assert_eq!(sent, received);
    /// # Ok::<_, tsumugi::Error>(()) })
    /// # }
    /// ```
    pub fn scope<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        // Checked before a message can refer to a buffer for which the scope's end
        // waits.
        tsumugi_ult::assert_may_block("message");
        let scope =
            Scope { comm: self, begun: RefCell::default(), scope: PhantomData, env: PhantomData };
        let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        let messages = self.messages();
        if result.is_err() {
            scope.begun.borrow().iter().for_each(|under| messages.cancel(under));
        }
        for under in scope.begun.take().iter().filter(|under| messages.is_held(*under)) {
            // The result is ignored: a caller that needs it calls `wait_all`.
            let _ = messages.finish_orphan(under);
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Begins to send `values` to `to`.
    ///
    /// # Errors
    ///
    /// [`MessageError::NoSuchRank`], [`MessageError::PeerLost`],
    /// [`MessageError::Ended`] and [`MessageError::TooMany`], as for [`Comm::send`]. Errors that occur later
    /// are returned by [`Sending::wait`], or by [`wait_all`](Self::wait_all) if
    /// there is no handle.
    pub fn isend<T: Plain>(
        &'scope self,
        to: Rank,
        tag: u32,
        values: &'env [T],
    ) -> Result<Sending<'scope, &'scope [T]>, MessageError> {
        // SAFETY: the values are borrowed until the scope has ended, and the scope
        // waits for this message. If a ULT is cut off in the scope, the scope never
        // ends, and the borrowed values stay, because no scope of ULTs ends under
        // one of its ULTs.
        let under = unsafe { self.comm.begin_send(to, tag, values) }?;
        self.begun.borrow_mut().push(under);
        Ok(Sending::new(self.comm.messages(), under, values))
    }

    /// Begins to receive into `values`.
    ///
    /// # Errors
    ///
    /// [`MessageError::NoSuchRank`], [`MessageError::PeerLost`],
    /// [`MessageError::Ended`] and [`MessageError::TooMany`], as for [`Comm::recv`]. Errors that occur later
    /// are returned by [`Receiving::wait`], or by [`wait_all`](Self::wait_all) if
    /// there is no handle.
    // The lint is wrong here: the returned buffer does not come from the scope, and
    // the handle may not outlive the scope.
    #[allow(clippy::mut_from_ref)]
    pub fn irecv<T: Plain>(
        &'scope self,
        source: impl Into<Source>,
        tags: impl Into<Tags>,
        values: &'env mut [T],
    ) -> Result<Receiving<'scope, &'scope mut [T]>, MessageError> {
        // SAFETY: the values are borrowed exclusively until the scope has ended, as
        // in `isend`; the handle returns them only after the receive has ended.
        let under = unsafe { self.comm.begin_receive(source.into(), tags.into(), values) }?;
        self.begun.borrow_mut().push(under);
        Ok(Receiving::new(self.comm.messages(), under, values))
    }

    /// Waits for all messages of this scope. A message that still has a handle
    /// gives its result to the handle. Blocking.
    ///
    /// # Errors
    ///
    /// The error of the first failed message without a handle; all messages have
    /// ended then.
    pub fn wait_all(&self) -> Result<(), MessageError> {
        let messages = self.comm.messages();
        let mut begun = self.begun.borrow_mut();
        begun.retain(|under| messages.is_held(under));
        messages.wait_all(begun.iter());
        let mut result = Ok(());
        begun.retain(|under| {
            // If another thread took the result through the handle, there is
            // nothing left to finish.
            let is_orphan = messages.is_orphan(under);
            if is_orphan {
                result = result.and(messages.finish_orphan(under).map(|_| ()));
            }
            !is_orphan
        });
        result
    }
}

impl Begun {
    fn push(&mut self, under: Under) {
        if let Err(under) = self.first.push(under) {
            self.more.push(under);
        }
    }

    fn iter(&self) -> impl Iterator<Item = Under> + Clone {
        self.first.iter().chain(&self.more).copied()
    }

    fn retain(&mut self, mut keep: impl FnMut(Under) -> bool) {
        self.first.retain(|under| keep(*under));
        self.more.retain(|under| keep(*under));
    }
}

/// The number of messages for which a scope allocates no memory.
const FIRST: usize = 64;

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({} begun)", self.begun.borrow().iter().count())
    }
}
