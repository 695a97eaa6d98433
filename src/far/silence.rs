//! Which other node is given up because nothing is heard of it: a machine
//! without a network and without a clock.
//!
//! ```text
//!            nothing heard for 1.5 times the limit,
//!            and the device was found empty since        told that it is given up:
//!  Here ─────────────────────────────────────────► GivenUp ── each time that it
//!    │                                                        shows itself, and
//!    └── known to have died ──► Left                          ever more rarely
//! ```
//!
//! The limit is how long a rank may be held off its processor, or cut off. Half
//! as long again is for what the network does when a cut has healed: TCP sends
//! again after pauses that double. A thread that comes late itself gives the
//! others as much more time.
//!
//! Two nodes that cannot hear each other give each other up. When they can
//! again, both are told, and the one with the higher number ends. A node that is
//! told by one that it still knows ends too: nothing that it sends is let in there
//! any more. Who has given a node up stays at that.
//!
//! Times are milliseconds of any clock, which wrap after some weeks.

use std::time::Duration;
use tsumugi_core::sync::mutant;

/// What follows from the limit, all in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// From a beat to the next.
    pub beat: u32,
    /// A node that was silent for so long is late: then every packet counts.
    pub late: u32,
    /// And for so long: it is given up.
    pub given_up: u32,
    /// Nodes start at different times.
    pub start: u32,
}

/// What one node knows of the others.
#[derive(Debug)]
pub(super) struct Silence {
    own: u32,
    rule: Rule,
    peers: Box<[Peer]>,
    looked: u32,
    next: u32,
}

/// Another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    /// When it was heard last, or may be heard first; once it is given up: when
    /// it is told next.
    at: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Since it should have been heard, the device was found empty so often.
    Here {
        looks: u8,
    },
    /// It is told after `1 << step` beats again.
    GivenUp {
        step: u8,
    },
    Left,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// A beat is due.
    pub is_beat: bool,
    /// A node is late, so packets and looks at the device count.
    pub is_late: bool,
    /// Nodes that are given up from now on.
    pub given_up: Vec<u32>,
    /// Nodes that are to be told so.
    pub told: Vec<u32>,
}

/// What a node does that is told that it was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ends,
    Stays,
}

impl Rule {
    /// For ranks that may be held off for so long.
    pub(super) fn new(limit: Duration) -> Self {
        let limit = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).clamp(LEAST, MOST);
        let given_up = limit + limit / 2;
        let beat = (limit / 16).clamp(LEAST / 10, BEAT_MAX);
        Self { beat, late: 4 * beat, given_up, start: given_up.max(START) }
    }
}

impl Silence {
    /// Bytes that it takes for each node.
    pub(super) const NODE_BYTES: usize = size_of::<Peer>();

    /// Node `own` of so many; it is `now`.
    pub(super) fn new(own: u32, nodes: usize, rule: Rule, now: u32) -> Self {
        // The first of a node may be heard once all have started; a beat ends that.
        let at = now.wrapping_add(rule.start - rule.given_up);
        let peers = vec![Peer { at, state: State::Here { looks: 0 } }; nodes].into();
        Self { own, rule, peers, looked: now, next: now }
    }

    /// Until the next round that has something to do, at most.
    pub(super) fn until_next(&self, now: u32) -> u32 {
        u32::try_from(since(self.next, now)).unwrap_or(0).min(LOOK)
    }

    /// The next round beats.
    pub(super) fn hurry(&mut self, now: u32) {
        self.next = now;
    }

    /// A beat has come: the node's watch has begun, and from here on its silence
    /// counts, however early it is.
    pub(super) fn hears_beat(&mut self, node: u32, now: u32) {
        self.hears(node, now);
        if let Some(peer) = self.peers.get_mut(node as usize)
            && let State::Here { .. } = peer.state
            && !mutant("silence_starts_late")
        {
            peer.at = now;
        }
    }

    /// A packet of a node's first rank has come.
    pub(super) fn hears(&mut self, node: u32, now: u32) {
        let beat = self.rule.beat;
        let Some(peer) = self.peers.get_mut(node as usize) else { return };
        match peer.state {
            State::Here { .. } if since(now, peer.at) > 0 => {
                *peer = Peer { at: now, state: State::Here { looks: 0 } };
            }
            // It is back, and may not know yet.
            State::GivenUp { .. } if mutant("silence_taken_back") => {
                *peer = Peer { at: now, state: State::Here { looks: 0 } };
            }
            State::GivenUp { step } if step > 0 => {
                let at = now.wrapping_add(beat);
                let at = if since(peer.at, at) > 0 { at } else { peer.at };
                *peer = Peer { at, state: State::GivenUp { step: 0 } };
            }
            _ => {}
        }
    }

    /// All that had arrived was taken.
    pub(super) fn looks(&mut self, now: u32) {
        for peer in &mut self.peers {
            if let State::Here { looks } = &mut peer.state
                && since(now, peer.at) >= self.rule.given_up.cast_signed()
            {
                *looks = looks.saturating_add(1);
            }
        }
    }

    /// A node is known to have died.
    pub(super) fn leaves(&mut self, node: u32) {
        if let Some(peer) = self.peers.get_mut(node as usize) {
            peer.state = State::Left;
        }
    }

    /// What is to be done now; what has arrived was taken before.
    pub(super) fn round(&mut self, now: u32) -> Round {
        let late = since(now, self.looked).saturating_sub(LOOK.cast_signed());
        self.looked = now;
        if late > 0 {
            for peer in &mut self.peers {
                if let State::Here { .. } = peer.state {
                    peer.at = peer.at.wrapping_add(late.cast_unsigned());
                }
            }
        }
        let mut round = Round { is_beat: since(now, self.next) >= 0, ..Round::default() };
        if round.is_beat {
            self.next = now.wrapping_add(self.rule.beat);
        }
        let Rule { beat, late, given_up, .. } = self.rule;
        for (node, peer) in (0..).zip(&mut self.peers).filter(|(node, _)| *node != self.own) {
            match peer.state {
                State::Here { looks } => {
                    let silence = since(now, peer.at);
                    round.is_late |= silence >= late.cast_signed();
                    if silence >= given_up.cast_signed() && looks >= LOOKS {
                        let at = now.wrapping_add(beat);
                        *peer = Peer { at, state: State::GivenUp { step: 0 } };
                        round.given_up.push(node);
                        if !mutant("silence_untold") {
                            round.told.push(node);
                        }
                    }
                }
                State::GivenUp { step } if since(now, peer.at) >= 0 => {
                    let (pause, step) = (beat << step, (step + 1).min(STEP_MAX));
                    *peer = Peer { at: now.wrapping_add(pause), state: State::GivenUp { step } };
                    if !mutant("silence_untold") {
                        round.told.push(node);
                    }
                }
                State::GivenUp { .. } | State::Left => {}
            }
        }
        round
    }

    /// This node is told by another one that it was given up there.
    pub(super) fn is_told_by(&self, node: u32) -> Verdict {
        match self.peers.get(node as usize).map(|peer| peer.state) {
            Some(State::Here { .. }) => Verdict::Ends,
            Some(State::GivenUp { .. }) if node < self.own => Verdict::Ends,
            _ => Verdict::Stays,
        }
    }

    /// As if so much time had gone by without a packet.
    #[cfg(test)]
    pub(super) fn age(&mut self, by: u32) {
        for peer in &mut self.peers {
            peer.at = peer.at.wrapping_sub(by);
        }
    }
}

/// From the second to the first; negative: the first is yet to come.
fn since(now: u32, then: u32) -> i32 {
    now.wrapping_sub(then).cast_signed()
}

const BEAT_MAX: u32 = 250;
const START: u32 = 10_000;
/// Whoever is there looks as often.
pub(super) const LOOK: u32 = 100;
/// In which one packet each may be taken.
pub(super) const LOOKS: u8 = 16;
/// A node that was given up is told after twice as long each time, up to a
/// minute or so, for it may have died.
const STEP_MAX: u8 = 8;
/// Bounds of the limit.
const LEAST: u32 = 100;
const MOST: u32 = 24 * 3600 * 1000;

#[cfg(test)]
mod tests;
