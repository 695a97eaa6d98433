//! Segmented buffers: a ring of segments at a source and one at a sink, which
//! the source fills and sends segment by segment.
//!
//! ```text
//!  source   ▒▒▒▒│▒▒▒▒│░░░░│░░░░      sink   ▒▒▒▒│▒▒▒▒│░░░░│░░░░
//!           sent      tail                  head      tail
//!             │         │                     │         ▲
//!             │         └── send: copy, then ─│─────────┘ +1
//!             └─────────── room ◄── take: +1 ─┘
//! ```
//!
//! All counts go up for ever; segment `n` is `n` modulo the number of
//! segments. The source writes a segment of its own memory and
//! [sends](SegmentSource::send) it; the sink reads it where it is and
//! [takes](SegmentSink::take) it, which makes room for another. Whoever waits
//! sleeps for a word of its own memory. An end that is dropped is gone for the
//! other, whose calls end with [`AccessError::Stale`]: both
//! [close](SegmentSource::close) first.

use super::{AccessError, After, Change, Copy, Global, GlobalAddr, GlobalBlock, Operation};
use crate::{Comm, Error, Rank};
use std::collections::VecDeque;
use tsumugi_core::op::Kind;
use tsumugi_core::signal::Until;

/// The end that sends.
#[derive(Debug)]
pub struct SegmentSource {
    end: End,
    /// Segments that were sent, and those whose copy has ended.
    tail: u64,
    sent: u64,
    under_way: VecDeque<Operation>,
}

/// The end that receives.
#[derive(Debug)]
pub struct SegmentSink {
    end: End,
    head: u64,
}

/// What both ends have.
#[derive(Debug)]
struct End {
    global: Global,
    /// How the two found each other.
    way: (Comm, Rank, u32),
    /// Own memory: what the other end counts.
    counted: GlobalBlock<u64>,
    own: GlobalAddr,
    peer: Peer,
    bytes: u64,
    count: u64,
}

/// What the other end has told.
#[derive(Clone, Copy, Debug)]
struct Peer {
    counted: GlobalAddr,
    buffer: GlobalAddr,
}

impl SegmentSource {
    /// Connects with the sink at `to` that uses the same `comm`, `tag`, length
    /// and number of segments. The `count` segments of `bytes` bytes are at
    /// `own`, memory of this rank. Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Register`], [`Error::Name`],
    /// [`Error::Message`], [`Error::LengthsDiffer`].
    pub fn connect(
        global: &Global,
        (comm, to, tag): (&Comm, Rank, u32),
        own: GlobalAddr,
        (bytes, count): (u64, u64),
    ) -> Result<Self, Error> {
        let end = End::connect(global, (comm, to, tag), own, (bytes, count))?;
        Ok(Self { end, tail: 0, sent: 0, under_way: VecDeque::new() })
    }

    /// Segments that the sink has taken.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn head(&self) -> Result<u64, AccessError> {
        self.end.global.get(self.end.counted.at(0))
    }

    /// Segments that were sent.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Segments whose bytes are at the sink, so that they may be written anew.
    pub fn sent(&mut self) -> u64 {
        while self.under_way.front().is_some_and(Operation::has_ended) {
            self.under_way.pop_front();
            self.sent += 1;
        }
        self.sent
    }

    /// Whether there is room for one more at the sink.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn has_room(&self) -> Result<bool, AccessError> {
        Ok(self.tail - self.head()? < self.end.count)
    }

    /// Begins to send the next segment, if there is room for it. Lock-free
    /// between ranks of a node.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn try_send(&mut self) -> Result<bool, AccessError> {
        if !self.has_room()? {
            return Ok(false);
        }
        let from = self.end.segment(self.end.own, self.tail)?;
        let to = self.end.segment(self.end.peer.buffer, self.tail)?;
        let copy = Copy::new(to, from, self.end.bytes).then_add(self.end.peer.counted, 1);
        // In turn, so that the sink's count names segments that are there.
        let before = self.under_way.back().map_or(After::Nothing, |last| After::One(last.handle()));
        let operation = self.end.global.begin_after(copy, before);
        self.under_way.push_back(operation);
        self.tail += 1;
        self.sent();
        Ok(true)
    }

    /// The same, when there is room. Blocking.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn send(&mut self) -> Result<(), AccessError> {
        while !self.try_send()? {
            self.end.wait(self.tail - self.end.count + 1)?;
        }
        Ok(())
    }

    /// Ends it, when all segments are at the sink and the sink closes, too.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::Access`], [`Error::Message`].
    pub fn close(mut self) -> Result<(), Error> {
        self.flush()?;
        self.end.close()
    }

    /// Waits until all segments are at the sink. Blocking.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn flush(&mut self) -> Result<(), AccessError> {
        while let Some(operation) = self.under_way.pop_front() {
            operation.wait()?;
            self.sent += 1;
        }
        Ok(())
    }
}

impl SegmentSink {
    /// The other end of [`SegmentSource::connect`]. Blocking.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn connect(
        global: &Global,
        (comm, from, tag): (&Comm, Rank, u32),
        own: GlobalAddr,
        (bytes, count): (u64, u64),
    ) -> Result<Self, Error> {
        Ok(Self { end: End::connect(global, (comm, from, tag), own, (bytes, count))?, head: 0 })
    }

    /// Ends it, when the source closes, too. Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::Message`].
    pub fn close(self) -> Result<(), Error> {
        self.end.close()
    }

    /// Segments that were taken.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Segments that have come.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn tail(&self) -> Result<u64, AccessError> {
        self.end.global.get(self.end.counted.at(0))
    }

    /// Waits until one has come that was not taken, and answers which of the
    /// ring it is. Blocking.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn wait(&self) -> Result<u64, AccessError> {
        self.end.wait(self.head + 1)?;
        Ok(self.head % self.end.count)
    }

    /// Takes the first that has come, if one has: the source may send another
    /// in its place.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    pub fn take(&mut self) -> Result<bool, AccessError> {
        if self.tail()? == self.head {
            return Ok(false);
        }
        self.end.tell(1)?;
        self.head += 1;
        Ok(true)
    }
}

impl End {
    fn connect(
        global: &Global,
        (comm, to, tag): (&Comm, Rank, u32),
        own: GlobalAddr,
        (bytes, count): (u64, u64),
    ) -> Result<Self, Error> {
        let counted = global.expose::<u64>(1)?;
        let told = [counted.at(0).addr().to_bits(), own.to_bits(), bytes, count];
        let mut heard = [0u64; 4];
        comm.send_recv(to, tag, &told, to, tag, &mut heard)?;
        for (own, other) in [(bytes, heard[2]), (count, heard[3])] {
            if own != other {
                return Err(Error::LengthsDiffer { own, rank: to, other });
            }
        }
        let [theirs, buffer, ..] = heard.map(GlobalAddr::from_bits);
        let peer = Peer { counted: theirs, buffer };
        let way = (comm.clone(), to, tag);
        Ok(Self { global: global.clone(), way, counted, own, peer, bytes, count })
    }

    /// Waits for the other end to close.
    fn close(&self) -> Result<(), Error> {
        let (comm, to, tag) = &self.way;
        comm.send_recv::<u64, u64>(*to, *tag, &[], *to, *tag, &mut [])?;
        Ok(())
    }

    fn segment(&self, buffer: GlobalAddr, at: u64) -> Result<GlobalAddr, AccessError> {
        let offset = at % self.count * self.bytes;
        let beyond = AccessError::OutOfRange { addr: buffer, bytes: self.bytes };
        self.global.split().add(buffer, offset as i64).map_err(|_| beyond)
    }

    /// Adds to what the other end counts, and wakes who waits there.
    fn tell(&self, more: u64) -> Result<(), AccessError> {
        let add = Change::atomic(Kind::FetchAdd, self.peer.counted, more).notifying();
        self.global.change(add).map(drop)
    }

    /// Sleeps until the other end has counted so far.
    fn wait(&self, until: u64) -> Result<u64, AccessError> {
        self.global.wait_until(self.counted.at(0), Until::AtLeast(until))
    }
}
