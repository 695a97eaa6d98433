//! The tree service, which runs the vertices of a window's group lock that this rank
//! has: a [`Service`] of the rank.
//!
//! ```text
//! a peer: writes a vertex's word ─► sets the bell ─► rings the rank
//! here:   pump ─► the vertices look at their words ─► operations
//!                  near: carried out at once; remote: begun, their ends ring
//! ```

use super::words::WindowWords;
use std::sync::{Arc, Mutex, TryLockError};
use tsumugi_core::mem::RegionKey;
use tsumugi_core::sync::Ordering;
use tsumugi_core::tag::Tag;
use tsumugi_gas::lock::{Tree, Vertex, VertexStep};
use tsumugi_runtime::service::Service;
use tsumugi_runtime::service::am::RemoteOps;

/// The vertices of one window that this rank runs.
pub(crate) struct TreeService {
    words: Arc<WindowWords>,
    remote: Option<RemoteOps>,
    vertices: Mutex<Vec<Vertex>>,
}

impl TreeService {
    /// Makes the service of the vertices of `tree` that the rank runs; `None`: it runs
    /// none.
    pub(super) fn new(words: &Arc<WindowWords>, tree: Tree) -> Option<Self> {
        let ids = tree.vertices_of(words.rank());
        let vertices: Vec<Vertex> = ids.map(|id| Vertex::new(tree, id)).collect();
        if vertices.is_empty() {
            return None;
        }
        let remote = words.carried(vertices.len() * VERTEX_OPS);
        Some(Self { words: words.clone(), remote, vertices: Mutex::new(vertices) })
    }

    /// Looks once at all words, and carries out or begins the operations that
    /// follow.
    fn turn(&self, vertices: &mut [Vertex]) -> usize {
        let mut moved = 0;
        for (index, vertex) in (0u64..).zip(vertices) {
            // The words are in own memory, which is registered as long as the
            // tree service lives.
            let _ = vertex.handle_words(|word| self.words.load(word));
            while let Some((step, op)) = vertex.poll_op() {
                moved += 1;
                match &self.remote {
                    Some(remote) if !remote.is_near(op.remote.rank) => {
                        let tag = Tag::from_bits(index << 32 | u64::from(step.to_bits()));
                        remote.begin(&self.words.real(&op).tagged(tag));
                    }
                    _ => vertex.handle_completed(step, self.words.carry_near(&op)),
                }
            }
        }
        moved
    }
}

impl Service for TreeService {
    fn has_work(&self) -> bool {
        let bell = self.words.bell().load(Ordering::SeqCst) != 0;
        bell || self.remote.as_ref().is_some_and(RemoteOps::has_work)
    }

    fn pump(&self) -> bool {
        if !self.has_work() {
            return false;
        }
        let mut vertices = match self.vertices.try_lock() {
            Ok(vertices) => vertices,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        // SeqCst: the bell is cleared before the words are looked at, so that the
        // bell is set again for a word that changes later.
        self.words.bell().swap(0, Ordering::SeqCst);
        let mut moved = 0;
        if let Some(remote) = &self.remote {
            moved += remote.offer_again();
            moved += remote.take_ended(|tag, result| {
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
        // There may be more; other ULTs run first.
        self.words.rang();
        true
    }

    fn is_busy(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| !remote.is_empty())
    }

    fn rang(&self, key: RegionKey) -> bool {
        let is_own = self.words.key() == key;
        if is_own {
            self.words.rang();
        }
        is_own
    }
}

/// Operations that a vertex has under way at most: one to each vertex below, one
/// upwards, one on its own words.
const VERTEX_OPS: usize = 18;
/// Looks before other ULTs run.
const TURNS: u32 = 100;
