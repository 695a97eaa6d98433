//! Waiting for each other, again and again.

use super::queue::{Node, Queue};
use crate::lock::Lock;
use crate::park::Here;
use core::fmt;
use tsumugi_core::wait::{Reason, Wait};

/// A meeting point for a fixed number of ULTs and OS threads, reusable. The
/// last to arrive makes all others ready.
pub struct Barrier {
    members: usize,
    meeting: Lock<Meeting>,
}

struct Meeting {
    arrived: usize,
    queue: Queue,
}

impl Barrier {
    /// A barrier for `members`; 0 counts as 1.
    pub fn new(members: usize) -> Self {
        let meeting = Meeting { arrived: 0, queue: Queue::new() };
        Self { members: members.max(1), meeting: Lock::new(meeting) }
    }

    /// Waits for the others. True for one of them, the last.
    pub fn wait(&self) -> bool {
        let mut node = Node::new();
        let mut last = false;
        let at = self as *const Self as u64;
        Here.sleep(Reason { what: "barrier", at, wanted: self.members as u64 }, &mut |waker| {
            let (this, node) = (self, &raw mut node);
            let complete = this.meeting.with(|meeting| {
                meeting.arrived += 1;
                if meeting.arrived == this.members {
                    meeting.arrived = 0;
                    return Some(meeting.queue.take());
                }
                // SAFETY: the node stays until we are woken. Once the lock is
                // released nothing of the sleeper's is touched.
                unsafe { meeting.queue.push(node, waker) };
                None
            });
            let Some(others) = complete else { return true };
            // The last one kept no waker, so it is still here.
            last = true;
            others.wake_all();
            false
        });
        last
    }

    /// How many wait now.
    pub fn arrived(&self) -> usize {
        self.meeting.with(|meeting| meeting.arrived)
    }

    /// How many meet.
    pub fn members(&self) -> usize {
        self.members
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Barrier({} members)", self.members)
    }
}
