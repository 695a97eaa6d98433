//! The job of this process, from MPI_Init to MPI_Finalize.

use crate::abi::{self};
use crate::backoff::back_off;
use crate::copies::other_copy;
use crate::fault::{Answer, Fault, fail, need};
use crate::malloc;
use crate::object::attribute::Keyvals;
use crate::object::backlog::Backlog;
use crate::object::buffered::Buffered;
use crate::object::communicator::Communicator;
use crate::object::datatype::Datatype;
use crate::object::errhandler::Errhandler;
use crate::object::group::RankGroup;
use crate::object::held_request::HeldRequest;
use crate::object::info::Info;
use crate::object::operation::UserOp;
use crate::object::request::Request;
use crate::object::session::Session;
use crate::object::table::{Table, kind, lock};
use crate::object::task::Matched;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};
use std::{process, ptr, thread};
use tsumugi::{Config, EnteredJob, Rank, Runtime};
use tsumugi_capi::process::{self as rank_of_process, RankUser};
use tsumugi_core::sync::{AtomicPtr, AtomicU32, Ordering};
use tsumugi_runtime::service::collectives::MessageContext;
use tsumugi_runtime::service::messages::Messages;
use tsumugi_ult::ult_local;

/// Of how many looks that find nothing one gives the core to other ranks.
const LOOKS_PER_YIELD: u32 = 32;

/// All that the library knows of the job. Once made it stays, because other threads may
/// still be in a call when the job ends.
pub(crate) struct Job {
    pub(crate) runtime: Runtime,
    pub(crate) messages: Arc<Messages>,
    pub(crate) world: Communicator,
    pub(crate) own: Communicator,
    /// The context of messages by which some ranks agree on contexts.
    pub(crate) agreements: u16,
    _agreements: MessageContext,
    pub(crate) thread_level: c_int,
    /// What has begun the job.
    begun_by: User,
    pub(crate) comms: Table<Arc<Communicator>>,
    pub(crate) groups: Table<Arc<RankGroup>>,
    pub(crate) datatypes: Table<Arc<Datatype>>,
    pub(crate) operations: Table<Arc<UserOp>>,
    pub(crate) requests: Table<HeldRequest>,
    pub(crate) matched: Table<Arc<Matched>>,
    pub(crate) infos: Table<Arc<Info>>,
    pub(crate) errhandlers: Table<Arc<Errhandler>>,
    pub(crate) sessions: Table<Arc<Session>>,
    /// Those that were not finalized, the last one first.
    pub(crate) open_sessions: Mutex<Vec<Arc<Session>>>,
    pub(crate) keyvals: Mutex<Keyvals>,
    pub(crate) buffered: Buffered,
    /// Requests that the program has freed before they ended.
    pub(crate) freed: Mutex<Backlog<Arc<Request>>>,
    /// Whether ranks outnumber the cores, so that a rank that looks and finds nothing lets
    /// others run.
    pub(crate) is_crowded: bool,
    /// Cores on which the process may run.
    cores: u32,
    /// How often a look has found nothing.
    vain_looks: AtomicU32,
    /// Whether the rank says what it has done (`TSUMUGI_VERBOSE`).
    pub(crate) is_verbose: bool,
    /// Whether what the ranks call is compared, and what is left at the end reported.
    pub(crate) checks: bool,
    /// `None`: the rank is that of `tsumugi_start` or its like, which ends it.
    entered: Mutex<Option<OfMain>>,
    /// Answers for attributes of the world, which programs get by their address.
    pub(crate) tag_max: c_int,
    pub(crate) size: c_int,
    pub(crate) last_code: AtomicU32,
}

/// The job, while it runs.
#[inline]
pub(crate) fn job() -> Answer<&'static Job> {
    // Acquire: pairs with the Release of `init`, so that the job is seen whole.
    let job = JOB.load(Ordering::Acquire);
    // SAFETY: a job stays once it was stored.
    match unsafe { job.as_ref() } {
        Some(job) => Ok(job),
        None => Err(not_running()),
    }
}

#[cold]
fn not_running() -> Fault {
    let text = match STATE.load(Ordering::Relaxed) {
        ENDED => format!("called {}", after_the_end()),
        FORKED => format!(
            "called in process {}, which process {} ({}) has forked: only that process may call \
             MPI",
            process::id(),
            PROCESS.load(Ordering::Relaxed),
            Rank(RANK.load(Ordering::Relaxed))
        ),
        _ => "called before MPI_Init".to_owned(),
    };
    Fault::new(abi::ERR_OTHER, text)
}

/// When a call comes that follows the last one of the job.
fn after_the_end() -> String {
    let last = if WORLD.load(Ordering::Relaxed) == ENDED { User::World } else { User::Session };
    format!("after {}", last.calls().ends)
}

/// What the thread that called MPI_Init leaves the job with.
struct OfMain(EnteredJob);

// SAFETY: `finalize` takes it out on that thread alone; other threads only ask it which thread
// that is.
unsafe impl Send for OfMain {}

/// Whether MPI_Init has ended, and whether MPI_Finalize has been called.
pub(crate) fn state() -> (bool, bool) {
    // Acquire: pairs with the Release at the end of `init`, so that the caller finds the job.
    let state = WORLD.load(Ordering::Acquire);
    (state >= RUNNING, state == ENDED)
}

/// What begins the job, and ends its part: the job itself runs until the last one has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum User {
    /// The program, from MPI_Init to MPI_Finalize.
    World,
    Session,
}

impl User {
    /// The calls between which it uses the job.
    pub(crate) fn calls(self) -> RankUser {
        match self {
            Self::World => RankUser { begins: "MPI_Init", ends: "MPI_Finalize" },
            Self::Session => RankUser { begins: "MPI_Session_init", ends: "MPI_Session_finalize" },
        }
    }
}

/// Makes this process a rank, unless it is one. Blocks until all ranks have come.
pub(crate) fn init(wanted: c_int, user: User) -> Answer<c_int> {
    // Relaxed, here and below: the job itself is published by `JOB`.
    if is_fork() {
        return Err(not_running());
    }
    if user == User::World
        && WORLD.compare_exchange(NONE, STARTING, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        fail!(abi::ERR_OTHER, "called {}: a process is a rank once", when_again(&WORLD));
    }
    let level = match job() {
        Ok(job) => job.join(user),
        Err(_) => begin(wanted, user),
    };
    match &level {
        Ok(_) => {
            USERS.fetch_add(1, Ordering::Relaxed);
            if user == User::World {
                IS_MAIN.with(|is_main| is_main.set(true));
                // Release: pairs with the Acquire of `state`.
                WORLD.store(RUNNING, Ordering::Release);
            }
        }
        Err(_) if user == User::World => WORLD.store(NONE, Ordering::Relaxed),
        Err(_) => {}
    }
    level
}

/// When a call comes that would begin again what has this state.
fn when_again(state: &AtomicU32) -> String {
    match state.load(Ordering::Relaxed) {
        ENDED => after_the_end(),
        _ => "for the second time".to_owned(),
    }
}

fn begin(wanted: c_int, user: User) -> Answer<c_int> {
    // Relaxed: the job itself is published below.
    let begun = STATE.compare_exchange(NONE, STARTING, Ordering::Relaxed, Ordering::Relaxed);
    if begun.is_err() {
        fail!(abi::ERR_OTHER, "called {}: a process is a rank once", when_again(&STATE));
    }
    let level = wanted.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE);
    match start(level, user) {
        Ok(job) => {
            RANK.store(job.world.rank(), Ordering::Relaxed);
            job.messages.name_contexts(name_of_context);
            watch_process();
            let job = Box::into_raw(Box::new(job));
            // Release: pairs with the Acquire of `job`.
            JOB.store(job, Ordering::Release);
            STATE.store(RUNNING, Ordering::Relaxed);
            Ok(level)
        }
        Err(fault) => {
            rank_of_process::release(user.calls());
            STATE.store(NONE, Ordering::Relaxed);
            Err(fault)
        }
    }
}

fn start(level: c_int, user: User) -> Answer<Job> {
    let calls = user.calls();
    if let Some(copies) = other_copy() {
        fail!(abi::ERR_OTHER, "{copies}");
    }
    let config = Config::from_env().map_err(|error| Fault::new(abi::ERR_OTHER, error))?;
    // A rank of MPI is a process with one core. The second worker attends to messages while
    // the first thread waits for other threads of the program, which may be in calls.
    let needed = if level >= abi::THREAD_SERIALIZED { 2 } else { 1 };
    let wanted = config.workers.unwrap_or(1).max(needed);
    let (is_verbose, checks) = (config.verbose, config.mpi_checks);
    let has_heap = config.mpi_heap;
    let other = |reason: String| Fault::new(abi::ERR_OTHER, reason);
    let (runtime, begun) = match rank_of_process::use_rank(calls).map_err(other)? {
        Some(runtime) => (runtime, None),
        None => {
            let beginning = rank_of_process::begin(calls.begins).map_err(other)?;
            let Some(entered) = config.workers(wanted).enter()? else {
                fail!(
                    abi::ERR_OTHER,
                    "the calling thread cannot become a rank: it is a ULT of a scheduler that \
                     belongs to no job; call {} before, or tsumugi_start",
                    calls.begins
                );
            };
            (entered.runtime().clone(), Some((beginning, entered)))
        }
    };
    if has_heap {
        malloc::use_partition();
    }
    let messages = runtime.handle().messages().clone();
    let world = Communicator::world(&runtime.world())?;
    let own = Communicator::own(&world.group)?;
    let agreements = world.group.handle().message_context()?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (neighbours, workers) = (runtime.neighbours().count(), runtime.workers());
    let entered = begun.map(|(beginning, entered)| {
        beginning.runs(&runtime);
        OfMain(entered)
    });
    Ok(Job {
        messages,
        world,
        own,
        agreements: agreements.number(),
        _agreements: agreements,
        thread_level: level,
        begun_by: user,
        comms: Table::new(kind::COMM),
        groups: Table::new(kind::GROUP),
        datatypes: Table::new(kind::DATATYPE),
        operations: Table::new(kind::OP),
        requests: Table::new(kind::REQUEST),
        matched: Table::new(kind::MESSAGE),
        infos: Table::new(kind::INFO),
        errhandlers: Table::new(kind::ERRHANDLER),
        sessions: Table::new(kind::SESSION),
        open_sessions: Mutex::default(),
        keyvals: Mutex::default(),
        buffered: Buffered::default(),
        freed: Mutex::default(),
        is_verbose,
        checks,
        is_crowded: neighbours.saturating_mul(workers) > cores,
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        vain_looks: AtomicU32::new(0),
        entered: Mutex::new(entered),
        tag_max: abi::TAG_MAX,
        size: runtime.size() as c_int,
        last_code: AtomicU32::new(abi::ERR_LASTCODE.cast_unsigned()),
        runtime,
    })
}

/// The rank of this process, from the begin of the job on.
pub(crate) fn rank() -> Option<Rank> {
    // Relaxed: the number says all.
    let rank = Some(RANK.load(Ordering::Relaxed));
    rank.filter(|rank| *rank != NO_RANK && !is_fork()).map(Rank)
}

/// Whether the process is a child that a rank has forked.
pub(crate) fn is_fork() -> bool {
    // Relaxed: the child has written it before any call.
    STATE.load(Ordering::Relaxed) == FORKED
}

/// The communicator with a context, of messages or of collectives, by its name.
fn name_of_context(context: u16) -> Option<String> {
    let job = job().ok()?;
    let has_it =
        |comm: &Communicator| comm.context() == context || comm.group.handle().context() == context;
    let given = [&job.world, &job.own].into_iter().find(|comm| has_it(comm));
    given.map(ToString::to_string).or_else(|| {
        let made = job.comms.all(|comm| comm.clone()).into_iter().find(|comm| has_it(comm));
        made.map(|comm| comm.to_string())
    })
}

/// Has an exit of the process before the end of the job say so, and MPI's functions fail in a
/// child that the process forks.
fn watch_process() {
    extern "C" fn at_exit() {
        // A child that was forked is no rank, also if no handler ran in it.
        let is_rank = process::id() == PROCESS.load(Ordering::Relaxed);
        if is_rank && STATE.load(Ordering::Relaxed) == RUNNING {
            let is_world = WORLD.load(Ordering::Relaxed) == RUNNING;
            let missing = if is_world { User::World } else { User::Session };
            eprintln!(
                "{}the program exits without {}",
                rank().map_or_else(String::new, |rank| format!("{rank}: ")),
                missing.calls().ends
            );
        }
    }
    unsafe extern "C" fn in_child() {
        // Relaxed: the child has one thread.
        if matches!(STATE.load(Ordering::Relaxed), STARTING | RUNNING) {
            STATE.store(FORKED, Ordering::Relaxed);
            WORLD.store(NONE, Ordering::Relaxed);
            JOB.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }
    PROCESS.store(process::id(), Ordering::Relaxed);
    // SAFETY: functions that may run at the end of the process, and in a child: `in_child`
    // writes atomics alone.
    unsafe {
        libc::atexit(at_exit);
        libc::pthread_atfork(None, None, Some(in_child));
    }
}

/// Ends the part of the program, or of a session. The last one ends the job of this process,
/// and blocks until all ranks have come.
pub(crate) fn finalize(job: &'static Job, user: User) -> Answer {
    if user == User::World {
        match WORLD.load(Ordering::Relaxed) {
            RUNNING => {}
            ENDED => fail!(abi::ERR_OTHER, "called for the second time"),
            _ => fail!(abi::ERR_OTHER, "called before MPI_Init"),
        }
        need!(is_main(), abi::ERR_OTHER, "called by another thread than MPI_Init");
        job.own.delete_attributes()?;
        job.world.delete_attributes()?;
    }
    let (entered, is_shared) = {
        // Of several users that end at once, one is the last.
        let mut entered = lock(&job.entered);
        if USERS.load(Ordering::Relaxed) == 1
            && let Some(of_main) = &*entered
        {
            let begins = job.begun_by.calls().begins;
            let is_caller = of_main.0.is_caller();
            need!(is_caller, abi::ERR_OTHER, "called by another thread than {begins}");
            rank_of_process::end().map_err(|reason| Fault::new(abi::ERR_OTHER, reason))?;
        }
        // All that may fail is done.
        if user == User::World {
            WORLD.store(ENDED, Ordering::Relaxed);
        }
        if USERS.fetch_sub(1, Ordering::Relaxed) > 1 {
            rank_of_process::release(user.calls());
            return Ok(());
        }
        let is_shared = entered.is_none();
        (entered.take(), is_shared)
    };
    job.buffered.drain(&job.messages);
    if is_shared {
        // The end of the rank, which waits for them otherwise, may be far.
        job.drain_freed();
    }
    let left = entered.map_or(Ok(()), |entered| entered.0.leave());
    rank_of_process::release(user.calls());
    STATE.store(ENDED, Ordering::Relaxed);
    // Release: as in `init`; later calls find no job.
    JOB.store(ptr::null_mut(), Ordering::Release);
    Ok(left?)
}

/// Ends the process with this code, and with it the job.
pub(crate) fn abort(code: c_int) -> ! {
    let code = if code & 0xff == 0 { 1 } else { code & 0xff };
    // SAFETY: ends the process. No destructor runs, because other threads are in calls.
    unsafe { libc::_exit(code) }
}

impl Job {
    /// Whether the next end of a use ends the rank, too, with its ULTs.
    pub(crate) fn is_last_use(&self) -> bool {
        USERS.load(Ordering::Relaxed) == 1 && lock(&self.entered).is_some()
    }

    /// Begins another use of the job.
    fn join(&self, user: User) -> Answer<c_int> {
        if lock(&self.entered).is_none() {
            let used = rank_of_process::use_rank(user.calls());
            used.map_err(|reason| Fault::new(abi::ERR_OTHER, reason))?;
        }
        Ok(self.thread_level)
    }

    /// Lets others run after a look that has found nothing: other ULTs of the rank, where ranks
    /// share cores now and then other ranks, and where very many threads look the threads that
    /// carry messages. The system may give the core away
    /// for milliseconds, and some programs look once between any two steps of their work.
    pub(crate) fn give_way(&self) {
        tsumugi_ult::yield_now();
        if self.is_crowded
            && self.vain_looks.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOKS_PER_YIELD)
        {
            thread::yield_now();
        }
        if tsumugi_ult::id().is_none() {
            back_off(self.cores);
        }
    }
}

/// Whether the caller is the ULT, or the thread that is none, that called MPI_Init.
pub(crate) fn is_main() -> bool {
    IS_MAIN.with(Cell::get)
}

ult_local! {
    static IS_MAIN: Cell<bool> = Cell::new(false);
}

static JOB: AtomicPtr<Job> = AtomicPtr::new(ptr::null_mut());
/// Of the job.
static STATE: AtomicU32 = AtomicU32::new(NONE);
/// Of the program, from MPI_Init to MPI_Finalize.
static WORLD: AtomicU32 = AtomicU32::new(NONE);
/// The program, and sessions.
static USERS: AtomicU32 = AtomicU32::new(0);
static RANK: AtomicU32 = AtomicU32::new(NO_RANK);
/// The process that is the rank, and may have forked this one.
static PROCESS: AtomicU32 = AtomicU32::new(0);
const NO_RANK: u32 = u32::MAX;
const NONE: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const ENDED: u32 = 3;
/// Of the job in a child that was forked while it ran.
const FORKED: u32 = 4;
