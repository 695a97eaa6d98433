//! The memory that the global memory of one rank takes, and which parts of it grow
//! with the job: computed from the types themselves, at any number of ranks.
//!
//! The parts that grow take five bits for each rank of the job, and a 32nd part of a
//! bit: the holders of this rank's tables, the ranks that ask, the ranks that have
//! answered (in registered memory), the ranks that are to answer, and the ranks that
//! count this rank as a holder of their tables (private). All else is the same for
//! two ranks and for a million. The starter memory is not included; the program
//! chooses its size.

use crate::address::REGIONS;
use crate::cache::{CacheSlot, Fetch};
use crate::control::{ControlShape, MemoryPart};
use crate::machine::{GlobalMachine, InFlightOp, PendingOp, SentCommand};
use crate::order::{Edge, Issued};
use crate::table::NameRecord;

/// The parts of one rank's global memory.
#[derive(Clone, Copy, Debug)]
pub struct Ledger {
    registered: [MemoryPart; 9],
    private: [MemoryPart; 11],
}

impl Ledger {
    /// The ledger for tables of that shape.
    pub const fn new(shape: ControlShape) -> Self {
        let ControlShape {
            colors, copies, commands, own_jobs, conditions, flights, fetches, ..
        } = shape;
        let bitmap = shape.bitmap_words();
        let private = [
            part::<CacheSlot>("slots of the tables of others", copies as usize),
            part::<NameRecord>("own names", colors as usize * REGIONS),
            part::<u64>("ranks that must answer", bitmap),
            part::<u64>("ranks with a table here", bitmap),
            part::<Fetch>("tables on their way", fetches as usize),
            part::<Issued>("order of operations", own_jobs as usize),
            part::<Edge>("conditions of order", conditions as usize),
            part::<PendingOp>("operations, own and of other ranks", shape.jobs()),
            part::<SentCommand>("commands to others", commands as usize),
            part::<InFlightOp>("operations in flight", flights as usize),
            part::<GlobalMachine<'_>>("the machine", 1),
        ];
        Self { registered: shape.parts(), private }
    }

    /// Each part.
    pub fn parts(&self) -> impl Iterator<Item = MemoryPart> {
        self.registered.into_iter().chain(self.private)
    }

    /// The size of all parts together.
    pub fn bytes(&self) -> u64 {
        self.parts().map(|part| part.bytes).sum()
    }
}

const fn part<T>(name: &'static str, count: usize) -> MemoryPart {
    MemoryPart { name, bytes: (size_of::<T>() * count) as u64, is_registered: false }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::println;

    const COUNTS: [u32; 3] = [2, 1000, 1_000_000];

    fn ledger(ranks: u32) -> Ledger {
        // The number of tables of others is fixed here, so that only other parts grow.
        Ledger::new(ControlShape { copies: 1024, ..ControlShape::of(ranks, 2) })
    }

    #[test]
    fn the_tables_grow_by_five_bits_per_rank() {
        // Whole cache lines of bits: 512 ranks each.
        let ranks = 512 * 64 * 64;
        let (few, many) = (ledger(ranks), ledger(2 * ranks));
        for (few, many) in few.parts().zip(many.parts()) {
            let slope = (many.bytes - few.bytes) * 8;
            let bits = match few.name {
                "holders, drops, acks" => 3 * 64,
                "hints" => 2,
                "ranks that must answer" | "ranks with a table here" => 64,
                _ => 0,
            };
            assert_eq!(slope, bits * u64::from(ranks) / 64, "{}", few.name);
        }
    }

    /// Before any traffic and with 1,024 tables of other ranks, which is more.
    #[test]
    fn tables_for_a_million_ranks_fit_in_their_share() {
        for ranks in COUNTS {
            let ledger = Ledger::new(ControlShape::of(ranks, 2));
            println!("{ranks} ranks");
            for MemoryPart { name, bytes, is_registered } in ledger.parts() {
                println!("{bytes:>9}  {name}{}", if is_registered { ", registered" } else { "" });
            }
            println!("{:>9}  in all", ledger.bytes());
        }
        let bytes = ledger(1_000_000).bytes();
        assert!(bytes <= 5_200_000, "{bytes} bytes of the 8 MB that a rank may take");
    }

    #[test]
    fn tables_for_two_ranks_are_small() {
        let bytes = Ledger::new(ControlShape::of(2, 1)).bytes();
        assert!(bytes <= 210_000, "{bytes} bytes for two ranks");
    }
}
