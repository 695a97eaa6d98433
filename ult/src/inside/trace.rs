//! A trace of all runs, as a picture.
//!
//! ```text
//!   worker 0  ▐█ULT 3█▌ ▐███ULT 7███▌        a bar for each run
//!                 ╲ wake                     an arrow from each spawn and wake
//!   worker 1       ╰────►▐█ULT 5█▌           to the run that it leads to
//! ```
//!
//! A ULT that another thread started or woke has no arrow. A mark shows where a
//! worker took the ULT.
//!
//! The file is Chrome's trace event format, which Perfetto opens.

use crate::sched::record::{EventKind, Events, UltEvent, WorkerRequests};
use crate::sched::{Spawner, UltId};
use core::fmt;
use std::collections::HashMap;
use std::io::{self, Write};
use tsumugi_core::time::Instant;

/// Makes workers record events of their ULTs until it is dropped.
pub struct Recording {
    spawner: Spawner,
    ring: usize,
    start: Instant,
    ended: bool,
}

/// The recorded events.
pub struct Trace {
    workers: Vec<Vec<UltEvent>>,
    names: HashMap<(u32, u32), String>,
    lost: u64,
    start: Instant,
    end: Instant,
}

impl Spawner {
    /// Records the events of each worker: ULTs that it started, ran, put to sleep and
    /// woke, and ULTs that other threads started or woke, when a worker takes them.
    /// Names of ULTs that end meanwhile are kept, as many as events. Of each worker
    /// the last `events` events are kept, 32 bytes each; their memory stays until the
    /// scheduler ends. Returns `None` if a recording is already on.
    ///
    /// # Panics
    ///
    /// If `events` is more than [`Recording::MAX_EVENTS`].
    ///
    /// ```
    /// # use tsumugi_ult::{Config, Scheduler, StackArea, spawn};
    /// # let config = Config::new(StackArea::map(1 << 20)?).main_stack_bytes(256 << 10);
    /// let scheduler = Scheduler::new(config)?;
    /// let recording = scheduler.spawner().trace(10_000).expect("nobody else records");
    /// scheduler.run(|| spawn(|| ()).join().unwrap());
    /// let mut file = Vec::new();
    /// recording.stop().write_chrome(&mut file)?;
    /// # assert!(file.len() > 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trace(&self, events: usize) -> Option<Recording> {
        let most = Recording::MAX_EVENTS;
        assert!(events <= most, "trace: {events} events of each worker, but at most {most}");
        let shared = &self.shared;
        // The rings are made first, so that a worker finds one whenever it is to
        // record.
        let rings: Box<[Events]> =
            shared.worker_slots.iter().map(|_| Events::new(events)).collect();
        shared.rings.with(|all| {
            if shared.wanted.has(WorkerRequests::TRACE) {
                return None;
            }
            for (worker_slot, ring) in shared.worker_slots.iter().zip(&rings) {
                worker_slot.notes.set_events(ring);
            }
            shared.slab.keep_names(all.len(), events.max(1).saturating_mul(rings.len()));
            all.push(rings);
            shared.wanted.set(WorkerRequests::TRACE);
            Some(Recording {
                spawner: self.clone(),
                ring: all.len() - 1,
                start: self.now(),
                ended: false,
            })
        })
    }
}

impl Recording {
    /// How many events of each worker a recording keeps at most: 512 MiB of them.
    pub const MAX_EVENTS: usize = 1 << 24;

    /// Ends the recording and returns its events.
    pub fn stop(mut self) -> Trace {
        let (start, end) = (self.start, self.spawner.now());
        self.end();
        let shared = &self.spawner.shared;
        let read: Vec<_> =
            shared.rings.with(|rings| rings[self.ring].iter().map(Events::read).collect());
        let lost = read.iter().map(|(_, lost)| lost).sum();
        let mut names = HashMap::new();
        self.spawner.dump(&mut |ult| {
            if let Some(name) = ult.name {
                names.insert((ult.id.slot, ult.id.generation), name);
            }
        });
        // Last, so that ULTs that end meanwhile are included.
        names.extend(shared.slab.take_names(self.ring).map(|(id, name)| (id, name.into())));
        Trace {
            workers: read.into_iter().map(|(events, _)| events).collect(),
            names,
            lost,
            start,
            end,
        }
    }
}

impl Recording {
    /// Only the first call clears the flag, because the next recording may have
    /// begun.
    fn end(&mut self) {
        if !core::mem::replace(&mut self.ended, true) {
            self.spawner.shared.wanted.clear(WorkerRequests::TRACE);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.end();
        drop(self.spawner.shared.slab.take_names(self.ring));
    }
}

impl Trace {
    /// The number of events.
    pub fn len(&self) -> usize {
        self.workers.iter().map(Vec::len).sum()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many older events did not fit into the rings.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes Chrome's trace event format.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write_chrome(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        for worker in 0..self.workers.len() {
            let comma = if worker == 0 { "" } else { "," };
            write!(
                out,
                "{comma}\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{worker},\"name\":\"thread_name\",\
                 \"args\":{{\"name\":\"worker {worker}\"}}}}"
            )?;
        }
        let mut all: Vec<(usize, &UltEvent)> = self
            .workers
            .iter()
            .enumerate()
            .flat_map(|(worker, events)| events.iter().map(move |event| (worker, event)))
            .collect();
        // Stable: events of one worker keep their order.
        all.sort_by_key(|(_, event)| event.at);
        // A run without a recorded begin counts from the start of the recording.
        let mut runs: Vec<Option<(Instant, &UltEvent)>> = vec![None; self.workers.len()];
        let mut arrows = HashMap::new();
        for (number, (worker, event)) in all.into_iter().enumerate() {
            let key = (event.slot, event.generation);
            match event.kind {
                EventKind::Spawn | EventKind::Wake => {
                    arrows.insert(key, Some(number));
                    let kind = if event.kind == EventKind::Spawn { "spawn" } else { "wake" };
                    self.point(out, worker, event, kind)?;
                    self.arrow(out, worker, event, "s", number)?;
                }
                // The sender is no worker, unless a worker recorded the spawn or the
                // wake.
                EventKind::Come if arrows.contains_key(&key) => {}
                EventKind::Come => {
                    arrows.insert(key, None);
                    self.point(out, worker, event, &format!("{} from outside:", event.what))?;
                }
                EventKind::Steal => self.point(out, worker, event, "steal")?,
                EventKind::Run => {
                    runs[worker] = Some((event.at, event));
                    if let Some(Some(number)) = arrows.remove(&key) {
                        self.arrow(out, worker, event, "f", number)?;
                    }
                }
                EventKind::Yield | EventKind::Sleep | EventKind::End => {
                    let since = runs[worker].take().map_or(self.start, |(since, _)| since);
                    let left = match event.kind {
                        EventKind::Sleep => event.what,
                        EventKind::Yield => {
                            arrows.insert(key, None);
                            "yield"
                        }
                        _ => "end",
                    };
                    self.bar(out, worker, event, [since, event.at], left)?;
                }
            }
        }
        for (worker, run) in runs.into_iter().enumerate() {
            if let Some((since, event)) = run {
                self.bar(out, worker, event, [since, self.end], "still running")?;
            }
        }
        writeln!(out, "\n]}}")
    }

    /// Writes a run, and why it ended.
    fn bar(
        &self,
        out: &mut dyn Write,
        worker: usize,
        event: &UltEvent,
        [start, end]: [Instant; 2],
        left: &str,
    ) -> io::Result<()> {
        write!(
            out,
            ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{worker},\"ts\":{:.3},\"dur\":{:.3},\
             \"name\":{},\"args\":{{\"left\":{}}}}}",
            micros(start),
            end.since(start).as_nanos() as f64 / 1e3,
            Quoted(&self.name(event)),
            Quoted(left),
        )
    }

    fn point(
        &self,
        out: &mut dyn Write,
        worker: usize,
        event: &UltEvent,
        kind: &str,
    ) -> io::Result<()> {
        write!(
            out,
            ",\n{{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":{worker},\"ts\":{:.3},\"name\":{}}}",
            micros(event.at),
            Quoted(&format!("{kind} {}", self.name(event))),
        )
    }

    fn arrow(
        &self,
        out: &mut dyn Write,
        worker: usize,
        event: &UltEvent,
        end: &str,
        number: usize,
    ) -> io::Result<()> {
        write!(
            out,
            ",\n{{\"ph\":\"{end}\",\"bp\":\"e\",\"id\":{number},\"cat\":\"wake\",\"pid\":1,\
             \"tid\":{worker},\"ts\":{:.3},\"name\":\"wake\"}}",
            micros(event.at),
        )
    }

    fn name(&self, event: &UltEvent) -> String {
        match self.names.get(&(event.slot, event.generation)) {
            Some(name) => name.clone(),
            None => {
                let id = UltId { slot: event.slot, generation: event.generation };
                format!("ULT {id}")
            }
        }
    }
}

fn micros(at: Instant) -> f64 {
    at.as_ns() as f64 / 1e3
}

/// Text as a JSON string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recording")
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({} events, {} lost)", self.len(), self.lost)
    }
}
