//! The state of a window that does not depend on the type of its values.

use super::design::Design;
use super::epoch_counts::EpochCounts;
use super::gate::Gate;
use super::puts::Puts;
use super::tree_service::TreeService;
use super::words::WindowWords;
use crate::{AddrError, Agent, Error, Rank, Runtime};
use std::sync::{Arc, Mutex};
use tsumugi_core::mem::{RegionKey, RemoteAddr};
use tsumugi_gas::lock::{FAN_MAX, Lock, LockKind, LockPlan, Tree};
use tsumugi_runtime::service::Service;

/// The locks, epochs and puts of a window, without the type of its values.
pub(super) struct WindowInner {
    pub(super) runtime: Runtime,
    pub(super) ranks: u32,
    pub(super) design: Design,
    /// The lock of rank 0; each rank has one at the same offset.
    pub(super) lock: Lock,
    pub(super) gate: Arc<Gate>,
    pub(super) words: Arc<WindowWords>,
    pub(super) puts: Arc<Puts>,
    pub(super) counts: Mutex<EpochCounts>,
    pub(super) tree_service: Option<Arc<dyn Service>>,
}

impl WindowInner {
    pub(super) fn share(runtime: &Runtime, agent: Agent, design: Design) -> Result<Self, Error> {
        let (ranks, nodes) = (runtime.size(), runtime.handle().node().member().nodes().count());
        let per_leaf = ranks.div_ceil(nodes).min(FAN_MAX);
        let tree = |key, at| Tree::new(ranks, per_leaf, FAN_MAX, key, at).map_err(Error::other);
        let draft = tree(RegionKey::new(0, 1), 0)?;
        let bytes = match design {
            Design::Tree => (0..ranks).map(|rank| draft.bytes_of(Rank(rank))).max().unwrap_or(0),
            Design::Each | Design::Global | Design::TwoLevel => 0,
        };
        let words = Arc::new(WindowWords::share(runtime, agent, bytes)?);
        let home = RemoteAddr { rank: Rank(0), key: words.key(), offset: 0 };
        let lock = Lock { home, nodes: words.node_table(), kind: KIND };
        let plan = LockPlan { design: design.plan(), lock, tree: tree(words.key(), words.tree())? };
        let tree_service = match design {
            Design::Tree => TreeService::new(&words, plan.tree)
                .map(|tree_service| -> Arc<dyn Service> { Arc::new(tree_service) }),
            Design::Each | Design::Global | Design::TwoLevel => None,
        };
        if let Some(tree_service) = &tree_service {
            runtime.handle().node().services().add(tree_service.clone());
        }
        Ok(Self {
            runtime: runtime.clone(),
            ranks,
            design,
            lock,
            gate: Gate::new(plan, &words),
            words,
            puts: Arc::new(Puts::new(runtime.handle().net().is_some())),
            counts: Mutex::default(),
            tree_service,
        })
    }

    pub(super) fn check(&self, rank: Rank) -> Result<(), AddrError> {
        let size = self.ranks;
        if rank.0 < size { Ok(()) } else { Err(AddrError::NoSuchRank { rank, size }) }
    }
}

/// Ends the tree service when all ranks have dropped the window, and its words with it.
struct RetiredWindow {
    runtime: Runtime,
    tree_service: Arc<dyn Service>,
}

impl Drop for RetiredWindow {
    fn drop(&mut self) {
        self.runtime.handle().node().services().remove(&self.tree_service);
    }
}

impl Drop for WindowInner {
    fn drop(&mut self) {
        if let Some(tree_service) = self.tree_service.take() {
            let runtime = self.runtime.clone();
            self.runtime.handle().defer_free(Box::new(RetiredWindow { runtime, tree_service }));
        }
    }
}

/// With readers' preference an exclusive hold is one atomic, too.
pub(super) const KIND: LockKind = LockKind::Readers;
