//! Copies from and to memory outside of any partition, by the kernel.
//!
//! `process_vm_readv` and `process_vm_writev` ("cross-memory attach") copy between
//! two processes once and need no mapping; a call costs a microsecond or two.
//! Whether they are allowed depends on the user, on `prctl(PR_SET_DUMPABLE)`, on
//! Yama's `ptrace_scope` and on the container. Therefore [`Space::cma`] tries a
//! copy of a word of a peer that has a known value. A job goes on without
//! cross-memory attach if the copy fails.
//!
//! Progress: blocking, in the kernel, for the time of the copy.

use crate::space::Space;
use crate::sys;
use std::fmt;
use std::io;
use std::ptr::NonNull;
use tsumugi_core::mem::LocalRank;

/// Why bytes of another process were not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CmaError {
    /// This process may not access the memory of the other process.
    Refused {
        /// The number of the other process.
        pid: u32,
    },
    /// There is no such process, or it has ended.
    Gone {
        /// Its number; 0 for a rank that has not attached yet.
        pid: u32,
    },
    /// The other process has nothing mapped there, or not for this kind of access.
    Unmapped {
        /// The first byte that was not copied, in that process.
        at: usize,
        /// How many bytes were copied before it.
        copied: usize,
    },
    /// The number belongs to another process: the peer lives in a PID namespace of
    /// its own.
    Stranger {
        /// The number.
        pid: u32,
    },
    /// The kernel does not support the copy, or has no memory for it.
    System {
        /// The error number of the kernel.
        errno: i32,
    },
}

/// Fills `to` with the bytes at `at` in process `pid`.
///
/// # Errors
///
/// - [`CmaError::Refused`]: this process may not access the memory of process `pid`.
/// - [`CmaError::Gone`]: there is no such process, or it has ended.
/// - [`CmaError::Unmapped`]: a byte is not mapped there, or not for reads; the bytes before
///   it are in `to`.
/// - [`CmaError::System`]: the kernel does not support the copy, or has no memory for it.
///
/// # Safety
///
/// `at` must not be memory of this process to which a Rust reference exists: the
/// bytes of another process may change while they are read, those of this process
/// must not.
pub unsafe fn read_from(pid: u32, at: usize, to: &mut [u8]) -> Result<(), CmaError> {
    let bytes = to.len();
    copy(pid, at, bytes, |done| {
        // SAFETY: `done` is below `bytes`, and `to` is borrowed.
        unsafe { sys::read_process(pid, at + done, to.as_mut_ptr().add(done), bytes - done) }
    })
}

/// Stores `from` at `at` in process `pid`.
///
/// # Errors
///
/// Those of [`read_from`]; [`CmaError::Unmapped`] means a byte that is not mapped for
/// writes, and the bytes before it are stored.
///
/// # Safety
///
/// The other process must have granted writes to these bytes.
pub unsafe fn write_to(pid: u32, at: usize, from: &[u8]) -> Result<(), CmaError> {
    let bytes = from.len();
    copy(pid, at, bytes, |done| {
        // SAFETY: `done` is below `bytes`; that the target may be written, the
        // caller guarantees.
        unsafe { sys::write_process(pid, at + done, from.as_ptr().add(done), bytes - done) }
    })
}

impl Space {
    /// Tests with a real copy whether this process may copy from `rank`'s: the
    /// copied word holds the number of that process. For a rank of this process no
    /// copy is needed, and none is made.
    ///
    /// # Errors
    ///
    /// Those of [`read_from`], and:
    ///
    /// - [`CmaError::Gone`]: the rank has not attached yet, or was declared dead.
    /// - [`CmaError::Stranger`]: the number of the rank's process names another process
    ///   here, because the rank is in another PID namespace.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn cma(&self, rank: LocalRank) -> Result<(), CmaError> {
        let control = self.control(rank);
        let (pid, word) = (control.pid(), NonNull::from(control.pid_word()).addr().get());
        if pid == 0 || !control.is_alive() {
            return Err(CmaError::Gone { pid });
        }
        if pid == std::process::id() && self.heap(rank).is_some() {
            return Ok(());
        }
        let mut found = [0; 4];
        // SAFETY: the word is an atomic in a partition that is mapped at the same
        // address in all processes; no plain reference to it exists.
        unsafe { read_from(pid, word, &mut found) }?;
        match u32::from_ne_bytes(found) == pid {
            true => Ok(()),
            false => Err(CmaError::Stranger { pid }),
        }
    }
}

/// Tests whether one child of this process may copy from another, as the ranks of a
/// job would: for callers that need the answer before there is a job. ULTs must not
/// call this, because forked children do not have their stacks.
///
/// # Errors
///
/// - [`CmaError::Refused`]: the system does not allow the copy.
/// - [`CmaError::System`]: the kernel does not support the copy, a child cannot be made, or
///   the child that copies has not exited by itself.
/// - [`CmaError::Gone`], [`CmaError::Unmapped`]: the child to copy from has ended early.
pub fn probe() -> Result<(), CmaError> {
    let system = |error: io::Error| CmaError::System { errno: error.raw_os_error().unwrap_or(0) };
    let (own, at) = (std::process::id(), &raw const WORD as usize);
    // SAFETY: the child makes system calls alone.
    let target = unsafe {
        sys::fork_to(|| match sys::die_with_parent(own) {
            Ok(true) => sys::sleep_for_good(),
            _ => 0,
        })
    };
    let target = target.map_err(system)?;
    // SAFETY: as above; the word lies at the same address in all three processes.
    let reader = unsafe {
        sys::fork_to(|| {
            let mut found = [0; 8];
            match sys::read_process(target, at, found.as_mut_ptr(), found.len()) {
                Ok(8) if u64::from_ne_bytes(found) == WORD => 0,
                Ok(_) => libc::EFAULT,
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
            }
        })
    };
    let code = reader.map(sys::wait_child);
    sys::kill_child(target);
    sys::wait_child(target);
    match code.map_err(system)? {
        Some(0) => Ok(()),
        Some(errno) => Err(named(errno, target, at, 0)),
        None => Err(CmaError::System { errno: libc::ECHILD }),
    }
}

/// Calls `part`, which copies some of the bytes from the given offset on, until all
/// bytes are copied.
fn copy(
    pid: u32,
    at: usize,
    bytes: usize,
    mut part: impl FnMut(usize) -> io::Result<usize>,
) -> Result<(), CmaError> {
    let mut done = 0;
    while done < bytes {
        match part(done) {
            // The kernel ends a copy at the first byte that it cannot use, and
            // returns the reason only for a copy that begins at this byte.
            Ok(0) => return Err(CmaError::Unmapped { at: at + done, copied: done }),
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(named(error.raw_os_error().unwrap_or(0), pid, at + done, done));
            }
        }
    }
    Ok(())
}

fn named(errno: i32, pid: u32, at: usize, copied: usize) -> CmaError {
    match errno {
        libc::EPERM | libc::EACCES => CmaError::Refused { pid },
        libc::ESRCH => CmaError::Gone { pid },
        libc::EFAULT => CmaError::Unmapped { at, copied },
        errno => CmaError::System { errno },
    }
}

impl fmt::Display for CmaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Refused { pid } => write!(
                f,
                "the system does not let this process copy from or to process {pid} (another \
                 user, not dumpable, ptrace_scope, or a container's rules)"
            ),
            Self::Gone { pid: 0 } => f.write_str("the rank has not attached yet"),
            Self::Gone { pid } => write!(f, "process {pid} has ended or does not exist"),
            Self::Unmapped { at, copied } => write!(
                f,
                "the other process has no memory for this access at {at:#x}; the {copied} bytes \
                 before it were copied"
            ),
            Self::Stranger { pid } => {
                write!(f, "process {pid} is not the peer: the peer is in another PID namespace")
            }
            Self::System { errno } => {
                write!(f, "cross-memory copy: {}", io::Error::from_raw_os_error(errno))
            }
        }
    }
}

impl std::error::Error for CmaError {}

/// This word lies at the same address in a process and in its forked children.
static WORD: u64 = 0x7473_756d_7567_6921;

#[cfg(test)]
mod tests;
