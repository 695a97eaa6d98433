//! A queue in front of the node's memory: one-sided operations go through an engine.
//! The operations in it are posted by the calling threads (delegation) or by a
//! communication thread (offload).
//!
//! # Use
//!
//! The two designs of paper 1 of docs/papers.md, for comparison: a network device
//! needs an engine (the network layer has one), memory that every core can reach does
//! not. It is not the default, by which the caller loads and stores.
//!
//! | | |
//! |---|---|
//! | selected by | [`Path::Delegate`], [`Path::Offload`]; `TSUMUGI_PATH=delegate`, `offload` |
//! | run by | `tests/ranks.rs`, `tests/begun.rs`, `tests/every_way/mod.rs`; `tests/job/cases.rs` |
//! | counted by | `tests/no_alloc.rs` |
//! | measured by | `tsumugi bench rma`, rows `delegate_*` and `offload_*` |

use crate::completion_memory::CompletionMemory;
use crate::config::{Idleness, Path};
use crate::engine_call::hint;
use crate::lasting::{Lasting, Stays};
use crate::panic;
use std::fmt;
use std::ptr::NonNull;
use std::thread;
use tsumugi_core::backend::Queued;
use tsumugi_core::completion::{Busy, Completions, OnEnd, Status};
use tsumugi_core::engine::{
    Delegate, Engine, Executor, Idle, Offload, Port, PortCounts, Retry, Work,
};
use tsumugi_core::mem::AddrError;
use tsumugi_core::op::Op;
use tsumugi_core::ring::Mpsc;
use tsumugi_pvas::Direct;
use tsumugi_ult::{Here, SystemFutex};

/// An engine over the node's memory, with the memory that it borrows.
pub struct NodeQueue {
    engine: Engine<'static, QueuedDirect>,
    /// The memory that the engine points into; it is freed after the engine.
    parts: NonNull<QueueParts>,
    thread: Option<thread::JoinHandle<()>>,
}

type QueuedDirect = Queued<Direct, DEPTH>;

struct QueueParts {
    table: CompletionMemory,
    ring: Mpsc<Work, RING_SLOTS>,
    counts: PortCounts,
    executors: Vec<Executor<'static, QueuedDirect>>,
}

impl NodeQueue {
    /// Makes the engine that `path` names; `None` if it names none.
    pub(crate) fn new(path: Path, direct: Direct, idleness: Idleness) -> Option<Self> {
        (path != Path::Direct).then(|| Self::behind(path, direct, idleness))
    }

    /// Makes an engine. Not inlined: a start without an engine must not take stack
    /// for it, because main threads may have little (`ulimit -s`), and a build with
    /// debug assertions takes much.
    #[inline(never)]
    fn behind(path: Path, direct: Direct, idleness: Idleness) -> Self {
        let parts = Box::leak(Box::new(QueueParts {
            table: CompletionMemory::new(TAGS),
            ring: Mpsc::new(),
            counts: PortCounts::new(),
            executors: Vec::new(),
        }));
        let whole = NonNull::from(&mut *parts);
        let QueueParts { table, ring, counts, executors } = parts;
        let port = Port::new(Queued::new(direct), table.view(), counts);
        let ring = ring.view();
        let mut port = Some(port);
        executors.push(match port.take_if(|_| path == Path::Delegate) {
            // SAFETY: only this delegate takes from the ring.
            Some(port) => Executor::Delegate(unsafe { Delegate::new(port, ring) }),
            None => Executor::Offload(Offload::new(ring), &SystemFutex),
        });
        let executors = &*executors;
        let thread = match (&executors[0], port) {
            (Executor::Offload(offload, _), Some(port)) => {
                let idle = Idle { spins: idleness.spins, yields: idleness.yields };
                let serve = move || {
                    // SAFETY: only this thread takes from the ring.
                    let mut owner = unsafe { offload.owner(port) };
                    let mut run = || owner.run(idle, &SystemFutex, &thread::yield_now);
                    // The callback that has panicked was taken from the engine
                    // before the call, so the next turn goes on after it.
                    while panic::contain("the communication thread", &mut run).is_none() {}
                };
                let thread = tsumugi_pvas::thread::start("tsumugi-comm", serve);
                Some(thread.expect("the system refused a communication thread"))
            }
            _ => None,
        };
        Self { engine: Engine::new(table.view(), executors), parts: whole, thread }
    }

    /// Carries the operation out; the caller sleeps if it must wait.
    pub(crate) fn run(&self, op: &Op) -> Result<u64, AddrError> {
        self.engine.run(hint(), *op, Retry::Room, &Here)
    }

    /// Carries out an operation that may outlive its caller.
    pub(crate) fn run_lasting(&self, lasting: &Lasting) -> Result<u64, AddrError> {
        let result = loop {
            let begun = match lasting.under_way() {
                Some(ticket) => Ok(Status::Pending(ticket)),
                None => self.engine.submit(hint(), lasting.op(), ()),
            };
            match begun {
                Ok(Status::Done(outcome)) => break outcome.result,
                Ok(Status::Pending(ticket)) => {
                    lasting.begun(&ticket);
                    break self.engine.wait(ticket, &Stays(Here));
                }
                Err(_) => self.engine.retry(Retry::Room, &Stays(Here)),
            }
        };
        lasting.ended(result).expect("processors carry out all operations")
    }

    /// Begins the operation; never waits.
    pub fn submit<B: Send + 'static>(&self, op: &Op, buf: B) -> Result<Status<'_, B>, Busy<B>> {
        self.engine.submit(hint(), *op, buf)
    }

    /// Begins the operation, and calls `done`, which lies in its slot, when it has ended;
    /// never waits.
    pub fn submit_owned<C: OnEnd>(&self, op: &Op, done: C) -> Result<(), Busy<C>> {
        self.engine.submit_owned(hint(), *op, done)
    }

    /// Posts what has gathered and takes completions, for a caller that looks for the end
    /// of an operation: there may be no other thread that would. Never waits.
    pub fn look(&self) {
        self.engine.flush();
        self.engine.poll();
    }

    /// Posts and polls for the threads that sleep. Returns whether there was
    /// anything.
    pub(crate) fn poll(&self) -> bool {
        self.engine.poll() > 0
    }

    /// Whether a thread should poll.
    pub(crate) fn needs_poll(&self) -> bool {
        self.engine.needs_poll()
    }

    fn in_flight(&self) -> Completions<'static> {
        self.engine.completions()
    }
}

impl Drop for NodeQueue {
    fn drop(&mut self) {
        // SAFETY: the parts live until below.
        for executor in unsafe { &self.parts.as_ref().executors } {
            if let Executor::Offload(offload, futex) = executor {
                offload.stop(*futex);
            }
        }
        if let Some(thread) = self.thread.take() {
            // The thread has contained all panics.
            let _ = thread.join();
        }
        while self.engine.poll() > 0 || self.engine.needs_poll() {}
        debug_assert!(self.in_flight().in_flight() == 0 || thread::panicking());
        // SAFETY: leaked in `behind`; the thread has ended, and the engine, which
        // holds the last references, is not used any more.
        drop(unsafe { Box::from_raw(self.parts.as_ptr()) });
    }
}

// SAFETY: the only field that is not `Send` is the pointer to the parts, which this
// value owns; the engine points into them and may be shared.
unsafe impl Send for NodeQueue {}
// SAFETY: the same.
unsafe impl Sync for NodeQueue {}

impl fmt::Debug for NodeQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

const TAGS: usize = 1024;
const RING_SLOTS: usize = 1024;
const DEPTH: usize = 256;
