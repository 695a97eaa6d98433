//! Collectives of groups, as schedules that are computed round by round.
//!
//! A [`CollPlan`] has stages; a stage is an algorithm of one member, on a part of the
//! group. A [`Collective`] runs a plan: it asks for one [`CollStep`] after the other,
//! and a driver carries them out, with messages, in a simulator, or in a test. No rank
//! has a table of the rounds, so a plan has one size for any number of ranks.
//!
//! | collective | algorithms |
//! |---|---|
//! | barrier | dissemination |
//! | broadcast | binomial tree; chain in pieces; spread and ring |
//! | reduce | binomial tree |
//! | allreduce | recursive doubling; recursive halving and doubling; ring |
//! | scan | Hillis and Steele |
//! | gather, scatter | binomial tree; flat; by nodes |
//! | allgather | recursive doubling; Bruck; ring |
//! | alltoall | Bruck; pairwise; by nodes |
//! | reduce-scatter | recursive halving; pairwise |
//!
//! Short values among ranks that share memory take none of these: each member publishes its
//! value, and reads those of others ([`row`](crate::coll::row)).
//!
//! Messages of one member to another are received in the order in which they were
//! sent; that is all that the schedules need of a network. A member that has taken part
//! in a collective has received all that was sent to it there.
//!
//! Progress: each call of a [`Collective`] is wait-free; the collective waits for all
//! members whose values its result has.

mod step;
mod blocks;
mod peers;
mod barrier;
mod broadcast;
mod reduction;
mod prefix;
mod rooted;
mod allgather;
mod alltoall;
mod interleave;
mod published;
mod algorithm;
mod plan;
mod node_stages;
mod row_stages;
mod collective;
mod threshold;
mod forced;
mod choice;

pub use blocks::{Block, Blocks, CollTables};
pub use choice::{CollChoice, RootView};
pub use collective::Collective;
pub use forced::{CollForced, CollKind, UnknownWord};
pub use peers::{NodeView, Subset};
pub use plan::{
    AllgatherDesign, AllreduceDesign, BroadcastDesign, CollMember, CollPlan, Elements,
    SCRATCH_ALIGN,
};
pub use published::Published;
pub use step::{BufferSpan, CollBuffer, CollStep, CombineOrder};
pub use threshold::CollThresholds;
