//! C programs for the parts of the interface that ranks use together: each program calls
//! all functions of its sources, also with wrong values, as several ranks.

mod library;

use library::{build, compile, exports, on_two_nodes, root, source};
use std::fs;
use tsumugi::pvas::Launch;

/// Runs a program as ranks of one node, by both libraries and both ways to start, and as
/// ranks of two nodes.
fn runs(program: &str, sources: &[&str]) {
    let text = fs::read_to_string(root().join(format!("tests/foreign/{program}.c"))).unwrap();
    for exported in sources.iter().flat_map(|name| exports(&source("capi", name))) {
        assert!(text.contains(&format!("{exported}(")), "{program}: no call of {exported}");
    }
    let library = build();
    let [shared, whole] =
        ["libtsumugi.so", "libtsumugi.a"].map(|link| compile(&library, program, link));
    for (compiled, ranks, way) in [(&shared, 1, "run"), (&shared, 3, "start"), (&whole, 2, "run")] {
        let job = Launch::new(ranks).program(compiled, [way]).start();
        let job = job.expect("a job that starts");
        let code = job.wait().expect("a job that ends").code();
        assert_eq!(code, 0, "{} on {ranks} ranks: {way}", compiled.display());
    }
    on_two_nodes(&shared, 3, &["start"]);
}

#[test]
fn signals() {
    runs("signals", &["signal", "private_heap"]);
}

#[test]
fn messages() {
    runs("messages", &["comm", "request"]);
}

#[test]
fn groups() {
    runs("groups", &["group", "collective", "combine"]);
}

#[test]
fn active_messages() {
    runs("active_messages", &["active_message"]);
}

#[test]
fn rank_locks() {
    runs("rank_locks", &["rank_lock"]);
}

#[test]
fn windows_and_the_heap() {
    runs("windows", &["window", "epoch", "heap"]);
}

#[test]
fn arrays() {
    let sources = ["array", "array_elements", "array_atomics", "array_pages", "checkout"];
    runs("arrays", &sources);
}

#[test]
fn deques() {
    runs("deques", &["deque"]);
}
