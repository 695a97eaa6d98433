//! The command as a user runs it: its exit codes, and what it writes to standard output
//! and to standard error.

use std::ffi::CString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `tsumugi` with these arguments, in a folder outside of the repository.
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

/// A temporary file of one test, which is removed when the value is dropped.
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
fn the_demo_is_a_rank_of_any_job() {
    let own = env!("CARGO_BIN_EXE_tsumugi");
    let output = tsumugi(&["run", "-n", "2", own, "demo", "--ults", "3", "--ranks", "9"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(shown(&output).matches("2 ranks x 3 user-level threads").count(), 1);
    // One rank prints the error; the launcher prints which rank ended, and with which code.
    let output = tsumugi(&["run", "-n", "3", own, "demo", "--from", "pyhton3"]);
    let said = said(&output);
    assert_eq!((output.status.code(), said.matches("pyhton3").count()), (Some(2), 1), "{said}");
    assert_eq!(said.matches("exited with code 2").count(), 1, "{said}");
    assert!(said.ends_with("\ntsumugi: 2 other ranks ended because of it\n"), "{said}");
    assert_eq!(said.lines().count(), 4, "{said}");
}

#[test]
fn more_threads_than_stacks_are_refused() {
    let words = ["demo", "--ranks", "2", "--ults", "1000000"];
    assert_refused(&words, 2, &["--ults 1000000", "room for the stacks", "TSUMUGI_STACK_BYTES"]);
}

#[test]
fn a_killed_rank_ends_the_demo() {
    let fifo = std::env::temp_dir().join(format!("tsumugi-{}-fifo.mtx", std::process::id()));
    let path = CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: `path` ends with a NUL and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let launcher = Command::new(env!("CARGO_BIN_EXE_tsumugi"))
        .args(["demo", "--ranks", "3", "--ults", "4", "--graph"])
        .arg(&fifo)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // The launcher reads the graph from the pipe. Then rank 0 opens the pipe to read it
    // again, and blocks, because no process writes to it.
    fs::write(&fifo, SMALL).unwrap();
    let late = Instant::now() + Duration::from_secs(60);
    let ranks = loop {
        match children_of(launcher.id()) {
            ranks if ranks.len() == 3 => break ranks,
            ranks => assert!(Instant::now() < late, "{ranks:?}"),
        }
        thread::sleep(Duration::from_millis(5));
    };
    // SAFETY: `kill` accesses no memory of this process.
    assert_eq!(unsafe { libc::kill(ranks[1] as i32, libc::SIGKILL) }, 0);
    let output = launcher.wait_with_output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(128 + libc::SIGKILL), "{said}");
    assert!(said.contains(&format!("(pid {}) was killed by signal 9", ranks[1])), "{said}");
    assert!(shown(&output).is_empty(), "{}", shown(&output));
    assert!(ranks.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()), "{said}");
    fs::remove_file(&fifo).unwrap();
}

/// No process and no file of the benchmark is left, not even a process that a measured
/// peer has started in a session of its own.
#[test]
fn a_killed_benchmark_leaves_nothing() {
    let folder = std::env::temp_dir().join(format!("tsumugi-{}-killed", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let peer = ["--quick", "--peer", "peer=setsid -f sleep 1000"];
    for (figure, row) in [("message", "same_core_pre"), ("lock", "fetch_add")] {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_tsumugi"))
            .args(["bench", figure, "--only", row])
            .args(peer)
            .env("TMPDIR", &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let late = Instant::now() + Duration::from_secs(60);
        while !with_temporary_folder(&folder).iter().any(|(_, name)| name == "sleep") {
            assert!(Instant::now() < late, "{figure}: the peer does not start");
            assert_eq!(bench.try_wait().unwrap(), None, "{figure}");
            thread::sleep(Duration::from_millis(5));
        }
        bench.kill().unwrap();
        bench.wait().unwrap();
        let late = Instant::now() + Duration::from_secs(60);
        loop {
            let processes = with_temporary_folder(&folder);
            let files: Vec<_> =
                fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
            if processes.is_empty() && files.is_empty() {
                break;
            }
            assert!(Instant::now() < late, "{figure}: left behind: {processes:?}, {files:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }
    fs::remove_dir(&folder).unwrap();
}

/// The processes with this folder as `TMPDIR` in their environment: pid and name.
fn with_temporary_folder(folder: &Path) -> Vec<(u32, String)> {
    let variable = format!("TMPDIR={}", folder.display());
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            variables.find(|found| *found == variable.as_bytes())?;
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            Some((pid, name.trim_end().to_owned()))
        })
        .collect()
}

/// The processes that `parent` has started, in the order of their pids, without its
/// guardian.
fn children_of(parent: u32) -> Vec<u32> {
    let mut children: Vec<u32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.contains("(job-guardian)") {
                return false;
            }
            // The name stands in brackets and may contain any character. The state and
            // the pid of the parent follow it.
            let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
            after.split(' ').nth(1).is_some_and(|ppid| ppid == parent.to_string())
        })
        .collect();
    children.sort_unstable();
    children
}

#[test]
fn a_job_ends_with_the_code_of_its_first_rank_that_failed() {
    let output = tsumugi(&["run", "-n", "3", "--label", "--", "sh", "-c", "echo $TSUMUGI_RANK"]);
    assert!(output.status.success(), "{}", said(&output));
    let mut lines: Vec<String> = shown(&output).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 0", "[1] 1", "[2] 2"]);
    let script = "test $TSUMUGI_RANK != 1 || exit 7; test $TSUMUGI_WORKERS = 2";
    let output = tsumugi(&["run", "-n", "3", "--workers", "2", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert_eq!(said(&output).matches("exited with code 7").count(), 1, "{}", said(&output));
    assert_refused(&["run", "-n", "2", "sh", "-c", "kill -9 $$"], 137, &["SIGKILL"]);
}

#[test]
fn a_program_that_cannot_be_run_is_named() {
    let plain = Scratch::new("plain.txt", "no program");
    assert_refused(&["run", "-n", "2", "/nonexistent"], 127, &["/nonexistent: no such program"]);
    assert_refused(&["run", "-n", "2", plain.path()], 126, &[plain.path(), "executed"]);
}

#[test]
fn a_bad_argument_is_a_usage_error() {
    let graph = Scratch::new("named.mtx", SMALL);
    assert_refused(&["demo", "--ranks", "0"], 2, &["'0'", "at least 1"]);
    assert_refused(&["demo", "--ults", "many"], 2, &["'many'"]);
    assert_refused(&["demo", "--from", "pyhton3"], 2, &["'pyhton3'", "did you mean python3"]);
    assert_refused(&["demo", "--from", "99999999"], 2, &["'99999999'", "63666"]);
    assert_refused(&["demo", "--graph", graph.path(), "--from", "5"], 2, &["'5'", "1 to 4"]);
    assert_refused(&["bench", "rma", "--only", "get9"], 2, &["'get9'", "bare_get8"]);
    assert_refused(&["bench", "ult", "--only", "get8"], 2, &["'get8'", "yield1000"]);
    assert_refused(&["bench", "ult", "--serve", "myth", "yield2", "1", "1"], 2, &["myth yield2"]);
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

/// The second call measures nothing, and writes the same report.
#[test]
fn a_report_of_figures_goes_on_where_it_was() {
    let folder = std::env::temp_dir().join(format!("tsumugi-report-{}", std::process::id()));
    let path = folder.to_str().unwrap();
    let words = ["bench", "figures", "--paper", "S4", "--quick", "--ops", "1", "--folder", path];
    let [first, second] = [tsumugi(&words), tsumugi(&words)];
    let said = [&first, &second].map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(first.status.success() && second.status.success(), "{said:?}");
    assert!(said[0].contains("1 of 2: pages") && said[1].is_empty(), "{said:?}");
    let html = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(html.contains("<svg") && html.contains("more than 10 times"), "{html}");
    std::fs::remove_dir_all(folder).unwrap();
    assert_refused(&["bench", "figures", "--paper", "S9"], 2, &["'S9'", "S0, S1, S2, S3, S4"]);
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
    let output = tsumugi(&["bench", "rma", "--only", "direct", "--ops", "1"]);
    for name in ["get8", "put8", "fadd8"] {
        let line = format!("{name} over bare_{name}: ");
        assert!(shown(&output).contains(&line), "{line} in {}", shown(&output));
    }
    assert_eq!((&rows[0]["figure"], &rows[0]["name"]), (&"rma".into(), &"bare_get8".into()));

    let unwritable =
        ["bench", "rma", "--only", "get8", "--ops", "1", "--json", "/nonexistent/rows.json"];
    assert_refused(&unwritable, 1, &["/nonexistent/rows.json", "cannot be written"]);
}

/// Rows are shown and written as they are measured, and stay when the benchmark is killed.
#[test]
fn a_killed_benchmark_has_shown_its_rows() {
    let json = Scratch::new("killed.json", "");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_tsumugi"))
        .args(["bench", "rma", "--only", "latency", "--quick", "--json", json.path()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let lines = BufReader::new(bench.stdout.take().unwrap()).lines().map(Result::unwrap);
    let shown: Vec<String> = lines.take(4).collect();
    // The benchmark has a hundred rows and more.
    assert_eq!(bench.try_wait().unwrap(), None, "{shown:?}");
    bench.kill().unwrap();
    bench.wait().unwrap();
    assert!(shown[0].contains("median") && shown[0].contains("trip before"), "{shown:?}");
    for (line, params) in shown[1..].iter().zip(["threads=1 bytes=1 ", "bytes=4", "bytes=8"]) {
        assert!(line.starts_with("  latency ") && line.contains(params), "{shown:?}");
    }
    let rows = fs::read_to_string(&json.0).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&(rows + "]")).unwrap();
    assert!(rows.len() >= 3 && rows.iter().all(|row| row["name"] == "latency"), "{rows:?}");
}

#[test]
fn threads_are_measured_beside_the_machine() {
    let json = Scratch::new("ults.json", "");
    let words = ["bench", "ult", "--only", "yield2", "--quick", "--json", json.path()];
    let output = tsumugi(&words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(shown(&output).contains("yield, 2 ULTs, of a switch"), "{}", shown(&output));
    let rows = std::fs::read_to_string(&json.0).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    let names: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["raw_switch", "yield2"]);
    assert!(rows[1]["min"].as_f64() > Some(0.0), "{rows}");
}

#[test]
fn messages_are_measured_by_each_design() {
    let json = Scratch::new("messages.json", "");
    let words = ["bench", "message", "--quick", "--ops", "4", "--only", "same_core_pre"];
    let output = tsumugi(&[&words[..], &["--json", json.path()]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let rows = std::fs::read_to_string(&json.0).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    for system in ["tsumugi", "two_copy", "rendezvous"] {
        assert!(shown(&output).contains(system), "{system} in {}", shown(&output));
        let of = |row: &&serde_json::Value| row["system"] == system;
        assert!(rows.as_array().unwrap().iter().filter(of).count() == 8, "{system}");
    }
    assert_refused(&["bench", "message", "--only", "halo9"], 2, &["'halo9'", "halo10"]);
    assert_refused(&["bench", "message", "--peer", "mpich"], 2, &["NAME=COMMAND"]);
    assert_refused(&["bench", "far"], 2, &["tsumugi run --hosts a,b -n 2 tsumugi bench far"]);
    assert_refused(&["bench", "far", "--only", "nothing"], 2, &["no such row", "put_word"]);
}

#[test]
fn pages_are_measured_beside_raw_reads() {
    let json = Scratch::new("pages.json", "");
    let folder = Path::new(json.path()).with_extension("figures");
    let words = ["bench", "gas", "--quick", "--ops", "1", "--json", json.path()];
    let output = tsumugi(&[&words[..], &["--svg", folder.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let figure = std::fs::read_to_string(folder.join("pages_shm.svg")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(figure.contains("get_uncached") && figure.contains("own by messages, 1 readers"));
    let bars = ["get_cached over raw_read, 8 B", "get_uncached of get_cached, 1048576 B"];
    for what in bars.into_iter().chain(["the paper's table, 4096 B"]) {
        assert!(shown(&output).contains(what), "{what} in {}", shown(&output));
    }
    let rows = std::fs::read_to_string(&json.0).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    // `own` has rows for both directories, without a reader and with one.
    let names = [("raw_read", 3), ("get_cached", 3), ("get_uncached", 3), ("put_cached", 3)];
    for (name, count) in names.into_iter().chain([("own", 12)]) {
        let of = |row: &&serde_json::Value| row["name"] == name;
        assert!(rows.as_array().unwrap().iter().filter(of).count() == count, "{name}: {rows}");
    }
    assert_refused(&["bench", "gas", "--only", "get9"], 2, &["'get9'", "get_cached"]);
}

#[test]
fn the_machine_is_described() {
    let output = tsumugi(&["info"]);
    assert!(output.status.success());
    assert!(shown(&output).contains("cpus"), "{}", shown(&output));
    assert!(shown(&output).contains("cross-memory copy"), "{}", shown(&output));
    assert!(!shown(&output).contains("measured"), "{}", shown(&output));
    let output = tsumugi(&["info", "--measure"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(shown(&output).contains("messages, measured once"), "{}", shown(&output));
    assert_refused(&["info", "--measure", "--memory"], 2, &["--measure", "--memory"]);
    let output = tsumugi(&["info", "--space"]);
    assert!(output.status.success(), "{}", said(&output));
    for what in ["what a job of 2 gets", "huge pages, owner", "peers may", "0x200000000000"] {
        assert_eq!(shown(&output).matches(what).count(), 1, "{what} in {}", shown(&output));
    }
    let output = tsumugi(&["info", "--config", "--memory", "-n", "7"]);
    assert!(output.status.success());
    for what in ["TSUMUGI_WORKERS", "TSUMUGI_PVAS_BASE", "7 ranks", "1,000,000", "total"] {
        assert!(shown(&output).contains(what), "{what} in {}", shown(&output));
    }
    let output = tsumugi(&["info", "--config", "limits", "--json"]);
    let limits: serde_json::Value = serde_json::from_str(&shown(&output)).unwrap();
    let names: Vec<_> = limits
        .as_array()
        .unwrap()
        .iter()
        .map(|knob| knob["name"].as_str().unwrap().to_owned())
        .collect();
    let limits = ["BOOT", "SILENCE", "GRACE"].map(|stem| format!("TSUMUGI_{stem}_TIMEOUT"));
    assert_eq!(names, limits);
    // A job of many nodes is described by its memory alone.
    let output = tsumugi(&["info", "--memory", "--ranks", "1000000"]);
    assert!(output.status.success(), "{}", said(&output));
    for what in ["a rank of 1,000,000, 32 on a node", "total, 1,024 peers in use by the global"] {
        assert!(shown(&output).contains(what), "{what} in {}", shown(&output));
    }
    assert_refused(&["info", "--config", "-n", "1000000"], 1, &["1 to 4096 ranks", "1000000"]);
    assert_refused(&["info", "--memory", "-n", "3000000"], 2, &["at most 2097152"]);
}
