//! The cores of a rank, and how it was started.

use crate::affinity;
use crate::config::{Bind, Chosen};
use tsumugi_backends::boot::BootMethod;
use tsumugi_core::mem::LocalRank;
use tsumugi_pvas::Member;
use tsumugi_pvas::numa;

/// Chooses the cores of a rank; its pages are to lie beside them.
pub(super) fn place_of(
    member: &Member,
    method: BootMethod,
    is_shared: bool,
    chosen: &Chosen,
) -> (StartPlace, Unpin) {
    let everywhere = affinity::allowed().unwrap_or_default();
    let cores = if is_shared { cores_of(member.local(), chosen, &everywhere) } else { Vec::new() };
    let measured = if is_shared { cores_measured(member, chosen, &everywhere) } else { Vec::new() };
    if numa::has_several()
        && let Some(node) = numa::node_of(&cores)
    {
        // Without permission each page lies on the node of its first touch.
        let _ = member.space().prefer_node(member.local(), node);
    }
    (StartPlace { method, cores, measured }, Unpin(is_shared.then_some(everywhere)))
}

/// The cores of the calling thread before it became a worker, which may be pinned.
pub(super) struct Unpin(Option<Vec<usize>>);

impl Unpin {
    pub(super) fn end(self) {
        if let Some(everywhere) = self.0 {
            let _ = affinity::keep_to(&everywhere);
        }
    }
}

/// How a rank was started, and on which cores.
pub(crate) struct StartPlace {
    pub(super) method: BootMethod,
    /// The cores of its workers; empty: the system chooses.
    pub(super) cores: Vec<usize>,
    /// The cores between which the node measures distances.
    pub(super) measured: Vec<usize>,
}

impl StartPlace {
    /// The place of a rank that is a thread of some process.
    pub(crate) const ANYWHERE: Self =
        Self { method: BootMethod::Alone, cores: Vec::new(), measured: Vec::new() };
}

/// The cores of this rank's workers, if they are to be pinned: the ranks of the node
/// take cores in their order, again from the first one when there are too few.
fn cores_of(local: LocalRank, chosen: &Chosen, allowed: &[usize]) -> Vec<usize> {
    let first = (local.0 as usize).saturating_mul(chosen.workers);
    let all = allowed.iter().copied().cycle();
    match chosen.bind {
        Bind::Cores => all.skip(first % allowed.len().max(1)).take(chosen.workers).collect(),
        Bind::None => Vec::new(),
    }
}

/// The first core of each rank, if the node is to measure the distances between
/// cores.
fn cores_measured(member: &Member, chosen: &Chosen, allowed: &[usize]) -> Vec<usize> {
    let firsts = allowed.iter().step_by(chosen.workers).take(member.space().size() as usize);
    if chosen.calibrate { firsts.copied().collect() } else { Vec::new() }
}
