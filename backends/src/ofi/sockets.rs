//! The TCP sockets that this process has open, whichever library has opened them.

use std::mem::ManuallyDrop;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// An open socket, which stays its owner's.
pub(super) struct OpenSocket(ManuallyDrop<TcpStream>);

/// All TCP sockets that this process has open. A socket may be closed by its owner
/// meanwhile, if that is another thread; then the calls on it fail.
pub(super) fn open_sockets() -> Vec<OpenSocket> {
    let Ok(files) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let numbers = files.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
    numbers.map(OpenSocket::of).filter(OpenSocket::is_tcp).collect()
}

impl OpenSocket {
    fn of(number: RawFd) -> Self {
        // SAFETY: the number is that of an open file; this value never closes it, and
        // calls on a file that is closed meanwhile only fail.
        Self(ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(number) }))
    }

    fn is_tcp(&self) -> bool {
        self.option(libc::SO_PROTOCOL) == Some(libc::IPPROTO_TCP)
    }

    /// Whether it accepts connections.
    pub(super) fn is_listener(&self) -> bool {
        self.option(libc::SO_ACCEPTCONN) == Some(1)
    }

    fn option(&self, name: libc::c_int) -> Option<libc::c_int> {
        let (mut value, mut bytes) = (0, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the kernel writes at most `bytes` bytes to the value.
        let answer = unsafe {
            let value = (&raw mut value).cast();
            libc::getsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, name, value, &mut bytes)
        };
        (answer == 0).then_some(value)
    }

    /// The address of this end.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.0.local_addr().ok()
    }

    /// The address of the other end, if there is a connection.
    pub(super) fn remote(&self) -> Option<SocketAddr> {
        self.0.peer_addr().ok()
    }

    /// Ends the connection at once: what has come and was not read, and what was
    /// written and not acknowledged, is discarded, and the other end gets an error.
    pub(super) fn reset(&self) {
        let nowhere =
            libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
        let bytes = size_of_val(&nowhere) as libc::socklen_t;
        // SAFETY: the kernel reads the address.
        unsafe { libc::connect(self.0.as_raw_fd(), &nowhere, bytes) };
        // Fails, and makes the socket readable, so that its owner finds the error; a
        // kernel that has refused the call above ends the connection here.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// Whether a connection waits to be accepted here.
    pub(super) fn has_caller(&self) -> bool {
        let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one entry, and does not wait.
        let ready = unsafe { libc::poll(&mut entry, 1, 0) };
        ready > 0 && entry.revents & libc::POLLIN != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpListener;

    fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let local = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (local, listener.accept().unwrap().0)
    }

    fn of(number: &impl AsRawFd) -> OpenSocket {
        let number = number.as_raw_fd();
        open_sockets().into_iter().find(|socket| socket.0.as_raw_fd() == number).unwrap()
    }

    #[test]
    fn a_reset_discards_what_has_come_and_what_has_not_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(of(&listener).is_listener() && of(&listener).remote().is_none());
        let (mut local, mut remote) = pair(&listener);
        let socket = of(&remote);
        assert!(!socket.is_listener());
        assert_eq!(socket.remote(), local.local_addr().ok());
        assert_eq!(socket.local(), listener.local_addr().ok());
        local.write_all(b"late").unwrap();
        remote.write_all(b"unread").unwrap();
        socket.reset();
        assert!(remote.read(&mut [0; 8]).map_or(true, |bytes| bytes == 0), "a late byte was read");
        let error = local.write(b"later").unwrap_err().kind();
        assert!(matches!(error, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error:?}");
    }

    #[test]
    fn a_caller_is_seen_until_it_is_accepted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = of(&listener);
        assert!(!socket.has_caller());
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(socket.has_caller());
        let _server = listener.accept().unwrap();
        assert!(!socket.has_caller());
    }
}
