//! Programs on ranks that are threads, run once with each path that operations can take.

use tsumugi::{Config, Error, Path, Runtime};

/// Runs `main` on `size` ranks, once for each path.
pub fn run_ranks(size: u32, main: impl Fn(&Runtime) -> Result<(), Error> + Sync) {
    for path in [Path::Delegate, Path::Offload] {
        Config::default().path(path).run_ranks(size, &main).unwrap();
    }
    Config::default().run_ranks(size, &main).unwrap();
}
