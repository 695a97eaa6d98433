//! Memory files and their mappings.

use super::check::check;
use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use tsumugi_core::sync::AtomicU32;

/// Makes a memory file of `bytes` bytes that can neither shrink nor grow, that
/// cannot be executed, and that vanishes with the last process that holds or maps
/// it.
pub fn memory_file(bytes: usize) -> Result<OwnedFd> {
    // Linux before 6.3 does not know the last flag of the first set.
    sealed_file(bytes, &[FLAGS | libc::MFD_NOEXEC_SEAL, FLAGS])
}

/// The same with huge pages, all of which are reserved for the file.
pub fn huge_file(bytes: usize) -> Result<OwnedFd> {
    let flags = FLAGS | libc::MFD_HUGETLB | libc::MFD_HUGE_2MB;
    let file = sealed_file(bytes, &[flags | libc::MFD_NOEXEC_SEAL, flags])?;
    // Pages that a shared mapping reserves stay reserved for the file.
    let start = map_with(file.as_raw_fd(), None, bytes, 0)?;
    // SAFETY: the range was mapped just now, and no code uses it.
    unsafe { unmap(start, bytes) };
    Ok(file)
}

/// Makes a sealed file with the first of these sets of flags that the kernel knows.
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
    // SAFETY: the descriptor is new, and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // The mode is set in any case: with some umasks and flags all users may write.
    // SAFETY: plain calls on a descriptor that this function owns.
    check(unsafe { libc::fchmod(fd.as_raw_fd(), 0o600) })?;
    // SAFETY: as above.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
    Ok(fd)
}

/// Takes over a memory file that this process inherited. A descriptor that is not a
/// memory file of this kind belongs to other code and is left alone.
pub fn inherited(fd: RawFd) -> Result<OwnedFd> {
    // SAFETY: a plain call; it fails on what is not a memory file.
    let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
    check(seals)?;
    if seals & SEALS != SEALS {
        return Err(Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: a plain call on an open descriptor.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: the descriptor is open, and the launcher opened it for this process
    // to own.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a memory file of some rank is mapped in this process, by whatever copy of this
/// library. False where the kernel does not say.
pub fn maps_memory_file() -> bool {
    fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("/memfd:tsumugi"))
}

/// The length of a file.
pub fn file_bytes(fd: BorrowedFd<'_>) -> Result<u64> {
    Ok(File::from(fd.try_clone_to_owned()?).metadata()?.len())
}

/// Maps the first `bytes` bytes of a file for reading and writing, shared. If `at`
/// is given, it maps there and nowhere else (`AlreadyExists` if a mapping is
/// there).
pub fn map(fd: BorrowedFd<'_>, at: Option<usize>, bytes: usize) -> Result<NonNull<u8>> {
    let fixed = if at.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
    let got = map_with(fd.as_raw_fd(), at, bytes, fixed | libc::MAP_NORESERVE)?;
    if at.is_some_and(|at| at != got.as_ptr() as usize) {
        // Linux before 4.17, and ThreadSanitizer, take the address as a hint.
        // SAFETY: the range was mapped just now, and no code uses it.
        unsafe { unmap(got, bytes) };
        return Err(Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(got)
}

/// Maps the first `bytes` bytes of a file over an existing mapping.
///
/// # Safety
///
/// The existing mapping must be the caller's, and no code may use it.
pub unsafe fn map_over(fd: BorrowedFd<'_>, at: usize, bytes: usize) -> Result<()> {
    map_with(fd.as_raw_fd(), Some(at), bytes, libc::MAP_FIXED).map(|_| ())
}

fn map_with(fd: RawFd, at: Option<usize>, bytes: usize, flags: i32) -> Result<NonNull<u8>> {
    let hint = at.unwrap_or(0) as *mut libc::c_void;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: only `map_over` replaces a mapping, which its caller allows.
    let got = unsafe { libc::mmap(hint, bytes, protection, libc::MAP_SHARED | flags, fd, 0) };
    if got == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    Ok(NonNull::new(got.cast()).expect("mmap does not return null"))
}

/// A word that the kernel sets to 0 in each forked child, alone in its page.
pub fn word_cleared_by_fork() -> Result<&'static AtomicU32> {
    let (bytes, access) = (size_of::<AtomicU32>(), libc::PROT_READ | libc::PROT_WRITE);
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping of one page, at a place that the kernel chooses.
    let got = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if got == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    // SAFETY: the page was mapped just now.
    check(unsafe { libc::madvise(got, bytes, libc::MADV_WIPEONFORK) })?;
    // SAFETY: the page is zero, and is never unmapped.
    Ok(unsafe { &*got.cast::<AtomicU32>() })
}

/// Makes the range read-only for this process.
///
/// # Safety
///
/// The range is mapped, and no code of this process relies on writing there.
pub unsafe fn protect(at: usize, bytes: usize) -> Result<()> {
    // SAFETY: the caller guarantees that no code writes to the range.
    check(unsafe { libc::mprotect(at as *mut libc::c_void, bytes, libc::PROT_READ) })
}

/// Ends a mapping.
///
/// # Safety
///
/// No code may use the memory afterwards.
pub unsafe fn unmap(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller guarantees that the range is not used any more.
    unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
}

/// Gives advice about a mapping, which influences only time and memory.
///
/// # Safety
///
/// The range is mapped, and `advice` does not change what is in it.
pub unsafe fn advise(at: usize, bytes: usize, advice: libc::c_int) -> Result<()> {
    // SAFETY: the caller guarantees that the advice does not change the content.
    check(unsafe { libc::madvise(at as *mut libc::c_void, bytes, advice) })
}

/// Sets the policy of the pages of a shared mapping, for all processes: they come from this
/// memory node while it has free memory. Pages that only this process has mapped move there.
///
/// # Safety
///
/// The range is mapped.
pub unsafe fn prefer_node(at: usize, bytes: usize, node: usize) -> Result<()> {
    let mut mask = vec![0_usize; node / usize::BITS as usize + 1];
    mask[node / usize::BITS as usize] = 1 << (node % usize::BITS as usize);
    // The kernel reads one bit less than this number.
    let bits = mask.len() * usize::BITS as usize + 1;
    let policy = libc::MPOL_PREFERRED;
    // SAFETY: the kernel reads the mask, and moves pages without a change of their bytes.
    let outcome = unsafe {
        libc::syscall(libc::SYS_mbind, at, bytes, policy, mask.as_ptr(), bits, MPOL_MF_MOVE)
    };
    check(outcome as i32)
}

/// The policy of the page at `at`.
#[cfg(test)]
pub fn memory_policy(at: usize) -> Result<libc::c_int> {
    let mut policy: libc::c_int = 0;
    let no_mask = std::ptr::null::<usize>();
    // SAFETY: the kernel writes the policy, and no mask.
    check(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut policy, no_mask, 0, at, MPOL_F_ADDR)
    } as i32)?;
    Ok(policy)
}

/// Returns the pages of a shared mapping to the kernel: they read as zeroes
/// afterwards. Returns false if the system refuses.
///
/// # Safety
///
/// The range must be mapped, and no code may rely on its content.
pub unsafe fn discard(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller guarantees that the content is not needed.
    unsafe { libc::madvise(at as *mut libc::c_void, bytes, libc::MADV_REMOVE) == 0 }
}

/// From <linux/mempolicy.h>.
const MPOL_MF_MOVE: libc::c_int = 1 << 1;
#[cfg(test)]
const MPOL_F_ADDR: libc::c_int = 1 << 1;
/// The seals: the file can neither be truncated under a reader nor grow, and its
/// seals cannot change.
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
    fn a_file_cannot_be_opened_by_another_user() {
        // With the flags of a new kernel and of an old one.
        for flags in [&[FLAGS | libc::MFD_NOEXEC_SEAL, FLAGS][..], &[FLAGS]] {
            let file = File::from(sealed_file(BYTES, flags).unwrap());
            assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600, "{flags:x?}");
        }
    }

    #[test]
    fn the_size_of_a_file_cannot_change() {
        let file = memory_file(BYTES).unwrap();
        let fd = file.as_raw_fd();
        for bytes in [0, BYTES / 2, BYTES + 4096] {
            // SAFETY: plain calls on a descriptor that the test owns.
            refused(unsafe { libc::ftruncate(fd, bytes as libc::off_t) });
        }
        // SAFETY: as above.
        refused(unsafe { libc::fallocate(fd, 0, BYTES as libc::off_t, 4096) });
        // SAFETY: as above.
        refused(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE) });
        assert_eq!(file_bytes(file.as_fd()).unwrap(), BYTES as u64);
        // SAFETY: as above.
        let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
        assert_eq!(seals & SEALS, SEALS);
    }

    #[test]
    fn a_policy_is_that_of_the_file() {
        let file = memory_file(BYTES).unwrap();
        let [one, other] = [(); 2].map(|()| map(file.as_fd(), None, BYTES).unwrap().as_ptr());
        // SAFETY: mapped just now.
        let set = unsafe { prefer_node(one as usize, BYTES, 0) };
        // A sandbox may forbid the call.
        match set {
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}"),
            Ok(()) => {
                assert_eq!(memory_policy(other as usize).unwrap(), libc::MPOL_PREFERRED);
            }
        }
    }

    #[test]
    fn a_flag_unknown_to_the_kernel_is_left_out() {
        let unknown = 1 << 25;
        let file = sealed_file(BYTES, &[FLAGS | unknown, FLAGS]).unwrap();
        // SAFETY: a plain call on a descriptor that the test owns.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) } & SEALS, SEALS);
        let error = sealed_file(BYTES, &[FLAGS | unknown]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
