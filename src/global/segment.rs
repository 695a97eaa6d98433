//! Segmented buffers: a ring of segments at a source and one at a sink; the source
//! fills segments and sends them one by one.
//!
//! ```text
//!  source   ▒▒▒▒│▒▒▒▒│░░░░│░░░░      sink   ▒▒▒▒│▒▒▒▒│░░░░│░░░░
//!           sent      tail                  head      tail
//!             │         │                     │         ▲
//!             │         └── send: copy, then ─│─────────┘ +1
//!             └─────────── room ◄── take: +1 ─┘
//! ```
//!
//! All counters only increase; segment `n` has the place `n` modulo the number of
//! segments. The source writes to a segment of its own memory and
//! [sends](SegmentSource::send) it; the sink reads the segment in place and
//! [takes](SegmentSink::take) it, which makes room for another. An end that waits
//! sleeps on a word of its own memory. When an end is dropped, the calls of the
//! other end return [`AddrError::StaleKey`]; therefore both must
//! [close](SegmentSource::close) first.

use super::{After, Change, Copy, Global, GlobalAddr, GlobalBlock, Operation};
use crate::{AddrError, Comm, Error, Rank};
use std::collections::VecDeque;
use tsumugi_core::op::Kind;
use tsumugi_core::signal::Until;

/// The sending end.
#[derive(Debug)]
pub struct SegmentSource {
    end: SegmentEnd,
    /// `tail` counts the segments that were sent, `sent` the segments that have
    /// arrived.
    tail: u64,
    sent: u64,
    under_way: VecDeque<Operation>,
}

/// The receiving end.
#[derive(Debug)]
pub struct SegmentSink {
    end: SegmentEnd,
    head: u64,
}

/// The part that is common to both ends.
#[derive(Debug)]
struct SegmentEnd {
    global: Global,
    /// The communicator, peer and tag by which the two ends have connected.
    link: (Comm, Rank, u32),
    /// A counter in own memory, which the other end increases.
    counted: GlobalBlock<u64>,
    own: GlobalAddr,
    peer: SegmentPeer,
    bytes: u64,
    count: u64,
}

/// The addresses of the other end's memory.
#[derive(Clone, Copy, Debug)]
struct SegmentPeer {
    counted: GlobalAddr,
    buffer: GlobalAddr,
}

impl SegmentSource {
    /// Connects with the sink at `to`, which must use the same `comm`, `tag`,
    /// length and number of segments. The `count` segments of `bytes` bytes each
    /// lie at `own`, memory of this rank. Blocking.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfMemory`]: the exposed memory of this rank has no free block
    ///   of this size (`TSUMUGI_EXPOSED_BYTES`).
    /// - [`Error::Register`]: the table of regions of this rank is full, or the
    ///   network device refuses the memory.
    /// - [`Error::Name`]: all 255 names of this rank are in use, or not free again
    ///   yet; or an address cannot name so many bytes.
    /// - [`Error::Message`]: the ends could not exchange their addresses, because
    ///   the job has no such rank, or it has died.
    /// - [`Error::LengthsDiffer`]: the other end has another length or another
    ///   number of segments.
    ///
    /// # Panics
    ///
    /// If `comm` belongs to another rank or another job than `global`.
    pub fn connect(
        global: &Global,
        (comm, to, tag): (&Comm, Rank, u32),
        own: GlobalAddr,
        (bytes, count): (u64, u64),
    ) -> Result<Self, Error> {
        let end = SegmentEnd::connect(global, (comm, to, tag), own, (bytes, count))?;
        Ok(Self { end, tail: 0, sent: 0, under_way: VecDeque::new() })
    }

    /// The number of segments that the sink has taken.
    ///
    /// # Errors
    ///
    /// Those of [`Global::get`], for the counter in this rank's own memory.
    pub fn head(&self) -> Result<u64, AddrError<GlobalAddr>> {
        self.end.global.get(self.end.counted.at(0))
    }

    /// The number of segments that were sent.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// The number of segments that have arrived in the sink's memory, so that the
    /// source may write to these segments again.
    pub fn sent(&mut self) -> u64 {
        while self.under_way.front().is_some_and(Operation::has_ended) {
            self.under_way.pop_front();
            self.sent += 1;
        }
        self.sent
    }

    /// Whether the sink has room for one more segment.
    ///
    /// # Errors
    ///
    /// Those of [`Global::get`], for the counter in this rank's own memory.
    pub fn has_room(&self) -> Result<bool, AddrError<GlobalAddr>> {
        Ok(self.tail - self.head()? < self.end.count)
    }

    /// Begins to send the next segment, if there is room for it, and returns
    /// whether there was. Lock-free between ranks of a node.
    ///
    /// # Errors
    ///
    /// [`AddrError::OutOfRange`] if the segments reach beyond the last address;
    /// those of [`Global::get`], for the counter in this rank's own memory. Errors
    /// of the copy are returned by [`flush`](Self::flush), if it waits for the
    /// copy.
    pub fn try_send(&mut self) -> Result<bool, AddrError<GlobalAddr>> {
        if !self.has_room()? {
            return Ok(false);
        }
        let from = self.end.segment(self.end.own, self.tail)?;
        let to = self.end.segment(self.end.peer.buffer, self.tail)?;
        let copy = Copy::new(to, from, self.end.bytes).then_add(self.end.peer.counted, 1);
        // The copies are ordered, so that the sink's counter includes only segments
        // that have arrived.
        let before = self.under_way.back().map_or(After::Nothing, |last| After::One(last.handle()));
        let operation = self.end.global.begin_after(copy, before);
        self.under_way.push_back(operation);
        self.tail += 1;
        self.sent();
        Ok(true)
    }

    /// Sends the next segment when there is room for it. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`try_send`](Self::try_send); [`AddrError::PeerLost`] if a rank
    /// has died while the call waits for room.
    pub fn send(&mut self) -> Result<(), AddrError<GlobalAddr>> {
        while !self.try_send()? {
            self.end.wait(self.tail - self.end.count + 1)?;
        }
        Ok(())
    }

    /// Closes this end, when all segments have arrived and the sink closes, too.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::Access`] with the errors of [`flush`](Self::flush);
    /// [`Error::Message`] if the other rank has died.
    pub fn close(mut self) -> Result<(), Error> {
        self.flush()?;
        self.end.close()
    }

    /// Waits until all segments are in the sink's memory. Blocking.
    ///
    /// # Errors
    ///
    /// The first error of a copy that was still in progress:
    /// [`AddrError::PeerLost`] if the other rank has died, [`AddrError::StaleKey`]
    /// if the sink was dropped, and those of [`Global::get`] for the segments of
    /// this rank.
    pub fn flush(&mut self) -> Result<(), AddrError<GlobalAddr>> {
        while let Some(operation) = self.under_way.pop_front() {
            operation.wait()?;
            self.sent += 1;
        }
        Ok(())
    }
}

impl SegmentSink {
    /// Connects with the source at `from`, the other end of
    /// [`SegmentSource::connect`]. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`SegmentSource::connect`].
    ///
    /// # Panics
    ///
    /// As [`SegmentSource::connect`].
    pub fn connect(
        global: &Global,
        (comm, from, tag): (&Comm, Rank, u32),
        own: GlobalAddr,
        (bytes, count): (u64, u64),
    ) -> Result<Self, Error> {
        Ok(Self {
            end: SegmentEnd::connect(global, (comm, from, tag), own, (bytes, count))?,
            head: 0,
        })
    }

    /// Closes this end, when the source closes, too. Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::Message`] if the other rank has died.
    pub fn close(self) -> Result<(), Error> {
        self.end.close()
    }

    /// The number of segments that were taken.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The number of segments that have arrived.
    ///
    /// # Errors
    ///
    /// Those of [`Global::get`], for the counter in this rank's own memory.
    pub fn tail(&self) -> Result<u64, AddrError<GlobalAddr>> {
        self.end.global.get(self.end.counted.at(0))
    }

    /// Waits until there is a segment that has arrived and was not taken, and
    /// returns its place in the ring. Blocking.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if a rank has died while the call waits.
    pub fn wait(&self) -> Result<u64, AddrError<GlobalAddr>> {
        self.end.wait(self.head + 1)?;
        Ok(self.head % self.end.count)
    }

    /// Takes the first segment that has arrived, if there is one: the source may
    /// send another one into its place.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the source's rank has died;
    /// [`AddrError::StaleKey`] if the source was dropped. Then no segment was taken.
    pub fn take(&mut self) -> Result<bool, AddrError<GlobalAddr>> {
        if self.tail()? == self.head {
            return Ok(false);
        }
        self.end.tell(1)?;
        self.head += 1;
        Ok(true)
    }
}

impl SegmentEnd {
    fn connect(
        global: &Global,
        (comm, to, tag): (&Comm, Rank, u32),
        own: GlobalAddr,
        (bytes, count): (u64, u64),
    ) -> Result<Self, Error> {
        comm.assert_of(&global.runtime);
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
        let peer = SegmentPeer { counted: theirs, buffer };
        let link = (comm.clone(), to, tag);
        Ok(Self { global: global.clone(), link, counted, own, peer, bytes, count })
    }

    /// Waits for the other end to close.
    fn close(&self) -> Result<(), Error> {
        let (comm, to, tag) = &self.link;
        comm.send_recv::<u64, u64>(*to, *tag, &[], *to, *tag, &mut [])?;
        Ok(())
    }

    fn segment(&self, buffer: GlobalAddr, at: u64) -> Result<GlobalAddr, AddrError<GlobalAddr>> {
        let offset = at % self.count * self.bytes;
        let beyond = AddrError::OutOfRange { addr: buffer, bytes: self.bytes, region_bytes: None };
        self.global.split().add(buffer, offset as i64).map_err(|_| beyond)
    }

    /// Adds to the other end's counter, and wakes a waiter there.
    fn tell(&self, more: u64) -> Result<(), AddrError<GlobalAddr>> {
        let add = Change::atomic(Kind::FetchAdd, self.peer.counted, more).notifying();
        self.global.change(add).map(drop)
    }

    /// Sleeps until the other end has increased the counter to `until`.
    fn wait(&self, until: u64) -> Result<u64, AddrError<GlobalAddr>> {
        self.global.wait_until(self.counted.at(0), Until::AtLeast(until))
    }
}
