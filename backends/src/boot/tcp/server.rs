//! The sockets around a table of ranks: one thread, which sleeps until data comes.
//!
//! Limits: connections that have not proved the secret are limited in number and are
//! dropped after some seconds; a rank has one connection; answers that a rank does
//! not read are kept only up to a limit.

use super::frame::{BootMessage, FrameError, ProcessEnd, Refusal};
use super::inbox::Inbox;
use super::rank_table::RankTable;
use super::secret::{Nonce, ProofSide, Secret, nonce};
use crate::boot::sys::{self, Watched};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The server of one job; it ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server for `size` ranks, which must come within `limit`.
    ///
    /// # Errors
    ///
    /// The error of the system, if the sockets or the thread cannot be set up.
    pub fn start(
        listener: TcpListener,
        size: u32,
        secret: Secret,
        limit: Duration,
    ) -> io::Result<Self> {
        Self::serve(listener, size, secret, limit, None)
    }

    /// The same, with agents: passes to `ends` the ranks that agents report as
    /// ended and that had not reported that they are done.
    ///
    /// # Errors
    ///
    /// The error of the system, if the sockets or the thread cannot be set up.
    pub fn start_with_agents(
        listener: TcpListener,
        size: u32,
        secret: Secret,
        limit: Duration,
        ends: EndsHandler,
    ) -> io::Result<Self> {
        Self::serve(listener, size, secret, limit, Some(ends))
    }

    fn serve(
        listener: TcpListener,
        size: u32,
        secret: Secret,
        limit: Duration,
        ends: Option<EndsHandler>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = UnixStream::pair()?;
        let ranks = RankTable::new(size, Instant::now() + limit, GRACE);
        let mut state = ServerState { ranks, secret, size, ends, connections: Vec::new() };
        let serve = move || {
            // If the server cannot wait any more, it ends; each rank then returns
            // an error.
            let _ = state.serve(&listener, &stopped);
        };
        let thread = sys::start_thread("tsumugi-boot", serve)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// The address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until every rank has finished or is lost, within `limit`.
    pub fn drain(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let is_over = |server: &Self| server.thread.as_ref().is_none_or(JoinHandle::is_finished);
        while !is_over(self) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The other end may be gone already.
        let _ = self.stop.write_all(&[0]);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Receives the ends of one message.
pub type EndsHandler = Box<dyn Fn(Vec<ProcessEnd>) + Send>;

struct ServerState {
    ranks: RankTable,
    secret: Secret,
    size: u32,
    /// Receives the ends that agents report; `None`: agents are refused.
    ends: Option<EndsHandler>,
    connections: Vec<ServerConnection>,
}

/// One connection.
struct ServerConnection {
    stream: TcpStream,
    inbox: Inbox,
    outbox: Vec<u8>,
    stage: HandshakeStage,
    /// Whether the connection is closed when its outbox is sent.
    closing: bool,
}

enum HandshakeStage {
    /// The caller has received a challenge; it is dropped after the deadline.
    Asked { nonce: Nonce, deadline: Instant },
    /// The caller is this rank.
    Joined(u32),
    /// The caller is a program that has started ranks on a host.
    Agent,
}

impl ServerState {
    fn serve(&mut self, listener: &TcpListener, stop: &UnixStream) -> io::Result<()> {
        loop {
            let ready = self.wait(listener, stop)?;
            if ready[1] {
                return Ok(());
            }
            if ready[0] {
                self.accept(listener);
            }
            let now = Instant::now();
            for index in (0..self.connections.len()).rev() {
                let has_something = ready.get(2 + index).copied().unwrap_or(false);
                if has_something && !self.receive(index) {
                    self.leave(index, now);
                }
            }
            for (rank, answer) in self.ranks.poll(now) {
                self.answer(rank, &answer);
            }
            self.flush(now);
            if self.ranks.is_over() && self.connections.is_empty() {
                return Ok(());
            }
        }
    }

    fn wait(&self, listener: &TcpListener, stop: &UnixStream) -> io::Result<Vec<bool>> {
        let mut watched = vec![
            Watched { fd: listener.as_fd(), writes: false },
            Watched { fd: stop.as_fd(), writes: false },
        ];
        watched.extend(self.connections.iter().map(|connection| Watched {
            fd: connection.stream.as_fd(),
            writes: !connection.outbox.is_empty(),
        }));
        let asked = self.connections.iter().filter_map(|connection| match connection.stage {
            HandshakeStage::Asked { deadline, .. } => Some(deadline),
            HandshakeStage::Joined(_) | HandshakeStage::Agent => None,
        });
        let due = asked.chain(self.ranks.due()).min();
        let now = Instant::now();
        let limit = due.map_or(LOOK_AGAIN, |due| due.saturating_duration_since(now));
        sys::poll(&watched, limit)
    }

    fn accept(&mut self, listener: &TcpListener) {
        let asked = |connection: &&ServerConnection| {
            matches!(connection.stage, HandshakeStage::Asked { .. })
        };
        let mut room = STRANGERS_MAX.saturating_sub(self.connections.iter().filter(asked).count());
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // No descriptor is left at the moment; the connections will connect
                    // again.
                    thread::sleep(AGAIN_AFTER);
                    return;
                }
            };
            let Some(left) = room.checked_sub(1) else { continue };
            room = left;
            let Ok(nonce) = nonce() else { continue };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            // Without `nodelay` a small answer may wait for the acknowledgement of
            // the one before: that is slower, but not wrong.
            let _ = stream.set_nodelay(true);
            let deadline = Instant::now() + PROVE_WITHIN;
            self.connections.push(ServerConnection {
                stream,
                inbox: Inbox::default(),
                outbox: BootMessage::Challenge { nonce }.to_frame(),
                stage: HandshakeStage::Asked { nonce, deadline },
                closing: false,
            });
        }
    }

    /// Reads and handles the received bytes, up to a limit so that other connections
    /// have their turn; returns false if the caller must be dropped.
    fn receive(&mut self, index: usize) -> bool {
        let mut bytes = [0; 4096];
        for _ in 0..TURN_READS {
            let connection = &mut self.connections[index];
            match connection.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(_) if connection.closing => {}
                Ok(read) => {
                    connection.inbox.push(&bytes[..read]);
                    if !self.handle(index) {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn handle(&mut self, index: usize) -> bool {
        loop {
            let connection = &mut self.connections[index];
            let message = match connection.inbox.pop() {
                Ok(None) => return true,
                Ok(Some(message)) => message,
                Err(FrameError::Version { .. }) => {
                    return self.refuse(index, Refusal::Version);
                }
                Err(_) => return false,
            };
            match connection.stage {
                HandshakeStage::Asked { nonce, .. } => {
                    if let Err(why) = self.admit(index, &nonce, message) {
                        return self.refuse(index, why);
                    }
                }
                HandshakeStage::Joined(rank) => match self.ranks.handle(rank, message) {
                    Ok(None) => {}
                    Ok(Some(answer)) => self.answer(rank, &answer),
                    Err(_) => return false,
                },
                HandshakeStage::Agent => {
                    let BootMessage::Ended { ends } = message else { return false };
                    self.tell(&ends);
                    let done = BootMessage::Done { round: 0 };
                    self.connections[index].outbox.extend(done.to_frame());
                }
            }
            if self.connections[index].outbox.len() > OUTBOX_BYTES_MAX {
                return false;
            }
        }
    }

    fn admit(&mut self, index: usize, nonce: &Nonce, message: BootMessage) -> Result<(), Refusal> {
        let BootMessage::Hello { rank, size, session, nonce: theirs, proof } = message else {
            return Err(Refusal::Secret);
        };
        let said = [&rank.to_le_bytes()[..], &size.to_le_bytes(), &session.to_le_bytes()].concat();
        if !self.secret.is_proved(ProofSide::Client, &[&said, nonce, &theirs], &proof) {
            return Err(Refusal::Secret);
        }
        let proof = self.secret.prove(ProofSide::Server, &[&said, &theirs, nonce]);
        let welcome = BootMessage::Welcome { proof }.to_frame();
        if rank == AGENT && size == self.size && self.ends.is_some() {
            self.connections[index].stage = HandshakeStage::Agent;
            self.connections[index].outbox.extend(welcome);
            return Ok(());
        }
        self.ranks.join(rank, size, session)?;
        // The same process has connected again, so its old connection is dead.
        for old in &mut self.connections {
            if matches!(old.stage, HandshakeStage::Joined(known) if known == rank) {
                old.closing = true;
                old.outbox.clear();
                old.stage = HandshakeStage::Asked { nonce: [0; 16], deadline: Instant::now() };
            }
        }
        self.connections[index].stage = HandshakeStage::Joined(rank);
        self.connections[index].outbox.extend(welcome);
        Ok(())
    }

    /// Passes on the ends that are failures. A program that never joins may end at
    /// any time with exit code 0; a rank that has joined may not end before it is
    /// done.
    fn tell(&self, ended: &[ProcessEnd]) {
        let is_bad = |end: &&ProcessEnd| !end.is_clean() || self.ranks.is_unfinished(end.rank);
        let bad = ended.iter().filter(|end| end.rank < self.size).filter(is_bad);
        let bad: Vec<ProcessEnd> = bad.copied().collect();
        if let Some(ends) = self.ends.as_ref().filter(|_| !bad.is_empty()) {
            ends(bad);
        }
    }

    /// Sends the reason, and closes the connection when that is sent.
    fn refuse(&mut self, index: usize, why: Refusal) -> bool {
        let connection = &mut self.connections[index];
        connection.closing = true;
        connection.outbox.extend(BootMessage::Refuse { why }.to_frame());
        true
    }

    fn answer(&mut self, rank: u32, answer: &BootMessage) {
        let is_rank = |connection: &&mut ServerConnection| matches!(connection.stage, HandshakeStage::Joined(r) if r == rank);
        if let Some(connection) = self.connections.iter_mut().find(is_rank) {
            connection.outbox.extend(answer.to_frame());
        }
    }

    /// Sends as much as can be sent, and drops the connections that are gone or late.
    fn flush(&mut self, now: Instant) {
        for index in (0..self.connections.len()).rev() {
            let connection = &mut self.connections[index];
            let is_gone = match connection.stream.write(&connection.outbox) {
                _ if connection.outbox.is_empty() => connection.closing,
                Ok(sent) => {
                    connection.outbox.drain(..sent);
                    connection.closing && connection.outbox.is_empty()
                }
                Err(error) => {
                    !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
                }
            };
            let is_late = matches!(connection.stage, HandshakeStage::Asked { deadline, .. } if now >= deadline);
            if is_gone || is_late {
                self.leave(index, now);
            }
        }
    }

    fn leave(&mut self, index: usize, now: Instant) {
        if let HandshakeStage::Joined(rank) = self.connections.swap_remove(index).stage {
            self.ranks.leave(rank, now);
        }
        // No host has more agents than ranks.
        debug_assert!(self.connections.len() <= 2 * self.size as usize + STRANGERS_MAX);
    }
}

/// The number that an agent sends in the place of a rank.
pub(super) const AGENT: u32 = u32::MAX;
/// A rank that has lost its connection must come back within this time.
const GRACE: Duration = Duration::from_secs(2);
/// A caller must prove within this time that it knows the secret.
const PROVE_WITHIN: Duration = Duration::from_secs(5);
/// The largest number of connections without a proof; more are refused.
const STRANGERS_MAX: usize = 1024;
/// The limit of an outbox: answers to some requests.
const OUTBOX_BYTES_MAX: usize = 64 << 10;
const TURN_READS: usize = 16;
const AGAIN_AFTER: Duration = Duration::from_millis(10);
const LOOK_AGAIN: Duration = Duration::from_secs(60);
