//! Ranks that a test of the facade makes, on a simulated network.

use crate::config::Chosen;
use crate::error::Error;
use crate::handle::RankHandle;
use crate::node::RankNode;
use crate::start::{StartPlace, make};
use std::sync::Arc;
use tsumugi_backends::boot::BootMethod;
use tsumugi_pvas::Member;
use tsumugi_ult::Spawner;

pub use crate::net::seen::{Cards, FaultClock, Faults, NetDevice, Network};

/// Makes the parts of a rank, after all ranks of its node have done so, too.
///
/// # Errors
///
/// Those of the start of a rank.
pub fn make_node(
    member: Member,
    chosen: &Chosen,
    network: Network,
) -> Result<Arc<RankNode>, Error> {
    make(member, chosen, &StartPlace::ANYWHERE, Some(network), (None, None))
}

/// The handle of the rank that has `node`, on the scheduler of `spawner`.
pub fn handle_of(node: Arc<RankNode>, spawner: Spawner) -> RankHandle {
    RankHandle::new(node, BootMethod::Alone, spawner, 1)
}
