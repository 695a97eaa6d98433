//! The time in which a function of an operation of the program runs: within a reduction, where
//! nothing may wait.

use std::cell::Cell;
use tsumugi_ult::ult_local;

/// Marks the caller, a ULT or a thread that is none, as within such a function, as long as
/// the value lives.
pub(crate) struct InFunction {
    /// Whether it was within one before.
    before: bool,
}

impl InFunction {
    pub(crate) fn enter() -> Self {
        Self { before: IS_INSIDE.with(|is_inside| is_inside.replace(true)) }
    }
}

impl Drop for InFunction {
    fn drop(&mut self) {
        IS_INSIDE.with(|is_inside| is_inside.set(self.before));
    }
}

/// Whether the caller is within a function of an operation.
pub(crate) fn is_inside() -> bool {
    IS_INSIDE.with(Cell::get)
}

ult_local! {
    static IS_INSIDE: Cell<bool> = Cell::new(false);
}
