//! Which job this process is part of, and how it got there.
//!
//! ```text
//!  tsumugi run ──── descriptors in the environment ────────────────► Member
//!  mpiexec, srun ── cards, one barrier ──► Nodes ── meet ─► Member, Detector
//!                                            └───── several: Network
//!  nobody ───────── alone ─────────────────────────────────────────► Member
//! ```

use crate::config::Config;
use crate::far::{self, Clock, Device, Faults, Network};
use crate::{Error, NoNetwork};
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tsumugi_backends::boot::choose::is_rank as is_told;
use tsumugi_backends::boot::{self, Boot, Card, Way, random_u64};
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;
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
    boot: Option<Boot>,
    detector: Option<Detector>,
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
            return Self::attach(Way::Launcher);
        }
        // Addresses, PMI and the like come before a name alone.
        if let Some(boot) = boot::choose()? {
            return Self::join_by(boot, config);
        }
        let is_alone = std::env::var(boot::env::BOOT).is_ok_and(|way| way == "alone");
        if attach::is_rank() && !is_alone {
            return Self::attach(Way::Name);
        }
        let members = Member::threads(1, &config.space)?;
        let member = members.into_iter().next().expect("one rank was asked for");
        Ok(Self { member, way: Way::Alone, is_shared: false, network: None, ties: Ties::default() })
    }

    /// The job whose ranks `boot` brings together.
    pub(crate) fn join_by(mut boot: Boot, config: &Config) -> Result<Self, Error> {
        let joined = Self::join_all(&mut boot, config);
        if joined.is_err() {
            // The others may still need what this rank serves.
            let _ = boot.bootstrap.leave();
        }
        let (member, detector, network) = joined?;
        let way = boot.way;
        let ties = Ties { is_done: false, peers: Some(member.clone()), boot: Some(boot), detector };
        Ok(Self { member, way, is_shared: true, network, ties })
    }

    fn join_all(
        boot: &mut Boot,
        config: &Config,
    ) -> Result<(Member, Option<Detector>, Option<Network>), Error> {
        let (rank, size) = (boot.bootstrap.rank(), boot.bootstrap.size());
        // Before anybody knows whether it is needed: a card is told once.
        let device = match boot::env::is_one_node(size, &|name| std::env::var(name).ok()) {
            true => Err(NoNetwork::Off),
            false => far::open(&config.network, rank, size),
        };
        let address = device.as_ref().map_or(&[][..], |device| device.card());
        let (nodes, cards) = meet(&mut *boot.bootstrap, address)?;
        let network = match nodes.count() {
            1 => None,
            _ => Some(connect(device, &nodes, &cards, config)?),
        };
        let (member, detector) = Self::place(boot, nodes, &cards, config)?;
        Ok((member, detector, network))
    }

    /// This rank's place on its node.
    fn place(
        boot: &Boot,
        nodes: Nodes,
        cards: &[Card],
        config: &Config,
    ) -> Result<(Member, Option<Detector>), Error> {
        let rank = boot.bootstrap.rank();
        let place = nodes.place(rank).ok_or(NO_RANKS)?;
        let job = format!("{:016x}", cards[0].token);
        let node = NodeId(cards[rank.0 as usize].node);
        let (local, limit) = (Rank(place.local), boot.limit);
        let meeting = Meeting { job: &job, node, rank: local, size: place.size, limit };
        let nodes = Arc::new(nodes);
        let member = Member::meet(&meeting, &config.space)?.among(nodes.clone(), rank);
        // The agents of several hosts end the others.
        let rest = if boot.way == Way::Server { Rest::Leave } else { Rest::End };
        let detector = detect(&member, rest)?;
        if rank == Rank(0) && config.verbose {
            let on = match nodes.count() {
                1 => "one node".to_owned(),
                count => match config.network.faults {
                    None => format!("{count} nodes"),
                    Some(seed) => format!("{count} nodes with faults of seed {seed}"),
                },
            };
            // One write, so that it does not mix with what ranks print.
            let line = format!("tsumugi: ranks: {}, on {on}, by {}\n", nodes.ranks(), boot.way);
            eprint!("{line}");
        }
        Ok((member, detector))
    }

    fn attach(way: Way) -> Result<Self, Error> {
        let member = attach().ok_or(NO_RANKS)??;
        let detector = if attach::is_watched() { None } else { detect(&member, Rest::End)? };
        let peers = detector.is_some().then(|| member.clone());
        let ties = Ties { is_done: false, peers, boot: None, detector };
        Ok(Self { member, way, is_shared: true, network: None, ties })
    }
}

impl Ties {
    /// Waits for all ranks of the job, on whatever nodes.
    pub(crate) fn meet(&mut self) -> Result<(), BootError> {
        self.boot.as_mut().map_or(Ok(()), |boot| boot.bootstrap.barrier())
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
            let is_remote = self.boot.as_ref().is_some_and(|boot| boot.way == Way::Server);
            thread::sleep(if is_remote { AFTER_YOU_THERE } else { AFTER_YOU });
        }
        self.detector = None;
        let Some(mut boot) = self.boot.take() else { return };
        if self.is_done || boot.way == Way::Pmi {
            // hydra does not look at the exit code of a rank that leaves
            // without a word. One that is gone by now changes nothing.
            let _ = boot.bootstrap.leave();
        } else {
            // The launcher is to see the connection close and the process end
            // at the same time: else it ends the job before it has the code.
            std::mem::forget(boot);
        }
    }
}

/// Whether a peer has been declared lost.
fn has_failed(own: &Member) -> bool {
    let peers = own.neighbours().filter(|rank| *rank != own.rank());
    peers.into_iter().any(|rank| own.control_of(rank).state() == State::Failed)
}

fn detect(member: &Member, rest: Rest) -> Result<Option<Detector>, Error> {
    if member.space().size() == 1 {
        return Ok(None);
    }
    let system = |error: std::io::Error| BootError::System {
        what: "starting the detector",
        errno: error.raw_os_error().unwrap_or(0),
    };
    Ok(Some(Detector::start(member, rest).map_err(system)?))
}

/// Everybody's card, and which node each is on.
fn meet(boot: &mut dyn Bootstrap, address: &[u8]) -> Result<(Nodes, Vec<Card>), Error> {
    let refused = |error: std::io::Error| BootError::System {
        what: "random numbers",
        errno: error.raw_os_error().unwrap_or(0),
    };
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let card = Card {
        node: NodeId::here().0,
        token: random_u64().map_err(refused)?,
        host: host.trim().to_owned(),
        network: address.to_vec(),
    };
    boot.publish(&card.to_bytes())?;
    boot.barrier()?;
    let mut bytes = [0; CARD_BYTES_MAX];
    let cards = (0..boot.size()).map(Rank).map(|rank| {
        let len = boot.card(rank, &mut bytes)?;
        Card::parse(&bytes[..len]).map_err(|error| Error::Card { rank, error })
    });
    let cards = cards.collect::<Result<Vec<_>, Error>>()?;
    Ok((Nodes::new(cards.iter().map(|card| card.node)), cards))
}

/// What connects the nodes.
fn connect(
    device: Result<Device, NoNetwork>,
    nodes: &Nodes,
    cards: &[Card],
    config: &Config,
) -> Result<Network, Error> {
    let addresses = cards.iter().map(|card| card.network.clone()).collect();
    let first = |node| nodes.ranks_of(node).next().expect("a node has ranks");
    let host = |node| cards[first(node).0 as usize].host.clone();
    let hosts: Vec<String> = (0..nodes.count()).map(host).collect();
    let mut named = hosts.clone();
    let faults = config.network.faults.map(|seed| Faults::drawn(seed, Clock::Micros));
    device
        .and_then(|device| Network::join(device, cards[0].token, addresses, nodes, hosts, faults))
        .map_err(|why| {
            named.sort_unstable();
            named.dedup();
            named.truncate(HOSTS_NAMED);
            let hosts = named.join(", ");
            Error::SeveralNodes { ranks: nodes.ranks(), nodes: nodes.count(), hosts, why }
        })
}

const NO_RANKS: Error = Error::Boot(BootError::NoSuchRank { rank: Rank(0), size: 0 });
/// A launcher needs less to notice a death.
const AFTER_YOU: Duration = Duration::from_millis(200);
/// An agent first ends its other ranks, in 300 ms.
const AFTER_YOU_THERE: Duration = Duration::from_millis(700);
/// In a message.
const HOSTS_NAMED: usize = 8;
/// For a bootstrap that brings no limit of its own.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_backends::boot::Given;

    #[test]
    fn ranks_of_other_nodes_are_counted_and_named() {
        // A peer that says that it is elsewhere.
        let mut peers_turn = Vec::new();
        let elsewhere = Card { node: 1, token: 2, host: "elsewhere".into(), network: vec![] };
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
        let boot = Boot { way: Way::Given, bootstrap: Box::new(given), limit: LIMIT };
        let error = Job::join_by(boot, &Config::default()).unwrap_err();
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
        let boot = Boot { way: Way::Given, bootstrap: Box::new(given), limit: LIMIT };
        let error = Job::join_by(boot, &Config::default()).unwrap_err();
        assert!(matches!(error, Error::Card { rank: Rank(1), .. }), "{error}");
    }
}
