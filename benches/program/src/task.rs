//! Fork and join over all ranks of a job, in the way of MassiveThreads on distributed
//! memory. A task is plain data, the number of a function and its arguments, so any
//! rank can run it.
//!
//! ```text
//!   fork ──► own deque ──► join: no rank has taken it, so call it      (a call)
//!               │
//!               └──◄── another rank: reads it, swaps, runs it ──► place
//!                                                                    │
//!   fork_at(rank) ──► that rank's inbox ──► runs it ──► place        │
//!                                                        ▲           │
//!   join: sleeps ────────────────────────────────────────┴───────────┘
//! ```
//!
//! Every rank has a deque in memory that all ranks can reach ([`RankDeque`]); thieves
//! take from it by one-sided operations alone. [`Tasks::fork_at`] sends a task to the
//! rank of its data, by an active message, and the task stays there. The result comes
//! back into a *place* of the rank that forked the task, by a put that wakes the
//! joiner. A ULT that joins a task of another rank sleeps, and another ULT runs this
//! rank's tasks meanwhile, so as many ULTs run as there are workers.
//!
//! [`Tasks::run`] ends on all ranks when the root has returned. Since every task is
//! joined, all tasks are over by then. This is checked: as many tasks were run as
//! were forked, and no place is in use.
//!
//! When a task fails or panics its joiner gets an error, and so on up to the root;
//! then all ranks return an error. When a rank dies, the other ranks' calls fail.
//!
//! Limits: [`DEQUE_TASKS`] in a rank's deque, and [`PLACES`] tasks that a rank has
//! forked and not joined. A task for which there is no room is called at once, on the
//! rank that forks it.
//!
//! # References
//!
//! - Nakashima and Taura: MassiveThreads: A Thread Library for High Productivity
//!   Languages. 2014.
//! - Wagner and Calder: Leapfrogging. PPoPP 1993, on the tasks that a joiner may run
//!   while it waits. Here a joiner sleeps, because another ULT is cheap.

mod crew;
mod memory;
mod thief;

use crew::{Crew, Own};
use memory::{Memory, Outcome};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
#[allow(unused_imports, reason = "for the documentation")]
use tsumugi::RankDeque;
use tsumugi::ult::sync::Semaphore;
use tsumugi::{Error, Rank, Runtime};
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};

/// The arguments of a task.
pub type Args = [u64; ARGS];

/// The function of a task.
pub type Function<C> = fn(&Tasks<C>, Args) -> Result<u64, Error>;

/// The tasks of all ranks, with a context: each rank has its own `C`.
pub struct Tasks<C>(Arc<Crew<C>>);

/// A task that was forked, and must be joined.
#[must_use = "a task that is not joined makes its run fail"]
#[derive(Debug)]
pub struct Handle(State);

/// Counts of what a rank has done in its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tasks that were forked here.
    pub forked: u64,
    /// Tasks that were sent to the rank of their data.
    pub sent: u64,
    /// Tasks that were run here, forked by any rank.
    pub ran: u64,
    /// Tasks taken from other ranks, which are part of `ran`.
    pub stolen: u64,
}

#[derive(Debug)]
enum State {
    Done(u64),
    Under { place: u32 },
}

/// A task as it travels between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Task {
    function: u32,
    /// The rank with the place for the result.
    home: Rank,
    place: u32,
    args: Args,
}

impl<C: Send + Sync + 'static> Tasks<C> {
    /// Sets up tasks that call these `functions`, by their index. Collective: all
    /// ranks give the same functions in the same order. A job has one at a time.
    ///
    /// # Errors
    ///
    /// An [`Error`] if a rank dies, or if there is no memory for the deque and the
    /// places of the tasks.
    pub fn new(rt: &Runtime, context: C, functions: &[Function<C>]) -> Result<Self, Error> {
        let deque = rt.rank_deque(DEQUE_TASKS)?;
        let stealer = deque.stealer();
        let own = Own {
            deque,
            inbox: VecDeque::with_capacity(PLACES),
            places: (0..PLACES as u32).rev().collect(),
            failure: None,
        };
        let zero = || AtomicU64::new(0);
        let crew = Arc::new(Crew {
            rt: rt.clone(),
            context,
            functions: functions.to_vec(),
            memory: Memory::new(rt)?,
            stealer,
            own: Mutex::new(own),
            idle: Semaphore::new(0),
            running: zero(),
            loops: zero(),
            gone: Semaphore::new(0),
            is_over: AtomicBool::new(true),
            runs: zero(),
            forked: zero(),
            sent: zero(),
            ran: zero(),
            stolen: zero(),
        });
        // The runtime keeps its handlers, so a handler that kept the crew would keep
        // the runtime.
        let weak = Arc::downgrade(&crew);
        rt.handler(HANDLER, move |message| {
            if let Some(crew) = weak.upgrade() {
                crew.receive(message.bytes);
            }
            []
        });
        // No rank sends before all ranks can receive.
        rt.barrier()?;
        Ok(Self(crew))
    }

    /// The context of this rank's tasks.
    pub fn context(&self) -> &C {
        &self.0.context
    }

    /// The runtime of this rank.
    pub fn rt(&self) -> &Runtime {
        &self.0.rt
    }

    /// The counts of this rank so far.
    pub fn counts(&self) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let crew = &*self.0;
        Counts {
            forked: of(&crew.forked),
            sent: of(&crew.sent),
            ran: of(&crew.ran),
            stolen: of(&crew.stolen),
        }
    }

    /// The counts of all ranks so far, together. Collective.
    ///
    /// # Errors
    ///
    /// An [`Error`] if a rank dies.
    pub fn all_counts(&self) -> Result<Counts, Error> {
        let (rt, Counts { forked, sent, ran, stolen }) = (self.rt(), self.counts());
        Ok(Counts {
            forked: rt.sum(forked)?,
            sent: rt.sum(sent)?,
            ran: rt.sum(ran)?,
            stolen: rt.sum(stolen)?,
        })
    }

    /// Runs `root` on rank 0, and the tasks that it forks on all ranks, until it
    /// returns. All ranks return its result. Collective.
    ///
    /// # Errors
    ///
    /// An [`Error`] if a rank dies, if the root fails, if a task that this rank ran has
    /// failed or panicked, or if a task was not joined.
    pub fn run(&self, root: impl FnOnce(&Self) -> Result<u64, Error>) -> Result<u64, Error> {
        let crew = &self.0;
        let run = crew.runs.fetch_add(1, Ordering::Relaxed) + 1;
        crew.is_over.store(false, Ordering::Relaxed);
        // No rank sends or steals before all ranks have begun.
        crew.rt.barrier()?;
        let is_first = crew.rt.rank() == Rank(0);
        crew.running.store(u64::from(is_first), Ordering::Relaxed);
        (0..crew.rt.workers().max(1)).for_each(|_| crew.start_loop());
        let result = if is_first {
            let result = root(self);
            let told = crew.memory.tell_all(&crew.rt, run, result.as_ref().ok().copied());
            result.and_then(|value| told.map(|()| value).map_err(Error::from))
        } else {
            crew.memory.wait_for_end(&crew.rt, run)
        };
        crew.end_loops();
        let value = match (crew.own().failure.take(), result) {
            (Some(failure), _) | (None, Err(failure)) => return Err(failure),
            (None, Ok(value)) => value,
        };
        self.check()?;
        Ok(value)
    }

    /// Makes a task that this rank runs, unless another rank takes it before.
    ///
    /// # Errors
    ///
    /// The error of the task, if there is no room for it and it is called at once.
    pub fn fork(&self, function: u32, args: Args) -> Result<Handle, Error> {
        match self.0.push(function, args) {
            Some(place) => Ok(Handle(State::Under { place })),
            None => Ok(Handle(State::Done(self.call(function, args)?))),
        }
    }

    /// Makes a task that `rank` runs, and no other rank.
    ///
    /// # Errors
    ///
    /// An [`Error`] if `rank` has died; the error of the task, if there is no room for
    /// it and it is called at once.
    pub fn fork_at(&self, rank: Rank, function: u32, args: Args) -> Result<Handle, Error> {
        let crew = &*self.0;
        let Some(place) = crew.own().places.pop() else {
            return Ok(Handle(State::Done(self.call(function, args)?)));
        };
        let task = Task { function, home: crew.rt.rank(), place, args };
        if rank == crew.rt.rank() {
            crew.own().inbox.push_back(task);
            crew.idle.release(1);
        } else {
            crew.rt.cast(rank, HANDLER, &task.to_bytes())?;
        }
        crew.forked.fetch_add(1, Ordering::Relaxed);
        crew.sent.fetch_add(1, Ordering::Relaxed);
        Ok(Handle(State::Under { place }))
    }

    /// The result of a task. If no rank has taken the task, it is called here.
    /// Otherwise this ULT sleeps until the result is there.
    ///
    /// # Errors
    ///
    /// The error of the task, if it is called here; an [`Error`] that names the rank
    /// where the task has failed; [`AddrError::PeerLost`](tsumugi::AddrError::PeerLost)
    /// if a rank dies while this ULT waits.
    pub fn join(&self, handle: Handle) -> Result<u64, Error> {
        let place = match handle.0 {
            State::Done(value) => return Ok(value),
            State::Under { place } => place,
        };
        let crew = &self.0;
        let still_here = {
            let mut own = crew.own();
            let task = own.deque.pop_if(|words| Task::from_words(words).place == place);
            if task.is_some() {
                own.places.push(place);
            }
            task
        };
        if let Some(words) = still_here {
            crew.ran.fetch_add(1, Ordering::Relaxed);
            let Task { function, args, .. } = Task::from_words(&words);
            return self.call(function, args);
        }
        let outcome = match crew.memory.outcome(place) {
            Some(outcome) => outcome,
            None => crew.sleep_for(place)?,
        };
        crew.memory.clear(place);
        crew.own().places.push(place);
        match outcome {
            Outcome::Value(value) => Ok(value),
            Outcome::Failed(rank) => {
                Err(Error::program(format!("a task failed at {rank}, which reports why")))
            }
        }
    }

    fn call(&self, function: u32, args: Args) -> Result<u64, Error> {
        let known = self.0.functions.len();
        match self.0.functions.get(function as usize) {
            Some(function) => function(self, args),
            None => Err(Error::program(format!(
                "a task of function {function}: the ranks gave {known} functions"
            ))),
        }
    }

    /// Checks that all forked tasks have been run and joined. Collective.
    fn check(&self) -> Result<(), Error> {
        let crew = &*self.0;
        let Counts { forked, ran, .. } = self.counts();
        let (mut used, waiting) = {
            let own = crew.own();
            ((PLACES - own.places.len()) as u64, own.inbox.len() + own.deque.len())
        };
        used += waiting as u64;
        let (forked, ran, used) = (crew.rt.sum(forked)?, crew.rt.sum(ran)?, crew.rt.sum(used)?);
        match (used, forked == ran) {
            (0, true) => Ok(()),
            _ => Err(Error::program(format!(
                "of {forked} tasks {ran} were run, and {used} are not joined: join every task \
                 before the root returns"
            ))),
        }
    }
}

/// A task as the deque has it.
type TaskWords = [u64; WORDS];

impl Task {
    fn to_words(self) -> TaskWords {
        let mut words = [0; WORDS];
        words[0] = self.function.into();
        words[1] = u64::from(self.home.0) << 32 | u64::from(self.place);
        words[2..].copy_from_slice(&self.args);
        words
    }

    fn from_words(words: &TaskWords) -> Self {
        let mut args = [0; ARGS];
        args.copy_from_slice(&words[2..]);
        let home = Rank((words[1] >> 32) as u32);
        Self { function: words[0] as u32, home, place: words[1] as u32, args }
    }

    fn to_bytes(self) -> [u8; WORDS * 8] {
        let mut bytes = [0; WORDS * 8];
        for (into, word) in bytes.chunks_exact_mut(8).zip(self.to_words()) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; WORDS * 8] = bytes.try_into().ok()?;
        let mut words = [0; WORDS];
        for (word, from) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(from.try_into().expect("8 bytes"));
        }
        Some(Self::from_words(&words))
    }
}

/// The arguments of a task, filled up with zeroes.
pub fn args<const N: usize>(given: [u64; N]) -> Args {
    const { assert!(N <= ARGS, "a task has at most 6 words of arguments") };
    let mut args = [0; ARGS];
    args[..N].copy_from_slice(&given);
    args
}

impl<C> Clone for Tasks<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for Tasks<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tasks({} functions)", self.0.functions.len())
    }
}

/// Words of arguments that a task has.
pub const ARGS: usize = WORDS - 2;
/// The most tasks in a rank's deque.
pub const DEQUE_TASKS: usize = 1 << 13;
/// The most tasks that a rank has forked and not joined.
pub const PLACES: usize = 1 << 14;
/// Words of a task: a cache line.
const WORDS: usize = 8;
/// The handler of the messages that bring tasks.
const HANDLER: u32 = 0x7461_736b;

#[cfg(test)]
mod tests;
