//! Unbalanced tree search: counts the nodes of a tree by tasks that other ranks
//! steal. The size of a subtree is unknown before it is walked.

use crate::task::{ARGS, Args, Counts, Tasks};
use crate::{Words, main};
use std::time::{Duration, Instant};
use tsumugi::{Error, Rank, Runtime};
use tsumugi_bench_ult::uts::{Node, T1_DEPTH, T1_NODES, count};

/// The tree, and the size of a task.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Levels below the root; 10 is the tree T1.
    pub depth: u32,
    /// One task walks a subtree of at most so many levels.
    pub grain: u32,
}

/// The measurements of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Nodes of the tree.
    pub nodes: u64,
    /// The time of the count.
    pub time: Duration,
    /// The counts of tasks of all ranks.
    pub counts: Counts,
}

/// `uts [DEPTH [GRAIN]]`
pub fn command() -> Result<(), Error> {
    main(
        |words: &mut Words| {
            let depth = words.number("DEPTH", 0..=DEPTH_MAX, T1_DEPTH)?;
            Ok(Plan { depth, grain: words.number("GRAIN", 0..=DEPTH_MAX, GRAIN)? })
        },
        |rt, plan| {
            let Outcome { nodes, time, counts } = play(rt, plan)?;
            if rt.rank() == Rank(0) {
                let (ns, ms) = (time.as_nanos() as f64 / nodes as f64, time.as_millis());
                let Counts { forked, stolen, .. } = counts;
                println!(
                    "{nodes} nodes in {ms} ms, {ns:.0} ns a node; {forked} tasks, {stolen} stolen"
                );
            }
            rt.barrier()
        },
    )
}

/// Counts the tree's nodes. Collective.
///
/// # Errors
///
/// An [`Error`] if a rank dies, if the tasks cannot be made, if a task fails, or if the
/// tree T1 does not have its published size.
pub fn play(rt: &Runtime, plan: Plan) -> Result<Outcome, Error> {
    let tasks = Tasks::new(rt, plan.grain, &[node])?;
    let start = Instant::now();
    let nodes = tasks.run(|tasks| node(tasks, args(Node::root(plan.depth))))?;
    let time = start.elapsed();
    if plan.depth == T1_DEPTH && nodes != T1_NODES {
        return Err(Error::program(format!("{nodes} nodes were found, and T1 has {T1_NODES}")));
    }
    Ok(Outcome { nodes, time, counts: tasks.all_counts()? })
}

/// Counts a node and all nodes below it.
fn node(tasks: &Tasks<u32>, args: Args) -> Result<u64, Error> {
    let node = Node::from_words([args[0], args[1], args[2], args[3]]);
    if node.below() <= *tasks.context() {
        return Ok(count(&node));
    }
    let children = (0..node.children()).map(|number| tasks.fork(0, self::args(node.child(number))));
    let children = children.collect::<Result<Vec<_>, _>>()?;
    // The newest child first, because it is the last that a thief would take.
    let below = children.into_iter().rev().map(|child| tasks.join(child));
    Ok(1 + below.sum::<Result<u64, Error>>()?)
}

fn args(node: Node) -> Args {
    let mut args = [0; ARGS];
    args[..4].copy_from_slice(&node.to_words());
    args
}

/// A tree of the next depth would take too long.
const DEPTH_MAX: u32 = 14;
const GRAIN: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_as_many_nodes_as_one_rank_alone_counts() {
        for (ranks, grain) in [(1, 0), (3, 0), (2, 2), (2, 9)] {
            let found = tsumugi::run_ranks(ranks, |rt| play(rt, Plan { depth: 5, grain }));
            assert!(found.unwrap().iter().all(|found| found.nodes == 3987), "{ranks} {grain}");
        }
    }
}
