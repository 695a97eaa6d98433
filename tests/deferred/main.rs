//! Operations as values, on ranks that are threads of one node, with each path of
//! operations.

use tsumugi as api;
use tsumugi::{Config, Path};

#[allow(clippy::duplicate_mod)]
mod cases;
mod ending;

#[test]
fn every_operation_works_in_every_way() {
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        for workers in [1, 2] {
            let config = Config::default().path(path).workers(workers);
            let ran = config.run_ranks(3, cases::play);
            ran.map(drop::<Vec<()>>).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        }
    }
}
