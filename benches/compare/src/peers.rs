//! Those whom tsumugi is compared with, each at home on its own threads.

mod cmpth;
mod may;
mod rayon;
mod tokio;

use tsumugi_bench_ult::uts::Node;
use tsumugi_bench_ult::{Row, Server};

/// All peers that may have this row.
pub fn all(row: &Row, tree: Node) -> Vec<Server> {
    let workers = row.workers;
    let mut peers = Vec::new();
    if has(rayon::ROWS, row) {
        peers.push(rayon::server(workers, tree));
    }
    if has(cmpth::ROWS, row) {
        peers.push(cmpth::server(workers, tree));
    }
    if has(tokio::ROWS, row) {
        peers.push(tokio::server(workers));
    }
    // Its number of workers is one for the whole process.
    if has(may::ROWS, row) && workers == 1 {
        peers.push(may::server());
    }
    peers
}

fn has(rows: &[&str], row: &Row) -> bool {
    rows.contains(&row.name)
}
