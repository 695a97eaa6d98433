//! The TCP sockets that this process has open, whichever library has opened them.

use std::io;
use std::mem::ManuallyDrop;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
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

    /// Has the kernel drop packets of these hosts to this socket, which accepts
    /// connections: the hosts cannot connect any more. Connections that it accepted
    /// before go on.
    ///
    /// # Errors
    ///
    /// The kernel has refused the filter: it may have at most 4,096 instructions, and
    /// has six for a host of IPv4, twelve for one of IPv6.
    pub(super) fn refuse(&self, hosts: &[IpAddr]) -> io::Result<()> {
        let mut filter: Vec<libc::sock_filter> = hosts.iter().flat_map(drop_packets_of).collect();
        filter.push(PASS);
        let too_long = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let program = libc::sock_fprog {
            len: filter.len().try_into().map_err(too_long)?,
            filter: filter.as_mut_ptr(),
        };
        let bytes = size_of_val(&program) as libc::socklen_t;
        // SAFETY: the kernel reads the program, and checks it.
        let answer = unsafe {
            let program = (&raw const program).cast();
            let number = self.0.as_raw_fd();
            libc::setsockopt(number, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program, bytes)
        };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether a connection waits to be accepted here.
    pub(super) fn has_caller(&self) -> bool {
        let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one entry, and does not wait.
        let ready = unsafe { libc::poll(&mut entry, 1, 0) };
        ready > 0 && entry.revents & libc::POLLIN != 0
    }
}

/// The instructions that drop packets from one host. They compare the source address in
/// the network header, word by word, and skip the rest at the first difference.
fn drop_packets_of(host: &IpAddr) -> Vec<libc::sock_filter> {
    let (version, at, address) = match host {
        IpAddr::V4(host) => (0x40, 12, host.octets().to_vec()),
        IpAddr::V6(host) => (0x60, 8, host.octets().to_vec()),
    };
    let load = |size, at: u32| instruction(libc::BPF_LD | size | libc::BPF_ABS, at, 0);
    let network = |at: u32| (libc::SKF_NET_OFF as u32).wrapping_add(at);
    let words = address.as_chunks::<4>().0;
    let rest = 2 * words.len() as u8 + 1;
    let mut all = vec![
        load(libc::BPF_B, network(0)),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xf0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, version, rest),
    ];
    for (word, left) in words.iter().zip((0..words.len() as u8).rev()) {
        let skipped = 2 * left + 1;
        let offset = at + 4 * (words.len() as u32 - 1 - u32::from(left));
        all.push(load(libc::BPF_W, network(offset)));
        let is_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        all.push(instruction(is_equal, u32::from_be_bytes(*word), skipped));
    }
    all.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0));
    all
}

/// An instruction; `jf`: how many the next ones are skipped if a comparison fails.
const fn instruction(code: u32, k: u32, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf, k }
}

/// Lets the packet pass.
const PASS: libc::sock_filter = instruction(libc::BPF_RET | libc::BPF_K, u32::MAX, 0);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{SocketAddrV4, TcpListener};
    use std::os::fd::OwnedFd;

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
    fn a_host_that_is_refused_does_not_connect_and_others_do() {
        let from = |host: [u8; 4], to: &TcpListener| {
            let socket = unbound(host);
            let SocketAddr::V4(to) = to.local_addr().unwrap() else { panic!("of IPv4") };
            connects(&socket, to)
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _before = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let hosts = ["::1", "127.0.0.7", "127.0.0.8"].map(|host| host.parse().unwrap());
        of(&listener).refuse(&hosts).unwrap();
        assert!(!from([127, 0, 0, 7], &listener));
        assert!(!from([127, 0, 0, 8], &listener));
        assert!(from([127, 0, 0, 9], &listener));
        assert!(from([127, 0, 0, 1], &listener));
        let many = vec![hosts[0]; 40];
        of(&listener).refuse(&many).unwrap();
        assert!(from([127, 0, 0, 7], &listener), "the last filter counts");
        let error = of(&listener).refuse(&vec![hosts[0]; 5000]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    /// A socket that is bound to an address of this host, and connects without waiting.
    fn unbound(host: [u8; 4]) -> OwnedFd {
        // SAFETY: plain calls; the address is a whole one.
        unsafe {
            let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let socket = OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, kind, 0));
            let name = name_of(SocketAddrV4::new(host.into(), 0));
            let bytes = size_of_val(&name) as libc::socklen_t;
            assert_eq!(libc::bind(socket.as_raw_fd(), (&raw const name).cast(), bytes), 0);
            socket
        }
    }

    /// Whether the socket is connected within a short time.
    fn connects(socket: &OwnedFd, to: SocketAddrV4) -> bool {
        let name = name_of(to);
        let bytes = size_of_val(&name) as libc::socklen_t;
        let mut entry = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: plain calls; the address is a whole one, and there is one entry.
        unsafe {
            libc::connect(socket.as_raw_fd(), (&raw const name).cast(), bytes);
            libc::poll(&mut entry, 1, 100) == 1 && entry.revents == libc::POLLOUT
        }
    }

    fn name_of(address: SocketAddrV4) -> libc::sockaddr_in {
        libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: address.port().to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
            sin_zero: [0; 8],
        }
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
