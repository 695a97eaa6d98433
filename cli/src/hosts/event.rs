//! The events for which the launcher waits.

use tsumugi::boot::tcp::ProcessEnd;

/// An event of a job.
pub enum LaunchEvent {
    /// An agent has ended with this code.
    Agent { index: usize, code: i32 },
    /// Ranks have ended.
    Ends(Vec<ProcessEnd>),
}
