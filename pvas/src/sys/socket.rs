//! Passes descriptors through a unix socket.

use super::check::check;
use std::io::{Error, ErrorKind, Result};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

/// Sends at least one byte of `bytes`, with `fds` (at most [`FDS_MAX`]) on the
/// first byte; returns how many bytes went.
pub fn send_fds(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[RawFd]) -> Result<usize> {
    assert!(
        fds.len() <= FDS_MAX,
        "{} descriptors in one message: the limit is {FDS_MAX}",
        fds.len()
    );
    let mut room = [0_u64; ROOM_WORDS];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: zeroes are a valid, empty header.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if !fds.is_empty() {
        let fds_bytes = size_of_val(fds) as libc::c_uint;
        message.msg_control = room.as_mut_ptr().cast();
        // SAFETY: the call is only arithmetic.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(fds_bytes) } as usize;
        // SAFETY: the room is aligned and as long as `FDS_MAX` descriptors need.
        unsafe {
            let head = libc::CMSG_FIRSTHDR(&message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(fds_bytes) as usize;
            libc::CMSG_DATA(head).cast::<RawFd>().copy_from_nonoverlapping(fds.as_ptr(), fds.len());
        }
    }
    loop {
        // SAFETY: the header names memory that outlives the call.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(sent) => return Ok(sent),
            Err(_) if Error::last_os_error().kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(Error::last_os_error()),
        }
    }
}

/// Receives up to `bytes.len()` bytes and all descriptors that came with them,
/// which close on exec; returns how many bytes came, 0 at the end.
pub fn receive_fds(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> Result<usize> {
    let mut room = [0_u64; ROOM_WORDS];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: zeroes are a valid, empty header.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = room.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&room);
    let got = loop {
        let flags = libc::MSG_CMSG_CLOEXEC;
        // SAFETY: the header names memory that outlives the call.
        let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, flags) };
        match usize::try_from(got) {
            Ok(got) => break got,
            Err(_) if Error::last_os_error().kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(Error::last_os_error()),
        }
    };
    // SAFETY: the kernel wrote whole headers into the room, and each descriptor in
    // them is new and owned by nothing else.
    unsafe {
        let mut head = libc::CMSG_FIRSTHDR(&message);
        while !head.is_null() {
            if (*head).cmsg_level == libc::SOL_SOCKET && (*head).cmsg_type == libc::SCM_RIGHTS {
                let data_bytes = (*head).cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(head).cast::<RawFd>();
                for index in 0..data_bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            head = libc::CMSG_NXTHDR(&message, head);
        }
    }
    Ok(got)
}

/// Connects to an abstract name without waiting: `WouldBlock` if the queue of the
/// listener is full. The stream's own calls wait.
pub fn connect(name: &SocketAddr) -> Result<UnixStream> {
    let name = name.as_abstract_name().ok_or(ErrorKind::InvalidInput)?;
    // SAFETY: zeroes are a valid address without a name.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The name follows a zero byte, which marks it as abstract.
    let room = address.sun_path.get_mut(1..=name.len()).ok_or(ErrorKind::InvalidInput)?;
    room.iter_mut().zip(name).for_each(|(to, byte)| *to = byte.cast_signed());
    let bytes = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    let flags = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a plain call.
    let fd = unsafe { libc::socket(libc::AF_UNIX, flags, 0) };
    check(fd)?;
    // SAFETY: the descriptor is new, and nothing else owns it.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let at = (&raw const address).cast();
    // SAFETY: the address is a local that has at least `bytes` bytes.
    check(unsafe { libc::connect(fd, at, bytes as libc::socklen_t) })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The user of the process that opened the other end.
pub fn peer_user(socket: BorrowedFd<'_>) -> Result<u32> {
    // SAFETY: zeroes are valid credentials.
    let mut user: libc::ucred = unsafe { zeroed() };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let at = (&raw mut user).cast();
    // SAFETY: the kernel fills in a local of that length.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, at, &mut bytes) })?;
    Ok(user.uid)
}

/// The user of this process.
pub fn own_user() -> u32 {
    // SAFETY: a plain call.
    unsafe { libc::geteuid() }
}

/// The kernel accepts at most this many descriptors with one message.
pub const FDS_MAX: usize = 253;
/// Room for the descriptors and their header.
const ROOM_WORDS: usize = FDS_MAX / 2 + 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn descriptors_arrive_in_messages_of_their_own() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let file = crate::sys::memory_file(4096).unwrap();
        let fds = [file.as_raw_fd(); FDS_MAX + 7];
        for some in fds.chunks(FDS_MAX) {
            assert_eq!(send_fds(ours.as_fd(), &[5], some).unwrap(), 1);
        }
        drop(ours);
        let (mut byte, mut got) = ([0], Vec::new());
        assert_eq!(receive_fds(theirs.as_fd(), &mut byte, &mut got).unwrap(), 1);
        assert_eq!((byte, got.len()), ([5], FDS_MAX));
        assert_eq!(receive_fds(theirs.as_fd(), &mut byte, &mut got).unwrap(), 1);
        assert_eq!(got.len(), FDS_MAX + 7);
        assert_eq!(
            receive_fds(theirs.as_fd(), &mut byte, &mut got).unwrap(),
            0,
            "the end of the stream"
        );
        assert_eq!(crate::sys::file_bytes(got[FDS_MAX].as_fd()).unwrap(), 4096);
        assert_eq!(peer_user(theirs.as_fd()).unwrap(), own_user());
    }
}
