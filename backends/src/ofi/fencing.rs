//! Fencing: nothing that a peer sends lands once it was given up, and nothing goes to
//! it any more.
//!
//! libfabric cannot withdraw a region's key from one peer, and keeps a connection open
//! for as long as the peer lives. Where the connections are TCP sockets, this file does
//! it with the sockets:
//!
//! ```text
//!  connection to the peer's address      ─► reset, with all that is in its buffers
//!  connection from the peer's host       ─► reset  } if no living peer
//!  connection that the host begins later ─► refused } is on that host
//! ```
//!
//! The library takes the end of a connection for a loss of the network, and closes its
//! part. A packet filter in the kernel refuses the later connections. A connection that waits to be accepted when the filter is set is accepted, and
//! reset before its first request is read. With other providers there is no fence.

use super::sockets::{OpenSocket, open_sockets};
use crate::net::ShutOut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The hosts that are shut out of an endpoint.
#[derive(Default)]
pub(super) struct Fence {
    hosts: Vec<IpAddr>,
    /// The socket that accepts connections, as long as some of such hosts may wait there.
    listener: Option<OpenSocket>,
    /// Whether the filter lets no further ones wait.
    is_filtered: bool,
    /// Whether connections that came before the filter may still wait there.
    is_draining: bool,
}

impl Fence {
    /// Ends the connections of the endpoint at `own` with the peer that accepts
    /// connections at `theirs`.
    pub(super) fn shut(&mut self, own: SocketAddr, theirs: SocketAddr, shut_out: ShutOut) {
        let is_from_there =
            |remote: SocketAddr| shut_out != ShutOut::Rank && remote.ip() == theirs.ip();
        for socket in open_sockets() {
            match socket.remote() {
                Some(remote) if remote == theirs => socket.reset(),
                Some(remote) if is_from_there(remote) && is_accepted_at(own, &socket) => {
                    socket.reset()
                }
                None if shut_out == ShutOut::Host && is_listener_at(own, &socket) => {
                    self.hosts.push(theirs.ip());
                    self.is_filtered = socket.refuse(&self.hosts).is_ok();
                    self.is_draining = true;
                    self.listener = Some(socket);
                }
                _ => {}
            }
        }
    }

    /// Whether connections of hosts that are shut out may wait to be accepted: the
    /// caller lets the provider accept them, and calls [`shut_out`](Self::shut_out).
    #[inline]
    pub(super) fn has_callers(&self) -> bool {
        let has_caller = |listener: &OpenSocket| self.is_draining || listener.has_caller();
        self.listener.as_ref().is_some_and(has_caller)
    }

    /// Ends connections that were accepted from hosts that are shut out. The provider
    /// has read no request of them yet: a peer sends the first one after it has got an
    /// answer.
    #[cold]
    pub(super) fn shut_out(&mut self, own: SocketAddr) {
        if self.listener.as_ref().is_some_and(|listener| !listener.has_caller()) {
            self.is_draining = false;
            self.listener.take_if(|_| self.is_filtered);
        }
        let is_shut_out = |remote: SocketAddr| self.hosts.contains(&remote.ip());
        for socket in open_sockets() {
            if socket.remote().is_some_and(is_shut_out) && is_accepted_at(own, &socket) {
                socket.reset();
            }
        }
    }
}

fn is_accepted_at(own: SocketAddr, socket: &OpenSocket) -> bool {
    socket.local().is_some_and(|local| local.port() == own.port())
}

fn is_listener_at(own: SocketAddr, socket: &OpenSocket) -> bool {
    socket.local() == Some(own) && socket.is_listener()
}

/// The address in a `sockaddr_in` or `sockaddr_in6`.
pub(super) fn parse(name: &[u8]) -> Option<SocketAddr> {
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
