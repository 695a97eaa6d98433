//! The command where a container, or another sandbox, takes system calls away: a filter
//! (seccomp) in the started processes refuses them, as a container's profile does.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// Runs the command with these arguments, and without these system calls: they fail with
/// `EPERM`.
fn without(calls: &'static [libc::c_long], words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tsumugi"));
    command.args(words).current_dir(std::env::temp_dir());
    // SAFETY: between fork and exec the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(move || refuse(calls)) };
    command.output().expect("the command starts")
}

/// Refuses these calls to this process and to all that it starts.
fn refuse(calls: &[libc::c_long]) -> io::Result<()> {
    const MAX: usize = 8;
    assert!(calls.len() <= MAX);
    let statement = |code: u32, k: u32, jt| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let give = |what| statement(libc::BPF_RET | libc::BPF_K, what, 0);
    let mut filter = [give(libc::SECCOMP_RET_ALLOW); MAX + 3];
    // The number of the call is the first word of `seccomp_data`.
    filter[0] = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    for (at, call) in (1..).zip(calls) {
        let is_it = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        // To the last statement, over the other calls and the one that allows.
        filter[at] = statement(is_it, *call as u32, (calls.len() - at + 1) as u8);
    }
    filter[calls.len() + 2] = give(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    let len = (calls.len() + 3) as u16;
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which has `len` statements, during the call.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The line of `tsumugi info` about a subject.
#[track_caller]
fn fact(calls: &'static [libc::c_long], subject: &str) -> String {
    let output = without(calls, &["info"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let line = shown.lines().find(|line| line.contains(subject));
    line.unwrap_or_else(|| panic!("{subject}: {shown}")).to_owned()
}

const COPIES: &[libc::c_long] = &[libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];
const FENCES: &[libc::c_long] = &[libc::SYS_membarrier];
const FILES: &[libc::c_long] = &[libc::SYS_memfd_create];
const POLICIES: &[libc::c_long] = &[libc::SYS_mbind];
const PROCESSES: &[libc::c_long] = &[libc::SYS_pidfd_open];
const DEMO: &[&str] = &["demo", "--ranks", "3", "--ults", "8"];

#[test]
fn what_is_refused_is_named_with_its_effect() {
    let copies = fact(COPIES, "process_vm_readv");
    assert!(copies.contains("copy twice"), "{copies}");
    let fences = fact(FENCES, "membarrier");
    assert!(fences.contains("slower"), "{fences}");
    let policies = fact(POLICIES, "mbind");
    assert!(policies.contains("first touch") || policies.ends_with("unknown"), "{policies}");
    let files = fact(FILES, "memfd");
    assert!(files.contains("no job starts"), "{files}");
    let processes = fact(PROCESSES, "pidfd_open");
    assert!(processes.contains("starts no job"), "{processes}");
    for (calls, subject) in [(COPIES, "process_vm_readv"), (FENCES, "membarrier")] {
        assert!(fact(&[], subject).ends_with(" works"), "{calls:?}");
    }
}

#[test]
fn a_job_runs_without_copies_and_fences_of_the_kernel() {
    for calls in [COPIES, FENCES] {
        let output = without(calls, DEMO);
        assert!(output.status.success(), "{calls:?}: {}", text(&output.stderr));
        let shown = text(&output.stdout);
        assert!(shown.contains("agrees with a serial search"), "{calls:?}: {shown}");
    }
}

#[test]
fn what_a_job_needs_is_named() {
    for (calls, name) in [(FILES, "memfd_create"), (PROCESSES, "pidfd_open")] {
        let output = without(calls, DEMO);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(name) && !said.contains("panicked"), "{name}: {said}");
    }
}
