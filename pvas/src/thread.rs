//! Starts the OS threads that serve a rank or a launcher.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread. The body is in a box, so that a program has one copy of the library's code
/// for threads, and not a copy for each body.
///
/// # Errors
///
/// The system's, if it gives no thread.
pub fn start(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    start_boxed(name, Box::new(body))
}

#[inline(never)]
fn start_boxed(name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(body)
}
