//! A rank's end of the exchange.

use super::frame::{FrameError, Inbox, Message};
use super::secret::{End, Secret, nonce};
use super::server::Server;
use crate::boot::sys;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;

/// Ranks that find each other through a [`Server`]. Blocking, each call within
/// the time limit and a little.
#[derive(Debug)]
pub struct Client {
    rank: Rank,
    size: u32,
    addresses: Vec<String>,
    secret: Secret,
    session: u64,
    limit: Duration,
    link: Option<Link>,
    /// Whether the server was there once.
    was_greeted: bool,
    /// The rank that has the server, if it is not the launcher's.
    served_by: Option<Rank>,
    round: u32,
    server: Option<Server>,
}

#[derive(Debug)]
struct Link {
    stream: TcpStream,
    inbox: Inbox,
}

/// Whether it is worth to try again.
enum Trouble {
    Passing(BootError),
    Final(BootError),
}

impl Client {
    /// Rank `rank` of `size`, whose server listens at one of `addresses`
    /// (`host:port`), which are tried in turn.
    ///
    /// # Errors
    ///
    /// [`BootError::NoSuchRank`], [`BootError::System`].
    pub fn new(
        rank: Rank,
        size: u32,
        addresses: Vec<String>,
        secret: Secret,
        limit: Duration,
    ) -> Result<Self, BootError> {
        BootError::check_rank(rank, size)?;
        let session = sys::random_u64().map_err(system("random numbers"))?;
        Ok(Self {
            rank,
            size,
            addresses,
            secret,
            session,
            limit,
            link: None,
            was_greeted: false,
            served_by: None,
            round: 0,
            server: None,
        })
    }

    /// The same with a server that lives as long as this rank.
    #[must_use]
    pub fn with_server(self, server: Server) -> Self {
        Self { server: Some(server), ..self }
    }

    /// The same, with a server that is `rank`'s: it dies with it.
    #[must_use]
    pub fn served_by(self, rank: Rank) -> Self {
        Self { served_by: Some(rank), ..self }
    }

    /// Sends `request` until there is an answer.
    fn ask(&mut self, request: &Message, what: &'static str) -> Result<Message, BootError> {
        // The server gives up first: it knows who is missing.
        let deadline = Instant::now() + self.limit + SLACK;
        let mut gone_at = None;
        loop {
            match self.try_ask(request, what, deadline) {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Passing(error)) if Instant::now() >= deadline => return Err(error),
                Err(Trouble::Passing(_)) => {
                    self.link = None;
                    let gone_at = gone_at.get_or_insert_with(|| Instant::now() + BACK_WITHIN);
                    if self.was_greeted && Instant::now() >= *gone_at {
                        let lost = self.served_by.map(|rank| BootError::PeerLost { rank });
                        return Err(lost.unwrap_or(BootError::Disconnected));
                    }
                    thread::sleep(AGAIN_AFTER);
                }
            }
        }
    }

    fn try_ask(
        &mut self,
        request: &Message,
        what: &'static str,
        deadline: Instant,
    ) -> Result<Message, Trouble> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.connect(deadline)?,
        };
        self.was_greeted = true;
        link.send(request)?;
        let answer = link.receive(what, deadline)?;
        self.link = Some(link);
        Ok(answer)
    }

    fn connect(&self, deadline: Instant) -> Result<Link, Trouble> {
        let mut trouble = Trouble::Final(BootError::Disconnected);
        for address in &self.addresses {
            match self.connect_to(address, deadline) {
                Ok(link) => return Ok(link),
                Err(Trouble::Final(error)) => return Err(Trouble::Final(error)),
                Err(passing) => trouble = passing,
            }
        }
        Err(trouble)
    }

    fn connect_to(&self, address: &str, deadline: Instant) -> Result<Link, Trouble> {
        let passing = |error| Trouble::Passing(system("connecting")(error));
        let mut last = Trouble::Passing(BootError::TimedOut { what: "finding the master's host" });
        for address in address.to_socket_addrs().map_err(passing)? {
            let left = deadline.saturating_duration_since(Instant::now());
            let within = left.clamp(Duration::from_millis(1), CONNECT_WITHIN);
            match TcpStream::connect_timeout(&address, within) {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return self.greet(Link { stream, inbox: Inbox::default() });
                }
                Err(error) => last = passing(error),
            }
        }
        Err(last)
    }

    /// Proves that this rank knows the secret, and that the server does.
    fn greet(&self, mut link: Link) -> Result<Link, Trouble> {
        let deadline = Instant::now() + GREET_WITHIN;
        let Message::Challenge { nonce: theirs } = link.receive("greeting", deadline)? else {
            return Err(garbled());
        };
        let nonce = nonce().map_err(|e| Trouble::Final(system("random numbers")(e)))?;
        let (rank, size, session) = (self.rank.0, self.size, self.session);
        let said = [&rank.to_le_bytes()[..], &size.to_le_bytes(), &session.to_le_bytes()].concat();
        let proof = self.secret.prove(End::Client, &[&said, &theirs, &nonce]);
        link.send(&Message::Hello { rank, size, session, nonce, proof })?;
        match link.receive("greeting", deadline)? {
            Message::Welcome { proof }
                if self.secret.is_proved(End::Server, &[&said, &nonce, &theirs], &proof) =>
            {
                Ok(link)
            }
            Message::Welcome { .. } => {
                let why = "whoever listens there does not know the job's secret";
                Err(Trouble::Final(BootError::Refused { why }))
            }
            Message::Refuse { why } => Err(Trouble::Final(BootError::Refused { why: why.text() })),
            _ => Err(garbled()),
        }
    }

    fn expect_done(&mut self, request: &Message, what: &'static str) -> Result<(), BootError> {
        let rank = |rank| Rank(rank);
        match self.ask(request, what)? {
            Message::Done { .. } => Ok(()),
            Message::Lost { rank: lost } => Err(BootError::PeerLost { rank: rank(lost) }),
            Message::Missing { rank: missing } => Err(BootError::Missing { rank: rank(missing) }),
            _ => Err(GARBLED),
        }
    }
}

impl Link {
    fn send(&mut self, message: &Message) -> Result<(), Trouble> {
        let passing = |error| Trouble::Passing(broken(error));
        self.stream.set_write_timeout(Some(GREET_WITHIN)).map_err(passing)?;
        self.stream.write_all(&message.to_frame()).map_err(passing)
    }

    fn receive(&mut self, what: &'static str, deadline: Instant) -> Result<Message, Trouble> {
        let mut bytes = [0; 2048];
        loop {
            match self.inbox.pop() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(FrameError::Version { .. }) => {
                    let why = "the server is of another version of tsumugi";
                    return Err(Trouble::Final(BootError::Refused { why }));
                }
                Err(_) => return Err(garbled()),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let timed_out = Trouble::Passing(BootError::TimedOut { what });
            if left.is_zero() {
                return Err(timed_out);
            }
            let got = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| self.stream.read(&mut bytes));
            match got {
                Ok(0) => return Err(Trouble::Passing(BootError::Disconnected)),
                Ok(read) => self.inbox.push(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(timed_out),
                Err(error) => return Err(Trouble::Passing(broken(error))),
            }
        }
    }
}

impl Bootstrap for Client {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn publish(&mut self, card: &[u8]) -> Result<(), BootError> {
        BootError::check_card(card)?;
        self.expect_done(&Message::Put { card: card.to_vec() }, "publishing a card")
    }

    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError> {
        BootError::check_rank(rank, self.size)?;
        match self.ask(&Message::Get { rank: rank.0 }, "a card")? {
            Message::Card { rank: of, card: found } if of == rank.0 => {
                card[..found.len()].copy_from_slice(&found);
                Ok(found.len())
            }
            Message::NoCard { .. } => Err(BootError::NoCard { rank }),
            _ => Err(GARBLED),
        }
    }

    fn barrier(&mut self) -> Result<(), BootError> {
        let round = self.round + 1;
        self.expect_done(&Message::Barrier { round }, "the barrier of the start")?;
        self.round = round;
        Ok(())
    }

    fn leave(&mut self) -> Result<(), BootError> {
        self.expect_done(&Message::Finish, "the end")?;
        self.link = None;
        if let Some(mut server) = self.server.take() {
            server.drain(DRAIN_WITHIN);
        }
        Ok(())
    }
}

fn garbled() -> Trouble {
    Trouble::Passing(GARBLED)
}

fn broken(_: io::Error) -> BootError {
    BootError::Disconnected
}

fn system(what: &'static str) -> impl Fn(io::Error) -> BootError {
    move |error| BootError::System { what, errno: error.raw_os_error().unwrap_or(0) }
}

const GARBLED: BootError = BootError::Garbled { what: "what the server says" };
/// A server that was there and does not come back is gone.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// Between two attempts.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// An address that does not answer must not hide the others.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
const GREET_WITHIN: Duration = Duration::from_secs(5);
const SLACK: Duration = Duration::from_secs(2);
/// The other ranks' last words.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);
