//! The papers.

use clap::ValueEnum;

/// A paper, by the name that `docs/papers.md` has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// A communication layer for many threads
    #[value(name = "S0")]
    S0,
    /// Eager messages with one copy
    #[value(name = "S1")]
    S1,
    /// Global memory, and copies between two other ranks
    #[value(name = "S2")]
    S2,
    /// Locks of windows
    #[value(name = "S3")]
    S3,
    /// Arrays whose pages move
    #[value(name = "S4")]
    S4,
}

impl Paper {
    pub const ALL: [Self; 5] = [Self::S0, Self::S1, Self::S2, Self::S3, Self::S4];

    pub fn name(self) -> &'static str {
        ["S0", "S1", "S2", "S3", "S4"][self as usize]
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::S0 => "Multithreaded low-level communication layer (Endo, Taura 2016)",
            Self::S1 => "Eager messages with one copy, by PVAS (Shimada et al. 2015)",
            Self::S2 => "The basic layer of ACP on InfiniBand (ACE project 2015)",
            Self::S3 => "RMA locks on FX100 (Hatanaka, Hori, Ishikawa)",
            Self::S4 => "A PGAS with relocation and a metadata cache (Endo, Taura)",
        }
    }
}
