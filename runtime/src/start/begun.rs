//! A rank that runs: how its parts are made, and in which order they end.

use super::place::StartPlace;
use crate::config::Chosen;
use crate::endpoint_card::{Common, EndpointCard};
use crate::error::Error;
use crate::handle::RankHandle;
use crate::inside::Showing;
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
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;
use tsumugi_core::boot::{BootError, Bootstrap};
use tsumugi_core::mem::{LocalAddr, LocalRank};
use tsumugi_pvas::Member;
use tsumugi_pvas::own_process;
use tsumugi_ult::{Origin, Scheduler, StackArea, StartError};

/// The ranks on this node, if not all are, and the transport of messages to the
/// others.
pub type Apart = (Option<NodeRanks>, Option<Arc<dyn Transport>>);

/// Further parts of a rank of a job on several nodes.
pub(super) struct Span<'a> {
    pub(super) network: Network,
    pub(super) meet: Meet<'a>,
}

/// Waits for all ranks of a job on several nodes.
pub(super) type Meet<'a> = &'a mut dyn FnMut() -> Result<(), BootError>;

/// A rank that runs: its parts, in the order in which they end.
pub(super) struct BegunRank {
    showing: Showing,
    helper: ProgressThread,
    closing: Closing,
    pub(super) handle: RankHandle,
    survivor: Survivor,
    watch: Option<Poller>,
    node: Arc<RankNode>,
}

impl BegunRank {
    /// Begins a rank, which has no ULT yet, with its scheduler.
    pub(super) fn begin<'a>(
        member: Member,
        chosen: &Chosen,
        place: &StartPlace,
        span: Option<Span<'a>>,
        apart: Apart,
    ) -> Result<(Self, Scheduler, Option<Meet<'a>>), Error> {
        panic::report_ranks();
        let (network, mut meet) = span.map(|Span { network, meet }| (network, meet)).unzip();
        let node = make(member, chosen, place, network, apart)?;
        let watch = node.net().map(|net| Poller::start(&net)).transpose()?;
        let survivor = Survivor(node.clone());
        if let Some(meet) = &mut meet {
            // From here on ranks may reach each other over the network.
            meet().map_err(Error::from)?;
        }
        let scheduler = schedule(&node, chosen)?;
        let spawner = scheduler.spawner();
        let handle = RankHandle::new(node.clone(), place.method, spawner, chosen.workers);
        node.watch(handle.spawner(), chosen.workers);
        let closing = Closing(node.clone());
        let helper = ProgressThread::start(&node, chosen)?;
        let showing = chosen.inside.show(node.member().rank(), handle.spawner())?;
        let begun = Self { showing, helper, closing, handle, survivor, watch, node };
        Ok((begun, scheduler, meet))
    }

    /// Waits for the end of all other ranks, on the ULT of `main`.
    pub(super) fn settle(&self) -> Result<(), Error> {
        // The ULTs of scopes may wait for other ranks, which end after the barrier.
        self.handle.spawner().wait_for_scopes();
        self.node.settle();
        self.node.note_returned();
        self.handle.barrier().map_err(Error::from)
    }

    /// Ends the rank, after its scheduler has ended.
    pub(super) fn end(self, is_well: bool, meet: Option<Meet<'_>>) {
        let Self { showing, helper, closing, handle: _handle, survivor, watch, node } = self;
        showing.end();
        drop(helper);
        drop(closing);
        if is_well {
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
    }
}

/// A rank that runs: its services are closed when it ends, also by a panic.
struct Closing(Arc<RankNode>);

impl Drop for Closing {
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
struct Survivor(Arc<RankNode>);

impl Drop for Survivor {
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
    place: &StartPlace,
    network: Option<Network>,
    (neighbours, transport): Apart,
) -> Result<Arc<RankNode>, Error> {
    own_process::begin();
    let am = Am::new(&member)?;
    let neighbours = neighbours.unwrap_or_else(|| NodeRanks::of(&member));
    let lanes = MessageLanes::new(&member, neighbours, chosen)?;
    let card =
        EndpointCard { calls: am.key(), messages: lanes.key(), is_crowded: chosen.is_crowded() };
    let packed = network.as_ref().and_then(Network::packed);
    let common = packed.map_or(Common::default(), |packed| lay_out(&member, &packed));
    card.publish(&mut member, common)?;
    // All ranks' starter memory, collective words and lanes for messages are
    // registered now.
    member.barrier()?;
    let cards = EndpointCard::all(&mut member)?;
    // Ranks may be bound to different cores, and collectives must choose alike.
    let is_crowded = cards.iter().any(|card| card.is_crowded);
    if let (Some(network), Some(common)) = (&network, EndpointCard::common(&mut member)?) {
        network.share(common);
    }
    am.connect(&cards);
    if member.local() == LocalRank(0) {
        // The other ranks sleep in the barrier meanwhile.
        member.calibrate(&place.measured, &chosen.thresholds);
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
    let cores = (place.cores.clone(), is_crowded);
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
    let config = tsumugi_ult::Config::new(stacks)
        .workers(chosen.workers)
        .stack_bytes(chosen.stack_bytes)
        .main_stack_bytes(chosen.main_stack_bytes)
        .bells(node.bells())
        .progress(node.clone())
        .spin(chosen.spin)
        .suspension_check(chosen.suspension)
        .origin(Origin {
            rank: (node.member().nodes().ranks() > 1).then(|| node.member().rank()),
            stack_bytes: ULT_STACK,
            main_stack_bytes: MAIN_STACK,
        });
    Ok(Scheduler::new(config)?)
}
