//! How ranks find each other that any launcher has started.
//!
//! Each way is a [`Bootstrap`](tsumugi_core::boot::Bootstrap): a rank publishes one
//! card, all ranks pass one barrier, and then a rank can get the card of any other.
//! [`choose()`] searches the environment and takes the first of these that is
//! there:
//!
//! | module | the ranks were started by |
//! |---|---|
//! | [`tcp`] | `tsumugi run --hosts`, or any script that sets `TSUMUGI_RANK`, `TSUMUGI_SIZE` and `TSUMUGI_MASTER`: tsumugi's own exchange |
//! | [`pmi`] | MPICH's hydra and its relatives, `srun --mpi=pmi2`: PMI-1 over `PMI_FD` |
//! | [`pmix`] | Open MPI's `mpirun`, `srun --mpi=pmix`: PMIx, a library that is loaded |
//! | [`tcp`] again | SLURM, torchrun, Flux and others, if [`env`](mod@env) knows their variables: tsumugi's own exchange |
//!
//! Otherwise the program is alone. A program that is started inside another one
//! passes its own allgather: [`given`]. The data that ranks exchange is a [`card`].
//! A file uses only files above it in this list: `sys`, `card`, `env`, `tcp`,
//! `pmi`, `pmix`, `given`, `choose`.
//!
//! Nothing here is on a data path; every wait has a limit, every message has a
//! maximal length, and all data from outside is checked before it is used.

mod sys;
pub mod card;
pub mod env;
pub mod tcp;
pub mod pmi;
pub mod pmix;
pub mod given;
pub mod choose;

pub use card::{CardError, RankCard};
pub use choose::{Boot, ChooseError, choose};
pub use env::{BootEnv, BootMethod, EnvError};
pub use given::Given;
pub use sys::random_u64;

/// A number that other programs may see in place of `secret`: it is equal for equal
/// secrets and reveals nothing about them.
pub fn shown_for(secret: u64) -> u64 {
    let digest = hmac_sha256::Hash::hash(&secret.to_le_bytes());
    u64::from_le_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
}
