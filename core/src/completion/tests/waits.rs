//! Waits, step by step, on a scheduler under the control of a test.

extern crate std;

use super::*;
use crate::completion::slot::{Armed, DONE};
use crate::completion::waiter::SlotWaiter;
use crate::wait::{Interrupted, Reason, Wait, WaitFor, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::vec;

/// What happens during a sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    /// The operation ends before the sleeper is found.
    EndBefore,
    /// The operation ends while the sleeper sleeps.
    EndAfter,
    /// Another thread begins to end the operation before the sleeper is found,
    /// and has ended it when the sleeper has let other threads run.
    Claim,
    /// The limit passes.
    Pass,
    /// The limit passes when the operation has ended.
    PassLate,
}

struct Script<'a> {
    view: Completions<'a>,
    tag: Tag,
    acts: Mutex<VecDeque<Act>>,
    log: Mutex<Vec<&'static str>>,
}

unsafe fn count(data: *const ()) {
    // SAFETY: the tests hand in an `AtomicU32` that outlives the sleep.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

impl Script<'_> {
    fn log(&self, what: &'static str) {
        self.log.lock().unwrap().push(what);
    }

    fn logged(&self) -> Vec<&'static str> {
        assert!(self.acts.lock().unwrap().is_empty());
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    fn sleep(
        &self,
        reason: Reason,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        assert_eq!((reason.what, reason.at), ("completion", self.tag.index() as u64));
        let act = self.acts.lock().unwrap().pop_front().expect("a step for each sleep");
        let woken = AtomicU32::new(0);
        // SAFETY: the counter outlives the sleep, and is an atomic.
        let waker = unsafe { Waker::new((&raw const woken).cast(), count) };
        let wakes = || woken.load(Ordering::SeqCst);
        match act {
            Act::EndBefore => assert!(self.view.complete(self.tag, Ok(5))),
            Act::Claim => assert!(self.view.slot(self.tag).claim(self.tag).is_some()),
            Act::EndAfter | Act::Pass | Act::PassLate => {}
        }
        let stays = commit(waker);
        assert_eq!(stays, !matches!(act, Act::EndBefore | Act::Claim), "{act:?}");
        match act {
            Act::EndAfter | Act::PassLate => {
                assert!(self.view.complete(self.tag, Ok(5)));
                assert_eq!(wakes(), 1, "the sleeper is woken");
            }
            Act::Pass => {
                assert!(withdraw(), "the waker can be withdrawn");
                return Err(Interrupted::TimedOut);
            }
            Act::EndBefore | Act::Claim => assert_eq!(wakes(), 0),
        }
        if act == Act::PassLate {
            assert!(!withdraw(), "the operation has the waker");
            return Err(Interrupted::Cancelled);
        }
        Ok(())
    }
}

// SAFETY: one thread; a sleep returns when the waker was woken, or was not kept.
unsafe impl Wait for Script<'_> {
    unsafe fn sleep(&self, reason: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        self.log("sleep");
        self.sleep(reason, commit, &mut || unreachable!("no limit")).unwrap();
    }

    fn yield_now(&self) {
        self.log("yield");
        self.view.slot(self.tag).state.fetch_or(DONE, Ordering::SeqCst);
    }
}

// SAFETY: as above; `withdraw` runs before an interruption is reported.
unsafe impl WaitFor for Script<'_> {
    unsafe fn sleep_for(
        &self,
        reason: Reason,
        limit: Duration,
        commit: &mut dyn FnMut(Waker) -> bool,
        withdraw: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interrupted> {
        assert_eq!(limit, LIMIT);
        self.log("sleep for");
        self.sleep(reason, commit, withdraw)
    }
}

const LIMIT: Duration = Duration::from_millis(7);

/// A ticket, and a scheduler that does this to the sleeper.
fn begin<'a>(
    table: &'a CompletionTable<1>,
    acts: &[Act],
) -> (Ticket<'a, Arc<()>>, Script<'a>, Arc<()>) {
    let (view, buffer) = (table.view(), Arc::new(()));
    let ticket = view.try_begin(0, buffer.clone()).unwrap();
    let tag = ticket.tag();
    let acts = Mutex::new(acts.iter().copied().collect());
    (ticket, Script { view, tag, acts, log: Mutex::default() }, buffer)
}

#[test]
fn a_wait_sleeps_once_and_yields_only_while_the_operation_ends() {
    for (act, result, log) in [
        (Act::EndBefore, Ok(5), &["sleep"][..]),
        (Act::EndAfter, Ok(5), &["sleep"]),
        (Act::Claim, Ok(0), &["sleep", "yield"]),
    ] {
        let table = CompletionTable::new();
        let (ticket, script, buffer) = begin(&table, &[act]);
        let outcome = ticket.wait(&script);
        assert_eq!((outcome.result, script.logged()), (result, log.to_vec()), "{act:?}");
        assert_eq!((Arc::strong_count(&buffer), table.view().in_flight()), (2, 0));
    }
    // There is no sleep for an operation that has ended.
    let table = CompletionTable::new();
    for has_limit in [false, true] {
        let (ticket, script, _) = begin(&table, &[]);
        assert!(script.view.complete(script.tag, Ok(9)));
        let outcome = if has_limit {
            ticket.wait_timeout(&script, LIMIT).unwrap()
        } else {
            ticket.wait(&script)
        };
        assert_eq!((outcome.result, script.logged()), (Ok(9), vec![]));
    }
}

#[test]
fn a_wait_with_a_limit_ends_with_the_operation_or_the_limit() {
    for (act, result, log) in [
        (Act::EndBefore, Ok(5), &["sleep for"][..]),
        (Act::EndAfter, Ok(5), &["sleep for"]),
        (Act::PassLate, Ok(5), &["sleep for"]),
        (Act::Claim, Ok(0), &["sleep for", "yield"]),
    ] {
        let table = CompletionTable::new();
        let (ticket, script, _) = begin(&table, &[act]);
        let outcome = ticket.wait_timeout(&script, LIMIT).unwrap();
        assert_eq!((outcome.result, script.logged()), (result, log.to_vec()), "{act:?}");
        assert_eq!(table.view().in_flight(), 0);
    }
}

#[test]
fn an_overdue_operation_continues_and_can_be_waited_for_again() {
    let table = CompletionTable::new();
    let (ticket, script, buffer) = begin(&table, &[Act::Pass, Act::Pass, Act::EndAfter]);
    let overdue = ticket.wait_timeout(&script, LIMIT).unwrap_err();
    assert_eq!(overdue.why, Interrupted::TimedOut);
    assert_eq!((Arc::strong_count(&buffer), table.view().in_flight()), (2, 1));
    let overdue = overdue.ticket.wait_timeout(&script, LIMIT).unwrap_err();
    assert_eq!(overdue.ticket.wait(&script).result, Ok(5));
    assert_eq!(script.logged(), ["sleep for", "sleep for", "sleep"]);
    // Or the ticket is dropped: then the end finds no waiter.
    let (ticket, script, buffer) = begin(&table, &[Act::Pass]);
    drop(ticket.wait_timeout(&script, LIMIT).unwrap_err());
    assert!(script.view.complete(script.tag, Ok(1)));
    assert_eq!((Arc::strong_count(&buffer), table.view().in_flight()), (1, 0));
}

#[test]
fn a_waker_that_comes_too_late_is_dropped() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let ticket = view.try_begin(0, ()).unwrap();
    let (slot, tag) = (view.slot(ticket.tag()), ticket.tag());
    let task = Arc::new(Tasks::default());
    let waiting = || SlotWaiter::Task(task.clone().into());
    assert_eq!(slot.arm(tag, waiting()), Armed::Yes);
    assert_eq!(slot.arm(tag, waiting()), Armed::Yes, "in place of the previous waker");
    assert_eq!(Arc::strong_count(&task), 2);
    assert!(slot.disarm(tag));
    assert_eq!(Arc::strong_count(&task), 1);
    assert!(slot.disarm(tag), "no waker is armed, and none is under way");
    assert!(slot.claim(tag).is_some());
    assert_eq!(slot.arm(tag, waiting()), Armed::Ending);
    assert!(!slot.disarm(tag));
    assert_eq!(Arc::strong_count(&task), 1);
    assert!(slot.claim(tag).is_none(), "once");
    slot.state.fetch_or(DONE, Ordering::SeqCst);
    drop(ticket);
    assert_eq!(view.in_flight(), 0);
}

#[test]
fn a_retracted_ticket_drops_its_waker() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let mut ticket = view.try_begin(0, 3u8).unwrap();
    let task = Arc::new(Tasks::default());
    let waker = task.clone().into();
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    // SAFETY: nothing was posted.
    assert_eq!(unsafe { ticket.retract() }, 3);
    assert_eq!((Arc::strong_count(&task), view.in_flight()), (1, 0));
}

#[test]
#[should_panic(expected = "although it was never posted")]
fn an_operation_that_was_completed_is_not_retracted() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let ticket = view.try_begin(0, ()).unwrap();
    assert!(view.complete(ticket.tag(), Ok(0)));
    // SAFETY: nothing was posted; the call must detect the completion.
    unsafe { ticket.retract() };
}

#[test]
#[should_panic(expected = "polled after it had completed")]
fn a_future_that_has_completed_is_not_polled_again() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let mut ticket = view.try_begin(0, ()).unwrap();
    assert!(view.complete(ticket.tag(), Ok(0)));
    let waker = Arc::new(Tasks::default()).into();
    for _ in 0..2 {
        let _ = Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker));
    }
}

/// A ticket that has given its buffer back does not touch the next operation's.
#[test]
fn a_future_that_has_completed_leaves_its_tag_to_others() {
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let mut ticket = view.try_begin(0, Arc::new(())).unwrap();
    assert!(view.complete(ticket.tag(), Ok(0)));
    let waker = Arc::new(Tasks::default()).into();
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_ready());
    let buffer = Arc::new(());
    let next = view.try_begin(0, buffer.clone()).unwrap();
    drop(ticket);
    assert_eq!((Arc::strong_count(&buffer), view.in_flight(), next.is_done()), (2, 1, false));
    assert!(view.complete(next.tag(), Ok(1)));
    assert_eq!(next.try_finish().unwrap().result, Ok(1));
}

#[cfg(feature = "unwind")]
#[test]
fn a_panicking_waker_does_not_stop_other_completions() {
    struct Bad;
    struct Worse;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            std::panic::panic_any(Worse);
        }
    }
    impl Drop for Worse {
        fn drop(&mut self) {
            panic!("a waker panicked");
        }
    }
    let table = CompletionTable::<1>::new();
    let view = table.view();
    let mut ticket = view.try_begin(0, ()).unwrap();
    let waker = Arc::new(Bad).into();
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(view.complete(ticket.tag(), Ok(3)));
    assert_eq!(ticket.try_finish().unwrap().result, Ok(3));
}

#[test]
fn a_new_table_ignores_the_old_content_of_its_memory() {
    let live = Block([1, 1, 0, 0, 0, 0, 0, 0].repeat(512).try_into().unwrap());
    let mut block = live;
    // SAFETY: the block is large and aligned enough and lives longer.
    let view = unsafe { Completions::init(NonNull::from(&mut block).cast(), 3) }.unwrap();
    for index in 0..3 {
        assert!(!view.complete(Tag::from_bits(1 << 24 | index), Ok(0)), "tag {index}");
    }
    assert!(!view.retract_callback(Tag::from_bits(1 << 24 | 3)), "the table has three tags");
    assert_eq!(view.in_flight(), 0);
}
