//! The start and the end of a rank.
//!
//! | [`run`] | finds | and is |
//! |---|---|---|
//! | under `tsumugi run -n N` | its partition in the environment | one of N ranks |
//! | under `mpiexec`, `mpirun`, `srun` | its rank there; the others by [`boot`](crate::boot) | one of N ranks |
//! | alone | nothing | rank 0 of 1 |
//!
//! [`run_ranks`] makes N ranks that are threads of this process: each has its
//! partition, its scheduler and its region table, and all calls work between them as
//! between processes, except that they die together.

use crate::affinity;
use crate::am::Am;
use crate::card::{Card, Common};
use crate::config::{Bind, Chosen, Config};
use crate::far::{Far, Network, Watch};
use crate::helper::Helper;
use crate::job::Job;
use crate::lend::zeroes;
use crate::msg::{Lanes, Messages, Parcels};
use crate::neighbours::Neighbours;
use crate::node::Node;
use crate::service::Service;
use crate::{Error, Runtime};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::thread;
use tsumugi_backends::boot::BootMethod;
use tsumugi_core::boot::{BootError, Bootstrap};
use tsumugi_core::mem::{LocalAddr, LocalRank};
use tsumugi_pvas::Member;
use tsumugi_pvas::partition::declare_lost;
use tsumugi_ult::{Scheduler, StackArea, StartError};

/// Runs `main` as this process's rank, on a ULT, and returns its result. The calling
/// thread is a worker meanwhile.
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
/// the stack of a ULT that was cut off), the addresses are in use. A process has
/// addresses for some 700 partitions of the default size.
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
        let job = Job::join(&self)?;
        self.run_job(job, main)
    }

    /// [`run`] with this configuration, as a rank of the job that `bootstrap` brings
    /// together: for a program that runs inside another one, such as an MPI program
    /// with [`Given`](crate::boot::Given) for its allgather.
    ///
    /// # Errors
    ///
    /// Those of [`run`], except [`Error::Choose`]: the ranks meet by `bootstrap`.
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
    /// Config::from_env()?.run_with(Box::new(given), |rt| rt.barrier())
    /// # }
    /// ```
    pub fn run_with<T: Send, E: From<Error> + Send>(
        self,
        bootstrap: Box<dyn Bootstrap>,
        main: impl FnOnce(&Runtime) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        let job = Job::join_with(bootstrap, &self)?;
        self.run_job(job, main)
    }

    fn run_job<T: Send, E: From<Error> + Send>(
        self,
        job: Job,
        main: impl FnOnce(&Runtime) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        let Job { member, way, is_shared, network, mut ties } = job;
        let chosen = self.choose(member.space().size());
        let everywhere = affinity::allowed().unwrap_or_default();
        let cores =
            if is_shared { cores_of(member.local(), &chosen, &everywhere) } else { Vec::new() };
        let measured =
            if is_shared { cores_measured(&member, &chosen, &everywhere) } else { Vec::new() };
        let place = Place { way, cores, measured: &measured };
        let mut meet = || ties.meet();
        let span = network.map(|network| Span { network, meet: &mut meet });
        let result = be(member, chosen, place, span, Apart::default(), main);
        if is_shared {
            // The calling thread was a worker and was pinned.
            let _ = affinity::keep_to(&everywhere);
        }
        if result.is_ok() {
            ties.finish();
        }
        result
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
        let chosen = self.choose(size);
        let first_failure = OnceLock::new();
        let be_one = |(member, apart): (Member, Apart)| {
            let (rank, space) = (member.rank(), member.space().clone());
            let result = catch_unwind(AssertUnwindSafe(|| {
                be(member, chosen.clone(), Place::ANYWHERE, None, apart, &main)
            }));
            if !matches!(result, Ok(Ok(_))) {
                let _ = first_failure.set(rank.0 as usize);
                declare_lost(rank, space.controls());
            }
            result
        };
        let members = members.into_iter().map(|member| {
            let apart = apart(&member);
            (member, apart)
        });
        let mut results: Vec<_> = thread::scope(|scope| {
            let be_one = &be_one;
            let ranks: Vec<_> = members.map(|member| scope.spawn(move || be_one(member))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap_or_else(Err)).collect()
        });
        // The error of the rank that failed first has the cause; the others only
        // lost it.
        if let Some(first) = first_failure.get() {
            results.rotate_left(*first);
        }
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    }
}

/// The ranks on this node, if not all are, and the carrier of messages to the
/// others.
type Apart = (Option<Neighbours>, Option<Arc<dyn Parcels>>);

/// The cores of this rank's workers, if they are to be pinned: the ranks of the node
/// take cores in their order, again from the first one when there are too few.
fn cores_of(local: LocalRank, chosen: &Chosen, allowed: &[usize]) -> Vec<usize> {
    let first = (local.0 as usize).saturating_mul(chosen.workers);
    let all = allowed.iter().copied().cycle();
    match chosen.bind {
        Bind::Cores => all.skip(first % allowed.len().max(1)).take(chosen.workers).collect(),
        Bind::None => Vec::new(),
    }
}

/// The first core of each rank, if the node is to measure the distances between
/// cores.
fn cores_measured(member: &Member, chosen: &Chosen, allowed: &[usize]) -> Vec<usize> {
    let firsts = allowed.iter().step_by(chosen.workers).take(member.space().size() as usize);
    if chosen.calibrate { firsts.copied().collect() } else { Vec::new() }
}

/// How a rank was started, and on which cores.
struct Place<'a> {
    way: BootMethod,
    /// The cores of its workers; empty: the system chooses.
    cores: Vec<usize>,
    /// The cores between which the node measures distances.
    measured: &'a [usize],
}

impl Place<'_> {
    /// The place of a rank that is a thread of some process.
    const ANYWHERE: Self = Place { way: BootMethod::Alone, cores: Vec::new(), measured: &[] };
}

/// Further parts of a rank of a job on several nodes.
struct Span<'a> {
    network: Network,
    /// Waits for all ranks.
    meet: &'a mut dyn FnMut() -> Result<(), BootError>,
}

/// Runs the rank `member` from its start to its end.
fn be<T: Send, E: From<Error> + Send>(
    member: Member,
    chosen: Chosen,
    place: Place<'_>,
    span: Option<Span<'_>>,
    apart: Apart,
    main: impl FnOnce(&Runtime) -> Result<T, E> + Send,
) -> Result<T, E> {
    let (network, mut meet) = span.map(|Span { network, meet }| (network, meet)).unzip();
    let node = make(member, &chosen, &place, network, apart)?;
    let watch = node.far().map(|far| Watch::start(&far)).transpose()?;
    let survivor = Survivor(&node);
    if let Some(meet) = &mut meet {
        // From here on ranks may reach each other over the network.
        meet().map_err(Error::from)?;
    }
    let scheduler = schedule(&node, &chosen)?;
    let runtime = Runtime::new(node.clone(), place.way, scheduler.spawner(), chosen.workers);
    node.watch(runtime.ults(), chosen.workers);
    let helper = Helper::start(&node, chosen.workers)?;
    let showing = chosen.inside.show(node.member().rank(), runtime.ults())?;
    let result = scheduler.run(|| {
        let value = main(&runtime)?;
        // The ULTs of scopes may wait for other ranks, which end after the barrier.
        runtime.ults().wait_for_scopes();
        node.settle();
        runtime.barrier()?;
        Ok(value)
    });
    showing.end();
    drop(helper);
    node.unwatch();
    if result.is_ok() {
        if let Some(meet) = meet {
            // Until all ranks are here, other ranks may need an answer, which the
            // watch gives. A rank that is gone needs none.
            let _ = meet();
        }
        node.member().finish();
    }
    drop(survivor);
    drop(watch);
    result
}

/// A rank that ends after another one has died. Its connections stay open until all
/// nodes have the report of that death, because they would take closed connections
/// for a death of this rank.
struct Survivor<'n>(&'n Node);

impl Drop for Survivor<'_> {
    fn drop(&mut self) {
        if self.0.lot().lost().is_some() {
            self.0.member().culprit().outlive();
        }
    }
}

/// Makes the parts of a rank, after all ranks of its node have exchanged the places
/// of theirs.
fn make(
    mut member: Member,
    chosen: &Chosen,
    place: &Place<'_>,
    network: Option<Network>,
    (neighbours, parcels): Apart,
) -> Result<Arc<Node>, Error> {
    let am = Am::new(&member)?;
    let neighbours = neighbours.unwrap_or_else(|| Neighbours::of(&member));
    let lanes = Lanes::new(&member, neighbours, chosen)?;
    let card = Card { calls: am.key(), messages: lanes.key() };
    let packed = network.as_ref().and_then(Network::packed);
    let common = packed.map_or(Common::default(), |packed| lay_out(&member, &packed));
    card.publish(&mut member, common)?;
    // All ranks' starter memory, collective words and lanes for messages are
    // registered now.
    member.barrier()?;
    let cards = Card::all(&mut member)?;
    if let (Some(network), Some(common)) = (&network, Card::common(&mut member)?) {
        network.share(common);
    }
    am.connect(&cards);
    if member.local() == LocalRank(0) {
        // The other ranks sleep in the barrier meanwhile.
        member.calibrate(place.measured, &chosen.thresholds);
    }
    member.barrier()?;
    let far = match network {
        None => None,
        Some(network) => {
            let far = Arc::new(Far::new(network, &member, chosen)?);
            for region in am.regions() {
                far.register(region)?;
            }
            am.carry_by(far.clone());
            Some(far)
        }
    };
    let parcels = parcels.or_else(|| Some(far.clone()? as Arc<dyn Parcels>));
    let messages = Messages::new(&member, &lanes, &cards, parcels, chosen)?;
    let cores = place.cores.clone();
    let node = Arc::new(Node::new(member, am, messages, far.clone(), chosen, cores));
    if let Some(far) = &far {
        far.on_bell(bell_of(&node));
        let weak = Arc::downgrade(&node);
        far.on_arrival(Box::new(move || {
            let Some(node) = weak.upgrade() else { return };
            // Copies for other ranks, and the ends of own ones.
            node.global().map(|global| global.pump());
        }));
    }
    Ok(node)
}

/// Copies the cards of all ranks into exposed memory of the node's first rank, for
/// all ranks of the node. If there is no room for them, each rank keeps a copy of
/// its own.
fn lay_out(member: &Member, packed: &[u8]) -> Common {
    let is_first = member.local() == LocalRank(0) && !packed.is_empty();
    let Some(at) = is_first.then(|| zeroes(member, packed.len()).ok()).flatten() else {
        return Common::default();
    };
    // SAFETY: a new block of as many bytes, which no other thread uses yet.
    unsafe { at.copy_from_nonoverlapping(NonNull::from(packed).cast(), packed.len()) };
    Common { at: at.as_ptr().expose_provenance(), bytes: packed.len() }
}

/// Makes the handler that is called when a rank of another node has changed a word
/// of this rank.
fn bell_of(node: &Arc<Node>) -> Box<dyn Fn(LocalAddr) + Send + Sync> {
    let node = Arc::downgrade(node);
    Box::new(move |word| {
        let Some(node) = node.upgrade() else { return };
        node.rang(word.key);
    })
}

fn schedule(node: &Arc<Node>, chosen: &Chosen) -> Result<Scheduler, Error> {
    let (base, bytes) = node.member().stacks();
    // SAFETY: the part of this rank's partition for stacks, which has no other use;
    // a space that has a heap is never unmapped.
    let stacks = unsafe { StackArea::from_raw(base, bytes) }.map_err(StartError::Stacks)?;
    Ok(Scheduler::new(tsumugi_ult::Config {
        workers: chosen.workers,
        stack_bytes: chosen.stack_bytes,
        main_stack_bytes: chosen.main_stack_bytes,
        bells: Some(node.bells()),
        progress: node.clone(),
        spin: chosen.spin,
        suspension_check: chosen.suspension,
        ..tsumugi_ult::Config::new(stacks)
    })?)
}

#[cfg(test)]
mod tests;
