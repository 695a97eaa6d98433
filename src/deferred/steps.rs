//! Operations of a rank that take several steps.

use super::carried::Steps;
use crate::{Buffer, Error, Outcome, Plain, Remote, Runtime, Signal};
use tsumugi_runtime::route::Route;

/// A put of a whole buffer, and then a signal.
#[derive(Debug)]
pub struct PutSignal<T> {
    pub(super) to: Remote<T>,
    pub(super) buf: Buffer<T>,
    pub(super) at: Remote<u64>,
    pub(super) signal: Signal,
}

/// A barrier of all ranks.
#[derive(Debug)]
pub struct Barrier;

impl<T: Plain> Steps<Runtime> for PutSignal<T> {
    type Output = Outcome<Buffer<T>>;

    fn at_once(self, on: &Runtime) -> Result<Self::Output, Self> {
        let is_here = |at: &_| matches!(on.handle().route(at), Route::Here);
        match is_here(&self.to.addr()) && is_here(&self.at.addr()) {
            true => Ok(self.carry(on)),
            false => Err(self),
        }
    }

    fn carry(self, on: &Runtime) -> Self::Output {
        let put = on.ops().put_buffer(self.to, self.buf).wait();
        let signalled = put.result.and_then(|_| on.signal(self.at, self.signal));
        Outcome { result: signalled.map(|_| 0), buf: put.buf }
    }
}

impl Steps<Runtime> for Barrier {
    type Output = Result<(), Error>;

    fn at_once(self, on: &Runtime) -> Result<Self::Output, Self> {
        if on.size() == 1 { Ok(on.barrier()) } else { Err(self) }
    }

    fn carry(self, on: &Runtime) -> Self::Output {
        on.barrier()
    }
}
