//! What locks cost on machines that are not here: the locks' own code, on
//! ranks of a simulated machine whose constants are given.

mod machine;

pub use machine::{Cost, Phase, World};
pub use tsumugi_core::sim::Machine;
pub use tsumugi_gas::lock::Design;

/// What the paper's machine is made of, where each process goes through one
/// engine, or through four: then what they share is the bus, and they are 40 %
/// better, not four times.
pub fn paper(engines: u32) -> Machine {
    let one = Machine { node_ranks: 1, ..Machine::FX100 };
    match engines {
        1 => one,
        _ => Machine { engines, bus_ns: one.engine_ns * 6 / 10, ..one },
    }
}

/// What the paper measured: processes, and microseconds for each to lock and
/// unlock all, one lock for the window.
pub const MEASURED: [(u32, f64); 5] =
    [(4, 2.3), (128, 69.0), (256, 130.0), (1_024, 520.0), (4_096, 2_200.0)];

/// The machine of the figure by ranks: 128 nodes of so many processes each,
/// whose routers merge. All go through the lock's one engine.
pub fn paper_by_rank(per_node: u32) -> Machine {
    Machine { torus: [8, 4, 4], nodes_at: per_node, hop_ns: 100, merges: true, ..paper(1) }
}

/// What the paper measured there: processes of a node, and seconds of the
/// slowest for a thousand times.
pub const BY_RANK: [(u32, f64); 3] = [(32, 2.2), (8, 0.52), (1, 0.069)];
