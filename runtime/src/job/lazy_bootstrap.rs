//! A lazy bootstrap client: fetches the cards (endpoint information) of other ranks
//! while the job runs, over the bootstrap connection, which stays open.
//!
//! ```text
//!  an endpoint: look ─► requests ── has it come? ── yes ─► the card, once
//!                         └─ no: wanted ─► the thread, or one at a barrier ─► bootstrap
//! ```
//!
//! A NIC endpoint never waits: it polls, and each poll calls `look` again. The thread is
//! started when a card is first requested. A rank that waits for the others at a
//! barrier also fetches cards itself meanwhile: another rank may need an answer
//! from it before it can reach the barrier, and this rank may never have
//! communicated with that one before.

use crate::net::{Cards, HOSTS_MAX};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tsumugi_backends::boot::RankCard;
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX, OpenBootstrap};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Nodes;

/// The bootstrap client and its cache; see the module.
pub(super) struct LazyBootstrap {
    /// The thread that has this lock sends requests. A thread that waits for this
    /// lock does not hold the lock of `requests`.
    boot: Mutex<Box<dyn OpenBootstrap>>,
    nodes: OnceLock<Arc<Nodes>>,
    requests: Mutex<CardRequests>,
    called: Condvar,
}

/// The requested cards, and the cards that have come.
#[derive(Default)]
struct CardRequests {
    /// The ranks that were requested, in the order of the requests.
    wanted: VecDeque<Rank>,
    /// `None` if the card is requested. A card stays here until its NIC endpoint has taken
    /// it.
    cards: BTreeMap<u32, Option<Came>>,
    /// The host names of the last [`HOSTS_MAX`] nodes of which a rank was contacted.
    hosts: VecDeque<(u32, Box<str>)>,
    fetched: u64,
    is_closed: bool,
    thread: Option<JoinHandle<()>>,
}

/// The network's part of a rank's card, or the error.
type Came = Result<Box<[u8]>, BootError>;

impl CardRequests {
    fn host_of(&self, node: u32) -> Option<&str> {
        self.hosts.iter().find(|(of, _)| *of == node).map(|(_, host)| &**host)
    }
}

impl LazyBootstrap {
    pub(super) fn new(boot: Box<dyn OpenBootstrap>) -> Arc<Self> {
        let (boot, nodes, requests) = (Mutex::new(boot), OnceLock::new(), Mutex::default());
        Arc::new(Self { boot, nodes, requests, called: Condvar::new() })
    }

    /// Sets the table of nodes; from now on cards can be requested.
    pub(super) fn open(&self, nodes: &Arc<Nodes>) {
        let _ = self.nodes.set(nodes.clone());
    }

    /// Calls `ask` with the bootstrap.
    pub(super) fn with<R>(&self, ask: impl FnOnce(&mut dyn OpenBootstrap) -> R) -> R {
        ask(&mut **self.boot())
    }

    /// Waits for all ranks of the job. Cards of other ranks are fetched meanwhile.
    pub(super) fn meet(&self) -> Result<(), BootError> {
        self.boot().arrive()?;
        loop {
            let mut boot = self.boot();
            if boot.has_met(SLICE)? {
                return Ok(());
            }
            self.serve(&mut **boot);
        }
    }

    /// Ends the client when this rank ends successfully.
    pub(super) fn leave(&self) -> Result<(), BootError> {
        let thread = {
            let mut requests = self.requests();
            requests.is_closed = true;
            requests.thread.take()
        };
        self.called.notify_all();
        if let Some(thread) = thread {
            // The thread panics only if the bootstrap does, and that panic was
            // printed.
            let _ = thread.join();
        }
        self.boot().leave()
    }

    /// Fetches all requested cards.
    fn serve(&self, boot: &mut dyn OpenBootstrap) {
        loop {
            let Some(rank) = self.requests().wanted.front().copied() else { return };
            let card = fetch(boot, rank);
            let mut requests = self.requests();
            requests.wanted.pop_front();
            requests.fetched += 1;
            let network = card.map(|RankCard { host, network, .. }| {
                let place = self.nodes.get().and_then(|nodes| nodes.place(rank));
                let node = place.map_or(u32::MAX, |place| place.node);
                if requests.host_of(node).is_none() {
                    requests.hosts.push_back((node, host.into_boxed_str()));
                }
                if requests.hosts.len() > HOSTS_MAX {
                    requests.hosts.pop_front();
                }
                network.into_boxed_slice()
            });
            requests.cards.insert(rank.0, Some(network));
        }
    }

    /// The body of the thread.
    fn run(&self) {
        loop {
            let requests = self.requests();
            let idle =
                |requests: &mut CardRequests| requests.wanted.is_empty() && !requests.is_closed;
            let requests =
                self.called.wait_while(requests, idle).unwrap_or_else(PoisonError::into_inner);
            if requests.is_closed {
                return;
            }
            drop(requests);
            self.serve(&mut **self.boot());
        }
    }

    fn boot(&self) -> MutexGuard<'_, Box<dyn OpenBootstrap>> {
        self.boot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, CardRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cards for Arc<LazyBootstrap> {
    fn look(
        &self,
        rank: Rank,
        into: &mut [u8; CARD_BYTES_MAX],
    ) -> Result<Option<usize>, BootError> {
        let mut requests = self.requests();
        match requests.cards.get(&rank.0) {
            Some(None) => return Ok(None),
            Some(Some(Err(why))) => return Err(*why),
            Some(Some(Ok(card))) => {
                let bytes = card.len();
                into[..bytes].copy_from_slice(card);
                requests.cards.remove(&rank.0);
                return Ok(Some(bytes));
            }
            None if requests.is_closed => return Err(BootError::Disconnected),
            None => {}
        }
        if requests.thread.is_none() {
            let lazy = self.clone();
            let started = tsumugi_pvas::thread::start("tsumugi-cards", move || lazy.run());
            requests.thread = Some(started.map_err(|error| BootError::System {
                what: "a thread that asks for cards",
                errno: error.raw_os_error().unwrap_or(0),
            })?);
        }
        requests.cards.insert(rank.0, None);
        requests.wanted.push_back(rank);
        self.called.notify_one();
        Ok(None)
    }

    fn why(&self, rank: Rank) -> Option<BootError> {
        match self.requests().cards.get(&rank.0) {
            Some(Some(Err(why))) => Some(*why),
            _ => None,
        }
    }

    fn host_of(&self, node: u32) -> Option<String> {
        self.requests().host_of(node).map(str::to_owned)
    }

    fn fetched(&self) -> u64 {
        self.requests().fetched
    }
}

impl fmt::Debug for LazyBootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyBootstrap({} cards were asked for)", self.requests().fetched)
    }
}

fn fetch(boot: &mut dyn OpenBootstrap, rank: Rank) -> Result<RankCard, BootError> {
    let mut bytes = [0; CARD_BYTES_MAX];
    let len = boot.card(rank, &mut bytes)?;
    RankCard::parse(&bytes[..len]).map_err(|_| BootError::Garbled { what: "its card" })
}

/// The maximum time that a request waits for a thread that is at the barrier.
const SLICE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
