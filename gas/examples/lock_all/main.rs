//! Everybody locks all targets of a window, on a simulated machine of as many
//! ranks as you like: how long it takes them, by each design, and what it
//! costs.
//!
//! ```text
//! cargo run --release -p tsumugi-gas --example lock_all -- --ranks 663552
//! ```
//!
//! | argument | |
//! |---|---|
//! | `--ranks N` | ranks: 4,096 unless said; without it also the paper's points |
//! | `--local NS` | an atomic on memory of the own node: 30 |
//! | `--design D` | `tree`, `global` or `two_level`: all three up to 65,536 ranks, else `tree` |
//! | `--no-count` | does not count operations by word: less memory |
//!
//! Phases: `cold`, all ranks lock and unlock all targets at once for the first
//! time; `warm`, they do so again; `exclusive`, one rank locks one target
//! exclusively after that; `parallel`, then one rank of each node locks its
//! own target, all at once; `cold again`, as the first.

mod machine;

use machine::{Cost, Phase, World};
use std::env;
use std::time::Instant;
use tsumugi_core::sim::Machine;
use tsumugi_gas::lock::Design;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let number = |name: &str, default: u32| {
        value(name).map_or(default, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name} {text}: not a number"))
        })
    };
    let ranks = number("--ranks", 4_096);
    let machine = Machine { local_ns: number("--local", 30).into(), ..Machine::FX100 };
    let counts = !arguments.iter().any(|argument| argument == "--no-count");
    if value("--ranks").is_none() {
        paper();
    }
    let designs = match value("--design").map(String::as_str) {
        None if ranks > 65_536 => vec![Design::Tree],
        None => vec![Design::Global, Design::TwoLevel, Design::Tree],
        Some("tree") => vec![Design::Tree],
        Some("global") => vec![Design::Global],
        Some("two_level") => vec![Design::TwoLevel],
        Some(other) => panic!("--design {other}: it is tree, global or two_level"),
    };
    for design in designs {
        run(design, ranks, machine, counts);
    }
}

/// The figures that the paper measures on FX100, where each process goes
/// through the engine.
fn paper() {
    println!("one lock for all: lock and unlock by everybody, mean of {ROUNDS} rounds");
    println!("{:>10} {:>12} {:>12} {:>14}", "processes", "us", "paper, us", "4 engines, us");
    let one = Machine { node_ranks: 1, ..Machine::FX100 };
    // Four engines are 40 % better, not four times: what they share is the bus.
    let four = Machine { engines: 4, bus_ns: one.engine_ns * 6 / 10, ..one };
    for (ranks, paper) in [(4, "2.3"), (128, "69"), (256, "130"), (1_024, "520"), (4_096, "2,200")]
    {
        let us = [one, four].map(|machine| {
            let mut world = World::new(Design::Global, ranks, machine, false);
            world.run_rounds(ROUNDS) as f64 / 1e3 / f64::from(ROUNDS)
        });
        println!("{ranks:>10} {:>12.2} {paper:>12} {:>14.2}", us[0], us[1]);
    }
    println!();
}

fn run(design: Design, ranks: u32, machine: Machine, counts: bool) {
    let started = Instant::now();
    let mut world = World::new(design, ranks, machine, counts);
    println!("{design:?}, {ranks} ranks, {} ns for a local atomic", machine.local_ns);
    println!(
        "{:>12} {:>12} {:>12} {:>16} {:>16}",
        "", "held, us", "done, us", "remote per rank", "ops on a word"
    );
    for phase in Phase::ALL {
        let Cost { held_ns, done_ns, remote, on_a_word } = world.run(phase);
        println!(
            "{:>12} {:>12.2} {:>12.2} {:>16.4} {:>16}",
            phase.name(),
            held_ns as f64 / 1e3,
            done_ns as f64 / 1e3,
            remote as f64 / f64::from(ranks),
            if counts { on_a_word.to_string() } else { "not counted".to_owned() },
        );
    }
    println!("{} events in {:.1} s\n", world.events(), started.elapsed().as_secs_f64());
}

const ROUNDS: u32 = 20;
