//! Whom this rank reaches: a pair for each direction, made on first use.
//!
//! Errors end a pair with all that is under way on it. With a pair for each
//! direction they are the asker's own: what it had asked after the request
//! that was refused has not been done and is asked again, and what its peer
//! asks of it goes by another pair.
//!
//! ```text
//!  link   Idle ─ hello ─► Opening ─ welcome ─► Open ─► Idle, and bye
//!                            │                  │ least used, asked to leave
//!                            │                  ├─► Draining ─ empty ─► Idle, and bye
//!                            │                  │ refused, nobody answers
//!                            │                  └─► Broken ─ flushed ─► Idle, and bye
//!                            └─ patience ends ─► Silent ─ a while ─► Idle
//! ```
//!
//! Calls may be lost. A hello is said again until it is welcomed, and a turn
//! counts attempts, so that late ones are known. A bye that was lost leaves a
//! guest until its rank says hello again or is asked to leave.
//!
//! Over the dynamically connected transport ([`dynamic`](super::dynamic)) a link
//! is open at once, and closed without a word.
//!
//! A link that has just been opened is not closed for another one before it was
//! used: whoever asked for it comes again at the next poll. Without that, many
//! who wait for few pairs take them from each other and nobody is served.

use super::address::Address;
use super::door::Word;
use super::line::Line;
use super::sys::*;
use crate::net::End;
use core::ffi::c_int;
use core::ptr::null_mut;
use libc::{EACCES, EHOSTUNREACH, EINPROGRESS, EIO, ETIMEDOUT};
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

/// The way to a peer.
pub(super) struct Link {
    pub rank: Rank,
    pub address: Address,
    pub ah: *mut ibv_ah,
    pub state: State,
    pub turn: u64,
    pub qp: *mut ibv_qp,
    /// Whether that is one of those that reach any peer.
    pub lent: bool,
    /// Requests that were written down and have not completed.
    pub in_flight: usize,
    /// The line's clock when requests were last sent.
    pub used: u64,
    /// When it was opened, if nothing was sent since.
    pub fresh: Option<Instant>,
    /// Requests that are written down and not sent.
    pub first: *mut ibv_send_wr,
    pub last: *mut ibv_send_wr,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Opening {
        since: Instant,
        asked: Instant,
    },
    Open,
    Draining,
    /// What becomes of the rest.
    Broken(End),
    Silent {
        since: Instant,
    },
    /// The rank was struck.
    Struck,
}

impl Link {
    pub(super) fn new(rank: Rank, address: Address) -> Self {
        Self {
            rank,
            address,
            ah: null_mut(),
            state: State::Idle,
            turn: 0,
            qp: null_mut(),
            lent: false,
            in_flight: 0,
            used: 0,
            fresh: None,
            first: null_mut(),
            last: null_mut(),
        }
    }
}

impl Link {
    /// Whether whoever asked for it has yet to come again.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        self.fresh.is_some_and(|since| now.duration_since(since) < FRESH)
    }
}

impl Line {
    /// Opens a link, or says why it is not open.
    #[cold]
    pub(super) fn try_open(&mut self, peer: u64) -> Result<(), c_int> {
        let at = peer as u32;
        match self.links[at as usize].state {
            State::Open => Ok(()),
            State::Idle => self.begin(at).and_then(|()| self.is_open(at)),
            State::Silent { since } if since.elapsed() > SILENCE => {
                self.links[at as usize].state = State::Idle;
                self.begin(at).and_then(|()| self.is_open(at))
            }
            State::Silent { .. } | State::Struck => Err(EHOSTUNREACH),
            State::Opening { .. } | State::Draining | State::Broken(_) => Err(EINPROGRESS),
        }
    }

    /// One that needs no word of its peer is open at once.
    fn is_open(&self, at: u32) -> Result<(), c_int> {
        match self.links[at as usize].state {
            State::Open => Ok(()),
            _ => Err(EINPROGRESS),
        }
    }

    fn begin(&mut self, at: u32) -> Result<(), c_int> {
        if self.full.is_some_and(|since| since.elapsed() < FRESH) {
            return Ok(());
        }
        if self.spare.is_empty() && self.alive >= self.pairs_max && !self.make_room() {
            self.full = Some(Instant::now());
            return Ok(());
        }
        let link = &mut self.links[at as usize];
        if link.ah.is_null() {
            link.ah = self.device.make_way(&link.address)?;
        }
        if self.device.is_dynamic(&link.address) {
            return self.borrow(at);
        }
        if self.alive >= self.pairs_max
            && let Some(qp) = self.spare.pop()
        {
            self.end_spare(qp);
        }
        let link = &mut self.links[at as usize];
        link.qp = self.device.make_pair(&self.terms, true)?;
        self.turn += 1;
        link.turn = self.turn;
        let now = Instant::now();
        link.state = State::Opening { since: now, asked: now };
        self.alive += 1;
        self.opening += 1;
        self.counts.pairs_made += 1;
        self.say(Word::Hello, at);
        Ok(())
    }

    /// Closes the link that was used least lately; false: one must end first
    /// what it has under way.
    fn make_room(&mut self) -> bool {
        let now = Instant::now();
        let open = |link: &&mut Link| {
            matches!(link.state, State::Open | State::Draining) && !link.is_fresh(now)
        };
        let all = self.links.iter_mut().enumerate();
        let by_use = |(_, link): &(usize, &mut Link)| (link.in_flight > 0, link.used);
        let Some((at, link)) = all.filter(|(_, link)| open(link)).min_by_key(by_use) else {
            return false;
        };
        if link.in_flight > 0 {
            link.state = State::Draining;
            return false;
        }
        self.close(at as u32);
        true
    }

    /// Closes a link that has nothing under way.
    fn close(&mut self, at: u32) {
        let link = &mut self.links[at as usize];
        let was = core::mem::replace(&mut link.state, State::Idle);
        if !link.lent {
            self.end_pair(at);
            self.say(Word::Bye, at);
        } else if matches!(was, State::Broken(_)) {
            self.end_pair(at);
        } else {
            self.spare.push(core::mem::replace(&mut link.qp, null_mut()));
            self.full = None;
        }
    }

    pub(super) fn end_pair(&mut self, at: u32) {
        let link = &mut self.links[at as usize];
        debug_assert_eq!(link.in_flight, 0);
        if !link.qp.is_null() {
            self.device.end_pair(link.qp);
            link.qp = null_mut();
            self.alive -= 1;
            self.full = None;
            self.counts.pairs_closed += 1;
        }
    }

    /// Closes a link that was only waiting for the last of its requests.
    #[inline]
    pub(super) fn settle(&mut self, at: u32) {
        let Link { state, in_flight, .. } = self.links[at as usize];
        if in_flight == 0 {
            match state {
                State::Draining | State::Broken(_) => self.close(at),
                State::Struck => self.end_pair(at),
                _ => {}
            }
        }
    }

    /// A request has failed: how it ends, and what becomes of the others.
    #[cold]
    pub(super) fn broken(&mut self, at: u32, status: u32, vendor_error: u32) -> End {
        let link = &mut self.links[at as usize];
        let provider_code = (status | vendor_error << 8) as c_int;
        let gone = End::Gone { code: ETIMEDOUT, provider_code };
        match link.state {
            State::Broken(rest) => return rest,
            State::Struck => return End::Again,
            _ => {}
        }
        let (this, rest) = match status {
            // The peer has refused it and done nothing that came after it.
            IBV_WC_REM_INV_REQ_ERR | IBV_WC_REM_ACCESS_ERR | IBV_WC_REM_OP_ERR => {
                (End::Refused { code: EACCES, provider_code }, End::Again)
            }
            IBV_WC_RETRY_EXC_ERR | IBV_WC_RNR_RETRY_EXC_ERR | IBV_WC_WR_FLUSH_ERR => (gone, gone),
            // Here: what came after it may have been done.
            _ => (End::Refused { code: EIO, provider_code }, gone),
        };
        link.state = State::Broken(rest);
        self.counts.pairs_broken += 1;
        self.device.stop(link.qp);
        this
    }

    /// The rank of a link is dead.
    pub(super) fn give_up(&mut self, at: u32) {
        let link = &mut self.links[at as usize];
        debug_assert!(link.last.is_null(), "everything written down has been sent");
        if matches!(link.state, State::Opening { .. }) {
            self.opening -= 1;
        }
        let (rank, qp) = (link.rank, link.qp);
        link.state = State::Struck;
        if !qp.is_null() {
            self.device.stop(qp);
        }
        self.settle(at);
        if let Some(guest) = self.guests.iter().position(|guest| guest.rank == rank) {
            self.dismiss(guest);
        }
    }

    /// Looks after the links that nobody has welcomed yet.
    #[cold]
    pub(super) fn tend(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.tended) < RESEND / 4 {
            return;
        }
        self.tended = now;
        for at in 0..self.links.len() as u32 {
            let State::Opening { since, asked } = self.links[at as usize].state else { continue };
            if now.duration_since(since) > self.patience {
                self.opening -= 1;
                self.end_pair(at);
                self.links[at as usize].state = State::Silent { since: now };
            } else if now.duration_since(asked) > RESEND {
                self.links[at as usize].state = State::Opening { since, asked: now };
                self.say(Word::Hello, at);
            }
        }
    }

    /// Ends all pairs, whatever is under way.
    pub(super) fn end_pairs(&mut self) {
        for link in &mut self.links {
            if !link.qp.is_null() {
                self.device.end_pair(link.qp);
                link.qp = null_mut();
            }
            self.device.end_way(core::mem::replace(&mut link.ah, null_mut()));
        }
        for qp in self.spare.drain(..) {
            self.device.end_pair(qp);
        }
        self.links.clear();
        while !self.guests.is_empty() {
            self.dismiss(0);
        }
    }
}

/// Where a pair's numbers start: elsewhere than its predecessor's.
pub(super) fn psn_of(turn: u64) -> u32 {
    (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
}

/// How long until a hello is said again.
const RESEND: Duration = Duration::from_millis(20);

/// How long a link that was opened waits for its first request.
const FRESH: Duration = Duration::from_millis(20);

/// How long a rank that has not answered is not asked again.
const SILENCE: Duration = Duration::from_secs(1);
