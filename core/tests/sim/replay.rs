//! A seed that fails is printed with the command that replays it, and the
//! replay leaves a log and a trace.

use super::*;
use std::env;
use std::fs;
use std::process::{Command, Output};
use tsumugi_core::mem::Width;
use tsumugi_core::op::Op;
use tsumugi_core::sim::{SimConfig, check, few};
use tsumugi_core::time::Clock;

const FAILS: &str = "TSUMUGI_TEST_FAILS";

/// Fails in a process of the test below, with one seed out of ten.
#[test]
fn one_seed_of_ten_fails() {
    check(0..10, |seed| {
        let net = Net::new(SimConfig::calm(2, seed));
        let region = open(&net, 1, 8);
        net.node(Rank(0)).post(&Op::put_word(at(1, &region, 0), Width::W8, seed));
        drain(&net);
        assert!(env::var_os(FAILS).is_none() || seed != 7, "seven");
    });
}

/// Fails in a process of the last test, if the network loses a message.
#[test]
fn a_loss_fails() {
    check(0..10, |seed| {
        let net = Net::new(SimConfig { drop: 30, duplicate: 300, ..SimConfig::drawn(2, seed) });
        let region = open(&net, 1, 8);
        for _ in 0..few(32) {
            let begin = net.now();
            net.node(Rank(0)).post(&Op::put_word(at(1, &region, 0), Width::W8, seed));
            drain(&net);
            let took_ns = net.now().as_ns() - begin.as_ns();
            let was_lost = took_ns > net.config().retry_ns + net.config().slow_ns_max;
            assert!(env::var_os(FAILS).is_none() || !was_lost, "{took_ns} ns");
        }
    });
}

fn run(test: &str, variables: &[(&str, &str)]) -> (Output, String) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("replay::{test}"), "--nocapture"])
        .env_remove("TSUMUGI_SEED")
        .env_remove("TSUMUGI_SHRUNK")
        .env_remove("TSUMUGI_TRACE")
        .env(FAILS, "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}

#[test]
fn a_failing_seed_is_printed_and_replays_with_its_trace() {
    let (output, text) = run("one_seed_of_ten_fails", &[]);
    assert!(!output.status.success());
    assert!(text.contains("seed 0x7: replay with TSUMUGI_SEED=0x7"), "{text}");
    assert!(!text.contains("last records"), "{text}");

    let (output, text) = run("one_seed_of_ten_fails", &[("TSUMUGI_SEED", "0x6")]);
    assert!(output.status.success(), "only that seed runs: {text}");

    let path = env::temp_dir().join(format!("tsumugi-trace-{}.json", std::process::id()));
    let trace = path.to_str().expect("a path in UTF-8");
    let (output, text) =
        run("one_seed_of_ten_fails", &[("TSUMUGI_SEED", "0x7"), ("TSUMUGI_TRACE", trace)]);
    let json = fs::read_to_string(&path);
    let _ = fs::remove_file(&path);
    assert!(!output.status.success());
    assert!(text.contains("the network's last records") && text.contains("Landed"), "{text}");
    let json = json.expect("a trace was written");
    assert!(json.contains(r#""name":"PutWord""#) && json.contains(r#""ph":"f""#), "{json}");
}

#[test]
fn a_failing_run_is_made_smaller() {
    let (output, text) = run("a_loss_fails", &[]);
    assert!(!output.status.success());
    let start = "smallest run that fails: 1 of ";
    let line =
        text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    let word = |name: &str| {
        let rest = line.split_once(name).unwrap_or_else(|| panic!("{line}")).1;
        rest.split(['\'', ' ']).next().unwrap().to_owned()
    };
    let seed = word("TSUMUGI_SEED=");
    let shrunk = line.split_once("TSUMUGI_SHRUNK='").unwrap().1.trim_end_matches('\'');
    assert!(shrunk.contains("ordered even faults="), "{line}");
    let (output, _) = run("a_loss_fails", &[("TSUMUGI_SEED", &seed), ("TSUMUGI_SHRUNK", shrunk)]);
    assert!(!output.status.success(), "{line}: the shrunk run does not fail");
    let none = [("TSUMUGI_SEED", &*seed), ("TSUMUGI_SHRUNK", "faults=")];
    assert!(run("a_loss_fails", &none).0.status.success(), "{line}: the run fails without faults");
    let (output, text) =
        run("a_loss_fails", &[("TSUMUGI_SEED", &seed), ("TSUMUGI_SHRUNK", "less")]);
    assert!(!output.status.success() && text.contains("is malformed"), "{text}");
}
