//! Every number of this crate that a user may change, and every environment
//! variable that the crate reads or sets.
//!
//! Variables that the user sets:
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `TSUMUGI_PVAS_BASE` | where rank 0's partition starts | `0x200000000000` |
//! | `TSUMUGI_STARTER_BYTES` | memory that peers reach from the start | 64 KiB |
//! | `TSUMUGI_EXPOSED_BYTES` | arrays of a rank that peers reach (virtual) | 16 GiB |
//! | `TSUMUGI_HEAP_BYTES` | heap of a rank, for buffers and tables (virtual) | 15 GiB |
//! | `TSUMUGI_STACK_BYTES` | stacks of a rank (virtual) | 32 GiB |
//! | `TSUMUGI_POPULATE` | when pages come: `none` with their first touch, `own` when they are allocated, `peers` also those of peers | `none` |
//! | `TSUMUGI_HUGE_PAGES` | heaps and exposed memory: `none`, `advise`, `reserved` (from the pool) | `advise` |
//! | `TSUMUGI_PEERS` | what a rank may do to peers' partitions: `write`, `read-heap`, `read` | `write` |
//! | `TSUMUGI_GRACE_TIMEOUT` | time from a rank's death until the launcher asks the other ranks to end; 1200ms at least between hosts of `tsumugi run --hosts` | `300ms` |
//! | `TSUMUGI_NODE` | which node this is, where sockets cannot tell | boot and network namespace |
//!
//! A size is a number of bytes, or has a unit: `64K`, `8MiB` ([`tsumugi_core::quantity`]).
//! `auto` stands for the default.
//!
//! Variables that the launcher sets for its ranks: `TSUMUGI_RANK`, `TSUMUGI_SIZE`,
//! `TSUMUGI_PVAS_FDS` (`5,6,7`: one memory file per rank), `TSUMUGI_PVAS_SHAPE`
//! (`base,starter,exposed,heap,stacks` in hex) and `TSUMUGI_JOB` (the mark by which
//! the launcher or its guardian finds processes that are left at the end). Where a
//! site's launcher starts the ranks, [`meet`](crate::meet) hands the memory files
//! over, and `TSUMUGI_RANK`, `TSUMUGI_SIZE` and `TSUMUGI_JOB` are enough.

mod kind;
mod error;
mod number;
mod choices;
mod limits;
mod options;
mod policy;
mod variables;

pub use choices::Choices;
pub use error::ConfigError;
pub use kind::ValueKind;
pub use limits::{
    BASE_ALIGN, BASE_DEFAULT, BASE_MAX, BASE_TSAN, BASE_TSAN_BYTES, EXPOSED_BYTES,
    EXPOSED_BYTES_MIN, GRACE_DEFAULT, GRACE_MS_MAX, HEAP_BYTES, HEAP_BYTES_MIN, PROGRAM_BYTES,
    RANKS_MAX, STACK_BYTES, STACK_BYTES_MIN, STARTER_BYTES,
};
pub use number::parse_number;
pub use options::SpaceConfig;
pub use policy::{HugePages, Peers, Policy, Populate};
pub use variables::{
    BASE, DEATHS, EXPOSED, FDS, GRACE, HEAP, HUGE_PAGES, JOB, LOSSES, NODE, PEERS, POPULATE, RANK,
    SHAPE, SIZE, STACKS, STARTER,
};
