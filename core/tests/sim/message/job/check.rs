//! The conditions at the end, when nothing moves any more.

use super::{Game, USED, What};
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::msg::Pattern;

impl Game<'_> {
    /// Delivers everything until nothing moves any more, every rank has announced what it waits
    /// for, and all sleep.
    fn quiesce(&mut self) {
        let mut quiet = 0;
        let mut rounds = 0;
        while quiet < 40 || self.players.iter().any(|player| !player.is_dead && !player.is_asleep) {
            rounds += 1;
            assert!(rounds < 20_000, "it never comes to rest");
            self.net.sight = if quiet > 20 { 8 } else { 4 };
            let mut has_moved = self.net.post.is_busy();
            for rank in 0..self.players.len() {
                if self.players[rank].is_dead {
                    continue;
                }
                while self.lose_one(rank) {
                    has_moved = true;
                }
                has_moved |= self.progress(rank);
                has_moved |= !self.players[rank].jobs.is_empty() || self.net.bells[rank];
            }
            quiet = if has_moved { 0 } else { quiet + 1 };
        }
    }

    pub(super) fn finish(&mut self) {
        self.mend();
        self.quiesce();
        self.check_nothing_hangs();
        for rank in 0..self.players.len() {
            if self.players[rank].is_dead {
                continue;
            }
            for open in core::mem::take(&mut self.players[rank].open) {
                let request = open.request;
                if let What::Receive(_) = open.what {
                    let (machine, mut wire) = self.machine(rank);
                    machine.cancel(&mut wire, request);
                }
                self.players[rank].open.push(open);
            }
            self.players[rank].is_asleep = false;
        }
        self.quiesce();
        // Receives from any source find the messages that are left.
        while let Some(left) = { self.undelivered().next() } {
            let (to, context) = (self.sent[left].to, self.sent[left].label.context);
            let pattern = Pattern { context, source: None, tag: None };
            self.step += 1;
            self.players[to].is_asleep = false;
            assert!(self.receive(to, pattern, 20_000, true), "there is a request");
            let number = self.posted.len() - 1;
            self.quiesce();
            assert!(self.posted[number].outcome.is_some(), "message {left} is lost");
        }
        self.check_order();
        for (rank, player) in self.players.iter().enumerate().filter(|(_, p)| !p.is_dead) {
            assert!(player.open.is_empty(), "rank {rank} has open requests: {:?}", player.machine);
            assert_eq!(player.machine.under_way(), 0);
            if self.is_whole() {
                assert_eq!(player.machine.counts().dropped, 0, "rank {rank}");
                self.net.post.check_empty(rank);
            }
        }
        for (at, len) in core::mem::take(&mut self.settled) {
            if self.is_whole() {
                let bytes = self.net.bytes(at, len);
                assert!(
                    bytes.iter().all(|byte| *byte == USED),
                    "a buffer of {len} bytes was in use"
                );
            }
        }
    }

    fn undelivered(&self) -> impl Iterator<Item = usize> + '_ {
        let knows = |by: usize, whom: usize| !self.players[by].is_dead && !self.is_lost(by, whom);
        (0..self.sent.len()).filter(move |number| {
            let sent = &self.sent[*number];
            sent.received_by.is_none()
                && !sent.was_cancelled
                && knows(sent.from, sent.to)
                && knows(sent.to, sent.from)
        })
    }

    /// No delivered message and no receive of a rank could meet.
    fn check_nothing_hangs(&self) {
        for (number, posted) in self.posted.iter().enumerate() {
            if posted.outcome.is_some() || self.players[posted.by].is_dead {
                continue;
            }
            for left in self.undelivered().filter(|left| self.sent[*left].to == posted.by) {
                let sent = &self.sent[left];
                assert!(
                    !posted.pattern.takes(PeerIndex(sent.from as u32), sent.label),
                    "message {left} and receive {number} never meet"
                );
            }
        }
    }

    fn check_order(&self) {
        for (number, posted) in self.posted.iter().enumerate() {
            let Some(Ok(message)) = posted.outcome else { continue };
            if self.players[posted.by].is_dead {
                continue;
            }
            let sent = &self.sent[message];
            let source = PeerIndex(sent.from as u32);
            for (earlier, other) in self.sent[..message].iter().enumerate() {
                let same = (other.from, other.to) == (sent.from, sent.to) && !other.was_cancelled;
                if same && posted.pattern.takes(source, other.label) {
                    assert!(
                        match other.received_by {
                            Some(by) => by < number,
                            // The bytes of the message may have died with the sender.
                            None => self.is_lost(posted.by, other.from),
                        },
                        "receive {number} took message {message} and not {earlier}"
                    );
                }
            }
            for (earlier, other) in self.posted[..number].iter().enumerate() {
                if other.by != posted.by || !other.pattern.takes(source, sent.label) {
                    continue;
                }
                let is_right = match other.outcome {
                    None => false,
                    Some(Err(_)) => true,
                    Some(Ok(taken)) if self.sent[taken].from == sent.from => taken < message,
                    // Another rank's message, sent before this one was received?
                    Some(Ok(taken)) => self.sent[taken].step <= posted.ended,
                };
                assert!(is_right, "message {message} passed receive {earlier} for {number}");
            }
        }
    }
}
