//! Returns memory to a waiting caller after its address was taken away.

use std::sync::{Arc, Mutex, PoisonError};
use tsumugi_runtime::service::global_memory::RetiredMemory;
use tsumugi_ult::sync::Latch;

/// The side of the caller that waits for the memory.
pub(super) struct Retiring<M> {
    memory: Option<M>,
    back: Arc<Back<M>>,
}

/// The side of the driver, which drops it when no rank reaches the memory any more.
struct KeptByDriver<M> {
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

    /// The memory to be retired, as the driver's side of this.
    pub(super) fn memory(&mut self) -> RetiredMemory {
        Box::new(KeptByDriver { memory: self.memory.take(), back: self.back.clone() })
    }

    /// Sleeps until the driver has dropped the memory, and returns it. Blocking.
    pub(super) fn wait(self) -> M {
        self.back.is_back.wait();
        let memory = self.back.memory.lock().unwrap_or_else(PoisonError::into_inner).take();
        memory.expect("the memory was put there before")
    }
}

impl<M> Drop for KeptByDriver<M> {
    fn drop(&mut self) {
        *self.back.memory.lock().unwrap_or_else(PoisonError::into_inner) = self.memory.take();
        self.back.is_back.count_down(1);
    }
}
