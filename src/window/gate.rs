//! The gate by which ULTs of a rank enter the locks of a window that are more than
//! one word. With [`LockDesign::Tree`] all ULTs of a rank share one gate and one entry
//! for all, and a ULT that finds the rank inside on its side enters with it. With
//! the other designs each ULT has a gate of its own, also for its nested accesses.
//!
//! Sharing does not keep the rank inside for ever: when ULTs of the rank wait for
//! the other side, or 64 have followed the first, ULTs that come wait until the rank
//! has been outside.

use super::WindowError;
use super::words::WindowWords;
use crate::AddrError;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_gas::lock::drive::LockDriver;
use tsumugi_gas::lock::{
    AccessWait, LockDesign, LockPlan, NodeId, RankMembership, Want, WindowAccess,
};
use tsumugi_ult::sync::{Condvar, Mutex, MutexGuard};

/// The gate of a rank: its membership (the state of the lock), and the ULTs that wait.
pub(super) struct Gate {
    plan: LockPlan,
    state: Mutex<GateState>,
    changed: Condvar,
}

struct GateState {
    membership: RankMembership,
    /// How many ULTs wait for all targets, and for one exclusively.
    asking: [u32; 2],
    /// How many ULTs have entered since the rank was outside.
    followed: u32,
}

/// An access that is held.
pub(super) struct Entered {
    gate: Arc<Gate>,
    access: Box<WindowAccess>,
    node: NodeId,
}

impl Gate {
    pub(super) fn new(plan: LockPlan, words: &WindowWords) -> Arc<Self> {
        let membership = RankMembership::new(&plan, words.rank());
        let state = Mutex::new(GateState { membership, asking: [0; 2], followed: 0 });
        Arc::new(Self { plan, state, changed: Condvar::new() })
    }

    /// The gate for a ULT that holds nothing: this one, or a new one.
    pub(super) fn of_one(self: &Arc<Self>, words: &WindowWords) -> Arc<Self> {
        match self.plan.design {
            LockDesign::Tree => self.clone(),
            LockDesign::Global | LockDesign::TwoLevel => Self::new(self.plan, words),
        }
    }

    /// Waits until `want` is held. `is_nested`: the caller holds something of the
    /// same side, so the waiters for which it would wait may wait for it.
    pub(super) fn enter(
        self: Arc<Self>,
        words: &WindowWords,
        want: Want,
        is_nested: bool,
    ) -> Result<Entered, WindowError> {
        let mut access = Box::new(WindowAccess::new(self.plan));
        let node = words.take_node();
        let mut state = self.state.lock();
        let side = side_of(self.plan.design, want);
        if let Some(side) = side {
            state.asking[side] += 1;
        }
        loop {
            if side.is_none_or(|side| state.lets_in(side, is_nested)) {
                match access.begin(&mut state.membership, want, node) {
                    Ok(()) => break,
                    // It would wait for an access that waits for the caller.
                    Err(refused) if is_nested => {
                        words.release_node(node);
                        state.asking[side.unwrap_or(0)] -= 1;
                        return Err(WindowError::Refused(refused));
                    }
                    Err(_) => {}
                }
            }
            self.changed.wait(&mut state);
        }
        if let Some(side) = side {
            state.asking[side] -= 1;
            state.followed = if state.membership.holds() == 1 { 0 } else { state.followed + 1 };
        }
        self.drive(words, &mut access, state)?;
        Ok(Entered { gate: self, access, node })
    }

    /// Runs an access until it is held or given back.
    fn drive<'g>(
        &'g self,
        words: &WindowWords,
        access: &mut WindowAccess,
        mut state: MutexGuard<'g, GateState>,
    ) -> Result<(), AddrError> {
        loop {
            if let Some((id, op)) = access.poll_op(&mut state.membership) {
                drop(state);
                let result = words.carry(&op);
                state = self.state.lock();
                access.handle_completed(&mut state.membership, id, result);
                self.changed.notify_all();
                continue;
            }
            if let Some(done) = access.poll_done() {
                self.changed.notify_all();
                return done;
            }
            match access.waits_for(&state.membership) {
                Some(AccessWait::Word(at, until)) => {
                    drop(state);
                    let woken = words.wait(at, until, None);
                    state = self.state.lock();
                    match woken {
                        Ok(value) => access.handle_wake(&mut state.membership, value.unwrap_or(0)),
                        Err(AddrError::PeerLost { rank }) => {
                            access.handle_lost(&mut state.membership, rank);
                        }
                        Err(error) => return Err(error),
                    }
                    self.changed.notify_all();
                }
                Some(AccessWait::Pause(ns)) => {
                    drop(state);
                    tsumugi_ult::sleep(Duration::from_nanos(ns));
                    state = self.state.lock();
                    match words.lost() {
                        Some(rank) => access.handle_lost(&mut state.membership, rank),
                        None => access.handle_wake(&mut state.membership, 0),
                    }
                }
                // Another ULT of this rank is entering or leaving for the rank.
                None => self.changed.wait(&mut state),
            }
        }
    }
}

impl Entered {
    /// The gate for nested accesses of the same ULT.
    pub(super) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Gives the access back.
    pub(super) fn leave(self, words: &WindowWords) -> Result<(), AddrError> {
        let Self { gate, mut access, node } = self;
        let mut state = gate.state.lock();
        access.release(&mut state.membership);
        gate.drive(words, &mut access, state)?;
        words.release_node(node);
        Ok(())
    }
}

impl GateState {
    fn lets_in(&self, side: usize, is_nested: bool) -> bool {
        let others_wait = self.asking[1 - side] > 0;
        let is_open = self.membership.holds() == 0 || !others_wait && self.followed < FOLLOWERS;
        !self.membership.is_leaving() && (is_nested || is_open)
    }
}

/// The index of the side by which an access enters, if it does.
fn side_of(design: LockDesign, want: Want) -> Option<usize> {
    design.side_of(want).map(|side| side as usize)
}

/// ULTs that may enter after the first before the rank leaves.
const FOLLOWERS: u32 = 64;
