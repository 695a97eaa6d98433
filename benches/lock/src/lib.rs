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
