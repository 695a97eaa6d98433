//! A system's end of the protocol by which it is given turns of one row.
//!
//! ```text
//!  requests  "turn"                           "turn" ...  end: it ends
//!  replies         batch batch batch "= 1 2"
//! ```
//!
//! A turn is several short batches of the row. The first batch warms up what the
//! other systems have cooled down, and is not reported, unless it alone is as
//! long as a turn.

use crate::Row;
use crate::uts::{Node, T1_DEPTH};
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a system is to do, and where it reports how long that took.
pub struct Inbox {
    row: &'static Row,
    workers: usize,
    is_quick: bool,
    talk: Mutex<Talk>,
}

struct Talk {
    /// Returns the time since a fixed moment.
    clock: Box<dyn Fn() -> Duration + Send>,
    requests: Box<dyn BufRead + Send>,
    answers: Box<dyn Write + Send>,
    turn: Option<Turn>,
}

struct Turn {
    begin: Duration,
    batches: usize,
    told: String,
}

impl Inbox {
    /// Makes the inbox of a system that is to do `row` on `workers` workers.
    pub fn new(
        row: &'static Row,
        workers: usize,
        is_quick: bool,
        requests: impl BufRead + Send + 'static,
        answers: impl Write + Send + 'static,
    ) -> Self {
        let epoch = Instant::now();
        let clock = Box::new(move || epoch.elapsed());
        let (requests, answers) = (Box::new(requests), Box::new(answers));
        let talk = Talk { clock, requests, answers, turn: None };
        Self { row, workers, is_quick, talk: Mutex::new(talk) }
    }

    /// Returns the row's name.
    pub fn row(&self) -> &'static str {
        self.row.name
    }

    /// Returns on how many workers the system is to do the row.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Returns the root of the tree of the row `uts`.
    pub fn tree(&self) -> Node {
        Node::root(T1_DEPTH)
    }

    /// Returns how many ULTs the row `bytes_per_ult` is to have.
    pub fn sleepers(&self) -> usize {
        if self.is_quick { SLEEPERS / 10 } else { SLEEPERS }
    }

    /// Calls `batch` for each request, until the requests end. `batch` returns
    /// nanoseconds per operation, or `None` if the system does not have such a
    /// row. Blocks the OS thread between two turns.
    pub fn serve(&self, mut batch: impl FnMut(&'static str) -> Option<f64>) {
        while self.next() {
            match batch(self.row()) {
                Some(ns) => self.answer(&[ns]),
                None => return self.refuse(NO_SUCH_THING),
            }
        }
    }

    /// Does what [`serve`](Self::serve) does, for a row of several parts.
    pub fn serve_parts<const N: usize>(&self, mut batch: impl FnMut() -> [f64; N]) {
        while self.next() {
            self.answer(&batch());
        }
    }

    /// Whether another batch is requested. For systems that cannot use `serve`.
    /// Blocks the OS thread.
    pub fn next(&self) -> bool {
        let mut talk = self.talk();
        if talk.turn.is_none() {
            let mut line = String::new();
            if !matches!(talk.requests.read_line(&mut line), Ok(1..)) {
                return false;
            }
            let told = String::from("=");
            let begin = (talk.clock)();
            talk.turn = Some(Turn { begin, batches: 0, told });
        }
        true
    }

    /// Reports what the batch took: a number for each of the row's parts.
    pub fn answer(&self, values: &[f64]) {
        let mut talk = self.talk();
        let now = (talk.clock)();
        let turn = talk.turn.as_mut().expect("an answer follows a request");
        let elapsed = now - turn.begin;
        if turn.batches > 0 || elapsed > TURN {
            for value in values {
                write!(turn.told, " {value}").expect("a string has room");
            }
        }
        turn.batches += 1;
        if elapsed > TURN && (turn.batches >= BATCHES_MIN || elapsed > TURN_MAX) {
            let told = talk.turn.take().map(|turn| turn.told);
            talk.say(&told.expect("a turn is under way"));
        }
    }

    /// Reports that the row cannot be done here, and why.
    pub fn refuse(&self, why: &str) {
        let mut talk = self.talk();
        talk.turn = None;
        talk.say(&format!("! {why}"));
    }

    /// Does what [`refuse`](Self::refuse) does for each request.
    pub fn refuse_all(&self, why: &str) {
        while self.next() {
            self.refuse(why);
        }
    }

    fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Talk {
    fn say(&mut self, line: &str) {
        // The other end may be closed. Then there are no more requests, either.
        let _ = writeln!(self.answers, "{line}").and_then(|()| self.answers.flush());
    }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("row", &self.row.name).finish_non_exhaustive()
    }
}

/// Returns nanoseconds per operation of `work`, which does `ops` operations.
pub fn time(ops: u64, work: impl FnOnce()) -> Option<f64> {
    let start = Instant::now();
    work();
    Some(start.elapsed().as_nanos() as f64 / ops as f64)
}

/// The text of a cell where a system has no such row.
pub const NO_SUCH_THING: &str = "has no such row";

/// A turn is so short that most turns are not disturbed.
const TURN: Duration = Duration::from_millis(2);
/// A batch that takes longer is done once in a turn.
const TURN_MAX: Duration = Duration::from_millis(40);
const BATCHES_MIN: usize = 3;
const SLEEPERS: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<u8>>>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns what an inbox writes in these turns. `batch` returns how long each
    /// batch takes, and its result.
    fn heard(turns: &'static str, mut batch: impl FnMut() -> Option<(Duration, f64)>) -> String {
        let (heard, time) = (Heard::default(), Arc::new(Mutex::new(Duration::ZERO)));
        let row = Row::named("yield2").unwrap();
        let inbox = Inbox::new(row, 1, true, Cursor::new(turns), heard.clone());
        let clock = time.clone();
        inbox.talk().clock = Box::new(move || *clock.lock().unwrap());
        inbox.serve(|_| {
            let (took, value) = batch()?;
            *time.lock().unwrap() += took;
            Some(value)
        });
        let bytes = heard.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_first_batch_of_a_turn_warms_up() {
        let mut batches = 0;
        let said = heard("turn\nturn\n", || {
            batches += 1;
            Some((TURN / 2, f64::from(batches)))
        });
        assert_eq!(said, "= 2 3\n= 5 6\n");
    }

    #[test]
    fn a_long_batch_runs_once_and_is_answered() {
        assert_eq!(heard("turn\n", || Some((TURN_MAX + TURN, 7.5))), "= 7.5\n");
    }

    #[test]
    fn a_row_that_a_system_lacks_is_refused() {
        assert_eq!(heard("turn\nturn\n", || None), format!("! {NO_SUCH_THING}\n"));
    }
}
