//! Channels: messages of any length from one rank to another one, in order.
//!
//! The receiver has a ring in global memory, the sender has a word in which the
//! receiver counts the bytes that it has taken:
//!
//! ```text
//!   sender                                 receiver
//!   message ── copies, as room is ──────►  ring:  tail │ 8 bytes length, bytes ...
//!              then add to tail, in turn          ▲ woken
//!   head  ◄─── add, at half a ring ──────  takes what lies before the tail
//!   ▲ woken
//! ```
//!
//! Pieces of a message are on their way in parallel; the tail is raised for each
//! piece when the piece has landed and the tail covers all pieces before it. So the
//! receiver never sees a hole, and a message may be longer than the ring. No call
//! waits: [`Sender::advance`] issues operations for which there is room, and
//! [`Receiver::try_receive`] takes the bytes that are there. Both counts are changed
//! by additions, so that the order of two reports does not matter. The receiver
//! reports room whenever it has taken half a ring, so that a sender that waits need
//! not ask for it. If the receiver dies, the operations under way end with an error
//! of the machine.
//!
//! Progress: wait-free; the time of a receive is in proportion to its bytes.

use crate::address::{GlobalAddr, Split};
use crate::machine::GlobalMachine;
use crate::order::{After, Full, Handle};
use crate::request::{Copy, GlobalRequest, WordRequest};
use core::fmt;
use tsumugi_core::mutate;
use tsumugi_core::op::Kind;
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};

/// The places of a channel's two ends: the same value at both.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    split: Split,
    /// At the receiver: the tail, and one cache line after it the bytes.
    ring: GlobalAddr,
    /// At the sender: the count of bytes that the receiver has taken.
    head: GlobalAddr,
    /// The size of the ring; a power of two.
    bytes: u64,
}

/// The end that sends.
#[derive(Debug)]
pub struct Sender {
    channel: Channel,
    /// The number of bytes of the ring that were ever used.
    sent: u64,
    message: Option<ChannelMessage>,
    /// The amount by which the tail is still to be raised, when this operation has
    /// landed.
    owed: Option<(Handle, u64)>,
    /// The last operation that raises the tail.
    raised: Handle,
}

#[derive(Clone, Copy, Debug)]
struct ChannelMessage {
    src: GlobalAddr,
    bytes: u64,
    done: u64,
    has_length: bool,
}

/// The end that receives.
#[derive(Debug)]
pub struct Receiver<'m> {
    channel: Channel,
    words: &'m [AtomicU64],
    taken: u64,
    reported: u64,
    /// The message that is being taken: its length, and how much of it was taken.
    message: Option<(u64, u64)>,
}

/// An issuer of operations for a [`Sender`].
pub trait Issue {
    /// Issues a request.
    ///
    /// # Errors
    ///
    /// A [`Full`], and nothing was issued: [`Full::Operations`] if all places for
    /// operations are taken; [`Full::Conditions`] if the places for conditions do not
    /// suffice for the operations that this one has to wait for.
    fn try_issue(&mut self, request: GlobalRequest, after: After<'_>) -> Result<Handle, Full>;
}

/// The result of a receive. The enum is exhaustive: the message goes on, or it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedPart {
    /// This number of bytes of a message that goes on.
    Part(usize),
    /// This number of bytes, which are the last of the message.
    End(usize),
}

impl Channel {
    /// The number of bytes of global memory at the receiver, zero at the start, for
    /// a ring of `bytes` bytes.
    pub const fn ring_size(bytes: u64) -> u64 {
        bytes + TAIL_BYTES
    }

    /// A channel to the ring at `ring`, from the rank that has 8 zero bytes at
    /// `head`.
    ///
    /// # Panics
    ///
    /// If `bytes` is not a power of two of at least 64.
    pub fn new(split: Split, ring: GlobalAddr, head: GlobalAddr, bytes: u64) -> Self {
        assert!(
            bytes.is_power_of_two() && bytes >= 64,
            "a ring of {bytes} bytes: it needs a power of two of at least 64"
        );
        Self { split, ring, head, bytes }
    }

    /// The sending end of the channel. There must be only one.
    pub const fn sender(self) -> Sender {
        Sender { channel: self, sent: 0, message: None, owed: None, raised: Handle::NULL }
    }

    /// The receiving end of the channel. There must be only one. `words` is the
    /// ring's memory, of [`ring_size`](Self::ring_size).
    ///
    /// # Panics
    ///
    /// If `words` has another size.
    pub fn receiver(self, words: &[AtomicU64]) -> Receiver<'_> {
        assert_eq!(
            words.len() as u64 * 8,
            Self::ring_size(self.bytes),
            "bytes of the memory for a ring of {}",
            self.bytes
        );
        Receiver { channel: self, words, taken: 0, reported: 0, message: None }
    }
}

impl Issue for GlobalMachine<'_> {
    fn try_issue(&mut self, request: GlobalRequest, after: After<'_>) -> Result<Handle, Full> {
        GlobalMachine::try_issue(self, request, after)
    }
}

impl Sender {
    /// Begins to send the `bytes` bytes at `src`, memory of this rank, which must
    /// not change until [`has_sent`](Self::has_sent). False: the message before has
    /// not been issued completely.
    pub fn try_send(&mut self, src: GlobalAddr, bytes: u64) -> bool {
        if self.message.is_some() {
            return false;
        }
        self.message = Some(ChannelMessage { src, bytes, done: 0, has_length: false });
        true
    }

    /// Issues operations for which there is room, when the receiver has counted
    /// `head` bytes. True: all of the message was issued.
    ///
    /// # Errors
    ///
    /// [`Full::Operations`] or [`Full::Conditions`] if there is no place for an
    /// operation, or for its conditions. The caller must try again when an operation
    /// has ended.
    pub fn advance<I: Issue + ?Sized>(&mut self, issue: &mut I, head: u64) -> Result<bool, Full> {
        loop {
            if let Some((landed, bytes)) = self.owed {
                let add = WordRequest::atomic(Kind::FetchAdd, self.channel.ring, bytes).notifying();
                let both = [landed, self.raised];
                let after = mutate!("gas_channel_unordered":
                    After::Each(&both) => After::One(landed));
                self.raised = issue.try_issue(add.into(), after)?;
                self.owed = None;
            }
            let Some(mut message) = self.message else { return Ok(true) };
            let room = self.channel.bytes - self.sent.wrapping_sub(head);
            if room == 0 {
                return Ok(false);
            }
            let at = self.sent & (self.channel.bytes - 1);
            let to = self.place(self.channel.ring, TAIL_BYTES + at);
            let (landed, bytes) = if message.has_length {
                let left = message.bytes - message.done;
                let piece = left.min(room).min(self.channel.bytes - at);
                let from = self.place(message.src, message.done);
                let copy = Copy::new(to, from, piece);
                message.done += piece;
                (issue.try_issue(copy.into(), After::Nothing)?, piece.next_multiple_of(8))
            } else {
                message.has_length = true;
                let length = WordRequest::atomic(Kind::PutWord, to, message.bytes);
                (issue.try_issue(length.into(), After::Nothing)?, 8)
            };
            self.sent = self.sent.wrapping_add(bytes);
            self.owed = Some((landed, bytes));
            self.message = (message.done < message.bytes).then_some(message);
        }
    }

    /// The last operation that was issued: when it has ended, all before it have
    /// ended.
    pub const fn last(&self) -> Handle {
        self.raised
    }

    /// Whether all bytes to send lie in the ring.
    pub fn has_sent(&self, machine: &GlobalMachine<'_>) -> bool {
        self.message.is_none() && self.owed.is_none() && machine.has_ended(self.raised)
    }

    /// The address `bytes` after `addr`. If there is none, it is null, and an access
    /// to it fails.
    fn place(&self, addr: GlobalAddr, bytes: u64) -> GlobalAddr {
        let split = self.channel.split;
        split.add(addr, bytes as i64).unwrap_or(GlobalAddr::NULL)
    }
}

impl Receiver<'_> {
    /// Takes the bytes of a message that are there, as far as `into` has room.
    /// `None`: no bytes are there.
    pub fn try_receive(&mut self, into: &mut [u8]) -> Option<ReceivedPart> {
        // Acquire: orders the stores of the bytes that the tail covers before this.
        let mut there = self.words[0].load(Ordering::Acquire).wrapping_sub(self.taken);
        if self.message.is_none() {
            if there == 0 {
                return None;
            }
            self.message = Some((self.word(self.taken), 0));
            self.taken = self.taken.wrapping_add(8);
            there -= 8;
        }
        let (bytes, done) = self.message?;
        let count = (bytes - done).min(there).min(into.len() as u64);
        if count == 0 && done < bytes {
            return None;
        }
        // A message starts at a word, and so does every part, unless `into` has
        // ended a part within a word.
        let start = self.taken;
        for (index, byte) in into[..count as usize].iter_mut().enumerate() {
            let at = start.wrapping_add(index as u64);
            *byte = self.word(at & !7).to_le_bytes()[(at & 7) as usize];
        }
        self.taken = self.taken.wrapping_add(count);
        if done + count < bytes {
            self.message = Some((bytes, done + count));
            return Some(ReceivedPart::Part(count as usize));
        }
        self.taken = self.taken.next_multiple_of(8);
        self.message = None;
        Some(ReceivedPart::End(count as usize))
    }

    /// The operation that reports room to the sender, if a report is due; the caller
    /// must issue it now.
    pub fn poll_report(&mut self) -> Option<WordRequest> {
        // Only whole words may be reported as free.
        let free = (self.taken & !7).wrapping_sub(self.reported);
        if free < self.channel.bytes / 2 {
            return None;
        }
        self.reported = self.reported.wrapping_add(free);
        Some(WordRequest::atomic(Kind::FetchAdd, self.channel.head, free).notifying())
    }

    /// The word of the ring at position `at` of all bytes ever sent.
    fn word(&self, at: u64) -> u64 {
        let at = TAIL_BYTES + (at & (self.channel.bytes - 1));
        self.words[at as usize / 8].load(Ordering::Relaxed)
    }
}

impl fmt::Display for ReceivedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(bytes) => write!(f, "{bytes} bytes, and more to come"),
            Self::End(bytes) => write!(f, "the last {bytes} bytes"),
        }
    }
}

/// The tail has a cache line of its own.
const TAIL_BYTES: u64 = 64;
