//! Message matching, explored exhaustively.
//!
//! Every interleaving of small programs: first of models of the designs, where
//! each step of a protocol is one line that a reader can check against its
//! description, then of the machine itself. Every order that is reached is
//! held against what a sequential receiver could have seen (`program`).
//! A design with one rule broken must fail, and tells how: run with
//! `--nocapture` to read the shortest trace of each mutant.

mod mirror;
mod program;
mod search;

use mirror::{Mirror, Place};
use program::{Op, Program};
use search::{Failure, explore};

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
    for (number, program) in programs().iter().enumerate() {
        for place in [Place::Held, Place::Announced] {
            let start = std::time::Instant::now();
            let states = explore(&Mirror::new(program, place, ""), STATES_MAX)
                .unwrap_or_else(|failure| panic!("{program:?}, {place:?}: {failure:?}"));
            println!("{number} {place:?} {states} states {:?} {program:?}", start.elapsed());
        }
    }
}

#[test]
fn mirror_with_a_rule_broken_fails() {
    for &mutant in mirror::MUTANTS {
        let caught = programs().iter().find_map(|program| {
            [Place::Held, Place::Announced].iter().find_map(|&place| {
                let failure = explore(&Mirror::new(program, place, mutant), STATES_MAX).err()?;
                Some((program.clone(), place, failure))
            })
        });
        let (program, place, failure): (Program, Place, Failure) =
            caught.unwrap_or_else(|| panic!("the mutant {mutant} was not caught"));
        println!("{mutant}: {program:?}, {place:?}: {failure:?}");
    }
}

/// Programs that together meet every rule.
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
        of(&[post_any(None), post(None), post(Some(A))], &[send(A), send(A), send(B)]),
        of(&[post(Some(A)), post(Some(A)), post(Some(A))], &[send(A), send(A), send(A)]),
        of(&[post_any(Some(A)), post(Some(A)), post(Some(A))], &[send(A), send(A), send(A)]),
        of(&[post(Some(A)), post(Some(A)), post(Some(A))], &[send(A), send(A)]),
        of(&[post_any(Some(A)), post(Some(A)), post(Some(A))], &[send(A), send(A)]),
        of(&[post(Some(A)), post(Some(A)), post(Some(A)), cancel(2)], &[send(A), send(A)]),
        of(&[post(Some(A)), post_any(Some(A)), post(Some(A))], &[send(A), send(A), send(A)]),
        of(&[post(Some(A)), post(None), post(Some(B))], &[send(B), send(A), send(B)]),
        of(&[post(None), post(Some(A)), post(None)], &[send(A), send(B), send(A)]),
        of(&[post(Some(A)), post(Some(A))], &[send(A), send(A)]).mortal(1),
        of(&[post(Some(A)), post(Some(A)), cancel(0)], &[send(A), send(A)]).mortal(1),
        of(&[post_any(Some(A)), post(Some(A))], &[send(A), send(A)]).mortal(1),
        Program::of(&[&[post_any(Some(A)), post(Some(A))], &[send(A)], &[send(A)]]),
        Program::of(&[&[post(Some(A)), post_any(Some(A)), post(Some(A))], &[send(A), send(A)], &[
            send(A),
        ]]),
        Program::of(&[&[post_any(Some(A)), post(Some(A)), cancel(1)], &[send(A)], &[send(A)]]),
        Program::of(&[&[post_any(None), post(Some(A))], &[send(A)], &[send(A)]]).mortal(2),
        Program::of(&[
            &[post(Some(A)), Op::Send { to: 1, tag: A }, post(Some(A))],
            &[send(A), Op::Post { from: Some(0), tag: None }, send(A)],
        ]),
    ]
}
