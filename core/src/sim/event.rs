//! What happens at a node.

use crate::backend::Completion;
use crate::mem::{Rank, RemoteAddr};

/// An event at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimEvent {
    /// The node has just started. Only actors receive it.
    Start,
    /// An operation that the node itself posted has ended.
    Completed(Completion),
    /// A notifying operation has changed this word of the node's memory.
    Bell(RemoteAddr),
    /// A time that the node has set has come; the token is the node's own.
    Timer(u64),
    /// This peer has died, or the node has given it up.
    PeerLost(Rank),
    /// An endpoint that the node had armed has completions.
    Interrupt,
    /// Something happened that no node could observe.
    Nothing,
}
