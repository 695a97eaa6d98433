//! The steps of a case: start a job, read its output, wait for its end, and look for what is left.

use super::launcher::{Ask, own_path};
use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The output of a launcher, and its exit.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn expect(&self, code: i32, said: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for text in said {
            assert!(self.out.contains(text), "no {text:?} in {self:?}");
        }
    }
}

/// Runs a whole job and checks that nothing of it is left.
pub fn run(ask: &Ask) -> Done {
    let before = names();
    let launcher = ask.command().spawn().unwrap();
    let mut pids = vec![launcher.id()];
    let done = finish(launcher);
    pids.extend(done.out.lines().filter_map(pid_of));
    gone(&pids[1..]);
    assert_nothing_named(&pids, &before);
    done
}

/// Ranks without a launcher of this project, as another launcher would start them.
pub fn started_by_others(job: &str, ranks: &[u32], size: u32, role: &str) -> Vec<Done> {
    let start = |rank: &u32| {
        let mut command = Command::new(own_path());
        command.args(["--role", role]).env("TSUMUGI_RANK", rank.to_string());
        command.env("TSUMUGI_SIZE", size.to_string());
        command.env("TSUMUGI_JOB", format!("{job} {}", std::process::id()));
        command.env("TSUMUGI_TEST_GREETING", "hello").env("TSUMUGI_HEAP_BYTES", "0x4000000");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let before = names();
    let ranks: Vec<Child> = ranks.iter().map(start).collect();
    let pids: Vec<u32> = ranks.iter().map(Child::id).collect();
    let done = ranks.into_iter().map(finish).collect();
    assert_nothing_named(&pids, &before);
    done
}

pub fn finish(mut launcher: Child) -> Done {
    finish_with(&mut launcher, None)
}

/// Waits for the launcher; one that hangs is killed, and that is a failure.
pub fn finish_with(launcher: &mut Child, limit: Option<Duration>) -> Done {
    let pid = launcher.id();
    let limit = limit.unwrap_or(Duration::from_secs(120));
    let (over, watch) = std::sync::mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if watch.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            send(pid, libc::SIGKILL);
        }
    });
    let readers = [
        launcher.stdout.take().map(|out| thread::spawn(move || read_all(out))),
        launcher.stderr.take().map(|err| thread::spawn(move || read_all(err))),
    ];
    let [out, err] = readers.map(|reader| reader.map(|r| r.join().unwrap()).unwrap_or_default());
    let status = launcher.wait().unwrap();
    drop(over);
    watchdog.join().unwrap();
    Done { code: status.code(), out, err }
}

fn read_all(mut from: impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Starts a launcher whose output the case reads itself.
pub fn start(ask: &Ask) -> (Child, BufReader<ChildStdout>) {
    let mut launcher = ask.command().spawn().unwrap();
    let out = BufReader::new(launcher.stdout.take().unwrap());
    (launcher, out)
}

/// Reads until `count` lines with `word` have arrived; returns the pids of the ranks that have
/// printed theirs until then, in the order of the ranks.
pub fn pids_until(out: &mut BufReader<ChildStdout>, word: &str, count: usize) -> Vec<u32> {
    let (mut found, mut seen) = (Vec::new(), 0);
    while seen < count {
        let mut line = String::new();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "{word}: output ended at {seen}");
        seen += usize::from(line.contains(word));
        if let Some(pid) = pid_of(&line) {
            found.push((line, pid));
        }
    }
    found.sort();
    found.into_iter().map(|(_, pid)| pid).collect()
}

pub fn rest_of(mut out: BufReader<ChildStdout>) -> String {
    read_all(&mut out)
}

pub fn pid_of(line: &str) -> Option<u32> {
    line.trim_end().rsplit_once("pid ")?.1.parse().ok()
}

/// The processes that `parent` has started, when there are `count`, without its guardian.
pub fn children_of(parent: u32, count: usize) -> Vec<u32> {
    let list = format!("/proc/{parent}/task/{parent}/children");
    loop {
        let text = fs::read_to_string(&list).expect("the launcher runs");
        let mut pids: Vec<u32> = text.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        pids.retain(|pid| !is_guardian(*pid));
        if pids.len() == count {
            return pids;
        }
        thread::yield_now();
    }
}

/// The guardian of a launcher.
pub fn guardian_of(launcher: u32) -> u32 {
    let list = format!("/proc/{launcher}/task/{launcher}/children");
    let text = fs::read_to_string(list).expect("the launcher runs");
    let mut pids = text.split_whitespace().map(|pid| pid.parse().unwrap());
    pids.find(|pid| is_guardian(*pid)).expect("the launcher has a guardian")
}

fn is_guardian(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "job-guardian\n")
}

pub fn send(pid: u32, signal: i32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// Waits until the processes are gone; a zombie, which only its new parent can reap, counts as
/// gone.
#[track_caller]
pub fn gone(pids: &[u32]) {
    let start = Instant::now();
    for pid in pids {
        while is_running(*pid) {
            assert!(start.elapsed() < Duration::from_secs(60), "process {pid} is left");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

pub fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

/// The names in the places where shared memory, temporary files and sockets usually have them.
fn names() -> HashSet<String> {
    let mut names = HashSet::new();
    for folder in ["/dev/shm".into(), std::env::temp_dir()] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            names.insert(entry.path().to_string_lossy().into_owned());
        }
    }
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    names.extend(sockets.lines().filter_map(|line| line.split_whitespace().nth(7)).map(Into::into));
    names
}

/// Checks that of these processes, which have ended, no name is left that was not there `before`.
/// Other tests, which run at the same time, have names there too: a name belongs to the process
/// whose pid is a part of it.
#[track_caller]
fn assert_nothing_named(pids: &[u32], before: &HashSet<String>) {
    let of_them = |name: &&String| {
        let mut numbers = name.split(|c: char| !c.is_ascii_digit());
        name.contains("tsumugi") && numbers.any(|n| n.parse().is_ok_and(|n| pids.contains(&n)))
    };
    let now = names();
    let left: Vec<_> = now.difference(before).filter(of_them).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}
