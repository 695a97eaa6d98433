//! A flag that a ULT or threads wait for, and one whose waiter is cut off.

use crate::{check, check_within, scheduler};
use loom::thread;
use std::sync::Arc;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::sync::Flag;
use tsumugi_ult::{Builder, Order};

#[test]
fn a_thread_raises_a_flag() {
    let mutants = ["flag_no_second_look", "let_sleep_refused"];
    check("flag::a_thread_raises_a_flag", &mutants, || {
        let flag = Arc::new(Flag::new());
        let raised = flag.clone();
        let raiser = thread::spawn(move || raised.raise());
        scheduler(1).run(|| flag.wait());
        raiser.join().unwrap();
        assert!(!flag.take());
    });
}

/// Two ULTs wait one after the other, and only the flag orders them. Writes before a raise are seen
/// after the wait.
#[test]
fn two_wait_in_turn() {
    let mutants = [
        "flag_raise_unreleased",
        "flag_raise_unacquired",
        "flag_take_relaxed",
        "flag_publish_relaxed",
        "flag_next_relaxed",
        "flag_over_relaxed",
    ];
    check_within(3, "flag::two_wait_in_turn", &mutants, || {
        let shared = Arc::new((Flag::new(), Word::default(), Word::default()));
        let first = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (flag, done, turn) = &*shared;
                flag.wait();
                assert_eq!(done.get(), 1);
                turn.set(1);
                flag.raise();
            })
        };
        let (flag, done, turn) = &*shared;
        done.set(1);
        flag.raise();
        turn.comes_to(1);
        flag.wait();
        first.join().unwrap();
    });
}

/// The end of a scheduler cuts off the waiter while a thread raises the flag: the thread has
/// finished with the sleeper's place before this thread is the next waiter.
#[test]
fn a_flag_is_left_while_it_is_raised() {
    let mutants = ["flag_freed_relaxed", "flag_leave_relaxed", "flag_leave_blind"];
    check_within(3, "flag::a_flag_is_left_while_it_is_raised", &mutants, || {
        let shared = Arc::new((Flag::new(), Word::default()));
        let raiser = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (flag, turn) = &*shared;
                flag.raise();
                flag.take();
                turn.comes_to(1);
                flag.raise();
            })
        };
        let waits = shared.clone();
        let waiter = move || waits.0.wait();
        scheduler(1).run(|| drop(Builder::new().order(Order::ChildFirst).spawn(waiter)));
        let (flag, turn) = &*shared;
        turn.set(1);
        flag.wait();
        raiser.join().unwrap();
    });
}

/// A word that orders nothing.
#[derive(Default)]
struct Word(AtomicU32);

impl Word {
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn comes_to(&self, value: u32) {
        while self.get() != value {
            thread::yield_now();
        }
    }
}
