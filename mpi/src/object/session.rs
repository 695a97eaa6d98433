//! Sessions: what a library within a program has of MPI, apart from the rest of it.

use crate::object::buffered::Buffered;
use crate::object::errhandler::{ErrhandlerCell, ErrhandlerRef};

/// A session.
pub(crate) struct Session {
    pub(crate) errhandler: ErrhandlerCell,
    pub(crate) buffered: Buffered,
}

impl Session {
    pub(crate) fn new(errhandler: ErrhandlerRef) -> Self {
        Self { errhandler: ErrhandlerCell::new(errhandler), buffered: Buffered::default() }
    }
}
