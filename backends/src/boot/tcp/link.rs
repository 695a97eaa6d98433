//! A rank's connection to the server.

use super::frame::{BootMessage, FrameError};
use super::inbox::Inbox;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tsumugi_core::boot::BootError;

/// A rank's connection to the server.
#[derive(Debug)]
pub(super) struct ServerLink {
    stream: TcpStream,
    inbox: Inbox,
}

/// An error, with whether another attempt makes sense.
#[derive(Debug)]
pub(super) enum LinkError {
    Transient(BootError),
    Final(BootError),
}

impl ServerLink {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, inbox: Inbox::default() }
    }

    /// Accepts longer bodies from now on, because the other end has proved that it
    /// is the server.
    pub(super) fn widen(&mut self) {
        self.inbox.widen();
    }

    pub(super) fn send(&mut self, message: &BootMessage) -> Result<(), LinkError> {
        let passing = |error| LinkError::Transient(broken(error));
        self.stream.set_write_timeout(Some(GREET_WITHIN)).map_err(passing)?;
        self.stream.write_all(&message.to_frame()).map_err(passing)
    }

    pub(super) fn receive(
        &mut self,
        what: &'static str,
        deadline: Instant,
    ) -> Result<BootMessage, LinkError> {
        let timed_out = LinkError::Transient(BootError::TimedOut { what });
        self.receive_until(deadline)?.ok_or(timed_out)
    }

    /// The next message, if it comes before `until`.
    pub(super) fn receive_until(
        &mut self,
        until: Instant,
    ) -> Result<Option<BootMessage>, LinkError> {
        let mut bytes = [0; 2048];
        loop {
            match self.inbox.pop() {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(FrameError::Version { .. }) => {
                    let why = "the server has another version of tsumugi";
                    return Err(LinkError::Final(BootError::Refused { why }));
                }
                Err(_) => return Err(garbled()),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let got = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| self.stream.read(&mut bytes));
            match got {
                Ok(0) => return Err(LinkError::Transient(BootError::Disconnected)),
                Ok(read) => self.inbox.push(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(LinkError::Transient(broken(error))),
            }
        }
    }
}

pub(super) fn garbled() -> LinkError {
    LinkError::Transient(GARBLED)
}

fn broken(_: io::Error) -> BootError {
    BootError::Disconnected
}

pub(super) const GARBLED: BootError = BootError::Garbled { what: "the answer of the server" };
pub(super) const GREET_WITHIN: Duration = Duration::from_secs(5);
