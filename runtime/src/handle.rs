//! The handle of a rank, below the typed interface of the facade: the parts of the rank
//! by which operations and collectives run.

use crate::error::Error;
use crate::net::NetLayer;
use crate::node::{DeferredFree, RankNode};
use crate::node_queue::NodeQueue;
use crate::service::am::Am;
use crate::service::collectives::GroupHandle;
use crate::service::messages::Messages;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_backends::boot::BootMethod;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::coll::{CollContext, CollError, ExecuteFn};
use tsumugi_core::mem::{AddrError, Agent, Need, Rank, Remote};
use tsumugi_core::signal::Until;
use tsumugi_core::sync::{AtomicU32, AtomicU64};
use tsumugi_core::wait::Wait;
use tsumugi_pvas::{Direct, ExposedArea, Heap, own_process};
use tsumugi_ult::{Here, Spawner};

/// One rank of a job. A handle: cheap to clone and to send to other threads of the
/// rank.
#[derive(Clone)]
pub struct RankHandle {
    pub(crate) direct: Direct,
    pub(crate) queue: Option<Arc<NodeQueue>>,
    pub(crate) net: Option<Arc<NetLayer>>,
    node: Arc<RankNode>,
    method: BootMethod,
    spawner: Spawner,
    workers: usize,
}

impl RankHandle {
    /// The handle of the rank that has `node`, with the scheduler of `spawner`.
    pub(crate) fn new(
        node: Arc<RankNode>,
        method: BootMethod,
        spawner: Spawner,
        workers: usize,
    ) -> Self {
        Self {
            direct: node.direct(),
            queue: node.queue(),
            net: node.net(),
            node,
            method,
            spawner,
            workers,
        }
    }

    /// Whether both handles are of the same rank of the same job.
    #[inline(always)]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }

    /// Whether both handles are of ranks of the same job on the same node.
    #[inline]
    pub fn is_neighbour(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.direct.space(), other.direct.space())
    }

    /// The number of this rank.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.node.rank()
    }

    /// How the ranks of this job found each other.
    #[inline]
    pub fn boot_method(&self) -> BootMethod {
        self.method
    }

    /// The ULTs of this rank.
    #[inline]
    pub fn spawner(&self) -> &Spawner {
        &self.spawner
    }

    /// The number of worker threads of this rank.
    #[inline]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// This rank's access to the memory of all ranks of its node.
    #[inline(always)]
    pub fn direct(&self) -> &Direct {
        &self.direct
    }

    /// The queue of operations within the node, if they go through one.
    #[inline(always)]
    pub fn queue(&self) -> Option<&Arc<NodeQueue>> {
        self.queue.as_ref()
    }

    /// The network layer, if there are other nodes.
    #[inline(always)]
    pub fn net(&self) -> Option<&Arc<NetLayer>> {
        self.net.as_ref()
    }

    /// The parts of the rank that do not belong to its scheduler.
    #[inline]
    pub fn node(&self) -> &RankNode {
        &self.node
    }

    pub(crate) fn shared_node(&self) -> &Arc<RankNode> {
        &self.node
    }

    /// The active messages of this rank.
    #[inline]
    pub fn am(&self) -> &Am {
        self.node.am()
    }

    /// The messages of this rank.
    #[inline]
    pub fn messages(&self) -> &Arc<Messages> {
        self.node.messages()
    }

    /// The group of all ranks.
    #[inline]
    pub fn world(&self) -> &GroupHandle {
        self.node.world()
    }

    /// The heap, for memory of this rank alone.
    #[inline]
    pub fn heap(&self) -> &'static Heap {
        self.node.heap()
    }

    /// The exposed area, for memory that peers may access.
    #[inline]
    pub fn exposed(&self) -> &ExposedArea {
        self.node.exposed()
    }

    /// The number of threads, timers and handles outside of the workers that may still
    /// wake a worker: while it is not 0, the rank does not count as quiet.
    pub fn outside(&self) -> &'static AtomicU32 {
        let outside: *const AtomicU32 = self.node.member().control().outside();
        // SAFETY: a space that has a heap is never unmapped, and a rank's space has one.
        unsafe { &*outside }
    }

    /// Keeps memory that peers may still use until the next barrier.
    pub fn defer_free(&self, memory: DeferredFree) {
        self.node.defer_free(memory);
    }

    /// Refuses a call in a child that the rank's process has forked. All collectives and
    /// collective constructors check it, before they use memory that ranks share.
    ///
    /// # Errors
    ///
    /// [`CollError::Forked`].
    #[inline]
    pub fn check_process(&self) -> Result<(), CollError> {
        own_process::check()
    }

    /// Waits until every rank has called it. A rank may run one collective at a
    /// time.
    ///
    /// # Errors
    ///
    /// [`CollError`]: a rank has died, another thread of this rank is in a
    /// collective, or this process is a fork of the rank.
    pub fn barrier(&self) -> Result<(), CollError> {
        tsumugi_ult::assert_may_block("barrier");
        self.check_process()?;
        let dropped = self.node.take_deferred();
        let team = self.node.team();
        match self.node.circle() {
            Some(circle) => team.meet(circle, &*self.node)?,
            None => team.barrier(&self.part(&|op| self.execute(op)))?,
        }
        // No rank can access this memory any more.
        drop(dropped);
        Ok(())
    }

    /// Combines the words that the ranks bring; the result is the same for all ranks.
    /// Collective, as [`barrier`](Self::barrier).
    ///
    /// # Errors
    ///
    /// Those of [`barrier`](Self::barrier).
    pub fn reduce(&self, word: u64, plus: impl Fn(u64, u64) -> u64) -> Result<u64, CollError> {
        tsumugi_ult::assert_may_block("sum");
        self.check_process()?;
        let execute = |op: &_| self.execute(op);
        self.node.team().reduce(&self.part(&execute), word, plus)
    }

    /// Returns the word that every rank brings, if it is the same for all ranks.
    /// Collective, as [`barrier`](Self::barrier).
    ///
    /// # Errors
    ///
    /// Those of [`barrier`](Self::barrier).
    pub fn agree(&self, word: u64) -> Result<Option<u64>, Error> {
        tsumugi_ult::assert_may_block("agreement");
        self.check_process()?;
        let dropped = self.node.take_deferred();
        let execute = |op: &_| self.execute(op);
        let part = self.part(&execute);
        let team = self.node.team();
        let least = team.reduce(&part, word, u64::min)?;
        let most = team.reduce(&part, word, u64::max)?;
        // All ranks have come this far, as after a barrier.
        drop(dropped);
        Ok((least == most).then_some(least))
    }

    /// A word of this rank's own registered memory, to wait for.
    ///
    /// # Errors
    ///
    /// Those of a get of the word, and [`AddrError::OtherRank`] for a word of another rank
    /// of this node.
    pub fn own_word(&self, word: Remote<u64>) -> Result<&AtomicU64, AddrError> {
        let addr = word.addr();
        let is_own = addr.rank == self.rank();
        let need = match addr.key.agent() {
            // As the checks of a get, so that a wrong address gives the same error.
            _ if !is_own => Need::Read,
            // Memory that other ranks may write: never a slice that the program has.
            Agent::Cpu => Need::Write,
            // The device's words are exposed memory, and local to processors.
            Agent::Device => Need::Local,
        };
        let at = self.direct.resolve(addr, 8, need)?;
        if !is_own {
            return Err(AddrError::OtherRank { addr });
        }
        if !at.cast::<u64>().is_aligned() {
            return Err(AddrError::Unaligned { addr, align: 8 });
        }
        // SAFETY: resolved for 8 bytes, aligned; memory that other ranks may write
        // is only ever accessed as atomics and plain bytes, and stays mapped, also
        // when its registration has ended.
        Ok(unsafe { at.cast::<AtomicU64>().as_ref() })
    }

    /// A rank that has died, if there is one.
    #[inline]
    pub fn lost(&self) -> Option<Rank> {
        self.node.parking_lot().lost()
    }

    /// Sleeps until a word of this rank's memory satisfies `until`, and returns the value
    /// that did.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died while the word did not satisfy `until`.
    #[inline]
    pub fn wait(&self, word: &AtomicU64, until: Until) -> Result<u64, AddrError> {
        self.node.waiters().wait(self.node.parking_lot(), word, until, &Here)
    }

    /// Sleeps as [`wait`](Self::wait) does, for `limit` at most: `Ok(None)` if the limit
    /// has passed.
    ///
    /// # Errors
    ///
    /// Those of [`wait`](Self::wait).
    pub fn wait_timeout(
        &self,
        word: &AtomicU64,
        until: Until,
        limit: Duration,
    ) -> Result<Option<u64>, AddrError> {
        self.node.waiters().wait_timeout(self.node.parking_lot(), word, until, &Here, limit)
    }

    fn part<'a>(&'a self, execute: &'a ExecuteFn<'a>) -> CollContext<'a, Direct> {
        CollContext {
            memory: &self.direct,
            execute,
            parking_lot: self.node.parking_lot(),
            waiters: self.node.waiters(),
            wait: &Here as &dyn Wait,
        }
    }
}

impl fmt::Debug for RankHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RankHandle({} of {})", self.rank(), self.direct.size())
    }
}
