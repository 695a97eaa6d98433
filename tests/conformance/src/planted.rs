//! Planted defects that a sanitizer must report. A program that is built without the
//! sanitizer, or a muted one, reports nothing, and its silence proves nothing. Each
//! crate plants defects in the tests of its library ([`planted!`](crate::planted!)),
//! so that the crate's own code is built for the sanitizer. A test starts its binary
//! again, as a child that has the defect.

use std::process::Command;
use tsumugi_core::sync::{AtomicU32, Ordering};

/// One test that the address sanitizer reports an overflow, and one test that the
/// thread sanitizer reports a race; each is ignored in a build for the other
/// sanitizer.
#[macro_export]
macro_rules! planted {
    (overflow: $overflow:expr, race: $race:expr $(,)?) => {
        #[test]
        #[cfg_attr(not(tsumugi_asan), ignore = "for the address sanitizer")]
        fn a_planted_overflow_is_reported() {
            let name = concat!(module_path!(), "::a_planted_overflow_is_reported");
            $crate::planted::reported(name, "AddressSanitizer: heap-buffer-overflow", $overflow);
        }

        #[test]
        #[cfg_attr(not(tsumugi_tsan), ignore = "for the thread sanitizer")]
        fn a_planted_race_is_reported() {
            let name = concat!(module_path!(), "::a_planted_race_is_reported");
            $crate::planted::reported(name, "ThreadSanitizer: data race", $race);
        }
    };
}

/// Asserts that `defect` is reported with these words. `name` is the test's, with its
/// crate's name in front.
pub fn reported(name: &str, words: &str, defect: impl FnOnce()) {
    let (_, name) = name.split_once("::").expect("a path in a crate");
    if let Some((said, ended_well)) = again(name, defect) {
        assert!(!ended_well, "{name}: not reported");
        assert!(said.contains(words), "{name}: {said}");
    }
}

/// Runs test `name` again in a child process, which runs `defect`. Returns the
/// child's standard error, and whether the child succeeded. In the child: returns
/// `None`.
pub fn again(name: &str, defect: impl FnOnce()) -> Option<(String, bool)> {
    if std::env::var_os("TSUMUGI_TEST_CHILD").is_some() {
        defect();
        return None;
    }
    let output = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("TSUMUGI_TEST_CHILD", "defect")
        .output()
        .expect("this binary starts");
    Some((String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success()))
}

/// Runs `access` on two threads, one after the other, and nothing orders the second
/// access after the first: the sanitizer misses two accesses at one instant, and knows
/// of two that it sees one after the other.
pub fn on_two_threads(access: impl Fn(u64) + Sync) {
    let turns = Turns::default();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (access, turns) = (&access, &turns);
            scope.spawn(move || turns.take(thread, || access(thread.into())));
        }
    });
}

/// Gives two threads a turn each. Every operation is Relaxed, so that no turn happens
/// before the other.
#[derive(Debug, Default)]
pub struct Turns(AtomicU32);

impl Turns {
    /// Runs `access` as turn 0 or 1, and returns when both turns are over: a thread
    /// that ends sooner would order what it did before what the other one does later.
    pub fn take(&self, turn: u32, access: impl FnOnce()) {
        self.wait_for(turn);
        access();
        self.0.store(turn + 1, Ordering::Relaxed);
        self.wait_for(2);
    }

    fn wait_for(&self, turns: u32) {
        while self.0.load(Ordering::Relaxed) < turns {
            std::thread::yield_now();
        }
    }
}

/// Eight bytes that two threads may touch at once, as only a defect does.
#[derive(Debug, Default)]
pub struct Racy(std::cell::UnsafeCell<u64>);

// SAFETY: none, because this is the defect.
unsafe impl Sync for Racy {}

impl Racy {
    /// The address of the bytes.
    pub fn get(&self) -> *mut u64 {
        self.0.get()
    }
}
