//! Ranks that are threads and wait for ever: their standard error says for what.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tsumugi::{Error, Rank, run_ranks};

/// Set in the process whose ranks wait for ever.
const WAITS: &str = "STANDSTILL_WAITS";

#[test]
fn a_rank_that_has_returned_is_named_to_those_that_wait_for_it() {
    if std::env::var_os(WAITS).is_some() {
        let ended = run_ranks(3, |rt| match rt.rank() {
            Rank(0) => Ok(0),
            _ => rt.sum(1u64),
        });
        unreachable!("rank 0 is not in the sum: {:?}", ended.map_err(|error: Error| error));
    }
    let name = "a_rank_that_has_returned_is_named_to_those_that_wait_for_it";
    // Without `--nocapture`: the report must not wait for the end of the test.
    let mut waiting = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(WAITS, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut said = String::new();
    for line in lines {
        said += &line;
        said.push('\n');
        if line.contains(" waits for rank 0") {
            break;
        }
    }
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    for wanted in [
        "all ranks are quiet",
        "rank 0: ULT 0 \"main\" waits in the barrier at the end of the job",
        "rank 1: ULT 0 \"main\" waits in collective 1",
        "collective 1 waits for rank 0",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}
