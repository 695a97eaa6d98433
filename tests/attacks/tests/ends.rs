//! Runs each attack in a process of its own, and checks how it ends.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The expected end of an attack.
#[derive(Clone, Copy)]
enum End {
    /// The interface held: the program prints `held` and exits with 0.
    Held,
    /// The same; in addition, its standard error has each of the first sentences once,
    /// and none of the others.
    Says(&'static [&'static str], &'static [&'static str]),
    /// The process is aborted, with this sentence on its standard error.
    Aborts(&'static str),
}

use End::{Aborts, Held, Says};

macro_rules! ends {
    ($($name:ident: $end:expr,)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), $end);
            }
        )*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

ends! {
    calls_after_the_end: Held,
    jobs_one_after_another: Held,
    messages_of_another_rank: Held,
    messages_waited_for_twice: Held,
    messages_taken_by_another_thread: Held,
    futures_dropped_half_way: Held,
    operations_forgotten: Held,
    operations_dropped_in_flight: Held,
    callbacks_of_every_kind_that_panic: Held,
    callbacks_that_begin_operations: Held,
    operations_without_room: Held,
    forged_addresses: Held,
    forged_global_addresses: Held,
    buffers_of_another_rank: Held,
    buffers_of_an_earlier_job: Held,
    memory_of_another_rank_registered: Held,
    communicators_of_another_rank: Held,
    handlers_that_call_when_dropped: Held,
    handlers_set_when_a_job_ends: Held,
    pages_for_ranks_that_do_not_exist: Held,
    threads_that_wait_when_their_job_ends: Held,
    threads_that_exchange_when_their_job_ends: Held,
    threads_of_a_rank_that_panics: Held,
    more_ranks_than_a_job_has: Held,
    callbacks_that_panic: Held,
    callbacks_that_block: Held,
    wakers_that_panic: Held,
    handlers_that_panic: Held,
    handlers_that_block: Held,
    forge_all_keys: Held,
    forge_rings: Held,
    forge_words_of_a_gather: Held,
    forge_words_of_locks: Held,
    receive_values_of_no_size: Held,
    values_of_any_type: Held,
    more_calls_on_any_type: Held,
    containers_of_any_length: Held,
    channels_of_any_length: Held,
    collectives_of_any_word: Held,
    more_than_there_can_be: Held,
    indices_that_wrap: Held,
    configurations_that_wrap: Held,
    scope_under_an_ending_scheduler: Held,
    scheduler_dropped_in_a_scope_on_it: Held,
    receive_of_a_scope_under_an_ending_scheduler: Held,
    keys_that_are_constants: Held,
    stacks_larger_than_memory: Held,
    lock_handed_to_a_cut_off_ult: Held,
    share_handed_to_a_cut_off_ult: Held,
    permit_handed_to_a_cut_off_ult: Held,
    value_handed_to_a_cut_off_ult: Held,
    notification_handed_to_a_cut_off_ult: Held,
    turn_handed_to_a_cut_off_ult: Held,
    ults_cut_off_after_a_hand_over: Held,
    barrier_of_a_cut_off_ult: Held,
    flag_of_a_cut_off_ult: Held,
    message_for_a_cut_off_ult: Held,
    message_for_a_cut_off_ult_that_polled: Held,
    tags_of_cut_off_ults: Held,
    room_behind_cut_off_ults: Held,
    shared_lock_for_a_cut_off_ult: Held,
    shared_lock_with_operations_of_cut_off_ults: Held,
    shared_lock_for_many_cut_off_ults: Held,
    thread_locals_over_sleeps: Held,
    panics_that_sleep: Held,
    panics_that_sleep_are_reported: Says(
        &["(unwinds) suspends (yield) while it unwinds from a panic\n"],
        &["(innocent) suspends", "(unwinds) suspends (sleep)", "suspends (join)"],
    ),
    panics_that_sleep_are_fatal: Aborts("(unwinds) suspends (yield) while it unwinds from a panic"),
    panics_that_run_a_scheduler: Says(&[], &["suspends ("]),
    guards_over_sleeps: Says(
        &[
            "(holds) suspends (sleep) under the NoSuspend made at tests/attacks/src/suspended.rs:",
            "(holds) suspends (yield) under the NoSuspend made at tests/attacks/src/suspended.rs:",
        ],
        &["(innocent) suspends", "suspends (park)"],
    ),
    guards_over_sleeps_are_fatal:
        Aborts("(holds) suspends (park) under the NoSuspend made at tests/"),
    guards_over_sleeps_in_a_job:
        Says(&["(main) suspends (yield) under the NoSuspend made at tests/"], &[]),
    progress_that_joins: Aborts("a worker panicked outside of any ULT"),
    forks_on_any_stack: Held,
    join_of_itself: Held,
    values_that_sleep_at_the_end: Held,
    builders_of_any_size: Held,
    jobs_in_jobs: Held,
    join_on_a_workers_own_stack: Held,
    scoped_join_on_a_workers_own_stack: Held,
    callback_that_yields: Held,
    scheduler_dropped_on_its_own_ult: Held,
    scheduler_dropped_while_its_ult_unwinds: Aborts("a scheduler cannot end on a ULT of its own"),
}

#[test]
fn each_attack_has_an_end() {
    let listed = String::from_utf8(run("--list").stdout).unwrap();
    let mut listed: Vec<&str> = listed.lines().collect();
    let mut known = NAMES.to_vec();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
}

/// The rows of the table in `src/main.rs` are numbered without gaps, and each row names
/// programs or tests that exist.
#[test]
fn each_row_of_the_table_has_a_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let main = read(&folder.join("src/main.rs"));
    let rows = main.lines().filter_map(|line| line.strip_prefix("//! | "));
    let mut last = 0;
    for row in rows.skip(1) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [numbers, _, programs] = cells[..] else { panic!("{row}: three cells") };
        for number in numbers.split(", ") {
            last += 1;
            assert_eq!(number.parse(), Ok(last), "{row}");
        }
        let names: Vec<&str> = programs.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}: no program");
        for name in names {
            let is_there = match name.split_once(": ") {
                Some((file, test)) => {
                    read(&folder.join("../..").join(file)).contains(&format!("fn {test}("))
                }
                None if name.ends_with(".rs") => {
                    folder.join("tests/compile_fail").join(name).exists()
                }
                None => NAMES.contains(&name),
            };
            assert!(is_there, "{row}: there is no {name}");
        }
    }
    assert_eq!(last, 59);
}

#[test]
fn the_compiler_refuses_these_programs() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}

fn check(name: &str, end: End) {
    let output = run(name);
    let told = String::from_utf8_lossy(&output.stderr);
    match end {
        Held | Says(..) => {
            let held = output.status.success() && output.stdout.ends_with(b"held\n");
            assert!(held, "{name} ended with {}:\n{told}", output.status);
            let Says(once, never) = end else { return };
            let times = |sentence| told.matches(sentence).count();
            once.iter().for_each(|one| assert_eq!(times(*one), 1, "{name}: {one:?} in\n{told}"));
            never.iter().for_each(|one| assert_eq!(times(*one), 0, "{name}: {one:?} in\n{told}"));
        }
        Aborts(sentence) => {
            use std::os::unix::process::ExitStatusExt;
            assert_eq!(output.status.signal(), Some(SIGABRT), "{name}: {}\n{told}", output.status);
            assert!(told.contains(sentence), "{name} says {told:?}, not {sentence:?}");
        }
    }
}

/// Both outputs of a program are read while it runs: otherwise a program that fills a
/// pipe would never end.
#[test]
fn a_program_with_much_output_ends() {
    let mut says = Command::new("sh");
    says.args(["-c", "head -c 200000 /dev/zero >&2; head -c 300000 /dev/zero"]);
    let told = end_of(says, "sh");
    assert_eq!((told.stderr.len(), told.stdout.len()), (200_000, 300_000));
}

fn run(name: &str) -> Output {
    let mut attack = Command::new(env!("CARGO_BIN_EXE_tsumugi-attacks"));
    attack.arg(name);
    end_of(attack, name)
}

/// Runs `command` for at most [`LIMIT`].
fn end_of(mut command: Command, name: &str) -> Output {
    let (stdout, stderr) = (Stdio::piped(), Stdio::piped());
    let child = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().unwrap();
    let id = child.id();
    let (ended, hears) = mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait_with_output().unwrap()));
    hears.recv_timeout(LIMIT).unwrap_or_else(|_| {
        let killed = Command::new("kill").args(["-KILL", &id.to_string()]).status().unwrap();
        let told = hears.recv().unwrap();
        panic!("{name} has not ended ({killed}):\n{}", String::from_utf8_lossy(&told.stderr));
    })
}

/// An attack takes a second or two, but much longer on a crowded machine.
const LIMIT: Duration = Duration::from_secs(120);

const SIGABRT: i32 = 6;
