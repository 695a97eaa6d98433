//! The table of the results, and the summary.

use crate::Asked;
use crate::draw::Drawn;
use crate::run::{Test, Verdict};
use std::collections::BTreeMap;

/// Prints the caught mutants; then the survivors and the mutants that no test reaches,
/// each in the format of a line of `ci/mutants.equivalent`; then the summary.
pub fn print(
    drawn: &[Drawn],
    chosen: &[u32],
    verdicts: &BTreeMap<u32, Verdict>,
    tests: &[Test],
    asked: &Asked,
) {
    let (mut caught, mut hung, mut survived, mut unreached) = (0, 0, 0, 0);
    for id in chosen {
        let Some(verdict) = verdicts.get(id) else { continue };
        let mutant = &drawn[*id as usize];
        let place = format!("{id:4} {}:{}", mutant.file, mutant.line);
        match verdict {
            Verdict::Caught(by) => {
                caught += 1;
                println!("caught      {place}  {}  by {by}", mutant.what);
            }
            Verdict::Hung(by) => {
                hung += 1;
                println!("caught      {place}  {}  by a time limit of {by}", mutant.what);
            }
            Verdict::Survived(_) => survived += 1,
            Verdict::NotReached => unreached += 1,
        }
    }
    for id in chosen {
        let mutant = &drawn[*id as usize];
        let said = match verdicts.get(id) {
            Some(Verdict::Survived(count)) => format!("survived {count:3}"),
            Some(Verdict::NotReached) => "not reached ".to_owned(),
            _ => continue,
        };
        println!(
            "{said} {id:4} :{} {} ¦ {} ¦ {} ¦",
            mutant.line, mutant.file, mutant.what, mutant.text
        );
    }
    let judged = caught + hung + survived + unreached;
    let share = |count: usize| 100.0 * count as f64 / (judged - unreached).max(1) as f64;
    println!(
        "mutants: seed {}: {judged} of {} judged by {} tests: {caught} caught, {hung} by a time limit, {survived} survived, {unreached} not reached; of those reached {:.1} % caught",
        asked.seed,
        chosen.len(),
        tests.len(),
        share(caught + hung)
    );
}
