//! Error handlers. A handler of the program lasts until the program has freed each handle of it,
//! and no communicator or session has it: to have it again from one of these is another handle.

use crate::abi::{MPI_Comm, MPI_Errhandler};
use crate::object::table::lock;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard};

/// A function of the program for the errors of communicators.
pub(crate) type ErrhandlerFn = unsafe extern "C" fn(*mut MPI_Comm, *mut c_int, ...);

/// A handler of the program.
pub(crate) struct Errhandler {
    function: ErrhandlerFn,
    given: Mutex<GivenHandles>,
}

/// The handles of a handler that the program has and has not freed. They have one number.
pub(crate) struct GivenHandles {
    pub(crate) handle: MPI_Errhandler,
    pub(crate) count: usize,
}

/// The handler that an object has.
#[derive(Clone)]
pub(crate) enum ErrhandlerRef {
    Given(MPI_Errhandler),
    Made(Arc<Errhandler>),
}

/// The place of the handler of an object.
pub(crate) struct ErrhandlerCell(Mutex<ErrhandlerRef>);

/// What happens with an error.
pub(crate) enum Handling {
    Return,
    Fatal,
    Call(ErrhandlerFn),
}

impl Errhandler {
    /// A handler, of which the program has no handle yet.
    pub(crate) fn new(function: ErrhandlerFn) -> Self {
        let given = GivenHandles { handle: MPI_Errhandler::NULL, count: 0 };
        Self { function, given: Mutex::new(given) }
    }

    pub(crate) fn given(&self) -> MutexGuard<'_, GivenHandles> {
        lock(&self.given)
    }
}

impl ErrhandlerRef {
    /// What the handler does.
    pub(crate) fn handling(&self) -> Handling {
        match self {
            Self::Given(MPI_Errhandler::RETURN) => Handling::Return,
            Self::Given(_) => Handling::Fatal,
            Self::Made(handler) => Handling::Call(handler.function),
        }
    }
}

impl ErrhandlerCell {
    pub(crate) fn new(handler: ErrhandlerRef) -> Self {
        Self(Mutex::new(handler))
    }

    pub(crate) fn get(&self) -> ErrhandlerRef {
        lock(&self.0).clone()
    }

    pub(crate) fn set(&self, handler: ErrhandlerRef) {
        *lock(&self.0) = handler;
    }
}
