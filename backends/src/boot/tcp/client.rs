//! A rank's end of the exchange.

use super::connect::ConnectAttempts;
use super::frame::{BootMessage, ProcessEnd};
use super::link::{GARBLED, GREET_WITHIN, LinkError, ServerLink, garbled};
use super::secret::{ProofSide, Secret, nonce};
use super::server::{AGENT, Server};
use crate::boot::sys;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_core::boot::{
    BootError, Bootstrap, CARD_BYTES_MAX, EndpointHead, HEAD_BYTES, OpenBootstrap,
};
use tsumugi_core::mem::Rank;

/// A bootstrap through a [`Server`]. Blocking; each call takes at most the time
/// limit and a little more.
#[derive(Debug)]
pub struct Client {
    rank: Rank,
    size: u32,
    addresses: Vec<String>,
    secret: Secret,
    session: u64,
    limit: Duration,
    link: Option<ServerLink>,
    /// Whether the server has answered once.
    was_greeted: bool,
    /// The rank that runs the server, if the launcher does not.
    served_by: Option<Rank>,
    round: u32,
    /// The barrier at which this rank has arrived, and which it has not left yet.
    barrier: Option<PendingBarrier>,
    server: Option<Server>,
}

/// The connection of a program that has started ranks on a host, and that reports
/// to the [`Server`] how they end.
#[derive(Debug)]
pub struct Agent(Client);

/// A barrier at which this rank waits.
#[derive(Debug)]
struct PendingBarrier {
    round: u32,
    deadline: Instant,
    /// If the connection to the server is gone: the time at which the client gives
    /// up.
    gone_at: Option<Instant>,
    /// How the barrier ended; its end may come while the rank waits for another
    /// answer.
    answer: Option<BootMessage>,
}

impl Client {
    /// Makes the client of rank `rank` of `size`; the server listens at one of
    /// `addresses` (`host:port`).
    ///
    /// # Errors
    ///
    /// [`BootError::NoSuchRank`], if `rank` is not below `size`;
    /// [`BootError::System`], if the system has no random numbers.
    pub fn new(
        rank: Rank,
        size: u32,
        addresses: Vec<String>,
        secret: Secret,
        limit: Duration,
    ) -> Result<Self, BootError> {
        BootError::check_rank(rank, size)?;
        Self::of(rank, size, addresses, secret, limit)
    }

    fn of(
        rank: Rank,
        size: u32,
        addresses: Vec<String>,
        secret: Secret,
        limit: Duration,
    ) -> Result<Self, BootError> {
        let session = sys::random_u64().map_err(system("getting random numbers"))?;
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
            barrier: None,
            server: None,
        })
    }

    /// This client, with a server that lives as long as this rank.
    #[must_use]
    pub fn with_server(self, server: Server) -> Self {
        Self { server: Some(server), ..self }
    }

    /// This client, with a server that `rank` runs: the server ends with that rank.
    #[must_use]
    pub fn served_by(self, rank: Rank) -> Self {
        Self { served_by: Some(rank), ..self }
    }

    /// Sends `request`, again and again, until there is an answer.
    fn ask(&mut self, request: &BootMessage, what: &'static str) -> Result<BootMessage, BootError> {
        // The server gives up first, because it can report which rank is missing.
        let deadline = Instant::now() + self.limit + SLACK;
        let mut gone_at = None;
        loop {
            match self.try_ask(request, what, deadline) {
                Ok(answer) => return Ok(answer),
                Err(LinkError::Final(error)) => return Err(error),
                Err(LinkError::Transient(error)) if Instant::now() >= deadline => {
                    return Err(error);
                }
                Err(LinkError::Transient(_)) => {
                    self.link = None;
                    let gone_at = gone_at.get_or_insert_with(|| Instant::now() + BACK_WITHIN);
                    if self.was_greeted && Instant::now() >= *gone_at {
                        return Err(self.gone());
                    }
                    thread::sleep(AGAIN_AFTER);
                }
            }
        }
    }

    fn try_ask(
        &mut self,
        request: &BootMessage,
        what: &'static str,
        deadline: Instant,
    ) -> Result<BootMessage, LinkError> {
        let mut link = self.linked(deadline)?;
        link.send(request)?;
        let answer = loop {
            let answer = link.receive(what, deadline)?;
            if !self.ends_barrier(&answer) {
                break answer;
            }
        };
        self.link = Some(link);
        Ok(answer)
    }

    /// The connection. On a new connection the client repeats at which barrier it
    /// waits.
    fn linked(&mut self, deadline: Instant) -> Result<ServerLink, LinkError> {
        if let Some(link) = self.link.take() {
            return Ok(link);
        }
        let mut link = self.connect(deadline)?;
        self.was_greeted = true;
        if let Some(PendingBarrier { round, answer: None, .. }) = self.barrier {
            link.send(&BootMessage::Barrier { round })?;
        }
        Ok(link)
    }

    /// Keeps an answer that ends the barrier at which this rank waits; returns
    /// whether it is one.
    fn ends_barrier(&mut self, answer: &BootMessage) -> bool {
        let Some(barrier) = &mut self.barrier else { return false };
        let is_it = match answer {
            BootMessage::Done { round } => *round == barrier.round,
            BootMessage::Lost { .. } | BootMessage::Missing { .. } => true,
            _ => false,
        };
        if is_it {
            barrier.answer = Some(answer.clone());
        }
        is_it
    }

    /// Looks until `until` whether the barrier has ended.
    fn look(&mut self, until: Instant) -> Result<(), LinkError> {
        let mut link = self.linked(until)?;
        let came = link.receive_until(until)?;
        self.link = Some(link);
        match came {
            Some(answer) if !self.ends_barrier(&answer) => Err(garbled()),
            _ => Ok(()),
        }
    }

    fn connect(&self, deadline: Instant) -> Result<ServerLink, LinkError> {
        let mut trouble =
            LinkError::Transient(BootError::TimedOut { what: "connecting to the server" });
        for answer in ConnectAttempts::new(&self.addresses, deadline) {
            match answer.and_then(|stream| self.greet(ServerLink::new(stream))) {
                Ok(link) => return Ok(link),
                Err(LinkError::Final(error)) => return Err(LinkError::Final(error)),
                Err(passing) => trouble = passing,
            }
        }
        Err(trouble)
    }

    /// Proves that this rank knows the secret, and checks that the server does.
    fn greet(&self, mut link: ServerLink) -> Result<ServerLink, LinkError> {
        let deadline = Instant::now() + GREET_WITHIN;
        let BootMessage::Challenge { nonce: theirs } = link.receive(GREETING, deadline)? else {
            return Err(garbled());
        };
        let nonce = nonce().map_err(|e| LinkError::Final(system("getting random numbers")(e)))?;
        let (rank, size, session) = (self.rank.0, self.size, self.session);
        let said = [&rank.to_le_bytes()[..], &size.to_le_bytes(), &session.to_le_bytes()].concat();
        let proof = self.secret.prove(ProofSide::Client, &[&said, &theirs, &nonce]);
        link.send(&BootMessage::Hello { rank, size, session, nonce, proof })?;
        match link.receive(GREETING, deadline)? {
            BootMessage::Welcome { proof }
                if self.secret.is_proved(ProofSide::Server, &[&said, &nonce, &theirs], &proof) =>
            {
                link.widen();
                Ok(link)
            }
            BootMessage::Welcome { .. } => {
                let why = "the server at this address does not know the job's secret";
                Err(LinkError::Final(BootError::Refused { why }))
            }
            BootMessage::Refuse { why } => {
                Err(LinkError::Final(BootError::Refused { why: why.text() }))
            }
            _ => Err(garbled()),
        }
    }

    fn expect_done(&mut self, request: &BootMessage, what: &'static str) -> Result<(), BootError> {
        self.ask(request, what).and_then(|answer| is_done(&answer))
    }

    fn gone(&self) -> BootError {
        self.served_by.map_or(BootError::Disconnected, |rank| BootError::PeerLost { rank })
    }
}

impl Agent {
    /// Makes the agent for some of `size` ranks; the server listens at one of
    /// `addresses`.
    ///
    /// # Errors
    ///
    /// [`BootError::System`], if the system has no random numbers.
    pub fn new(
        size: u32,
        addresses: Vec<String>,
        secret: Secret,
        limit: Duration,
    ) -> Result<Self, BootError> {
        Client::of(Rank(AGENT), size, addresses, secret, limit).map(Self)
    }

    /// Connects in advance, so that a later report goes quickly. Blocks for some
    /// seconds at most; a connection that fails is tried again later.
    pub fn prepare(&mut self) {
        if let Ok(link) = self.0.linked(Instant::now() + GREET_WITHIN) {
            self.0.link = Some(link);
        }
    }

    /// Reports how ranks have ended, at most [`ENDS_MAX`](super::ENDS_MAX) at once.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// A [`BootError`] if the server has not confirmed the report:
    ///
    /// - [`BootError::Refused`]: the server refuses this agent, has another version, or
    ///   does not know the secret.
    /// - [`BootError::Disconnected`]: the server has answered before, and is gone.
    /// - [`BootError::TimedOut`], [`BootError::System`] or [`BootError::Garbled`]:
    ///   there was no connection, or no valid answer, within the time limit.
    pub fn tell(&mut self, ends: Vec<ProcessEnd>) -> Result<(), BootError> {
        self.0.expect_done(&BootMessage::Ended { ends }, "reporting the ends of ranks")
    }
}

fn is_done(answer: &BootMessage) -> Result<(), BootError> {
    match *answer {
        BootMessage::Done { .. } => Ok(()),
        BootMessage::Lost { rank } => Err(BootError::PeerLost { rank: Rank(rank) }),
        BootMessage::Missing { rank } => Err(BootError::Missing { rank: Rank(rank) }),
        _ => Err(GARBLED),
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
        self.expect_done(&BootMessage::Put { card: card.to_vec() }, "publishing this rank's card")
    }

    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError> {
        BootError::check_rank(rank, self.size)?;
        match self.ask(&BootMessage::Get { rank: rank.0 }, "requesting a card")? {
            BootMessage::Card { rank: of, card: found } if of == rank.0 => {
                card[..found.len()].copy_from_slice(&found);
                Ok(found.len())
            }
            BootMessage::NoCard { .. } => Err(BootError::NoCard { rank }),
            _ => Err(GARBLED),
        }
    }

    fn heads(&mut self, each: &mut dyn FnMut(Rank, &EndpointHead)) -> Result<(), BootError> {
        let mut next = 0;
        while next < self.size {
            let answer = self
                .ask(&BootMessage::GetHeads { from: next }, "requesting the heads of the cards")?;
            let BootMessage::Heads { from, runs } = answer else { return Err(GARBLED) };
            if from != next {
                return Err(GARBLED);
            }
            for run in runs {
                if run.count > self.size - next {
                    return Err(GARBLED);
                }
                if run.head == [0; HEAD_BYTES] {
                    return Err(BootError::NoCard { rank: Rank(next) });
                }
                (next..next + run.count).for_each(|rank| each(Rank(rank), &run.head));
                next += run.count;
            }
        }
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), BootError> {
        self.arrive()?;
        while !self.has_met(LOOK_WITHIN)? {}
        Ok(())
    }

    fn leave(&mut self) -> Result<(), BootError> {
        self.expect_done(&BootMessage::Finish, "reporting the end of this rank")?;
        self.link = None;
        if let Some(mut server) = self.server.take() {
            server.drain(DRAIN_WITHIN);
        }
        Ok(())
    }
}

impl OpenBootstrap for Client {
    fn arrive(&mut self) -> Result<(), BootError> {
        let round = self.round + 1;
        // The server gives up first, because it can report which rank is missing.
        let deadline = Instant::now() + self.limit + SLACK;
        self.barrier = Some(PendingBarrier { round, deadline, gone_at: None, answer: None });
        // If the link breaks, or is not there yet, the request is sent on the next
        // link.
        if let Some(mut link) = self.link.take()
            && link.send(&BootMessage::Barrier { round }).is_ok()
        {
            self.link = Some(link);
        }
        Ok(())
    }

    fn has_met(&mut self, within: Duration) -> Result<bool, BootError> {
        let until = Instant::now() + within;
        let Some(PendingBarrier { round, deadline, answer, .. }) = &self.barrier else {
            return Ok(true);
        };
        let (round, deadline) = (*round, *deadline);
        let looked = if answer.is_none() { self.look(until.min(deadline)) } else { Ok(()) };
        let now = Instant::now();
        let gone = self.gone();
        let barrier = self.barrier.as_mut().expect("the barrier was checked above");
        if let Some(answer) = barrier.answer.take() {
            self.barrier = None;
            is_done(&answer)?;
            self.round = round;
            return Ok(true);
        }
        let late = BootError::TimedOut { what: "the barrier at the start" };
        let error = match looked {
            Ok(()) => {
                barrier.gone_at = None;
                return if now < deadline { Ok(false) } else { Err(late) };
            }
            Err(LinkError::Final(error)) => return Err(error),
            Err(LinkError::Transient(error)) => error,
        };
        let gone_at = *barrier.gone_at.get_or_insert(now + BACK_WITHIN);
        self.link = None;
        if self.was_greeted && now >= gone_at {
            return Err(gone);
        }
        thread::sleep(AGAIN_AFTER);
        if now < deadline { Ok(false) } else { Err(error) }
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> BootError {
    move |error| BootError::System { what, errno: error.raw_os_error().unwrap_or(0) }
}

const GREETING: &str = "the greeting of the server";
/// After this time without an answer, a server that was there counts as gone.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// The time after which the client checks whether the limit has passed.
const LOOK_WITHIN: Duration = Duration::from_secs(1);
/// The pause between two attempts.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
const SLACK: Duration = Duration::from_secs(2);
/// How long the server waits at the end for the last messages of other ranks.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);
