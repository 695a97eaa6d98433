//! Fencing: nothing that a peer sends lands once it was given up, and nothing goes to
//! it any more.
//!
//! libfabric cannot withdraw a region's key from one peer, and keeps a connection open
//! for as long as the peer lives. Where the connections are TCP sockets, this file does
//! it with the sockets:
//!
//! ```text
//!  connection to the peer's address      ─► reset, with all that is in its buffers
//!  connection from the peer's host       ─┬ reset, if no living peer is on that host
//!  connection that the host begins later ─┘ before its first request is read
//! ```
//!
//! The library takes the end of a connection for a loss of the network, and closes its
//! part. With other providers there is no fence.

use super::super::sockets::{OpenSocket, open_sockets};
use super::super::sys::*;
use super::RdmEndpoint;
use crate::net::ADDRESS_BYTES_MAX;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The peers that were given up.
#[derive(Default)]
pub(super) struct Fence {
    /// The largest number of a peer, and one.
    pub peers: fi_addr_t,
    given_up: Vec<fi_addr_t>,
    /// Hosts of which no connection is accepted.
    hosts: Vec<IpAddr>,
    /// The socket that accepts connections, once there are such hosts.
    listener: Option<OpenSocket>,
}

impl RdmEndpoint {
    /// Ends all connections with a peer that was given up; with `refuses`, its host
    /// cannot begin new ones.
    #[cold]
    pub(in crate::ofi) fn fence(&mut self, peer: fi_addr_t, refuses: bool) {
        self.fence.given_up.push(peer);
        let (Some(own), Some(theirs)) = (self.own_address(), self.address_of(peer)) else { return };
        let is_alone = own.ip() != theirs.ip() && !self.has_peer_on(theirs.ip());
        for socket in open_sockets() {
            let is_accepted = || socket.near().is_some_and(|near| near.port() == own.port());
            match socket.far() {
                Some(far) if far == theirs => socket.reset(),
                Some(far) if is_alone && far.ip() == theirs.ip() && is_accepted() => socket.reset(),
                None if is_alone
                    && refuses
                    && socket.near() == Some(own)
                    && socket.is_listener() =>
                {
                    self.fence.hosts.push(theirs.ip());
                    self.fence.listener = Some(socket);
                }
                _ => {}
            }
        }
    }

    /// Whether a connection was begun that may come from a host that is shut out: the
    /// caller lets the provider accept it, and calls [`shut_out`](Self::shut_out).
    #[inline]
    pub(in crate::ofi) fn has_caller(&self) -> bool {
        self.fence.listener.as_ref().is_some_and(OpenSocket::has_caller)
    }

    /// Ends connections that hosts have begun that are shut out. The provider has
    /// accepted them, but has read no request yet: a peer sends the first one after it
    /// has got an answer.
    #[cold]
    pub(in crate::ofi) fn shut_out(&self) {
        let Some(own) = self.own_address() else { return };
        for socket in open_sockets() {
            let is_accepted = || socket.near().is_some_and(|near| near.port() == own.port());
            if socket.far().is_some_and(|far| self.fence.hosts.contains(&far.ip())) && is_accepted()
            {
                socket.reset();
            }
        }
    }

    /// Whether a known peer that was not given up is on that host.
    fn has_peer_on(&self, host: IpAddr) -> bool {
        let living = (0..self.fence.peers).filter(|peer| !self.fence.given_up.contains(peer));
        living.filter_map(|peer| self.address_of(peer)).any(|address| address.ip() == host)
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

/// The address in a `sockaddr_in` or `sockaddr_in6`.
fn parse(name: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = name.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let host: IpAddr = match u16::from_ne_bytes(*family).into() {
        libc::AF_INET => Ipv4Addr::from(*rest.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some((host, u16::from_be_bytes(*port)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_are_parsed_and_others_are_not() {
        let two = |family: i32| (family as u16).to_ne_bytes();
        let four = [&two(libc::AF_INET)[..], &[0x1f, 0x90], &[10, 0, 0, 7], &[0; 8]].concat();
        assert_eq!(parse(&four), Some("10.0.0.7:8080".parse().unwrap()));
        let host = Ipv6Addr::LOCALHOST.octets();
        let six = [&two(libc::AF_INET6)[..], &[0, 80], &[0; 4], &host, &[0; 4]].concat();
        assert_eq!(parse(&six), Some("[::1]:80".parse().unwrap()));
        assert_eq!(parse(&four[..7]), None);
        assert_eq!(parse(&six[..20]), None);
        assert_eq!(parse(&[&two(libc::AF_UNIX)[..], &[0; 14]].concat()), None);
        assert_eq!(parse(&[]), None);
    }
}
