//! Programs on arrays whose pages move. The ranks may be threads of one process, or
//! processes on one node or several.

pub mod alone;
pub mod copies;
pub mod histories;
pub mod lists;
pub mod uses;

use tsumugi as api;
use tsumugi::{Error, Runtime};

/// Runs all programs, `scale` times as long as the shortest run. Collective.
pub fn play(rt: &Runtime, scale: usize) -> Result<(), Error> {
    alone::come_and_go(rt, 6 * scale)?;
    alone::live(rt)?;
    copies::rounds(rt, 400 * scale, 0)?;
    lists::play(rt)?;
    uses::play(rt)
}
