//! The start and the end of a rank.
//!
//! | [`run`] | finds | and is |
//! |---|---|---|
//! | under `tsumugi run -n N` | its partition in the environment | one of N ranks |
//! | under `mpiexec`, `mpirun`, `srun` | its rank there; the others by [`boot`](crate::boot) | one of N ranks |
//! | alone, with `TSUMUGI_RANKS=N` | this number | the launcher of N ranks, which are this program again |
//! | alone | nothing | rank 0 of 1 |
//!
//! [`run_ranks`] makes N ranks that are threads of this process: each has its
//! partition, its scheduler and its region table, and all calls work between them as
//! between processes, except that they die together.

use crate::knob::report_misspelt;
use crate::{Config, Error, Rank, Runtime};
use std::fmt;
use tsumugi_core::boot::Bootstrap;
use tsumugi_pvas::{Launch, LaunchError, Member};
use tsumugi_runtime::config::Chosen;
use tsumugi_runtime::job::{JobConfig, JoinedJob, is_rank};
use tsumugi_runtime::start::{Apart, EnteredRank, enter_job, run_job, run_threads};

/// Runs `main` as this process's rank, on a ULT, and returns its result. The calling
/// thread is a worker meanwhile.
///
/// With `TSUMUGI_RANKS=4` ([`Config::ranks`]) and without a launcher, this process starts
/// itself as four ranks, exactly as `tsumugi run -n 4` does: it watches over them, and
/// then it ends with the exit code of the job, so this call does not return. The code
/// before `run` runs in this process and in each rank, the code after `run` only in
/// ranks. Under a launcher the number is ignored, because the launcher has chosen it.
///
/// If `main` ends well, `run` waits for all other ranks to end their `main`, so that
/// no rank's memory is freed while others use it.
///
/// # Errors
///
/// Those of `main`, and these of the runtime:
///
/// - [`Error::Config`]: a variable of the environment has a value that is not
///   valid.
/// - [`Error::Launch`]: the ranks of a job without a launcher could not be started.
/// - [`Error::Attach`], [`Error::Boot`], [`Error::Choose`], [`Error::Card`]: the
///   rank could not join its job, or the ranks did not find each other.
/// - [`Error::SeveralNodes`]: the job has several nodes, and no network connects
///   them.
/// - [`Error::Space`], [`Error::OutOfMemory`], [`Error::Register`]: the memory of
///   the rank could not be made or registered.
/// - [`Error::Start`]: the scheduler could not be started.
/// - [`Error::Program`]: the reports or traces that the environment requests are
///   not possible.
/// - [`Error::Coll`]: `main` has ended well, but another rank has died before the
///   end of its own `main`.
///
/// # Example
///
/// ```
/// # fn main() -> Result<(), tsumugi::Error> {
/// tsumugi::run(|rt| {
///     let words = rt.share::<u64>(1)?;
///     let next = (rt.rank().0 + 1) % rt.size();
///     rt.fetch_add(words.at(tsumugi::Rank(next), 0), 1)?;
///     rt.barrier()?;
///     assert_eq!(rt.get(words.at(rt.rank(), 0))?, 1);
///     Ok(())
/// })
/// # }
/// ```
pub fn run<T: Send, E: From<Error> + Send>(
    main: impl FnOnce(&Runtime) -> Result<T, E> + Send,
) -> Result<T, E> {
    Config::from_env()?.run(main)
}

/// Runs `main` on `size` ranks that are threads of this process, and returns the
/// values that `main` returned, in the order of the ranks.
///
/// The addresses of their partitions are used again by the next job, once no handle
/// of this one is left: while a handle is kept (a [`Runtime`], an array, a value on
/// the stack of a ULT that was cut off), the addresses are in use. A process has addresses for
/// some 700 partitions of the default size, and heaps for 160 ranks at a time: those of all
/// tests that run beside each other.
///
/// If all ranks wait for ever, the calling thread writes which ULT waits for what, and for
/// each barrier the ranks that have not come, to the standard error: after two seconds, and
/// past the capture of a test's output. The job goes on.
///
/// # Errors
///
/// [`Error::Config`] if a variable of the environment has a value that is not
/// valid; [`Error::Space`] if the partitions of so many ranks cannot be made; else
/// the error of the rank that failed first. A rank that fails or panics is lost to
/// the other ranks; their operations then end with
/// [`AddrError::PeerLost`](crate::AddrError::PeerLost).
///
/// # Panics
///
/// If a rank panics.
pub fn run_ranks<T: Send, E: From<Error> + Send>(
    size: u32,
    main: impl Fn(&Runtime) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    Config::from_env()?.run_ranks(size, main)
}

/// A configuration, and the exchange by which the ranks of the job find each other:
/// [`Config::bootstrap`] makes it.
#[must_use = "the rank runs by `run`"]
pub struct Bootstrapped {
    config: Config,
    bootstrap: Box<dyn Bootstrap>,
}

impl Bootstrapped {
    /// [`run`] with this configuration, as a rank of the job that the bootstrap brings
    /// together. [`Config::ranks`] has no effect.
    ///
    /// # Errors
    ///
    /// Those of [`run`], except [`Error::Choose`] and [`Error::Launch`]: the ranks meet
    /// by the bootstrap.
    pub fn run<T: Send, E: From<Error> + Send>(
        self,
        main: impl FnOnce(&Runtime) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        let job = JoinedJob::join_with(self.bootstrap, &self.config.of_job())?;
        let chosen = self.config.chosen_for(&job);
        run_job(job, &chosen, |handle| main(&Runtime::new(handle)))
    }
}

impl fmt::Debug for Bootstrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrapped").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A rank of which the program's own `main` is a ULT: [`Config::enter`] makes it.
#[must_use = "the rank ends by `leave`"]
pub struct EnteredJob {
    runtime: Runtime,
    rank: EnteredRank,
}

impl EnteredJob {
    /// The rank.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Whether the caller is the ULT that has entered, which alone can leave.
    pub fn is_caller(&self) -> bool {
        self.rank.is_caller()
    }

    /// Waits until all ranks have come to the end of their jobs, and ends the rank: the
    /// caller is an ordinary thread again. ULTs that have not ended are cut off. Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: another rank has died. This one has ended all the same.
    ///
    /// # Panics
    ///
    /// If the caller is not the ULT that has entered.
    pub fn leave(self) -> Result<(), Error> {
        let Self { runtime, rank } = self;
        drop(runtime);
        rank.leave()
    }
}

impl fmt::Debug for EnteredJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnteredJob({:?})", self.runtime)
    }
}

impl Config {
    /// [`run`] with this configuration.
    ///
    /// # Errors
    ///
    /// Those of [`run`].
    pub fn run<T: Send, E: From<Error> + Send>(
        self,
        main: impl FnOnce(&Runtime) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        let (chosen, job) = self.join()?;
        run_job(job, &chosen, |handle| main(&Runtime::new(handle)))
    }

    /// Makes this process a rank, what the calling thread runs a ULT of it on the thread's
    /// own stack, and the thread its last worker, until the rank is
    /// [left](EnteredJob::leave): for libraries that a program calls from the middle of its
    /// `main`. As in [`run`], the process starts itself as several ranks if it has no
    /// launcher and [`Config::ranks`] says so. `None`: the caller is a ULT already, or no
    /// thread can enter a scheduler on this system.
    ///
    /// # Errors
    ///
    /// Those of [`run`].
    pub fn enter(self) -> Result<Option<EnteredJob>, Error> {
        let (chosen, job) = self.join()?;
        let rank = enter_job(job, &chosen)?;
        Ok(rank.map(|rank| EnteredJob { runtime: Runtime::new(rank.handle().clone()), rank }))
    }

    /// This configuration for a rank of the job that `bootstrap` brings together: for a
    /// program that runs inside another one, such as an MPI program with
    /// [`Given`](crate::boot::Given) for its allgather.
    ///
    /// # Example
    ///
    /// ```
    /// use tsumugi::boot::Given;
    /// use tsumugi::{Config, Error, Rank};
    ///
    /// # fn main() -> Result<(), Error> {
    /// // In an MPI program: MPI_Allgather of as many bytes.
    /// let allgather = |own: &[u8], all: &mut [u8]| {
    ///     all.copy_from_slice(own);
    ///     true
    /// };
    /// let given = Given::new(Rank(0), 1, allgather)?;
    /// Config::from_env()?.bootstrap(given).run(|rt| rt.barrier())
    /// # }
    /// ```
    pub fn bootstrap(self, bootstrap: impl Bootstrap + 'static) -> Bootstrapped {
        Bootstrapped { config: self, bootstrap: Box::new(bootstrap) }
    }

    /// Joins the job, or starts it: then this does not return, except with an error.
    fn join(self) -> Result<(Chosen, JoinedJob), Error> {
        if let Some(ranks) = self.ranks.filter(|_| !is_rank()) {
            // No destructor of the caller runs: this process is no rank, and has nothing
            // to give back to `main`.
            std::process::exit(self.launch(ranks).map_err(Error::from)?.into());
        }
        let job = JoinedJob::join(&self.of_job())?;
        Ok((self.chosen_for(&job), job))
    }

    /// The settings of a rank of `job`.
    fn chosen_for(self, job: &JoinedJob) -> Chosen {
        if job.rank() == Rank(0) {
            report_misspelt();
        }
        self.choose(job.node_size())
    }

    /// Starts this program as the ranks of a job, and watches over them; returns the
    /// job's exit code.
    fn launch(&self, ranks: u32) -> Result<u8, LaunchError> {
        let job = Launch::of_this_program(ranks)?.config(self.space);
        Ok(job.forward_signals(true).start()?.wait()?.exit_code())
    }

    /// The settings by which a rank finds its job.
    fn of_job(&self) -> JobConfig<'_> {
        let Self { space, network, verbose, .. } = self;
        JobConfig { space, network, verbose: *verbose }
    }

    /// [`run_ranks`] with this configuration, the same for each rank.
    ///
    /// # Errors
    ///
    /// Those of [`run_ranks`].
    ///
    /// # Panics
    ///
    /// If a rank panics.
    pub fn run_ranks<T: Send, E: From<Error> + Send>(
        self,
        size: u32,
        main: impl Fn(&Runtime) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        self.run_ranks_apart(size, |_| Apart::default(), main)
    }

    /// Runs ranks of which some see each other as ranks of other nodes; `apart`
    /// returns the view of each.
    pub(crate) fn run_ranks_apart<T: Send, E: From<Error> + Send>(
        self,
        size: u32,
        apart: impl Fn(&Member) -> Apart,
        main: impl Fn(&Runtime) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let members = Member::threads(size, &self.space).map_err(Error::from)?;
        let main = |handle| main(&Runtime::new(handle));
        run_threads(members, &self.choose(size), apart, main)
    }
}
