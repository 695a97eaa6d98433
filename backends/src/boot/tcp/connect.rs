//! Connects to a server that listens at one of several addresses.
//!
//! ```text
//!  address 0  ──► no answer for 1 s
//!  address 1    ──► no answer for 1 s        50 ms apart
//!  address 2      ──► answers
//! ```
//!
//! An address of the server's host that does not answer from here delays the other
//! addresses for a moment only, however many there are.

use super::link::LinkError;
use crate::boot::sys;
use std::collections::VecDeque;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::slice::Iter;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tsumugi_core::boot::BootError;

/// The results of connecting to each address, in the order of the answers.
#[derive(Debug)]
pub(super) struct ConnectAttempts<'a> {
    left: Iter<'a, String>,
    deadline: Instant,
    /// The number of connection attempts that have not ended.
    running: usize,
    answers: Arc<ConnectAnswers>,
}

/// The attempts that have ended, for the thread that waits for them.
#[derive(Debug, Default)]
struct ConnectAnswers {
    ended: Mutex<VecDeque<Result<TcpStream, LinkError>>>,
    has_ended: Condvar,
}

impl<'a> ConnectAttempts<'a> {
    /// Connects to `addresses` (`host:port`), the first one first.
    pub(super) fn new(addresses: &'a [String], deadline: Instant) -> Self {
        Self { left: addresses.iter(), deadline, running: 0, answers: Arc::default() }
    }

    /// Starts to connect to the next address; `None` if there is none.
    fn start(&mut self) -> Option<()> {
        let (address, answers, deadline) =
            (self.left.next()?.clone(), self.answers.clone(), self.deadline);
        // A connection that comes too late is closed with the last use of the answers.
        let go = move || answers.push(connect(&address, deadline));
        if let Err(error) = sys::start_thread("tsumugi-call", go) {
            self.answers.push(Err(refused(error)));
        }
        self.running += 1;
        Some(())
    }
}

impl Iterator for ConnectAttempts<'_> {
    type Item = Result<TcpStream, LinkError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.running == 0 {
            self.start()?;
        }
        loop {
            let wait = if self.left.len() > 0 { NEXT_AFTER } else { ANSWER_WITHIN };
            if let Some(answer) = self.answers.pop(wait) {
                self.running -= 1;
                return Some(answer);
            }
            // With no address left, the name of a host is still being resolved.
            self.start()?;
        }
    }
}

impl ConnectAnswers {
    fn push(&self, answer: Result<TcpStream, LinkError>) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
        self.has_ended.notify_one();
    }

    /// Takes the answer that came first; `None` if none comes within `limit`.
    fn pop(&self, limit: Duration) -> Option<Result<TcpStream, LinkError>> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.has_ended.wait_timeout_while(ended, limit, |ended| ended.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.pop_front()
    }
}

fn connect(address: &str, deadline: Instant) -> Result<TcpStream, LinkError> {
    let mut last =
        LinkError::Transient(BootError::TimedOut { what: "the address of the server's host" });
    for address in address.to_socket_addrs().map_err(refused)? {
        let left = deadline.saturating_duration_since(Instant::now());
        let within = left.clamp(Duration::from_millis(1), CONNECT_WITHIN);
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => {
                // Without `nodelay` a small request may wait for the
                // acknowledgement of the one before: that is slower, but not wrong.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = refused(error),
        }
    }
    Err(last)
}

fn refused(error: io::Error) -> LinkError {
    let errno = error.raw_os_error().unwrap_or(0);
    LinkError::Transient(BootError::System { what: "connecting to the server", errno })
}

/// The limit of one attempt, so that an address that does not answer does not hide
/// the others.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
const NEXT_AFTER: Duration = Duration::from_millis(50);
/// Longer than a connection takes, and than the resolution of most names.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
