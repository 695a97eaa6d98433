//! Data that few ULTs have.

use crate::fp::FpControl;
use alloc::boxed::Box;
use tsumugi_core::sync::UnsafeCell;

/// Data that few ULTs have.
pub(crate) struct Particulars {
    pub(crate) name: Option<Box<str>>,
    /// The ULT's floating-point control words, if it keeps them. Used by the worker
    /// that has the ULT.
    pub(super) fp: UnsafeCell<FpControl>,
}
