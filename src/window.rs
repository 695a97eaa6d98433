//! Windows: one array on every rank, and the means by which ranks agree which of
//! them may access it at which time: fences, epochs, and locks of one target or of
//! all.
//!
//! ```
//! use tsumugi::{Error, Rank};
//!
//! tsumugi::run_ranks(3, |rt| {
//!     let window = rt.window::<u64>(4)?;
//!     let next = Rank((rt.rank().0 + 1) % 3);
//!     window.put(next, 0, &[7])?;
//!     window.fence()?;
//!     let held = window.exclusive(Rank(0))?;
//!     let value = window.get(Rank(0), 1)?;
//!     window.put(Rank(0), 1, &[value + 1])?;
//!     held.release()?;
//!     rt.barrier()?;
//!     let all = window.lock_all()?;
//!     assert_eq!((window.get(Rank(0), 0)?, window.get(Rank(0), 1)?), (7, 3));
//!     all.release()?;
//!     rt.barrier()
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! | | |
//! |---|---|
//! | [`Window::fence`] | all ranks' puts have landed |
//! | [`Window::post`], [`Window::start`] | epochs between some ranks |
//! | [`Window::shared`], [`Window::exclusive`], [`Window::lock_all`] | targets, locked by this rank alone or shared with others |
//! | [`Window::flush`], [`Window::flush_all`] | own puts have landed |
//!
//! A [`put`](Window::put) may land later: flushes, fences and the end of an epoch or
//! of a hold wait for it. Gets and atomics are complete when they return. Memory is
//! unified: a rank reads the values that have landed without a call.
//! [`Window::private`] is a rank's own array in the separate model.
//!
//! # The locks
//!
//! | [`Design`] | all | one target, shared | exclusively | contended |
//! |---|---|---|---|---|
//! | `Each` | a lock per rank | 1 + 1 atomics | 1 + 1 | waiters sleep |
//! | `Tree` | 1 + 1, on the own node | 1 + 1 | 2 + 2 | waiters sleep; holders of all meet at their leaf only |
//! | `Global` | 1 + 1 | 1 + 1 | 1 + 1 | all in one queue |
//! | `TwoLevel` | 1 + 1 | 1 + 1 | 2 + 2 | polls with growing pauses |
//!
//! By default `Each` up to [`EACH_MAX`] ranks, and `Tree` beyond.
//!
//! After a rank has died, each caller that waits for a lock, or would have to wait
//! later, gets [`AddrError::PeerLost`], which names the rank. Locks that are held
//! stay held.

mod active;
mod gate;
mod hold;
mod private;
mod puts;
mod tree_service;
mod ways;

pub use active::{Epoch, Exposure};
pub use hold::Hold;
pub use private::Private;
pub use tsumugi_gas::lock::AccessRefused;

use crate::{AddrError, Agent, Error, Exposed, Plain, Rank, Remote, Runtime, Shared};
use active::EpochCounts;
use gate::Gate;
use hold::Grip;
use puts::Puts;
use std::fmt;
use std::sync::{Arc, Mutex};
use tree_service::TreeService;
use tsumugi_core::mem::{RegionKey, RemoteAddr};
use tsumugi_gas::lock::{FAN_MAX, Lock, LockDesign, LockKind, LockPlan, Tree, Want};
use tsumugi_runtime::service::Service;
use ways::Ways;

/// One array on every rank, and its locks. A handle: cheap to clone, and to send to
/// other threads of the rank. Its memory is freed as that of a [`Shared`].
pub struct Window<T: Plain> {
    inner: Arc<WindowInner>,
    data: Arc<Shared<T>>,
}

/// The design of a window's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Design {
    /// A lock for each target; a hold of all targets takes all of them.
    Each,
    /// A lock for each target, and a tree over the nodes for holds of all targets.
    Tree,
    /// One lock for the window, as in the paper that [`lock`](crate::lock) names.
    Global,
    /// A word for holds of all targets, and one for each target, as in foMPI.
    TwoLevel,
}

/// Why a target was not locked, an epoch not begun, or a private copy not
/// synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowError {
    /// An operation on the locks failed.
    Addr(AddrError),
    /// A lock that the guard holds excludes the new one.
    Refused(AccessRefused),
    /// The guard holds the target already.
    Held {
        /// That target.
        target: Rank,
    },
    /// A value was changed in the private copy and in the public one.
    Conflict {
        /// The index in this rank's array.
        index: usize,
    },
}

struct WindowInner {
    runtime: Runtime,
    ranks: u32,
    design: Design,
    /// The lock of rank 0; each rank has one at the same offset.
    lock: Lock,
    gate: Arc<Gate>,
    ways: Arc<Ways>,
    puts: Arc<Puts>,
    counts: Mutex<EpochCounts>,
    tree_service: Option<Arc<dyn Service>>,
}

impl Runtime {
    /// Makes an array of `len` zero values on every rank, with locks.
    /// Collective: every rank calls it with the same `len`, in the same order.
    ///
    /// # Errors
    ///
    /// Those of [`window_for`](Self::window_for).
    pub fn window<T: Plain>(&self, len: usize) -> Result<Window<T>, Error> {
        let design = if self.size() <= EACH_MAX { Design::Each } else { Design::Tree };
        self.window_by(design, len)
    }

    /// Makes a window with locks of the given design: that of rank 0, if the ranks'
    /// designs differ.
    ///
    /// # Errors
    ///
    /// Those of [`window_for`](Self::window_for).
    pub fn window_by<T: Plain>(&self, design: Design, len: usize) -> Result<Window<T>, Error> {
        self.window_for(Agent::Cpu, design, len)
    }

    /// Makes a window with locks; `agent` carries out the atomics on their words, as
    /// for [`share_for`](Self::share_for). Processors run the vertices of
    /// [`Design::Tree`] and carry out all atomics on their words.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share) and of [`gather`](Self::gather).
    pub fn window_for<T: Plain>(
        &self,
        agent: Agent,
        design: Design,
        len: usize,
    ) -> Result<Window<T>, Error> {
        let data = Arc::new(self.share::<T>(len)?);
        let designs = self.gather(design as u64)?;
        let design = Design::ALL[designs[0] as usize];
        let agent = if design == Design::Tree { Agent::Cpu } else { agent };
        let inner = Arc::new(WindowInner::share(self, agent, design)?);
        // No rank uses a vertex before its tree_service runs.
        self.barrier()?;
        Ok(Window { inner, data })
    }
}

impl<T: Plain> Window<T> {
    /// The address of value `index` of `target`'s array.
    #[inline]
    pub fn at(&self, target: Rank, index: usize) -> Remote<T> {
        self.data.at(target, index)
    }

    /// This rank's own array.
    pub fn own(&self) -> &Exposed<T> {
        self.data.own()
    }

    /// The number of values on each rank.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether the arrays have no values.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The design of the locks.
    pub fn design(&self) -> Design {
        self.inner.design
    }

    /// The agent that carries out the atomics of the locks.
    pub fn agent(&self) -> Agent {
        self.inner.ways.agent()
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// [`AddrError::NoSuchRank`] if the job does not have the rank `target`;
    /// [`AddrError::OutOfRange`] if its array has no such value;
    /// [`AddrError::PeerLost`] if the rank has died.
    #[inline]
    pub fn get(&self, target: Rank, index: usize) -> Result<T, AddrError> {
        self.inner.runtime.get(self.at(target, index))
    }

    /// Reads values from `index` on.
    ///
    /// # Errors
    ///
    /// [`AddrError::NoSuchRank`] if the job does not have the rank `target`;
    /// [`AddrError::OutOfRange`] if its array does not have all of the values;
    /// [`AddrError::PeerLost`] if the rank has died.
    pub fn get_slice(&self, target: Rank, index: usize, into: &mut [T]) -> Result<(), AddrError> {
        self.inner.runtime.get_slice(self.at(target, index), into)
    }

    /// Writes values from `index` on. They have landed after the next flush, fence,
    /// or end of the epoch or hold; on this node, when this returns. `values` may
    /// change when this returns.
    ///
    /// # Errors
    ///
    /// [`AddrError::NoSuchRank`] if the job does not have the rank `target`;
    /// [`AddrError::OutOfRange`] if its array does not have all of the values;
    /// [`AddrError::PeerLost`] if the rank has died. The error of a put to another
    /// node may be returned later, by the next flush.
    pub fn put(&self, target: Rank, index: usize, values: &[T]) -> Result<(), AddrError> {
        self.inner.puts.put(&self.inner.runtime, self.at(target, index), values)
    }

    /// Waits until all of this rank's puts to `target` have landed.
    ///
    /// # Errors
    ///
    /// The error of the first put that has failed since the last flush.
    pub fn flush(&self, target: Rank) -> Result<(), AddrError> {
        self.inner.puts.flush(target)
    }

    /// Waits until all of this rank's puts to all targets have landed.
    ///
    /// # Errors
    ///
    /// The error of the first put to any target that has failed since the last
    /// flush.
    pub fn flush_all(&self) -> Result<(), AddrError> {
        self.inner.puts.flush_all()
    }

    /// Locks `target`, shared with other holders. Waits for it.
    ///
    /// # Errors
    ///
    /// [`WindowError::Addr`]: there is no such rank, or a rank has died.
    #[inline]
    pub fn shared(&self, target: Rank) -> Result<Hold<'_, T>, WindowError> {
        self.hold(Want::Shared(target))
    }

    /// Locks `target`, exclusively. Waits for it.
    ///
    /// # Errors
    ///
    /// Those of [`shared`](Self::shared).
    #[inline]
    pub fn exclusive(&self, target: Rank) -> Result<Hold<'_, T>, WindowError> {
        self.hold(Want::Exclusive(target))
    }

    /// Locks all targets, shared with other holders. Waits for them.
    ///
    /// # Errors
    ///
    /// [`WindowError::Addr`]: a rank has died.
    #[inline]
    pub fn lock_all(&self) -> Result<Hold<'_, T>, WindowError> {
        self.hold(Want::All)
    }

    /// A hold of all targets without a lock (MPI's NOCHECK), for a program that has
    /// no conflicting accesses: it takes no operation, and its end flushes puts.
    pub fn unchecked(&self) -> Hold<'_, T> {
        Hold::new(self, Want::All, Grip::Unchecked)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn hold(&self, want: Want) -> Result<Hold<'_, T>, WindowError> {
        self.inner.grip(want, None).map(|grip| Hold::new(self, want, grip))
    }
}

impl Design {
    const ALL: [Self; 4] = [Self::Each, Self::Tree, Self::Global, Self::TwoLevel];

    /// The plan of accesses of this design, where they go through the gate.
    const fn plan(self) -> LockDesign {
        match self {
            Self::Each | Self::Tree => LockDesign::Tree,
            Self::Global => LockDesign::Global,
            Self::TwoLevel => LockDesign::TwoLevel,
        }
    }
}

impl WindowInner {
    fn share(runtime: &Runtime, agent: Agent, design: Design) -> Result<Self, Error> {
        let (ranks, nodes) = (runtime.size(), runtime.handle().node().member().nodes().count());
        let per_leaf = ranks.div_ceil(nodes).min(FAN_MAX);
        let tree = |key, at| Tree::new(ranks, per_leaf, FAN_MAX, key, at).map_err(Error::program);
        let draft = tree(RegionKey::new(0, 1), 0)?;
        let bytes = match design {
            Design::Tree => (0..ranks).map(|rank| draft.bytes_of(Rank(rank))).max().unwrap_or(0),
            Design::Each | Design::Global | Design::TwoLevel => 0,
        };
        let ways = Arc::new(Ways::share(runtime, agent, bytes)?);
        let home = RemoteAddr { rank: Rank(0), key: ways.key(), offset: 0 };
        let lock = Lock { home, nodes: ways.node_table(), kind: KIND };
        let plan = LockPlan { design: design.plan(), lock, tree: tree(ways.key(), ways.tree())? };
        let tree_service = match design {
            Design::Tree => TreeService::new(&ways, plan.tree)
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
            gate: Gate::new(plan, &ways),
            ways,
            puts: Arc::new(Puts::new(runtime.handle().far().is_some())),
            counts: Mutex::default(),
            tree_service,
        })
    }

    fn check(&self, rank: Rank) -> Result<(), AddrError> {
        let size = self.ranks;
        if rank.0 < size { Ok(()) } else { Err(AddrError::NoSuchRank { rank, size }) }
    }
}

/// A tree_service ends when all ranks have dropped the window, as its words do.
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

impl<T: Plain> Clone for Window<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), data: self.data.clone() }
    }
}

impl From<AddrError> for WindowError {
    fn from(error: AddrError) -> Self {
        Self::Addr(error)
    }
}

impl From<WindowError> for Error {
    fn from(error: WindowError) -> Self {
        match error {
            WindowError::Addr(error) => error.into(),
            error => Self::program(error),
        }
    }
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(error) => error.fmt(f),
            Self::Refused(error) => error.fmt(f),
            Self::Held { target } => write!(
                f,
                "this guard holds the lock of {target} already; release it before another hold"
            ),
            Self::Conflict { index } => write!(
                f,
                "value {index} was changed both in the private copy and in the public copy"
            ),
        }
    }
}

impl std::error::Error for WindowError {}

impl<T: Plain> fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({} values a rank, {:?})", self.len(), self.design())
    }
}

/// With readers' preference an exclusive hold is one atomic, too.
const KIND: LockKind = LockKind::Readers;

/// The largest number of ranks at which [`Design::Each`] is the default.
///
/// With 16 ranks on two cores a hold of all takes 1.3 us by `Each` and 0.5 us by the
/// tree, an exclusive hold 22 ns and 580 ns; with 8 ranks, one hold of each kind takes
/// as long by both. Open MPI takes 14 us, and some 30 to 270 ns: only with `Each` both
/// are faster than that.
pub const EACH_MAX: u32 = 16;
