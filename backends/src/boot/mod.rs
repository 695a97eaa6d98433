//! How ranks that some launcher started find each other.
//!
//! Each way is a [`Bootstrap`](tsumugi_core::boot::Bootstrap): one card of a
//! rank, one barrier, then anybody's card. [`choose()`] looks into the
//! environment and takes the first of these that is there:
//!
//! | module | who started the ranks |
//! |---|---|
//! | [`tcp`] | `tsumugi run --hosts`, or anybody who sets `TSUMUGI_RANK`, `TSUMUGI_SIZE` and `TSUMUGI_MASTER`: our own exchange |
//! | [`pmi`] | MPICH's hydra and its relatives, `srun --mpi=pmi2`: PMI-1 over `PMI_FD` |
//! | [`pmix`] | Open MPI's `mpirun`, `srun --mpi=pmix`: PMIx, a library that is loaded |
//! | [`tcp`] again | SLURM, torchrun, Flux and others whose variables [`env`](mod@env) knows: our own exchange |
//!
//! Else the program is alone. A program that is started inside another one
//! gives its own allgather: [`given`]. What ranks tell each other is a
//! [`card`]. A file uses only files above it in this list: `sys`, `card`,
//! `env`, `tcp`, `pmi`, `pmix`, `given`, `choose`.
//!
//! Nothing here is on a data path; every wait has a limit, every message a
//! longest length, and what comes from outside is checked before it is used.

mod sys;
pub mod card;
pub mod env;
pub mod tcp;
pub mod pmi;
pub mod pmix;
pub mod given;
pub mod choose;

pub use card::{Card, CardError};
pub use choose::{Boot, ChooseError, choose};
pub use env::{EnvError, Found, Way};
pub use given::Given;
pub use sys::random_u64;

/// A number that says nothing of `secret`, and is the same for the same: what
/// others may see in its place.
pub fn shown_for(secret: u64) -> u64 {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(secret.to_le_bytes());
    u64::from_le_bytes(*digest.first_chunk().expect("32 bytes"))
}
