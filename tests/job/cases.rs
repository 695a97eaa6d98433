//! The cases of this test. Each starts a launcher or ranks of its own, and checks their
//! output, their exit codes, and that no process is left.

use crate::foreign::{
    a_death_is_noticed_without_a_launcher, a_rank_that_was_given_up_ends_with_the_reason,
    a_rank_without_memory_meets_others_later, a_start_that_fails_reports_the_reason,
    an_idle_job_on_several_nodes_burns_no_core, arrays_span_nodes, collectives_span_nodes,
    containers_span_nodes, global_memory_spans_nodes, histories_span_nodes,
    homes_answer_other_nodes, locks_span_nodes, operations_between_nodes_allocate_nothing,
    pages_move_between_nodes, programs_span_nodes, ranks_meet_by_name,
    ranks_meet_by_the_variables_of_others, ranks_meet_over_tcp, ranks_of_several_nodes_are_one_job,
    ranks_of_several_nodes_without_a_network_fail_with_the_reason,
    the_network_outlives_a_callback_that_panics,
};
use crate::inside::a_rank_shows_what_its_ults_do;
use crate::launched::{
    is_running, numbers_after, passes, run, run_with, start, start_alone, start_with,
};
use crate::memory_nodes::pages_lie_on_the_memory_node_of_their_rank;
use std::process::Command;
use std::thread;
use std::time::Duration;
use tsumugi::pvas::partition::{Limits, PartitionShape};
use tsumugi_conformance::cases::Case;
use tsumugi_conformance::{Seeded, cases};

/// All cases.
pub const ALL: &[Case] = cases![
    ranks_meet,
    a_program_starts_its_own_ranks,
    a_job_without_a_launcher_ends_as_under_one,
    a_wrong_number_of_ranks_is_refused,
    more_ranks_than_cores,
    a_small_stack_of_the_main_thread_is_enough,
    no_update_is_lost,
    words_have_one_agent,
    a_killed_rank_ends_the_job_and_is_named,
    a_panic_ends_the_job,
    a_panic_of_a_ult_is_returned_to_its_joiner,
    an_early_exit_is_a_failure,
    an_error_of_main_ends_the_job,
    a_stack_overflow_names_the_ult,
    a_stall_is_reported,
    a_standstill_names_the_barrier_and_the_missing_rank,
    a_standstill_names_the_collective_and_the_missing_rank,
    a_rank_shows_what_its_ults_do,
    an_idle_job_burns_no_core,
    workers_keep_to_the_cpuset,
    pages_lie_on_the_memory_node_of_their_rank,
    programs_are_started_from_ults,
    tables_grow_as_the_ledger_lists,
    a_rank_that_computes_answers_calls,
    calls_to_a_killed_rank_end,
    an_unanswered_call_is_reported,
    messages_keep_their_order,
    messages_with_a_killed_rank_end,
    collectives_give_the_results_of_serial_ones,
    collectives_with_a_killed_rank_name_it,
    collectives_span_nodes,
    operations_between_nodes_allocate_nothing,
    buffers_outside_of_partitions_are_copied_by_the_kernel,
    ranks_that_only_read_refuse_puts,
    ranks_meet_over_tcp,
    ranks_meet_by_the_variables_of_others,
    ranks_meet_by_name,
    a_death_is_noticed_without_a_launcher,
    ranks_of_several_nodes_without_a_network_fail_with_the_reason,
    ranks_of_several_nodes_are_one_job,
    the_network_outlives_a_callback_that_panics,
    a_rank_that_was_given_up_ends_with_the_reason,
    global_memory_spans_nodes,
    containers_span_nodes,
    locks_span_nodes,
    pages_move_between_nodes,
    homes_answer_other_nodes,
    a_rank_without_memory_meets_others_later,
    arrays_span_nodes,
    histories_span_nodes,
    programs_span_nodes,
    an_idle_job_on_several_nodes_burns_no_core,
    every_rank_reaches_every_rank,
    global_memory_works_on_all_ranks,
    arrays_are_made_and_freed_while_all_ranks_use_them,
    containers_are_used_by_all_ranks,
    a_thousand_ults_of_each_rank_use_containers,
    locks_are_taken_by_all_ranks,
    pages_move_while_all_ranks_use_them,
    arrays_are_made_copied_and_balanced,
    histories_are_linearizable,
    programs_find_the_known_answers,
    a_rank_that_dies_in_a_program_is_named,
    a_killed_holder_is_named,
    containers_of_a_killed_rank_return_errors,
    pages_of_a_killed_rank_return_errors,
    a_start_that_fails_reports_the_reason,
];

fn ranks_meet() {
    for ranks in [1, 2, 5] {
        passes(ranks, "meet", &[]);
    }
}

fn a_program_starts_its_own_ranks() {
    let done = start_alone("meet", &[("TSUMUGI_RANKS", "3")]).finish();
    assert_eq!(done.code, Some(0), "{}", done.text);
    for rank in 0..3 {
        assert!(done.text.contains(&format!("rank {rank} pid ")), "{}", done.text);
    }
    // A launcher has chosen the number already.
    let done = passes(2, "meet", &[("TSUMUGI_RANKS", "3")]);
    assert_eq!(done.text.matches(" pid ").count(), 2, "{}", done.text);
    // Variables of another launcher are hidden from the program and not from its ranks.
    let env = [("TSUMUGI_RANKS", "2"), ("TSUMUGI_BOOT", "alone"), ("PMI_RANK", "5")];
    let done = start_alone("meet", &env).finish();
    assert_eq!((done.code, done.text.matches(" pid ").count()), (Some(0), 2), "{}", done.text);
}

fn a_job_without_a_launcher_ends_as_under_one() {
    for (role, code, said) in [
        ("error", 7, "tsumugi: rank 2 (pid "),
        ("panic", 101, "(it panicked)"),
        ("early", 1, "exited with code 0 before it had finished"),
    ] {
        let mut job = start_alone(role, &[("TSUMUGI_RANKS", "3")]);
        let pids = job.read_until(" pid ", 3);
        let done = job.finish();
        assert_eq!(done.code, Some(code), "{role}: {}", done.text);
        assert!(done.text.contains(said), "{role}: {}", done.text);
        assert!(!pids.iter().any(|pid| is_running(*pid)), "{role}: a rank is left");
    }
    let mut job = start_alone("stall", &[("TSUMUGI_RANKS", "2")]);
    let report = job.read_errors_until("77");
    assert!(report.contains("quiet"), "{report}");
    // SAFETY: `kill` accesses no memory of this process.
    assert_eq!(unsafe { libc::kill(job.child.id() as i32, libc::SIGTERM) }, 0);
    assert_eq!(job.finish().code, Some(128 + libc::SIGTERM));
}

fn a_wrong_number_of_ranks_is_refused() {
    for ranks in ["0", "-1", "four", "", "5000"] {
        let done = start_alone("meet", &[("TSUMUGI_RANKS", ranks)]).finish();
        assert_eq!(done.code, Some(7), "{ranks}: {}", done.text);
        assert!(done.text.contains("TSUMUGI_RANKS"), "{ranks}: {}", done.text);
        assert!(!done.text.contains(" pid "), "{ranks}: {}", done.text);
    }
}

fn every_rank_reaches_every_rank() {
    for ranks in [1, 3] {
        passes(ranks, "reach", &[]);
    }
    passes(2, "reach", &[("TSUMUGI_PATH", "delegate")]);
}

fn containers_are_used_by_all_ranks() {
    for ranks in [2, 4] {
        passes(ranks, "containers", &[]);
    }
}

fn a_thousand_ults_of_each_rank_use_containers() {
    passes(2, "containers-crowd", &[]);
}

fn locks_are_taken_by_all_ranks() {
    for ranks in [2, 4] {
        passes(ranks, "locks", &[]);
    }
    passes(3, "locks-short", &[("TSUMUGI_PATH", "offload")]);
}

fn pages_move_while_all_ranks_use_them() {
    for ranks in [1, 2, 4] {
        let done = passes(ranks, "pages", &[]);
        assert!(done.text.contains(" before, 0.000 after"), "{}", done.text);
    }
    passes(3, "pages-short", &[("TSUMUGI_PATH", "offload")]);
}

fn arrays_are_made_copied_and_balanced() {
    for ranks in [1, 2, 4] {
        passes(ranks, "moving", &[]);
    }
}

fn histories_are_linearizable() {
    for ranks in [2, 4] {
        let done = passes(ranks, "histories", &[]);
        assert!(done.text.contains("15 histories, "), "{}", done.text);
    }
    passes(3, "histories-short", &[("TSUMUGI_PATH", "offload")]);
}

fn programs_find_the_known_answers() {
    for ranks in [1, 2, 4] {
        let done = passes(ranks, "programs", &[]);
        assert!(done.text.contains("all programs have found"), "{}", done.text);
    }
    passes(3, "programs-short", &[("TSUMUGI_PATH", "offload")]);
}

fn a_rank_that_dies_in_a_program_is_named() {
    let mut seeded = Seeded(19);
    for victim in [0, 1, 3] {
        let mut job = start(4, "programs-forever");
        let pids = job.read_until("working", 4);
        thread::sleep(Duration::from_micros(seeded.below(300_000)));
        // SAFETY: `kill` accesses no memory of this process.
        assert_eq!(unsafe { libc::kill(pids[victim] as i32, libc::SIGKILL) }, 0);
        let done = job.finish();
        assert_eq!(done.code, Some(128 + libc::SIGKILL), "{}", done.text);
        let named = format!("rank {victim} (pid {}) was killed by signal 9", pids[victim]);
        assert!(done.text.contains(&named), "{named}: {}", done.text);
        assert!(!done.text.contains("panicked"), "{}", done.text);
        assert!(pids.iter().all(|pid| !is_running(*pid)), "{}", done.text);
    }
}

fn a_killed_holder_is_named() {
    let done = run(3, "lock-holder");
    assert_eq!(done.code, Some(128 + libc::SIGABRT), "{}", done.text);
    assert!(done.text.contains("rank 2"), "{}", done.text);
}

fn global_memory_works_on_all_ranks() {
    for ranks in [1, 3] {
        passes(ranks, "global", &[]);
    }
    passes(2, "global", &[("TSUMUGI_PATH", "delegate")]);
}

fn arrays_are_made_and_freed_while_all_ranks_use_them() {
    for ranks in [2, 4] {
        let done = passes(ranks, "churn", &[]);
        assert!(done.text.contains("arrays found"), "{}", done.text);
    }
    for path in ["delegate", "offload"] {
        passes(3, "churn-short", &[("TSUMUGI_PATH", path)]);
    }
}

/// The ranks get the launcher's policy, which the environment does not change.
fn ranks_that_only_read_refuse_puts() {
    let done = passes(3, "readers", &[]);
    assert_eq!(done.text.matches("read and were answered").count(), 3, "{}", done.text);
}

fn more_ranks_than_cores() {
    passes(33, "meet", &[]);
}

/// The program of a rank runs on a stack of its partition, and not on the main thread's.
fn a_small_stack_of_the_main_thread_is_enough() {
    let own = std::env::current_exe().expect("a test knows its own path");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "ulimit -s 256; exec \"$0\" --launch 2 meet"]).arg(own);
    let done = shell.output().expect("there is a shell");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
}

fn no_update_is_lost() {
    passes(3, "updates", &[]);
}

/// Words for which the device is requested have the processors as their agent where there
/// is no device.
fn words_have_one_agent() {
    let done = passes(3, "tally-short", &[]);
    assert_eq!(done.text.matches("updates by Cpu: all there").count(), 6, "{}", done.text);
}

fn messages_keep_their_order() {
    for ranks in [1, 2, 4] {
        passes(ranks, "mixture", &[]);
    }
    for design in ["locked", "two_copy"] {
        passes(3, "mixture", &[("TSUMUGI_MESSAGES", design)]);
    }
    for way in [PUSHED, SPLIT] {
        passes(3, "mixture", way);
    }
}

/// In each round, the launcher names the killed rank, and the other ranks find out and
/// end by themselves.
fn a_killed_rank_ends_the_job_and_is_named() {
    let mut seeded = Seeded(7);
    for victim in [0, 1, 3, 2, 0] {
        let mut job = start_with(4, "waiters", &[LONG_GRACE]);
        let pids = job.read_until("working", 4);
        std::thread::sleep(Duration::from_micros(seeded.below(50_000)));
        let pid = pids[victim];
        // SAFETY: `kill` accesses no memory of this process.
        assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGKILL) }, 0);
        let done = job.finish();
        assert_eq!(done.code, Some(128 + libc::SIGKILL), "{}", done.text);
        let named = format!("rank {victim} (pid {pid}) was killed by signal 9");
        assert!(done.text.contains(&named), "{named}: {}", done.text);
        assert_eq!(ends_of_survivors(&done.text, victim), 3, "{}", done.text);
        assert!(pids.iter().all(|pid| !is_running(*pid)), "{}", done.text);
    }
}

fn a_panic_ends_the_job() {
    let done = run(3, "panic");
    assert_eq!(done.code, Some(101), "{}", done.text);
    let panicked = done.text.lines().any(|line| line.starts_with("rank 2: thread 'main'"));
    assert!(panicked && done.text.contains("the last rank has had enough"), "{}", done.text);
    let lines: Vec<_> = done.text.lines().collect();
    let cause = lines.iter().position(|line| line.starts_with("tsumugi: rank 2 (pid "));
    let cause = cause.unwrap_or_else(|| panic!("{}", done.text));
    // The others wait for the barrier of the end, and blame no other rank.
    let (last, said) = lines[cause + 1..].split_last().expect("the others are counted");
    assert_eq!(*last, "tsumugi: 2 other ranks ended because of it", "{}", done.text);
    assert!(said.iter().all(|line| line.ends_with("rank 2 has died")), "{}", done.text);
}

fn a_panic_of_a_ult_is_returned_to_its_joiner() {
    let done = passes(2, "ult-panic", &[]);
    assert!(done.text.contains("one ULT has had enough"), "{}", done.text);
    assert!(done.text.contains("rank 1: ULT "), "{}", done.text);
}

fn an_early_exit_is_a_failure() {
    let done = run(3, "early");
    assert_eq!(done.code, Some(1), "{}", done.text);
    assert!(done.text.contains("exited with code 0 before it had finished"), "{}", done.text);
}

fn an_error_of_main_ends_the_job() {
    let done = run(3, "error");
    assert_eq!(done.code, Some(7), "{}", done.text);
    assert!(done.text.contains("the last rank gives up"), "{}", done.text);
}

fn a_stack_overflow_names_the_ult() {
    let done = run(2, "overflow");
    assert_ne!(done.code, Some(0), "{}", done.text);
    let named = done.text.lines().any(|line| {
        line.starts_with("rank 1: ULT ")
            && line.contains(" overflowed its stack of 65536 bytes")
            && line.ends_with("TSUMUGI_ULT_STACK_BYTES makes it larger")
    });
    assert!(named, "{}", done.text);
    assert!(done.text.contains("rank 1 (pid "), "{}", done.text);
}

fn a_stall_is_reported() {
    let mut job = start(2, "stall");
    let report = job.read_errors_until("77");
    assert!(report.contains("quiet"), "{report}");
    assert!(report.contains("signal"), "{report}");
    // The launcher reports the stall and does not end the job.
    assert!(job.child.try_wait().unwrap().is_none(), "{report}");
    // SAFETY: `kill` accesses no memory of this process.
    assert_eq!(unsafe { libc::kill(job.child.id() as i32, libc::SIGTERM) }, 0);
    job.finish();
}

fn a_standstill_names_the_barrier_and_the_missing_rank() {
    let mut job = start(3, "stall-barrier");
    let report = job.read_errors_until(" waits for rank ");
    assert!(report.contains("rank 0: ULT ") && report.contains(" waits in barrier 2"), "{report}");
    assert!(report.contains("barrier 2 waits for rank 2\n"), "{report}");
    // SAFETY: `kill` accesses no memory of this process.
    assert_eq!(unsafe { libc::kill(job.child.id() as i32, libc::SIGTERM) }, 0);
    job.finish();
}

/// A blocking collective, one of a part of the ranks, and one that was begun as a value.
fn a_standstill_names_the_collective_and_the_missing_rank() {
    let mut job = start(3, "stall-collectives");
    let report = job.read_errors_until("tsumugi:   broadcast ");
    assert!(report.contains(" waits in allreduce ") && report.contains(", for rank "), "{report}");
    assert!(report.contains("an operation waits in allgather "), "{report}");
    let missing =
        |line: &&str| line.starts_with("tsumugi:   ") && line.contains(" waits for rank 2");
    assert_eq!(report.lines().filter(missing).count(), 3, "{report}");
    // SAFETY: `kill` accesses no memory of this process.
    assert_eq!(unsafe { libc::kill(job.child.id() as i32, libc::SIGTERM) }, 0);
    job.finish();
}

fn an_idle_job_burns_no_core() {
    let done = passes(2, "idle", &[]);
    let used: Vec<u64> = numbers_after(&done.text, "idle ");
    assert_eq!(used.len(), 2, "{}", done.text);
    assert!(used.iter().all(|us| *us < 20_000), "CPU time in 2 s: {used:?} us");
}

/// If there are as many CPUs as workers, each worker is bound to another one of the CPUs
/// that the job may use. If fewer CPUs can be shared evenly, the workers share them.
fn workers_keep_to_the_cpuset() {
    let cpus = tsumugi::affinity::allowed().unwrap();
    let ranks = cpus.len().min(4) as u32;
    let config = [("TSUMUGI_WORKERS", "1")];
    let done = run_with(ranks, "bound", &config);
    for cpu in &cpus[..ranks as usize] {
        assert_eq!(done.text.matches(&format!("keeps to [{cpu}]")).count(), 1, "{}", done.text);
    }
    let last = *cpus.last().unwrap();
    // A process inherits the CPUs of the thread that starts it.
    let narrow = thread::spawn(move || {
        tsumugi::affinity::pin(last).unwrap();
        run(1, "bound")
    });
    let done = narrow.join().unwrap();
    assert!(done.text.contains(&format!("rank 0 keeps to [{last}]")), "{}", done.text);
    let few = cpus[..cpus.len().min(2)].to_vec();
    let of_few = few.clone();
    let shared = thread::spawn(move || {
        tsumugi::affinity::keep_to(&of_few).unwrap();
        run(4, "bound")
    });
    let done = shared.join().unwrap();
    for cpu in &few {
        let count = done.text.matches(&format!("keeps to [{cpu}]")).count();
        assert_eq!(count, 4 / few.len(), "{}", done.text);
    }
}

fn programs_are_started_from_ults() {
    let done = passes(2, "commands", &[]);
    assert_eq!(done.text.matches("survived").count(), 2, "{}", done.text);
}

/// With each further rank of a node, a rank's memory grows at most by what the ledger
/// lists for messages, and the number of mappings by one.
fn tables_grow_as_the_ledger_lists() {
    let most = |ranks, word: &str| {
        let done = passes(ranks, "hold", &[]);
        let numbers = numbers_after(&done.text, word);
        assert_eq!(numbers.len(), ranks as usize, "{}", done.text);
        numbers.into_iter().max().unwrap()
    };
    const MORE: u64 = 16;
    let listed = MORE * node_rank_bytes();
    let (few, many) = (most(2, "holds "), most(2 + MORE as u32, "holds "));
    assert!(many < few + listed + MORE, "{few} bytes held of 2 ranks, {many} of 18");
    let (few, many) = (most(2, "mappings "), most(2 + MORE as u32, "mappings "));
    assert!(many <= few + MORE, "{few} mappings of 2 ranks, {many} of 18");
}

fn node_rank_bytes() -> u64 {
    let config = tsumugi::Config::default();
    let shape =
        PartitionShape::fit(2, &config.space, Limits::default()).expect("a job of two fits");
    tsumugi::Ledger::new(&config.choose(2), &shape).node_rank_bytes()
}

fn a_rank_that_computes_answers_calls() {
    let done = passes(2, "busy", &[]);
    let answered = numbers_after(&done.text, "answered ");
    assert!(answered[0] >= 10, "{}", done.text);
}

fn calls_to_a_killed_rank_end() {
    let mut job = start_with(2, "callers", &[LONG_GRACE]);
    let pids = job.read_until("calling", 2);
    std::thread::sleep(Duration::from_millis(20));
    // SAFETY: `kill` accesses no memory of this process.
    assert_eq!(unsafe { libc::kill(pids[1] as i32, libc::SIGKILL) }, 0);
    let done = job.finish();
    assert_eq!(done.code, Some(128 + libc::SIGKILL), "{}", done.text);
    assert_eq!(done.text.matches("lost 40 calls").count(), 1, "{}", done.text);
}

/// For jobs whose surviving ranks end by themselves after a death: the launcher does not
/// end them before, however busy the machine is.
pub const LONG_GRACE: (&str, &str) = ("TSUMUGI_GRACE_TIMEOUT", "200s");

/// The number of ranks that have ended with an error that another rank has died. At least
/// one of the errors names `victim`; the others may name a survivor that ended earlier, or
/// memory that it has freed.
pub fn ends_of_survivors(text: &str, victim: usize) -> usize {
    let first = format!("rank: rank {victim} has died");
    assert!(text.lines().any(|line| line == first), "{first}: {text}");
    let ends = text.lines().filter_map(|line| line.strip_prefix("rank: rank "));
    let is_lost =
        |end: &&str| end.ends_with(" has died") || end.contains("no region is registered");
    ends.filter(is_lost).count()
}

/// Variables that make long messages go in parts, and late receivers request them.
const PUSHED: &[(&str, &str)] =
    &[("TSUMUGI_STREAM_FROM_BYTES", "20000"), ("TSUMUGI_ASK_FROM_BYTES", "1")];

/// A variable that makes both sides copy long messages.
const SPLIT: &[(&str, &str)] = &[("TSUMUGI_BOTH_FROM_BYTES", "20000")];

fn messages_with_a_killed_rank_end() {
    let mut seeded = Seeded(11);
    for round in 0..9 {
        let way = [[].as_slice(), PUSHED, SPLIT][round % 3];
        let mut job = start_with(3, "exchangers", &[way, &[LONG_GRACE]].concat());
        let pids = job.read_until("working", 3);
        std::thread::sleep(Duration::from_micros(seeded.below(40_000)));
        // SAFETY: `kill` accesses no memory of this process.
        assert_eq!(unsafe { libc::kill(pids[2] as i32, libc::SIGKILL) }, 0);
        let done = job.finish();
        assert_eq!(done.code, Some(128 + libc::SIGKILL), "{}", done.text);
        assert_eq!(done.text.matches("lost 12 exchanges").count(), 2, "{}", done.text);
    }
}

fn collectives_give_the_results_of_serial_ones() {
    for ranks in [1, 2, 5] {
        passes(ranks, "collectives", &[]);
    }
    passes(3, "collectives-short", &[("TSUMUGI_WORKERS", "2")]);
}

/// In each group, also one that the killed rank was not in.
fn collectives_with_a_killed_rank_name_it() {
    let mut seeded = Seeded(12);
    for victim in [2, 0, 3, 1, 2] {
        let mut job = start_with(4, "collectors", &[LONG_GRACE]);
        let pids = job.read_until("working", 4);
        thread::sleep(Duration::from_micros(seeded.below(60_000)));
        // SAFETY: `kill` accesses no memory of this process.
        assert_eq!(unsafe { libc::kill(pids[victim] as i32, libc::SIGKILL) }, 0);
        let done = job.finish();
        assert_eq!(done.code, Some(128 + libc::SIGKILL), "{}", done.text);
        let named = format!("lost rank {victim}");
        assert_eq!(done.text.matches(&named).count(), 3, "{}", done.text);
    }
}

fn buffers_outside_of_partitions_are_copied_by_the_kernel() {
    let from = |bytes: &'static str| [("TSUMUGI_KERNEL_FROM_BYTES", bytes)];
    let counts = |role: &str, bytes: &'static str| {
        let done = passes(3, role, &from(bytes));
        numbers_after(&done.text, "by kernel ")
    };
    // In each round, the kernel copies the messages that are long enough: three whole
    // ones, and three that are cut off.
    let all = if tsumugi::pvas::cma::probe().is_ok() { 20 * (3 + 3) } else { 0 };
    assert_eq!(counts("outside", "20000"), [all; 3]);
    assert_eq!(counts("outside", "4294967295"), [0; 3]);
    assert_eq!(counts("outside-alone", "20000"), [0; 3]);
}

/// The killed rank holds the lock of one vector, waits for it, or does neither; it does
/// not use the other vector.
fn containers_of_a_killed_rank_return_errors() {
    survivors_finish_their_work("holders", 12, "all pushes ended: true", 1);
}

/// The killed rank owns pages, is home to some, and may be moving one.
fn pages_of_a_killed_rank_return_errors() {
    survivors_finish_their_work("owners", 13, "kept its own: true", 2);
}

/// Kills one of three ranks while all work: the two others finish their work, and at least
/// `least` of them print `said`. One of the two may find that the other one has ended by
/// then.
fn survivors_finish_their_work(role: &str, seed: u64, said: &str, least: usize) {
    let all = said.strip_suffix("true").expect("`said` ends with true");
    let mut seeded = Seeded(seed);
    for _ in 0..5 {
        let mut job = start_with(3, role, &[LONG_GRACE]);
        let pids = job.read_until("working", 3);
        std::thread::sleep(Duration::from_micros(seeded.below(20_000)));
        // SAFETY: `kill` accesses no memory of this process.
        assert_eq!(unsafe { libc::kill(pids[2] as i32, libc::SIGKILL) }, 0);
        let done = job.finish();
        assert_eq!(done.code, Some(128 + libc::SIGKILL), "{}", done.text);
        assert!(!done.text.contains("panicked"), "{}", done.text);
        assert_eq!(done.text.matches(all).count(), 2, "{}", done.text);
        assert!(done.text.matches(said).count() >= least, "{}", done.text);
    }
}

fn an_unanswered_call_is_reported() {
    let mut job = start(2, "unanswered");
    let report = job.read_errors_until("waits for the reply of rank 0 to a call of handler 77");
    assert!(report.contains("quiet"), "{report}");
    // SAFETY: `kill` accesses no memory of this process.
    assert_eq!(unsafe { libc::kill(job.child.id() as i32, libc::SIGTERM) }, 0);
    job.finish();
}
