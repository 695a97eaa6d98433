//! What lies where in one partition.
//!
//! ```text
//!  0          control_bytes     exposed_offset  heap_offset    stacks_offset    bytes
//!  ├─ Control ─┼─ starter ──╌╌╌──┼─ exposed ─────┼─ heap ───────┼─ stacks ────────┤
//!  header      memory that       arrays that     the rank's     one area, cut up
//!  regions     every rank        peers are       own buffers    by whoever runs
//!  lot, bells  reaches at once   told of         and tables     ULTs
//!              └── plain bytes, nothing else ────┘
//! ```

mod control;
mod shape;

pub(crate) use control::BOOT_GONE;
pub use control::{
    COLLECTIVE_KEY, COLLECTIVE_WORDS, CONTROL_BYTES, Control, HeaderError, REGIONS_MAX,
    REPORT_BYTES_MAX, STARTER_KEY, State, declare_gone, declare_lost,
};
pub use shape::{Limits, Shape, ShapeError};
