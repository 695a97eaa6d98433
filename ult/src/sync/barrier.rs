//! A barrier within a process, for repeated use.

use super::queue::{self, WaitNode, WaitQueue, WaitSite};
use crate::limit::Limit;
use crate::lock::Lock;
use core::fmt;
use tsumugi_core::wait::{Interrupted, Reason};

/// A meeting point for a fixed number of ULTs and OS threads, reusable. The last
/// member to arrive makes all others ready, in the order in which they came.
///
/// ```
/// use tsumugi_ult::sync::Barrier;
///
/// let barrier = Barrier::new(2);
/// let leaders = std::thread::scope(|scope| {
///     let both = [scope.spawn(|| barrier.wait()), scope.spawn(|| barrier.wait())];
///     both.into_iter().map(|one| one.join().unwrap() as u32).sum::<u32>()
/// });
/// assert_eq!(leaders, 1);
/// ```
pub struct Barrier {
    members: usize,
    meeting: Lock<Meeting>,
}

struct Meeting {
    arrived: usize,
    queue: WaitQueue,
}

impl Barrier {
    /// Makes a barrier for `members`; 0 counts as 1.
    pub fn new(members: usize) -> Self {
        let meeting = Meeting { arrived: 0, queue: WaitQueue::new() };
        Self { members: members.max(1), meeting: Lock::new(meeting) }
    }

    /// Waits until all members have arrived. Returns true in one of them, the last.
    pub fn wait(&self) -> bool {
        self.wait_within(Limit::NONE).unwrap_or(false)
    }

    /// Waits until all members have arrived, within a limit. A member that gives
    /// up has not arrived.
    ///
    /// # Errors
    ///
    /// [`Interrupted::TimedOut`] if the limit's point in time came before the last member
    /// arrived, [`Interrupted::Cancelled`] if a cancellation of the ULT did.
    pub fn wait_within(&self, limit: impl Into<Limit>) -> Result<bool, Interrupted> {
        let mut others = None;
        let at = self as *const Self as u64;
        queue::wait(
            self,
            &self.meeting,
            Reason { what: "barrier", at, wanted: self.members as u64 },
            limit.into(),
            |node| node,
            |meeting| &mut meeting.queue,
            |meeting| {
                meeting.arrived += 1;
                if meeting.arrived < self.members {
                    return true;
                }
                meeting.arrived = 0;
                others = Some(meeting.queue.take());
                false
            },
        )?;
        Ok(others.map(|others| others.wake_all()).is_some())
    }

    /// Returns how many members wait now.
    pub fn arrived(&self) -> usize {
        self.meeting.with(|meeting| meeting.arrived)
    }

    /// Returns how many members there are.
    pub fn members(&self) -> usize {
        self.members
    }
}

impl WaitSite for Barrier {
    unsafe fn take_out(&self, node: *mut WaitNode) -> bool {
        // SAFETY: by the caller's contract the node is there, and was pushed to
        // this queue if to any.
        unsafe { queue::take_out(&self.meeting, node, |m| &mut m.queue, |m| m.arrived -= 1) }
    }

    /// There is nothing to pass on: a member that is cut off has not arrived, or
    /// the others have met.
    unsafe fn pass_on(&self, _: *mut WaitNode, _: bool) {}
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Barrier({} members)", self.members)
    }
}
