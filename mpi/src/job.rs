//! The job of this process, from MPI_Init to MPI_Finalize.

use crate::abi::{self};
use crate::backoff::back_off;
use crate::copies::other_copy;
use crate::fault::{Answer, Fault, fail};
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
use std::ffi::c_int;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::{process, ptr};
use tsumugi::{Config, EnteredJob, Rank, Runtime};
use tsumugi_capi::process::{self as rank_of_process, RankUser};
use tsumugi_core::sync::{AtomicPtr, AtomicU32, Ordering};
use tsumugi_runtime::service::collectives::MessageContext;
use tsumugi_runtime::service::messages::Messages;
use tsumugi_ult::UltId;

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
    /// The caller of MPI_Init: a ULT, or, if it was none, a thread.
    main: (Option<UltId>, ThreadId),
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
        ENDED => "called after MPI_Finalize",
        _ => "called before MPI_Init",
    };
    Fault::new(abi::ERR_OTHER, text)
}

/// What the thread that called MPI_Init leaves the job with.
struct OfMain(EnteredJob);

// SAFETY: `finalize` takes it out on that thread alone; other threads only ask it which thread
// that is.
unsafe impl Send for OfMain {}

/// Whether MPI_Init has been called, and MPI_Finalize.
pub(crate) fn state() -> (bool, bool) {
    // Relaxed: the number says all.
    let state = WORLD.load(Ordering::Relaxed);
    (state >= RUNNING, state == ENDED)
}

/// What begins the job, and ends its part: the job itself runs until the last one has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum User {
    /// The program, from MPI_Init to MPI_Finalize.
    World,
    Session,
}

/// Makes this process a rank, unless it is one. Blocks until all ranks have come.
pub(crate) fn init(wanted: c_int, user: User) -> Answer<c_int> {
    // Relaxed, here and below: the job itself is published by `JOB`.
    if user == User::World
        && WORLD.compare_exchange(NONE, RUNNING, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        let when = if WORLD.load(Ordering::Relaxed) == ENDED {
            "after MPI_Finalize"
        } else {
            "for the second time"
        };
        fail!(abi::ERR_OTHER, "called {when}: a process is a rank once");
    }
    let level = job().map_or_else(|_| begin(wanted), |job| Ok(job.thread_level));
    match &level {
        Ok(_) => {
            USERS.fetch_add(1, Ordering::Relaxed);
        }
        Err(_) if user == User::World => WORLD.store(NONE, Ordering::Relaxed),
        Err(_) => {}
    }
    level
}

fn begin(wanted: c_int) -> Answer<c_int> {
    // Relaxed: the job itself is published below.
    let begun = STATE.compare_exchange(NONE, STARTING, Ordering::Relaxed, Ordering::Relaxed);
    if begun.is_err() {
        let when = match begun {
            Err(ENDED) => "after MPI_Finalize",
            _ => "for the second time",
        };
        fail!(abi::ERR_OTHER, "called {when}: a process is a rank once");
    }
    let level = wanted.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE);
    match start(level) {
        Ok(job) => {
            RANK.store(job.world.rank(), Ordering::Relaxed);
            job.messages.name_contexts(name_of_context);
            watch_exit();
            let job = Box::into_raw(Box::new(job));
            // Release: pairs with the Acquire of `job`.
            JOB.store(job, Ordering::Release);
            STATE.store(RUNNING, Ordering::Relaxed);
            Ok(level)
        }
        Err(fault) => {
            rank_of_process::release(OF_MPI);
            STATE.store(NONE, Ordering::Relaxed);
            Err(fault)
        }
    }
}

fn start(level: c_int) -> Answer<Job> {
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
    let (runtime, begun) = match rank_of_process::use_rank(OF_MPI).map_err(other)? {
        Some(runtime) => (runtime, None),
        None => {
            let beginning = rank_of_process::begin(OF_MPI.begins).map_err(other)?;
            let Some(entered) = config.workers(wanted).enter()? else {
                fail!(
                    abi::ERR_OTHER,
                    "the calling thread cannot become a rank: it is a ULT of a scheduler that \
                     belongs to no job; call MPI_Init before, or tsumugi_start"
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
        main: (tsumugi_ult::id(), thread::current().id()),
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

/// The rank of this process, from MPI_Init on.
pub(crate) fn rank() -> Option<Rank> {
    // Relaxed: the number says all.
    Some(RANK.load(Ordering::Relaxed)).filter(|rank| *rank != NO_RANK).map(Rank)
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

/// Has an exit of the process between MPI_Init and MPI_Finalize say so.
fn watch_exit() {
    extern "C" fn at_exit() {
        // A child that was forked is no rank.
        let is_rank = process::id() == PROCESS.load(Ordering::Relaxed);
        if is_rank && STATE.load(Ordering::Relaxed) == RUNNING {
            eprintln!(
                "{}the program exits without MPI_Finalize",
                rank().map_or_else(String::new, |rank| format!("{rank}: "))
            );
        }
    }
    PROCESS.store(process::id(), Ordering::Relaxed);
    // SAFETY: a function that may run at the end of the process.
    unsafe { libc::atexit(at_exit) };
}

/// Ends the part of the program, or of a session. The last one ends the job of this process,
/// and blocks until all ranks have come.
pub(crate) fn finalize(job: &'static Job, user: User) -> Answer {
    if user == User::World {
        if WORLD.load(Ordering::Relaxed) == ENDED {
            fail!(abi::ERR_OTHER, "called for the second time");
        }
        job.own.delete_attributes()?;
        job.world.delete_attributes()?;
    }
    let (entered, is_shared) = {
        // Of several users that end at once, one is the last.
        let mut entered = lock(&job.entered);
        if USERS.load(Ordering::Relaxed) == 1
            && let Some(of_main) = &*entered
        {
            if !of_main.0.is_caller() {
                fail!(abi::ERR_OTHER, "called by another thread than MPI_Init");
            }
            rank_of_process::end().map_err(|reason| Fault::new(abi::ERR_OTHER, reason))?;
        }
        // All that may fail is done.
        if user == User::World {
            WORLD.store(ENDED, Ordering::Relaxed);
        }
        if USERS.fetch_sub(1, Ordering::Relaxed) > 1 {
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
    rank_of_process::release(OF_MPI);
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
    /// Whether the caller is the ULT or the thread that called MPI_Init.
    pub(crate) fn is_main(&self) -> bool {
        match (tsumugi_ult::id(), self.main) {
            (None, (None, main)) => thread::current().id() == main,
            (own, (main, _)) => own == main,
        }
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

/// The use of a rank that another interface has made.
const OF_MPI: RankUser = RankUser { begins: "MPI_Init", ends: "MPI_Finalize" };

static JOB: AtomicPtr<Job> = AtomicPtr::new(ptr::null_mut());
/// Of the job.
static STATE: AtomicU32 = AtomicU32::new(NONE);
/// Of the program, from MPI_Init to MPI_Finalize.
static WORLD: AtomicU32 = AtomicU32::new(NONE);
/// The program, and sessions.
static USERS: AtomicU32 = AtomicU32::new(0);
static RANK: AtomicU32 = AtomicU32::new(NO_RANK);
/// The process that is the rank.
static PROCESS: AtomicU32 = AtomicU32::new(0);
const NO_RANK: u32 = u32::MAX;
const NONE: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const ENDED: u32 = 3;
