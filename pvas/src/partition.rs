//! The layout of one partition.
//!
//! ```text
//!  0          control_bytes     exposed_offset  heap_offset    stacks_offset    bytes
//!  ├─ control ─┼─ starter ──╌╌╌──┼─ exposed ─────┼─ heap ───────┼─ stacks ────────┤
//!  header      memory that       arrays that     the rank's     one area, cut up
//!  regions     every rank        peers are       own buffers    by the scheduler
//!  parking lot reaches at once   told of         and tables     of ULTs
//!  doorbells   └── plain bytes, nothing else ────┘
//! ```

mod shape;
mod header;
mod report;
mod death_log;
mod control;
mod loss;

pub use control::{
    COLLECTIVE_KEY, COLLECTIVE_ROWS, COLLECTIVE_WORDS, CONTROL_BYTES, ControlBlock, GROUP_ROWS,
    REGIONS_MAX, RankState, STARTER_KEY,
};
pub(crate) use death_log::DeathLog;
pub use death_log::Gone;
pub use header::HeaderError;
pub(crate) use loss::BOOT_GONE;
pub(crate) use loss::{break_off, declare_lost_as};
pub use loss::{declare_gone, declare_lost};
pub use report::REPORT_BYTES_MAX;
pub use shape::{Limits, PartitionShape, ShapeError};
