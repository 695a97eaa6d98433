//! Jobs: making the process a rank, ending it, and the collectives.

use super::code::{code_of, of_failure};
use super::object::null;
use super::parameter::{Word, borrow, place};
use super::{TSUMUGI_ERROR_JOB, TSUMUGI_ERROR_NULL, remember, tsumugi_scheduler};
use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use tsumugi::{Error, Global, Runtime};
use tsumugi_acp::process::{
    self, BackgroundCalls, BackgroundError, BackgroundRank, RankUser, end_mirror,
};
use tsumugi_core::sync::{AtomicBool, Ordering};

/// This process as a rank of its job, with the global memory of all ranks. Any
/// thread and any ULT may use it.
pub struct tsumugi_job {
    pub(super) runtime: Runtime,
    pub(super) global: Global,
    scheduler: tsumugi_scheduler,
    origin: Origin,
    /// The program's own memory that was registered: start, bytes, global address.
    pub(super) regions: Mutex<Vec<(usize, usize, u64)>>,
}

/// What made the rank of a job, and so ends it.
enum Origin {
    /// `tsumugi_start`.
    Started(Box<BackgroundRank>),
    /// `tsumugi_run`.
    Run,
    /// Another interface, such as MPI_Init, whose rank `tsumugi_start` uses.
    Shared,
}

/// Makes this process a rank of the job in which it was started (by `tsumugi run`,
/// `mpiexec`, `srun` ...; without a launcher it is the only rank of a job of its
/// own), with workers in the background, and opens the global memory. Returns when
/// all ranks have called it. At most once in a process. Blocks.
///
/// If `MPI_Init` or `acp_init` of the same library has made this process a rank, the job is
/// that one, with its workers, and `tsumugi_end` ends this use alone.
///
/// A child that the process forks has none of the rank's threads and stacks, and shares
/// the memory of the job with its parent. It may only call `exec` or `_exit`: this
/// library's functions must not be called in it, and neither must `exit`. Where a call
/// checks it (this one, `tsumugi_run`, `tsumugi_end`, `tsumugi_expose`, barriers, fences,
/// collectives, and all calls that make an object of all ranks), the child gets JOB.
///
/// Errors: JOB, MEMORY, NULL; `tsumugi_reason` has more.
///
/// # Safety
///
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_start(out: *mut *mut tsumugi_job) -> c_int {
    let start = || {
        // SAFETY: the caller's.
        let out = unsafe { place(out) }?;
        let once = OnlyRank::begin()?;
        let job = match process::use_rank(OF_START) {
            Ok(Some(runtime)) => tsumugi_job::sharing(runtime)?,
            Ok(None) => tsumugi_job::start()?,
            Err(reason) => return Err(remember(TSUMUGI_ERROR_JOB, reason)),
        };
        once.keep();
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(Box::new(job))) };
        Ok(())
    };
    code_of(start())
}

/// Ends the rank that `tsumugi_start` began, and frees the job; all objects that
/// were made of the job must have ended before. Returns when all ranks have called
/// it. Blocks. Memory that was registered where it lay becomes the program's
/// private memory again; all other threads of the process are stopped while that
/// happens.
///
/// If the rank is that of `MPI_Init` or `acp_init`, it goes on.
///
/// Errors: JOB (also for a job that `tsumugi_run` made, which ends with its `main`, while
/// MPI uses the rank, and if the caller is a ULT of the rank that this call would end: the job
/// then goes on), NULL.
///
/// # Safety
///
/// `job` is a live job; no other thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_end(job: *mut tsumugi_job) -> c_int {
    let end = || {
        if job.is_null() {
            return Err(TSUMUGI_ERROR_NULL);
        }
        // SAFETY: the caller's.
        let own = unsafe { (*job).runtime.handle().check_process() };
        own.map_err(|error| remember(TSUMUGI_ERROR_JOB, error))?;
        // SAFETY: the caller's: a live job. One of `tsumugi_run` is on the stack of its `main`.
        match unsafe { &(*job).origin } {
            Origin::Run => {
                let reason = "the rank was made by tsumugi_run, which ends it";
                return Err(remember(TSUMUGI_ERROR_JOB, reason));
            }
            Origin::Started(rank) => {
                rank.may_end().map_err(|reason| remember(TSUMUGI_ERROR_JOB, reason))?;
            }
            Origin::Shared => {}
        }
        // SAFETY: the caller's: made by `tsumugi_start`, and no other thread uses it.
        let tsumugi_job { runtime, global, scheduler, origin, regions } =
            *unsafe { Box::from_raw(job) };
        let all_came = runtime.barrier();
        drop((global, scheduler, regions, runtime));
        let Origin::Started(started) = origin else {
            process::release(OF_START);
            // The rank goes on, and may be used again.
            OnlyRank::end();
            return all_came.map_err(of_failure);
        };
        // SAFETY: no rank reaches the memory any more, because all regions have
        // ended and all ranks have passed the barrier; the caller's contract.
        let mirrored = unsafe { end_mirror() };
        started.end().map_err(of_background)?;
        all_came.map_err(of_failure)?;
        mirrored.map_err(|error| remember(TSUMUGI_ERROR_JOB, error))
    };
    code_of(end())
}

/// Makes this process a rank, as `tsumugi_start` does, runs `main(job, arg)` on a
/// ULT, with the calling thread as a worker, and ends the rank. Writes the return
/// value of `main` to `value`, unless `value` is NULL. At most once in a process.
/// Blocks.
///
/// Errors: JOB (also if `MPI_Init` or `acp_init` has made this process a rank:
/// `tsumugi_start` has its job), MEMORY, NULL.
///
/// # Safety
///
/// `main(job, arg)` may run on any thread; `main` uses the job only until it
/// returns; `value` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_run(
    main: Option<unsafe extern "C" fn(*mut tsumugi_job, *mut c_void) -> *mut c_void>,
    arg: *mut c_void,
    value: *mut *mut c_void,
) -> c_int {
    let run = || {
        let main = main.ok_or(TSUMUGI_ERROR_NULL)?;
        let (once, arg) = (OnlyRank::begin()?, Word(arg));
        let beginning = process::begin("tsumugi_run");
        let beginning = beginning.map_err(|reason| remember(TSUMUGI_ERROR_JOB, reason))?;
        let answer = tsumugi::run(move |runtime| {
            let arg = arg;
            once.keep();
            let mut job = tsumugi_job::new(runtime.clone(), runtime.global()?, Origin::Run);
            beginning.runs(runtime);
            // SAFETY: the caller's.
            let answer = Word(unsafe { main(&raw mut job, arg.0) });
            Ok::<_, Error>((answer, process::end_anyway()))
        });
        let (answer, ended) = answer.map_err(of_failure)?;
        if !value.is_null() {
            // SAFETY: the caller's.
            unsafe { value.write(answer.0) };
        }
        ended.map_err(|reason| remember(TSUMUGI_ERROR_JOB, reason))?;
        Ok(())
    };
    code_of(run())
}

/// The rank of this process; `UINT32_MAX` if `job` is NULL. Wait-free.
///
/// # Safety
///
/// `job` is NULL or a live job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_rank(job: *const tsumugi_job) -> u32 {
    // SAFETY: the caller's.
    unsafe { job.as_ref() }.map_or(u32::MAX, |job| job.runtime.rank().0)
}

/// The number of ranks of the job; 0 if `job` is NULL. Wait-free.
///
/// # Safety
///
/// `job` is NULL or a live job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_size(job: *const tsumugi_job) -> u32 {
    // SAFETY: the caller's.
    unsafe { job.as_ref() }.map_or(0, |job| job.runtime.size())
}

/// The scheduler of the rank's workers, by which a thread that is no worker spawns
/// ULTs. It belongs to the job: the program must not run, start or destroy it. NULL
/// if `job` is NULL.
///
/// # Safety
///
/// `job` is NULL or a live job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_workers(job: *const tsumugi_job) -> *const tsumugi_scheduler {
    // SAFETY: the caller's.
    unsafe { job.as_ref() }.map_or(std::ptr::null(), |job| &raw const job.scheduler)
}

/// Waits until every rank has called it. A rank may be in one collective at a time.
/// Blocks.
///
/// Errors: LOST, JOB, NULL.
///
/// # Safety
///
/// `job` is a live job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_barrier(job: *const tsumugi_job) -> c_int {
    // SAFETY: the caller's.
    let job = unsafe { borrow(job) };
    code_of(job.and_then(|job| job.runtime.barrier().map_err(of_failure)))
}

/// Collects the `word` of every rank in `all`, in the order of the ranks. All ranks
/// must call it. Blocks.
///
/// Errors: LOST, JOB, NULL.
///
/// # Safety
///
/// `job` is a live job; `all` is valid for a write of as many words as the job has
/// ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_gather(
    job: *const tsumugi_job,
    word: u64,
    all: *mut u64,
) -> c_int {
    let gather = || {
        // SAFETY: the caller's.
        let (job, all) = unsafe { (borrow(job)?, place(all)?) };
        let words = job.runtime.allgather(word).map_err(of_failure)?;
        // SAFETY: the caller's.
        unsafe { all.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(())
    };
    code_of(gather())
}

/// Borrows the job; null is an error.
///
/// # Safety
///
/// `job` is null or a live job.
#[inline]
pub(super) unsafe fn job<'a>(job: *const tsumugi_job) -> Result<&'a tsumugi_job, c_int> {
    // SAFETY: the caller's.
    unsafe { job.as_ref() }.ok_or_else(|| null("job"))
}

/// The begin of the process's only rank, or of its use, which another one may repeat if it
/// fails.
struct OnlyRank;

impl OnlyRank {
    fn begin() -> Result<Self, c_int> {
        // Relaxed: the flag says all.
        if IS_RANK.swap(true, Ordering::Relaxed) {
            return Err(remember(TSUMUGI_ERROR_JOB, "a process starts a rank at most once"));
        }
        Ok(Self)
    }

    /// The rank has begun.
    fn keep(self) {
        std::mem::forget(self);
    }

    /// Another one may begin.
    fn end() {
        // Relaxed: as in `begin`.
        IS_RANK.store(false, Ordering::Relaxed);
    }
}

impl Drop for OnlyRank {
    fn drop(&mut self) {
        Self::end();
    }
}

/// The rank that this interface makes.
const CALLS: BackgroundCalls =
    BackgroundCalls { begins: "tsumugi_start", ends: "tsumugi_end", thread: "tsumugi" };

/// The use of another interface's rank.
const OF_START: RankUser = RankUser { begins: CALLS.begins, ends: CALLS.ends };

/// The code of a rank that could not begin, or has failed.
fn of_background(error: BackgroundError) -> c_int {
    match error {
        BackgroundError::Runtime(error) => of_failure(error),
        other => remember(TSUMUGI_ERROR_JOB, other),
    }
}

/// Whether the process has begun a rank.
static IS_RANK: AtomicBool = AtomicBool::new(false);

impl tsumugi_job {
    fn new(runtime: Runtime, global: Global, origin: Origin) -> Self {
        let scheduler = tsumugi_scheduler::of(runtime.ults().clone());
        Self { runtime, global, scheduler, origin, regions: Mutex::default() }
    }

    /// Makes the process a rank, with workers in the background.
    fn start() -> Result<Self, c_int> {
        let opened =
            BackgroundRank::start(CALLS, |runtime| Ok((runtime.clone(), runtime.global()?)));
        let (rank, (runtime, global)) = opened.map_err(of_background)?;
        Ok(Self::new(runtime, global, Origin::Started(Box::new(rank))))
    }

    /// The rank that another interface has made.
    fn sharing(runtime: Runtime) -> Result<Self, c_int> {
        match runtime.global() {
            Ok(global) => Ok(Self::new(runtime, global, Origin::Shared)),
            Err(error) => {
                process::release(OF_START);
                Err(of_failure(error))
            }
        }
    }

    /// Whether the job's threads keep nothing in memory of the program (stacks,
    /// heap). Only then can pages of that memory be exchanged for shared ones.
    pub(super) fn is_apart(&self) -> bool {
        matches!(self.origin, Origin::Started(_))
    }

    pub(super) fn known(&self) -> std::sync::MutexGuard<'_, Vec<(usize, usize, u64)>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for tsumugi_job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tsumugi_job({:?})", self.runtime)
    }
}
