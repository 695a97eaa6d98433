use super::*;
use std::os::fd::AsFd;

/// A forked child with the memory of this process, which sleeps.
struct Twin(u32);

impl Twin {
    fn start() -> Self {
        let own = std::process::id();
        // SAFETY: system calls alone.
        let pid = unsafe {
            sys::fork_to(|| match sys::die_with_parent(own) {
                Ok(true) => sys::sleep_for_good(),
                _ => 0,
            })
        };
        Self(pid.unwrap())
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        sys::kill_child(self.0);
        sys::wait_child(self.0);
    }
}

/// Two pages of shared memory, and one after them that is not mapped.
fn pages() -> usize {
    let file = sys::memory_file(3 * 4096).unwrap();
    let at = sys::map(file.as_fd(), None, 3 * 4096).unwrap();
    // SAFETY: mapped just now, and not used by other code.
    unsafe { sys::unmap(at.add(2 * 4096), 4096) };
    at.as_ptr() as usize
}

#[test]
fn bytes_of_another_process_are_read_and_written() {
    if let Err(refused) = probe() {
        return println!("not here: {refused}");
    }
    let at = pages();
    let twin = Twin::start();
    let from: Vec<u8> = (0..6000).map(|n| (n % 251) as u8).collect();
    let mut to = vec![0; 6000];
    // SAFETY: only this test uses the twin's pages.
    unsafe {
        write_to(twin.0, at + 11, &from).unwrap();
        read_from(twin.0, at + 11, &mut to).unwrap();
        read_from(twin.0, at, &mut []).unwrap();
    }
    assert_eq!(from, to);
}

#[test]
fn a_copy_that_ends_early_returns_its_place() {
    if let Err(refused) = probe() {
        return println!("not here: {refused}");
    }
    let at = pages();
    let twin = Twin::start();
    let mut to = vec![7; 5000];
    // SAFETY: only this test uses the twin's pages.
    unsafe {
        let end = CmaError::Unmapped { at: at + 8192, copied: 4096 };
        assert_eq!(read_from(twin.0, at + 4096, &mut to), Err(end));
        assert!(to[..4096].iter().all(|byte| *byte == 0) && to[4096..].iter().all(|b| *b == 7));
        assert_eq!(write_to(twin.0, at + 4096, &to), Err(end));
        let nothing = CmaError::Unmapped { at: 64, copied: 0 };
        assert_eq!(read_from(twin.0, 64, &mut to), Err(nothing));
    }
}

#[test]
fn a_process_that_has_gone_is_an_error() {
    let twin = Twin::start();
    let pid = twin.0;
    drop(twin);
    // SAFETY: no memory of this process lies at that address.
    let result = unsafe { read_from(pid, 4096, &mut [0; 8]) };
    assert!(matches!(result, Err(CmaError::Gone { .. } | CmaError::System { .. })), "{result:?}");
}

/// Only root can become another user; for other users there is nothing to test.
#[test]
fn another_users_process_is_refused() {
    let (own, word) = (std::process::id(), &raw const WORD as usize);
    // SAFETY: system calls alone.
    let reader = unsafe {
        sys::fork_to(|| {
            if libc::setresuid(65534, 65534, 65534) != 0 {
                return libc::EPERM;
            }
            let mut found = [0; 8];
            let result = sys::read_process(own, word, found.as_mut_ptr(), found.len());
            result.map_or_else(|error| error.raw_os_error().unwrap_or(0), |_| 0)
        })
    };
    let errno = sys::wait_child(reader.unwrap()).unwrap();
    assert_eq!(named(errno, own, word, 0), CmaError::Refused { pid: own });
}

#[test]
fn every_relevant_errno_has_an_error_of_its_own() {
    assert_eq!(named(libc::EPERM, 5, 0, 0), CmaError::Refused { pid: 5 });
    assert_eq!(named(libc::ESRCH, 5, 0, 0), CmaError::Gone { pid: 5 });
    assert!(named(libc::EFAULT, 5, 64, 3).to_string().contains("0x40"));
    assert_eq!(named(libc::ENOSYS, 5, 0, 0), CmaError::System { errno: libc::ENOSYS });
}

/// The kernel may stop at any byte; the copy must continue from there.
#[test]
fn a_copy_in_parts_is_continued() {
    let mut asked = Vec::new();
    let result = copy(9, 100, 10, |done| {
        asked.push(done);
        Ok(4.min(10 - done))
    });
    assert_eq!((result, asked), (Ok(()), vec![0, 4, 8]));
    let mut calls = 0;
    let result = copy(9, 100, 10, |done| {
        calls += 1;
        match calls {
            1 => Err(io::Error::from_raw_os_error(libc::EINTR)),
            2 => Ok(6),
            _ => {
                assert_eq!(done, 6);
                Err(io::Error::from_raw_os_error(libc::EFAULT))
            }
        }
    });
    assert_eq!(result, Err(CmaError::Unmapped { at: 106, copied: 6 }));
}
