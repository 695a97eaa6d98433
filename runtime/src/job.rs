//! The job of which this process is a part, and the bootstrap by which it has
//! joined the job.
//!
//! ```text
//!  tsumugi run ──── descriptors in the environment ────────────────► Member
//!  mpiexec, srun ── heads of cards, one barrier ──► Nodes ── meet ─► Member, Detector
//!                                                     └── several: Network, and
//!                                                         the source of cards
//!  no launcher ──── alone ─────────────────────────────────────────► Member
//! ```

mod lazy_bootstrap;
mod exchange;
mod packed_cards;

use crate::config::NetworkConfig;
use crate::error::Error;
use crate::error::NoNetwork;
use crate::net::{self, FaultClock, Faults, NetDevice, Network};
use exchange::{Exchange, card_of};
use lazy_bootstrap::LazyBootstrap;
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tsumugi_backends::boot::card::CardHead;
use tsumugi_backends::boot::choose::is_rank as is_told;
use tsumugi_backends::boot::{self, Boot, BootMethod, RankCard, random_u64};
use tsumugi_core::boot::{BootError, Bootstrap};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::config::NODE;
use tsumugi_pvas::detector::Launcher;
use tsumugi_pvas::partition::RankState;
use tsumugi_pvas::{Detector, Meeting, Member, NodeId, Nodes, Rest, SpaceConfig, attach};

/// A job, and this process's place in it.
#[derive(Debug)]
pub struct JoinedJob {
    pub(crate) member: Member,
    pub(crate) method: BootMethod,
    /// Whether a launcher has started the job, so that its ranks share the node's
    /// cores.
    pub(crate) is_shared: bool,
    /// The network between the job's nodes, if there are several.
    pub(crate) network: Option<Network>,
    pub(crate) ties: Ties,
}

/// The settings by which a rank finds its job.
#[derive(Clone, Copy, Debug)]
pub struct JobConfig<'a> {
    /// The partitions, if no launcher has made them.
    pub space: &'a SpaceConfig,
    /// The network between nodes.
    pub network: &'a NetworkConfig,
    /// Whether rank 0 prints how the ranks found each other.
    pub verbose: bool,
}

/// The bootstrap connection and the failure detector, which a rank keeps while it
/// runs.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    is_done: bool,
    peers: Option<Member>,
    boot: Option<(BootMethod, Exchange)>,
    detector: Option<Detector>,
    /// The time that ranks have after a death before they are ended.
    grace: Duration,
}

/// The information that a rank has about all other ranks after the exchange.
struct Everybody {
    nodes: Nodes,
    /// A random number that names the job.
    token: u64,
    own: CardHead,
    /// The first rank that has another network than this rank, or none.
    unlike: Option<(Rank, CardHead)>,
}

/// Whether a launcher has started this process as a rank of a job: the launcher of
/// tsumugi, or another one that is supported.
pub fn is_rank() -> bool {
    attach::is_rank() || is_told()
}

impl JoinedJob {
    /// The number of ranks of this job on this node.
    pub fn node_size(&self) -> u32 {
        self.member.space().size()
    }

    /// Joins the job that the environment describes.
    pub fn join(config: &JobConfig<'_>) -> Result<Self, Error> {
        if attach::is_watched() {
            return Self::attach(BootMethod::Launcher, config);
        }
        // A bootstrap by addresses, PMI and the like has precedence over a name
        // alone.
        if let Some(boot) = boot::choose()? {
            let Boot { method, bootstrap, limit } = boot;
            return Self::join_by(
                method,
                Exchange::Open(LazyBootstrap::new(bootstrap)),
                limit,
                config,
            );
        }
        let is_alone = std::env::var(boot::env::BOOT).is_ok_and(|method| method == "alone");
        if attach::is_rank() && !is_alone {
            return Self::attach(BootMethod::Name, config);
        }
        let members = Member::threads(1, config.space)?;
        let member = members.into_iter().next().expect("one rank was requested");
        Ok(Self {
            member,
            method: BootMethod::Alone,
            is_shared: false,
            network: None,
            ties: Ties::default(),
        })
    }

    /// Joins the job of the ranks that `bootstrap` connects.
    pub fn join_with(bootstrap: Box<dyn Bootstrap>, config: &JobConfig<'_>) -> Result<Self, Error> {
        Self::join_by(BootMethod::Given, Exchange::Closed(bootstrap), LIMIT, config)
    }

    fn join_by(
        method: BootMethod,
        mut exchange: Exchange,
        limit: Duration,
        config: &JobConfig<'_>,
    ) -> Result<Self, Error> {
        let joined = Self::join_all(method, &mut exchange, limit, config);
        if joined.is_err() {
            // Other ranks may still need data that this rank serves.
            let _ = exchange.leave();
        }
        let (member, detector, network) = joined?;
        let boot = Some((method, exchange));
        let peers = Some(member.clone());
        let ties = Ties { is_done: false, peers, boot, detector, grace: grace(config) };
        Ok(Self { member, method, is_shared: true, network, ties })
    }

    fn join_all(
        method: BootMethod,
        exchange: &mut Exchange,
        limit: Duration,
        config: &JobConfig<'_>,
    ) -> Result<(Member, Option<Detector>, Option<Network>), Error> {
        let (rank, size) = exchange.with(|boot| (boot.rank(), boot.size()));
        // The device is opened before it is known whether it is needed, because a
        // card is published only once.
        let said = |name: &str| std::env::var(name).ok();
        let is_one_node = said(NODE).is_none() && boot::env::is_one_node(size, &said);
        let device = match is_one_node {
            true => Err(NoNetwork::Off),
            false => net::open(config.network, rank, size),
        };
        let all = exchange.with(|boot| meet(boot, device.as_ref().ok()))?;
        let device = match all.nodes.count() {
            1 => None,
            _ => Some(exchange.with(|boot| connect(boot, device, &all))?),
        };
        let Everybody { nodes, token, own, .. } = all;
        let nodes = Arc::new(nodes);
        let cards = device.as_ref().map(|_| exchange.cards(&nodes)).transpose()?;
        let network = device.zip(cards).map(|(device, cards)| {
            let faults = config.network.faults.map(|seed| Faults::drawn(seed, FaultClock::Micros));
            Network::join(device, token, cards, faults)
        });
        let (member, detector) = Self::place(method, rank, nodes, token, own.node, limit, config)?;
        Ok((member, detector, network))
    }

    /// Joins the other ranks of this node.
    fn place(
        method: BootMethod,
        rank: Rank,
        nodes: Arc<Nodes>,
        token: u64,
        node: u64,
        limit: Duration,
        config: &JobConfig<'_>,
    ) -> Result<(Member, Option<Detector>), Error> {
        let place = nodes.place(rank).ok_or(NO_RANKS)?;
        // All users of the node can read the job's name, but the token is secret:
        // packets carry it.
        let (job, node) = (format!("{:016x}", boot::shown_for(token)), NodeId(node));
        let meeting = Meeting { job: &job, node, local: place.local, size: place.size, limit };
        let member = Member::meet(&meeting, config.space)?.among(nodes.clone(), rank);
        // With several hosts, each host's agent ends the other ranks.
        let rest = if method == BootMethod::Server {
            Rest::Leave
        } else {
            Rest::End { grace: grace(config) }
        };
        let launcher =
            if method == BootMethod::Server { Launcher::of_this_process() } else { None };
        let detector = detect(&member, rest, launcher)?;
        if rank == Rank(0) && config.verbose {
            let on = match nodes.count() {
                1 => "one node".to_owned(),
                count => match config.network.faults {
                    None => format!("{count} nodes"),
                    Some(seed) => format!("{count} nodes with faults of seed {seed}"),
                },
            };
            // One write, so that the line does not mix with the output of ranks.
            let line = format!("tsumugi: ranks: {}, on {on}, by {method}\n", nodes.ranks());
            eprint!("{line}");
        }
        Ok((member, detector))
    }

    fn attach(method: BootMethod, config: &JobConfig<'_>) -> Result<Self, Error> {
        let member = attach().ok_or(NO_RANKS)??;
        let rest = Rest::End { grace: grace(config) };
        let detector = if attach::is_watched() { None } else { detect(&member, rest, None)? };
        let peers = detector.is_some().then(|| member.clone());
        let ties = Ties { is_done: false, peers, boot: None, detector, grace: grace(config) };
        Ok(Self { member, method, is_shared: true, network: None, ties })
    }
}

impl Ties {
    /// Waits for all ranks of the job, on all nodes.
    pub(crate) fn meet(&mut self) -> Result<(), BootError> {
        self.boot.as_mut().map_or(Ok(()), |(_, exchange)| exchange.meet())
    }

    /// Called when this rank has ended successfully.
    pub(crate) fn finish(mut self) {
        self.is_done = true;
    }
}

impl Drop for Ties {
    fn drop(&mut self) {
        // A rank that ends because another one has failed waits here, so that the
        // launcher sees the failed rank end first: the exit code of that rank is
        // the job's.
        if !self.is_done && self.peers.as_ref().is_some_and(has_failed) {
            let is_remote = matches!(self.boot, Some((BootMethod::Server, _)));
            thread::sleep(if is_remote { self.grace + AFTER_YOU_THERE } else { AFTER_YOU });
        }
        self.detector = None;
        let Some((method, mut boot)) = self.boot.take() else { return };
        if self.is_done || method == BootMethod::Pmi {
            // hydra ignores the exit code of a rank that disconnects without a
            // message. An error of `leave` is ignored, because the launcher may be
            // gone by now.
            let _ = boot.leave();
        } else {
            // The launcher must see the connection close and the process end at the
            // same time; otherwise it ends the job before it has the exit code.
            std::mem::forget(boot);
        }
    }
}

/// Whether a peer has been declared lost, and the launcher does not know of it yet.
fn has_failed(own: &Member) -> bool {
    if own.first_failure().rank().is_some() {
        return false;
    }
    let peers = own.neighbours().filter(|rank| *rank != own.rank());
    peers.into_iter().any(|rank| own.control_of(rank).state() == RankState::Failed)
}

fn grace(config: &JobConfig<'_>) -> Duration {
    Duration::from_millis(config.space.grace_ms.into())
}

/// Starts the failure detector for the node's other ranks, and for deaths that
/// `launcher` reports.
fn detect(
    member: &Member,
    rest: Rest,
    launcher: Option<Launcher>,
) -> Result<Option<Detector>, Error> {
    if member.space().size() == 1 && launcher.is_none() {
        return Ok(None);
    }
    let system = |error: std::io::Error| BootError::System {
        what: "starting the failure detector",
        errno: error.raw_os_error().unwrap_or(0),
    };
    Ok(Some(Detector::start(member, rest, launcher).map_err(system)?))
}

/// Publishes this rank's card, and collects the heads of all cards.
fn meet(boot: &mut dyn Bootstrap, device: Option<&NetDevice>) -> Result<Everybody, Error> {
    let refused = |error: std::io::Error| BootError::System {
        what: "random numbers",
        errno: error.raw_os_error().unwrap_or(0),
    };
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let token = if boot.rank() == Rank(0) { random_u64().map_err(refused)? } else { 0 };
    let network = device.map_or(0, NetDevice::mark);
    let own = CardHead { node: NodeId::here().0, token, network };
    let address = device.map_or(&[][..], NetDevice::card).to_vec();
    let card = RankCard { head: own, host: host.trim().to_owned(), network: address };
    boot.publish(&card.to_bytes())?;
    boot.barrier()?;
    let (mut ids, mut token, mut unlike) = (Vec::new(), 0, None);
    let mut bad = None;
    boot.heads(&mut |rank, bytes| match CardHead::parse(bytes) {
        Ok(head) => {
            ids.push(head.node);
            token = if rank == Rank(0) { head.token } else { token };
            if head.network != network && unlike.is_none() {
                unlike = Some((rank, head));
            }
        }
        Err(error) => {
            let _ = bad.get_or_insert(Error::Card { rank, error });
        }
    })?;
    match bad {
        Some(error) => Err(error),
        None => Ok(Everybody { nodes: Nodes::new(ids), token, own, unlike }),
    }
}

/// Returns the device, if all ranks can be reached by it.
fn connect(
    boot: &mut dyn Bootstrap,
    device: Result<NetDevice, NoNetwork>,
    all: &Everybody,
) -> Result<NetDevice, Error> {
    let nodes = &all.nodes;
    let why = match (device, all.unlike) {
        (Ok(device), None) => return Ok(device),
        (Err(why), _) => why,
        (Ok(_), Some((rank, CardHead { network: 0, .. }))) => NoNetwork::Peer { rank },
        (Ok(device), Some((rank, _))) => {
            let RankCard { host, network, .. } = card_of(boot, rank)?;
            device.unlike(rank, host, &network)
        }
    };
    // The names of some hosts, each once.
    let first = |node| nodes.ranks_of(node).next().expect("a node has ranks");
    let mut hosts: Vec<String> = (0..nodes.count().min(HOSTS_NAMED))
        .filter_map(|node| Some(card_of(boot, first(node)).ok()?.host))
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    let hosts = hosts.join(", ");
    Err(Error::SeveralNodes { ranks: nodes.ranks(), nodes: nodes.count(), hosts, why })
}

const NO_RANKS: Error = Error::Boot(BootError::NoSuchRank { rank: Rank(0), size: 0 });
/// A launcher needs less time than this to notice a death.
const AFTER_YOU: Duration = Duration::from_millis(200);
/// An agent first ends its other ranks, after their grace time.
const AFTER_YOU_THERE: Duration = Duration::from_millis(400);
/// The maximum number of host names in a message.
const HOSTS_NAMED: u32 = 8;
/// The time limit for a bootstrap that has no limit of its own.
const LIMIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_backends::boot::Given;

    fn join<F>(boot: Given<F>) -> Error
    where
        Given<F>: Bootstrap + 'static,
    {
        let (space, network) = Default::default();
        let config = JobConfig { space: &space, network: &network, verbose: false };
        JoinedJob::join_with(Box::new(boot), &config).unwrap_err()
    }

    #[test]
    fn ranks_of_other_nodes_are_counted_and_named() {
        // The peer's card states another node.
        let mut peers_turn = Vec::new();
        let head = CardHead { node: 1, ..CardHead::default() };
        let elsewhere = RankCard { head, host: "elsewhere".into(), network: vec![] };
        let elsewhere = elsewhere.to_bytes();
        let gather = move |own: &[u8], all: &mut [u8]| {
            let (mine, peer) = all.split_at_mut(own.len());
            mine.copy_from_slice(own);
            if own.len() == 4 {
                peer.copy_from_slice(&(elsewhere.len() as u32).to_le_bytes());
            } else {
                peers_turn.push(own.len());
                peer[..elsewhere.len()].copy_from_slice(&elsewhere);
            }
            true
        };
        let given = Given::new(Rank(0), 2, gather).unwrap();
        let error = join(given);
        let Error::SeveralNodes { ranks: 2, nodes: 2, hosts, .. } = &error else {
            panic!("{error}")
        };
        assert!(hosts.contains("elsewhere"), "{error}");
    }

    #[test]
    fn a_broken_card_is_an_error_that_names_its_rank() {
        let gather = |own: &[u8], all: &mut [u8]| {
            all.chunks_mut(own.len()).for_each(|chunk| chunk.copy_from_slice(own));
            if own.len() > 4 {
                all[own.len()] = b'?';
            }
            true
        };
        let given = Given::new(Rank(0), 2, gather).unwrap();
        let error = join(given);
        assert!(matches!(error, Error::Card { rank: Rank(1), .. }), "{error}");
    }
}
