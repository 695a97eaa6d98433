//! ULTs and the operating system: overflows, forks, shared stacks. Where a process must die, a test
//! runs itself again as a child.

mod common;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::ptr::NonNull;
use std::sync::Arc;
use tsumugi_ult::sync::Flag;
use tsumugi_ult::{
    Builder, Config, Guards, Progress, Scheduler, StackArea, StartError, callback, on_os_stack,
    spawn, yield_now,
};

/// Runs test `name` of this program again, with `TSUMUGI_TEST_CHILD` set.
fn again(name: &str, what: &str) -> std::process::Output {
    again_with(name, what, &[])
}

/// Does the same, with more variables set.
fn again_with(name: &str, what: &str, more: &[(&str, &str)]) -> std::process::Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("TSUMUGI_TEST_CHILD", what)
        .envs(more.iter().copied())
        .output()
        .unwrap()
}

fn child() -> Option<String> {
    std::env::var("TSUMUGI_TEST_CHILD").ok()
}

/// Uses `depth` frames of stack.
#[inline(never)]
fn dig(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    if depth == 0 { frame[0] } else { dig(depth - 1).wrapping_add(frame[3]) }
}

#[test]
#[cfg_attr(tsumugi_asan, ignore = "the address sanitizer sees the overflow first")]
fn an_overflow_is_named() {
    if let Some(what) = child() {
        let mut config = common::config(1, 16);
        config.stack_bytes = 16 << 10;
        // On a stack of its own, not on the stack of main.
        config.inline_bytes = usize::MAX;
        config.guards = match what.as_str() {
            "guard" | "callback" => Guards::Pages(8192),
            "group" => Guards::Groups(1),
            "member" => Guards::Groups(4),
            _ => Guards::Canaries,
        };
        Scheduler::new(config).unwrap().run(|| {
            // The canary of the digger is at the top of the other ULT's stack.
            let below = spawn(yield_now);
            yield_now();
            let calls_back = what == "callback";
            let digger = Builder::new().name("digger").spawn(move || {
                // 16 KiB and a little more: a canary does not stop the access.
                let depth = (16 << 10) / size_of_dig() + 2;
                let digs = || std::hint::black_box(dig(depth));
                // A callback in a callback, after another one has ended.
                if calls_back {
                    callback(|| {
                        callback(|| ());
                        callback(digs);
                    });
                }
                digs();
                yield_now();
            });
            digger.join().unwrap();
            below.join().unwrap();
        });
        return;
    }
    // The first stack of each group has a guard page; the digger has the second stack.
    let cases = [
        ("guard", libc::SIGSEGV),
        ("callback", libc::SIGSEGV),
        ("group", libc::SIGSEGV),
        ("member", libc::SIGABRT),
        ("canary", libc::SIGABRT),
    ];
    for (what, signal) in cases {
        let output = again("an_overflow_is_named", what);
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = "tsumugi: ULT ";
        assert!(said.contains(expected), "{what}: {said}");
        assert!(
            said.contains("(\"digger\") overflowed its stack of 16384 bytes"),
            "{what}: {said}"
        );
        assert_eq!(output.status.signal(), Some(signal), "{what}: {said}");
    }
}

/// The bytes of one frame of `dig`.
fn size_of_dig() -> u64 {
    #[inline(never)]
    fn here() -> usize {
        let local = 0u8;
        std::hint::black_box(&raw const local).addr()
    }
    #[inline(never)]
    fn depth(n: u64) -> usize {
        let frame = std::hint::black_box([n; 64]);
        let low = if n == 0 { here() } else { depth(n - 1) };
        std::hint::black_box(&frame);
        low
    }
    ((depth(1) - depth(5)) / 4) as u64
}

#[test]
fn a_segmentation_fault_elsewhere_is_not_reported() {
    if child().is_some() {
        common::scheduler(1, 4).run(|| {
            // SAFETY: none: this is the fault.
            unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) }
        });
    }
    let output = again("a_segmentation_fault_elsewhere_is_not_reported", "fault");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("overflowed"), "{said}");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{said}");
}

/// The child can start no thread: no address space has room for such a stack.
#[test]
fn a_worker_that_gets_no_thread_fails_the_start() {
    let name = "a_worker_that_gets_no_thread_fails_the_start";
    if child().is_some() {
        let refused = Scheduler::new(common::config(2, 4)).err();
        assert!(matches!(refused, Some(StartError::Thread(1, _))), "{refused:?}");
        common::scheduler(1, 4).run(yield_now);
        let mut scheduler = common::scheduler(1, 4);
        let refused = scheduler.start().err();
        assert!(matches!(refused, Some(StartError::Thread(0, _))), "{refused:?}");
        return;
    }
    let output = again_with(name, "no thread", &[("RUST_MIN_STACK", &(1_u64 << 60).to_string())]);
    assert!(output.status.success(), "{output:?}");
}

/// Progress that panics when a worker starts.
struct Panics;

impl Progress for Panics {
    fn poll(&self) -> bool {
        false
    }

    fn has_work(&self) -> bool {
        false
    }

    fn on_start(&self, _: usize) {
        panic!("outside of any ULT");
    }
}

#[test]
fn a_worker_that_panics_outside_of_any_ult_ends_the_process() {
    if child().is_some() {
        let config = common::config(1, 4).progress(Arc::new(Panics));
        Scheduler::new(config).unwrap().run(|| ());
        return;
    }
    let output = again("a_worker_that_panics_outside_of_any_ult_ends_the_process", "panic");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("tsumugi: a worker panicked outside of any ULT: "), "{said}");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
}

#[test]
fn a_sent_segv_kills_the_process() {
    if child().is_some() {
        common::scheduler(1, 4).run(|| {
            // SAFETY: a plain call.
            unsafe { libc::kill(libc::getpid(), libc::SIGSEGV) };
            // Any thread may get the signal while the handler is installed.
            std::thread::sleep(std::time::Duration::from_secs(20));
        });
        return;
    }
    let output = again("a_sent_segv_kills_the_process", "sent");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{said}");
}

#[test]
fn programs_start_from_a_ult_on_shared_stacks() {
    let (stack_bytes, main_stack_bytes) = (64 << 10, 256 << 10);
    let bytes = StackArea::bytes_for(16, stack_bytes, main_stack_bytes);
    // SAFETY: a memfd of this test, mapped for this test only.
    let base = unsafe {
        let memfd = libc::memfd_create(c"stacks".as_ptr(), libc::MFD_CLOEXEC);
        assert_eq!(libc::ftruncate(memfd, bytes as i64), 0);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let base = libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, memfd, 0);
        assert_ne!(base, libc::MAP_FAILED);
        libc::close(memfd);
        base
    };
    // SAFETY: mapped above; unmapped after the scheduler ended.
    let stacks = unsafe { StackArea::from_raw(NonNull::new(base.cast()).unwrap(), bytes) };
    let config = Config::new(stacks.unwrap())
        .workers(2)
        .stack_bytes(stack_bytes)
        .main_stack_bytes(main_stack_bytes);
    Scheduler::new(config).unwrap().run(|| {
        let ult = spawn(|| {
            for _ in 0..10 {
                // posix_spawn: the child never runs on the ULT's stack.
                assert!(Command::new("true").status().unwrap().success());
                // fork: the child would run on that stack; it may run on the worker's stack.
                let mut forked = Command::new("true");
                // SAFETY: an empty closure is sound in a forked child.
                unsafe { forked.pre_exec(|| Ok(())) };
                assert!(on_os_stack(move || forked.status()).unwrap().success());
            }
            // Without `on_os_stack` the child dies, and the parent lives and gets the error.
            let mut forked = Command::new("true");
            // SAFETY: as above.
            unsafe { forked.pre_exec(|| Ok(())) };
            forked.status().map(|status| status.success()).unwrap_or(false)
        });
        assert!(!ult.join().unwrap(), "a child has no ULT stacks");
        assert_eq!(spawn(|| 1).join().unwrap(), 1);
    });
    // SAFETY: nothing uses it any more.
    unsafe { libc::munmap(base, bytes) };
}

#[test]
fn on_os_stack_carries_values_and_panics() {
    common::scheduler(1, 4).run(|| {
        assert_eq!(on_os_stack(|| 7), 7);
        let caught = std::panic::catch_unwind(|| on_os_stack(|| panic!("there")));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"there"));
    });
    assert_eq!(on_os_stack(|| 8), 8, "on a thread: a plain call");
}

#[test]
fn a_signal_handler_raises_a_flag() {
    static FLAG: Flag = Flag::new();
    extern "C" fn handler(_: i32) {
        FLAG.raise();
    }
    // SAFETY: the handler is async-signal-safe; nothing else uses the signal.
    unsafe { libc::signal(libc::SIGUSR2, handler as *const () as usize) };
    // SAFETY: the calling thread lives until `raiser` was joined.
    let own = unsafe { libc::pthread_self() } as usize;
    common::scheduler(1, 8).run(|| {
        let raiser = std::thread::spawn(move || {
            for _ in 0..2000 {
                // SAFETY: the calling thread lives until `raiser` was joined.
                unsafe { libc::pthread_kill(own as libc::pthread_t, libc::SIGUSR2) };
                std::thread::yield_now();
            }
        });
        let waiter = spawn(|| (0..3).for_each(|_| FLAG.wait()));
        // The worker is interrupted at any point.
        for round in 0u64.. {
            spawn(move || round).join().unwrap();
            tsumugi_ult::yield_now();
            if waiter.is_finished() && raiser.is_finished() {
                break;
            }
            if raiser.is_finished() {
                FLAG.raise();
            }
        }
        waiter.join().unwrap();
        raiser.join().unwrap();
    });
    let on_thread = std::thread::spawn(|| FLAG.wait());
    FLAG.raise();
    on_thread.join().unwrap();
}
