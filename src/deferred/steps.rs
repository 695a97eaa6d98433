//! Operations of a rank that take several steps.

use super::carried::Steps;
use crate::{AddrError, Buffer, CollError, Error, Outcome, Plain, Remote, Runtime, Signal};
use tsumugi_runtime::route::Route;

/// A put of a whole buffer, and then a signal.
#[derive(Debug)]
pub struct PutSignal<T> {
    to: Remote<T>,
    /// Taken by the call that ends the operation.
    buf: Option<Buffer<T>>,
    at: Remote<u64>,
    signal: Signal,
}

/// A barrier of all ranks.
#[derive(Debug)]
pub struct Barrier;

impl<T> PutSignal<T> {
    pub(super) fn new(to: Remote<T>, buf: Buffer<T>, at: Remote<u64>, signal: Signal) -> Self {
        Self { to, buf: Some(buf), at, signal }
    }

    fn end(&mut self, result: Result<u64, AddrError>) -> Outcome<Buffer<T>> {
        Outcome { result, buf: self.buf.take().expect("an operation ends once") }
    }
}

impl<T: Plain> Steps<Runtime> for PutSignal<T> {
    type Output = Outcome<Buffer<T>>;

    fn at_once(mut self, on: &Runtime) -> Result<Self::Output, Self> {
        let is_here = |at: &_| matches!(on.handle().route(at), Route::Here);
        match is_here(&self.to.addr()) && is_here(&self.at.addr()) {
            true => Ok(self.carry(on)),
            false => Err(self),
        }
    }

    fn carry(&mut self, on: &Runtime) -> Self::Output {
        let buf = self.buf.as_deref().expect("an operation is carried out once");
        let result = on.put_signal(self.to, buf, self.at, self.signal);
        self.end(result.map(|()| 0))
    }

    /// A device may still read the buffer, and writes nothing there.
    fn cut_off(&mut self) -> Self::Output {
        self.end(Err(AddrError::Ended))
    }
}

impl Steps<Runtime> for Barrier {
    type Output = Result<(), Error>;

    fn at_once(mut self, on: &Runtime) -> Result<Self::Output, Self> {
        if on.size() == 1 { Ok(self.carry(on)) } else { Err(self) }
    }

    fn carry(&mut self, on: &Runtime) -> Self::Output {
        on.barrier()
    }

    fn cut_off(&mut self) -> Self::Output {
        Err(Error::Coll(CollError::Addr(AddrError::Ended)))
    }
}
