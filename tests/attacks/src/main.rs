//! Attacks on the interface: programs in safe Rust that try to break its rules.
//!
//! ```text
//!  attacks NAME     one attack, in this process
//!  attacks --list   their names
//! ```
//!
//! An attack prints `held` and exits with 0 if the interface held; otherwise it panics
//! with what it has found. The breach of some rules aborts the process by design:
//! `tests/ends.rs` runs all attacks and has the expected end of each. A rule that the
//! compiler enforces has a program in `tests/compile_fail`.
//!
//! The attacks, and the programs or tests that try them:
//!
//! | row | attack | programs |
//! |---|---|---|
//! | 1, 2 | a value in a `thread_local!` that is held over yields and sleeps | `thread_locals_over_sleeps`, `guards_over_sleeps`, `guards_over_sleeps_are_fatal`, `guards_over_sleeps_in_a_job` |
//! | 3 | a borrow of a `RefCell` that is held over a sleep | `thread_locals_over_sleeps` |
//! | 4 | a destructor that sleeps while its ULT unwinds | `panics_that_sleep`, `panics_that_sleep_are_reported`, `panics_that_sleep_are_fatal`, `panics_that_run_a_scheduler` |
//! | 5 | a stack that overflows, with a canary below | `ult/tests/os.rs: an_overflow_is_named` |
//! | 6 | the same without a guard | `has_no_guards.rs` |
//! | 7 | the same with a guard page | `ult/tests/os.rs: an_overflow_is_named` |
//! | 8, 9 | a scheduler dropped on its own ULT | `scheduler_dropped_on_its_own_ult`, `scheduler_dropped_while_its_ult_unwinds` |
//! | 10 | a scheduler in a ULT | `ult/tests/spawn_join.rs: several_schedulers_run_side_by_side` |
//! | 11 | a join on a worker's own stack | `join_on_a_workers_own_stack`, `scoped_join_on_a_workers_own_stack` |
//! | 12 | a ULT that joins itself | `join_of_itself` |
//! | 13 | a ULT-local value that is initialized during its own initialization, and one whose destructor sleeps | `values_that_sleep_at_the_end` |
//! | 14 | stacks and names of any size, and workers of any number | `builders_of_any_size` |
//! | 15 | configurations whose sums overflow | `stacks_larger_than_memory`, `configurations_that_wrap` |
//! | 16 | a stack area of any size | `builders_of_any_size` |
//! | 17 | a lock, permit, value or message that is handed to a ULT that was cut off | `lock_handed_to_a_cut_off_ult`, `share_handed_to_a_cut_off_ult`, `permit_handed_to_a_cut_off_ult`, `value_handed_to_a_cut_off_ult`, `notification_handed_to_a_cut_off_ult`, `turn_handed_to_a_cut_off_ult`, `ults_cut_off_after_a_hand_over`, `barrier_of_a_cut_off_ult`, `flag_of_a_cut_off_ult`, `message_for_a_cut_off_ult`, `message_for_a_cut_off_ult_that_polled`, `tags_of_cut_off_ults`, `room_behind_cut_off_ults`, `shared_lock_for_a_cut_off_ult`, `shared_lock_with_operations_of_cut_off_ults`, `shared_lock_for_many_cut_off_ults` |
//! | 18 | schedulers that end with sleepers, one after another | `ult/tests/spawn_join.rs: a_scheduler_is_freed_unless_it_abandons_sleepers` |
//! | 19 | very many sleepers | `ult/tests/time.rs: many_sleepers_all_wake_and_none_too_early` |
//! | 20 | a poll that joins | `progress_that_joins` |
//! | 21, 22 | scopes on other threads, and scopes whose ULTs panic | `ult/tests/particulars.rs: a_thread_can_open_a_scope_on_a_scheduler`, `ult/tests/particulars.rs: a_scope_panics_if_one_of_its_ults_did`, `scheduler_dropped_in_a_scope_on_it` |
//! | 23 | a channel whose other end is dropped while a sender waits | `ult/tests/sync.rs: a_disconnected_channel_returns_an_error` |
//! | 24 | a callback that yields | `callback_that_yields` |
//! | 25, 26 | a waker that is kept | `keeps_a_waker.rs`, `withdraws_what_it_keeps.rs`, `unparks_a_stranger.rs` |
//! | 27 | a scope on a scheduler that ends, with memory lent to threads | `scope_under_an_ending_scheduler` |
//! | 28 | ULT-local keys that are constants | `keys_that_are_constants` |
//! | 29 | an operation on a forged local key | `execute_by_any_key.rs` |
//! | 30 | two threads that are the sleeper of one `Race` | `races_with_itself.rs` |
//! | 31 | a receive that is cut off while its buffer is freed | `receive_of_a_scope_under_an_ending_scheduler` |
//! | 32, 33 | handles after their job's end, and in the next job | `calls_after_the_end`, `jobs_one_after_another`, `messages_of_another_rank`, `messages_waited_for_twice`, `messages_taken_by_another_thread` |
//! | 34, 35, 36 | forged remote addresses, on each path | `forged_addresses` |
//! | 37, 38 | forged keys of the runtime's own regions | `forge_all_keys`, `forge_rings`, `forge_words_of_a_gather`, `forge_words_of_locks` |
//! | 39 | forged global addresses | `forged_global_addresses` |
//! | 40 | values of any type, and of size zero | `values_of_any_type`, `more_calls_on_any_type`, `collectives_of_any_word` |
//! | 41 | the same in a receive | `receive_values_of_no_size` |
//! | 42 | lengths for which there cannot be memory | `more_than_there_can_be`, `containers_of_any_length`, `channels_of_any_length` |
//! | 43 | indices that wrap | `indices_that_wrap` |
//! | 44 | a change of published values | `tests/attacks/tests/publish.rs: published_values_cannot_be_changed` |
//! | 45 | a job in a job | `jobs_in_jobs` |
//! | 46 | a future dropped half-way; operations as values: forgotten, dropped in flight, begun without room; callbacks of every kind that panic or begin others | `futures_dropped_half_way`, `operations_forgotten`, `operations_dropped_in_flight`, `operations_without_room`, `callbacks_of_every_kind_that_panic`, `callbacks_that_begin_operations` |
//! | 47, 48 | a callback that panics or blocks, on each path | `callbacks_that_panic`, `callbacks_that_block`, `wakers_that_panic` |
//! | 49, 50 | a handler that panics or blocks | `handlers_that_panic`, `handlers_that_block` |
//! | 51 | a heap that outlives its job | `tests/global_heap.rs: thread_locals_are_dropped_with_their_threads` |
//! | 52 | a fork on a ULT's stack, on the worker's, and after the job | `forks_on_any_stack` |
//! | 53, 54 | memory and handles of another rank or an earlier job | `buffers_of_another_rank`, `buffers_of_an_earlier_job`, `memory_of_another_rank_registered`, `communicators_of_another_rank` |
//! | 55, 56 | handlers that call, sleep or set handlers when they are dropped | `handlers_that_call_when_dropped`, `handlers_set_when_a_job_ends` |
//! | 57 | messages of threads that wait when their job ends | `threads_that_wait_when_their_job_ends`, `threads_that_exchange_when_their_job_ends`, `threads_of_a_rank_that_panics` |
//! | 58, 59 | ranks that do not exist, and more ranks than there can be | `pages_for_ranks_that_do_not_exist`, `more_ranks_than_a_job_has` |

#![forbid(unsafe_code)]

mod cut_off;
mod edges;
mod foreign;
mod deferred;
mod handles;
mod keys;
mod panics;
mod suspended;
mod types;
mod ults;
mod values;

use std::process::ExitCode;

/// A name, and the program.
type Attack = (&'static str, fn());

/// All attacks, in groups of one file each.
const ALL: &[&[Attack]] = &[
    cut_off::ALL,
    edges::ALL,
    foreign::ALL,
    deferred::ALL,
    handles::ALL,
    keys::ALL,
    panics::ALL,
    suspended::ALL,
    types::ALL,
    ults::ALL,
    values::ALL,
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let mut all = ALL.iter().copied().flatten();
    if name == "--list" {
        all.for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let Some((_, attack)) = all.find(|(known, _)| *known == name) else {
        eprintln!("no attack is named {name:?}: --list prints the names");
        return ExitCode::from(2);
    };
    attack();
    println!("held");
    ExitCode::SUCCESS
}
