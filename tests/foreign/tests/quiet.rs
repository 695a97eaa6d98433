//! The launcher reports a job in which all ranks are quiet. A rank is not quiet while
//! the thread computes that has made its process a rank, only when that thread sleeps.

mod library;

use library::{build, compile};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::{env, fs};
use tsumugi::pvas::Launch;

const SIGTERM: i32 = 15;

#[test]
fn a_thread_that_computes_is_not_a_standstill() {
    let library = build();
    for (program, waits) in [
        ("quiet", "tsumugi_start waits for a message from rank 1 with tag 3"),
        ("acp_quiet", "acp_init waits"),
    ] {
        let program = compile(&library, program, "libtsumugi.so");
        let launched = Command::new(env::current_exe().unwrap())
            .args(["--exact", "is_a_launcher", "--ignored", "--nocapture"])
            .env(PROGRAM, &program)
            .env_remove("TSUMUGI_VERBOSE")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut launcher = Launcher(launched.unwrap());
        let said = BufReader::new(launcher.0.stderr.take().unwrap());
        let mut said = said.lines().map(Result::unwrap);
        let first = said.find(|line| !line.contains("waits")).unwrap_or_default();
        assert_eq!(first, "computed", "{}", program.display());
        // The job stands still for good, and the launcher reports it, with the wait of the
        // program's own thread.
        let second = said.find(|line| !line.contains("waits")).unwrap_or_default();
        assert!(second.contains("all ranks are quiet"), "{}: {second}", program.display());
        let own = format!("the thread that called {waits}");
        assert!(said.any(|line| line.contains(&own)), "{}: no {own:?}", program.display());
        launcher.ask_to_end();
        let end = launcher.0.wait().unwrap();
        assert!(end.signal() == Some(SIGTERM) || end.code() == Some(128 + SIGTERM), "{end}");
    }
}

/// A launcher whose job stands still for good. It is asked to end when the value is
/// dropped, also if the test fails.
struct Launcher(Child);

impl Launcher {
    fn ask_to_end(&self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.ask_to_end();
            let _ = self.0.wait();
        }
    }
}

/// The launcher of the test above, in a process of its own.
#[test]
#[ignore = "a part of another test"]
fn is_a_launcher() {
    let Some(program) = env::var_os(PROGRAM) else { return };
    let program = fs::canonicalize(program).unwrap();
    let words: [&str; 0] = [];
    let job = Launch::new(2).program(program, words).forward_signals(true).start().unwrap();
    std::process::exit(job.wait().unwrap().code());
}

const PROGRAM: &str = "TSUMUGI_TEST_PROGRAM";
