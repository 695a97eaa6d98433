//! Where ULTs enter the locks of a window that are more than one word: with
//! [`Design::Tree`] all of a rank by one gate, one of them for all, and whoever
//! finds the rank inside on its side goes in with it; with the others each by
//! a gate of its own, and what it holds besides by the same.
//!
//! Nobody stays inside for ever by that: when ULTs of the rank wait for the
//! other side, or 64 have followed the first, those that come wait until the
//! rank has been outside.

use super::WindowError;
use super::ways::Ways;
use crate::AddrError;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_gas::lock::drive::Means;
use tsumugi_gas::lock::{Access, Design, Door, NodeId, Plan, Waiting, Want};
use tsumugi_ult::sync::{Condvar, Mutex, MutexGuard};

/// The door of a rank, and who stands before it.
pub(super) struct Gate {
    plan: Plan,
    way: Mutex<Doorway>,
    changed: Condvar,
}

struct Doorway {
    door: Door,
    /// Who wait for all targets, and for one exclusively.
    asking: [u32; 2],
    /// Who went in since the rank was outside.
    followed: u32,
}

/// What was asked for, and held.
pub(super) struct Entered {
    gate: Arc<Gate>,
    access: Box<Access>,
    node: NodeId,
}

impl Gate {
    pub(super) fn new(plan: Plan, ways: &Ways) -> Arc<Self> {
        let door = Door::new(&plan, ways.rank());
        let way = Mutex::new(Doorway { door, asking: [0; 2], followed: 0 });
        Arc::new(Self { plan, way, changed: Condvar::new() })
    }

    /// The gate for somebody who holds nothing: this one, or one of its own.
    pub(super) fn of_one(self: &Arc<Self>, ways: &Ways) -> Arc<Self> {
        match self.plan.design {
            Design::Tree => self.clone(),
            Design::Global | Design::TwoLevel => Self::new(self.plan, ways),
        }
    }

    /// Waits until `want` is held. `is_nested`: the caller holds something of
    /// the same side, and is waited for by those whom it would wait for.
    pub(super) fn enter(
        self: Arc<Self>,
        ways: &Ways,
        want: Want,
        is_nested: bool,
    ) -> Result<Entered, WindowError> {
        let mut access = Box::new(Access::new(self.plan));
        let node = ways.take_node();
        let mut way = self.way.lock();
        let side = side_of(self.plan.design, want);
        if let Some(side) = side {
            way.asking[side] += 1;
        }
        loop {
            if side.is_none_or(|side| way.lets_in(side, is_nested)) {
                match access.begin(&mut way.door, want, node) {
                    Ok(()) => break,
                    // It would wait for the caller.
                    Err(refused) if is_nested => {
                        ways.release_node(node);
                        way.asking[side.unwrap_or(0)] -= 1;
                        return Err(WindowError::Refused(refused));
                    }
                    Err(_) => {}
                }
            }
            self.changed.wait(&mut way);
        }
        if let Some(side) = side {
            way.asking[side] -= 1;
            way.followed = if way.door.holds() == 1 { 0 } else { way.followed + 1 };
        }
        self.drive(ways, &mut access, way)?;
        Ok(Entered { gate: self, access, node })
    }

    /// Runs an access until it is held or given back.
    fn drive<'g>(
        &'g self,
        ways: &Ways,
        access: &mut Access,
        mut way: MutexGuard<'g, Doorway>,
    ) -> Result<(), AddrError> {
        loop {
            if let Some((id, op)) = access.poll_op(&mut way.door) {
                drop(way);
                let result = ways.carry(&op);
                way = self.way.lock();
                access.handle_completed(&mut way.door, id, result);
                self.changed.notify_all();
                continue;
            }
            if let Some(done) = access.poll_done() {
                self.changed.notify_all();
                return done;
            }
            match access.waits_for(&way.door) {
                Some(Waiting::Word(at, until)) => {
                    drop(way);
                    let woken = ways.wait(at, until, None);
                    way = self.way.lock();
                    match woken {
                        Ok(value) => access.handle_wake(&mut way.door, value.unwrap_or(0)),
                        Err(AddrError::PeerLost { rank }) => {
                            access.handle_lost(&mut way.door, rank);
                        }
                        Err(error) => return Err(error),
                    }
                    self.changed.notify_all();
                }
                Some(Waiting::Pause(ns)) => {
                    drop(way);
                    tsumugi_ult::sleep(Duration::from_nanos(ns));
                    way = self.way.lock();
                    match ways.lost() {
                        Some(rank) => access.handle_lost(&mut way.door, rank),
                        None => access.handle_wake(&mut way.door, 0),
                    }
                }
                // Another ULT of this rank is taking the rank in, or out.
                None => self.changed.wait(&mut way),
            }
        }
    }
}

impl Entered {
    /// The gate for what the same ULT wants besides.
    pub(super) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Gives it back.
    pub(super) fn leave(self, ways: &Ways) -> Result<(), AddrError> {
        let Self { gate, mut access, node } = self;
        let mut way = gate.way.lock();
        access.release(&mut way.door);
        gate.drive(ways, &mut access, way)?;
        ways.release_node(node);
        Ok(())
    }
}

impl Doorway {
    fn lets_in(&self, side: usize, is_nested: bool) -> bool {
        let others_wait = self.asking[1 - side] > 0;
        let is_open = self.door.holds() == 0 || !others_wait && self.followed < FOLLOWERS;
        !self.door.is_leaving() && (is_nested || is_open)
    }
}

/// Which of the two sides an access goes in by, if it does.
fn side_of(design: Design, want: Want) -> Option<usize> {
    match (want, design) {
        (Want::All, _) | (Want::Shared(_), Design::Global) => Some(0),
        (Want::Exclusive(_), _) => Some(1),
        (Want::Shared(_), _) => None,
    }
}

/// Who go in behind the first before the rank goes out.
const FOLLOWERS: u32 = 64;
