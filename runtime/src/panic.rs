//! Containment of panics in functions of the program that the runtime calls:
//! callbacks and handlers. Such a panic ends the call, and has no effect on the
//! thread that made the call.

use std::any::Any;
use std::fmt::Display;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    let line = format!("tsumugi: {what} panicked: {}\n", text_of(&*panic));
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
