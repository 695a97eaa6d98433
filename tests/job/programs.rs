//! Small runs of whole programs on arrays whose pages move; each program checks its
//! answer.

use crate::roles::say;
use tsumugi::{Error, Rank, Runtime};
use tsumugi_bench_program::{gups, mesh, queens, search, sort, uts};

/// Runs all programs; `is_short`: on several nodes, where each access goes to another
/// node. Collective.
pub fn play(rt: &Runtime, is_short: bool) -> Result<(), Error> {
    let is_first = rt.rank() == Rank(0);
    let (depth, nodes) = if is_short { (3, 254) } else { (5, 3_987) };
    let tree = uts::play(rt, uts::Plan { depth, grain: 0 })?;
    assert_eq!(tree.nodes, nodes);
    let grain = if is_short { 6 } else { 4 };
    let board = queens::play(rt, queens::Plan { queens: 8, grain })?;
    assert_eq!(board.ways, 92);
    let blocks = if is_short { 2 } else { 4 };
    let shape = mesh::Shape { blocks, cells: 4, level_max: 2 };
    for way in [mesh::Way::Stay, mesh::Way::Work, mesh::Way::Own] {
        let plan = mesh::Plan { shape, steps: blocks as u64 * 2, period: blocks as u64 };
        let outcome = mesh::play(rt, plan, way)?;
        assert!(way == mesh::Way::Own || outcome.moved == 0, "{outcome}");
    }
    let side = if is_short { 5 } else { 20 };
    let rows: Vec<Vec<u32>> = (0..side * side).map(|vertex| neighbours(side, vertex)).collect();
    let [before, _, after] = search::play(rt, is_first.then_some(&rows[..]), 0, 4)?;
    assert_eq!(before.contains(" 0.000 of"), rt.size() == 1, "{before}");
    assert!(after.contains(" 0.000 of"), "{after}");
    gups::play(rt, gups::Plan { log_words: if is_short { 5 } else { 8 }, ults: 4 })?;
    sort::play(rt, sort::Plan { keys: 500 })?;
    if is_first {
        say("all programs have found what they should");
    }
    rt.barrier()
}

/// Tasks and pages that move between the ranks until a rank dies.
pub fn forever(rt: &Runtime) -> Result<(), Error> {
    say("working");
    let shape = mesh::Shape { blocks: 4, cells: 4, level_max: 2 };
    loop {
        uts::play(rt, uts::Plan { depth: 7, grain: 0 })?;
        mesh::play(rt, mesh::Plan { shape, steps: 8, period: 2 }, mesh::Way::Own)?;
        gups::play(rt, gups::Plan { log_words: 10, ults: 4 })?;
        sort::play(rt, sort::Plan { keys: 1000 })?;
    }
}

/// The neighbours of a vertex of a grid.
fn neighbours(side: u32, vertex: u32) -> Vec<u32> {
    let (x, y) = (vertex % side, vertex / side);
    let beside = [(x.wrapping_sub(1), y), (x + 1, y), (x, y.wrapping_sub(1)), (x, y + 1)];
    let inside = beside.into_iter().filter(|(x, y)| *x < side && *y < side);
    inside.map(|(x, y)| y * side + x).collect()
}
