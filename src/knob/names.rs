//! The names of all variables. A program that looks for misspelt ones carries these alone, and
//! not their meanings; a test compares them with the list.

use crate::config::{
    ALONE_FROM, ASK_FROM, BIND, BOTH_FROM, CALIBRATE, CHUNK, COLLECTIVES, DEVICE, DIRECT_FROM,
    DIRECT_MAX, DYNAMIC, EAGER_MAX, ENDPOINTS, FAULTS, HALVES_FROM, INLINE_MAX, INTERFACE,
    KERNEL_FROM, MAIN_STACK, MESSAGES, MPI_CHECKS, MPI_HEAP, NETWORK, NETWORK_SLEEP, PATH,
    PIECES_MAX, POOL, PROVIDER, PULL_FROM, RANKS, SILENCE, SPIN_ROUNDS, STREAM_FROM, SUSPENSION,
    ULT_STACK, VERBOSE, WORKERS,
};
use tsumugi_backends::boot::env as boot;
use tsumugi_pvas::config as space;
use tsumugi_runtime::variable::{REPORT, TRACE};

/// The variables that users set.
pub const OF_USERS: [&str; 55] = [
    RANKS,
    boot::BOOT,
    boot::MASTER,
    boot::SECRET,
    boot::PMIX_LIBRARY,
    boot::RSH,
    space::NODE,
    WORKERS,
    BIND,
    SPIN_ROUNDS,
    ULT_STACK,
    MAIN_STACK,
    space::HEAP,
    space::EXPOSED,
    POOL,
    space::STACKS,
    space::STARTER,
    space::POPULATE,
    space::HUGE_PAGES,
    space::PEERS,
    space::BASE,
    PATH,
    MESSAGES,
    COLLECTIVES,
    CALIBRATE,
    KERNEL_FROM,
    CHUNK,
    INLINE_MAX,
    EAGER_MAX,
    DIRECT_FROM,
    ALONE_FROM,
    DIRECT_MAX,
    HALVES_FROM,
    PULL_FROM,
    STREAM_FROM,
    BOTH_FROM,
    PIECES_MAX,
    ASK_FROM,
    NETWORK,
    DEVICE,
    PROVIDER,
    INTERFACE,
    ENDPOINTS,
    NETWORK_SLEEP,
    DYNAMIC,
    boot::TIMEOUT,
    SILENCE,
    space::GRACE,
    VERBOSE,
    REPORT,
    TRACE,
    SUSPENSION,
    MPI_HEAP,
    MPI_CHECKS,
    FAULTS,
];

/// The variables that launchers set for their ranks.
pub const OF_LAUNCHERS: [&str; 8] = [
    space::RANK,
    space::SIZE,
    space::JOB,
    boot::SERVER,
    space::FDS,
    space::SHAPE,
    space::DEATHS,
    space::LOSSES,
];
