//! Ranks that are started by a script and not by a launcher of tsumugi.

use crate::cases::{LONG_GRACE, ends_of_survivors};
use crate::launched::numbers_after;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tsumugi_conformance::{left_out, port};

/// Ranks meet over TCP by environment variables. They start one after the other, the last
/// rank first.
pub fn ranks_meet_over_tcp() {
    for ranks in [1, 2, 5] {
        let script = Script::start(ranks, "meet", &tcp());
        let (codes, text) = script.finish();
        assert!(codes.iter().all(|code| *code == Some(0)), "{codes:?} {text}");
        let said = text.contains("by rank 0's server (TSUMUGI_RANK)");
        assert_eq!(said, ranks > 1, "{text}");
    }
}

/// Ranks meet by the variables of torchrun, which give the rank, the size and an address.
pub fn ranks_meet_by_the_variables_of_others() {
    let tcp = tcp();
    let (host, port) = tcp[0].1.split_once(':').unwrap();
    let mut script = Script::new(3);
    for rank in 0..3_u32 {
        let torch = [
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", "3".to_owned()),
            ("MASTER_ADDR", host.to_owned()),
            ("MASTER_PORT", port.to_owned()),
        ];
        script.add(rank, "meet", &[&tcp[1..], &torch].concat());
    }
    let (codes, text) = script.finish();
    assert!(codes.iter().all(|code| *code == Some(0)), "{codes:?} {text}");
    assert!(text.contains("by rank 0's server (torchrun)"), "{text}");
}

/// On one node, the ranks meet by the name of the job alone.
pub fn ranks_meet_by_name() {
    let name = format!("job-{}", std::process::id());
    let (codes, text) = Script::start(3, "meet", &[("TSUMUGI_JOB", name)]).finish();
    assert!(codes.iter().all(|code| *code == Some(0)), "{codes:?} {text}");
}

/// When a rank dies, one other rank names it, once; all ranks that wait get an error and
/// end by themselves. A rank that only computes is ended by a signal.
pub fn a_death_is_noticed_without_a_launcher() {
    for victim in [0, 2, 1, 0, 2] {
        let (name, ms) = LONG_GRACE;
        let variables = [&tcp()[..], &[(name, ms.to_owned())]].concat();
        let mut script = Script::start(3, "waiters", &variables);
        script.read_until("working", 3);
        let pid = script.ranks[victim].id();
        script.ranks[victim].kill().unwrap();
        let (codes, text) = script.finish();
        let named = format!("tsumugi: rank {victim} (pid {pid} on ");
        assert!(text.contains(&named), "{named}: {text}");
        assert_eq!(text.matches("ended before it was done").count(), 1, "{text}");
        assert_eq!(ends_of_survivors(&text, victim), 2, "{codes:?} {text}");
        let own = codes.iter().filter(|code| **code == Some(7));
        assert_eq!(own.count(), 2, "{codes:?} {text}");
    }
    let mut script = Script::start(2, "computes", &tcp());
    script.read_until("computing", 2);
    script.ranks[1].kill().unwrap();
    let (codes, text) = script.finish();
    assert_eq!(codes[0], Some(-libc::SIGTERM), "{text}");
}

/// Ranks of several nodes fail with the reason why no network connects them.
pub fn ranks_of_several_nodes_without_a_network_fail_with_the_reason() {
    let mut script = Script::new(2);
    let off = ("TSUMUGI_NETWORK", "off".to_owned());
    for rank in 0..2 {
        let node = ("TSUMUGI_NODE", format!("node {rank}"));
        script.add(rank, "meet", &[&script.tcp[..], &[node, off.clone()]].concat());
    }
    let (codes, text) = script.finish();
    assert!(codes.iter().all(|code| *code == Some(7)), "{codes:?} {text}");
    assert_eq!(text.matches("2 ranks of this job are on 2 nodes").count(), 2, "{text}");
    assert_eq!(text.matches("TSUMUGI_NETWORK is off").count(), 2, "{text}");
    // A device that this machine does not have is named.
    let mut script = Script::new(2);
    let verbs = ("TSUMUGI_NETWORK", "verbs".to_owned());
    let device = ("TSUMUGI_DEVICE", "none-of-that-name".to_owned());
    for rank in 0..2 {
        let node = ("TSUMUGI_NODE", format!("node {rank}"));
        let of_rank = [node, verbs.clone(), device.clone()];
        script.add(rank, "meet", &[&script.tcp[..], &of_rank].concat());
    }
    let (codes, text) = script.finish();
    assert!(codes.iter().all(|code| *code == Some(7)), "{codes:?} {text}");
    assert_eq!(text.matches("none-of-that-name: ").count(), 2, "{text}");
    assert!(text.contains("libibverbs"), "{text}");
}

/// With libfabric, ranks of several nodes are one job; without it, the error says what is
/// missing.
pub fn ranks_of_several_nodes_are_one_job() {
    for sleep in ["called", "looks"] {
        let Some(text) = on_two_nodes(3, "reach", sleep) else { return };
        assert!(text.contains("ranks: 3, on 2 nodes"), "{text}");
    }
}

/// A completion callback panics on the thread that polls the network.
pub fn the_network_outlives_a_callback_that_panics() {
    let Some(text) = on_two_nodes(2, "callback-panics", "called") else { return };
    let told = ": a completion callback panicked: a callback has had enough";
    assert_eq!(text.matches(told).count(), 2, "{text}");
}

pub fn collectives_span_nodes() {
    on_two_nodes(3, "collectives-short", "called");
}

/// Operations as values allocate nothing, also those on a rank of another node.
pub fn operations_between_nodes_allocate_nothing() {
    on_two_nodes(2, "no-allocations", "called");
}

pub fn containers_span_nodes() {
    on_two_nodes(3, "containers", "called");
}

pub fn locks_span_nodes() {
    on_two_nodes(3, "locks-short", "called");
}

pub fn pages_move_between_nodes() {
    on_two_nodes(3, "pages-short", "called");
}

/// The processors of homes answer requests of other nodes if no device does.
pub fn homes_answer_other_nodes() {
    let Some(text) = on_two_nodes(3, "homes", "called") else { return };
    assert_eq!(text.matches(" owns by Cpu: the home served").count(), 2, "{text}");
}

/// Arrays that one rank makes, copies of arrays, and pages that move for balance.
pub fn arrays_span_nodes() {
    on_two_nodes(3, "moving-short", "called");
}

/// The accesses of ranks on several nodes to each element are linearizable.
pub fn histories_span_nodes() {
    on_two_nodes(3, "histories-short", "called");
}

/// A greeting for which a rank has no memory is answered later.
pub fn a_rank_without_memory_meets_others_later() {
    on_two_nodes(2, "poor", "called");
}

pub fn programs_span_nodes() {
    on_two_nodes(3, "programs-short", "called");
}

pub fn global_memory_spans_nodes() {
    on_two_nodes(3, "global", "called");
}

/// The ranks sleep until the network's device wakes them; no thread polls it.
pub fn an_idle_job_on_several_nodes_burns_no_core() {
    let Some(text) = on_two_nodes(2, "idle", "called") else { return };
    let used = numbers_after(&text, "idle ");
    assert_eq!(used.len(), 2, "{text}");
    assert!(used.iter().all(|us| *us < 20_000), "CPU time in 2 s: {used:?} us");
}

/// A rank that is stopped for a short time keeps its place. A rank that is stopped for
/// too long is given up, and ends with a message when it runs again.
pub fn a_rank_that_was_given_up_ends_with_the_reason() {
    let mut script = Script::new(2);
    // The first pause is far below the limit; the second lasts until the rank is given
    // up.
    let short = ("TSUMUGI_SILENCE_TIMEOUT", "2s".to_owned());
    for rank in 0..2 {
        script.add(
            rank,
            "waiters",
            &[&between_nodes(&script, rank)[..], std::slice::from_ref(&short)].concat(),
        );
    }
    if !script.begins("working", 2) {
        return;
    }
    let pid = script.ranks[1].id() as libc::pid_t;
    // SAFETY: `kill` accesses no memory; the child was not waited for, so the pid is its.
    let signal = |signal| assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(300));
    signal(libc::SIGCONT);
    std::thread::sleep(Duration::from_millis(300));
    signal(libc::SIGSTOP);
    script.read_until("rank 1 on ", 1);
    signal(libc::SIGCONT);
    let (codes, text) = script.finish();
    assert!(text.contains("no answer, lost (after 3 s of silence)"), "{text}");
    let told = "tsumugi: rank 1: this rank was given up by rank 0 after 3 s of silence, and ends";
    assert_eq!(text.matches(told).count(), 1, "{codes:?} {text}");
    assert_eq!(codes[1], Some(1), "{text}");
}

/// Runs a job whose last rank is on another node, and whose ranks must all succeed;
/// returns their output. `None` if there is no libfabric.
fn on_two_nodes(size: u32, role: &str, sleep: &str) -> Option<String> {
    let mut script = Script::new(size);
    for rank in 0..size {
        let sleep = ("TSUMUGI_NETWORK_SLEEP", sleep.to_owned());
        script.add(rank, role, &[&between_nodes(&script, rank)[..], &[sleep]].concat());
    }
    let (codes, text) = script.finish();
    if text.contains("this machine has no") {
        left_out(&format!("the job {role}"), "this machine has no libfabric", "ci/ofi.sh");
        assert!(codes.iter().all(|code| *code == Some(7)), "{codes:?} {text}");
        return None;
    }
    assert!(codes.iter().all(|code| *code == Some(0)), "{codes:?} {text}");
    Some(text)
}

/// The variables of a rank of a job whose last rank is on another node.
fn between_nodes(script: &Script, rank: u32) -> Vec<Variable> {
    let node = ("TSUMUGI_NODE", format!("node {}", (rank + 1) / script.size));
    let here = ("TSUMUGI_INTERFACE", "127.0.0.1".to_owned());
    let tcp = ("TSUMUGI_PROVIDER", "tcp;ofi_rxm".to_owned());
    [&script.tcp[..], &[node, here, tcp]].concat()
}

/// A start fails with the reason if a rank does not come, and if the secret is too short.
pub fn a_start_that_fails_reports_the_reason() {
    let mut script = Script::new(2);
    let soon = ("TSUMUGI_BOOT_TIMEOUT", "1s".to_owned());
    script.add(0, "meet", &[&script.tcp[..], &[soon]].concat());
    let (codes, text) = script.finish();
    assert_eq!(codes, [Some(7)], "{text}");
    assert!(text.contains("rank 1 did not arrive within the time limit"), "{text}");
    let mut script = Script::new(2);
    script.tcp[1].1 = "short".to_owned();
    script.add(0, "meet", &script.tcp.clone());
    let (codes, text) = script.finish();
    assert_eq!(codes, [Some(7)], "{text}");
    assert!(text.contains("TSUMUGI_SECRET"), "{text}");
}

type Variable = (&'static str, String);

/// The ranks of a job, which write to one pipe.
struct Script {
    size: u32,
    ranks: Vec<Child>,
    out: BufReader<PipeReader>,
    writer: Option<std::io::PipeWriter>,
    text: String,
    tcp: Vec<Variable>,
}

fn tcp() -> Vec<Variable> {
    vec![
        ("TSUMUGI_MASTER", port::reserved().unwrap().to_string()),
        ("TSUMUGI_SECRET", "the secret of this test's job".to_owned()),
        ("TSUMUGI_VERBOSE", "on".to_owned()),
    ]
}

impl Script {
    fn new(size: u32) -> Self {
        let (out, writer) = std::io::pipe().unwrap();
        let (out, writer) = (BufReader::new(out), Some(writer));
        Self { size, ranks: Vec::new(), out, writer, text: String::new(), tcp: tcp() }
    }

    fn start(size: u32, role: &str, variables: &[Variable]) -> Self {
        let mut script = Self::new(size);
        (0..size).rev().for_each(|rank| script.add(rank, role, variables));
        script.ranks.reverse();
        script
    }

    fn add(&mut self, rank: u32, role: &str, variables: &[Variable]) {
        let own = std::env::current_exe().expect("a test knows its own path");
        let writer = self.writer.as_ref().unwrap();
        let child = Command::new(own)
            .args(["--role", role])
            .env("TSUMUGI_RANK", rank.to_string())
            .env("TSUMUGI_SIZE", self.size.to_string())
            .env("TSUMUGI_HEAP_BYTES", (1_u64 << 30).to_string())
            .env("TSUMUGI_STACK_BYTES", (2_u64 << 30).to_string())
            .envs(variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(writer.try_clone().unwrap())
            .stderr(writer.try_clone().unwrap())
            .spawn();
        self.ranks.push(child.expect("a rank that starts"));
    }

    fn read_until(&mut self, word: &str, count: usize) {
        assert!(self.comes(word, count), "{}", self.text);
    }

    /// Reads output until `word` has come `count` times; returns whether it has, before
    /// the end of the output.
    fn comes(&mut self, word: &str, count: usize) -> bool {
        self.writer = None;
        while self.text.matches(word).count() < count {
            if self.out.read_line(&mut self.text).unwrap() == 0 {
                return false;
            }
        }
        true
    }

    /// The same for ranks of several nodes; leaves the test out where there is no
    /// libfabric.
    fn begins(&mut self, word: &str, count: usize) -> bool {
        let has_begun = self.comes(word, count);
        if !has_begun {
            assert!(self.text.contains("this machine has no"), "{}", self.text);
            left_out("a job of two nodes", "this machine has no libfabric", "ci/ofi.sh");
        }
        has_begun
    }

    /// Waits for all ranks. Returns their exit codes (signals are negative), and the
    /// whole output.
    fn finish(mut self) -> (Vec<Option<i32>>, String) {
        self.writer = None;
        let late = Instant::now() + Duration::from_secs(300);
        let mut codes = Vec::new();
        for rank in &mut self.ranks {
            let status = loop {
                if let Some(status) = rank.try_wait().unwrap() {
                    break status;
                }
                if Instant::now() > late {
                    rank.kill().unwrap();
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            codes.push(status.code().or(status.signal().map(|signal| -signal)));
        }
        self.out.read_to_string(&mut self.text).unwrap();
        (codes, self.text)
    }
}
