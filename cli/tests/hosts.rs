//! `run --hosts` with a shell script in the place of ssh. The hosts are names only: all
//! agents run on this machine.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The script that is run in the place of ssh. It is removed when the value is dropped.
struct Rsh(PathBuf);

impl Rsh {
    fn new(name: &str, before: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("rsh-{name}"));
        let script = format!("#!/bin/sh\nhost=$1\nshift\n{before}\nexec sh -c \"$*\"\n");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tsumugi"));
        command
            .args(["run", "--hosts", "a,b"])
            .args(words)
            .env("TSUMUGI_RSH", &self.0)
            .env("TSUMUGI_HEAP_BYTES", (1_u64 << 30).to_string())
            .env("TSUMUGI_STACK_BYTES", (2_u64 << 30).to_string())
            .stdin(Stdio::null());
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn start(&self, words: &[&str]) -> Child {
        self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

impl Drop for Rsh {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn ranks_of_all_hosts_are_one_job() {
    let rsh = Rsh::new("job", "");
    let own = env!("CARGO_BIN_EXE_tsumugi");
    let small = ["-n", "3", own, "demo", "--ults", "4"];
    let output = rsh.output(&small);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("agrees with a serial search"));
}

#[test]
fn every_rank_is_labelled_and_has_the_environment_and_the_folder() {
    let rsh = Rsh::new("label", "export WHERE=$host");
    let line = "echo $TSUMUGI_RANK of $TSUMUGI_SIZE at $WHERE: $WHAT in $PWD; pwd >&2";
    let words = ["-n", "4", "--label", "sh", "-c", line];
    let output = rsh.command(&words).env("WHAT", "a 'b' $c").current_dir("/").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut lines: Vec<&str> = text(&output.stdout).lines().collect();
    lines.sort_unstable();
    let expected = ["0 of 4 at a", "1 of 4 at a", "2 of 4 at b", "3 of 4 at b"];
    let expected = expected.map(|w| format!("[{}] {w}: a 'b' $c in /", &w[..1]));
    assert_eq!(lines, expected);
    assert_eq!(text(&output.stderr).matches("] /\n").count(), 4);
}

#[test]
fn the_secret_is_on_no_command_line() {
    let rsh = Rsh::new("secret", "echo \"rsh: $* [${TSUMUGI_SECRET-none}]\" >&2");
    let word = "the secret of the ranks";
    let seen = "tr '\\0' ' ' < /proc/$PPID/cmdline; echo; echo $TSUMUGI_SECRET";
    let output =
        rsh.command(&["-n", "1", "sh", "-c", seen]).env("TSUMUGI_SECRET", word).output().unwrap();
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(shown.matches(word).count(), 1, "the rank has it: {shown}");
    assert!(said.contains("[none]") && !said.contains(word), "{said}");
}

#[test]
fn the_command_ends_with_the_code_of_the_first_failure() {
    let rsh = Rsh::new("code", "");
    let line = "if [ $TSUMUGI_RANK = 3 ]; then exit 9; fi; sleep 100";
    let begin = Instant::now();
    let output = rsh.output(&["-n", "4", "sh", "-c", line]);
    assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
    assert!(begin.elapsed() < Duration::from_secs(90));
    assert!(text(&output.stderr).contains("rank 3 (pid "), "{}", text(&output.stderr));
    let output = rsh.output(&["-n", "2", "/nonexistent"]);
    assert_eq!(output.status.code(), Some(127), "{}", text(&output.stderr));
    let broken = Rsh::new("broken", "exit 255");
    let output = broken.output(&["-n", "2", "true"]);
    assert_eq!(output.status.code(), Some(255));
    // Either of the two hosts may be the first to end.
    let said = text(&output.stderr);
    assert!(
        said.contains("tsumugi: host ") && said.contains(": the agent ended with code 255"),
        "{said}"
    );
}

/// SIGTERM is passed on to the ranks. After SIGKILL of the command, the ranks are killed.
/// In both cases no rank is left.
#[test]
fn signals_reach_the_ranks_and_nothing_outlives_the_command() {
    let rsh = Rsh::new("signals", "");
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let mut child = rsh.start(&["-n", "2", "sh", "-c", "echo $$; exec sleep 100"]);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut pids = String::new();
        out.read_line(&mut pids).unwrap();
        out.read_line(&mut pids).unwrap();
        // SAFETY: `kill` accesses no memory of this process.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        let status = child.wait().unwrap();
        assert!(!status.success());
        let deadline = Instant::now() + Duration::from_secs(60);
        for pid in pids.lines() {
            while fs::exists(format!("/proc/{pid}")).unwrap() {
                assert!(Instant::now() < deadline, "{pid} outlives its job");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // The read ends only when no process has the pipe open any more.
        out.read_to_string(&mut pids).unwrap();
    }
}

/// The processes that the agent's ranks have started are killed, too, and so are the
/// ranks of the other host.
#[test]
fn nothing_outlives_an_agent_that_is_killed() {
    let rsh = Rsh::new("agent", "");
    // The ranks ignore SIGTERM, and each has a child in a session of its own.
    let line = "trap '' TERM; setsid sleep 1000 & echo $PPID $$ $!; exec sleep 1000";
    let mut child = rsh.start(&["-n", "2", "sh", "-c", line]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut pids = String::new();
    out.read_line(&mut pids).unwrap();
    out.read_line(&mut pids).unwrap();
    let agent = pids.split_whitespace().next().unwrap().parse().unwrap();
    // SAFETY: `kill` accesses no memory of this process.
    assert_eq!(unsafe { libc::kill(agent, libc::SIGKILL) }, 0);
    assert!(!child.wait().unwrap().success());
    gone(&pids);
    out.read_to_string(&mut pids).unwrap();
}

/// Waits until these processes have ended. A zombie counts as ended: only its parent can
/// remove it.
#[track_caller]
fn gone(pids: &str) {
    let is_running = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with('Z'))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    for pid in pids.split_whitespace() {
        while is_running(pid) {
            assert!(Instant::now() < deadline, "{pid} outlives its job");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// As when a host has vanished: the command that starts the agent there does not end.
#[test]
fn a_host_that_does_not_answer_is_not_waited_for() {
    let rsh = Rsh::new("hangs", "if [ $host = b ]; then echo $$ >&2; exec sleep 1000; fi");
    let mut child = rsh.start(&["-n", "2", "sh", "-c", "exit 3"]);
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let is_pid = |line: &str| line.trim().parse::<u32>().is_ok();
    while !said.lines().any(is_pid) {
        assert_ne!(err.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let late = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > late {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let pid = said.lines().find(|line| is_pid(line)).unwrap().to_owned();
    gone(&pid);
    err.read_to_string(&mut said).unwrap();
    assert_eq!(status.code(), Some(3), "{said}");
    assert!(said.contains("rank 0 (pid ") && said.contains("exited with code 3"), "{said}");
}

#[test]
fn nodes_without_a_network_are_named() {
    let rsh = Rsh::new("nodes", "export TSUMUGI_NODE=$host TSUMUGI_NETWORK=off");
    let own = env!("CARGO_BIN_EXE_tsumugi");
    let output = rsh.output(&["-n", "2", own, "demo", "--ults", "4"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("the 2 ranks of this job are on 2 nodes"), "{said}");
}
