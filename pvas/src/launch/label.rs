//! Output in whole lines, with the rank in front of each line.

use crate::sys;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tsumugi_core::mem::Rank;

/// The stream that output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One stream of one rank, read without waiting.
#[derive(Debug)]
pub struct Lines {
    file: Option<File>,
    stream: Stream,
    splitter: Splitter,
}

/// Puts a label in front of each line and keeps an incomplete line until its end
/// comes.
#[derive(Debug)]
struct Splitter {
    label: String,
    partial: Vec<u8>,
}

impl Lines {
    /// Makes the reader of the stream at the other end of `fd`; each line gets the
    /// number of `rank`, if there is one.
    pub fn new(fd: OwnedFd, stream: Stream, rank: Option<Rank>) -> Self {
        let file = sys::set_nonblocking(fd.as_fd()).is_ok().then(|| File::from(fd));
        let label = rank.map_or(String::new(), |rank| format!("[{}] ", rank.0));
        let splitter = Splitter { label, partial: Vec::new() };
        Self { file, stream, splitter }
    }

    /// A descriptor that is readable when there is more output; `None` after the
    /// end.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// Passes on the output that is there, whole lines at a time.
    pub fn forward(&mut self) {
        let mut chunk = [0; 16 << 10];
        loop {
            let Some(file) = &mut self.file else { return };
            match file.read(&mut chunk) {
                Ok(0) => self.close(),
                Ok(read) => {
                    let labelled = self.splitter.push(&chunk[..read]);
                    self.write(&labelled);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.close(),
            }
        }
    }

    /// Passes on the rest, even if it is no whole line.
    pub fn close(&mut self) {
        self.file = None;
        let rest = self.splitter.finish();
        self.write(&rest);
    }

    /// Writes to the launcher's own output. A write error is ignored: if the reader
    /// of that output has gone away, the job goes on.
    fn write(&self, bytes: &[u8]) {
        let _ = match self.stream {
            Stream::Out => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Stream::Err => io::stderr().lock().write_all(bytes),
        };
    }
}

impl Splitter {
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= LINE_BYTES_MAX {
                out.extend(self.finish());
            }
        }
        out
    }

    fn finish(&mut self) -> Vec<u8> {
        if self.partial.is_empty() {
            return Vec::new();
        }
        let mut line = self.label.clone().into_bytes();
        line.append(&mut self.partial);
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        line
    }
}

/// A longer line is broken, so that the output of a rank cannot fill the launcher's
/// memory.
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
}
