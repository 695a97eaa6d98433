//! The calls of a rank, drawn at random.

use super::{Game, NOISE, Open, Posted, Sent, What};
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::msg::*;

impl Game<'_> {
    pub(super) fn call(&mut self, rank: usize, is_early: bool) {
        self.step += 1;
        self.players[rank].is_asleep = false;
        let kind = self.draw(if self.plan.cancels { 12 } else { 9 });
        let wrong = self.posts_first && if is_early { kind < 4 } else { (4..8).contains(&kind) };
        let kind = if wrong && self.draw(4) != 0 { (kind + 4) % 8 } else { kind };
        match kind {
            0..4 => self.send(rank),
            4..8 => {
                let pattern = self.pattern(rank);
                let room = self.length();
                let in_reach = self.draw(4) != 0;
                self.receive(rank, pattern, room, in_reach);
            }
            8 => self.probe(rank),
            _ => self.cancel(rank),
        }
    }

    fn length(&mut self) -> u64 {
        let max = self.lengths[self.draw(10) as usize];
        self.draw(max)
    }

    fn send(&mut self, from: usize) {
        let wanted = self.players[from].wanted.len() as u64;
        let (to, label) = if wanted > 0 && self.draw(8) != 0 {
            let at = self.draw(wanted.min(3)) as usize;
            self.players[from].wanted.remove(at)
        } else {
            let (context, tag) = (self.draw(self.contexts) as u16, self.draw(self.tags) as u32);
            (self.partner(from), Label { context, tag })
        };
        let mut len = self.length();
        while self.sent.iter().any(|sent| (sent.from, sent.to, sent.len) == (from, to, len)) {
            len += 1;
        }
        let in_reach = self.draw(4) != 0;
        let phase = self.draw((NOISE - 20_000) as u64) as usize;
        let at = self.allocate(from, in_reach, len);
        self.net.bytes(at, len).copy_from_slice(&self.noise[phase..][..len as usize]);
        let is_tried = self.draw(2) == 0;
        let (machine, mut wire) = self.machine(from);
        let (rank, bytes) = (PeerIndex(to as u32), MessageBytes { at, len, in_reach });
        let begun = match is_tried && machine.send_short(&mut wire, rank, label, bytes) {
            true => Ok(Begun::Done(())),
            false => machine.send(&mut wire, rank, label, bytes),
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(CallError::Busy(_)) => return,
            Err(error) => {
                assert_eq!(error, CallError::PeerLost { peer: PeerIndex(to as u32) });
                assert!(self.players[from].told[to], "{error}");
                return;
            }
        };
        let number = self.sent.len();
        let step = self.step;
        let (was_cancelled, received_by) = (false, None);
        self.sent.push(Sent { from, to, label, at, len, phase, step, was_cancelled, received_by });
        match begun {
            Begun::Done(()) => self.scribble(at, len),
            Begun::Pending(request) => self.open(from, request, What::Send(number)),
        }
    }

    /// Draws any rank, or mostly the same one.
    fn partner(&mut self, of: usize) -> usize {
        let ranks = self.players.len() as u64;
        if self.draw(4) < self.pairs * 2 {
            (of ^ 1) % ranks as usize
        } else {
            self.draw(ranks) as usize
        }
    }

    fn pattern(&mut self, by: usize) -> Pattern {
        let any_source = self.plan.wildcards && self.draw(4) == 0;
        let any_tag = self.plan.wildcards && self.draw(4) == 0;
        Pattern {
            context: self.draw(self.contexts) as u16,
            source: if any_source { None } else { Some(PeerIndex(self.partner(by) as u32)) },
            tag: if any_tag { None } else { Some(self.draw(self.tags) as u32) },
        }
    }

    pub(super) fn receive(
        &mut self,
        by: usize,
        pattern: Pattern,
        len: u64,
        in_reach: bool,
    ) -> bool {
        let at = self.allocate(by, in_reach, len);
        let into = MessageBytes { at, len, in_reach };
        // Some callers look into the lane first.
        let looks = self.draw(2) == 0;
        let (machine, mut wire) = self.machine(by);
        let next = looks.then(|| machine.receive_next(&mut wire, &pattern, into)).flatten();
        let short = match next {
            Some(received) => Some(Begun::Done(received)),
            None if looks => machine.post_short(&mut wire, &pattern, into).map(Begun::Pending),
            None => None,
        };
        let begun = match short.map_or_else(|| machine.receive(&mut wire, pattern, into), Ok) {
            Ok(begun) => begun,
            Err(CallError::Busy(_)) => return false,
            Err(error) => {
                assert_eq!(Some(error), pattern.source.map(|peer| CallError::PeerLost { peer }));
                let is_told = |rank: PeerIndex| self.players[by].told[rank.0 as usize];
                assert!(pattern.source.is_some_and(is_told), "{error}");
                return false;
            }
        };
        let number = self.post(by, pattern, into);
        self.begun(by, number, begun);
        let source = pattern.source.map_or(self.partner(by), |source| source.0 as usize);
        let tag = pattern.tag.unwrap_or(self.draw(self.tags) as u32);
        self.players[source].wanted.push((by, Label { context: pattern.context, tag }));
        true
    }

    fn post(&mut self, by: usize, pattern: Pattern, into: MessageBytes) -> usize {
        self.posted.push(Posted { by, pattern, into, outcome: None, ended: u64::MAX });
        self.posted.len() - 1
    }

    fn begun(&mut self, by: usize, number: usize, begun: Begun<ReceivedMessage>) {
        match begun {
            Begun::Done(received) => self.received(number, Ok(received)),
            Begun::Pending(request) => self.open(by, request, What::Receive(number)),
        }
    }

    /// Records a request under way; its caller may watch for its end.
    fn open(&mut self, by: usize, request: RequestId, what: What) {
        let is_watched = self.draw(2) == 0 && self.players[by].machine.watch(request);
        self.players[by].open.push(Open { request, what, is_watched });
    }

    /// Probes; a message that was found is received next.
    fn probe(&mut self, by: usize) {
        let pattern = self.pattern(by);
        let receives = self.draw(2) == 0;
        let (machine, _) = self.machine(by);
        let Some(seen) = machine.probe(&pattern) else { return };
        if !receives || !self.receive(by, pattern, seen.len, true) {
            return;
        }
        if let Some(Ok(message)) = self.posted.last().expect("it was posted").outcome {
            let Sent { from, len, .. } = self.sent[message];
            assert_eq!(
                (PeerIndex(from as u32), len),
                (seen.source, seen.len),
                "the probe saw another message"
            );
        }
    }

    fn cancel(&mut self, rank: usize) {
        let open = self.players[rank].open.len() as u64;
        if open == 0 {
            return;
        }
        let at = self.draw(open) as usize;
        let request = self.players[rank].open[at].request;
        let (machine, mut wire) = self.machine(rank);
        let was = machine.has_ended(request);
        let cancel = machine.cancel(&mut wire, request);
        assert!(!was || cancel == Cancel::TooLate);
        if cancel == Cancel::Done {
            assert!(machine.has_ended(request));
        }
    }
}
