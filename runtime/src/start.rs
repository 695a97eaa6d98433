//! The start and the end of a rank.
//!
//! [`run_job`] makes the calling process a rank of its job. [`run_threads`] makes ranks
//! that are threads of this process: each has its partition, its scheduler and its region
//! table, and all calls work between them as between processes, except that they die
//! together.

use crate::affinity;
use crate::config::{Bind, Chosen};
use crate::endpoint_card::{Common, EndpointCard};
use crate::error::Error;
use crate::handle::RankHandle;
use crate::job::JoinedJob;
use crate::leaked_slice::zeroes;
use crate::net::{NetLayer, Network, Poller, Transport};
use crate::node::RankNode;
use crate::node_ranks::NodeRanks;
use crate::panic;
use crate::progress_thread::ProgressThread;
use crate::service::Service;
use crate::service::am::Am;
use crate::service::messages::{MessageLanes, Messages};
use crate::variable::{MAIN_STACK, ULT_STACK};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;
use tsumugi_backends::boot::BootMethod;
use tsumugi_core::boot::{BootError, Bootstrap};
use tsumugi_core::mem::{LocalAddr, LocalRank};
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_pvas::Member;
use tsumugi_pvas::launch::Stall;
use tsumugi_pvas::numa;
use tsumugi_pvas::partition::declare_lost;
use tsumugi_ult::{Origin, Scheduler, StackArea, StartError};

/// Runs `main` as a rank of `job`, on a ULT, and returns its result. The calling thread
/// is a worker meanwhile.
///
/// # Errors
///
/// Those of `main`, and of the start of the rank; [`Error::Coll`] if another rank has
/// died before the end of its own `main`.
pub fn run_job<T: Send, E: From<Error> + Send>(
    job: JoinedJob,
    chosen: &Chosen,
    main: impl FnOnce(RankHandle) -> Result<T, E> + Send,
) -> Result<T, E> {
    let JoinedJob { member, method, is_shared, network, mut ties } = job;
    let everywhere = affinity::allowed().unwrap_or_default();
    let cores = if is_shared { cores_of(member.local(), chosen, &everywhere) } else { Vec::new() };
    let measured =
        if is_shared { cores_measured(&member, chosen, &everywhere) } else { Vec::new() };
    if numa::has_several()
        && let Some(node) = numa::node_of(&cores)
    {
        // Without permission each page lies on the node of its first touch.
        let _ = member.space().prefer_node(member.local(), node);
    }
    let place = StartPlace { method, cores, measured: &measured };
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

/// Runs `main` on the ranks `members`, which are threads of this process, and returns
/// the values that `main` returned, in the order of the ranks. Some of the ranks may see
/// each other as ranks of other nodes; `apart` returns the view of each. If no rank does, the
/// calling thread looks for a standstill, and writes its report to the standard error.
///
/// # Errors
///
/// The error of the rank that failed first.
///
/// # Panics
///
/// If a rank panics.
pub fn run_threads<T: Send, E: From<Error> + Send>(
    members: Vec<Member>,
    chosen: &Chosen,
    apart: impl Fn(&Member) -> Apart,
    main: impl Fn(RankHandle) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let first_failure = OnceLock::new();
    let be_one = |(member, apart): (Member, Apart)| {
        let (rank, space) = (member.rank(), member.space().clone());
        let result = catch_unwind(AssertUnwindSafe(|| {
            be(member, chosen, StartPlace::ANYWHERE, None, apart, &main)
        }));
        if !matches!(result, Ok(Ok(_))) {
            let _ = first_failure.set(rank.0 as usize);
            declare_lost(rank, space.controls());
        }
        result
    };
    let Some(space) = members.first().map(|member| member.space().clone()) else {
        return Ok(Vec::new());
    };
    let members: Vec<_> = members.into_iter().map(|member| (apart(&member), member)).collect();
    // Among nodes a thread of the network may wake a rank at any time.
    let is_one_node = members.iter().all(|((neighbours, _), _)| neighbours.is_none());
    let members = members.into_iter().map(|(apart, member)| (member, apart));
    let (ended, starter) = (&AtomicUsize::new(0), &thread::current());
    let be_one = &|member| {
        let result = be_one(member);
        // Release: pairs with the Acquire below; the thread has no more to do.
        ended.fetch_add(1, Ordering::Release);
        starter.unpark();
        result
    };
    let mut results: Vec<_> = thread::scope(|scope| {
        let ranks: Vec<_> = members.map(|member| scope.spawn(move || be_one(member))).collect();
        let mut stall = Stall::new(Instant::now());
        // Acquire: pairs with the Release above.
        while ended.load(Ordering::Acquire) < ranks.len() {
            thread::park_timeout(stall.next().saturating_duration_since(Instant::now()));
            if is_one_node && let Some(text) = stall.poll(Instant::now(), space.controls()) {
                // Not by `eprint!`, whose text a test shows at its end only.
                let _ = std::io::stderr().write_all(text.as_bytes());
            }
        }
        ranks.into_iter().map(|rank| rank.join().unwrap_or_else(Err)).collect()
    });
    // The error of the rank that failed first has the cause; the others only
    // lost it.
    if let Some(first) = first_failure.get() {
        results.rotate_left(*first);
    }
    results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}

/// The ranks on this node, if not all are, and the transport of messages to the
/// others.
pub type Apart = (Option<NodeRanks>, Option<Arc<dyn Transport>>);

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
pub(crate) struct StartPlace<'a> {
    method: BootMethod,
    /// The cores of its workers; empty: the system chooses.
    cores: Vec<usize>,
    /// The cores between which the node measures distances.
    measured: &'a [usize],
}

impl StartPlace<'_> {
    /// The place of a rank that is a thread of some process.
    pub(crate) const ANYWHERE: Self =
        StartPlace { method: BootMethod::Alone, cores: Vec::new(), measured: &[] };
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
    chosen: &Chosen,
    place: StartPlace<'_>,
    span: Option<Span<'_>>,
    apart: Apart,
    main: impl FnOnce(RankHandle) -> Result<T, E> + Send,
) -> Result<T, E> {
    panic::report_ranks();
    let (network, mut meet) = span.map(|Span { network, meet }| (network, meet)).unzip();
    let node = make(member, chosen, &place, network, apart)?;
    let watch = node.net().map(|net| Poller::start(&net)).transpose()?;
    let survivor = Survivor(&node);
    if let Some(meet) = &mut meet {
        // From here on ranks may reach each other over the network.
        meet().map_err(Error::from)?;
    }
    let scheduler = schedule(&node, chosen)?;
    let handle = RankHandle::new(node.clone(), place.method, scheduler.spawner(), chosen.workers);
    node.watch(handle.spawner(), chosen.workers);
    let closing = Closing(&node);
    let helper = ProgressThread::start(&node, chosen.workers)?;
    let showing = chosen.inside.show(node.member().rank(), handle.spawner())?;
    let result = scheduler.run(|| {
        let value = main(handle.clone())?;
        // The ULTs of scopes may wait for other ranks, which end after the barrier.
        handle.spawner().wait_for_scopes();
        node.settle();
        node.note_returned();
        handle.barrier().map_err(Error::from)?;
        Ok(value)
    });
    showing.end();
    drop(helper);
    drop(closing);
    if result.is_ok() {
        if let Some(meet) = meet {
            // Until all ranks are here, other ranks may need an answer, which the
            // watch gives. A rank that is gone needs none.
            let _ = meet();
        }
        node.member().finish();
    }
    // After the meeting: no rank of another node reads from this node any more.
    node.member().control().set_closed();
    drop(survivor);
    drop(watch);
    result
}

/// A rank that runs: its services are closed when it ends, also by a panic.
struct Closing<'n>(&'n RankNode);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.unwatch();
        if thread::panicking() {
            self.0.member().control().set_closed();
        }
    }
}

/// A rank that ends after another one has died. Its connections stay open until all
/// nodes have the report of that death, because they would take closed connections
/// for a death of this rank.
struct Survivor<'n>(&'n RankNode);

impl Drop for Survivor<'_> {
    fn drop(&mut self) {
        if self.0.parking_lot().lost().is_some() {
            self.0.member().first_failure().outlive();
        }
    }
}

/// Makes the parts of a rank, after all ranks of its node have exchanged the places
/// of theirs.
pub(crate) fn make(
    mut member: Member,
    chosen: &Chosen,
    place: &StartPlace<'_>,
    network: Option<Network>,
    (neighbours, transport): Apart,
) -> Result<Arc<RankNode>, Error> {
    let am = Am::new(&member)?;
    let neighbours = neighbours.unwrap_or_else(|| NodeRanks::of(&member));
    let lanes = MessageLanes::new(&member, neighbours, chosen)?;
    let card = EndpointCard { calls: am.key(), messages: lanes.key() };
    let packed = network.as_ref().and_then(Network::packed);
    let common = packed.map_or(Common::default(), |packed| lay_out(&member, &packed));
    card.publish(&mut member, common)?;
    // All ranks' starter memory, collective words and lanes for messages are
    // registered now.
    member.barrier()?;
    let cards = EndpointCard::all(&mut member)?;
    if let (Some(network), Some(common)) = (&network, EndpointCard::common(&mut member)?) {
        network.share(common);
    }
    am.connect(&cards);
    if member.local() == LocalRank(0) {
        // The other ranks sleep in the barrier meanwhile.
        member.calibrate(place.measured, &chosen.thresholds);
    }
    member.barrier()?;
    let net = match network {
        None => None,
        Some(network) => {
            let net = Arc::new(NetLayer::new(network, &member, chosen)?);
            for region in am.regions() {
                net.register(region)?;
            }
            am.set_transport(net.clone());
            Some(net)
        }
    };
    let transport = transport.or_else(|| Some(net.clone()? as Arc<dyn Transport>));
    let messages = Messages::new(&member, &lanes, &cards, transport, chosen)?;
    let cores = place.cores.clone();
    let node = Arc::new(RankNode::new(member, am, messages, net.clone(), chosen, cores));
    if let Some(net) = &net {
        net.on_bell(bell_of(&node));
        let weak = Arc::downgrade(&node);
        net.on_arrival(Box::new(move || {
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
fn bell_of(node: &Arc<RankNode>) -> Box<dyn Fn(LocalAddr) + Send + Sync> {
    let node = Arc::downgrade(node);
    Box::new(move |word| {
        let Some(node) = node.upgrade() else { return };
        node.rang(word.key);
    })
}

fn schedule(node: &Arc<RankNode>, chosen: &Chosen) -> Result<Scheduler, Error> {
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
        origin: Origin {
            rank: (node.member().nodes().ranks() > 1).then(|| node.member().rank()),
            stack_bytes: ULT_STACK,
            main_stack_bytes: MAIN_STACK,
        },
        ..tsumugi_ult::Config::new(stacks)
    })?)
}
