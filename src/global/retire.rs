//! Memory whose address was taken away, and who waits to have it back.

use crate::gas::Memory;
use std::sync::{Arc, Mutex, PoisonError};
use tsumugi_ult::sync::Latch;

/// The end of who waits.
pub(super) struct Retiring<M> {
    memory: Option<M>,
    back: Arc<Back<M>>,
}

/// The end of the driver, which drops it when nobody reaches the memory.
struct Kept<M> {
    memory: Option<M>,
    back: Arc<Back<M>>,
}

struct Back<M> {
    memory: Mutex<Option<M>>,
    is_back: Latch,
}

impl<M: Send + 'static> Retiring<M> {
    pub(super) fn new(memory: M) -> Self {
        let back = Arc::new(Back { memory: Mutex::new(None), is_back: Latch::new(1) });
        Self { memory: Some(memory), back }
    }

    /// What is retired.
    pub(super) fn memory(&mut self) -> Memory {
        Box::new(Kept { memory: self.memory.take(), back: self.back.clone() })
    }

    /// Sleeps until it comes back. Blocking.
    pub(super) fn wait(self) -> M {
        self.back.is_back.wait();
        let memory = self.back.memory.lock().unwrap_or_else(PoisonError::into_inner).take();
        memory.expect("it was put there before")
    }
}

impl<M> Drop for Kept<M> {
    fn drop(&mut self) {
        *self.back.memory.lock().unwrap_or_else(PoisonError::into_inner) = self.memory.take();
        self.back.is_back.count_down(1);
    }
}
