//! The job of which this process is a part, and the bootstrap by which it has
//! joined the job.
//!
//! ```text
//!  tsumugi run ──── descriptors in the environment ────────────────► Member
//!  mpiexec, srun ── heads of cards, one barrier ──► Nodes ── meet ─► Member, Detector
//!                                                     └── several: Network, and
//!                                                         the source of cards
//!  no launcher ──── alone ─────────────────────────────────────────► Member
//! ```

mod lazy_bootstrap;
mod exchange;
mod packed_cards;
mod ties;
mod card_exchange;
mod joined;

pub use joined::{JobConfig, JoinedJob, is_rank};
pub(crate) use ties::Ties;

#[cfg(test)]
mod tests;
