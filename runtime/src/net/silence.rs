//! A failure detector between nodes: which other node is given up because it was
//! silent for too long. A state machine without a network and without a clock.
//!
//! ```text
//!            nothing heard for 1.5 times the limit,
//!            and the device was found empty since        sent notices of it: each
//!  Here ─────────────────────────────────────────► GivenUp ── time that it shows
//!    │                                                        itself, and ever
//!    └── known to have died ──► Left                          more rarely
//! ```
//!
//! The limit is how long a rank may be stopped, or the network cut. Half as long
//! again is for the time that the network takes after a cut has healed: TCP sends
//! again after pauses that double. A thread that is late itself gives the other
//! nodes as much more time.
//!
//! Two nodes that do not hear each other give each other up. When they do again,
//! each gets the other's notice, and the node with the higher number ends. A node
//! that gets a notice from a node that it has not given up ends, too: its packets
//! are refused there from then on. A node that has given another up never takes that
//! back.
//!
//! Times are milliseconds of any clock; they wrap after some weeks.

use std::time::Duration;
use tsumugi_core::mutate;

/// Times that follow from the limit, all in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// From one heartbeat to the next.
    pub interval: u32,
    /// A node that was silent for this long is late: from then on every packet
    /// counts.
    pub late: u32,
    /// A node that was silent for this long is given up.
    pub given_up: u32,
    /// The same for a node of which no heartbeat has come yet: nodes start at different
    /// times.
    pub start: u32,
}

/// The state of one node about the others.
#[derive(Debug)]
pub(super) struct Silence {
    own: u32,
    rule: Rule,
    peers: Box<[WatchedPeer]>,
    looked: u32,
    next: u32,
}

/// Another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WatchedPeer {
    /// The time of its last packet, or from which the first may come; after it is
    /// given up: the time of the next notice to it.
    at: u32,
    state: PeerState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerState {
    /// Not given up; `looks` counts how often the device was found empty since a
    /// packet of the node was due.
    Here {
        looks: u8,
    },
    /// Given up; the next notice is sent after `1 << step` heartbeats.
    GivenUp {
        step: u8,
    },
    Left,
}

/// The actions that are due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SilenceRound {
    /// A heartbeat is due.
    pub is_heartbeat: bool,
    /// A node is late, so packets and looks at the device count.
    pub is_late: bool,
    /// Nodes that are given up from now on.
    pub given_up: Vec<u32>,
    /// Nodes to which a notice of that is to be sent.
    pub told: Vec<u32>,
}

/// The decision of a node that gets a notice that it was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SilenceVerdict {
    Ends,
    Stays,
}

impl Rule {
    /// The times for ranks that may be stopped for `limit`.
    pub(super) fn new(limit: Duration) -> Self {
        let limit = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).clamp(LEAST, MOST);
        let given_up = limit + limit / 2;
        let interval = (limit / 16).clamp(LEAST / 10, INTERVAL_MAX);
        Self { interval, late: 4 * interval, given_up, start: given_up.max(START) }
    }
}

impl WatchedPeer {
    /// Brings the next notice to a node that is given up forward to the time `at`,
    /// if the notices have become rarer.
    fn hurry_notice(&mut self, at: u32) {
        if let PeerState::GivenUp { step } = self.state
            && step > 0
        {
            let at = if since(self.at, at) > 0 { at } else { self.at };
            *self = Self { at, state: PeerState::GivenUp { step: 0 } };
        }
    }
}

impl Silence {
    /// Bytes that the state takes for each node.
    pub(super) const NODE_BYTES: usize = size_of::<WatchedPeer>();

    /// Makes the state of node `own` of `nodes` nodes at the time `now`.
    pub(super) fn new(own: u32, nodes: usize, rule: Rule, now: u32) -> Self {
        // At first a node has a longer time, in which all nodes start; its first
        // heartbeat ends that.
        let at = now.wrapping_add(rule.start - rule.given_up);
        let peers = vec![WatchedPeer { at, state: PeerState::Here { looks: 0 } }; nodes].into();
        Self { own, rule, peers, looked: now, next: now }
    }

    /// Milliseconds until the next round that has something to do, at most.
    pub(super) fn until_next(&self, now: u32) -> u32 {
        u32::try_from(since(self.next, now)).unwrap_or(0).min(LOOK)
    }

    /// Makes the next round send heartbeats.
    pub(super) fn hurry(&mut self, now: u32) {
        self.next = now;
    }

    /// Handles a heartbeat. It shows that the node's poller has begun, so from now on
    /// the node's silence counts, even before the grace time is over.
    pub(super) fn hears_heartbeat(&mut self, node: u32, now: u32) {
        self.hears(node, now);
        if let Some(peer) = self.peers.get_mut(node as usize)
            && let PeerState::Here { .. } = peer.state
        {
            mutate!("silence_starts_late": peer.at = now => ());
        }
    }

    /// Handles any packet of a node's first rank.
    pub(super) fn hears(&mut self, node: u32, now: u32) {
        let interval = self.rule.interval;
        let Some(peer) = self.peers.get_mut(node as usize) else { return };
        match peer.state {
            PeerState::Here { .. } if since(now, peer.at) > 0 => {
                *peer = WatchedPeer { at: now, state: PeerState::Here { looks: 0 } };
            }
            // The node is back, and may not have got the notice yet.
            PeerState::GivenUp { .. } => mutate!("silence_taken_back":
                peer.hurry_notice(now.wrapping_add(interval))
                => *peer = WatchedPeer { at: now, state: PeerState::Here { looks: 0 } }
            ),
            _ => {}
        }
    }

    /// Counts a look at the device that has found it empty.
    pub(super) fn looks(&mut self, now: u32) {
        for peer in &mut self.peers {
            if let PeerState::Here { looks } = &mut peer.state
                && since(now, peer.at) >= self.rule.given_up.cast_signed()
            {
                *looks = looks.saturating_add(1);
            }
        }
    }

    /// Records that a node is known to have died.
    pub(super) fn leaves(&mut self, node: u32) {
        if let Some(peer) = self.peers.get_mut(node as usize) {
            peer.state = PeerState::Left;
        }
    }

    /// Returns the actions that are due now. The caller has taken all arrivals
    /// before.
    pub(super) fn round(&mut self, now: u32) -> SilenceRound {
        let late = since(now, self.looked).saturating_sub(LOOK.cast_signed());
        self.looked = now;
        if late > 0 {
            for peer in &mut self.peers {
                if let PeerState::Here { .. } = peer.state {
                    peer.at = peer.at.wrapping_add(late.cast_unsigned());
                }
            }
        }
        let mut round =
            SilenceRound { is_heartbeat: since(now, self.next) >= 0, ..SilenceRound::default() };
        if round.is_heartbeat {
            self.next = now.wrapping_add(self.rule.interval);
        }
        let Rule { interval, late, given_up, .. } = self.rule;
        for (node, peer) in (0..).zip(&mut self.peers).filter(|(node, _)| *node != self.own) {
            match peer.state {
                PeerState::Here { looks } => {
                    let silence = since(now, peer.at);
                    round.is_late |= silence >= late.cast_signed();
                    if silence >= given_up.cast_signed() && looks >= LOOKS {
                        let at = now.wrapping_add(interval);
                        *peer = WatchedPeer { at, state: PeerState::GivenUp { step: 0 } };
                        round.given_up.push(node);
                        mutate!("silence_untold": round.told.push(node) => ());
                    }
                }
                PeerState::GivenUp { step } if since(now, peer.at) >= 0 => {
                    let (pause, step) = (interval << step, (step + 1).min(STEP_MAX));
                    *peer = WatchedPeer {
                        at: now.wrapping_add(pause),
                        state: PeerState::GivenUp { step },
                    };
                    mutate!("silence_untold": round.told.push(node) => ());
                }
                PeerState::GivenUp { .. } | PeerState::Left => {}
            }
        }
        round
    }

    /// Handles a notice of another node that it has given up this one.
    pub(super) fn is_told_by(&self, node: u32) -> SilenceVerdict {
        match self.peers.get(node as usize).map(|peer| peer.state) {
            Some(PeerState::Here { .. }) => SilenceVerdict::Ends,
            Some(PeerState::GivenUp { .. }) if node < self.own => SilenceVerdict::Ends,
            _ => SilenceVerdict::Stays,
        }
    }

    /// Moves the clock as if `by` milliseconds had passed without a packet.
    #[cfg(test)]
    pub(super) fn age(&mut self, by: u32) {
        for peer in &mut self.peers {
            peer.at = peer.at.wrapping_sub(by);
        }
    }
}

/// The time from `then` to `now`; negative: `now` is the earlier one.
fn since(now: u32, then: u32) -> i32 {
    now.wrapping_sub(then).cast_signed()
}

const INTERVAL_MAX: u32 = 250;
const START: u32 = 10_000;
/// Milliseconds between two looks of a node that is not stopped.
pub(super) const LOOK: u32 = 100;
/// Looks that must find the device empty before a node is given up; each may take
/// one packet.
pub(super) const LOOKS: u8 = 16;
/// The pause between notices doubles, up to a minute or so, because the node that
/// was given up may have died.
const STEP_MAX: u8 = 8;
/// Bounds of the limit.
const LEAST: u32 = 100;
const MOST: u32 = 24 * 3600 * 1000;

#[cfg(test)]
mod tests;
