//! Guards of locked targets: all targets of a window, or one, held until the guard
//! is dropped.

use super::gate::{Entered, Gate};
use super::inner::{KIND, WindowInner};
use super::{Design, Window, WindowError};
use crate::{AddrError, Plain, Rank};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::mutate;
use tsumugi_gas::lock::drive::{self, HeldLock};
use tsumugi_gas::lock::{Lock, LockMode, Want};

/// A lock on targets of a window. When it is dropped, the puts to them are flushed,
/// and then the targets are given back.
#[must_use = "the lock is released as soon as the hold is dropped"]
pub struct Hold<'w, T: Plain> {
    window: &'w Window<T>,
    want: Want,
    grip: Option<Grip>,
}

/// How a lock is held. It has two words, so that the usual cases need no memory.
pub(super) enum Grip {
    /// No lock is held: the caller promises that there are no conflicting accesses.
    Unchecked,
    /// The lock of the target is held by one atomic operation.
    Alone(LockMode),
    /// The lock of the target is held by a claim (a queue node).
    One(Box<HeldLock>),
    /// The lock of each target is held, by one atomic operation each except for
    /// these.
    Each(Option<Box<Claimed>>),
    /// The rank's group lock is held; this ULT is one of those inside.
    Entered(Box<Entered>),
}

/// Locks that are held by claims, in the order of their targets.
pub(super) type Claimed = Vec<(Rank, HeldLock)>;

impl<'w, T: Plain> Hold<'w, T> {
    pub(super) fn new(window: &'w Window<T>, want: Want, grip: Grip) -> Self {
        Self { window, want, grip: Some(grip) }
    }

    /// Locks one more target, exclusively. As with any locks, ranks that take
    /// several must take them in the same order, or they deadlock.
    ///
    /// # Errors
    ///
    /// Those of [`Window::exclusive`]; [`WindowError::Held`] if this guard holds the
    /// target already; [`WindowError::Refused`] if this guard holds a lock that
    /// excludes the new one.
    pub fn exclusive(&self, target: Rank) -> Result<Self, WindowError> {
        self.one_more(Want::Exclusive(target), target)
    }

    /// Locks one more target, shared with other holders.
    ///
    /// # Errors
    ///
    /// Those of [`exclusive`](Self::exclusive).
    pub fn shared(&self, target: Rank) -> Result<Self, WindowError> {
        self.one_more(Want::Shared(target), target)
    }

    fn one_more(&self, want: Want, target: Rank) -> Result<Self, WindowError> {
        let is_held = match self.want {
            Want::All => true,
            Want::Shared(held) | Want::Exclusive(held) => held == target,
        };
        if is_held {
            return Err(WindowError::Held { target });
        }
        let inside = match &self.grip {
            Some(Grip::Entered(entered)) => Some(entered.gate()),
            _ => None,
        };
        let grip = self.window.inner.grip(want, inside)?;
        Ok(Self::new(self.window, want, grip))
    }

    /// Gives the lock back, after all puts have landed.
    ///
    /// # Errors
    ///
    /// The error of the first put that failed, or of giving back. The lock is given
    /// back all the same, if it can be.
    #[inline]
    pub fn release(self) -> Result<(), AddrError> {
        // So the drop does not give back a second time.
        ManuallyDrop::new(self).give_back()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn give_back(&mut self) -> Result<(), AddrError> {
        let Some(grip) = self.grip.take() else { return Ok(()) };
        let inner = &*self.window.inner;
        match (self.want, grip) {
            (Want::Shared(target) | Want::Exclusive(target), Grip::Alone(mode)) => {
                let flushed = mutate!("hold_unflushed": inner.puts.flush(target) => Ok(()));
                inner.unlock(target, HeldLock::alone(mode)).and(flushed)
            }
            (want, grip) => inner.gives_back(want, grip),
        }
    }
}

impl<T: Plain> Window<T> {
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
    pub(super) fn hold(&self, want: Want) -> Result<Hold<'_, T>, WindowError> {
        self.inner.grip(want, None).map(|grip| Hold::new(self, want, grip))
    }
}

impl WindowInner {
    /// Waits until `want` is held; `inside` is the gate of a guard of the same ULT,
    /// if it has one that went through a gate.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn grip(&self, want: Want, inside: Option<&Arc<Gate>>) -> Result<Grip, WindowError> {
        match (want, self.design) {
            (Want::Shared(target), Design::Each | Design::Tree) => {
                self.one(target, LockMode::Shared)
            }
            (Want::Exclusive(target), Design::Each) => self.one(target, LockMode::Exclusive),
            (Want::All, Design::Each) => Ok(Grip::Each(self.each()?)),
            _ => self.enters(want, inside),
        }
    }

    #[inline(never)]
    fn enters(&self, want: Want, inside: Option<&Arc<Gate>>) -> Result<Grip, WindowError> {
        if let Want::Shared(target) | Want::Exclusive(target) = want {
            self.check(target)?;
        }
        let own = || self.gate.of_one(&self.words);
        let gate = inside.cloned().unwrap_or_else(own);
        let entered = gate.enter(&self.words, want, inside.is_some())?;
        Ok(Grip::Entered(Box::new(entered)))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn one(&self, target: Rank, mode: LockMode) -> Result<Grip, WindowError> {
        let held = self.lock(target, mode)?;
        Ok(if held.is_alone() { Grip::Alone(mode) } else { Grip::One(Box::new(held)) })
    }

    fn each(&self) -> Result<Option<Box<Claimed>>, WindowError> {
        let mut claimed: Option<Box<Claimed>> = None;
        self.sends_for_all(self.ranks);
        for target in (0..self.ranks).map(Rank) {
            match self.lock(target, LockMode::Shared) {
                Ok(held) if held.is_alone() => {}
                Ok(held) => claimed.get_or_insert_default().push((target, held)),
                Err(error) => {
                    // Locks that are held already must be free for others.
                    let _ = self.gives_back_each(target.0, claimed);
                    return Err(error.into());
                }
            }
        }
        Ok(claimed)
    }

    #[inline(never)]
    fn gives_back(&self, want: Want, grip: Grip) -> Result<(), AddrError> {
        let flushed = match want {
            Want::All => mutate!("hold_unflushed_of_all": self.puts.flush_all() => Ok(())),
            Want::Shared(target) | Want::Exclusive(target) => {
                mutate!("hold_unflushed_of_claim": self.puts.flush(target) => Ok(()))
            }
        };
        let ended = match (grip, want) {
            (Grip::One(held), Want::Shared(target) | Want::Exclusive(target)) => {
                self.unlock(target, *held)
            }
            (Grip::Each(claimed), _) => self.gives_back_each(self.ranks, claimed),
            (Grip::Entered(entered), _) => entered.leave(&self.words),
            (Grip::Unchecked | Grip::Alone(_) | Grip::One(_), _) => Ok(()),
        };
        ended.and(flushed)
    }

    /// Gives back the locks of the first `count` targets.
    fn gives_back_each(&self, count: u32, claimed: Option<Box<Claimed>>) -> Result<(), AddrError> {
        let mut claimed = claimed.map_or_else(Vec::new, |claimed| *claimed).into_iter().peekable();
        self.sends_for_all(count);
        // All of them, even if one fails.
        let mut ended = Ok(());
        for target in (0..count).map(Rank) {
            let held = claimed.next_if(|(of, _)| *of == target);
            let held = held.map_or(HeldLock::alone(LockMode::Shared), |(_, held)| held);
            ended = ended.and(self.unlock(target, held));
        }
        ended
    }

    /// Prefetches the lock words of the first `count` targets. If they are more than
    /// a few, other cores would have taken the last lines away before their turn.
    #[inline(always)]
    fn sends_for_all(&self, count: u32) {
        if count > LINES_AT_ONCE {
            return;
        }
        (0..count).map(Rank).for_each(|target| self.words.sends_for(self.lock_of(target).home));
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lock(&self, target: Rank, mode: LockMode) -> Result<HeldLock, AddrError> {
        let words = &*self.words;
        drive::lock(words, &self.lock_of(target), mode, |claim| words.take_node_for(claim))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unlock(&self, target: Rank, held: HeldLock) -> Result<(), AddrError> {
        if let Some(node) = held.unlock(&*self.words, &self.lock_of(target))? {
            self.words.release_node(node);
        }
        Ok(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lock_of(&self, target: Rank) -> Lock {
        Lock { home: RemoteAddr { rank: target, ..self.lock.home }, kind: KIND, ..self.lock }
    }
}

impl<T: Plain> Drop for Hold<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // A lock that is out of reach can neither be given back nor taken by another
        // rank. A put that failed is reported by the next flush.
        let _ = self.give_back();
    }
}

impl<T: Plain> fmt::Debug for Hold<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hold({:?})", self.want)
    }
}

/// Prefetching makes a hold of all a quarter faster with 2 ranks, equally fast with
/// 8, and slower with 16.
const LINES_AT_ONCE: u32 = 8;

const _: () = assert!(size_of::<Hold<'static, u64>>() == 32);
