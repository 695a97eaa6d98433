//! A pool of OS threads, of which only as many run at a time as the pool has cores.
//! A job that blocks gives its core to another job.
//!
//! The pool does not depend on ranks or ULTs: it implements only `Foreign`, so that
//! its jobs can block in operations of the runtime.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;
use tsumugi::ult::{Foreign, ForeignTask};

/// The pool.
#[derive(Debug)]
pub struct Pool {
    cores: Mutex<Cores>,
    is_free: Condvar,
}

#[derive(Debug)]
struct Cores {
    free: usize,
    lent: usize,
}

/// A running job, on its thread's stack.
struct Job {
    pool: *const Pool,
    token: Mutex<bool>,
    unparked: Condvar,
}

thread_local! {
    static JOB: Cell<*const Job> = const { Cell::new(ptr::null()) };
}

impl Pool {
    /// Makes a pool of `cores` cores.
    pub fn new(cores: usize) -> Self {
        Self { cores: Mutex::new(Cores { free: cores, lent: 0 }), is_free: Condvar::new() }
    }

    /// Runs a job as soon as a core is free.
    pub fn spawn<T: Send + 'static>(
        &'static self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        thread::spawn(move || {
            let own = Job { pool: self, token: Mutex::new(false), unparked: Condvar::new() };
            self.take_core();
            JOB.set(&own);
            let value = job();
            JOB.set(ptr::null());
            self.give_core();
            value
        })
    }

    /// How often a job that blocked has given its core to another job.
    pub fn lent(&self) -> usize {
        self.cores.lock().unwrap().lent
    }

    fn take_core(&self) {
        let cores = self.cores.lock().unwrap();
        let mut cores = self.is_free.wait_while(cores, |cores| cores.free == 0).unwrap();
        cores.free -= 1;
    }

    fn give_core(&self) {
        self.cores.lock().unwrap().free += 1;
        self.is_free.notify_one();
    }
}

// SAFETY: a job's name is its address, which no other job has until this job has
// ended; a condition variable may be notified on any thread.
unsafe impl Foreign for Pool {
    fn current(&self) -> Option<ForeignTask> {
        let job = JOB.get();
        // SAFETY: `JOB` points to the thread's job while that runs.
        let is_ours = unsafe { job.as_ref() }.is_some_and(|job| ptr::eq(job.pool, self));
        NonNull::new(job.cast_mut().cast()).filter(|_| is_ours).map(ForeignTask::new)
    }

    unsafe fn park(&self, task: ForeignTask, limit: Option<Duration>) {
        // SAFETY: the caller is this job, so the job lives.
        let job = unsafe { task.name().cast::<Job>().as_ref() };
        self.cores.lock().unwrap().lent += 1;
        self.give_core();
        let token = job.token.lock().unwrap();
        let limit = limit.unwrap_or(Duration::MAX);
        let (mut token, _) =
            job.unparked.wait_timeout_while(token, limit, |token| !*token).unwrap();
        *token = false;
        drop(token);
        self.take_core();
    }

    unsafe fn unpark(&self, task: ForeignTask) {
        // SAFETY: the job has not ended.
        let job = unsafe { task.name().cast::<Job>().as_ref() };
        let mut token = job.token.lock().unwrap();
        *token = true;
        // Notified under the lock, because the job may end as soon as the lock is
        // free.
        job.unparked.notify_one();
    }

    fn yield_now(&self) {
        self.give_core();
        thread::yield_now();
        self.take_core();
    }
}
