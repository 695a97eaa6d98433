//! Unbalanced tree search: the nodes of a tree whose subtrees nobody knows the
//! size of before walking them, counted by tasks that others steal.

use crate::task::{ARGS, Args, Counts, Tasks};
use crate::{Words, main};
use std::time::{Duration, Instant};
use tsumugi::{Error, Rank, Runtime};
use tsumugi_bench_ult::uts::{Node, T1_DEPTH, T1_NODES, count};

/// Which tree, and what a task is.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Levels below the root; 10 is the tree T1.
    pub depth: u32,
    /// Subtrees of so few levels are walked by one task.
    pub grain: u32,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Nodes of the tree.
    pub nodes: u64,
    /// How long it took.
    pub time: Duration,
    /// What the tasks of all ranks were.
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

/// Counts the tree. Collective.
///
/// # Errors
///
/// Those of [`Tasks::run`]; if T1 has not its published size.
pub fn play(rt: &Runtime, plan: Plan) -> Result<Outcome, Error> {
    let tasks = Tasks::new(rt, plan.grain, &[node])?;
    let start = Instant::now();
    let nodes = tasks.run(|tasks| node(tasks, args(Node::root(plan.depth))))?;
    let time = start.elapsed();
    if plan.depth == T1_DEPTH && nodes != T1_NODES {
        return Err(Error::program(format!("{nodes} nodes, and T1 has {T1_NODES}")));
    }
    Ok(Outcome { nodes, time, counts: tasks.all_counts()? })
}

/// A node and all below it.
fn node(tasks: &Tasks<u32>, args: Args) -> Result<u64, Error> {
    let node = Node::from_words([args[0], args[1], args[2], args[3]]);
    if node.below() <= *tasks.context() {
        return Ok(count(&node));
    }
    let children = (0..node.children()).map(|number| tasks.fork(0, self::args(node.child(number))));
    let children = children.collect::<Result<Vec<_>, _>>()?;
    // The newest first: it is still here, if any is.
    let below = children.into_iter().rev().map(|child| tasks.join(child));
    Ok(1 + below.sum::<Result<u64, Error>>()?)
}

fn args(node: Node) -> Args {
    let mut args = [0; ARGS];
    args[..4].copy_from_slice(&node.to_words());
    args
}

/// Nobody waits for the tree of the next depth.
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
