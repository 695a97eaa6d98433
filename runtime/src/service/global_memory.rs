//! The driver of a rank's part in the global memory: it runs the state machine of
//! [`tsumugi_gas`] over the partitions of its node, and by a
//! [`Transport`](crate::net::Transport) between nodes.
//!
//! ```text
//!  begin, bring ─► lock: machine ─► operations: on this node, carried out by
//!                     ▲  │          the driving thread; on others, begun, and
//!                     │  ▼          their ends ring the rank
//!        workers: pump ─► drive ─► callers woken · tables here · memory freed
//! ```
//!
//! | file | content |
//! |---|---|
//! | `control` | the addresses of the other ranks' control regions |
//! | `lookaside` | where the regions that a worker has used last lie |
//! | `driver` | the machine under its lock, and the work that it issues |
//! | `open` | operations that were begun and have not been waited for |
//! | `begin` | how callers begin operations and wait for them |
//! | `post` | operations that are sent to other nodes, or carried out on this node |
//! | `tables` | the memory of the machine's tables |
//!
//! There is no driver until the ranks open the global memory together
//! (`Runtime::global` of the facade): a job that does not open it has
//! neither the tables nor the cost of polling.
//!
//! The lock around the machine is never held while an operation is carried out or a
//! waiter is woken. A rank that changes a notified word of a control region then
//! sets the word behind it, its *bell* (a doorbell), so a worker that is about to
//! sleep checks only one word. The death of a rank counts as a bell, too, because
//! the dead rank may have changed the word without setting the bell.

mod begin;
mod control;
mod driver;
mod lookaside;
mod open;
mod post;
mod tables;

pub use driver::{GlobalDriver, RetiredMemory, SEAT_BYTES, footprint};
pub use lookaside::{LOOKASIDE_BYTES, Lookaside, NearMemory, seat_of_guest, seat_of_worker};
pub use open::TableSearch;
