//! A foreign scheduler must get names of its own tasks only.

use std::ptr::NonNull;
use tsumugi_core::wait::{Foreign, Task};

fn unpark(scheduler: &dyn Foreign) {
    let nobody = Task::new(NonNull::dangling());
    scheduler.unpark(nobody);
    scheduler.park(nobody, None);
}

fn main() {}
