//! Programs of ranks that are threads, with operations going every way that
//! there is.

use tsumugi::{Config, Error, Path, Runtime};

/// Runs `main` on so many ranks, once for each way.
pub fn run_ranks(size: u32, main: impl Fn(&Runtime) -> Result<(), Error> + Sync) {
    for path in [Path::Delegate, Path::Offload] {
        Config::default().path(path).run_ranks(size, &main).unwrap();
    }
    Config::default().run_ranks(size, &main).unwrap();
}
