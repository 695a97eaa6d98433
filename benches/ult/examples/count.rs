//! Runs a row's work and nothing else, so many times that its instructions can be
//! counted: `count ROW BATCHES`, on one worker. `ci/instructions.sh` runs it.

use tsumugi_bench_ult::ults;
use tsumugi_bench_ult::uts::Node;
use tsumugi_ult::{Config, Scheduler, StackArea};

fn main() {
    let mut args = std::env::args().skip(1);
    let (row, batches) = (args.next(), args.next().and_then(|batches| batches.parse().ok()));
    let (Some(row), Some(batches)) = (row, batches) else {
        eprintln!("usage: count ROW BATCHES");
        std::process::exit(2);
    };
    let stacks = StackArea::map(StackArea::bytes_for(2000, 64 << 10, 8 << 20));
    let mut config = Config::new(stacks.expect("addresses for the stacks"));
    config.workers = 1;
    if matches!(row.as_str(), "create_join" | "fib_no_inline") {
        config.inline_bytes = usize::MAX;
    }
    Scheduler::new(config).expect("a scheduler starts").run(move || {
        for _ in 0..batches {
            let done = ults::batch(&row, Node::root(4));
            assert!(done.is_some(), "there is no row {row}");
        }
    });
}
