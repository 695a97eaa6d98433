//! Notices to peers that were given up, beside libfabric's connections.
//!
//! libfabric would open a connection for a packet, by which the peer could write here
//! before it has read the packet. A datagram opens nothing. An endpoint with an IP
//! address takes them at the same address, where UDP has a port of the same number:
//! no further address has to be exchanged.
//!
//! A datagram may be lost, and strangers may send some. The layers above repeat
//! notices, and check the job's number.

use super::fencing::parse;
use std::net::{SocketAddr, UdpSocket};

/// The socket for the notices of one endpoint.
pub(super) struct NoticeSocket(UdpSocket);

impl NoticeSocket {
    /// Opens the socket of the endpoint with this address. `None`: the address has no
    /// port, or the port is in use; the provider `udp` uses it itself.
    pub(super) fn open(address: &[u8]) -> Option<Self> {
        let socket = UdpSocket::bind(parse(address)?).ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(Self(socket))
    }

    /// Sends a notice to the endpoint with this address, if there is room.
    pub(super) fn send(&self, bytes: &[u8], to: SocketAddr) {
        let _ = self.0.send_to(bytes, to);
    }

    /// Takes a notice, and returns its length.
    pub(super) fn take(&self, into: &mut [u8]) -> Option<usize> {
        self.0.recv(into).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(address: SocketAddr) -> Vec<u8> {
        let SocketAddr::V4(address) = address else { panic!("{address} is of IPv6") };
        let family = (libc::AF_INET as u16).to_ne_bytes();
        [&family[..], &address.port().to_be_bytes(), &address.ip().octets(), &[0; 8]].concat()
    }

    #[test]
    fn a_notice_comes_whole_and_once() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let local = NoticeSocket::open(&name_of(address)).expect("the port is free for UDP");
        assert!(NoticeSocket::open(&name_of(address)).is_none(), "the port is in use");
        let remote = NoticeSocket::open(&name_of("127.0.0.1:0".parse().unwrap())).unwrap();
        let mut notice = [0; 8];
        assert_eq!(local.take(&mut notice), None);
        remote.send(b"given up", address);
        assert_eq!((local.take(&mut notice), &notice), (Some(8), b"given up"));
        assert_eq!(local.take(&mut notice), None);
    }

    #[test]
    fn an_endpoint_without_a_port_has_none() {
        assert!(NoticeSocket::open(&[0; 6]).is_none());
    }
}
