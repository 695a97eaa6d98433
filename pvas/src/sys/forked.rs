//! The calls that a process may make between its fork and its end if it runs no
//! other program: plain system calls. Nothing here allocates or takes a lock,
//! because another thread of the process that forked may have held that lock.

use super::check::check;
use std::ffi::CStr;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Forks. The child runs `child` with every signal blocked that can be blocked, and
/// ends without the functions that this process runs at its exit.
///
/// # Safety
///
/// `child` calls only what is async-signal-safe, and does not panic.
pub unsafe fn fork(child: impl FnOnce()) -> Result<u32> {
    // SAFETY: zeroed sets are ones that the calls may fill in.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are locals. No handler of this process runs in the child.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    // SAFETY: the caller guarantees that `child` is async-signal-safe.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child();
        // SAFETY: a plain call.
        unsafe { libc::_exit(0) };
    }
    let forked = check(pid);
    // SAFETY: the set was filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    forked.map(|()| pid.cast_unsigned())
}

/// Kills a child of this process that has not been waited for.
pub fn kill(pid: u32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
}

/// Waits for a child of this process, unless that has been done before.
pub fn reap(pid: u32) {
    loop {
        // SAFETY: a plain call.
        let reaped = unsafe { libc::waitpid(pid.cast_signed(), std::ptr::null_mut(), 0) };
        if reaped != -1 || Error::last_os_error().kind() != ErrorKind::Interrupted {
            return;
        }
    }
}

/// Leaves the session and the working directory of the process that forked, and
/// takes another name.
pub fn stand_alone(name: &CStr) {
    // SAFETY: plain calls on C strings.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::chdir(c"/".as_ptr());
    }
}

/// Closes every descriptor except these two, which become 0 and 1.
///
/// # Safety
///
/// No other descriptor of this process is used any more.
pub unsafe fn keep_only(fds: [RawFd; 2]) -> Result<[OwnedFd; 2]> {
    for (fd, to) in fds.map(above_the_first_two).into_iter().zip(0..) {
        // SAFETY: plain calls; the caller guarantees that no code uses the old
        // `to`.
        check(unsafe { libc::dup2(fd?, to) })?;
    }
    let first: libc::c_uint = 2;
    // SAFETY: the caller guarantees that no code uses the other descriptors.
    if unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) } == -1 {
        // Linux before 5.9, and some sandboxes, do not have the call.
        let end = super::process::limit(libc::RLIMIT_NOFILE).unwrap_or(FDS_MAX).min(FDS_MAX);
        // SAFETY: as above.
        (2..end as RawFd).for_each(|fd| unsafe {
            libc::close(fd);
        });
    }
    // SAFETY: both were made above, and nothing else owns them.
    Ok([0, 1].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
}

fn above_the_first_two(fd: RawFd) -> Result<RawFd> {
    // SAFETY: a plain call.
    let fd = unsafe { libc::fcntl(fd, libc::F_DUPFD, 2) };
    check(fd).map(|()| fd)
}

/// Waits until `fd` can be read, or until its other end or its process is gone.
pub fn wait_for(fd: BorrowedFd<'_>, limit: Option<Duration>) {
    let limit_ms = limit.map_or(-1, |limit| limit.as_millis().min(60_000) as libc::c_int);
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the array is one local.
    while unsafe { libc::poll(&mut polled, 1, limit_ms) } == -1
        && Error::last_os_error().kind() == ErrorKind::Interrupted
    {}
}

/// Sleeps for `time`.
pub fn pause(time: Duration) {
    // SAFETY: the array of descriptors is empty.
    unsafe { libc::poll(std::ptr::null_mut(), 0, time.as_millis() as libc::c_int) };
}

/// Writes a number for the process at the other end.
pub fn write_number(fd: BorrowedFd<'_>, number: i32) {
    let bytes = number.to_ne_bytes();
    // SAFETY: the kernel reads `bytes.len()` bytes of a local.
    unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
}

/// Reads up to `bytes.len()` bytes; 0 at the end.
pub fn read(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize> {
    loop {
        // SAFETY: the kernel writes at most `bytes.len()` bytes to `bytes`.
        let read = unsafe { libc::read(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(read) {
            Ok(read) => return Ok(read),
            Err(_) if Error::last_os_error().kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(Error::last_os_error()),
        }
    }
}

/// Makes a folder that only this user can access.
pub fn make_folder(path: &CStr) -> Result<()> {
    // SAFETY: `path` is a C string.
    check(unsafe { libc::mkdir(path.as_ptr(), 0o700) })
}

/// Removes a folder and its content, as far as that is possible.
pub fn remove_folder(path: &CStr) {
    remove(libc::AT_FDCWD, path, DEPTH_MAX);
}

fn remove(at: RawFd, name: &CStr, depth: usize) {
    // A listing may skip a name while other names are removed, and a process that
    // dies may have made a file until its end.
    for _ in 0..REMOVALS_MAX {
        if let Ok(folder) = Folder::open_at(at, name) {
            folder.for_each(|name| {
                // SAFETY: the folder is open, and the name is a C string.
                let removed = unsafe { libc::unlinkat(folder.0.as_raw_fd(), name.as_ptr(), 0) };
                if removed == -1 && depth > 0 {
                    remove(folder.0.as_raw_fd(), name, depth - 1);
                }
            });
        }
        // SAFETY: as above.
        if unsafe { libc::unlinkat(at, name.as_ptr(), libc::AT_REMOVEDIR) } == 0
            || Error::last_os_error().raw_os_error() != Some(libc::ENOTEMPTY)
        {
            return;
        }
    }
}

/// An open folder.
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder at `path`.
    pub fn open(path: &CStr) -> Result<Self> {
        Self::open_at(libc::AT_FDCWD, path)
    }

    /// Opens the folder of that name in this folder.
    pub fn folder(&self, name: &CStr) -> Result<Self> {
        Self::open_at(self.0.as_raw_fd(), name)
    }

    fn open_at(at: RawFd, name: &CStr) -> Result<Self> {
        open_at(at, name, libc::O_DIRECTORY | libc::O_NOFOLLOW).map(Self)
    }

    /// Opens the file of that name in this folder, for reading.
    pub fn file(&self, name: &CStr) -> Result<OwnedFd> {
        open_at(self.0.as_raw_fd(), name, 0)
    }

    /// Whether that name in this folder is a symbolic link with a target.
    pub fn has_link(&self, name: &CStr) -> bool {
        let mut byte = [0_u8];
        // SAFETY: the folder is open, the name is a C string, and the byte is a
        // local.
        unsafe {
            libc::readlinkat(self.0.as_raw_fd(), name.as_ptr(), byte.as_mut_ptr().cast(), 1) > 0
        }
    }

    /// Calls `each` with each name in this folder, except `.` and `..`.
    pub fn for_each(&self, mut each: impl FnMut(&CStr)) {
        let mut room = [0_u64; ENTRIES_WORDS];
        loop {
            let (fd, bytes) = (self.0.as_raw_fd(), size_of_val(&room));
            // SAFETY: the folder is open, and the kernel writes at most `bytes`
            // bytes to `room`.
            let got = unsafe { libc::syscall(libc::SYS_getdents64, fd, room.as_mut_ptr(), bytes) };
            let got = usize::try_from(got).unwrap_or(0).min(bytes);
            if got == 0 {
                return;
            }
            // SAFETY: the kernel wrote `got` bytes, and any bytes are valid.
            let mut entries = unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), got) };
            while let Some((entry, rest)) = next_entry(entries) {
                if entry != c"." && entry != c".." {
                    each(entry);
                }
                entries = rest;
            }
        }
    }
}

/// The name of the first of these `struct linux_dirent64`, and the entries after
/// it.
fn next_entry(entries: &[u8]) -> Option<(&CStr, &[u8])> {
    let len = entries.get(LENGTH_AT..LENGTH_AT + 2)?.try_into().ok().map(u16::from_ne_bytes)?;
    let (entry, rest) = entries.split_at_checked(len.into())?;
    Some((CStr::from_bytes_until_nul(entry.get(NAME_AT..)?).ok()?, rest))
}

fn open_at(at: RawFd, name: &CStr, flags: libc::c_int) -> Result<OwnedFd> {
    // SAFETY: `name` is a C string.
    let fd = unsafe { libc::openat(at, name.as_ptr(), flags | libc::O_RDONLY | libc::O_CLOEXEC) };
    check(fd)?;
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The offsets of the length and of the name in `struct linux_dirent64`.
const LENGTH_AT: usize = 16;
const NAME_AT: usize = 19;
/// 2 KiB, because the stack may be that of a ULT.
const ENTRIES_WORDS: usize = 256;
/// The depth of nested folders that are removed.
const DEPTH_MAX: usize = 4;
const REMOVALS_MAX: usize = 8;
/// The limit for descriptor numbers where each descriptor is closed by itself.
const FDS_MAX: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs;
    use std::os::fd::AsFd;

    fn fresh(name: &str) -> (std::path::PathBuf, CString) {
        let name = format!("tsumugi-forked-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = CString::new(path.to_str().unwrap()).unwrap();
        (path, text)
    }

    #[test]
    fn every_name_is_listed_once() {
        let (path, text) = fresh("names");
        make_folder(&text).unwrap();
        assert!(make_folder(&text).is_err(), "the folder exists");
        let names: Vec<String> = (0..300).map(|n| format!("a-file-with-a-long-name-{n}")).collect();
        names.iter().for_each(|name| fs::write(path.join(name), name).unwrap());
        let folder = Folder::open(&text).unwrap();
        let mut told = Vec::new();
        folder.for_each(|name| told.push(name.to_str().unwrap().to_owned()));
        told.sort();
        let mut sorted = names.clone();
        sorted.sort();
        assert_eq!(told, sorted);
        let file = folder.file(&CString::new(&*names[7]).unwrap()).unwrap();
        let mut bytes = [0; 64];
        let read = read(file.as_fd(), &mut bytes).unwrap();
        assert_eq!(&bytes[..read], names[7].as_bytes());
        remove_folder(&text);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_is_removed_with_its_content_and_links_are_not_followed() {
        let (path, text) = fresh("tree");
        let (beside, _) = fresh("beside");
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::create_dir_all(&beside).unwrap();
        fs::write(beside.join("kept"), "kept").unwrap();
        fs::write(path.join("a/b/file"), "gone").unwrap();
        std::os::unix::fs::symlink(&beside, path.join("a/link")).unwrap();
        assert!(Folder::open(&text).unwrap().folder(c"a").unwrap().has_link(c"link"));
        remove_folder(&text);
        assert!(!path.exists() && beside.join("kept").exists());
        fs::remove_dir_all(&beside).unwrap();
        remove_folder(&text);
    }

    #[test]
    fn broken_entries_end_the_list() {
        let mut entry = [0_u8; 24];
        assert_eq!(next_entry(&entry), None, "an entry of length 0");
        entry[LENGTH_AT] = 25;
        assert_eq!(next_entry(&entry), None, "an entry longer than the buffer");
        entry[LENGTH_AT] = 24;
        entry[NAME_AT..].fill(b'x');
        assert_eq!(next_entry(&entry), None, "a name without an end");
        entry[23] = 0;
        assert_eq!(next_entry(&entry), Some((c"xxxx", &[][..])));
        assert_eq!(next_entry(&entry[..10]), None);
    }
}
