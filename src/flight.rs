//! Operations that own their buffer until they have ended.
//!
//! `try_*` never waits. It returns one of three results, and with each of them the
//! buffer cannot be changed while an operation uses it:
//!
//! | result | the buffer |
//! |---|---|
//! | `Ok(Done(outcome))` | comes back: the operation ended inside the call |
//! | `Ok(Pending(ticket))` | belongs to the ticket until the operation ends: poll, wait or await it |
//! | `Err(Busy)` | comes back with the operation: nothing happened |
//!
//! Between ranks of a node every operation is `Done`, unless [`Path`](crate::Path)
//! sends it through a queue. An operation on a rank of another node is pending at
//! first; a get from a rank that does not answer any more ends when the device
//! releases its buffer.
//!
//! Each of these calls takes a buffer that its own rank has made. With a buffer of
//! another rank (ranks that are threads of one process can hand one over) or of an
//! earlier job it panics before anything happens; the future of an `_async` call
//! panics when it is first polled.

use crate::{AddrError, Buffer, Busy, Outcome, Plain, Remote, Runtime, Status};
use tsumugi_core::backend::execute;
use tsumugi_core::completion::Callback;
use tsumugi_core::op::Op;
use tsumugi_runtime::panic;
use tsumugi_runtime::route::Route;

impl Runtime {
    /// Gets bytes from `from` on into the buffer. Wait-free between ranks of a node.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room for the operation now. A wrong address is the
    /// error of the outcome.
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank or another job.
    ///
    /// # Example
    ///
    /// ```
    /// # fn main() -> Result<(), tsumugi::Error> {
    /// # tsumugi::run(|rt| {
    /// use tsumugi::Status;
    /// let words = rt.share::<u64>(8)?;
    /// let outcome = match rt.try_get(words.at(rt.rank(), 0), rt.buffer(8)?) {
    ///     Ok(Status::Done(outcome)) => outcome,
    ///     Ok(Status::Pending(ticket)) => ticket.wait(&tsumugi::ult::Here),
    ///     Err(busy) => return Err(tsumugi::Error::program(busy)),
    /// };
    /// outcome.result?;
    /// assert_eq!(outcome.buf[7], 0);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn try_get<T: Plain>(
        &self,
        from: Remote<T>,
        buf: Buffer<T>,
    ) -> Result<Status<'_, Buffer<T>>, Busy<Buffer<T>>> {
        self.submit(&self.get_op(from, &buf), buf)
    }

    /// Writes the buffer to the bytes from `to` on. Wait-free between ranks of a
    /// node.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room for the operation now. A wrong address is the
    /// error of the outcome.
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank or another job.
    pub fn try_put<T: Plain>(
        &self,
        to: Remote<T>,
        buf: Buffer<T>,
    ) -> Result<Status<'_, Buffer<T>>, Busy<Buffer<T>>> {
        self.submit(&self.put_op(to, &buf), buf)
    }

    /// Gets bytes from `from` on into the buffer, as a future. The operation begins
    /// at the first poll; a future that is dropped later leaves the buffer to the
    /// operation.
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank or another job.
    pub async fn get_async<T: Plain>(&self, from: Remote<T>, buf: Buffer<T>) -> Outcome<Buffer<T>> {
        self.carry_async(&self.get_op(from, &buf), buf).await
    }

    /// Writes the buffer to the bytes from `to` on, as a future, like
    /// [`get_async`](Self::get_async).
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank or another job.
    pub async fn put_async<T: Plain>(&self, to: Remote<T>, buf: Buffer<T>) -> Outcome<Buffer<T>> {
        self.carry_async(&self.put_op(to, &buf), buf).await
    }

    /// Gets bytes from `from` on into the buffer and then calls `then` with it, on
    /// the thread that ends the operation: between ranks of a node on the calling
    /// thread, before the call returns. A callback must not block: a call in it that
    /// would sleep panics; start a ULT that may block instead. A panic of `then`
    /// ends the callback alone, on any thread: it is printed on the standard error,
    /// and the program gets no other notice.
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room for the operation now, and `then` is not called. A
    /// wrong address is the error of the outcome.
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank or another job.
    pub fn get_then<T: Plain>(
        &self,
        from: Remote<T>,
        buf: Buffer<T>,
        then: impl FnOnce(Outcome<Buffer<T>>) + Send + 'static,
    ) -> Result<(), Busy<Buffer<T>>> {
        self.carry_then(&self.get_op(from, &buf), buf, then)
    }

    /// Writes the buffer to the bytes from `to` on and then calls `then` with it,
    /// like [`get_then`](Self::get_then).
    ///
    /// # Errors
    ///
    /// [`Busy`]: there is no room for the operation now, and `then` is not called. A
    /// wrong address is the error of the outcome.
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank or another job.
    pub fn put_then<T: Plain>(
        &self,
        to: Remote<T>,
        buf: Buffer<T>,
        then: impl FnOnce(Outcome<Buffer<T>>) + Send + 'static,
    ) -> Result<(), Busy<Buffer<T>>> {
        self.carry_then(&self.put_op(to, &buf), buf, then)
    }

    fn submit<T: Plain>(
        &self,
        op: &Op,
        buf: Buffer<T>,
    ) -> Result<Status<'_, Buffer<T>>, Busy<Buffer<T>>> {
        match self.handle().route(&op.remote) {
            Route::Here => Ok(Status::Done(self.carry_out(op, buf))),
            Route::Queue(queue) => queue.submit(op, buf),
            Route::Net(net) => net.submit(op, buf),
        }
    }

    async fn carry_async<T: Plain>(&self, op: &Op, buf: Buffer<T>) -> Outcome<Buffer<T>> {
        match self.handle().route(&op.remote) {
            Route::Here => self.carry_out(op, buf),
            Route::Queue(queue) => queue.carry(op, buf).await,
            Route::Net(net) => net.carry(op, buf).await,
        }
    }

    fn carry_then<T: Plain>(
        &self,
        op: &Op,
        buf: Buffer<T>,
        then: impl FnOnce(Outcome<Buffer<T>>) + Send + 'static,
    ) -> Result<(), Busy<Buffer<T>>> {
        let route = self.handle().route(&op.remote);
        if let Route::Here = route {
            call_back(then, self.carry_out(op, buf));
            return Ok(());
        }
        // The callback's two words are a function and a pointer to the closure and
        // the buffer.
        let data = Box::into_raw(Box::new((buf, then)));
        // SAFETY: `data` is of the type for which `ended_for` made the function, and
        // this callback alone owns it; its contents are `Send`.
        let callback = unsafe { Callback::new(ended_for(&data), data.cast()) };
        let begun = match route {
            Route::Queue(queue) => queue.submit_callback(op, callback),
            Route::Net(net) => net.post(op, callback),
            Route::Here => unreachable!("an operation of this node was carried out before"),
        };
        begun.map_err(|busy| {
            // SAFETY: leaked above; the callback will not be called.
            let (buf, _) = *unsafe { Box::from_raw(data) };
            Busy { op: busy.op, buf, why: busy.why }
        })
    }

    fn carry_out<T: Plain>(&self, op: &Op, buf: Buffer<T>) -> Outcome<Buffer<T>> {
        Outcome { result: execute(self.handle().direct(), op), buf }
    }

    #[inline(always)]
    fn get_op<T: Plain>(&self, from: Remote<T>, buf: &Buffer<T>) -> Op {
        Op::get(from.addr(), buf.local(self), size_of_val(&**buf) as u64)
    }

    #[inline(always)]
    fn put_op<T: Plain>(&self, to: Remote<T>, buf: &Buffer<T>) -> Op {
        Op::put(buf.local(self), to.addr(), size_of_val(&**buf) as u64)
    }
}

/// The function to be called when an operation with this data has ended.
fn ended_for<B: Send, F: FnOnce(Outcome<B>) + Send>(
    _: &*mut (B, F),
) -> fn(*mut (), Result<u64, AddrError>) {
    |data, result| {
        // SAFETY: leaked by `carry_then` for this call, which comes once.
        let (buf, then) = *unsafe { Box::from_raw(data.cast::<(B, F)>()) };
        call_back(then, Outcome { result, buf });
    }
}

/// Calls a callback. A panic of it is contained, because the calling thread ends
/// operations of other callers, too.
fn call_back<B: Send>(then: impl FnOnce(Outcome<B>) + Send, outcome: Outcome<B>) {
    panic::contain("a completion callback", || tsumugi_ult::callback(|| then(outcome)));
}
