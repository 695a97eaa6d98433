//! The cases. Each starts a launcher, of which nothing is left afterwards.

use super::driver::*;
use super::launcher::{Ask, own_path};
use std::fs;
use std::io::{BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_conformance::cases::Case;
use tsumugi_conformance::{cases, left_out};

/// All cases.
pub const ALL: &[Case] = cases![
    ranks_meet,
    one_rank_is_a_job,
    more_ranks_than_cores,
    a_program_that_is_not_a_rank,
    output_is_labelled,
    stdin_goes_to_rank_0,
    bad_addresses_of_a_peer_are_errors,
    a_notified_put_wakes_a_peer,
    a_death_wakes_a_sleeper,
    a_process_is_a_rank_once,
    descriptors_are_closed_after_attach,
    memory_is_kept_from_dumps_and_children,
    a_killed_rank_ends_the_job,
    ranks_that_ignore_sigterm_are_killed,
    a_death_ends_the_first_barrier,
    an_early_exit_is_a_failure,
    a_panic_is_a_failure,
    the_exit_code_is_passed_on,
    a_failure_after_the_end_kills_no_rank,
    the_first_death_is_reported_first,
    signals_are_passed_on,
    a_second_interrupt_kills,
    ranks_die_with_their_launcher,
    processes_that_ranks_started_are_killed,
    a_killed_launcher_leaves_no_process,
    a_guardian_holds_nothing_open,
    a_low_address_space_limit,
    a_low_file_size_limit,
    a_program_that_is_missing,
    a_missing_dev_null_is_named,
    a_rank_without_its_launcher,
    a_quiet_job_is_reported,
    partitions_lie_where_the_user_says,
    a_taken_base_names_its_user,
    pages_come_before_their_first_use,
    huge_pages_are_requested,
    a_pool_that_is_too_small_is_an_error,
    exact_sizes_under_ulimit,
    peers_memory_can_be_read_only,
    a_raw_store_to_read_only_memory_faults,
    memory_outside_of_partitions_is_copied,
    plain_processes_meet,
    a_rank_that_never_starts_is_named,
    ranks_of_other_nodes_are_left_alone,
];

fn ranks_meet() {
    let done = run(&Ask::new(3, "hello"));
    done.expect(0, &["hello from 0 of 3", "hello from 1 of 3", "hello from 2 of 3"]);
    assert!(done.err.contains("err 2"), "{done:?}");
}

fn one_rank_is_a_job() {
    run(&Ask::new(1, "ring")).expect(0, &["sum agrees"]);
}

fn more_ranks_than_cores() {
    let done = run(&Ask::new(33, "ring"));
    assert_eq!(done.out.matches("sum agrees").count(), 33, "{done:?}");
    done.expect(0, &[]);
}

fn a_program_that_is_not_a_rank() {
    let done = run(&Ask::new(2, "/bin/echo"));
    done.expect(0, &["from outside\nfrom outside"]);
    assert_eq!(done.err, "");
    run(&Ask::new(2, "/bin/false")).expect(1, &[]);
}

fn output_is_labelled() {
    let done = run(&Ask { label: true, ..Ask::new(3, "hello") });
    done.expect(0, &["[0] hello from 0 of 3", "[1] hello", "[2] hello"]);
    assert!(done.err.contains("[1] err 1"), "{done:?}");
    assert!(done.out.lines().all(|line| line.starts_with('[')), "{done:?}");
}

fn stdin_goes_to_rank_0() {
    let ask = Ask::new(3, "stdin");
    let mut launcher = ask.command().stdin(Stdio::piped()).spawn().unwrap();
    launcher.stdin.take().unwrap().write_all(b"silk\nthread").unwrap();
    let done = finish(launcher);
    done.expect(0, &["0 read \"silk\\nthread\"", "1 read \"\"", "2 read \"\""]);
}

fn bad_addresses_of_a_peer_are_errors() {
    run(&Ask::new(2, "direct")).expect(0, &["all as it should be"]);
}

fn a_notified_put_wakes_a_peer() {
    let done = run(&Ask::new(3, "token"));
    assert_eq!(done.out.matches("the token came").count(), 3, "{done:?}");
    done.expect(0, &[]);
}

fn a_death_wakes_a_sleeper() {
    let done = run(&Ask { env: LONG_GRACE, ..Ask::new(2, "bereaved") });
    done.expect(128 + libc::SIGABRT, &["woken by a death"]);
    assert!(done.err.contains("rank 1 (pid "), "{done:?}");
}

fn a_process_is_a_rank_once() {
    run(&Ask::new(1, "twice")).expect(
        0,
        &["this process is local rank 0 already, or was it: a process is a rank at most once"],
    );
}

fn descriptors_are_closed_after_attach() {
    let (mut launcher, mut out) = start(&Ask::new(2, "signals"));
    let pids = pids_until(&mut out, "ready", 2);
    for pid in &pids {
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            assert!(!target.to_string_lossy().contains("memfd"), "{pid}: {target:?}");
        }
    }
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    gone(&pids);
}

fn memory_is_kept_from_dumps_and_children() {
    run(&Ask::new(2, "advice")).expect(0, &["advice is taken"]);
}

/// A rank is killed at many moments of its life: before it has attached, in its first barrier,
/// while it communicates. Each time it is named, and the other ranks learn of it and end by
/// themselves.
fn a_killed_rank_ends_the_job() {
    for (step, delay_us) in [0, 300, 700, 1000, 1500, 2500, 5000, 20_000].into_iter().enumerate() {
        let victim = step % 3;
        let ask = Ask { env: LONG_GRACE, ..Ask::new(3, "listening") };
        let mut launcher = ask.command().spawn().unwrap();
        let pids = children_of(launcher.id(), 3);
        thread::sleep(Duration::from_micros(delay_us));
        send(pids[victim], libc::SIGKILL);
        let done = finish_with(&mut launcher, None);
        done.expect(128 + libc::SIGKILL, &[]);
        let message = format!("rank {victim} (pid {}) was killed by signal 9", pids[victim]);
        assert!(done.err.contains(&message), "{delay_us} us: {done:?}");
        assert_eq!(done.out.matches("heard").count(), 2, "{delay_us} us: {done:?}");
        gone(&pids);
    }
    let (launcher, mut out) = start(&Ask { env: LONG_GRACE, ..Ask::new(3, "listening") });
    let pids = pids_until(&mut out, "talking", 3);
    send(pids[1], libc::SIGKILL);
    let heard = rest_of(out);
    finish(launcher).expect(128 + libc::SIGKILL, &[]);
    gone(&pids);
    // The second rank that learns of it may also learn of the end of the first.
    assert_eq!(heard.matches("is lost").count(), 2, "{heard}");
    assert!(heard.contains("heard that rank 1 is lost"), "{heard}");
}

/// The ranks are killed after their grace period, and not before.
fn ranks_that_ignore_sigterm_are_killed() {
    let grace = &[("TSUMUGI_GRACE_TIMEOUT", "500ms")];
    let (launcher, mut out) = start(&Ask { env: grace, ..Ask::new(2, "deaf") });
    let pids = pids_until(&mut out, "pid", 2);
    let died = Instant::now();
    send(pids[0], libc::SIGABRT);
    // The other rank ignores SIGTERM and never ends by itself.
    let done = finish(launcher);
    done.expect(128 + libc::SIGABRT, &[]);
    assert!(done.err.contains("signal 6 (SIGABRT)"), "{done:?}");
    assert!(died.elapsed() >= Duration::from_millis(500 + 700), "the rank was killed too soon");
    gone(&pids);
}

fn a_death_ends_the_first_barrier() {
    let done = run(&Ask { env: LONG_GRACE, ..Ask::new(4, "barrier") });
    done.expect(5, &[]);
    assert!(done.err.contains("rank 1 (pid "), "{done:?}");
    assert!(done.err.contains("exited with code 5"), "{done:?}");
    assert_eq!(done.out.matches("barrier ended").count(), 3, "{done:?}");
    assert!(done.out.contains("barrier ended: rank 1 is lost"), "{done:?}");
}

/// For jobs whose other ranks end by themselves when they have learned of a death: on however busy
/// a machine, no rank is ended before.
const LONG_GRACE: &[(&str, &str)] = &[("TSUMUGI_GRACE_TIMEOUT", "100s")];

fn an_early_exit_is_a_failure() {
    let done = run(&Ask::new(3, "early"));
    done.expect(1, &[]);
    assert!(done.err.contains("rank 1 (pid "), "{done:?}");
    assert!(done.err.contains("exited with code 0 before it had finished"), "{done:?}");
}

fn a_panic_is_a_failure() {
    let done = run(&Ask::new(3, "panic"));
    done.expect(101, &[]);
    assert!(done.err.contains("rank 1 has had enough"), "{done:?}");
    assert!(done.err.contains("exited with code 101 (it panicked)"), "{done:?}");
}

fn the_exit_code_is_passed_on() {
    run(&Ask::new(3, "code")).expect(3, &[]);
}

fn a_failure_after_the_end_kills_no_rank() {
    let done = run(&Ask::new(3, "late-code"));
    assert_eq!(done.out.matches("ended in peace").count(), 2, "{done:?}");
    done.expect(6, &[]);
}

/// The first death is reported first, although both ends are seen in one look.
fn the_first_death_is_reported_first() {
    let (launcher, mut out) = start(&Ask::new(3, "mourners"));
    let pids = pids_until(&mut out, "ready", 3);
    send(launcher.id(), libc::SIGSTOP);
    send(pids[1], libc::SIGUSR2);
    gone(&pids);
    send(launcher.id(), libc::SIGCONT);
    let rest = rest_of(out);
    finish(launcher).expect(3, &[]);
    let told: Vec<&str> = rest.lines().collect();
    assert_eq!(told.len(), 3, "{rest}");
    assert_eq!(told[0], format!("rank 1 (pid {}) exited with code 3: first", pids[1]));
    for line in &told[1..] {
        assert!(line.ends_with(" exited with code 7: may have heard"), "{rest}");
    }
}

fn signals_are_passed_on() {
    let (launcher, mut out) = start(&Ask::new(2, "signals"));
    pids_until(&mut out, "ready", 2);
    send(launcher.id(), libc::SIGUSR1);
    send(launcher.id(), libc::SIGTERM);
    let rest = rest_of(out);
    let done = finish(launcher);
    done.expect(0, &[]);
    assert!(rest.contains("0 caught both") && rest.contains("1 caught both"), "{rest}");
}

fn a_second_interrupt_kills() {
    let (mut launcher, mut out) = start(&Ask::new(2, "signals"));
    let pids = pids_until(&mut out, "ready", 2);
    send(launcher.id(), libc::SIGINT);
    thread::sleep(Duration::from_millis(100));
    assert!(pids.iter().all(|pid| is_running(*pid)), "ranks ignore the first");
    // Until the launcher has seen two signals: a signal that arrives while another is pending is
    // lost.
    while launcher.try_wait().unwrap().is_none() {
        send(launcher.id(), libc::SIGINT);
        thread::sleep(Duration::from_millis(20));
    }
    finish(launcher).expect(128 + libc::SIGKILL, &[]);
    gone(&pids);
}

fn ranks_die_with_their_launcher() {
    let (mut launcher, mut out) = start(&Ask::new(3, "deaf"));
    let pids = pids_until(&mut out, "pid", 3);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    gone(&pids);
}

fn processes_that_ranks_started_are_killed() {
    let done = run(&Ask::new(2, "grandchild"));
    done.expect(0, &[]);
    let pids: Vec<u32> = done.out.lines().filter_map(pid_of).collect();
    assert_eq!(pids.len(), 4, "{done:?}");
    gone(&pids);
}

/// Processes that ranks started are killed, too, in sessions of their own, and so is a job that a
/// rank started, with its guardian.
fn a_killed_launcher_leaves_no_process() {
    let (mut launcher, mut out) = start(&Ask::new(2, "nested"));
    let mut pids = pids_until(&mut out, "pid", 6);
    pids.push(guardian_of(launcher.id()));
    send(launcher.id(), libc::SIGKILL);
    launcher.wait().unwrap();
    gone(&pids);
    // The inner guardian has the mark of the outer job, and standard output.
    rest_of(out);
}

/// A launcher that is stopped by a signal to its terminal's group, while its guardian is not.
fn a_guardian_holds_nothing_open() {
    let mut command = Ask::new(1, "deaf").command();
    let mut launcher = command.process_group(0).spawn().unwrap();
    let mut out = BufReader::new(launcher.stdout.take().unwrap());
    let mut pids = pids_until(&mut out, "pid", 1);
    let guardian = guardian_of(launcher.id());
    let held: Vec<_> = fs::read_dir(format!("/proc/{guardian}/fd"))
        .unwrap()
        .map(|entry| fs::read_link(entry.unwrap().path()).unwrap())
        .collect();
    let [held] = &held[..] else { panic!("{held:?}") };
    assert!(held.to_string_lossy().contains("pid"), "{held:?}");
    // SAFETY: a plain call on a group of this case's own.
    assert_eq!(unsafe { libc::killpg(launcher.id() as libc::pid_t, libc::SIGKILL) }, 0);
    launcher.wait().unwrap();
    pids.push(guardian);
    gone(&pids);
}

fn a_low_address_space_limit() {
    if has_shadow() {
        return;
    }
    let limited = |limit| Ask { limits: (Some(limit), None), ..Ask::new(4, "ring") };
    run(&limited(2 << 30)).expect(0, &["sum agrees"]);
    let done = run(&limited(512 << 20));
    done.expect(90, &[]);
    assert!(done.err.contains("RLIMIT_AS (ulimit -v) is 536870912 bytes"), "{done:?}");
}

fn a_low_file_size_limit() {
    let limited = |limit| Ask { limits: (None, Some(limit)), ..Ask::new(2, "ring") };
    run(&limited(256 << 20)).expect(0, &["sum agrees"]);
    let done = run(&limited(16 << 20));
    done.expect(90, &[]);
    assert!(done.err.contains("RLIMIT_FSIZE (ulimit -f) is 16777216 bytes"), "{done:?}");
}

fn a_program_that_is_missing() {
    let done = run(&Ask::new(2, "/no/such/program"));
    done.expect(90, &[]);
    assert!(done.err.contains("starting /no/such/program as rank 0: No such file"), "{done:?}");
}

/// The program exists, but the input of its ranks does not.
fn a_missing_dev_null_is_named() {
    let apart = |script: &str| {
        let plain = Ask::new(2, "hello").command();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(plain.get_program());
        command.args(plain.get_args()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map(finish)
    };
    let Ok(Done { code: Some(0), .. }) = apart("mount -t tmpfs none /dev") else {
        let why = "this user may make no mount namespaces";
        left_out("a system without /dev/null", why, "cargo test as root");
        return;
    };
    let done = apart("mount -t tmpfs none /dev && exec \"$0\" \"$@\"").unwrap();
    done.expect(90, &[]);
    let said = "launcher: opening /dev/null, the input of ranks: No such file";
    assert!(done.err.contains(said), "{done:?}");
}

fn a_rank_without_its_launcher() {
    let role = |vars: &[(&str, &str)]| {
        let mut command = Command::new(own_path());
        command.args(["--role", "hello"]).envs(vars.iter().copied());
        Done::of(command.output().unwrap())
    };
    role(&[]).expect(92, &[]);
    let shape = ("TSUMUGI_PVAS_SHAPE", "200000000000,10000,1000000,4000000,1000000000");
    let (rank, size) = (("TSUMUGI_RANK", "0"), ("TSUMUGI_SIZE", "1"));
    for (vars, message) in [
        (&[("TSUMUGI_PVAS_FDS", "77")][..], "TSUMUGI_RANK is not"),
        (&[("TSUMUGI_PVAS_FDS", "77"), rank, size, shape], "descriptor 77"),
        (
            &[("TSUMUGI_PVAS_FDS", "7,8"), rank, size, shape],
            "rank 0 has 2 memory files: a job of 1 ranks",
        ),
        (
            &[("TSUMUGI_PVAS_FDS", "77"), ("TSUMUGI_RANK", "first"), size, shape],
            "TSUMUGI_RANK=\"first\" is not a number",
        ),
        (
            &[("TSUMUGI_PVAS_FDS", "77"), rank, size, ("TSUMUGI_PVAS_SHAPE", "round")],
            "TSUMUGI_PVAS_SHAPE=\"round\"",
        ),
    ] {
        let done = role(vars);
        done.expect(91, &[]);
        assert!(done.err.contains(message), "{message}: {done:?}");
    }
}

fn a_quiet_job_is_reported() {
    let done = run(&Ask::new(2, "quiet"));
    done.expect(0, &[]);
    assert_eq!(done.err.matches("all ranks are quiet").count(), 1, "{done:?}");
    assert!(done.err.contains("rank 1: ULT 17: signal at 0x10, wanted 5"), "{done:?}");
}

fn partitions_lie_where_the_user_says() {
    for (base, name) in [("0x3000_0000_0000", "300000000000"), ("0x10_0000_0000", "1000000000")] {
        if base == "0x10_0000_0000" && has_shadow() {
            continue;
        }
        let ask = Ask { env: &[("TSUMUGI_HEAP_BYTES", "0x4000000")], ..Ask::new(2, "base") };
        let mut command = ask.command();
        let done = finish(command.env("TSUMUGI_PVAS_BASE", base).spawn().unwrap());
        done.expect(0, &[&format!("0 of 2 at 0x{name}"), "1 of 2", "a word came across"]);
    }
    let bad = |base: &'static str| {
        let mut command = Ask::new(2, "base").command();
        finish(command.env("TSUMUGI_PVAS_BASE", base).spawn().unwrap())
    };
    assert!(bad("0x3000_0000_1000").err.contains("not a multiple of 0x200000"));
    assert!(bad("0x4fff_0000_0000").err.contains("end above 0x500000000000"));
}

/// Whether AddressSanitizer is in this process: its shadow leaves no room for low partitions and
/// for limits, and it catches faults itself.
fn has_shadow() -> bool {
    fs::read_to_string("/proc/self/maps").unwrap().contains("\n8fff7000-")
}

fn a_taken_base_names_its_user() {
    let env = &[
        ("TSUMUGI_PVAS_BASE", "0x3000_0000_0000"),
        ("TSUMUGI_TEST_SQUAT", "0x300000200000"), // by the rank, before it attaches
    ];
    let done = run(&Ask { env, ..Ask::new(1, "base") });
    done.expect(91, &[]);
    for said in ["at 0x300000000000", "File exists", "lies at 0x300000200000-0x300000201000"] {
        assert!(done.err.contains(said), "{said}: {done:?}");
    }
    assert!(done.err.contains("TSUMUGI_PVAS_BASE moves the partitions"), "{done:?}");
}

/// With small pages, which are counted one by one.
fn pages_come_before_their_first_use() {
    let said = |policy| {
        let mut command = Ask::new(2, "populate").command();
        command.env("TSUMUGI_HUGE_PAGES", "none").env("TSUMUGI_POPULATE", policy);
        finish(command.spawn().unwrap())
    };
    said("none").expect(0, &["populated as None says"]);
    said("own").expect(0, &["populated as Own says"]);
    said("peers").expect(0, &["populated as Peers says"]);
}

fn huge_pages_are_requested() {
    run(&Ask::new(2, "huge")).expect(0, &["asked for", "as the system allows"]);
    let none = &[("TSUMUGI_HUGE_PAGES", "none")];
    run(&Ask { env: none, ..Ask::new(2, "huge") }).expect(0, &["not asked for"]);
}

/// No pool has 62 GiB; a pool of 160 MiB is used where it exists.
fn a_pool_that_is_too_small_is_an_error() {
    let done = run(&Ask { env: &[("TSUMUGI_HUGE_PAGES", "reserved")], ..Ask::new(2, "huge") });
    done.expect(90, &[]);
    for said in ["huge pages are free (vm.nr_hugepages)", "are 66571993088", "TSUMUGI_HEAP_BYTES"] {
        assert!(done.err.contains(said), "{said}: {done:?}");
    }
    let small = &[
        ("TSUMUGI_HUGE_PAGES", "reserved"),
        ("TSUMUGI_HEAP_BYTES", "0x4000000"),
        ("TSUMUGI_EXPOSED_BYTES", "0x1000000"),
    ];
    if tsumugi_pvas::space::limits().huge_page_bytes >= 160 << 20 {
        let done = run(&Ask { env: small, ..Ask::new(2, "huge") });
        done.expect(0, &["its heap is of huge pages"]);
    }
}

/// Partitions of 3 * 64 MiB and their heads for 2 ranks, and 256 MiB for the
/// program: in all a little more than 640 MiB.
fn exact_sizes_under_ulimit() {
    const EXACT: &[(&str, &str)] = &[
        ("TSUMUGI_EXPOSED_BYTES", "0x4000000"),
        ("TSUMUGI_HEAP_BYTES", "0x4000000"),
        ("TSUMUGI_STACK_BYTES", "0x4000000"),
    ];
    if has_shadow() {
        return;
    }
    let under = |limit: &str, role| {
        let plain = Ask { env: EXACT, ..Ask::new(2, role) }.command();
        let mut shell = Command::new("/bin/sh");
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        shell.arg("-c").arg(script).arg(plain.get_program()).args(plain.get_args());
        shell.envs(EXACT.iter().copied()).stdin(Stdio::null());
        finish(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    under(&format!("-v {}", 648 << 10), "exact").expect(0, &["sizes are exact"]);
    under(&format!("-f {}", 200 << 11), "exact").expect(0, &["sizes are exact"]);
    let low = under(&format!("-v {}", 440 << 10), "exact");
    low.expect(90, &[]);
    let said = format!("RLIMIT_AS (ulimit -v) is {} bytes", 440 << 20);
    assert!(low.err.contains(&said) && low.err.contains("need at least 473"), "{low:?}");
    let low = under("-f 2048", "exact");
    low.expect(90, &[]);
    assert!(low.err.contains("RLIMIT_FSIZE (ulimit -f) is 1048576 bytes"), "{low:?}");
}

fn peers_memory_can_be_read_only() {
    let said = |env| run(&Ask { env, ..Ask::new(2, "guarded") });
    said(&[]).expect(0, &["peers write: all"]);
    said(&[("TSUMUGI_PEERS", "read-heap")]).expect(0, &["peers write: exposed"]);
    said(&[("TSUMUGI_PEERS", "read")]).expect(0, &["peers write: rings"]);
}

fn a_raw_store_to_read_only_memory_faults() {
    let done = run(&Ask { env: &[("TSUMUGI_PEERS", "read-heap")], ..Ask::new(2, "store") });
    // The address sanitizer may keep the signal for itself.
    if has_shadow() && done.code == Some(1) {
        assert!(done.err.contains("SEGV on unknown address"), "{done:?}");
    } else {
        done.expect(128 + libc::SIGSEGV, &["read before"]);
        assert!(done.err.contains("rank 0 (pid ") && done.err.contains("signal 11"), "{done:?}");
    }
    run(&Ask::new(2, "store")).expect(0, &["read before", "stored"]);
}

fn memory_outside_of_partitions_is_copied() {
    run(&Ask::new(2, "cma")).expect(0, &["all that is allowed works"]);
}

fn plain_processes_meet() {
    // The leader is not the first rank; two jobs of one name follow each other.
    for _ in 0..2 {
        for (rank, done) in started_by_others("hello", &[2, 0, 3, 1], 4, "ring").iter().enumerate()
        {
            assert!(done.out.contains("sum agrees"), "{rank}: {done:?}");
            done.expect(0, &[]);
        }
    }
    for done in started_by_others("base", &[1, 0], 2, "base") {
        done.expect(0, &["a word came across"]);
    }
}

fn a_rank_that_never_starts_is_named() {
    let refused = started_by_others("alone", &[3], 2, "hello");
    refused[0].expect(91, &[]);
    assert!(refused[0].err.contains("rank 3 does not exist: the node has 2 ranks"), "{refused:?}");
    let done = started_by_others("late", &[0], 2, "impatient");
    done[0].expect(0, &["rank 1 of this node did not join within 50ms"]);
    let done = started_by_others("late", &[1], 2, "impatient");
    done[0].expect(0, &["the first rank of this node accepted no connection within 50ms"]);
}

fn ranks_of_other_nodes_are_left_alone() {
    let start = |rank: &str, node: &str| {
        let mut command = Command::new(own_path());
        command.args(["--role", "impatient"]).env("TSUMUGI_RANK", rank).env("TSUMUGI_NODE", node);
        command.env("TSUMUGI_JOB", format!("nodes {}", std::process::id()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let ranks = [start("0", "here"), start("1", "there")].map(finish);
    ranks[0].expect(0, &["rank 1 of this node did not join"]);
    ranks[1].expect(0, &["the first rank of this node accepted no connection"]);
}
