//! The engines that are measured, over the memory of the job.
//!
//! One table and one ring serve all engines, which exist one after the other. They
//! live as long as the process, because user-level threads borrow them.

use std::thread;
use tsumugi::affinity;
use tsumugi::pvas::Direct;
use tsumugi_core::backend::Queued;
use tsumugi_core::completion::CompletionTable;
use tsumugi_core::engine::{Delegate, Engine, Executor, Idle, Offload, Port, PortCounts, Work};
use tsumugi_core::ring::Mpsc;

/// A queue in front of the memory of the node.
pub type BenchDevice = Queued<Direct, DEPTH>;

/// The place where engines are made.
pub struct TestBed {
    memory: Direct,
    parts: &'static EngineParts,
}

struct EngineParts {
    table: CompletionTable<SHARDS>,
    ring: Mpsc<Work, SLOTS>,
    counts: PortCounts,
}

/// A running engine. All its users have ended before it is dropped.
pub struct Serving<'b> {
    engine: &'static Engine<'static, BenchDevice>,
    executors: &'static [Executor<'static, BenchDevice>; 1],
    owner: Option<thread::JoinHandle<()>>,
    _bed: &'b mut TestBed,
}

impl TestBed {
    /// A bed over `memory`.
    pub fn new(memory: &Direct) -> Self {
        let parts = EngineParts {
            table: CompletionTable::new(),
            ring: Mpsc::new(),
            counts: PortCounts::new(),
        };
        Self { memory: memory.clone(), parts: Box::leak(Box::new(parts)) }
    }

    /// The memory of the job.
    pub fn memory(&self) -> &Direct {
        &self.memory
    }

    /// An engine that works by delegation: its callers do the work.
    pub fn delegate(&mut self) -> Serving<'_> {
        let port = self.port();
        // SAFETY: the ring's earlier consumers are gone: each was in a `Serving`,
        // which borrows the bed.
        let delegate = unsafe { Delegate::new(port, self.parts.ring.view()) };
        self.serve(Executor::Delegate(delegate))
    }

    /// An engine with a communication thread on `cpu`, which spins while it is idle.
    pub fn offload(&mut self, cpu: usize) -> Serving<'_> {
        self.offload_idling(cpu, IDLE)
    }

    /// An engine with a communication thread on `cpu`, which idles as `idle`
    /// describes.
    pub fn offload_idling(&mut self, cpu: usize, idle: Idle) -> Serving<'_> {
        let port = self.port();
        let offload = Offload::new(self.parts.ring.view());
        let mut serving = self.serve(Executor::Offload(offload, &tsumugi::ult::SystemFutex));
        let executors = serving.executors;
        let Executor::Offload(offload, futex) = &executors[0] else { unreachable!("made above") };
        // SAFETY: as in `delegate`.
        let mut owner = unsafe { offload.owner(port) };
        let thread = thread::spawn(move || {
            // If the machine does not allow pinning, the measured trips
            // show that.
            let _ = affinity::pin(cpu);
            owner.run(idle, *futex, &thread::yield_now);
        });
        serving.owner = Some(thread);
        serving
    }

    fn port(&self) -> Port<'static, BenchDevice> {
        Port::new(Queued::new(self.memory.clone()), self.parts.table.view(), &self.parts.counts)
    }

    fn serve(&mut self, executor: Executor<'static, BenchDevice>) -> Serving<'_> {
        let executors: &'static _ = Box::leak(Box::new([executor]));
        let engine = Box::leak(Box::new(Engine::new(self.parts.table.view(), executors)));
        Serving { engine, executors, owner: None, _bed: self }
    }
}

impl Serving<'_> {
    /// The engine.
    pub fn engine(&self) -> &'static Engine<'static, BenchDevice> {
        self.engine
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if let Executor::Offload(offload, futex) = &self.executors[0] {
            offload.stop(*futex);
        }
        if let Some(owner) = self.owner.take() {
            // If the thread panicked, the panic was printed already.
            let _ = owner.join();
        }
        while self.engine.poll() > 0 || self.engine.needs_poll() {}
    }
}

/// More spins than any measurement needs; after them the thread yields and then
/// sleeps.
const IDLE: Idle = Idle { spins: 1 << 14, yields: 16 };
const SHARDS: usize = 16;
const SLOTS: usize = 1024;
const DEPTH: usize = 256;
