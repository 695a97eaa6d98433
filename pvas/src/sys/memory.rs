//! Memory files and their mappings.

use super::check;
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

/// A memory file of `bytes` bytes that can neither shrink nor grow, that
/// cannot be executed, and that dies with the last process that holds or maps
/// it.
pub fn memory_file(bytes: usize) -> Result<OwnedFd> {
    // Linux before 6.3 does not know the first one's last flag.
    sealed_file(bytes, &[FLAGS | libc::MFD_NOEXEC_SEAL, FLAGS])
}

/// The same of huge pages, all of which are kept for it.
pub fn huge_file(bytes: usize) -> Result<OwnedFd> {
    let flags = FLAGS | libc::MFD_HUGETLB | libc::MFD_HUGE_2MB;
    let file = sealed_file(bytes, &[flags | libc::MFD_NOEXEC_SEAL, flags])?;
    // What a shared mapping reserves stays the file's.
    let start = map_with(file.as_raw_fd(), None, bytes, 0)?;
    // SAFETY: mapped just now, and nobody's.
    unsafe { unmap(start, bytes) };
    Ok(file)
}

/// A sealed file with the first of these flags that the kernel knows.
fn sealed_file(bytes: usize, flags: &[libc::c_uint]) -> Result<OwnedFd> {
    // SAFETY: the name is a C string.
    let create = |flags: &libc::c_uint| unsafe { libc::memfd_create(c"tsumugi".as_ptr(), *flags) };
    let is_unknown = || Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    let mut fd = -1;
    for flags in flags {
        fd = create(flags);
        if fd != -1 || !is_unknown() {
            break;
        }
    }
    check(fd)?;
    // SAFETY: fresh, and nobody else's.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // Whatever the umask, and the flags: some give everybody the right to write.
    // SAFETY: plain calls on a descriptor that we own.
    check(unsafe { libc::fchmod(fd.as_raw_fd(), 0o600) })?;
    // SAFETY: the same.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) })?;
    // SAFETY: the same.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
    Ok(fd)
}

/// Takes over a memory file that this process inherited. A descriptor that is
/// not one belongs to somebody else and is left alone.
pub fn inherited(fd: RawFd) -> Result<OwnedFd> {
    // SAFETY: a plain call; it fails on what is not a memory file.
    let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
    check(seals)?;
    if seals & SEALS != SEALS {
        return Err(Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: a plain call on an open descriptor.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and the launcher opened it for us to own.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// How long a file is.
pub fn file_bytes(fd: BorrowedFd<'_>) -> Result<u64> {
    Ok(File::from(fd.try_clone_to_owned()?).metadata()?.len())
}

/// Maps the first `bytes` bytes of a file for reading and writing, shared; at
/// `at` and nowhere else if that is given (`AlreadyExists` if it is taken).
pub fn map(fd: BorrowedFd<'_>, at: Option<usize>, bytes: usize) -> Result<NonNull<u8>> {
    let fixed = if at.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
    let got = map_with(fd.as_raw_fd(), at, bytes, fixed | libc::MAP_NORESERVE)?;
    if at.is_some_and(|at| at != got.as_ptr() as usize) {
        // Linux before 4.17, and ThreadSanitizer, take the address as a hint.
        // SAFETY: we have just mapped it.
        unsafe { unmap(got, bytes) };
        return Err(Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(got)
}

/// Maps the first `bytes` bytes of a file in the place of what is there.
///
/// # Safety
///
/// What is there is the caller's, and nobody uses it.
pub unsafe fn map_over(fd: BorrowedFd<'_>, at: usize, bytes: usize) -> Result<()> {
    map_with(fd.as_raw_fd(), Some(at), bytes, libc::MAP_FIXED).map(|_| ())
}

fn map_with(fd: RawFd, at: Option<usize>, bytes: usize, flags: i32) -> Result<NonNull<u8>> {
    let hint = at.unwrap_or(0) as *mut libc::c_void;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: what is replaced, if anything, is the caller's of `map_over`.
    let got = unsafe { libc::mmap(hint, bytes, protection, libc::MAP_SHARED | flags, fd, 0) };
    if got == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    Ok(NonNull::new(got.cast()).expect("mmap does not return null"))
}

/// From here on this process can only read the range.
///
/// # Safety
///
/// The range is mapped, and no code of this process relies on writing there.
pub unsafe fn protect(at: usize, bytes: usize) -> Result<()> {
    // SAFETY: the caller's.
    check(unsafe { libc::mprotect(at as *mut libc::c_void, bytes, libc::PROT_READ) })
}

/// Ends a mapping.
///
/// # Safety
///
/// Nobody uses the memory afterwards.
pub unsafe fn unmap(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
}

/// Advice about a mapping of which nothing depends but time and memory.
///
/// # Safety
///
/// The range is mapped, and `advice` does not change what is in it.
pub unsafe fn advise(at: usize, bytes: usize, advice: libc::c_int) -> Result<()> {
    // SAFETY: the caller's.
    check(unsafe { libc::madvise(at as *mut libc::c_void, bytes, advice) })
}

/// Gives the pages of a shared mapping back: they read as zeroes afterwards.
/// False if the system refuses.
///
/// # Safety
///
/// The range is mapped and nobody relies on its content.
pub unsafe fn discard(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller's.
    unsafe { libc::madvise(at as *mut libc::c_void, bytes, libc::MADV_REMOVE) == 0 }
}

/// A file with these can neither be cut off under a reader nor be changed in
/// this.
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
const FLAGS: libc::c_uint = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    const BYTES: usize = 1 << 20;

    #[track_caller]
    fn refused(result: i32) {
        let error = check(result).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
    }

    #[test]
    fn nobody_else_may_open_a_file() {
        // With the flags of a new kernel and of an old one.
        for flags in [&[FLAGS | libc::MFD_NOEXEC_SEAL, FLAGS][..], &[FLAGS]] {
            let file = File::from(sealed_file(BYTES, flags).unwrap());
            assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600, "{flags:x?}");
        }
    }

    #[test]
    fn nobody_cuts_a_file_off_or_makes_it_longer() {
        let file = memory_file(BYTES).unwrap();
        let fd = file.as_raw_fd();
        for bytes in [0, BYTES / 2, BYTES + 4096] {
            // SAFETY: plain calls on a descriptor that we own.
            refused(unsafe { libc::ftruncate(fd, bytes as libc::off_t) });
        }
        // SAFETY: the same.
        refused(unsafe { libc::fallocate(fd, 0, BYTES as libc::off_t, 4096) });
        // SAFETY: the same.
        refused(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE) });
        assert_eq!(file_bytes(file.as_fd()).unwrap(), BYTES as u64);
        // SAFETY: the same.
        let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
        assert_eq!(seals & SEALS, SEALS);
    }

    #[test]
    fn a_flag_that_the_kernel_does_not_know_is_left_out() {
        let unknown = 1 << 25;
        let file = sealed_file(BYTES, &[FLAGS | unknown, FLAGS]).unwrap();
        // SAFETY: a plain call on a descriptor that we own.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) } & SEALS, SEALS);
        let error = sealed_file(BYTES, &[FLAGS | unknown]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
