//! Options of a container that is to be made.

use crate::Rank;
use crate::global::Pool;
use std::fmt;
use std::marker::PhantomData;

/// How a container is made: its ranks, its size at first, its pool.
///
/// ```
/// use tsumugi::{GlobalMap, GlobalVec, Rank};
///
/// tsumugi::run_ranks(2, |rt| {
///     let last = Rank(rt.size() - 1);
///     let ages = GlobalMap::<str, u32>::options().buckets(4096).ranks(&[last]).create(rt)?;
///     let log = GlobalVec::<u64>::options().capacity(1000).home(last).create(rt)?;
///     ages.insert("Kagome", 17)?;
///     log.push(u64::from(rt.rank().0))?;
///     rt.barrier()
/// })
/// # .map(drop)
/// # .unwrap();
/// ```
#[must_use = "the options make no container by themselves"]
pub struct ContainerOptions<C> {
    pub(super) home: Rank,
    pub(super) pool: Option<Pool>,
    /// Of a table.
    pub(super) ranks: Option<Vec<Rank>>,
    /// Of a table, on each rank.
    pub(super) buckets: u32,
    /// Of a vector or a deque.
    pub(super) capacity: usize,
    pub(super) of: PhantomData<fn() -> C>,
}

impl<C> ContainerOptions<C> {
    /// Sets the rank that makes the container and has its header, and all elements of a
    /// vector or a deque; rank 0 if it is not set.
    pub fn home(self, home: Rank) -> Self {
        Self { home, ..self }
    }

    /// Puts the container into a pool of the program, in place of the one that each rank
    /// has once. [`open_in`](super::GlobalMap::open_in) opens it.
    pub fn pool(self, pool: &Pool) -> Self {
        Self { pool: Some(pool.clone()), ..self }
    }
}

impl<C> Default for ContainerOptions<C> {
    fn default() -> Self {
        let (home, buckets) = (Rank(0), BUCKETS);
        Self { home, pool: None, ranks: None, buckets, capacity: 0, of: PhantomData }
    }
}

impl<C> fmt::Debug for ContainerOptions<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ContainerOptions");
        shown.field("home", &self.home).field("pool", &self.pool).field("ranks", &self.ranks);
        shown.field("buckets", &self.buckets).field("capacity", &self.capacity).finish()
    }
}

/// 96 KiB on each rank.
const BUCKETS: u32 = 1024;
