//! A foreign scheduler must get names of its own tasks only.

use std::ptr::NonNull;
use tsumugi_core::wait::{Foreign, ForeignTask};

fn unpark(scheduler: &dyn Foreign) {
    let nobody = ForeignTask::new(NonNull::dangling());
    scheduler.unpark(nobody);
    scheduler.park(nobody, None);
}

fn main() {}
