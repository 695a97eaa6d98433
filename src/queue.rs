//! The same operations through an engine: a queue in front of the node's
//! memory, worked by whoever comes or by a thread of its own.
//!
//! What paper S0 measures, and what a device needs. For memory that every
//! core can reach it is the longer way; [`Path`] chooses.

use crate::config::{Idleness, Path};
use crate::lasting::{Lasting, Stays};
use crate::{AddrError, Busy, Outcome, Status, panic};
use std::fmt;
use std::future::poll_fn;
use std::ptr::NonNull;
use std::task::Poll;
use std::thread;
use tsumugi_core::backend::Queued;
use tsumugi_core::completion::{Callback, CompletionTable, Completions};
use tsumugi_core::engine::{
    Delegate, Engine, Executor, Idle, Offload, Port, PortCounts, Retry, Work,
};
use tsumugi_core::op::Op;
use tsumugi_core::ring::Mpsc;
use tsumugi_pvas::Direct;
use tsumugi_ult::{Here, SystemFutex};

/// An engine over the node's memory, with all that it stands on.
pub(crate) struct Queue {
    engine: Engine<'static, Device>,
    /// What the engine points into; freed when the engine is gone.
    parts: NonNull<Parts>,
    thread: Option<thread::JoinHandle<()>>,
}

type Device = Queued<Direct, DEPTH>;

struct Parts {
    table: CompletionTable<SHARDS>,
    ring: Mpsc<Work, RING_SLOTS>,
    counts: PortCounts,
    executors: Vec<Executor<'static, Device>>,
}

impl Queue {
    /// The engine that `path` asks for; `None` if that is none.
    pub(crate) fn new(path: Path, direct: Direct, idleness: Idleness) -> Option<Self> {
        (path != Path::Direct).then(|| Self::behind(path, direct, idleness))
    }

    /// Not inlined: who needs none needs no stack for it either, of which main threads
    /// may have little (`ulimit -s`), and a build with debug assertions takes much.
    #[inline(never)]
    fn behind(path: Path, direct: Direct, idleness: Idleness) -> Self {
        let parts = Box::leak(Box::new(Parts {
            table: CompletionTable::new(),
            ring: Mpsc::new(),
            counts: PortCounts::new(),
            executors: Vec::new(),
        }));
        let whole = NonNull::from(&mut *parts);
        let Parts { table, ring, counts, executors } = parts;
        let port = Port::new(Queued::new(direct), table.view(), counts);
        let ring = ring.view();
        let mut port = Some(port);
        executors.push(match port.take_if(|_| path == Path::Delegate) {
            // SAFETY: the ring is the delegate's alone.
            Some(port) => Executor::Delegate(unsafe { Delegate::new(port, ring) }),
            None => Executor::Offload(Offload::new(ring), &SystemFutex),
        });
        let executors = &*executors;
        let thread = match (&executors[0], port) {
            (Executor::Offload(offload, _), Some(port)) => {
                let idle = Idle { spins: idleness.spins, yields: idleness.yields };
                let serve = move || {
                    // SAFETY: the ring is this thread's alone.
                    let mut owner = unsafe { offload.owner(port) };
                    let mut run = || owner.run(idle, &SystemFutex, &thread::yield_now);
                    // What has panicked was called by the turn that it ended,
                    // and has been taken: the next turn goes on behind it.
                    while panic::contain("the communication thread", &mut run).is_none() {}
                };
                let thread = thread::Builder::new().name("tsumugi-comm".into()).spawn(serve);
                Some(thread.expect("the system gives a thread for communication"))
            }
            _ => None,
        };
        Self { engine: Engine::new(table.view(), executors), parts: whole, thread }
    }

    /// Carries the operation out; the caller sleeps if it has to.
    pub(crate) fn run(&self, op: &Op) -> Result<u64, AddrError> {
        self.engine.run(hint(), *op, Retry::Room, &Here)
    }

    /// The same of one that outlasts its caller.
    pub(crate) fn run_lasting(&self, lasting: &Lasting) -> Result<u64, AddrError> {
        let begin = || lasting.begin(|op| self.engine.submit(hint(), *op, ()));
        let begun = |ticket: &_| lasting.begun(ticket);
        let result = self.engine.run_by(Retry::Room, &Stays(Here), begin, begun);
        lasting.ended(result).expect("a processor has all operations")
    }

    /// Begins the operation; never waits.
    pub(crate) fn submit<B: Send + 'static>(
        &self,
        op: &Op,
        buf: B,
    ) -> Result<Status<'_, B>, Busy<B>> {
        self.engine.submit(hint(), *op, buf)
    }

    /// Begins the operation, and calls back when it has ended; never waits.
    pub(crate) fn submit_callback(&self, op: &Op, callback: Callback) -> Result<(), Busy<()>> {
        self.engine.submit_callback(hint(), *op, callback)
    }

    /// Carries the operation out as a future.
    pub(crate) async fn carry<B: Send + 'static>(&self, op: &Op, buf: B) -> Outcome<B> {
        let mut buf = buf;
        loop {
            match self.submit(op, buf) {
                Ok(Status::Done(outcome)) => return outcome,
                Ok(Status::Pending(ticket)) => {
                    // Nobody else may be there to post it.
                    self.engine.flush();
                    return ticket.await;
                }
                Err(busy) => {
                    buf = busy.buf;
                    self.engine.poll();
                    come_again().await;
                }
            }
        }
    }

    /// Posts and polls for those who sleep. Whether there was anything.
    pub(crate) fn poll(&self) -> bool {
        self.engine.poll() > 0
    }

    /// Whether somebody should poll.
    pub(crate) fn needs_poll(&self) -> bool {
        self.engine.needs_poll()
    }

    fn in_flight(&self) -> Completions<'static> {
        self.engine.completions()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the parts live until below.
        for executor in unsafe { &self.parts.as_ref().executors } {
            if let Executor::Offload(offload, futex) = executor {
                offload.stop(*futex);
            }
        }
        if let Some(thread) = self.thread.take() {
            // It has contained all panics.
            let _ = thread.join();
        }
        while self.engine.poll() > 0 || self.engine.needs_poll() {}
        debug_assert!(self.in_flight().in_flight() == 0 || thread::panicking());
        // SAFETY: leaked in `new`; the thread has ended, and the engine, whose
        // references are the last, is not used any more.
        drop(unsafe { Box::from_raw(self.parts.as_ptr()) });
    }
}

// SAFETY: the parts are what the engine points to, which may be shared.
unsafe impl Send for Queue {}
// SAFETY: the same.
unsafe impl Sync for Queue {}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

/// Which tags and which executor to prefer: the same for calls of one thread,
/// mostly others for those of another. A ULT that has moved meanwhile gets
/// those of a thread that it was on, which costs a cache line and no more.
pub(crate) fn hint() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| (&raw const *place).addr() >> 12)
}

/// Lets others run once.
pub(crate) async fn come_again() {
    let mut first = true;
    poll_fn(|context| {
        if std::mem::take(&mut first) {
            context.waker().wake_by_ref();
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

const SHARDS: usize = 16;
const RING_SLOTS: usize = 1024;
const DEPTH: usize = 256;
