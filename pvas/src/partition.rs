//! What lies where in one partition.
//!
//! ```text
//!  0          control_bytes      heap_offset         stacks_offset     bytes
//!  ├─ Control ─┼─ starter ──╌╌╌──┼─ heap ────────────┼─ stacks ─────────┤
//!  header      memory that       registered memory   one area, cut up
//!  regions     every rank        and tables          by whoever runs ULTs
//!  lot, bells  reaches at once
//! ```

mod control;
mod shape;

pub(crate) use control::BOOT_GONE;
pub use control::{
    COLLECTIVE_KEY, COLLECTIVE_WORDS, CONTROL_BYTES, Control, HeaderError, REGIONS_MAX,
    REPORT_BYTES_MAX, STARTER_KEY, State, declare_gone, declare_lost,
};
pub use shape::{Limits, Shape, ShapeError};
