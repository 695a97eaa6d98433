//! rayon: `join`, which runs both sides as calls unless one is stolen.

use std::hint::black_box;
use std::time::Instant;
use tsumugi_bench_ult::fork::{self, Board};
use tsumugi_bench_ult::inbox::time;
use tsumugi_bench_ult::uts::{Node, T1_NODES};
use tsumugi_bench_ult::{Inbox, System};

pub const SYSTEM: System = System { name: "rayon", serve, elsewhere: &[] };

fn serve(inbox: Inbox) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(inbox.workers()).build();
    pool.expect("a pool starts").install(|| inbox.serve(|row| batch(row, inbox.tree())));
}

fn batch(row: &str, tree: Node) -> Option<f64> {
    match row {
        "create_join_inline" => time(5_000, || {
            for _ in 0..5_000 {
                black_box(rayon::join(|| (), || ()));
            }
        }),
        "fib" => time(fork::fib_children(fork::FIB), || {
            black_box(fib(black_box(fork::FIB)));
        }),
        "uts" => {
            let start = Instant::now();
            let nodes = below(&tree);
            assert_eq!(nodes, T1_NODES);
            Some(start.elapsed().as_nanos() as f64 / nodes as f64)
        }
        "nqueens" => time(fork::QUEENS_CHILDREN, || {
            assert_eq!(queens(Board::new(fork::QUEENS)), fork::QUEENS_WAYS);
        }),
        _ => None,
    }
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (left, right) = rayon::join(|| fib(n - 1), || fib(n - 2));
    left + right
}

fn below(node: &Node) -> u64 {
    1 + halves(node.children(), &|number| below(&node.child(number)))
}

fn queens(board: Board) -> u64 {
    if board.is_full() {
        return 1;
    }
    let next: Vec<_> = board.next().collect();
    halves(next.len() as u32, &|number| queens(next[number as usize]))
}

/// The sum over all numbers, a join for each.
fn halves(count: u32, one: &(impl Fn(u32) -> u64 + Sync)) -> u64 {
    fn range(from: u32, to: u32, one: &(impl Fn(u32) -> u64 + Sync)) -> u64 {
        match to - from {
            0 => 0,
            1 => one(from),
            more => {
                let middle = from + more / 2;
                let (left, right) =
                    rayon::join(|| range(from, middle, one), || range(middle, to, one));
                left + right
            }
        }
    }
    range(0, count, one)
}
