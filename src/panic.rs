//! Panics of what a program has the runtime call: callbacks and handlers. Such
//! a panic ends the call, and nothing of the thread that made it.

use std::any::Any;
use std::fmt::Display;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls, and reports a panic as that of `what`: then there is no result.
pub(crate) fn contain<R>(what: impl Display, call: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Some(result),
        Err(panic) => {
            report(what, panic);
            None
        }
    }
}

#[cold]
fn report(what: impl Display, panic: Box<dyn Any + Send>) {
    // One write, so that it does not mix with what others print; and a stream
    // that nobody reads is no reason to panic again.
    let line = format!("tsumugi: {what} panicked: {}\n", text_of(&*panic));
    let _ = std::io::stderr().write_all(line.as_bytes());
    // What was thrown may panic when it is dropped, and so may what that throws.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

/// What a panic says.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "with a value that is no text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    #[test]
    fn a_panic_is_contained_whatever_it_throws() {
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
    fn a_panic_says_its_text() {
        assert_eq!(text_of(&"text"), "text");
        assert_eq!(text_of(&String::from("text")), "text");
        assert_eq!(text_of(&7), "with a value that is no text");
    }
}
