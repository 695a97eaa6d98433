//! Channels: messages of any length from one rank to another, in order, by
//! operations on the global memory alone: see [`tsumugi_gas::channel`].
//!
//! A message lies in memory with a global address and is copied once, into the
//! receiver's ring. An end that waits, for room or for a message, sleeps on a word
//! of its own memory.

use super::{After, Full, Global, GlobalAddr, GlobalBlock, GlobalRequest, Handle, Operation};
use crate::{AddrError, Comm, Error, Rank};
use std::collections::VecDeque;
use std::fmt;
use tsumugi_core::signal::Until;
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_gas::channel::{Channel, Issue, ReceivedPart, Receiver, Sender};

/// The sending end of a channel.
pub struct ChannelSender {
    sender: Sender,
    issuer: Issuer,
    head: GlobalBlock<u64>,
}

/// The receiving end of a channel.
pub struct ChannelReceiver {
    // Declared before the ring, which it borrows, so that it is dropped first.
    receiver: Receiver<'static>,
    ring: GlobalBlock<u64>,
    global: Global,
}

/// The operations of a sender that were begun and not yet waited for.
struct Issuer {
    global: Global,
    under_way: VecDeque<Operation>,
}

impl Global {
    /// Makes the sending end of a channel to `to`, which must call
    /// [`channel_from`](Self::channel_from) with the same `comm`, `tag` and
    /// `bytes`. `bytes` is the size of the ring, a power of two of at least 64.
    /// Blocking.
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
    ///
    /// # Panics
    ///
    /// If `bytes` is not such a number, or if `comm` belongs to another rank or
    /// another job.
    pub fn channel_to(
        &self,
        (comm, to, tag): (&Comm, Rank, u32),
        bytes: u64,
    ) -> Result<ChannelSender, Error> {
        comm.assert_of(&self.runtime);
        let head = self.expose::<u64>(1)?;
        let own = head.at(0).addr();
        let ring = meet((comm, to, tag), own)?;
        let sender = Channel::new(self.split(), ring, own, bytes).sender();
        let issuer = Issuer { global: self.clone(), under_way: VecDeque::new() };
        Ok(ChannelSender { sender, issuer, head })
    }

    /// Makes the receiving end of a channel from `from`. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`channel_to`](Self::channel_to).
    ///
    /// # Panics
    ///
    /// As [`channel_to`](Self::channel_to).
    pub fn channel_from(
        &self,
        (comm, from, tag): (&Comm, Rank, u32),
        bytes: u64,
    ) -> Result<ChannelReceiver, Error> {
        comm.assert_of(&self.runtime);
        let words = Channel::ring_size(bytes) as usize / 8;
        let ring = self.expose::<u64>(words)?;
        let own = ring.at(0).addr();
        let channel = Channel::new(self.split(), own, meet((comm, from, tag), own)?, bytes);
        let (base, _) = ring.memory();
        // SAFETY: the array has that many words; they are only accessed as atomics
        // and by operations, and they outlive the receiver.
        let words = unsafe { std::slice::from_raw_parts(base.as_ptr().cast::<AtomicU64>(), words) };
        Ok(ChannelReceiver { receiver: channel.receiver(words), ring, global: self.clone() })
    }
}

impl ChannelSender {
    /// Sends the `bytes` bytes at `from`, memory of this rank; returns when all
    /// bytes are in the ring. Blocking.
    ///
    /// # Errors
    ///
    /// Those of [`Global::get`] for `from`; [`AddrError::StaleKey`] if the receiver
    /// was dropped; [`AddrError::PeerLost`] if the receiver's rank has died, or
    /// any rank while the call waits for room. Some of the bytes may have been
    /// sent.
    pub fn send(&mut self, from: GlobalAddr, bytes: u64) -> Result<(), AddrError<GlobalAddr>> {
        let global = self.issuer.global.clone();
        let begun = self.sender.try_send(from, bytes);
        debug_assert!(begun, "the previous message is in the ring");
        loop {
            self.issuer.hear(false)?;
            let head = global.get(self.head.at(0))?;
            match self.sender.advance(&mut self.issuer, head) {
                Ok(true) => return self.issuer.hear(true),
                Ok(false) => {
                    // The copies that fill the ring must end first.
                    self.issuer.hear(true)?;
                    global.wait_until(self.head.at(0), Until::NotEqual(head))?;
                }
                Err(_) if self.issuer.under_way.is_empty() => global.driver.wait_for_room(),
                Err(_) => self.issuer.hear(true)?,
            }
        }
    }
}

impl ChannelReceiver {
    /// Waits for a message, or for more bytes of a message that was received in
    /// part, and copies as many of them as `into` has room for. Blocking.
    ///
    /// # Errors
    ///
    /// [`AddrError::StaleKey`] if the sender was dropped; [`AddrError::PeerLost`]
    /// if the sender's rank has died, or any rank while the call waits. Then the
    /// content of `into` is undefined.
    pub fn recv(&mut self, into: &mut [u8]) -> Result<ReceivedPart, AddrError<GlobalAddr>> {
        loop {
            // Read before the attempt, so that a message that comes after the
            // attempt ends the wait.
            let tail = self.global.get(self.ring.at(0))?;
            let received = self.receiver.try_receive(into);
            if let Some(report) = self.receiver.poll_report() {
                self.global.change(report)?;
            }
            match received {
                Some(received) => return Ok(received),
                None => self.global.wait_until(self.ring.at(0), Until::NotEqual(tail))?,
            };
        }
    }

    /// Receives as [`recv`](Self::recv) does, if there are bytes. Never waits
    /// between ranks of a node.
    ///
    /// # Errors
    ///
    /// [`AddrError::StaleKey`] if the sender was dropped; [`AddrError::PeerLost`]
    /// if the sender's rank has died. Then the content of `into` is undefined.
    pub fn try_recv(
        &mut self,
        into: &mut [u8],
    ) -> Result<Option<ReceivedPart>, AddrError<GlobalAddr>> {
        let received = self.receiver.try_receive(into);
        if let Some(report) = self.receiver.poll_report() {
            self.global.change(report)?;
        }
        Ok(received)
    }
}

impl Issuer {
    /// Removes the operations that have ended, or waits for all of them.
    fn hear(&mut self, all: bool) -> Result<(), AddrError<GlobalAddr>> {
        while all || self.under_way.front().is_some_and(Operation::has_ended) {
            match self.under_way.pop_front() {
                Some(operation) => operation.wait().map(drop)?,
                None => break,
            }
        }
        Ok(())
    }
}

impl Issue for Issuer {
    fn try_issue(&mut self, request: GlobalRequest, after: After<'_>) -> Result<Handle, Full> {
        if self.under_way.len() >= UNDER_WAY_MAX {
            return Err(Full::Operations);
        }
        let operation = self.global.try_begin_after(request, after)?;
        let handle = operation.handle();
        self.under_way.push_back(operation);
        Ok(handle)
    }
}

/// Exchanges the addresses of the two ends' memory.
fn meet((comm, peer, tag): (&Comm, Rank, u32), own: GlobalAddr) -> Result<GlobalAddr, Error> {
    let mut other = [0u64];
    comm.send_recv(peer, tag, &[own.to_bits()], peer, tag, &mut other)?;
    Ok(GlobalAddr::from_bits(other[0]))
}

impl fmt::Debug for ChannelSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelSender({:?})", self.sender)
    }
}

impl fmt::Debug for ChannelReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelReceiver({:?})", self.receiver)
    }
}

/// The maximum number of operations in progress for one channel, so that places are
/// left for others.
const UNDER_WAY_MAX: usize = 32;
