//! Locks that any ULT of any rank may ask for: one at a time, or many readers,
//! with three preferences.
//!
//! ```
//! use tsumugi::lock::Kind;
//! use tsumugi::{Error, Rank};
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let lock = rt.share_lock(Rank(0), Kind::Neutral)?;
//!     let pair = rt.share::<u64>(2)?;
//!     for _ in 0..100 {
//!         let held = lock.write()?;
//!         for index in 0..2 {
//!             let value = rt.get(pair.at(Rank(0), index))?;
//!             rt.put(pair.at(Rank(0), index), value + 1)?;
//!         }
//!         held.release()?;
//!     }
//!     rt.barrier()?;
//!     let _shared = lock.read()?;
//!     assert_eq!(rt.get(pair.at(Rank(0), 1))?, 200);
//!     Ok::<(), Error>(())
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! A lock is a few words in its home's memory; the home takes no part. Nobody
//! in the way, a reader's lock and unlock are one fetch-and-add each, a
//! writer's ([`Kind::Readers`]) one compare-and-swap each. Who has to wait
//! sleeps, until the one in front of it writes a word of its own memory: no
//! remote word is polled. What blocking calls did under a lock is done when it
//! is given back; what was begun (`try_put`, `put_then`) must have ended.
//!
//! When a rank has died, which may have held the lock or stood in its queue,
//! whoever waits and whoever would have to ends with
//! [`AddrError::PeerLost`], which names it. Those who hold the lock keep it.
//!
//! A ULT that its scheduler cuts off while it asks for the lock, or gives it back,
//! blocks it for no other: one of the rank's own ends that in its place. What it holds
//! stays held.
//!
//! Progress: asking is blocking; a try and giving back are lock-free.
//!
//! Paper: M. Hatanaka, A. Hori and Y. Ishikawa, on locks over the atomics of
//! FX100; see [`tsumugi_gas::lock`] for the algorithm and what differs.

mod nodes;
mod words;

pub(crate) use nodes::Nodes;
pub use tsumugi_gas::lock::{Kind, Mode};
pub(crate) use words::{NODES, Words};

use crate::{AddrError, Agent, Error, Rank, Runtime};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_gas::lock::drive::{self, Held, Refused};
use tsumugi_gas::lock::{LOCK_BYTES, Lock};

/// A lock of all ranks. A handle: cheap to clone, and to send to other threads
/// of the rank.
#[derive(Clone)]
pub struct SharedLock {
    inner: Arc<Inner>,
}

struct Inner {
    words: Words,
    lock: Lock,
}

/// The lock, held until this is dropped.
#[must_use = "dropped at once, it is given back at once"]
pub struct LockGuard<'l> {
    lock: &'l SharedLock,
    grip: Option<Grip>,
}

/// By what: two words, for what is told apart where nobody is in the way.
enum Grip {
    /// By one operation.
    Alone(Mode),
    /// By a claim.
    Claimed(Box<Held>),
}

impl Runtime {
    /// Makes a lock whose words `home` has. Collective: every rank calls it
    /// with the same `home` and `kind`, in the same order.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share); [`AddrError::NoSuchRank`].
    pub fn share_lock(&self, home: Rank, kind: Kind) -> Result<SharedLock, Error> {
        self.share_lock_for(Agent::Cpu, home, kind)
    }

    /// The same with words whose atomics are the agent's, as of
    /// [`share_for`](Self::share_for).
    ///
    /// # Errors
    ///
    /// Those of [`share_lock`](Self::share_lock).
    pub fn share_lock_for(
        &self,
        agent: Agent,
        home: Rank,
        kind: Kind,
    ) -> Result<SharedLock, Error> {
        let words = Words::share(self, agent, LOCK_BYTES)?;
        // The checks of an access: there must be such a rank.
        if home.0 >= self.size() {
            return Err(AddrError::NoSuchRank { rank: home, size: self.size() }.into());
        }
        let home = RemoteAddr { rank: home, key: words.key(), offset: 0 };
        let lock = Lock { home, nodes: words.node_table(), kind };
        Ok(SharedLock { inner: Arc::new(Inner { words, lock }) })
    }
}

impl SharedLock {
    /// Waits for it, beside others that share it. Of a [`Kind::Mutex`]: alone.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`], which names a rank that died.
    #[inline]
    pub fn read(&self) -> Result<LockGuard<'_>, AddrError> {
        self.lock(Mode::Shared)
    }

    /// Waits for it, alone.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`], which names a rank that died.
    #[inline]
    pub fn write(&self) -> Result<LockGuard<'_>, AddrError> {
        self.lock(Mode::Exclusive)
    }

    /// Waits for it in `mode`.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`], which names a rank that died.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn lock(&self, mode: Mode) -> Result<LockGuard<'_>, AddrError> {
        let Inner { words, lock } = &*self.inner;
        drive::lock(words, lock, mode, |claim| words.take_node_for(claim))
            .map(|held| self.guard(held))
    }

    /// Takes it if nobody is in the way; else `None`, at once.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`], which names its home.
    pub fn try_lock(&self, mode: Mode) -> Result<Option<LockGuard<'_>>, AddrError> {
        let Inner { words, lock } = &*self.inner;
        let asked = drive::try_lock(words, lock, mode, words.take_node());
        asked.map(|asked| self.settle(asked))
    }

    /// Waits for it for `limit` at most; `None` if it has passed. Who gives up
    /// leaves the queue, which closes behind it.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`], which names a rank that died.
    pub fn lock_within(
        &self,
        mode: Mode,
        limit: Duration,
    ) -> Result<Option<LockGuard<'_>>, AddrError> {
        let Inner { words, lock } = &*self.inner;
        let asked = drive::lock_within(words, lock, mode, limit, words.take_node());
        asked.map(|asked| self.settle(asked))
    }

    /// Who carries out the atomics on its words.
    pub fn agent(&self) -> Agent {
        self.inner.words.agent()
    }

    fn settle(&self, asked: Result<Held, Refused>) -> Option<LockGuard<'_>> {
        match asked {
            Ok(held) => Some(self.guard(held)),
            Err(Refused { node, has_left }) => {
                self.inner.words.release_node(node, has_left);
                None
            }
        }
    }

    #[inline(always)]
    fn guard(&self, held: Held) -> LockGuard<'_> {
        let is_alone = held.is_alone();
        let grip = if is_alone { Grip::Alone(held.mode()) } else { Grip::Claimed(Box::new(held)) };
        LockGuard { lock: self, grip: Some(grip) }
    }
}

impl LockGuard<'_> {
    /// Gives it back.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: its home has died, or one that was to be woken.
    #[inline]
    pub fn release(self) -> Result<(), AddrError> {
        // It has given back then.
        ManuallyDrop::new(self).give_back()
    }

    // As where it was taken: a dozen instructions, of which a call would be some.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn give_back(&mut self) -> Result<(), AddrError> {
        match self.grip.take() {
            None => Ok(()),
            Some(Grip::Alone(mode)) => self.unlock(Held::alone(mode)),
            Some(Grip::Claimed(held)) => self.lets_go(*held),
        }
    }

    #[cold]
    #[inline(never)]
    fn lets_go(&self, held: Held) -> Result<(), AddrError> {
        self.unlock(held)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unlock(&self, held: Held) -> Result<(), AddrError> {
        let Inner { words, lock } = &*self.lock.inner;
        if let Some(node) = held.unlock(words, lock)? {
            words.release_node(node, false);
        }
        Ok(())
    }
}

impl Drop for LockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // A lock out of reach cannot be given back, nor had by another.
        let _ = self.give_back();
    }
}

impl fmt::Debug for SharedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedLock({:?} at {})", self.inner.lock.kind, self.inner.lock.home.rank)
    }
}

impl fmt::Debug for LockGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockGuard({:?})", self.lock)
    }
}
