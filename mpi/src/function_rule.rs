//! The rule for functions of operations: they neither wait nor communicate. tsumugi's calls
//! panic where nothing may wait, and no panic can leave a function of C, so the process ends;
//! the sentence is that of an error of MPI.

use crate::abi;
use crate::call::die;
use crate::object::program_function::is_inside;
use std::panic;
use std::sync::Once;

/// From now on a panic within a function of an operation ends the job with one sentence.
pub(crate) fn watch_functions() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_inside() {
                return before(info);
            }
            let why = info.payload_as_str().unwrap_or("it has panicked");
            let text = format!(
                "MPI_Op_create: the function of an operation must not wait, and must not call \
                 MPI to communicate: {why}"
            );
            die(&text, abi::ERR_OP)
        }));
    });
}
