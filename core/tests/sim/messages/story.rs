//! The messages that one rank has sent and received and the replies that it expects, checked.
//!
//! A request carries its number among those of its pair, so that the handler knows which number
//! must be next; a reply names its request.

use super::rank::{LANDING_BYTES, Sizes};
use std::time::Duration;
use tsumugi_conformance::Seeded;
use tsumugi_core::am::{
    AmMachine, CallError, CallPayload, HandlerAnswer, HandlerId, Incoming, Inline, ReplyTo,
    RequestBody, SendError, Token,
};
use tsumugi_core::mem::{LocalAddr, PeerIndex, Rank};
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};
use tsumugi_core::time::Instant;

pub(super) struct Story<'m> {
    rank: u32,
    /// The peer index of each rank.
    seats: Vec<u32>,
    time_limits: bool,
    fan: u32,
    /// The rank found no room, and got none since.
    pub(super) is_stuck: bool,
    to_send: u32,
    /// Requests sent to each rank so far, and handled from each.
    sent: Vec<u64>,
    handled: Vec<u64>,
    /// Calls under way, by their entry.
    calls: Vec<Option<Sent>>,
    unanswered: Vec<Deferred>,
    /// Long payloads lie in blocks of the rank's own memory.
    blocks: [bool; BLOCKS],
    user: &'m [AtomicU64],
    user_at: LocalAddr,
    landing: &'m [AtomicU64],
}

struct Sent {
    token: Token,
    id: u64,
    to: u32,
    handler: HandlerId,
    deadline: Option<Instant>,
    block: Option<usize>,
    /// The limit has passed, but the payload has not been released.
    is_abandoned: bool,
}

struct Deferred {
    reply_to: ReplyTo,
    value: Inline,
    due: Instant,
}

impl<'m> Story<'m> {
    pub(super) const USER_BYTES: usize = BLOCKS * LANDING_BYTES;

    pub(super) fn new(
        rank: u32,
        seats: Vec<u32>,
        sizes: Sizes,
        landing: &'m [AtomicU64],
        user: &'m [AtomicU64],
        user_at: LocalAddr,
    ) -> Self {
        Self {
            rank,
            seats,
            time_limits: sizes.time_limits,
            fan: sizes.fan,
            is_stuck: false,
            to_send: sizes.messages,
            sent: vec![0; sizes.ranks as usize],
            handled: vec![0; sizes.ranks as usize],
            calls: (0..sizes.calls).map(|_| None).collect(),
            unanswered: Vec::new(),
            blocks: [false; BLOCKS],
            user,
            user_at,
            landing,
        }
    }

    pub(super) const fn rank(&self) -> u32 {
        self.rank
    }

    pub(super) fn sent(&self, to: u32) -> u64 {
        self.sent[to as usize]
    }

    pub(super) fn handled(&self, from: u32) -> u64 {
        self.handled[from as usize]
    }

    pub(super) const fn has_more(&self) -> bool {
        self.to_send > 0
    }

    pub(super) fn check_end(&self) {
        let open = self.calls.iter().flatten().count();
        let left = (self.to_send, open, self.unanswered.len());
        assert_eq!(left, (0, 0, 0), "rank {}: not sent, not ended, not answered", self.rank);
        assert_eq!(self.blocks, [false; BLOCKS], "rank {}: payloads not given back", self.rank);
    }

    /// Sends as much as there is room for.
    pub(super) fn send(&mut self, machine: &mut AmMachine<'_>, seeded: &mut Seeded, now: Instant) {
        while self.to_send > 0 && !self.is_stuck {
            let to =
                (self.rank + seeded.below(u64::from(self.fan)) as u32) % self.sent.len() as u32;
            let seat = PeerIndex(self.seats[to as usize]);
            let handler = [UNKNOWN, LATER, LATER, ECHO, ECHO][seeded.below(5) as usize];
            let limit = Duration::from_nanos(seeded.below(30_000));
            let is_limited = self.time_limits && seeded.below(3) == 0;
            let deadline = is_limited.then(|| now + limit);
            // Mostly whole words.
            let more = 8 * seeded.below(26) + [0, 0, 0, 5][seeded.below(4) as usize];
            let bytes = content(self.rank, to, self.sent(to), more as usize);
            let free = self.blocks.iter().position(|used| !used);
            let mut block = None;
            let sent = match (seeded.below(10), free) {
                (0..3, _) => machine.cast(seat, ECHO, &bytes).map(|()| None),
                (3, Some(free)) => {
                    let more = 224 + seeded.below(LANDING_BYTES as u64 - 240) as usize;
                    block = Some(free);
                    let payload = self.long(free, &content(self.rank, to, self.sent(to), more));
                    machine.call(seat, handler, payload, deadline).map(Some)
                }
                _ => machine.call(seat, handler, CallPayload::Inline(&bytes), deadline).map(Some),
            };
            match sent {
                Ok(token) => {
                    self.to_send -= 1;
                    self.sent[to as usize] += 1;
                    let Some(token) = token else { continue };
                    let id = self.sent(to) - 1;
                    if let Some(block) = block {
                        self.blocks[block] = true;
                    }
                    let call =
                        Sent { token, id, to, handler, deadline, block, is_abandoned: false };
                    let before = self.calls[token.index()].replace(call);
                    assert!(before.is_none(), "rank {}: {token:?} was given twice", self.rank);
                }
                Err(SendError::Busy(_)) => self.is_stuck = true,
                // The peer has died.
                Err(SendError::PeerLost { .. }) => self.to_send -= 1,
                Err(error) => panic!("rank {} to {to}: {error}", self.rank),
            }
        }
    }

    /// Handles a request; replies at once or when it is due.
    pub(super) fn serve(
        &mut self,
        machine: &mut AmMachine<'_>,
        request: Incoming,
        now: Instant,
        is_dead: impl Fn(u32) -> bool,
    ) -> Option<Instant> {
        let from = request.from.0;
        let bytes = match &request.body {
            RequestBody::Inline(inline) => inline.to_vec(),
            RequestBody::Landed(landed) => {
                let start = landed.index() * LANDING_BYTES / 8;
                let words = self.landing[start..][..LANDING_BYTES / 8].iter();
                let all = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
                all.take(landed.bytes as usize).collect()
            }
        };
        let next = self.handled(from);
        let id = bytes.first_chunk().map_or(u64::MAX, |id| u64::from_le_bytes(*id));
        let is_whole = bytes == content(from, self.rank, id, bytes.len().saturating_sub(16));
        assert!(is_whole, "the request after {next} from {from} to {} is torn", self.rank);
        // A long request of a rank that has died is skipped, since its payload is gone.
        assert!(id == next || id > next && is_dead(from), "{id} from {from} comes before {next}");
        self.handled[from as usize] = id + 1;
        if let RequestBody::Landed(landed) = request.body {
            machine.release(landed);
        }
        let mut reply_to = request.reply_to?;
        let value = Inline::new(&answer(self.rank, from, id)).expect("24 bytes fit");
        match request.handler {
            LATER => {
                machine.defer(&mut reply_to);
                let due = now + Duration::from_nanos(id * 7_919 % 10_000);
                self.unanswered.push(Deferred { reply_to, value, due });
                return Some(due);
            }
            ECHO => machine.reply(reply_to, &HandlerAnswer::Value(value)),
            _ => machine.reply(reply_to, &HandlerAnswer::UnknownHandler),
        }
        .expect("inside a handler there is room");
        None
    }

    /// Sends the replies that are due, as far as there is room.
    pub(super) fn answer(&mut self, machine: &mut AmMachine<'_>, now: Instant) {
        for Deferred { reply_to, value, due } in std::mem::take(&mut self.unanswered) {
            let reply_to = match due <= now {
                true => machine.reply(reply_to, &HandlerAnswer::Value(value)).err(),
                false => Some(reply_to),
            };
            self.unanswered.extend(reply_to.map(|reply_to| Deferred { reply_to, value, due }));
        }
    }

    /// Handles the end of a call.
    pub(super) fn end(
        &mut self,
        token: Token,
        result: Result<Inline, CallError>,
        now: Instant,
        is_dead: impl Fn(u32) -> bool,
    ) {
        let call = self.calls[token.index()].as_mut().filter(|call| call.token == token);
        let call = call.unwrap_or_else(|| panic!("rank {}: {token:?} is no call", self.rank));
        assert!(!call.is_abandoned, "rank {}: {token:?} has ended twice", self.rank);
        let (id, to, handler) = (call.id, call.to, call.handler);
        let is_right = match result {
            Ok(value) => *value == answer(to, self.rank, id) && handler != UNKNOWN,
            Err(CallError::UnknownHandler { handler }) => handler == UNKNOWN,
            Err(CallError::Timeout) => call.deadline.is_some_and(|deadline| deadline <= now),
            Err(CallError::PeerLost { rank }) => rank == Rank(to) && is_dead(to),
            Err(_) => false,
        };
        assert!(is_right, "call {id} of {} to {to}, {handler}: {result:?}", self.rank);
        if call.block.is_some() && result == Err(CallError::Timeout) {
            call.is_abandoned = true;
        } else {
            self.forget(token);
        }
    }

    /// Handles the release of an abandoned call's payload.
    pub(super) fn release(&mut self, token: Token) {
        let call = self.calls[token.index()].as_ref();
        let is_waited_for = call.is_some_and(|call| call.token == token && call.is_abandoned);
        assert!(is_waited_for, "rank {}: {token:?} was released", self.rank);
        self.forget(token);
    }

    fn forget(&mut self, token: Token) {
        if let Some(block) = self.calls[token.index()].take().and_then(|call| call.block) {
            // A peer that still reads the payload gets these words, which its check detects.
            let words = &self.user[block * LANDING_BYTES / 8..][..LANDING_BYTES / 8];
            words.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
            self.blocks[block] = false;
        }
    }

    fn long(&self, block: usize, bytes: &[u8]) -> CallPayload<'static> {
        let start = block * LANDING_BYTES;
        for (word, bytes) in self.user[start / 8..].iter().zip(bytes.chunks(8)) {
            let mut value = [0; 8];
            value[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(value), Ordering::Relaxed);
        }
        let from = LocalAddr { offset: start as u64, ..self.user_at };
        CallPayload::Long { from, bytes: bytes.len() as u64 }
    }
}

/// The bytes of request `id`: 16 and `more` bytes of one of two kinds, so that a mix of two
/// requests is likely to look like one.
fn content(from: u32, to: u32, id: u64, more: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(more + 16);
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&from.to_le_bytes());
    bytes.extend_from_slice(&to.to_le_bytes());
    let kind = [0, u8::MAX][(Seeded(id).next() % 2) as usize];
    bytes.extend((0..more).map(|index| index as u8 ^ from as u8 ^ kind));
    bytes
}

fn answer(by: u32, to: u32, id: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&u64::from(by).to_le_bytes());
    bytes[8..16].copy_from_slice(&u64::from(to).to_le_bytes());
    bytes[16..].copy_from_slice(&id.to_le_bytes());
    bytes
}

const BLOCKS: usize = 4;
const ECHO: HandlerId = HandlerId(1);
const LATER: HandlerId = HandlerId(2);
const UNKNOWN: HandlerId = HandlerId(9);
