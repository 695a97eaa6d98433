//! The thread through which the output of ranks goes.
//!
//! It alone writes to the launcher's output, so lines of different ranks do not mix, and
//! a reader of that output who is slow holds up the ranks that write, and not the
//! launcher's watch over them. What the launcher says itself comes after the output that
//! ranks had written before.

use super::follower::Followers;
use super::lines::{Lines, Output, Stream};
use crate::sys;
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tsumugi_core::mem::Rank;

/// The thread; dropping this value passes on what is left, and ends the thread.
#[derive(Debug)]
pub struct Relay {
    words: Arc<RelayWords>,
    /// Wakes the thread; `None` at the end.
    bell: Option<PipeWriter>,
    thread: Option<JoinHandle<bool>>,
}

/// What the launcher requests of the thread.
#[derive(Debug)]
enum RelayWord {
    Say(String),
    Expect(Rank),
}

/// The words that the thread has not taken.
type RelayWords = Mutex<Vec<RelayWord>>;

/// The thread's part.
struct RelayLoop {
    lines: Vec<Lines>,
    output: Output,
    followers: Followers,
    words: Arc<RelayWords>,
    bell: PipeReader,
    chunk: Vec<u8>,
    /// Whether a user may wait for a question of rank 0.
    is_interactive: bool,
}

impl Relay {
    /// Starts the thread for `streams` of several programs.
    ///
    /// # Errors
    ///
    /// The system's, if it gives no pipe or no thread.
    pub fn of_streams(streams: impl IntoIterator<Item = (OwnedFd, Stream)>) -> io::Result<Self> {
        Self::start(streams.into_iter().map(|(fd, stream)| Lines::new(fd, stream, None)).collect())
    }

    /// Starts the thread.
    pub(super) fn start(lines: Vec<Lines>) -> io::Result<Self> {
        let words = Arc::new(RelayWords::default());
        let (bell, ring) = io::pipe()?;
        let relay = RelayLoop {
            lines,
            output: Output::new(),
            followers: Followers::default(),
            words: words.clone(),
            bell,
            chunk: vec![0; CHUNK_BYTES],
            is_interactive: io::stdin().is_terminal(),
        };
        let thread = thread::Builder::new().name("output".to_owned()).spawn(|| relay.run())?;
        Ok(Self { words, bell: Some(ring), thread: Some(thread) })
    }

    /// Writes a line of the launcher's own to standard error.
    pub fn say(&self, line: impl Into<String>) {
        self.send(RelayWord::Say(line.into()));
    }

    /// Passes on what is left. Returns whether all output was written; if not, the reason is
    /// on standard error. Output whose reader has gone away counts as written.
    pub fn end(mut self) -> bool {
        self.finish()
    }

    fn finish(&mut self) -> bool {
        self.bell = None;
        let ended = self.thread.take().map(JoinHandle::join);
        ended.is_none_or(|ended| ended.unwrap_or(false))
    }

    /// From now on drops the lines in which other ranks only say that a rank has died.
    pub(super) fn expect_followers(&self, cause: Rank) {
        self.send(RelayWord::Expect(cause));
    }

    fn send(&self, word: RelayWord) {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).push(word);
        // This fails only after the thread has panicked.
        let _ = self.bell.as_ref().map(|mut bell| bell.write(&[0]));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.finish();
    }
}

impl RelayLoop {
    /// Returns whether all output was written.
    fn run(mut self) -> bool {
        while let Ok(ready) = self.wait() {
            let is_told = ready.first() == Some(&true);
            if ready.iter().all(|ready| !ready) {
                if self.is_interactive {
                    self.show_question();
                }
                continue;
            }
            // First: a rank learns of a death only after the thread was told of it.
            let says = is_told.then(|| self.hear());
            let open = self.lines.iter().map(|lines| lines.fd().is_some());
            let mut ready = ready.into_iter().skip(1);
            let readable: Vec<usize> = open
                .enumerate()
                .filter_map(|(at, is_open)| (is_open && ready.next()?).then_some(at))
                .collect();
            for at in readable {
                self.forward(at);
            }
            let Some((says, is_last)) = says else { continue };
            self.drain();
            let own = self.lines.len();
            self.output.write(Stream::Err, own, says.as_bytes());
            if is_last {
                break;
            }
        }
        self.drain();
        for (at, lines) in self.lines.iter_mut().enumerate() {
            lines.close(at, &mut self.output, &mut self.followers);
        }
        if let Some((stream, errno)) = self.output.failed() {
            let error = io::Error::from_raw_os_error(errno);
            let line = format!("tsumugi: {stream} cannot be written, output is lost: {error}\n");
            self.output.write(Stream::Err, self.lines.len(), line.as_bytes());
        }
        self.output.failed().is_none()
    }

    /// Takes the launcher's words. Returns what is to be written, and whether these are
    /// the last ones.
    fn hear(&mut self) -> (String, bool) {
        let mut bytes = [0; 64];
        let is_last = matches!(self.bell.read(&mut bytes), Ok(0));
        let mut says = String::new();
        let words = std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner));
        for word in words {
            match word {
                RelayWord::Say(line) => says.push_str(&line),
                RelayWord::Expect(cause) => self.followers.expect(cause),
            }
        }
        (says, is_last)
    }

    /// Passes on all that a rank has written before this call.
    fn drain(&mut self) {
        for at in 0..self.lines.len() {
            // A process that never stops writing holds up nothing: a pipe has at most
            // 1 MiB.
            let mut left = PIPE_BYTES_MAX.div_ceil(CHUNK_BYTES);
            while left > 0 && self.forward(at) {
                left -= 1;
            }
        }
    }

    fn forward(&mut self, at: usize) -> bool {
        self.lines[at].forward(&mut self.chunk, at, &mut self.output, &mut self.followers)
    }

    /// Passes on the line that rank 0 has begun, if nothing else has come for a while.
    fn show_question(&mut self) {
        for (at, lines) in self.lines.iter_mut().enumerate() {
            if lines.rank() == Some(Rank(0)) && lines.has_partial() {
                lines.show_partial(at, &mut self.output);
            }
        }
    }

    fn wait(&self) -> io::Result<Vec<bool>> {
        let is_asking = |lines: &Lines| lines.rank() == Some(Rank(0)) && lines.has_partial();
        let limit = match self.is_interactive && self.lines.iter().any(is_asking) {
            true => QUESTION_AFTER,
            false => Duration::MAX,
        };
        let streams = self.lines.iter().filter_map(Lines::fd);
        let fds: Vec<BorrowedFd<'_>> = std::iter::once(self.bell.as_fd()).chain(streams).collect();
        sys::poll(&fds, limit)
    }
}

/// The size of one read.
const CHUNK_BYTES: usize = 64 << 10;
/// The system's limit for the size of a pipe, for programs without privileges.
const PIPE_BYTES_MAX: usize = 1 << 20;
/// The time after which an incomplete line is taken for a question to the user.
const QUESTION_AFTER: Duration = Duration::from_millis(100);
