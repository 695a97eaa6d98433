//! What ranks do with arrays whose pages move, whatever they are: threads of
//! this process, processes of this node, or of several.

pub mod alone;
pub mod copies;
pub mod histories;
pub mod lists;
pub mod uses;

use tsumugi as api;
use tsumugi::{Error, Runtime};

/// All of it, `scale` times as long as the shortest.
pub fn play(rt: &Runtime, scale: usize) -> Result<(), Error> {
    alone::come_and_go(rt, 6 * scale)?;
    alone::live(rt)?;
    copies::rounds(rt, 400 * scale, 0)?;
    lists::play(rt)?;
    uses::play(rt)
}
