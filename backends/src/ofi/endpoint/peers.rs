//! The peers that were given up, the notices to them, and the addresses of all.

use super::super::fencing::parse;
use super::super::sys::*;
use super::RdmEndpoint;
use crate::net::{ADDRESS_BYTES_MAX, ShutOut};
use std::net::SocketAddr;

impl RdmEndpoint {
    /// Ends the connections with a peer that is lost.
    #[cold]
    pub(in crate::ofi) fn fence(&mut self, peer: fi_addr_t, shut_out: ShutOut) {
        self.given_up.push(peer);
        let (Some(own), Some(address)) = (self.own_address(), self.address_of(peer)) else {
            return;
        };
        if shut_out == ShutOut::Rank {
            return self.fence.shut(own, address, shut_out);
        }
        let mut living = (0..self.peers).filter(|peer| !self.given_up.contains(peer));
        let is_there = |address: SocketAddr, other: SocketAddr| address.ip() == other.ip();
        let is_alone = !is_there(own, address)
            && !living
                .any(|peer| self.address_of(peer).is_some_and(|other| is_there(address, other)));
        // The host is that of living ranks, too.
        let shut_out = if is_alone { shut_out } else { ShutOut::Rank };
        self.fence.shut(own, address, shut_out);
    }

    /// Ends connections that hosts have begun that are shut out; see
    /// [`has_callers`](super::super::fencing::Fence::has_callers).
    #[cold]
    pub(in crate::ofi) fn shut_out(&mut self) {
        if let Some(own) = self.own_address() {
            self.fence.shut_out(own);
        }
    }

    /// Sends a notice to a peer. Returns whether that is possible without a connection.
    #[cold]
    pub(in crate::ofi) fn send_notice(&self, bytes: &[u8], peer: fi_addr_t) -> bool {
        let (Some(notices), Some(to)) = (&self.notices, self.address_of(peer)) else {
            return false;
        };
        notices.send(bytes, to);
        true
    }

    /// Takes a notice that has come without a connection, and returns its length.
    #[cold]
    pub(in crate::ofi) fn take_notice(&self, into: &mut [u8]) -> Option<usize> {
        self.notices.as_ref()?.take(into)
    }

    fn own_address(&self) -> Option<SocketAddr> {
        parse(&self.address().ok()?)
    }

    fn address_of(&self, peer: fi_addr_t) -> Option<SocketAddr> {
        let mut name = [0u8; ADDRESS_BYTES_MAX];
        let mut bytes = name.len();
        // SAFETY: the table's size is checked before its slot is used, and the buffer
        // has as many bytes.
        let answer = unsafe {
            let table = (*self.av).ops;
            if !has_slot(table, core::mem::offset_of!(fi_ops_av, lookup)) {
                return None;
            }
            (*table).lookup?(self.av, peer, name.as_mut_ptr().cast(), &mut bytes)
        };
        if answer != 0 {
            return None;
        }
        parse(name.get(..bytes)?)
    }
}
