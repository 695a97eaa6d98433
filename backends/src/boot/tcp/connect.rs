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
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::slice::Iter;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_core::boot::BootError;

/// The results of connecting to each address, in the order of the answers.
#[derive(Debug)]
pub(super) struct ConnectAttempts<'a> {
    left: Iter<'a, String>,
    deadline: Instant,
    /// The number of connection attempts that have not ended.
    running: usize,
    answers: Receiver<Result<TcpStream, LinkError>>,
    answer: Sender<Result<TcpStream, LinkError>>,
}

impl<'a> ConnectAttempts<'a> {
    /// Connects to `addresses` (`host:port`), the first one first.
    pub(super) fn new(addresses: &'a [String], deadline: Instant) -> Self {
        let (answer, answers) = mpsc::channel();
        Self { left: addresses.iter(), deadline, running: 0, answers, answer }
    }

    /// Starts to connect to the next address; `None` if there is none.
    fn start(&mut self) -> Option<()> {
        let (address, answer, deadline) =
            (self.left.next()?.clone(), self.answer.clone(), self.deadline);
        // A connection that comes too late is closed with the channel.
        let go = move || drop(answer.send(connect(&address, deadline)));
        match thread::Builder::new().name("tsumugi-call".into()).spawn(go) {
            Ok(_) => {}
            Err(error) => drop(self.answer.send(Err(refused(error)))),
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
            match self.answers.recv_timeout(wait) {
                Ok(answer) => {
                    self.running -= 1;
                    return Some(answer);
                }
                Err(RecvTimeoutError::Timeout) if self.start().is_some() => {}
                // The name of a host is still being resolved.
                Err(_) => return None,
            }
        }
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
