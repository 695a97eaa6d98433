//! The handle of a rank: its place in the job, its threads, and its access to other
//! ranks.

use crate::{Error, JoinHandle, Rank};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_backends::boot::BootMethod;
use tsumugi_core::backend::LoadStore;
use tsumugi_core::coll::Addend;
use tsumugi_core::mem::{Remote, RemoteAddr};
use tsumugi_pvas::{Direct, Space};
use tsumugi_runtime::RankHandle;
use tsumugi_runtime::net::NetworkCounts;
use tsumugi_ult::Spawner;

/// One rank of a job. A handle: cheap to clone and to send to other threads of the
/// rank.
///
/// Every call works from ULTs and from OS threads; a call that blocks puts the
/// caller to sleep and leaves the core to other ULTs.
#[derive(Clone)]
pub struct Runtime {
    handle: RankHandle,
}

impl Runtime {
    pub(crate) fn new(handle: RankHandle) -> Self {
        Self { handle }
    }

    /// The rank below this type, for the C interfaces: the interface of
    /// `tsumugi-runtime` changes without notice.
    #[doc(hidden)]
    #[inline(always)]
    pub fn handle(&self) -> &RankHandle {
        &self.handle
    }

    /// The number of this rank.
    pub fn rank(&self) -> Rank {
        self.handle.rank()
    }

    /// The number of ranks of the job.
    pub fn size(&self) -> u32 {
        self.handle.direct().size()
    }

    /// All ranks of the job.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> + use<> {
        (0..self.size()).map(Rank)
    }

    /// How the ranks of this job found each other.
    pub fn boot_method(&self) -> BootMethod {
        self.handle.boot_method()
    }

    /// The ranks of this rank's node, itself included; loads and stores reach their
    /// memory.
    pub fn neighbours(&self) -> impl Iterator<Item = Rank> + '_ {
        self.handle.node().member().neighbours()
    }

    /// The number of worker threads of this rank.
    pub fn workers(&self) -> usize {
        self.handle.workers()
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
        self.ults().spawn(move || body(&runtime))
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
        self.handle.spawner()
    }

    /// Waits until every rank has called it. A rank may run one collective at a
    /// time.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank has died, or another thread of this rank is in a
    /// collective.
    pub fn barrier(&self) -> Result<(), Error> {
        Ok(self.handle.barrier()?)
    }

    /// The sum of every rank's `value`; the same for all ranks, also for floats.
    /// Collective, as [`barrier`](Self::barrier).
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank has died, or another thread of this rank is in a
    /// collective.
    pub fn sum<T: Addend>(&self, value: T) -> Result<T, Error> {
        let plus = |a, b| T::from_word(a).plus(T::from_word(b)).to_word();
        Ok(T::from_word(self.handle.reduce(value.to_word(), plus)?))
    }

    /// Every rank's `word`, in the order of the ranks, at each rank. Collective, as
    /// [`barrier`](Self::barrier). [`Group::allgather`](crate::Group::allgather) does the
    /// same for values of any type.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank has died, or another thread of this rank is in a
    /// collective. [`Error::Addr`]: a rank has died after the first barrier.
    pub fn allgather(&self, word: u64) -> Result<Vec<u64>, Error> {
        self.handle.check_process()?;
        let team = self.handle.node().team();
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
        self.handle.node().starter_bytes()
    }

    /// The rank of this node that has these bytes in its partition, and their offset
    /// there, if there is one. The same address in a rank of another node names
    /// other memory here, or none: so loads through a peer's address are good only
    /// if this returns that peer. Wait-free.
    pub fn place_of(&self, at: NonNull<u8>, bytes: u64) -> Option<(Rank, u64)> {
        let (local, offset) = self.handle.direct().space().place_of(at, bytes)?;
        Some((self.neighbours().nth(local.0 as usize)?, offset))
    }

    /// The partitions of this node, in which ranks are places on the node: for
    /// tests. Programs use [`place_of`](Self::place_of).
    #[doc(hidden)]
    pub fn space(&self) -> &Arc<Space> {
        self.handle.direct().space()
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
        self.handle.direct()
    }

    /// Checks that `what`, which belongs to `owner`, belongs to this rank of this job.
    /// Ranks that are threads of one process can hand such values to each other, and a
    /// value can be kept until the next job; its keys name other memory there.
    ///
    /// # Panics
    ///
    /// If `owner` is another rank, or a rank of another job.
    #[inline(always)]
    pub(crate) fn assert_owns(&self, what: &str, owner: &Runtime) {
        if !self.handle.is_same(&owner.handle) {
            self.refuse_foreign(what, owner);
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse_foreign(&self, what: &str, owner: &Runtime) -> ! {
        let job = if self.handle.is_neighbour(&owner.handle) { "" } else { " of another job" };
        panic!("{what} belongs to {}{job}, and not to {}", owner.rank(), self.rank());
    }

    /// How much this rank has done over its network so far; `None` in a job of one
    /// node.
    pub fn network_counts(&self) -> Option<NetworkCounts> {
        self.handle.net().map(|net| net.counts())
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runtime({} of {})", self.rank(), self.size())
    }
}
