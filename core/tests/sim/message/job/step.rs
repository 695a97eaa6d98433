//! The progress of a rank, and the ends of its requests.

use super::{FRESH, Game, Player, Posted, What};
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::msg::*;

impl Game<'_> {
    pub(super) fn progress(&mut self, rank: usize) -> bool {
        self.step += 1;
        self.net.carry(rank);
        if core::mem::take(&mut self.net.bells[rank]) {
            self.players[rank].is_asleep = false;
            return true;
        }
        if self.players[rank].is_asleep {
            return false;
        }
        let mut has_moved = match self.draw(if self.plan.far { 7 } else { 6 }) {
            0 => self.run_job(rank),
            1 => {
                let from = PeerIndex(self.draw(self.players.len() as u64) as u32);
                let (machine, mut wire) = self.machine(rank);
                machine.advance_from(&mut wire, from)
            }
            6 => {
                let mut has_moved = false;
                while let Some(from) = self.net.post.mail(rank).poll_arrived() {
                    let (machine, mut wire) = self.machine(rank);
                    has_moved |= machine.look(&mut wire, from);
                }
                has_moved
            }
            2 if self.players[rank].jobs.is_empty() => {
                let (machine, mut wire) = self.machine(rank);
                // Ends that are not watched are polled.
                let has_rested = machine.rest(&mut wire);
                let has_moved = has_rested | self.widen(rank) | self.collect(rank);
                let waits = self.net.carry(rank);
                if !has_moved && !waits && !self.net.has_mail(rank) {
                    self.players[rank].is_asleep = true;
                    return true;
                }
                has_moved
            }
            _ => {
                let (machine, mut wire) = self.machine(rank);
                machine.advance(&mut wire)
            }
        };
        while let Some(job) = self.players[rank].machine.poll_job() {
            self.players[rank].jobs.push((job, false));
            has_moved = true;
        }
        has_moved | self.widen(rank) | self.collect(rank)
    }

    /// Makes room for unexpected messages, as the caller of a machine must.
    fn widen(&mut self, rank: usize) -> bool {
        let Player { machine, further, .. } = &mut self.players[rank];
        let is_cramped = machine.is_cramped();
        if is_cramped {
            let tables = further.pop().expect("a game has fewer messages");
            let more = tables.unexpected.len() - machine.places();
            machine.grow(tables).unwrap();
            machine.widen(more as u32).unwrap();
        }
        is_cramped
    }

    fn run_job(&mut self, rank: usize) -> bool {
        let jobs = self.players[rank].jobs.len() as u64;
        if jobs == 0 {
            return false;
        }
        let at = self.draw(jobs) as usize;
        let (job, has_claimed) = self.players[rank].jobs.swap_remove(at);
        if let Some((id, side)) = job.split {
            self.run_split(rank, job, (id, side), has_claimed);
            return true;
        }
        let peer = job.copy.peer.0 as usize;
        let is_told = self.players[rank].told[peer];
        let is_given_up = is_told && !self.players[peer].is_dead;
        let is_unanswered = self.net.post.is_unanswered(rank, peer);
        if !is_told && is_unanswered {
            self.players[rank].jobs.push((job, has_claimed));
            return true;
        }
        let is_dead = self.players[peer].is_dead;
        // A peer that has given this rank up and has ended since has not answered either.
        let result = if is_given_up || is_unanswered || is_dead && self.draw(2) == 0 {
            Err(RequestError::PeerLost { peer: job.copy.peer })
        } else if (self.net.post.is_far(rank, job.copy.peer) || job.copy.by_kernel)
            && self.draw(8) < self.net.post.fails
        {
            Err(RequestError::Failed { peer: job.copy.peer })
        } else {
            self.net.copy(rank, &job.copy);
            Ok(())
        };
        let (machine, mut wire) = self.machine(rank);
        machine.job_done(&mut wire, job.request, result);
        true
    }

    /// Runs one part of a job that both sides do, or ends the job.
    fn run_split(
        &mut self,
        rank: usize,
        job: CopyJob,
        (id, side): (u32, SplitSide),
        has_claimed: bool,
    ) {
        let Copy { peer, from, to, len, .. } = job.copy;
        let split = self.net.split(rank, peer, side);
        match split.claim(id, side, len, LEAST) {
            Claimed::Part(part) => {
                let len = part.end - part.start;
                let copy = Copy { from: from + part.start, to: to + part.start, len, ..job.copy };
                self.net.copy(rank, &copy);
                self.players[rank].jobs.push((job, true));
            }
            Claimed::Over(other) => {
                if side == SplitSide::Receiver && has_claimed {
                    split.close();
                }
                let (machine, mut wire) = self.machine(rank);
                machine.split_done(&mut wire, job.request, [has_claimed, other]);
            }
        }
    }

    /// Takes requests that have ended, whether watched or polled.
    pub(super) fn collect(&mut self, rank: usize) -> bool {
        let mut has_moved = false;
        let told = self.draw(2) == 0;
        while told && let Some(request) = self.players[rank].machine.poll_ended() {
            let open = &mut self.players[rank].open;
            let it = open.iter_mut().find(|open| open.request == request);
            let it = it.unwrap_or_else(|| panic!("{request:?} ended again"));
            let was_watched = core::mem::replace(&mut it.is_watched, false);
            assert!(was_watched, "{request:?} was reported without a watch, or twice");
            assert!(self.players[rank].machine.has_ended(request), "{request:?} has not ended");
        }
        let mut at = 0;
        while at < self.players[rank].open.len() {
            let request = self.players[rank].open[at].request;
            let Some(result) = self.players[rank].machine.take(request) else {
                at += 1;
                continue;
            };
            has_moved = true;
            assert!(self.players[rank].machine.take(request).is_none(), "{request:?} twice");
            match self.players[rank].open.remove(at).what {
                What::Receive(number) => self.received(number, result),
                What::Send(number) => self.was_sent(number, result),
            }
        }
        has_moved
    }

    fn was_sent(&mut self, number: usize, result: Result<ReceivedMessage, RequestError>) {
        let sent = &mut self.sent[number];
        let (at, len) = (sent.at, sent.len);
        match result {
            Ok(_) => {}
            Err(RequestError::Cancelled) => {
                assert!(sent.received_by.is_none(), "message {number} was received and cancelled");
                sent.was_cancelled = true;
            }
            Err(error) => {
                let peer = PeerIndex(sent.to as u32);
                let (from, to) = (sent.from, sent.to);
                let is_lost = self.is_lost(from, to);
                assert!(
                    is_lost && error == RequestError::PeerLost { peer },
                    "message {number}: {error}"
                );
            }
        }
        self.scribble(at, len);
    }

    pub(super) fn received(
        &mut self,
        number: usize,
        result: Result<ReceivedMessage, RequestError>,
    ) {
        let Posted { by, pattern, into, .. } = self.posted[number];
        assert!(self.posted[number].outcome.is_none(), "receive {number} ended twice");
        self.posted[number].ended = self.step;
        let received = match result {
            Ok(received) => received,
            Err(error) => {
                if let RequestError::PeerLost { peer } = error {
                    assert!(self.is_lost(by, peer.0 as usize), "{peer} is not lost");
                }
                assert!(!matches!(error, RequestError::Failed { .. }), "receive {number} failed");
                self.posted[number].outcome = Some(Err(error));
                if error == RequestError::Cancelled {
                    let bytes = self.net.bytes(into.at, into.len);
                    assert!(
                        bytes.iter().all(|byte| *byte == FRESH),
                        "receive {number} was written"
                    );
                    self.scribble(into.at, into.len);
                }
                return;
            }
        };
        let source = received.source.0 as usize;
        let message = self
            .sent
            .iter()
            .position(|sent| (sent.from, sent.to, sent.len) == (source, by, received.len));
        let message = message.unwrap_or_else(|| panic!("receive {number}: no such {received:?}"));
        let sent = &mut self.sent[message];
        assert!(!sent.was_cancelled, "message {message} was cancelled");
        assert!(sent.received_by.replace(number).is_none(), "message {message} came twice");
        assert!(pattern.takes(received.source, sent.label), "{pattern:?} took {:?}", sent.label);
        assert_eq!(received.tag, sent.label.tag);
        assert_eq!(received.truncated, sent.len > into.len);
        let fitting = sent.len.min(into.len) as usize;
        let want = &self.noise[sent.phase..][..fitting];
        let got = self.net.bytes(into.at, into.len);
        assert!(got[..fitting] == *want, "message {message} in receive {number} is garbled");
        assert!(got[fitting..].iter().all(|byte| *byte == FRESH), "{number} ran over");
        self.scribble(into.at, into.len);
        self.posted[number].outcome = Some(Ok(message));
    }
}

/// The minimum number of bytes that a side claims.
const LEAST: u64 = 64;
