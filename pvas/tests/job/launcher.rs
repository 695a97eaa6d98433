//! The launcher that the cases start: partitions by the environment, limits on request.

use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Launch;
use tsumugi_pvas::launch::{EndReport, Superior};

/// The options that a case gives to a launcher.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Ranks.
    pub size: u32,
    /// The role of the ranks; a path is a program that is not a rank.
    pub role: &'static str,
    /// Whether output is labelled.
    pub label: bool,
    /// `RLIMIT_AS`, `RLIMIT_FSIZE`.
    pub limits: (Option<u64>, Option<u64>),
    /// The environment variables for the launcher.
    pub env: &'static [(&'static str, &'static str)],
}

impl Ask {
    /// `size` ranks that play `role`.
    pub fn new(size: u32, role: &'static str) -> Self {
        Self { size, role, ..Self::default() }
    }

    /// The command that starts the launcher; output is captured.
    pub fn command(&self) -> Command {
        let limit = |limit: Option<u64>| limit.map_or("-".to_owned(), |bytes| bytes.to_string());
        let mut command = Command::new(own_path());
        command
            .args(["--launch", &self.size.to_string(), if self.label { "label" } else { "-" }])
            .args([limit(self.limits.0), limit(self.limits.1), self.role.to_owned()])
            .envs(self.env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// This binary.
pub fn own_path() -> PathBuf {
    std::env::current_exe().expect("a test knows its own path")
}

/// Runs the launcher.
pub fn run(args: &[String]) -> ExitCode {
    let [size, label, address_space, file, role] = args else { panic!("{args:?}") };
    set_limit(libc::RLIMIT_AS, address_space);
    set_limit(libc::RLIMIT_FSIZE, file);
    let launch = Launch::new(size.parse().unwrap()).label(label == "label").forward_signals(true);
    let launch = if role.starts_with('/') {
        launch.program(role, ["from", "outside"])
    } else {
        launch.program(own_path(), ["--role", role]).env("TSUMUGI_TEST_GREETING", "hello")
    };
    if *role == "mourners" {
        return run_part(launch.part((0..size.parse().unwrap()).map(Rank)));
    }
    let job = match launch.start() {
        Ok(job) => job,
        Err(error) => {
            eprintln!("launcher: {error}");
            return ExitCode::from(90);
        }
    };
    assert_eq!(job.pids().len(), job.pids().iter().filter(|pid| **pid > 0).count());
    assert!(job.control(Rank(0)).is_alive());
    ExitCode::from(job.wait().unwrap().code() as u8)
}

/// Runs all ranks as a part of a job whose superior sends nothing.
fn run_part(launch: Launch) -> ExitCode {
    let (ends, ended) = mpsc::channel();
    let (deaths, _silent) = io::pipe().unwrap();
    let ends = Box::new(move |end| ends.send(end).unwrap());
    let job = launch.start().unwrap().under(Superior { ends, deaths });
    let code = job.wait().unwrap().code();
    for EndReport { failure, may_have_heard } in ended {
        println!("{failure}: {}", if may_have_heard { "may have heard" } else { "first" });
    }
    ExitCode::from(code as u8)
}

fn set_limit(resource: libc::__rlimit_resource_t, bytes: &str) {
    if let Ok(bytes) = bytes.parse() {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: a plain call.
        assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
    }
}
