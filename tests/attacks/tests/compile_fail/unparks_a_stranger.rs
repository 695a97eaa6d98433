//! A foreign scheduler is given the names of its own tasks alone.

use std::ptr::NonNull;
use tsumugi_core::wait::{Foreign, Task};

fn unpark(scheduler: &dyn Foreign) {
    let nobody = Task::new(NonNull::dangling());
    scheduler.unpark(nobody);
    scheduler.park(nobody, None);
}

fn main() {}
