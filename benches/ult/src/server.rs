//! A system that answers: it takes the name of a row and runs one batch of it.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

/// A system on threads of its own.
#[derive(Debug)]
pub struct Server {
    /// Who it is: `tsumugi`.
    pub system: &'static str,
    /// How many workers it has.
    pub workers: usize,
    requests: Sender<&'static str>,
    answers: Receiver<Option<f64>>,
}

/// The system's end.
#[derive(Debug)]
pub struct Inbox {
    /// Locked so that a task that is polled here and there can hold it.
    requests: Mutex<Receiver<&'static str>>,
    answers: Sender<Option<f64>>,
}

impl Server {
    /// Starts a system: `serve` runs on a new OS thread, makes itself at home
    /// there and calls [`Inbox::serve`] until that returns.
    pub fn start(
        system: &'static str,
        workers: usize,
        serve: impl FnOnce(Inbox) + Send + 'static,
    ) -> Self {
        let (requests, inbox) = channel();
        let (outbox, answers) = channel();
        thread::Builder::new()
            .name(format!("{system}-{workers}"))
            .spawn(move || serve(Inbox { requests: Mutex::new(inbox), answers: outbox }))
            .expect("a thread for each system");
        Self { system, workers, requests, answers }
    }

    /// Nanoseconds per operation in one batch of `row`; `None`: the system
    /// does not have that row.
    ///
    /// # Panics
    ///
    /// If the system has died.
    pub fn batch(&self, row: &'static str) -> Option<f64> {
        self.requests.send(row).expect("the system is there");
        self.answers.recv().expect("the system answers")
    }
}

impl Inbox {
    /// Answers with `batch` until nobody asks any more. Blocks the OS thread
    /// while nobody asks.
    pub fn serve(&self, mut batch: impl FnMut(&'static str) -> Option<f64>) {
        while let Some(row) = self.next() {
            self.answer(batch(row));
        }
    }

    /// The next row asked for, where `serve` does not fit.
    pub fn next(&self) -> Option<&'static str> {
        self.requests.lock().expect("nobody panics here").recv().ok()
    }

    /// The answer to it.
    pub fn answer(&self, ns: Option<f64>) {
        // Nobody may listen any more; then there is no next either.
        let _ = self.answers.send(ns);
    }
}

/// Nanoseconds per operation of `work`, which does `ops`.
pub fn time(ops: u64, work: impl FnOnce()) -> Option<f64> {
    let start = Instant::now();
    work();
    Some(start.elapsed().as_nanos() as f64 / ops as f64)
}
