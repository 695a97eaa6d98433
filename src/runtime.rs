//! The handle of a rank: its place in the job, its threads, and its access to other
//! ranks.

use crate::am::Am;
use crate::far::{Far, NetworkCounts};
use crate::msg::Messages;
use crate::node::{Buried, Node};
use crate::queue::Queue;
use crate::{AddrError, Error, JoinHandle, Rank};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_backends::boot::BootMethod;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::coll::{Addend, CollContext, RemoteExecute};
use tsumugi_core::mem::{Agent, Need, Remote, RemoteAddr};
use tsumugi_core::signal::Until;
use tsumugi_core::sync::AtomicU64;
use tsumugi_core::wait::Wait;
use tsumugi_pvas::{Direct, ExposedArea, Heap, Space};
use tsumugi_ult::{Here, Spawner};

/// One rank of a job. A handle: cheap to clone and to send to other threads of the
/// rank.
///
/// Every call works from ULTs and from OS threads; a call that blocks puts the
/// caller to sleep and leaves the core to other ULTs.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) direct: Direct,
    pub(crate) queue: Option<Arc<Queue>>,
    pub(crate) far: Option<Arc<Far>>,
    node: Arc<Node>,
    way: BootMethod,
    spawner: Spawner,
    workers: usize,
}

impl Runtime {
    pub(crate) fn new(node: Arc<Node>, way: BootMethod, spawner: Spawner, workers: usize) -> Self {
        Self {
            direct: node.direct(),
            queue: node.queue(),
            far: node.far(),
            node,
            way,
            spawner,
            workers,
        }
    }

    /// The number of this rank.
    pub fn rank(&self) -> Rank {
        self.node.rank()
    }

    /// The number of ranks of the job.
    pub fn size(&self) -> u32 {
        self.direct.size()
    }

    /// All ranks of the job.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> + use<> {
        (0..self.size()).map(Rank)
    }

    /// How the ranks of this job found each other.
    pub fn way(&self) -> BootMethod {
        self.way
    }

    /// The ranks of this rank's node, itself included; loads and stores reach their
    /// memory.
    pub fn neighbours(&self) -> impl Iterator<Item = Rank> + '_ {
        self.node.member().neighbours()
    }

    /// The number of worker threads of this rank.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Starts a ULT of this rank. It may outlive its parent; it goes on if its
    /// handle is dropped.
    ///
    /// # Suspension
    ///
    /// A ULT may continue on another OS thread after any call that suspends it,
    /// which is any call that may wait: join, lock, park, yield, sleep, receive,
    /// put, get. Values that belong to an OS thread must not live across such a
    /// call, and the compiler does not check that: a reference into a
    /// `thread_local!` (`with`, `with_borrow`), a value that lives in one and is not
    /// `Send` (an `Rc` that was cloned from it), a guard of `std`'s locks,
    /// `StdoutLock`. Such a value would be used by two OS threads at once, which is
    /// a data race. A destructor that suspends while it unwinds makes
    /// `std::thread::panicking` true for other ULTs on that OS thread, until it
    /// continues; their guards of `std` poison locks meanwhile.
    ///
    /// [`callback`](tsumugi_ult::callback) checks it: code inside a callback panics
    /// where it would sleep, in every build, so code that holds such a value can run
    /// inside one. A value that must live across a suspension must be `Send`, or lie
    /// in an [`ult_local!`](tsumugi_ult::ult_local).
    ///
    /// Builds with debug assertions, and others with `TSUMUGI_SUSPENSION=report`,
    /// report the first ULT of the process that suspends while it unwinds, and each
    /// suspension under a [`NoSuspend`](tsumugi_ult::NoSuspend). A program puts a
    /// `NoSuspend` beside a guard of `std`;
    /// [`with_thread_local`](tsumugi_ult::with_thread_local) puts it round a
    /// reference into a `thread_local!`. Guards and references without a `NoSuspend`
    /// are not found, because `std` does not report them.
    pub fn spawn<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Runtime) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let runtime = self.clone();
        self.spawner.spawn(move || body(&runtime))
    }

    /// The ULTs of this rank: their identities and counters.
    ///
    /// # ULTs of another scheduler
    ///
    /// ULTs of another scheduler may make the same calls as a ULT of this rank. If
    /// the end of its scheduler cuts such a ULT off in the middle of a single
    /// operation, a message, or a claim of a lock, nothing is left behind. An access
    /// that takes several operations stays half done: a hold of a window by
    /// [`lock_all`](crate::Window::lock_all) or by another
    /// [`Design`](crate::window::Design) than `Each`, a page that an array is moving
    /// here, a claim of a container. Join such ULTs, or let ULTs of this rank make
    /// those calls.
    pub fn ults(&self) -> &Spawner {
        &self.spawner
    }

    /// Waits until every rank has called it. A rank may run one collective at a
    /// time.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank has died, or another thread of this rank is in a
    /// collective.
    pub fn barrier(&self) -> Result<(), Error> {
        tsumugi_ult::assert_may_block("barrier");
        let dropped = self.node.exhume();
        let team = self.node.team();
        match self.node.circle() {
            Some(circle) => team.meet(circle, &*self.node)?,
            None => team.barrier(&self.part(&|op| self.run_far(op)))?,
        }
        // No rank can access this memory any more.
        drop(dropped);
        Ok(())
    }

    /// The sum of every rank's `value`; the same for all ranks, also for floats.
    /// Collective, as [`barrier`](Self::barrier).
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank has died, or another thread of this rank is in a
    /// collective.
    pub fn sum<T: Addend>(&self, value: T) -> Result<T, Error> {
        tsumugi_ult::assert_may_block("sum");
        let plus = |a, b| T::from_word(a).plus(T::from_word(b)).to_word();
        let elsewhere = |op: &_| self.run_far(op);
        let part = self.part(&elsewhere);
        Ok(T::from_word(self.node.team().reduce(&part, value.to_word(), plus)?))
    }

    /// Returns the word that every rank brings, if it is the same for all ranks.
    /// Collective.
    pub(crate) fn agree(&self, word: u64) -> Result<Option<u64>, Error> {
        tsumugi_ult::assert_may_block("agreement");
        let dropped = self.node.exhume();
        let elsewhere = |op: &_| self.run_far(op);
        let part = self.part(&elsewhere);
        let team = self.node.team();
        let least = team.reduce(&part, word, u64::min)?;
        let most = team.reduce(&part, word, u64::max)?;
        // All ranks have come this far, as after a barrier.
        drop(dropped);
        Ok((least == most).then_some(least))
    }

    /// Every rank's `word`, in the order of the ranks. Collective, as
    /// [`barrier`](Self::barrier).
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank has died, or another thread of this rank is in a
    /// collective. [`Error::Addr`]: a rank has died after the first barrier.
    pub fn gather(&self, word: u64) -> Result<Vec<u64>, Error> {
        let team = self.node.team();
        // SAFETY: the team's words, of which each rank writes only its own.
        let published = |rank| unsafe { Remote::of_runtime(team.published(rank)) };
        self.put(published(self.rank()), word)?;
        self.barrier()?;
        let words = self.ranks().map(|rank| self.get(published(rank)));
        let words = words.collect::<Result<_, _>>()?;
        // No rank publishes again before all ranks have read.
        self.barrier()?;
        Ok(words)
    }

    /// Memory of `rank` that every rank can access from the start, as words;
    /// [`starter_bytes`](Self::starter_bytes) long, zero at first.
    pub fn starter(&self, rank: Rank) -> Remote<u64> {
        let key = tsumugi_pvas::partition::STARTER_KEY;
        Remote::new(RemoteAddr { rank, key, offset: 0 })
    }

    /// Bytes of starter memory on each rank.
    pub fn starter_bytes(&self) -> usize {
        self.node.starter_bytes()
    }

    /// The rank of this node that has these bytes in its partition, and their offset
    /// there, if there is one. The same address in a rank of another node names
    /// other memory here, or none: so loads through a peer's address are good only
    /// if this returns that peer. Wait-free.
    pub fn place_of(&self, at: NonNull<u8>, bytes: u64) -> Option<(Rank, u64)> {
        let (local, offset) = self.direct.space().place_of(at, bytes)?;
        Some((self.neighbours().nth(local.0 as usize)?, offset))
    }

    /// The partitions of this node, in which ranks are places on the node: for
    /// tests. Programs use [`place_of`](Self::place_of).
    #[doc(hidden)]
    pub fn space(&self) -> &Arc<Space> {
        self.direct.space()
    }

    /// This rank's access to the memory of all ranks of its node, for an engine of
    /// the program's own.
    ///
    /// # Safety
    ///
    /// The returned value resolves the local end of a put or a get by its key alone,
    /// and under some keys it finds the memory of each [`Buffer`](crate::Buffer),
    /// and memory that an operation of another thread has borrowed. The caller must
    /// only carry out puts and gets with local ends that were registered for them.
    pub unsafe fn load_store(&self) -> &Direct {
        &self.direct
    }

    /// How much this rank has done over its network so far; `None` in a job of one
    /// node.
    pub fn network_counts(&self) -> Option<NetworkCounts> {
        self.far.as_ref().map(|far| far.counts())
    }

    /// Keeps memory that peers may still use until the next barrier.
    pub(crate) fn bury(&self, memory: Buried) {
        self.node.bury(memory);
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn am(&self) -> &Am {
        self.node.am()
    }

    pub(crate) fn messages(&self) -> &Arc<Messages> {
        self.node.messages()
    }

    /// The heap, for memory of this rank alone.
    pub(crate) fn heap(&self) -> &'static Heap {
        self.node.heap()
    }

    /// The exposed area, for memory that peers may access.
    pub(crate) fn exposed(&self) -> &ExposedArea {
        self.node.exposed()
    }

    /// A word of this rank's own registered memory, to wait for.
    pub(crate) fn own_word(&self, word: Remote<u64>) -> Result<&AtomicU64, AddrError> {
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
            return Err(AddrError::NotOwn { addr });
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
    pub(crate) fn lost(&self) -> Option<Rank> {
        self.node.lot().lost()
    }

    pub(crate) fn lot_wait(&self, word: &AtomicU64, until: Until) -> Result<u64, AddrError> {
        self.node.waiters().wait(self.node.lot(), word, until, &Here)
    }

    pub(crate) fn lot_wait_for(
        &self,
        word: &AtomicU64,
        until: Until,
        limit: Duration,
    ) -> Result<Option<u64>, AddrError> {
        self.node.waiters().wait_for(self.node.lot(), word, until, &Here, limit)
    }

    fn part<'a>(&'a self, elsewhere: &'a RemoteExecute<'a>) -> CollContext<'a, Direct> {
        CollContext {
            memory: &self.direct,
            elsewhere,
            lot: self.node.lot(),
            waiters: self.node.waiters(),
            wait: &Here as &dyn Wait,
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runtime({} of {})", self.rank(), self.size())
    }
}
