//! Launchers that the cases start, whose output they read, and for which they wait.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A launcher that runs.
pub struct Job {
    pub child: Child,
    out: BufReader<std::process::ChildStdout>,
    err: BufReader<std::process::ChildStderr>,
    text: String,
}

/// The exit code of a launcher (a signal is negative), and the output of the launcher and
/// its ranks.
pub struct Done {
    pub code: Option<i32>,
    pub text: String,
}

pub fn run(ranks: u32, role: &str) -> Done {
    start(ranks, role).finish()
}

pub fn run_with(ranks: u32, role: &str, env: &[(&str, &str)]) -> Done {
    start_with(ranks, role, env).finish()
}

/// Runs a job that must succeed.
#[track_caller]
pub fn passes(ranks: u32, role: &str, env: &[(&str, &str)]) -> Done {
    let done = run_with(ranks, role, env);
    assert_eq!(done.code, Some(0), "{ranks} ranks, {env:?}: {}", done.text);
    done
}

pub fn start(ranks: u32, role: &str) -> Job {
    start_with(ranks, role, &[])
}

pub fn start_with(ranks: u32, role: &str, env: &[(&str, &str)]) -> Job {
    start_by(&["--launch", &ranks.to_string(), role], env)
}

/// Starts the program of the ranks without a launcher.
pub fn start_alone(role: &str, env: &[(&str, &str)]) -> Job {
    start_by(&["--role", role], env)
}

fn start_by(words: &[&str], env: &[(&str, &str)]) -> Job {
    let own = std::env::current_exe().expect("a test knows its own path");
    let mut child = Command::new(own)
        .args(words)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a launcher that starts");
    let out = BufReader::new(child.stdout.take().unwrap());
    let err = BufReader::new(child.stderr.take().unwrap());
    Job { child, out, err, text: String::new() }
}

impl Job {
    /// Reads output until `word` has come `count` times; returns the pids of the ranks,
    /// in their order.
    pub fn read_until(&mut self, word: &str, count: usize) -> Vec<u32> {
        while self.text.matches(word).count() < count {
            assert!(self.out.read_line(&mut self.text).unwrap() > 0, "{}", self.text);
        }
        let ranks = self.text.matches(" pid ").count();
        (0..ranks)
            .map(|rank| numbers_after(&self.text, &format!("rank {rank} pid "))[0] as u32)
            .collect()
    }

    pub fn read_errors_until(&mut self, word: &str) -> String {
        let mut text = String::new();
        while !text.contains(word) {
            assert!(self.err.read_line(&mut text).unwrap() > 0, "{text}");
        }
        text
    }

    pub fn finish(mut self) -> Done {
        let late = Instant::now() + Duration::from_secs(300);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > late {
                self.child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.out.read_to_string(&mut self.text).unwrap();
        self.err.read_to_string(&mut self.text).unwrap();
        let code = status.code().or(status.signal().map(|signal| -signal));
        Done { code, text: self.text }
    }
}

pub fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The numbers that follow the occurrences of `word`.
pub fn numbers_after(text: &str, word: &str) -> Vec<u64> {
    text.match_indices(word)
        .map(|(at, _)| {
            let digits = &text[at + word.len()..];
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            digits[..end].parse().unwrap_or_else(|_| panic!("no number after {word}: {text}"))
        })
        .collect()
}
