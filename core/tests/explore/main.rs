//! Message matching, explored exhaustively.
//!
//! Every interleaving of small programs: first of models of the designs, where each step of a
//! protocol is one line that a reader can check against its description, then of the machine
//! itself. Every order that is reached is compared with what a sequential receiver could have
//! seen (`program`). A design with one rule broken must fail, and reports its trace: run with
//! `--nocapture` to read the shortest trace of each mutant.

mod locked;
mod machine;
mod mirror;
mod program;
mod search;
mod wire;

use locked::Locked;
use machine::{By, LONG, MIDDLE, Real, SHORT, Sizes};
use mirror::{Mirror, Place};
use program::{Op, Program};
use search::{Failure, Model, explore, replay};
use tsumugi_core::msg::MatchingDesign;
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;

const fn send(tag: u8) -> Op {
    Op::Send { to: 0, tag }
}

const fn post(tag: Option<u8>) -> Op {
    Op::Post { from: Some(1), tag }
}

const fn post_any(tag: Option<u8>) -> Op {
    Op::Post { from: None, tag }
}

const fn cancel(post: u8) -> Op {
    Op::Cancel { post }
}

const A: u8 = 0;
const B: u8 = 1;
const STATES_MAX: usize = 2_000_000;

#[test]
fn mirror_keeps_the_order() {
    for program in &programs() {
        for place in [Place::Held, Place::Announced] {
            sound(program, &Mirror::new(program, place, ""));
        }
    }
}

#[test]
fn mirror_with_a_rule_broken_fails() {
    for &mutant in mirror::MUTANTS {
        caught(mutant, |program| explore(&Mirror::new(program, Place::Held, mutant), STATES_MAX));
    }
}

#[test]
fn locked_keeps_the_order() {
    for program in &programs() {
        sound(program, &Locked::new(program, ""));
    }
}

#[test]
fn locked_with_a_rule_broken_fails() {
    for &mutant in locked::MUTANTS {
        caught(mutant, |program| explore(&Locked::new(program, mutant), STATES_MAX));
    }
}

/// Programs that are explored to their ends; the test for a long time has more of them.
#[test]
fn the_machine_keeps_the_order() {
    for design in DESIGNS {
        println!("{design:?}: {} states", machine(design, &programs()[..7], 3_000));
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_machine_with_a_rule_broken_fails() {
    let any_first = [post_any(Some(A)), post(Some(A))];
    let once = Program::of(&[&[post(Some(A))], &[send(A)]]);
    let twice = Program::of(&[&[post(Some(A)), post(Some(A))], &[send(A), send(A)]]);
    let mixed = Program::of(&[&any_first, &[send(A), send(A)]]);
    let cancelled = Program::of(&[&[post(Some(A)), cancel(0)], &[send(A)]]);
    let held_back =
        Program::of(&[&[any_first[0], any_first[1], post(Some(A))], &[send(A), send(A)]]);
    let crossing =
        Program::of(&[&[post(Some(A)), post(None), post(Some(B))], &[send(B), send(A), send(B)]]);
    let broken = [
        (MatchingDesign::TwoCopy, "msg_exact_first", &mixed),
        (MatchingDesign::TwoCopy, "msg_slot_early", &twice),
        (MatchingDesign::TwoCopy, "msg_split_sender_ends", &once),
        (MatchingDesign::TwoCopy, "msg_split_receiver_ends", &once),
        (MatchingDesign::TwoCopy, "msg_split_end_untold", &once),
        (MatchingDesign::Mirror, "msg_split_sender_ends", &once),
        (MatchingDesign::Mirror, "msg_split_receiver_ends", &once),
        (MatchingDesign::Mirror, "msg_split_end_untold", &once),
        (MatchingDesign::Mirror, "msg_k_ignored", &held_back),
        (MatchingDesign::Mirror, "msg_log_by_return_line", &crossing),
        (MatchingDesign::Mirror, "msg_wildcard_passed", &mixed),
        (MatchingDesign::Mirror, "msg_cancel_unasked", &cancelled),
        (MatchingDesign::Mirror, "msg_direct_late", &twice),
        (MatchingDesign::Mirror, "msg_half_untold", &twice),
        (MatchingDesign::Locked, "board_expected_ignored", &twice),
        (MatchingDesign::Locked, "board_exact_first", &mixed),
        (MatchingDesign::Locked, "board_withdraws_claimed", &cancelled),
    ];
    for (design, mutant, program) in broken {
        let failure = SIZES.iter().find_map(|&sizes| {
            let real = Real::new(program, design, sizes);
            with_mutant(mutant, || replay(&real, 10_000)).err()
        });
        let failure = failure.unwrap_or_else(|| panic!("{mutant} was not caught"));
        println!("{mutant}: {program:?}: {failure:?}");
    }
}

const DESIGNS: [MatchingDesign; 3] =
    [MatchingDesign::TwoCopy, MatchingDesign::Mirror, MatchingDesign::Locked];

const SIZES: [Sizes; 9] = [
    ([MIDDLE, MIDDLE, MIDDLE], 4, By::Receiver, false),
    ([SHORT, LONG, LONG], 4, By::Receiver, false),
    ([LONG, SHORT, MIDDLE], 1, By::Receiver, false),
    ([LONG, LONG, SHORT], 4, By::Sender, false),
    ([LONG, LONG, SHORT], 4, By::Both, false),
    ([SHORT, LONG, LONG], 1, By::Both, false),
    ([MIDDLE, MIDDLE, MIDDLE], 4, By::Receiver, true),
    ([MIDDLE, SHORT, MIDDLE], 1, By::Receiver, true),
    ([LONG, LONG, SHORT], 1, By::Both, true),
];

/// Explores at most `most` states of each of these programs.
fn machine(design: MatchingDesign, programs: &[Program], most: usize) -> usize {
    let mut states = 0;
    for program in programs {
        for sizes in SIZES {
            states += replay(&Real::new(program, design, sizes), most)
                .unwrap_or_else(|failure| panic!("{program:?}, {sizes:?}: {failure:?}"));
        }
    }
    states
}

/// Takes minutes in a release build, see below.
#[test]
#[ignore = "the machine with many more states: minutes"]
fn the_machine_keeps_the_order_in_many_more_states() {
    for design in DESIGNS {
        println!("{design:?}: {} states", machine(design, &programs(), 30_000));
    }
}

/// Minutes in a release build: `cargo test --release -p tsumugi-core --test
/// explore -- --ignored`.
#[test]
#[ignore = "all programs of a size: minutes"]
fn all_programs_of_three_messages_and_three_receives() {
    let patterns: Vec<Op> =
        [Some(A), Some(B), None].into_iter().flat_map(|tag| [post(tag), post_any(tag)]).collect();
    let mut states = 0;
    let mut count = 0;
    for posts in 0..6usize.pow(3) {
        let posts = [posts % 6, posts / 6 % 6, posts / 36].map(|index| patterns[index]);
        for tags in 0..8u8 {
            let sends = [tags & 1, tags >> 1 & 1, tags >> 2].map(send);
            for cancelled in [None, Some(0), Some(1), Some(2)] {
                let receiver: Vec<Op> = posts.into_iter().chain(cancelled.map(cancel)).collect();
                let program = Program::of(&[&receiver, &sends]);
                states += sound(&program, &Mirror::new(&program, Place::Announced, ""));
                states += sound(&program, &Locked::new(&program, ""));
                count += 1;
            }
        }
    }
    println!("{count} programs, {states} states");
}

fn sound<M: Model>(program: &Program, model: &M) -> usize {
    explore(model, STATES_MAX).unwrap_or_else(|failure| panic!("{program:?}: {failure:?}"))
}

/// Requires that one of the programs finds the mutant, and prints the trace.
fn caught(mutant: &str, explore: impl Fn(&Program) -> Result<usize, Failure>) {
    let programs = programs();
    let found = programs.iter().find_map(|program| Some((program, explore(program).err()?)));
    let (program, failure) = found.unwrap_or_else(|| panic!("{mutant} was not caught"));
    println!("{mutant}: {program:?}: {failure:?}");
}

/// Programs that together exercise every rule, those with the fewest states first.
fn programs() -> Vec<Program> {
    let of = |receiver: &[Op], sender: &[Op]| Program::of(&[receiver, sender]);
    vec![
        of(&[post(Some(A))], &[send(A)]),
        of(&[post(Some(A)), post(Some(A))], &[send(A), send(A)]),
        of(&[post(Some(A)), cancel(0)], &[send(A)]),
        of(&[post(Some(A)), cancel(0), post(Some(A))], &[send(A)]),
        of(&[post(Some(A)), post(Some(A)), cancel(0)], &[send(A), send(A)]),
        of(&[post(Some(A)), post(Some(B))], &[send(B), send(A)]),
        of(&[post_any(Some(A)), post(Some(A))], &[send(A), send(A)]),
        of(&[post_any(Some(A)), post(Some(A)), cancel(0)], &[send(A), send(A)]),
        of(&[post(None), post(Some(A))], &[send(A), send(B)]),
        of(&[post(Some(A)), post(Some(A))], &[send(A), send(A)]).mortal(1),
        of(&[post(Some(A)), post(Some(A)), cancel(0)], &[send(A), send(A)]).mortal(1),
        of(&[post_any(Some(A)), post(Some(A))], &[send(A), send(A)]).mortal(1),
        Program::of(&[&[post_any(Some(A)), post(Some(A))], &[send(A)], &[send(A)]]),
        Program::of(&[&[post_any(Some(A)), post(Some(A)), cancel(1)], &[send(A)], &[send(A)]]),
        Program::of(&[&[post_any(None), post(Some(A))], &[send(A)], &[send(A)]]).mortal(2),
        of(&[post_any(None), post(None), post(Some(A))], &[send(A), send(A), send(B)]),
        of(&[post(Some(A)), post(Some(A)), post(Some(A))], &[send(A), send(A), send(A)]),
        of(&[post_any(Some(A)), post(Some(A)), post(Some(A))], &[send(A), send(A), send(A)]),
        of(&[post(Some(A)), post(Some(A)), post(Some(A))], &[send(A), send(A)]),
        of(&[post_any(Some(A)), post(Some(A)), post(Some(A))], &[send(A), send(A)]),
        of(&[post(Some(A)), post(Some(A)), post(Some(A)), cancel(2)], &[send(A), send(A)]),
        of(&[post(Some(A)), post_any(Some(A)), post(Some(A))], &[send(A), send(A), send(A)]),
        of(&[post(Some(A)), post(None), post(Some(B))], &[send(B), send(A), send(B)]),
        of(&[post(None), post(Some(A)), post(None)], &[send(A), send(B), send(A)]),
        Program::of(&[
            &[post(Some(A)), post_any(Some(A)), post(Some(A))],
            &[send(A), send(A)],
            &[send(A)],
        ]),
        Program::of(&[
            &[post(Some(A)), Op::Send { to: 1, tag: A }, post(Some(A))],
            &[send(A), Op::Post { from: Some(0), tag: None }, send(A)],
        ]),
    ]
}
