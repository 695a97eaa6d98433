//! Reports of panics with the rank and the ULT that panicked, and the containment of
//! panics in functions of the program that the runtime calls: callbacks and handlers.
//! Such a panic ends the call, and has no effect on the thread that made the call.

use crate::own_rank::RankPrefix;
use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Display, Formatter};
use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Once;
use std::thread;

/// From now on the report of each panic of this process begins with the rank and the
/// ULT that panicked. A panic that only says that another rank has died is reported in
/// one line, without a backtrace: the launcher counts such ranks. A hook that the
/// program has set before prints the rest.
pub(crate) fn report_ranks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        // The first call has put the hook of std back, which this call returns.
        let is_std = ptr::eq(&raw const *before, &raw const *panic::take_hook());
        panic::set_hook(Box::new(move |info| {
            let who = format!("{}{UltPrefix}", RankPrefix::here());
            let thread = thread::current();
            let thread = thread.name().unwrap_or("<unnamed>");
            let at = info.location().map_or(String::new(), |at| format!(" at {at}"));
            let text = text_of(info.payload());
            // One write each, so that lines of several ranks do not mix.
            let report = if who.is_empty() {
                return before(info);
            } else if text.ends_with(" has died") {
                format!("{who}thread '{thread}' panicked{at}: {text}\n")
            } else if is_std {
                format!("{who}thread '{thread}' panicked{at}:\n{text}\n{}", backtrace())
            } else {
                who
            };
            eprint!("{report}");
            if !report.ends_with('\n') {
                before(info);
            }
        }));
    });
}

/// The backtrace, if the environment requests one; else, once, how to get one.
fn backtrace() -> String {
    static ONCE: Once = Once::new();
    let backtrace = Backtrace::capture();
    let mut note = String::new();
    if backtrace.status() == BacktraceStatus::Captured {
        note = format!("stack backtrace:\n{backtrace}");
    } else {
        ONCE.call_once(|| note = "note: RUST_BACKTRACE=1 shows a backtrace\n".to_owned());
    }
    note
}

/// Begins a line with the ULT that writes it, except for the program's first one.
struct UltPrefix;

impl Display for UltPrefix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(id) = tsumugi_ult::id() else { return Ok(()) };
        match tsumugi_ult::name() {
            Some(name) if name == "main" => Ok(()),
            Some(name) => write!(f, "ULT {id} (\"{name}\"): "),
            None => write!(f, "ULT {id}: "),
        }
    }
}

/// Runs `call`; if it panics, reports the panic as one of `what` and returns
/// `None`.
pub fn contain<R>(what: impl Display, call: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Some(result),
        Err(panic) => {
            report(what, panic);
            None
        }
    }
}

/// Calls a callback of the program. A panic of it is contained, because the calling
/// thread ends operations of other callers, too; and the callback must not sleep.
pub fn call_back(then: impl FnOnce() + Send) {
    contain("a completion callback", || tsumugi_ult::callback(then));
}

#[cold]
fn report(what: impl Display, panic: Box<dyn Any + Send>) {
    // One write, so that the line does not mix with other output. An error is
    // ignored, so that a closed stream does not cause another panic.
    let (who, what) = (RankPrefix::here().to_string(), what.to_string());
    // A service names its rank on threads that belong to none.
    let who = if what.starts_with(&who) { "" } else { &who };
    let line = format!("tsumugi: {who}{what} panicked: {}\n", text_of(&*panic));
    let _ = std::io::stderr().write_all(line.as_bytes());
    // The panic's value may panic when it is dropped, and so may the value of that
    // panic.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

/// The text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "the panic has no message",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    #[test]
    fn a_panic_with_any_payload_is_contained() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic_any(3);
            }
        }
        assert_eq!(contain("a test", || 5), Some(5));
        assert_eq!(contain("a test", || panic!("text")), None::<()>);
        assert_eq!(contain("a test", || panic!("{}", 1)), None::<()>);
        assert_eq!(contain("a test", || panic_any(Bomb)), None::<()>);
    }

    #[test]
    fn the_text_of_a_panic_is_found() {
        assert_eq!(text_of(&"text"), "text");
        assert_eq!(text_of(&String::from("text")), "text");
        assert_eq!(text_of(&7), "the panic has no message");
    }
}
