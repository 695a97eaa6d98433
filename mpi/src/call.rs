//! Calls of the program, and what happens when one fails.

use crate::abi::{self, MPI_Comm, MPI_Session};
use crate::fault::{Answer, Fault, name_of};
use crate::job::{Job, abort, is_fork, job, rank};
use crate::object::communicator::{CommRef, Communicator};
use crate::object::errhandler::{ErrhandlerRef, Handling};
use crate::object::session::Session;
use std::cell::RefCell;
use std::ffi::c_int;
use tsumugi::{MessageError, Rank};
use tsumugi_ult::ult_local;

/// Runs a call that belongs to no communicator.
pub(crate) fn call(name: &str, body: impl FnOnce(&'static Job) -> Answer) -> c_int {
    match job().and_then(body) {
        Ok(()) => abi::SUCCESS,
        Err(fault) => failed(name, None, &fault),
    }
}

/// Runs a call on a communicator, whose error handler gets its error.
#[inline]
pub(crate) fn call_on(
    name: &str,
    comm: MPI_Comm,
    body: impl FnOnce(&'static Job, &CommRef) -> Answer,
) -> c_int {
    let job = match job() {
        Ok(job) => job,
        Err(fault) => return failed(name, None, &fault),
    };
    match job.comm(comm) {
        Ok(found) => match body(job, &found) {
            Ok(()) => abi::SUCCESS,
            Err(fault) => failed(name, Some(&found), &fault),
        },
        Err(fault) => failed(name, None, &fault),
    }
}

/// Runs a call on a session, whose error handler gets its error.
pub(crate) fn call_in(
    name: &str,
    session: MPI_Session,
    body: impl FnOnce(&'static Job, &Session) -> Answer,
) -> c_int {
    let job = match job() {
        Ok(job) => job,
        Err(fault) => return failed(name, None, &fault),
    };
    let Some(found) = job.sessions.get(session.0) else {
        let text = format!("no session has the handle {:#x}", session.0);
        return failed(name, None, &Fault::new(abi::ERR_SESSION, text));
    };
    match body(job, &found) {
        Ok(()) => abi::SUCCESS,
        Err(fault) => {
            let text = format!("{name} on session {:#x}: {}", session.0, fault.text);
            handled(&found.errhandler.get(), session.0, text, fault.class)
        }
    }
}

/// Has the error handler of the communicator handle a failed call, and returns its code.
#[cold]
pub(crate) fn failed(name: &str, comm: Option<&Communicator>, fault: &Fault) -> c_int {
    let text = match comm {
        Some(comm) => format!("{name} on {comm}: {}", on(comm, fault)),
        None => format!("{name}: {}", fault.text),
    };
    let Ok(job) = job() else { die(&text, fault.class) };
    let comm = comm.unwrap_or(&job.own);
    handled(&comm.errhandler.get(), comm.handle().0, text, fault.class)
}

/// Has a handler handle an error of an object.
fn handled(handler: &ErrhandlerRef, handle: usize, text: String, class: c_int) -> c_int {
    LAST.with(|last| *last.borrow_mut() = Some((class, text.clone())));
    match handler.handling() {
        Handling::Return => {}
        Handling::Fatal => die(&text, class),
        Handling::Call(function) => {
            let (mut handle, mut code) = (MPI_Comm(handle), class);
            // SAFETY: the program's function, for a handle of an object and an error code.
            unsafe { function(&raw mut handle, &raw mut code) };
        }
    }
    class
}

/// The sentence for a call on a communicator, whose ranks have numbers of their own.
fn on(comm: &Communicator, fault: &Fault) -> String {
    let text = match fault.message {
        Some(MessageError::Truncated { source, tag, bytes, room }) => {
            let source = Rank(comm.place_of(source).cast_unsigned());
            MessageError::Truncated { source, tag, bytes, room }.to_string()
        }
        Some(MessageError::PeerLost { rank }) => match comm.place_of(rank) {
            abi::UNDEFINED => format!("{rank} of the job has died"),
            place if place.cast_unsigned() == rank.0 => return fault.text.to_string(),
            place => format!("rank {place} ({rank} of the job) has died"),
        },
        _ => return fault.text.to_string(),
    };
    // What a call has added to the sentence stays.
    let of_job = fault.message.as_ref().map(|message| message.to_string()).unwrap_or_default();
    fault.text.replacen(&of_job, &text, 1)
}

/// Reports a function that is not built.
#[cold]
pub(crate) fn unsupported(name: &str) -> c_int {
    let text = "this library does not have this function yet";
    failed(name, None, &Fault::new(abi::ERR_UNSUPPORTED_OPERATION, text))
}

/// Ends the process, and with it the job, unless the process is a forked child.
#[cold]
pub(crate) fn die(text: &str, code: c_int) -> ! {
    let ends = if is_fork() { "this process" } else { "the job" };
    eprintln!("{}{text} (class {}); {ends} ends", rank_prefix(), name_of(code).0);
    abort(code)
}

/// `rank 3: `, once the rank is known.
pub(crate) fn rank_prefix() -> String {
    rank().map_or_else(String::new, |rank| format!("{rank}: "))
}

/// The sentence of an error code, with the caller's last error, if it is of this class. A caller
/// is a ULT, or a thread that is none.
pub(crate) fn sentence(code: c_int) -> Option<String> {
    let (name, text) = name_of(code);
    if name.is_empty() {
        return None;
    }
    let last = LAST.with(|last| {
        let last = last.borrow();
        last.as_ref().filter(|(class, _)| *class == code).map(|(_, text)| text.clone())
    });
    Some(match last {
        Some(last) => format!("{name}: {text} ({last})"),
        None => format!("{name}: {text}"),
    })
}

ult_local! {
    static LAST: RefCell<Option<(c_int, String)>> = RefCell::new(None);
}
