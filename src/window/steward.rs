//! The vertices of group locks that a rank runs, whoever of its threads comes
//! by: its workers between two ULTs, its helper when they all compute.
//!
//! ```text
//!  a peer: writes a vertex's word ─► sets the bell ─► rings the rank
//!  here:   pump ─► the vertices look at their words ─► operations
//!                   near: carried out at once; far: begun, their ends ring
//! ```

use super::ways::Ways;
use crate::am::Far as Carried;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use tsumugi_core::mem::RegionKey;
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_core::tag::Tag;
use tsumugi_core::wait::Wait;
use tsumugi_gas::lock::{Tree, Vertex, VertexStep};
use tsumugi_ult::Here;

/// Those of one window.
pub(crate) struct Steward {
    ways: Arc<Ways>,
    far: Option<Carried>,
    vertices: Mutex<Vec<Vertex>>,
}

/// Those of all windows of a rank.
#[derive(Default)]
pub(crate) struct Stewards {
    count: AtomicUsize,
    list: Mutex<Vec<Arc<Steward>>>,
}

impl Steward {
    /// The vertices of `tree` that the rank runs; `None`: it runs none.
    pub(super) fn new(ways: &Arc<Ways>, tree: Tree) -> Option<Self> {
        let ids = tree.vertices_of(ways.rank());
        let vertices: Vec<Vertex> = ids.map(|id| Vertex::new(tree, id)).collect();
        if vertices.is_empty() {
            return None;
        }
        let far = ways.carried(vertices.len() * VERTEX_OPS);
        Some(Self { ways: ways.clone(), far, vertices: Mutex::new(vertices) })
    }

    /// Lets the vertices do what there is to do; whether there was anything.
    /// At once, if another thread is at it.
    fn pump(&self) -> bool {
        if !self.has_work() {
            return false;
        }
        let mut vertices = match self.vertices.try_lock() {
            Ok(vertices) => vertices,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        // SeqCst: before the words are looked at, so that what comes after is
        // rung for.
        self.ways.bell().swap(0, Ordering::SeqCst);
        let mut moved = 0;
        if let Some(far) = &self.far {
            moved += far.offer_again();
            moved += far.take_ended(|tag, result| {
                let (index, step) = (tag.to_bits() >> 32, tag.to_bits() as u32);
                vertices[index as usize].handle_completed(VertexStep::from_bits(step), result);
            });
        }
        for _ in 0..TURNS {
            let turn = self.turn(&mut vertices);
            moved += turn;
            if turn == 0 {
                return moved > 0;
            }
        }
        // There may be more; somebody else is let run first.
        self.ways.rang();
        true
    }

    /// One look at all words, and what follows from it.
    fn turn(&self, vertices: &mut [Vertex]) -> usize {
        let mut moved = 0;
        for (index, vertex) in (0u64..).zip(vertices) {
            // Its own memory, which is registered as long as the steward is.
            let _ = vertex.handle_words(|word| self.ways.load(word));
            while let Some((step, op)) = vertex.poll_op() {
                moved += 1;
                match &self.far {
                    Some(far) if !far.is_near(op.remote.rank) => {
                        let tag = Tag::from_bits(index << 32 | u64::from(step.to_bits()));
                        far.begin(&self.ways.real(&op).tagged(tag));
                    }
                    _ => vertex.handle_completed(step, self.ways.carry_near(&op)),
                }
            }
        }
        moved
    }

    fn has_work(&self) -> bool {
        let bell = self.ways.bell().load(Ordering::SeqCst) != 0;
        bell || self.far.as_ref().is_some_and(Carried::has_work)
    }
}

impl Stewards {
    /// One more.
    pub(super) fn add(&self, steward: &Arc<Steward>) {
        let mut list = self.list();
        list.push(steward.clone());
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// Its window is gone on all ranks.
    pub(super) fn remove(&self, steward: &Arc<Steward>) {
        let mut list = self.list();
        list.retain(|other| !Arc::ptr_eq(other, steward));
        self.count.store(list.len(), Ordering::SeqCst);
    }

    /// The job is over.
    pub(crate) fn close(&self) {
        let list = std::mem::take(&mut *self.list());
        self.count.store(0, Ordering::SeqCst);
        drop(list);
    }

    /// Whether one has something to do.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && self.any(Steward::has_work)
    }

    /// Does it; whether there was anything.
    #[inline]
    pub(crate) fn pump(&self) -> bool {
        // Relaxed: what this thread does not know of, another look finds.
        self.count.load(Ordering::Relaxed) > 0 && self.any(Steward::pump)
    }

    /// A word under `key` was changed from another node.
    pub(crate) fn rang(&self, key: RegionKey) {
        for steward in &*self.list() {
            if steward.ways.key() == key {
                steward.ways.rang();
            }
        }
    }

    /// Waits until nothing of theirs is under way.
    pub(crate) fn settle(&self) {
        let is_busy = |steward: &Steward| steward.far.as_ref().is_some_and(|far| !far.is_empty());
        while self.any(is_busy) {
            self.pump();
            Here.yield_now();
        }
    }

    fn any(&self, of: impl Fn(&Steward) -> bool) -> bool {
        // One after the other, also when the first has something.
        self.list().iter().fold(false, |any, steward| of(steward) | any)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Steward>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Operations that a vertex has under way at most: one to each below it, one
/// upwards, one on its own words.
const VERTEX_OPS: usize = 18;
/// Looks before somebody else is let run.
const TURNS: u32 = 100;
