//! The same work done by tsumugi and by its peers, in one run.
//!
//! `cargo run --release -- [--quick] [--only ROW] [--json FILE]`, in
//! `benches/compare`. The systems take turns, one short batch each, again and
//! again; so a disturbance hits all of them, and the least and the middle of
//! one column may be compared with another's. A ratio is of the minima.
//! `cargo run --release -- message` does so for messages.

mod bars;
mod message;
mod peers;
mod report;

use report::{Measured, Report};
use std::time::{Duration, Instant};
use tsumugi_bench_ult::uts::{Node, T1_DEPTH};
use tsumugi_bench_ult::{ROWS, Row, Server, asleep, bare, ults};

fn main() {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("message") {
        std::process::exit(message::compare(args));
    }
    let options = Options::from_args();
    let mut report = Report::default();
    for row in ROWS.iter().filter(|row| options.wants(row.name)) {
        let systems = systems(row, &options);
        let before = bare::line_trip();
        let measured = take_turns(row, &systems, options.quick);
        report.add(row, measured, before, bare::line_trip());
    }
    if options.wants("bytes_per_ult") {
        let ults = if options.quick { 100_000 } else { 1_000_000 };
        report.add_asleep(ults, asleep::asleep(ults));
    }
    report.print();
    if let Some(file) = &options.json {
        if let Err(error) = std::fs::write(file, report.json()) {
            eprintln!("compare: {file}: {error}");
            std::process::exit(1);
        }
    }
}

/// Who has this row. Each is started for it and ends with it.
fn systems(row: &Row, options: &Options) -> Vec<Server> {
    let tree = Node::root(if options.quick { 6 } else { T1_DEPTH });
    let inline = !matches!(row.name, "create_join" | "fib_no_inline");
    let mut systems = Vec::new();
    match row.name {
        "raw_switch" | "wake_sleeping" => systems.push(Server::start("bare", 1, |inbox| {
            inbox.serve(|row| match row {
                "raw_switch" => bare::raw_switch(),
                "wake_sleeping" => bare::wake_sleeping(),
                _ => None,
            });
        })),
        _ => {}
    }
    match row.name {
        "raw_switch" => {}
        "wake_sleeping" => systems.push(ults::wake_sleeping()),
        _ => systems.push(ults::server(row.workers, inline, tree)),
    }
    // References of the bars on switches: a row of one batch each.
    if matches!(row.name, "yield2" | "yield1000" | "park_same") {
        systems.push(Server::start("bare", 1, |inbox| inbox.serve(|_| bare::raw_switch())));
    }
    systems.extend(peers::all(row, tree));
    systems
}

fn take_turns(row: &Row, systems: &[Server], quick: bool) -> Vec<Measured> {
    let mut measured: Vec<Measured> =
        systems.iter().map(|system| Measured::new(system.system)).collect();
    let (start, batches) = (Instant::now(), if quick { row.batches.min(15) } else { row.batches });
    for _ in 0..batches {
        for (system, measured) in systems.iter().zip(&mut measured) {
            measured.samples.extend(system.batch(row.name));
        }
        if start.elapsed() > ROW_TIME_MAX {
            break;
        }
    }
    measured.retain(|measured| !measured.samples.is_empty());
    measured
}

struct Options {
    quick: bool,
    only: Option<String>,
    json: Option<String>,
}

impl Options {
    fn from_args() -> Self {
        let mut options = Self { quick: false, only: None, json: None };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--only" => options.only = args.next(),
                "--json" => options.json = args.next(),
                _ => {
                    eprintln!("compare: {arg}? [--quick] [--only ROW] [--json FILE]");
                    std::process::exit(2);
                }
            }
        }
        options
    }

    fn wants(&self, row: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == row)
    }
}

const ROW_TIME_MAX: Duration = Duration::from_secs(20);
