//! The way to the others' cards while the job runs: the bootstrap, which stays
//! open, and whoever asks it.
//!
//! ```text
//!  a rail: look ─► desk ── has it come? ── yes ─► the card, once
//!                    └─ no: wanted ─► a thread, or who waits at a barrier ─► bootstrap
//! ```
//!
//! A rail never waits: each poll looks again. The thread is started when a card
//! is first wanted. A rank that waits for the others asks for cards itself
//! meanwhile: somebody may need an answer from it to come as far, and it may
//! never have spoken to that one before.

use crate::far::{Cards, HOSTS_MAX};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tsumugi_backends::boot::Card;
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX, OpenBootstrap};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Nodes;

/// See the module.
pub(super) struct Door {
    /// Whoever has it asks; never held with the desk's lock by one that waits.
    boot: Mutex<Box<dyn OpenBootstrap>>,
    nodes: OnceLock<Arc<Nodes>>,
    desk: Mutex<Desk>,
    called: Condvar,
}

/// What is wanted, and what has come.
#[derive(Default)]
struct Desk {
    /// In the order in which they were asked for.
    wanted: VecDeque<Rank>,
    /// `None`: wanted. A card is here until its rail has taken it.
    cards: BTreeMap<u32, Option<Came>>,
    /// Of nodes that ranks were met of; not of more than [`HOSTS_MAX`].
    hosts: BTreeMap<u32, Box<str>>,
    fetched: u64,
    is_closed: bool,
    thread: Option<JoinHandle<()>>,
}

/// The network's card of a rank.
type Came = Result<Box<[u8]>, BootError>;

impl Door {
    pub(super) fn new(boot: Box<dyn OpenBootstrap>) -> Arc<Self> {
        let (boot, nodes, desk) = (Mutex::new(boot), OnceLock::new(), Mutex::default());
        Arc::new(Self { boot, nodes, desk, called: Condvar::new() })
    }

    /// All have been told of each other: cards can be wanted.
    pub(super) fn open(&self, nodes: &Arc<Nodes>) {
        let _ = self.nodes.set(nodes.clone());
    }

    /// Uses the bootstrap.
    pub(super) fn with<R>(&self, ask: impl FnOnce(&mut dyn OpenBootstrap) -> R) -> R {
        ask(&mut **self.boot())
    }

    /// Waits for all ranks of the job. Others' cards come meanwhile.
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

    /// This rank ends well.
    pub(super) fn leave(&self) -> Result<(), BootError> {
        let thread = {
            let mut desk = self.desk();
            desk.is_closed = true;
            desk.thread.take()
        };
        self.called.notify_all();
        if let Some(thread) = thread {
            // It panics only where the bootstrap did, and that was printed.
            let _ = thread.join();
        }
        self.boot().leave()
    }

    /// Asks for all that is wanted.
    fn serve(&self, boot: &mut dyn OpenBootstrap) {
        loop {
            let Some(rank) = self.desk().wanted.front().copied() else { return };
            let card = fetch(boot, rank);
            let mut desk = self.desk();
            desk.wanted.pop_front();
            desk.fetched += 1;
            let network = card.map(|Card { host, network, .. }| {
                let place = self.nodes.get().and_then(|nodes| nodes.place(rank));
                let node = place.map_or(u32::MAX, |place| place.node);
                desk.hosts.entry(node).or_insert_with(|| host.into_boxed_str());
                if desk.hosts.len() > HOSTS_MAX {
                    desk.hosts.pop_first();
                }
                network.into_boxed_slice()
            });
            desk.cards.insert(rank.0, Some(network));
        }
    }

    /// The thread.
    fn run(&self) {
        loop {
            let desk = self.desk();
            let idle = |desk: &mut Desk| desk.wanted.is_empty() && !desk.is_closed;
            let desk = self.called.wait_while(desk, idle).unwrap_or_else(PoisonError::into_inner);
            if desk.is_closed {
                return;
            }
            drop(desk);
            self.serve(&mut **self.boot());
        }
    }

    fn boot(&self) -> MutexGuard<'_, Box<dyn OpenBootstrap>> {
        self.boot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cards for Arc<Door> {
    fn look(
        &self,
        rank: Rank,
        into: &mut [u8; CARD_BYTES_MAX],
    ) -> Result<Option<usize>, BootError> {
        let mut desk = self.desk();
        match desk.cards.get(&rank.0) {
            Some(None) => return Ok(None),
            Some(Some(Err(why))) => return Err(*why),
            Some(Some(Ok(card))) => {
                let bytes = card.len();
                into[..bytes].copy_from_slice(card);
                desk.cards.remove(&rank.0);
                return Ok(Some(bytes));
            }
            None if desk.is_closed => return Err(BootError::Disconnected),
            None => {}
        }
        if desk.thread.is_none() {
            let door = self.clone();
            let thread = thread::Builder::new().name("tsumugi-cards".into());
            let started = thread.spawn(move || door.run());
            desk.thread = Some(started.map_err(|error| BootError::System {
                what: "a thread that asks for cards",
                errno: error.raw_os_error().unwrap_or(0),
            })?);
        }
        desk.cards.insert(rank.0, None);
        desk.wanted.push_back(rank);
        self.called.notify_one();
        Ok(None)
    }

    fn why(&self, rank: Rank) -> Option<BootError> {
        match self.desk().cards.get(&rank.0) {
            Some(Some(Err(why))) => Some(*why),
            _ => None,
        }
    }

    fn host_of(&self, node: u32) -> Option<String> {
        self.desk().hosts.get(&node).map(|host| host.to_string())
    }

    fn fetched(&self) -> u64 {
        self.desk().fetched
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Door({} cards were asked for)", self.desk().fetched)
    }
}

fn fetch(boot: &mut dyn OpenBootstrap, rank: Rank) -> Result<Card, BootError> {
    let mut bytes = [0; CARD_BYTES_MAX];
    let len = boot.card(rank, &mut bytes)?;
    Card::parse(&bytes[..len]).map_err(|_| BootError::Garbled { what: "its card" })
}

/// So long a card that is wanted waits for one that waits at a barrier.
const SLICE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
