//! `tsumugi run` as a user sees it: its output, its options, and how jobs end.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A job of `ranks` that run a script of the shell.
fn run(ranks: u32, options: &[&str], script: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tsumugi"));
    command.args(["run", "-n", &ranks.to_string()]).args(options);
    command.args(["sh", "-c", script]).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Each rank writes its lines in pieces, and some lines that are longer than what a pipe
/// takes at once.
#[test]
fn no_line_is_torn() {
    let script = "for i in 1 2 3 4 5 6 7 8 9; do printf $TSUMUGI_RANK; printf a; printf a; \
                  echo b$TSUMUGI_RANK; done; \
                  head -c 100000 /dev/zero | tr '\\0' $TSUMUGI_RANK; echo; \
                  for i in 1 2 3 4 5 6 7 8 9; do printf $TSUMUGI_RANK >&2; echo c >&2; done";
    let output = run(4, &[], script);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    for rank in 0..4 {
        let count = |text: &str, line: &str| text.lines().filter(|it| *it == line).count();
        assert_eq!(count(&shown, &format!("{rank}aab{rank}")), 9, "{rank}");
        assert_eq!(count(&shown, &rank.to_string().repeat(100_000)), 1, "{rank}");
        assert_eq!(count(&said, &format!("{rank}c")), 9, "{said}");
    }
    assert_eq!((shown.lines().count(), said.lines().count()), (40, 36));
}

/// Bytes pass unchanged; a last line without an end passes whole, and other ranks'
/// lines do not stick to it.
#[test]
fn a_last_line_needs_no_end() {
    let script = "test $TSUMUGI_RANK = 0 || exit 0; printf 'a\\n\\0\\377b'";
    assert_eq!(run(3, &[], script).stdout, b"a\n\0\xffb");
    let output = run(3, &[], "printf end$TSUMUGI_RANK");
    let shown = text(&output.stdout);
    let mut ends: Vec<_> = shown.lines().collect();
    ends.sort_unstable();
    assert_eq!(ends, ["end0", "end1", "end2"]);
    let output = run(2, &[], "printf begun; test $TSUMUGI_RANK = 0 || kill -9 $$");
    assert_eq!(text(&output.stdout).matches("begun").count(), 2);
    assert_eq!(output.status.code(), Some(137));
}

/// The launcher waits for the output of the ranks, and not for processes that ranks
/// leave behind with the same output.
#[test]
fn all_output_of_a_rank_that_ends_is_shown() {
    let script = "seq 1 20000 | sed s/^/$TSUMUGI_RANK:/";
    let output = run(2, &[], script);
    let shown = text(&output.stdout);
    assert_eq!(shown.lines().count(), 40_000);
    let of_one: Vec<_> = shown.lines().filter_map(|line| line.strip_prefix("1:")).collect();
    assert!(of_one.iter().enumerate().all(|(at, line)| *line == (at + 1).to_string()));
}

/// A reader who is slow holds up the ranks, and loses nothing.
#[test]
fn a_slow_reader_gets_all_lines() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tsumugi"));
    command.args(["run", "-n", "4", "seq", "1", "50000"]).stdout(Stdio::piped());
    let mut job = command.spawn().expect("the command starts");
    let mut shown = job.stdout.take().unwrap();
    let mut waiting: libc::c_int = 0;
    // The pipe has filled up, half at least as its pages need not be full; each rank has more
    // to write than all pipes on the way hold.
    while waiting < 30_000 {
        std::thread::sleep(Duration::from_millis(1));
        // SAFETY: the kernel writes one number.
        unsafe { libc::ioctl(shown.as_raw_fd(), libc::FIONREAD, &raw mut waiting) };
    }
    assert_eq!(job.try_wait().unwrap(), None);
    let mut text = String::new();
    shown.read_to_string(&mut text).unwrap();
    assert!(job.wait().unwrap().success());
    assert_eq!(text.lines().count(), 200_000);
    assert_eq!(text.lines().filter(|line| *line == "50000").count(), 4);
}

#[test]
fn a_job_ends_after_its_time_limit() {
    let output = run(2, &["--timeout", "100ms"], "sleep 1000");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{said}");
    assert_eq!(said, "tsumugi: the job is ended after its time limit of 100ms\n");
    let output = run(2, &["--timeout", "100s"], "exit 3");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn options_set_variables() {
    let options = ["--env", "A_B=x=y", "--env", "PATH", "--bind", "none", "--workers", "3"];
    let output = run(1, &options, "echo $A_B $TSUMUGI_BIND $TSUMUGI_WORKERS");
    assert_eq!(text(&output.stdout), "x=y none 3\n", "{}", text(&output.stderr));
}

/// A full disk is no success.
#[test]
fn output_that_is_lost_is_reported() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tsumugi"));
    command.args(["run", "-n", "2", "echo", "a"]).stdout(full());
    let output = command.output().expect("the command starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = "tsumugi: standard output cannot be written, output is lost: No space left";
    assert!(said.starts_with(expected) && said.lines().count() == 1, "{said}");
}

/// A rank's own words come before the launcher's, and those of ranks that only repeat
/// them are dropped.
#[test]
fn the_first_cause_is_named_once() {
    let script = "case $TSUMUGI_RANK in 2) echo 'rank 2 breaks' >&2; exit 7;; \
                  *) sleep 0.2; echo \"Error: rank $TSUMUGI_RANK: rank 2 has died\" >&2; \
                  echo 'saved' >&2; exit 1;; esac";
    let output = run(4, &[], script);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 6, "{said}");
    assert_eq!(lines[0], "rank 2 breaks");
    assert!(lines[1].starts_with("tsumugi: rank 2 (pid "), "{said}");
    assert_eq!(lines[2..5], ["saved"; 3]);
    assert_eq!(lines[5], "tsumugi: 3 other ranks ended because of it");
}

/// A value that each rank would refuse is refused once.
#[test]
fn a_bad_variable_is_refused_once() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tsumugi"));
    let output = command.args(["run", "-n", "3", "true"]).env("TSUMUGI_BIND", "core").output();
    let output = output.expect("the command starts");
    let said = text(&output.stderr);
    assert_eq!(
        (output.status.code(), said.matches("TSUMUGI_BIND").count()),
        (Some(1), 1),
        "{said}"
    );
}

/// Bytes that are not UTF-8 go to the program, and are no value of a variable.
#[test]
fn bytes_that_are_not_text_are_named() {
    let bytes = OsStr::from_bytes(b"x\xff");
    let run = |words: &[&OsStr], name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsumugi"));
        command.args(["run", "-n", "1"]).args(words).env(name, bytes).output().unwrap()
    };
    assert_eq!(run(&[OsStr::new("echo"), bytes], "OTHER").stdout, b"x\xff\n");
    let unknown = run(&[bytes], "OTHER");
    assert_eq!(unknown.status.code(), Some(127), "{}", text(&unknown.stderr));
    for name in ["TSUMUGI_WORKERS", "TSUMUGI_RANKS", "TSUMUGI_HEAP_BYTES"] {
        let refused = run(&[OsStr::new("true")], name);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(name) && said.contains('\u{fffd}'), "{name}: {said}");
    }
}

#[test]
fn the_command_describes_itself() {
    for (words, what) in [
        (&["completions", "bash"][..], "_tsumugi()"),
        (&["man"], concat!(".TH tsumugi-run 1  \"tsumugi ", env!("CARGO_PKG_VERSION"))),
        (&["info", "--json"], "\"machine\": {"),
        (&["bench", "--list"], "gas "),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tsumugi")).args(words).output().unwrap();
        assert!(output.status.success() && text(&output.stdout).contains(what), "{words:?}");
    }
}

#[test]
fn a_misspelt_variable_is_reported_by_one_rank() {
    let own = env!("CARGO_BIN_EXE_tsumugi");
    let mut command = Command::new(own);
    let words = ["run", "-n", "2", own, "demo", "--ults", "3"];
    let output = command.args(words).env("TSUMUGI_WORKRES", "2").output();
    let said = text(&output.expect("the command starts").stderr);
    assert_eq!(said.matches("TSUMUGI_WORKRES").count(), 1, "{said}");
    assert!(said.contains("did you mean TSUMUGI_WORKERS?"), "{said}");
}
