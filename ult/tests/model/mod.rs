//! The common part of the model checkers' tests.

use std::process::Command;
use tsumugi_core::sync::with_mutant;
use tsumugi_ult::{Config, Guards, Scheduler, StackArea, Unguarded};

/// Runs `explore`, the model of test `test`, and checks that it catches each of `mutants`. Each
/// mutant runs in a process of its own, because a model that fails cannot always unwind.
pub fn check(test: &str, mutants: &[&'static str], explore: impl FnOnce()) {
    if let Ok(wanted) = std::env::var("TSUMUGI_TEST_MUTANT") {
        let mutant =
            mutants.iter().find(|mutant| **mutant == wanted).expect("a mutant of this test");
        return with_mutant(mutant, explore);
    }
    explore();
    for mutant in mutants {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--test-threads=1"])
            .env("TSUMUGI_TEST_MUTANT", mutant)
            .output()
            .unwrap();
        assert!(!output.status.success(), "{test} does not catch the mutant {mutant}");
    }
}

/// A scheduler of few stacks that looks once before it sleeps; children run on
/// their joiners' stacks with `inline_bytes` left there.
pub fn scheduler(workers: usize, stacks: usize, inline_bytes: usize) -> Scheduler {
    let (stack_bytes, main_stack_bytes) = (64 << 10, 256 << 10);
    let area = StackArea::map(StackArea::bytes_for(stacks, stack_bytes, main_stack_bytes)).unwrap();
    // SAFETY: the code of the models is a few calls deep.
    let guards = Guards::None(unsafe { Unguarded::new() });
    let config = Config::new(area)
        .workers(workers)
        .stack_bytes(stack_bytes)
        .main_stack_bytes(main_stack_bytes)
        .spin(0)
        .guards(guards)
        .inline_bytes(inline_bytes);
    Scheduler::new(config).unwrap()
}
