//! A collective that has begun, and that the rank's threads drive.

use super::buffers::{CollBuffers, CombineFn};
use super::exchange::Exchange;
use super::group::GroupHandle;
use super::service::Driven;
use crate::error::Error;
use crate::panic;
use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tsumugi_core::coll::schedule::{Block, CollPlan, CollTables};
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_ult::Here;

/// A collective under way. Dropped early, it goes on to its end, because the other
/// members wait for this rank.
#[must_use = "a collective that fails says so by its result"]
pub struct StartedCollective(Arc<Shared>);

/// What a collective under way owns.
pub struct Parts {
    /// Keeps the buffers.
    pub kept: Box<dyn Any + Send>,
    /// The operation.
    pub combine: Option<Box<CombineFn<'static>>>,
    /// The blocks of the input and of the output, if their lengths differ.
    pub blocks: [Box<[Block]>; 2],
}

struct Shared {
    group: GroupHandle,
    work: Mutex<Driving>,
    end: Mutex<End>,
}

/// What the thread that moves the collective uses.
struct Driving {
    exchange: Exchange,
    buffers: CollBuffers,
    parts: Option<Parts>,
}

// SAFETY: the pointers are to memory that `parts` keeps, which any thread may use.
unsafe impl Send for Driving {}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}

#[derive(Default)]
struct End {
    result: Option<Result<(), Error>>,
    has_ended: bool,
    kept: Option<Box<dyn Any + Send>>,
    sleeper: Option<Waker>,
    task: Option<std::task::Waker>,
}

impl GroupHandle {
    /// Begins a collective.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    ///
    /// # Safety
    ///
    /// `parts` keeps the buffers, which have the bytes that the plan needs, where they
    /// are, and no other code uses them until the collective has ended.
    pub unsafe fn begin(
        &self,
        plan: CollPlan,
        buffers: CollBuffers,
        parts: Parts,
    ) -> Result<StartedCollective, Error> {
        self.service().check()?;
        let exchange = Exchange::new(plan, self);
        let work = Driving { exchange, buffers, parts: Some(parts) };
        let (work, end) = (Mutex::new(work), Mutex::default());
        let shared = Arc::new(Shared { group: self.clone(), work, end });
        shared.advance();
        if !shared.has_ended() {
            self.service().drive(shared.clone());
        }
        Ok(StartedCollective(shared))
    }
}

impl Shared {
    /// Notes the end, and wakes the thread or task that waits for it.
    fn finish(&self, result: Result<(), Error>, kept: Option<Box<dyn Any + Send>>) {
        let mut end = self.end();
        (end.result, end.has_ended, end.kept) = (Some(result), true, kept);
        let (sleeper, task) = (end.sleeper.take(), end.task.take());
        drop(end);
        sleeper.into_iter().for_each(Waker::wake);
        task.into_iter().for_each(std::task::Waker::wake);
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driven for Shared {
    fn advance(&self) -> bool {
        let Ok(mut work) = self.work.try_lock() else { return false };
        let Driving { exchange, buffers, parts: Some(parts) } = &mut *work else { return false };
        let mut any = false;
        let result = loop {
            let tables = CollTables {
                sent: &parts.blocks[0],
                received: &parts.blocks[1],
                ..self.group.tables()
            };
            let posted = panic::contain("the operation of a collective", || {
                // SAFETY: the promise of `begin`.
                unsafe { exchange.post(&self.group, &tables, buffers, parts.combine.as_deref()) }
            });
            if posted.is_none() {
                // The buffers stay: messages in progress may still use them.
                std::mem::forget(work.parts.take());
                drop(work);
                self.finish(
                    Err(Error::program("the operation of a collective has panicked")),
                    None,
                );
                return true;
            }
            if let Some(result) = exchange.poll_done() {
                break result;
            }
            if !exchange.look(&self.group) {
                return any;
            }
            any = true;
        };
        let kept = work.parts.take().map(|parts| parts.kept);
        drop(work);
        self.finish(result, kept);
        true
    }

    fn has_ended(&self) -> bool {
        self.end().has_ended
    }
}

impl StartedCollective {
    /// Whether the collective has ended; moves it on if it has not. Never waits.
    pub fn is_done(&self) -> bool {
        self.0.has_ended() || {
            self.0.group.service().messages().work();
            self.0.advance();
            self.0.has_ended()
        }
    }

    /// Waits for the end, and returns the result and what was kept. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`run`](GroupHandle::run).
    pub fn wait(self) -> Result<Box<dyn Any + Send>, Error> {
        tsumugi_ult::assert_may_block("collective");
        for _ in 0..LOOKS {
            if self.is_done() {
                break;
            }
            Here.yield_now();
        }
        while !self.0.has_ended() {
            let shared = &self.0;
            let mut publish = |waker| {
                let mut end = shared.end();
                if !end.has_ended {
                    end.sleeper = Some(waker);
                }
                !end.has_ended
            };
            let reason = Reason { what: "collective", at: 0, wanted: 0 };
            // SAFETY: the thread that ends the collective takes the waker and uses it.
            unsafe { Here.sleep(reason, &mut publish) };
        }
        self.take()
    }

    /// Takes the result of a collective that has ended.
    fn take(&self) -> Result<Box<dyn Any + Send>, Error> {
        let mut end = self.0.end();
        let kept = end.kept.take();
        end.result.take().expect("the result is taken once")?;
        Ok(kept.expect("a collective keeps its buffers"))
    }
}

impl Future for StartedCollective {
    type Output = Result<Box<dyn Any + Send>, Error>;

    /// # Panics
    ///
    /// If it is polled after it has completed.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.is_done() {
            let mut end = self.0.end();
            if !end.has_ended {
                end.task = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
        Poll::Ready(self.take())
    }
}

/// How often a waiter looks before it sleeps.
const LOOKS: u32 = 16;

impl fmt::Debug for StartedCollective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StartedCollective({:?})", self.0.group)
    }
}
