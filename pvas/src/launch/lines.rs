//! Output in whole lines.
//!
//! ```text
//!  rank 0 ── "one\ntw" ──► Lines ── "one\n" ──┐
//!                           └ keeps "tw"      ├──► Output: the launcher's own
//!  rank 1 ── "three\n" ──► Lines ── "three\n"─┘
//! ```
//!
//! Bytes pass unchanged, unless each line gets a label. A last line without an end
//! passes as it is; if another rank writes after it, a line end is put between the two.

use super::follower::Followers;
use crate::sys;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use tsumugi_core::mem::Rank;

/// The stream that output goes to. The enum is exhaustive: a process has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One stream of output, read without waiting.
#[derive(Debug)]
pub struct Lines {
    file: Option<File>,
    stream: Stream,
    rank: Option<Rank>,
    splitter: Splitter,
}

/// The launcher's own output.
#[derive(Debug)]
pub struct Output {
    /// Whether both streams are one file, such as a terminal.
    is_one: bool,
    /// For each file, the source of a line that has no end yet.
    open: [Option<usize>; 2],
    /// The first error that is not the end of a reader.
    failed: Option<(Stream, i32)>,
}

/// Puts a label in front of each line, if there is one, and keeps an incomplete line
/// until its end comes.
#[derive(Debug)]
struct Splitter {
    label: String,
    partial: Vec<u8>,
}

impl Lines {
    /// Makes the reader of the stream at the other end of `fd`, which `rank` writes,
    /// if it is one rank.
    pub fn new(fd: OwnedFd, stream: Stream, rank: Option<Rank>) -> Self {
        let file = sys::set_nonblocking(fd.as_fd()).is_ok().then(|| File::from(fd));
        let splitter = Splitter { label: String::new(), partial: Vec::new() };
        Self { file, stream, rank, splitter }
    }

    /// Puts the number of the rank in front of each line.
    #[must_use]
    pub fn labelled(mut self) -> Self {
        self.splitter.label = self.rank.map_or(String::new(), |rank| format!("[{}] ", rank.0));
        self
    }

    /// A descriptor that is readable when there is more output; `None` after the
    /// end.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// The rank that writes, if it is one rank.
    pub fn rank(&self) -> Option<Rank> {
        self.rank
    }

    /// Passes on output that is there, whole lines at a time, at most as much as
    /// `chunk` holds. `source` is the number of this stream among all. Returns whether
    /// there may be more.
    pub fn forward(
        &mut self,
        chunk: &mut [u8],
        source: usize,
        output: &mut Output,
        followers: &mut Followers,
    ) -> bool {
        let Some(file) = &mut self.file else { return false };
        match file.read(chunk) {
            Ok(0) => self.close(source, output, followers),
            Ok(read) => {
                let lines = self.splitter.push(&chunk[..read]);
                self.write(&lines, source, output, followers);
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.close(source, output, followers),
        }
        false
    }

    /// Passes on the rest, even if it is no whole line.
    pub fn close(&mut self, source: usize, output: &mut Output, followers: &mut Followers) {
        self.file = None;
        let rest = self.splitter.finish();
        self.write(&rest, source, output, followers);
    }

    /// Passes on an incomplete line now, such as a question to the user.
    pub fn show_partial(&mut self, source: usize, output: &mut Output) {
        let begun = std::mem::take(&mut self.splitter.partial);
        output.write(self.stream, source, &begun);
    }

    /// Whether an incomplete line is kept, without a label.
    pub fn has_partial(&self) -> bool {
        self.splitter.label.is_empty() && !self.splitter.partial.is_empty()
    }

    fn write(&self, lines: &[u8], source: usize, output: &mut Output, followers: &mut Followers) {
        match (self.stream, self.rank) {
            (Stream::Err, Some(rank)) if followers.are_expected() => {
                let kept = followers.without(rank, self.splitter.label.len(), lines);
                output.write(self.stream, source, &kept);
            }
            _ => output.write(self.stream, source, lines),
        }
    }
}

impl Output {
    /// The output of this process.
    pub fn new() -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        Self { is_one: sys::is_same_file(out.as_fd(), err.as_fd()), open: [None; 2], failed: None }
    }

    /// Why output was lost, if it was, such as by a full disk.
    pub fn failed(&self) -> Option<(Stream, i32)> {
        self.failed
    }

    /// Writes bytes of `source`. The job goes on if the reader of that output has gone
    /// away, or after another error, which is kept. Blocking.
    pub fn write(&mut self, stream: Stream, source: usize, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let file = if self.is_one { 0 } else { stream.fd() as usize - 1 };
        if self.open[file].is_some_and(|begun| begun != source) {
            self.put(stream, b"\n");
        }
        self.open[file] = (*last != b'\n').then_some(source);
        self.put(stream, bytes);
    }

    fn put(&mut self, stream: Stream, bytes: &[u8]) {
        if let Err(error) = sys::write_all(stream.fd(), bytes)
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.failed.get_or_insert((stream, error.raw_os_error().unwrap_or(0)));
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Out => "standard output",
            Self::Err => "standard error",
        })
    }
}

impl Stream {
    fn fd(self) -> RawFd {
        match self {
            Self::Out => libc::STDOUT_FILENO,
            Self::Err => libc::STDERR_FILENO,
        }
    }
}

impl Splitter {
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut out = Vec::new();
        if whole > 0 {
            out.reserve(self.partial.len() + whole);
        }
        if self.label.is_empty() && whole > 0 {
            out.append(&mut self.partial);
            out.extend_from_slice(&bytes[..whole]);
        } else {
            for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
                out.extend_from_slice(self.label.as_bytes());
                out.append(&mut self.partial);
                out.extend_from_slice(line);
            }
        }
        self.partial.extend_from_slice(&bytes[whole..]);
        if self.partial.len() >= LINE_BYTES_MAX {
            out.extend(self.finish());
        }
        out
    }

    fn finish(&mut self) -> Vec<u8> {
        if self.partial.is_empty() || self.label.is_empty() {
            return std::mem::take(&mut self.partial);
        }
        let mut line = self.label.clone().into_bytes();
        line.append(&mut self.partial);
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        line
    }
}

/// A longer line passes in parts, so that the output of a rank cannot fill the
/// launcher's memory.
const LINE_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_labelled_whole() {
        let mut splitter = Splitter { label: "[3] ".to_owned(), partial: Vec::new() };
        assert_eq!(splitter.push(b"one\ntw"), b"[3] one\n");
        assert_eq!(splitter.push(b"o\n\nthr"), b"[3] two\n[3] \n");
        assert_eq!(splitter.finish(), b"[3] thr\n");
        assert_eq!(splitter.finish(), b"");
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        assert_eq!(splitter.push(&long).len(), "[3] ".len() + long.len() + 1);
    }

    #[test]
    fn bytes_without_a_label_pass_unchanged() {
        let mut splitter = Splitter { label: String::new(), partial: Vec::new() };
        assert_eq!(splitter.push(b"one\ntw"), b"one\n");
        assert_eq!(splitter.push(b"o"), b"");
        assert_eq!(splitter.push(b"\n\nthr"), b"two\n\n");
        assert_eq!(splitter.finish(), b"thr");
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        assert_eq!(splitter.push(&long), long);
    }
}
