//! Joining a job: by a launcher, by a bootstrap, or alone.

use super::card_exchange::{Everybody, connect, meet};
use super::exchange::Exchange;
use super::lazy_bootstrap::LazyBootstrap;
use super::ties::Ties;
use crate::config::NetworkConfig;
use crate::error::Error;
use crate::error::NoNetwork;
use crate::net::{self, FaultClock, Faults, Network};
use crate::own_rank;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_backends::boot::choose::is_rank as is_told;
use tsumugi_backends::boot::{self, Boot, BootMethod};
use tsumugi_core::boot::{BootError, Bootstrap};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::config::NODE;
use tsumugi_pvas::detector::Launcher;
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

/// Whether a launcher has started this process as a rank of a job: the launcher of
/// tsumugi, or another one that is supported. `TSUMUGI_BOOT=alone` hides other launchers.
pub fn is_rank() -> bool {
    attach::is_watched() || (attach::is_rank() && !is_alone()) || is_told()
}

/// Whether the environment forbids all ways to other ranks but the launcher of tsumugi.
fn is_alone() -> bool {
    std::env::var(boot::env::BOOT).is_ok_and(|method| method == "alone")
}

impl JoinedJob {
    /// The number of ranks of this job on this node.
    pub fn node_size(&self) -> u32 {
        self.member.space().size()
    }

    /// This process's rank.
    pub fn rank(&self) -> Rank {
        self.member.rank()
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
        if attach::is_rank() && !is_alone() {
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
        own_rank::set(rank, size);
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
        own_rank::set(member.rank(), member.space().size());
        let rest = Rest::End { grace: grace(config) };
        let detector = if attach::is_watched() { None } else { detect(&member, rest, None)? };
        let peers = detector.is_some().then(|| member.clone());
        let ties = Ties { is_done: false, peers, boot: None, detector, grace: grace(config) };
        Ok(Self { member, method, is_shared: true, network: None, ties })
    }
}

fn grace(config: &JobConfig<'_>) -> Duration {
    config.space.grace
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

const NO_RANKS: Error = Error::Boot(BootError::NoSuchRank { rank: Rank(0), size: 0 });
/// The time limit for a bootstrap that has no limit of its own.
const LIMIT: Duration = Duration::from_secs(60);
