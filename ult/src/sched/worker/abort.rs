//! A panic outside of any ULT ends the process.

use crate::host;

/// Aborts when a worker's own loop unwinds: no ULT could be given that panic.
pub(super) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        host::say(b"tsumugi: a worker panicked outside of any ULT: the process is aborted\n");
        host::abort();
    }
}
