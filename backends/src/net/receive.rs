//! Packets on their way up: receive buffers, and what has come in them.

use super::immediate::writable_word;
use super::nic_endpoint::{DomainShared, NicEndpoint};
use super::packet::{
    Arrival, HEADER_BYTES, NOTICE_BYTES, NOTIFICATION, NOTIFICATION_BYTES, PACKET, PACKETS_AT_ONCE,
};
use super::scratch::Context;
use super::wire::NetWire;
use tsumugi_core::mem::{Rank, RegionKey};
use tsumugi_core::sync::Ordering;

impl<W: NetWire> NicEndpoint<W> {
    /// Posts receive buffers to the provider.
    pub(super) fn open_receives(&mut self) {
        while let Some(packet) = self.packets.idle.pop() {
            let local = self.scratch.local(self.scratch.incoming(packet as usize));
            let context = self.scratch.context(Context::Receive(packet as usize));
            let bytes = self.scratch.packet_bytes();
            // SAFETY: the packet's own bytes and context, which no other code uses
            // until it has arrived.
            if unsafe { self.wire.receive(local, bytes, context) } != 0 {
                self.packets.idle.push(packet);
                return;
            }
        }
    }

    /// Takes a notice that has come by another way than packets take, and returns
    /// its sender and its length.
    pub(super) fn take_notice(
        &mut self,
        shared: &DomainShared,
        into: &mut [u8],
    ) -> Option<(Rank, usize)> {
        let mut notice = [0; NOTICE_BYTES];
        // Strangers that send more than this only delay the next notice.
        for _ in 0..PACKETS_AT_ONCE {
            let length = self.wire.take_notice(&mut notice)?;
            if let Some(Arrival::Packet { from, bytes }) = parse(&notice[..length], shared) {
                let length = bytes.len().min(into.len());
                into[..length].copy_from_slice(&bytes[..length]);
                return Some((from, length));
            }
            self.packets.strays += 1;
        }
        None
    }

    pub(super) fn receive(
        &mut self,
        shared: &DomainShared,
        handle: &mut dyn FnMut(Arrival<'_>),
    ) -> usize {
        let mut handed = 0;
        while let Some(number) = self.packets.immediates.pop_front() {
            match self.word_of_immediate(shared, number) {
                Some(word) => {
                    handed += 1;
                    handle(Arrival::Notified(word));
                }
                None => self.packets.strays += 1,
            }
        }
        for _ in 0..PACKETS_AT_ONCE {
            let Some((packet, length)) = self.packets.arrived.pop_front() else { break };
            let at = self.scratch.incoming(packet as usize);
            let length = length.min(self.scratch.packet_bytes());
            // SAFETY: the packet's own bytes, with which the provider has finished.
            let bytes = unsafe { core::slice::from_raw_parts(at, length) };
            match parse(bytes, shared) {
                Some(arrival) => {
                    handed += 1;
                    handle(arrival);
                }
                None => self.packets.strays += 1,
            }
            self.packets.idle.push(packet);
        }
        // The buffers are posted again only when nothing was passed on, or many are
        // idle, so that this does not delay the arrivals.
        if handed == 0 || self.packets.idle.len() >= self.packets.count / 2 {
            self.open_receives();
        }
        handed
    }
}

/// Parses a packet; `None` if it is not of this job.
fn parse<'p>(bytes: &'p [u8], shared: &DomainShared) -> Option<Arrival<'p>> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let job = u64::from_le_bytes(header[..8].try_into().expect("8 bytes"));
    let from = Rank(word(8));
    if job != shared.job.load(Ordering::Relaxed) || from.0 >= shared.size {
        return None;
    }
    match word(12) {
        PACKET => Some(Arrival::Packet { from, bytes: rest }),
        NOTIFICATION => {
            let bell: &[u8; NOTIFICATION_BYTES] = rest.try_into().ok()?;
            let key = u32::from_le_bytes(bell[..4].try_into().expect("4 bytes"));
            let offset = u64::from_le_bytes(bell[8..].try_into().expect("8 bytes"));
            writable_word(shared, RegionKey::from_bits(key), offset).map(Arrival::Notified)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
