//! The command as a user runs it: exit codes, what is said, and where.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs `tsumugi` with these words from a folder that has nothing to do with
/// the repository.
fn tsumugi(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tsumugi"))
        .args(words)
        .current_dir(std::env::temp_dir())
        .output()
        .expect("the command starts")
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

fn shown(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("results are UTF-8")
}

#[track_caller]
fn assert_refused(words: &[&str], code: i32, reasons: &[&str]) {
    let output = tsumugi(words);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    assert!(reasons.iter().all(|reason| said.contains(reason)), "{words:?}: {said}");
    assert!(output.stdout.is_empty(), "{words:?}: {}", shown(&output));
    assert!(!said.contains("panicked"), "{words:?}: {said}");
}

/// A file of this test alone, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = std::env::temp_dir().join(format!("tsumugi-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a temporary file can be written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the temporary folder has a plain name")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("the file is still there");
    }
}

const SMALL: &str =
    "%%MatrixMarket matrix coordinate integer general\n4 4 3\n1 2 9\n2 3 9\n2 1 9\n";

#[test]
fn the_demo_agrees_with_a_serial_search_from_any_folder() {
    let output = tsumugi(&["demo", "--ranks", "3", "--ults", "8"]);
    assert!(output.status.success(), "{}", said(&output));
    let shown = shown(&output);
    assert!(shown.contains("63,666 vertices"), "{shown}");
    assert!(shown.contains("agrees with a serial search: all 63,666 levels"), "{shown}");
    assert!(shown.is_ascii() && !said(&output).contains('\u{1b}'), "plain in a pipe: {shown}");
}

#[test]
fn the_demo_takes_another_graph_and_writes_its_report() {
    let graph = Scratch::new("small.mtx", SMALL);
    let names = Scratch::new("small.names", "ada\nbob\ncyd\ndan\n");
    let json = Scratch::new("small.json", "");
    let words = ["--names", names.path(), "--from", "cyd", "--json", json.path()];
    let common = ["demo", "--ranks", "2", "--ults", "2", "--graph", graph.path()];
    let output = tsumugi(&[&common[..], &words].concat());
    assert!(output.status.success(), "{}", said(&output));
    let report = std::fs::read_to_string(&json.0).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["levels"], serde_json::json!([1, 1, 1]));
    assert_eq!((&report["from"], &report["edges"]), (&"cyd".into(), &2.into()));
    assert!(report["disagreement"].is_null());

    let output = tsumugi(&[&common[..], &["--from", "4"]].concat());
    assert!(shown(&output).contains("searched from vertex 4"), "{}", shown(&output));
}

#[test]
fn what_does_not_exist_is_a_usage_error() {
    let graph = Scratch::new("named.mtx", SMALL);
    assert_refused(&["demo", "--ranks", "0"], 2, &["'0'", "at least 1"]);
    assert_refused(&["demo", "--ults", "many"], 2, &["'many'"]);
    assert_refused(&["demo", "--from", "pyhton3"], 2, &["'pyhton3'", "did you mean python3"]);
    assert_refused(&["demo", "--from", "99999999"], 2, &["'99999999'", "63666"]);
    assert_refused(&["demo", "--graph", graph.path(), "--from", "5"], 2, &["'5'", "1 to 4"]);
    assert_refused(&["bench", "rma", "--only", "get9"], 2, &["'get9'", "bare_get8"]);
    assert_refused(&["run", "-n", "0", "true"], 2, &["'0'", "at least 1"]);
    assert_refused(&["dance"], 2, &["'dance'"]);
}

#[test]
fn a_broken_file_is_a_failure_that_names_the_line() {
    let cut = Scratch::new("cut.mtx", &SMALL[..SMALL.len() - 3]);
    assert_refused(&["demo", "--graph", cut.path()], 1, &[cut.path(), ":5: ", "value is missing"]);
    let zero = Scratch::new("zero.mtx", SMALL.replace("2 3", "0 3"));
    assert_refused(&["demo", "--graph", zero.path()], 1, &[zero.path(), ":4: ", "row 0"]);
    let huge = Scratch::new("huge.mtx", SMALL.replace("4 4 3", "4 4 1000000000000000000"));
    assert_refused(&["demo", "--graph", huge.path()], 1, &[huge.path(), ":2: ", "TiB of memory"]);
    let names = Scratch::new("few.names", "ada\n");
    assert_refused(&["demo", "--names", names.path()], 1, &[names.path(), "1 names", "63666"]);
    assert_refused(&["demo", "--graph", "/nonexistent"], 1, &["/nonexistent", "cannot be read"]);
}

#[test]
fn the_bench_writes_its_rows() {
    let json = Scratch::new("rows.json", "");
    let words = ["bench", "rma", "--only", "bare_get8", "--ops", "1", "--json", json.path()];
    let output = tsumugi(&words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(shown(&output).contains("bare_get8"));
    let rows = std::fs::read_to_string(&json.0).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    assert_eq!((&rows[0]["figure"], &rows[0]["name"]), (&"rma".into(), &"bare_get8".into()));

    let unwritable = ["bench", "rma", "--ops", "1", "--json", "/nonexistent/rows.json"];
    assert_refused(&unwritable, 1, &["/nonexistent/rows.json", "cannot be written"]);
}

#[test]
fn the_machine_is_described() {
    let output = tsumugi(&["info"]);
    assert!(output.status.success());
    assert!(shown(&output).contains("cpus"), "{}", shown(&output));
}
