//! Level-synchronous breadth-first search on a grid with its vertices distributed
//! over all ranks: one ULT per vertex of the frontier marks the vertex's
//! neighbours, on any rank. `tsumugi demo` is a larger version.
//!
//! `cargo run --release -- run -n 2 target/release/examples/bfs`

use std::sync::Arc;
use tsumugi::{Error, Rank, Runtime, Shared};

const SIDE: u64 = 48;
const FAR: u64 = u64::MAX;

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let each = (SIDE * SIDE).div_ceil(u64::from(rt.size())) as usize;
        let levels = Arc::new(rt.share::<u64>(each)?);
        for index in 0..each {
            rt.put(levels.own().at(index), FAR)?;
        }
        rt.barrier()?;

        if rt.rank() == Rank(0) {
            mark(rt, &levels, 0, 0)?;
        }
        let mut level = 0;
        loop {
            rt.barrier()?;
            let mut own = vec![0; each];
            rt.get_slice(levels.own().at(0), &mut own)?;
            let frontier = (0..each as u64).filter(|&index| own[index as usize] == level);
            let ults: Vec<_> = frontier
                .map(|index| {
                    let levels = levels.clone();
                    rt.spawn(move |rt| {
                        let vertex = index * u64::from(rt.size()) + u64::from(rt.rank().0);
                        neighbours(vertex).try_for_each(|next| mark(rt, &levels, next, level + 1))
                    })
                })
                .collect();
            let busy = rt.sum(ults.len())?;
            for ult in ults {
                ult.join().expect("no search panics")?;
            }
            if busy == 0 {
                break;
            }
            level += 1;
        }

        let mut own = vec![0; each];
        rt.get_slice(levels.own().at(0), &mut own)?;
        let found = rt.sum(own.iter().filter(|&&level| level != FAR).count() as u64)?;
        if rt.rank() == Rank(0) {
            println!("{found} of {} vertices, the last after {} steps", SIDE * SIDE, level - 1);
        }
        Ok(())
    })
}

/// Sets the vertex's level if the vertex was not visited yet.
fn mark(rt: &Runtime, levels: &Shared<u64>, vertex: u64, level: u64) -> Result<(), Error> {
    let (rank, index) = (vertex % u64::from(rt.size()), vertex / u64::from(rt.size()));
    rt.compare_swap(levels.at(Rank(rank as u32), index as usize), FAR, level)?;
    Ok(())
}

fn neighbours(vertex: u64) -> impl Iterator<Item = u64> {
    let (x, y) = ((vertex % SIDE) as i64, (vertex / SIDE) as i64);
    [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
        .into_iter()
        .filter(|&(x, y)| (0..SIDE as i64).contains(&x) && (0..SIDE as i64).contains(&y))
        .map(|(x, y)| y as u64 * SIDE + x as u64)
}
