//! Random programs of two ranks with many threads each, all of which call MPI at the same time.
//! The seeds are those of the simulator's tests: `TSUMUGI_SEED` replays one.

#[allow(dead_code, reason = "this test has one program")]
mod built;

use built::{Built, sources};
use std::process::Command;
use tsumugi_core::sim::{self, Seeds};

#[test]
fn threads_send_and_receive_in_all_modes() {
    run(4, 2_000, 64);
}

#[test]
#[ignore = "takes minutes: by hand, see ci/long.sh"]
fn threads_send_and_receive_for_long() {
    run(100, 20_000, 64);
    run(50, 20_000, 200);
}

/// Runs so many programs, each with so many messages between so many threads of a rank.
fn run(programs: u64, messages: u32, threads: u32) {
    let built = Built::new();
    let sources = sources("threads");
    let program = built.compile(&sources[0]).unwrap_or_else(|reason| panic!("{reason}"));
    sim::check(Seeds::new(programs), |seed| {
        let said = Command::new(&built.command)
            .args(["run", "--timeout", "120s", "-n", "2"])
            .arg(&program)
            .args([seed.to_string(), messages.to_string(), threads.to_string()])
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&said.stderr);
        assert!(
            said.status.success(),
            "{messages} messages, {threads} threads: {said:?}\n{printed}"
        );
    });
}
