//! What a rank holds of a window: all targets, or one, until it is dropped.

use super::gate::{Entered, Gate};
use super::{Design, Inner, Window, WindowError};
use crate::{AddrError, Plain, Rank};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_gas::lock::drive::{self, Held};
use tsumugi_gas::lock::{Lock, Mode, Want};

/// Targets of a window, held until this is dropped: then what was put is
/// flushed, and the targets are given back.
#[must_use = "dropped at once, it is given back at once"]
pub struct Hold<'w, T: Plain> {
    window: &'w Window<T>,
    want: Want,
    grip: Option<Grip>,
}

/// By what.
pub(super) enum Grip {
    /// The caller says that nobody is in the way.
    Unchecked,
    /// The lock of the target, by one operation.
    Alone(Mode),
    /// The same, by a claim.
    One(Box<Held>),
    /// The lock of each target, in their order.
    Each(Vec<Held>),
    /// As one of those of the rank that are inside.
    Entered(Box<Entered>),
}

impl<'w, T: Plain> Hold<'w, T> {
    pub(super) fn new(window: &'w Window<T>, want: Want, grip: Grip) -> Self {
        Self { window, want, grip: Some(grip) }
    }

    /// Holds one target more, exclusively. As with any locks, ranks that take
    /// several do so in one order, or wait for each other for ever.
    ///
    /// # Errors
    ///
    /// Those of [`Window::exclusive`]; [`WindowError::Held`] if it is held by
    /// this, [`WindowError::Refused`] if this holds what keeps it out.
    pub fn exclusive(&self, target: Rank) -> Result<Self, WindowError> {
        self.one_more(Want::Exclusive(target), target)
    }

    /// Holds one target more, beside others that share it.
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

    /// Gives it back, when all that was put has arrived.
    ///
    /// # Errors
    ///
    /// That of the first put that failed, or of giving back. It is given back
    /// all the same, if it can be.
    #[inline]
    pub fn release(self) -> Result<(), AddrError> {
        // It has given back then.
        ManuallyDrop::new(self).give_back()
    }

    #[inline]
    fn give_back(&mut self) -> Result<(), AddrError> {
        let Some(grip) = self.grip.take() else { return Ok(()) };
        let inner = &*self.window.inner;
        let flushed = match self.want {
            Want::All => inner.puts.flush_all(),
            Want::Shared(target) | Want::Exclusive(target) => inner.puts.flush(target),
        };
        inner.ungrip(self.want, grip).and(flushed)
    }
}

impl Inner {
    /// Waits until `want` is held, by somebody who is `inside` of a gate if it
    /// holds something.
    #[inline]
    pub(super) fn grip(&self, want: Want, inside: Option<&Arc<Gate>>) -> Result<Grip, WindowError> {
        if let Want::Shared(target) | Want::Exclusive(target) = want {
            self.check(target)?;
        }
        match (self.design, want) {
            (Design::Each, Want::All) => self.each(),
            (Design::Each, Want::Exclusive(target)) => self.one(target, Mode::Exclusive),
            (Design::Each | Design::Tree, Want::Shared(target)) => self.one(target, Mode::Shared),
            _ => {
                let own = || self.gate.of_one(&self.ways);
                let gate = inside.cloned().unwrap_or_else(own);
                let entered = gate.enter(&self.ways, want, inside.is_some())?;
                Ok(Grip::Entered(Box::new(entered)))
            }
        }
    }

    #[inline]
    fn one(&self, target: Rank, mode: Mode) -> Result<Grip, WindowError> {
        let lock = self.lock_of(target);
        let held = drive::lock(&*self.ways, &lock, mode, || self.ways.take_node())?;
        // Little is moved where nobody was in the way.
        Ok(if held.is_alone() { Grip::Alone(mode) } else { Grip::One(Box::new(held)) })
    }

    fn each(&self) -> Result<Grip, WindowError> {
        let mut all = Vec::with_capacity(self.ranks as usize);
        for target in (0..self.ranks).map(Rank) {
            let lock = self.lock_of(target);
            match drive::lock(&*self.ways, &lock, Mode::Shared, || self.ways.take_node()) {
                Ok(held) => all.push(held),
                Err(error) => {
                    // What is held already is for others to have.
                    let _ = self.ungrip(Want::All, Grip::Each(all));
                    return Err(error.into());
                }
            }
        }
        Ok(Grip::Each(all))
    }

    #[inline]
    fn ungrip(&self, want: Want, grip: Grip) -> Result<(), AddrError> {
        match (grip, want) {
            (Grip::Alone(mode), Want::Shared(target) | Want::Exclusive(target)) => {
                self.unlock(target, Held::alone(mode))
            }
            (Grip::One(held), Want::Shared(target) | Want::Exclusive(target)) => {
                self.unlock(target, *held)
            }
            (Grip::Each(all), _) => {
                // All, whatever becomes of one.
                let mut ended = Ok(());
                for (target, held) in (0..self.ranks).map(Rank).zip(all) {
                    ended = ended.and(self.unlock(target, held));
                }
                ended
            }
            (Grip::Entered(entered), _) => entered.leave(&self.ways),
            (Grip::Unchecked | Grip::Alone(_) | Grip::One(_), _) => Ok(()),
        }
    }

    #[inline]
    fn unlock(&self, target: Rank, held: Held) -> Result<(), AddrError> {
        if let Some(node) = held.unlock(&*self.ways, &self.lock_of(target))? {
            self.ways.release_node(node);
        }
        Ok(())
    }

    #[inline]
    fn lock_of(&self, target: Rank) -> Lock {
        let home = RemoteAddr { rank: target, ..self.lock.home };
        Lock { home, ..self.lock }
    }
}

impl<T: Plain> Drop for Hold<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // What is out of reach cannot be given back, nor had by another. A put
        // that failed is told by the next flush of who asks.
        let _ = self.give_back();
    }
}

impl<T: Plain> fmt::Debug for Hold<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hold({:?})", self.want)
    }
}
