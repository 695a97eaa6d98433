//! Which job this process is part of, and how it got there.
//!
//! ```text
//!  tsumugi run ──── descriptors in the environment ────────────────► Member
//!  mpiexec, srun ── heads of cards, one barrier ──► Nodes ── meet ─► Member, Detector
//!                                                     └── several: Network, and
//!                                                         where cards are to be had
//!  nobody ───────── alone ─────────────────────────────────────────► Member
//! ```

mod door;
mod exchange;
mod kept;

use crate::config::Config;
use crate::far::{self, Clock, Device, Faults, Network};
use crate::{Error, NoNetwork};
use door::Door;
use exchange::{Exchange, card_of};
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tsumugi_backends::boot::card::Head;
use tsumugi_backends::boot::choose::is_rank as is_told;
use tsumugi_backends::boot::{self, Boot, Card, Way, random_u64};
use tsumugi_core::boot::{BootError, Bootstrap};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::config::NODE;
use tsumugi_pvas::detector::Launcher;
use tsumugi_pvas::partition::State;
use tsumugi_pvas::{Detector, Meeting, Member, NodeId, Nodes, Rest, attach};

/// A job, and this process's place in it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) member: Member,
    pub(crate) way: Way,
    /// Whether a launcher started it, so that its ranks share the node's cores.
    pub(crate) is_shared: bool,
    /// What connects its nodes, if there are several.
    pub(crate) network: Option<Network>,
    pub(crate) ties: Ties,
}

/// What a rank holds on to while it runs.
#[derive(Debug, Default)]
pub(crate) struct Ties {
    is_done: bool,
    peers: Option<Member>,
    boot: Option<(Way, Exchange)>,
    detector: Option<Detector>,
    /// What ranks have after a death before they are ended.
    grace: Duration,
}

/// What a rank knows of all others when they have met.
struct Everybody {
    nodes: Nodes,
    /// The name of the job.
    token: u64,
    own: Head,
    /// The first that goes by another network than this one, or by none.
    unlike: Option<(Rank, Head)>,
}

/// Whether somebody started this process as a rank of a job: our launcher, or
/// another one that is known.
pub fn is_rank() -> bool {
    attach::is_rank() || is_told()
}

impl Job {
    /// The job that the environment says.
    pub(crate) fn join(config: &Config) -> Result<Self, Error> {
        if attach::is_watched() {
            return Self::attach(Way::Launcher, config);
        }
        // Addresses, PMI and the like come before a name alone.
        if let Some(boot) = boot::choose()? {
            let Boot { way, bootstrap, limit } = boot;
            return Self::join_by(way, Exchange::Open(Door::new(bootstrap)), limit, config);
        }
        let is_alone = std::env::var(boot::env::BOOT).is_ok_and(|way| way == "alone");
        if attach::is_rank() && !is_alone {
            return Self::attach(Way::Name, config);
        }
        let members = Member::threads(1, &config.space)?;
        let member = members.into_iter().next().expect("one rank was asked for");
        Ok(Self { member, way: Way::Alone, is_shared: false, network: None, ties: Ties::default() })
    }

    /// The job whose ranks `bootstrap` brings together.
    pub(crate) fn join_with(bootstrap: Box<dyn Bootstrap>, config: &Config) -> Result<Self, Error> {
        Self::join_by(Way::Given, Exchange::Closed(bootstrap), LIMIT, config)
    }

    fn join_by(
        way: Way,
        mut exchange: Exchange,
        limit: Duration,
        config: &Config,
    ) -> Result<Self, Error> {
        let joined = Self::join_all(way, &mut exchange, limit, config);
        if joined.is_err() {
            // The others may still need what this rank serves.
            let _ = exchange.leave();
        }
        let (member, detector, network) = joined?;
        let boot = Some((way, exchange));
        let peers = Some(member.clone());
        let ties = Ties { is_done: false, peers, boot, detector, grace: grace(config) };
        Ok(Self { member, way, is_shared: true, network, ties })
    }

    fn join_all(
        way: Way,
        exchange: &mut Exchange,
        limit: Duration,
        config: &Config,
    ) -> Result<(Member, Option<Detector>, Option<Network>), Error> {
        let (rank, size) = exchange.with(|boot| (boot.rank(), boot.size()));
        // Before anybody knows whether it is needed: a card is told once.
        let said = |name: &str| std::env::var(name).ok();
        let is_one_node = said(NODE).is_none() && boot::env::is_one_node(size, &said);
        let device = match is_one_node {
            true => Err(NoNetwork::Off),
            false => far::open(&config.network, rank, size),
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
            let faults = config.network.faults.map(|seed| Faults::drawn(seed, Clock::Micros));
            Network::join(device, token, cards, faults)
        });
        let (member, detector) = Self::place(way, rank, nodes, token, own.node, limit, config)?;
        Ok((member, detector, network))
    }

    /// This rank's place on its node.
    fn place(
        way: Way,
        rank: Rank,
        nodes: Arc<Nodes>,
        token: u64,
        node: u64,
        limit: Duration,
        config: &Config,
    ) -> Result<(Member, Option<Detector>), Error> {
        let place = nodes.place(rank).ok_or(NO_RANKS)?;
        // All users of the node can read the name; packets bear the token.
        let (job, node) = (format!("{:016x}", boot::shown_for(token)), NodeId(node));
        let meeting = Meeting { job: &job, node, rank: Rank(place.local), size: place.size, limit };
        let member = Member::meet(&meeting, &config.space)?.among(nodes.clone(), rank);
        // The agents of several hosts end the others.
        let rest =
            if way == Way::Server { Rest::Leave } else { Rest::End { grace: grace(config) } };
        let launcher = if way == Way::Server { Launcher::of_this_process() } else { None };
        let detector = detect(&member, rest, launcher)?;
        if rank == Rank(0) && config.verbose {
            let on = match nodes.count() {
                1 => "one node".to_owned(),
                count => match config.network.faults {
                    None => format!("{count} nodes"),
                    Some(seed) => format!("{count} nodes with faults of seed {seed}"),
                },
            };
            // One write, so that it does not mix with what ranks print.
            let line = format!("tsumugi: ranks: {}, on {on}, by {way}\n", nodes.ranks());
            eprint!("{line}");
        }
        Ok((member, detector))
    }

    fn attach(way: Way, config: &Config) -> Result<Self, Error> {
        let member = attach().ok_or(NO_RANKS)??;
        let rest = Rest::End { grace: grace(config) };
        let detector = if attach::is_watched() { None } else { detect(&member, rest, None)? };
        let peers = detector.is_some().then(|| member.clone());
        let ties = Ties { is_done: false, peers, boot: None, detector, grace: grace(config) };
        Ok(Self { member, way, is_shared: true, network: None, ties })
    }
}

impl Ties {
    /// Waits for all ranks of the job, on whatever nodes.
    pub(crate) fn meet(&mut self) -> Result<(), BootError> {
        self.boot.as_mut().map_or(Ok(()), |(_, exchange)| exchange.meet())
    }

    /// This rank has ended well.
    pub(crate) fn finish(mut self) {
        self.is_done = true;
    }
}

impl Drop for Ties {
    fn drop(&mut self) {
        // Whoever ends because another one did lets the launcher see that one
        // first: its exit code is the job's.
        if !self.is_done && self.peers.as_ref().is_some_and(has_failed) {
            let is_remote = matches!(self.boot, Some((Way::Server, _)));
            thread::sleep(if is_remote { self.grace + AFTER_YOU_THERE } else { AFTER_YOU });
        }
        self.detector = None;
        let Some((way, mut boot)) = self.boot.take() else { return };
        if self.is_done || way == Way::Pmi {
            // hydra does not look at the exit code of a rank that leaves
            // without a word. One that is gone by now changes nothing.
            let _ = boot.leave();
        } else {
            // The launcher is to see the connection close and the process end
            // at the same time: else it ends the job before it has the code.
            std::mem::forget(boot);
        }
    }
}

/// Whether a peer has been declared lost, and it is not known to the launcher.
fn has_failed(own: &Member) -> bool {
    if own.culprit().rank().is_some() {
        return false;
    }
    let peers = own.neighbours().filter(|rank| *rank != own.rank());
    peers.into_iter().any(|rank| own.control_of(rank).state() == State::Failed)
}

fn grace(config: &Config) -> Duration {
    Duration::from_millis(config.space.grace_ms.into())
}

/// Watches for the node's other ranks, and for what `launcher` says.
fn detect(
    member: &Member,
    rest: Rest,
    launcher: Option<Launcher>,
) -> Result<Option<Detector>, Error> {
    if member.space().size() == 1 && launcher.is_none() {
        return Ok(None);
    }
    let system = |error: std::io::Error| BootError::System {
        what: "starting the detector",
        errno: error.raw_os_error().unwrap_or(0),
    };
    Ok(Some(Detector::start(member, rest, launcher).map_err(system)?))
}

/// Tells all where this rank is, and hears it of them.
fn meet(boot: &mut dyn Bootstrap, device: Option<&Device>) -> Result<Everybody, Error> {
    let refused = |error: std::io::Error| BootError::System {
        what: "random numbers",
        errno: error.raw_os_error().unwrap_or(0),
    };
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let token = if boot.rank() == Rank(0) { random_u64().map_err(refused)? } else { 0 };
    let network = device.map_or(0, Device::mark);
    let own = Head { node: NodeId::here().0, token, network };
    let address = device.map_or(&[][..], Device::card).to_vec();
    let card = Card { head: own, host: host.trim().to_owned(), network: address };
    boot.publish(&card.to_bytes())?;
    boot.barrier()?;
    let (mut ids, mut token, mut unlike) = (Vec::new(), 0, None);
    let mut bad = None;
    boot.heads(&mut |rank, bytes| match Head::parse(bytes) {
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

/// The device, if all can be reached by it.
fn connect(
    boot: &mut dyn Bootstrap,
    device: Result<Device, NoNetwork>,
    all: &Everybody,
) -> Result<Device, Error> {
    let nodes = &all.nodes;
    let why = match (device, all.unlike) {
        (Ok(device), None) => return Ok(device),
        (Err(why), _) => why,
        (Ok(_), Some((rank, Head { network: 0, .. }))) => NoNetwork::Peer { rank },
        (Ok(device), Some((rank, _))) => {
            let Card { host, network, .. } = card_of(boot, rank)?;
            device.unlike(rank, host, &network)
        }
    };
    // A name each of some of them.
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
/// A launcher needs less to notice a death.
const AFTER_YOU: Duration = Duration::from_millis(200);
/// An agent first ends its other ranks, when their grace is over.
const AFTER_YOU_THERE: Duration = Duration::from_millis(400);
/// In a message.
const HOSTS_NAMED: u32 = 8;
/// For a bootstrap that brings no limit of its own.
const LIMIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_backends::boot::Given;

    #[test]
    fn ranks_of_other_nodes_are_counted_and_named() {
        // A peer that says that it is elsewhere.
        let mut peers_turn = Vec::new();
        let head = Head { node: 1, ..Head::default() };
        let elsewhere = Card { head, host: "elsewhere".into(), network: vec![] };
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
        let error = Job::join_with(Box::new(given), &Config::default()).unwrap_err();
        let Error::SeveralNodes { ranks: 2, nodes: 2, hosts, .. } = &error else {
            panic!("{error}")
        };
        assert!(hosts.contains("elsewhere"), "{error}");
    }

    #[test]
    fn a_card_that_makes_no_sense_is_its_ranks() {
        let gather = |own: &[u8], all: &mut [u8]| {
            all.chunks_mut(own.len()).for_each(|chunk| chunk.copy_from_slice(own));
            if own.len() > 4 {
                all[own.len()] = b'?';
            }
            true
        };
        let given = Given::new(Rank(0), 2, gather).unwrap();
        let error = Job::join_with(Box::new(given), &Config::default()).unwrap_err();
        assert!(matches!(error, Error::Card { rank: Rank(1), .. }), "{error}");
    }
}
