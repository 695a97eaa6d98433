//! The active side of connections: links opened on first use, closed to make room,
//! ended by errors.

use super::super::door::Word;
use super::super::link::{FRESH, Link, State};
use super::super::sys::*;
use super::Line;
use crate::net::End;
use core::ffi::c_int;
use core::ptr::null_mut;
use libc::{EACCES, EHOSTUNREACH, EINPROGRESS, EIO, ETIMEDOUT};
use std::time::{Duration, Instant};

impl Line {
    /// Opens a link, or returns why it is not open.
    #[cold]
    pub(in crate::verbs) fn try_open(&mut self, peer: u64) -> Result<(), c_int> {
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

    /// Checks whether the link is open: one that needs no call is open at once.
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

    /// Closes the least recently used link; returns false if a link must first
    /// complete its requests.
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

    /// Closes a link that has no requests under way.
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

    pub(in crate::verbs) fn end_pair(&mut self, at: u32) {
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
    pub(in crate::verbs) fn settle(&mut self, at: u32) {
        let Link { state, in_flight, .. } = self.links[at as usize];
        if in_flight == 0 {
            match state {
                State::Draining | State::Broken(_) => self.close(at),
                State::Struck => self.end_pair(at),
                _ => {}
            }
        }
    }

    /// Handles a failed request: returns how it ends, and sets how the others end.
    #[cold]
    pub(in crate::verbs) fn broken(&mut self, at: u32, status: u32, vendor_error: u32) -> End {
        let link = &mut self.links[at as usize];
        let provider_code = (status | vendor_error << 8) as c_int;
        let gone = End::Gone { code: ETIMEDOUT, provider_code };
        match link.state {
            State::Broken(rest) => return rest,
            State::Struck => return End::Again,
            _ => {}
        }
        let (this, rest) = match status {
            // The peer has refused the request and has done nothing that came after
            // it.
            IBV_WC_REM_INV_REQ_ERR | IBV_WC_REM_ACCESS_ERR | IBV_WC_REM_OP_ERR => {
                (End::Refused { code: EACCES, provider_code }, End::Again)
            }
            IBV_WC_RETRY_EXC_ERR | IBV_WC_RNR_RETRY_EXC_ERR | IBV_WC_WR_FLUSH_ERR => (gone, gone),
            // The failure is local: the requests after it may have been done.
            _ => (End::Refused { code: EIO, provider_code }, gone),
        };
        link.state = State::Broken(rest);
        self.counts.pairs_broken += 1;
        self.device.stop(link.qp);
        this
    }

    /// Gives up a link because its rank is dead.
    pub(in crate::verbs) fn give_up(&mut self, at: u32) {
        let link = &mut self.links[at as usize];
        debug_assert!(link.last.is_null(), "all written requests have been sent");
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

    /// Repeats the hello of links without a welcome, and gives them up after the
    /// limit.
    #[cold]
    pub(in crate::verbs) fn tend(&mut self) {
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

    /// Ends all pairs, even with requests under way.
    pub(in crate::verbs) fn end_pairs(&mut self) {
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

/// The time until a hello is repeated.
const RESEND: Duration = Duration::from_millis(20);

/// The time for which a rank that has not answered gets no new hello.
const SILENCE: Duration = Duration::from_secs(1);
