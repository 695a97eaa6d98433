//! The options of a ULT in one word: a worker to stay on, flags, a size of stack.

use super::descriptor::Task;
use super::particulars::Particulars;
use crate::fp::FpControl;
use crate::stack::Class;
use alloc::boxed::Box;
use tsumugi_core::sync::{Ordering, UnsafeCell};

/// The options that a builder sets, besides a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub(crate) worker: Option<usize>,
    pub(crate) urgent: bool,
    pub(crate) keeps_fp: bool,
    pub(crate) class: Class,
}

impl Task {
    /// Gives the ULT the options of its builder.
    ///
    /// # Safety
    ///
    /// The task is filled, and in no queue yet.
    pub(crate) unsafe fn adorn(&self, name: Option<Box<str>>, traits: Traits) {
        let worker = traits.worker.map_or(0, |worker| worker as u32 + 1);
        let urgent = if traits.urgent { URGENT } else { 0 };
        let keeps_fp = if traits.keeps_fp { KEEPS_FP } else { 0 };
        let class = u32::from(traits.class.index()) << CLASS_SHIFT;
        self.traits.store(worker | urgent | keeps_fp | class, Ordering::Relaxed);
        if name.is_some() || traits.keeps_fp {
            let fp = if traits.keeps_fp { FpControl::read() } else { FpControl::default() };
            let particulars = Box::new(Particulars { name, fp: UnsafeCell::new(fp) });
            // Release: pairs with the Acquire in `name`.
            self.particulars.store(Box::into_raw(particulars), Ordering::Release);
        }
    }

    /// The class of the stack that the ULT needs.
    #[inline]
    pub(crate) fn class(&self) -> Class {
        Class::from_index((self.traits.load(Ordering::Relaxed) >> CLASS_SHIFT) as u8)
    }

    /// Whether the ULT was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        // Relaxed: a hint. Where a cancellation must not be missed, the alarms' lock
        // orders the two.
        self.traits.load(Ordering::Relaxed) & CANCELLED != 0
    }

    pub(crate) fn set_cancelled(&self) {
        self.traits.fetch_or(CANCELLED, Ordering::Relaxed);
    }

    /// Whether any worker may run the ULT, when its turn comes.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.traits.load(Ordering::Relaxed) & (WORKER | URGENT) == 0
    }

    /// Whether a new ULT needs nothing but a stack of the ordinary size.
    #[inline(always)]
    pub(crate) fn is_usual_new(&self) -> bool {
        self.traits.load(Ordering::Relaxed) & !CANCELLED == 0
    }

    /// Whether the ULT has floating-point control words of its own.
    #[inline(always)]
    pub(crate) fn keeps_fp(&self) -> bool {
        self.traits.load(Ordering::Relaxed) & KEEPS_FP != 0
    }

    /// The ULT's floating-point control words, if it keeps them.
    ///
    /// # Safety
    ///
    /// As for [`head`](Self::head).
    pub(crate) unsafe fn fp(&self) -> Option<&UnsafeCell<FpControl>> {
        if !self.keeps_fp() {
            return None;
        }
        // SAFETY: the particulars stay until the task is cleared.
        unsafe { self.particulars.load(Ordering::Relaxed).as_ref() }.map(|have| &have.fp)
    }

    /// The worker on which the ULT slept last.
    #[inline(always)]
    pub(crate) fn last(&self) -> usize {
        self.last.load(Ordering::Relaxed) as usize
    }

    /// Notes the worker on which the ULT goes to sleep.
    #[inline(always)]
    pub(crate) fn set_last(&self, worker: usize) {
        // No store if nothing changes, so that a waker that has read the line need
        // not fetch it again.
        if self.last() != worker {
            self.last.store(worker as u32, Ordering::Relaxed);
        }
    }

    /// The worker to which the ULT is pinned, if it is.
    pub(crate) fn worker(&self) -> Option<usize> {
        (self.traits.load(Ordering::Relaxed) & WORKER).checked_sub(1).map(|worker| worker as usize)
    }

    /// Whether the ULT needs a stack of the ordinary size.
    #[inline(always)]
    pub(crate) fn is_ordinary(&self) -> bool {
        self.traits.load(Ordering::Relaxed) >> CLASS_SHIFT == 0
    }
}

// The bits of the traits: the worker, plus one, flags, and the class of stack.
const WORKER: u32 = 0xffff;
const URGENT: u32 = 1 << 16;
const KEEPS_FP: u32 = 1 << 17;
const CANCELLED: u32 = 1 << 18;
const CLASS_SHIFT: u32 = 24;
