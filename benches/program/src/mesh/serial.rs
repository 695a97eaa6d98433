//! The same mesh, computed by one thread in ordinary memory.

use super::Plan;
use super::block::{Block, Side, seen};

/// All blocks at the end of the run.
pub fn alone(plan: &Plan) -> Vec<Block> {
    let shape = &plan.shape;
    let mut blocks = vec![Block::cold(shape); shape.count()];
    for time in 0..plan.steps {
        if time % plan.period == 0 {
            for (number, block) in blocks.iter_mut().enumerate() {
                *block = block.adapted(shape, number, time);
            }
        }
        let step = |(number, block): (usize, &Block)| {
            let cells = block.side(shape);
            let around = Side::ALL.map(|side| match shape.neighbour(number, side) {
                Some(other) => seen(&blocks[other].edge(shape, side.opposite()), cells),
                None => vec![0.0; cells],
            });
            block.step(shape, number, &around, time)
        };
        blocks = blocks.iter().enumerate().map(step).collect();
    }
    blocks
}
