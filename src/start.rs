//! Becoming a rank, and ending as one.
//!
//! | [`run`] | finds | and is |
//! |---|---|---|
//! | under `tsumugi run -n N` | its partition in the environment | one of N |
//! | under `mpiexec`, `mpirun`, `srun` | who it is; the others by [`boot`](crate::boot) | one of N |
//! | alone | nothing | rank 0 of 1 |
//!
//! [`run_ranks`] makes N ranks that are threads of this process: each has its
//! partition, its scheduler and its region table, and everything works between
//! them as between processes, but that they die together.

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
use crate::{Error, Rank, Runtime};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::thread;
use tsumugi_backends::boot::Way;
use tsumugi_core::boot::{BootError, Bootstrap};
use tsumugi_core::mem::LocalAddr;
use tsumugi_pvas::Member;
use tsumugi_pvas::partition::declare_lost;
use tsumugi_ult::{Scheduler, StackArea, StartError};

/// Runs `main` as this process's rank, on a ULT, and returns what it returns.
/// The calling thread is a worker meanwhile.
///
/// If `main` ends well, `run` waits for all other ranks to come as far, so
/// that nobody's memory goes away under them.
///
/// # Errors
///
/// Those of `main`, and [`Error`] if the rank cannot be started.
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

/// Runs `main` on `size` ranks that are threads of this process, and returns
/// what each returned, in their order.
///
/// The addresses of their partitions are those of the next job, once nothing
/// leads there: while a handle of the job is kept (a [`Runtime`], an array, what a
/// ULT has on its stack that was cut off), so are they. A process has addresses
/// for some 700 partitions of the default size.
///
/// # Errors
///
/// That of the rank that failed first. A rank that fails or panics is lost to
/// the others, whose operations then end with
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

    /// [`run`] with this configuration, as a rank of the job that `bootstrap`
    /// brings together: for a program that runs inside another one, such as an
    /// MPI program whose allgather is [`Given`](crate::boot::Given).
    ///
    /// # Errors
    ///
    /// Those of [`run`].
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
            // The calling thread was a worker.
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

    /// The same, of which some see each other as ranks of other nodes, as
    /// `apart` says of each.
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
        // Whoever failed first says why; the others only lost it.
        if let Some(first) = first_failure.get() {
            results.rotate_left(*first);
        }
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    }
}

/// Who is on this node, if not all are, and what carries messages to others.
type Apart = (Option<Neighbours>, Option<Arc<dyn Parcels>>);

/// The cores of this rank's workers, if they are to keep to some: the ranks of
/// the node deal them out in their order, over and over where there are too few.
fn cores_of(local: Rank, chosen: &Chosen, allowed: &[usize]) -> Vec<usize> {
    let first = (local.0 as usize).saturating_mul(chosen.workers);
    let all = allowed.iter().copied().cycle();
    match chosen.bind {
        Bind::Cores => all.skip(first % allowed.len().max(1)).take(chosen.workers).collect(),
        Bind::None => Vec::new(),
    }
}

/// The first core of each rank, if the node is to measure how far they are
/// from each other.
fn cores_measured(member: &Member, chosen: &Chosen, allowed: &[usize]) -> Vec<usize> {
    let firsts = allowed.iter().step_by(chosen.workers).take(member.space().size() as usize);
    if chosen.calibrate { firsts.copied().collect() } else { Vec::new() }
}

/// How a rank came to be, and on which cores.
struct Place<'a> {
    way: Way,
    /// Those of its workers; empty: wherever the system likes.
    cores: Vec<usize>,
    /// Those that the node is to be measured by.
    measured: &'a [usize],
}

impl Place<'_> {
    /// Of a thread of some process.
    const ANYWHERE: Self = Place { way: Way::Alone, cores: Vec::new(), measured: &[] };
}

/// What a rank of a job on several nodes has besides.
struct Span<'a> {
    network: Network,
    /// Waits for all ranks.
    meet: &'a mut dyn FnMut() -> Result<(), BootError>,
}

/// Is `member` from its first to its last breath.
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
        // And over the network from here on.
        meet().map_err(Error::from)?;
    }
    let scheduler = schedule(&node, &chosen)?;
    let runtime = Runtime::new(node.clone(), place.way, scheduler.spawner(), chosen.workers);
    node.watch(runtime.ults(), chosen.workers);
    let helper = Helper::start(&node, chosen.workers)?;
    let showing = chosen.inside.show(node.member().rank(), runtime.ults())?;
    let result = scheduler.run(|| {
        let value = main(&runtime)?;
        // Theirs may wait for other ranks, which go after the barrier.
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
            // Until then others may need an answer, which the watch gives. Who
            // is not there any more needs none.
            let _ = meet();
        }
        node.member().finish();
    }
    drop(survivor);
    drop(watch);
    result
}

/// A rank that ends when another one has died: its connections stay until all
/// nodes have heard who that is, for they would take them for its own death.
struct Survivor<'n>(&'n Node);

impl Drop for Survivor<'_> {
    fn drop(&mut self) {
        if self.0.lot().lost().is_some() {
            self.0.member().culprit().outlive();
        }
    }
}

/// The parts of a rank, when everybody of its node has told where theirs are.
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
    // Everybody's starter memory and collective words are registered now, and
    // their lanes for messages.
    member.barrier()?;
    let cards = Card::all(&mut member)?;
    if let (Some(network), Some(common)) = (&network, Card::common(&mut member)?) {
        network.share(common);
    }
    am.connect(&cards);
    if member.local() == Rank(0) {
        // The others are asleep in the barrier meanwhile.
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
            // Copies of others, and the ends of own ones.
            node.global().map(|global| global.pump());
        }));
    }
    Ok(node)
}

/// What the first rank of a node has for all of them, in its exposed memory.
/// Where that has no room, each has its own.
fn lay_out(member: &Member, packed: &[u8]) -> Common {
    let is_first = member.local() == Rank(0) && !packed.is_empty();
    let Some(at) = is_first.then(|| zeroes(member, packed.len()).ok()).flatten() else {
        return Common::default();
    };
    // SAFETY: a block of so many bytes, which nobody else knows yet.
    unsafe { at.copy_from_nonoverlapping(NonNull::from(packed).cast(), packed.len()) };
    Common { at: at.as_ptr().expose_provenance(), bytes: packed.len() }
}

/// What is done when a rank of another node has changed a word of ours.
fn bell_of(node: &Arc<Node>) -> Box<dyn Fn(LocalAddr) + Send + Sync> {
    let node = Arc::downgrade(node);
    Box::new(move |word| {
        let Some(node) = node.upgrade() else { return };
        if node.am().has_lanes(word.key) {
            node.am().rang();
        } else if let Some(global) = node.global()
            && word.key == global.key()
        {
            global.rang();
        } else {
            node.duties().rang(word.key);
        }
    })
}

fn schedule(node: &Arc<Node>, chosen: &Chosen) -> Result<Scheduler, Error> {
    let (base, bytes) = node.member().stacks();
    // SAFETY: the stacks' part of this rank's partition, which nobody else
    // uses; a space that has a heap is never unmapped.
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
