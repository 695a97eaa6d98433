//! Numbered lines of bounded length, from a file that may be gzipped.
//!
//! The first two bytes of the file, not its name, show whether it is gzipped. A line
//! longer than [`LINE_BYTES_MAX`] is an error, so that no input makes the reader's
//! buffer grow without limit.

use super::broken::BrokenFile;
use flate2::read::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

/// The greatest number of bytes of a line, without its end.
pub const LINE_BYTES_MAX: usize = 4096;

/// The lines of one file.
pub struct Lines<R> {
    file: String,
    source: LineSource<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    /// The lines of `source`; error messages call it `file`.
    pub fn new(source: R, file: impl Into<String>) -> Self {
        let source = LineSource::Unread(Some(source));
        Self { file: file.into(), source, line: Vec::new(), number: 0 }
    }

    /// The next line without its end, or `None` after the last.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, BrokenFile> {
        self.line.clear();
        self.number += 1;
        let read = self.source.open().and_then(|source| read_line(source, &mut self.line));
        match read {
            Ok(0) => Ok(None),
            Ok(_) if self.line.len() > LINE_BYTES_MAX => {
                Err(self
                    .broken(format!("the line is longer than {LINE_BYTES_MAX} bytes, the maximum")))
            }
            Ok(_) => Ok(Some(self.line.trim_ascii())),
            Err(error) => Err(self.cut_off(&error)),
        }
    }

    /// An error `what` at the line that was read last.
    pub fn broken(&self, what: impl Into<String>) -> BrokenFile {
        BrokenFile::at(&self.file, self.number, what)
    }

    #[cold]
    fn cut_off(&self, error: &io::Error) -> BrokenFile {
        match (&self.source, error.kind()) {
            (LineSource::Gzip(_), io::ErrorKind::UnexpectedEof) => {
                self.broken("the gzip stream is cut off here")
            }
            (LineSource::Gzip(_), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
                self.broken(format!("the gzip stream is broken: {error}"))
            }
            _ => BrokenFile::unreadable(self.file.clone(), error),
        }
    }
}

/// The source of the bytes.
enum LineSource<R> {
    /// Not opened yet; `None` only while it is being opened.
    Unread(Option<R>),
    Plain(BufReader<Rewound<R>>),
    Gzip(Box<BufReader<MultiGzDecoder<Rewound<R>>>>),
}

/// The two bytes that were read to detect the format, then the rest.
type Rewound<R> = Chain<Cursor<Vec<u8>>, R>;

impl<R: Read> LineSource<R> {
    fn open(&mut self) -> io::Result<&mut dyn BufRead> {
        if let Self::Unread(source) = self {
            let mut source = source.take().ok_or(io::ErrorKind::BrokenPipe)?;
            let mut magic = Vec::with_capacity(2);
            source.by_ref().take(2).read_to_end(&mut magic)?;
            let gzipped = magic == [0x1f, 0x8b];
            let rewound = Cursor::new(magic).chain(source);
            *self = match gzipped {
                true => Self::Gzip(Box::new(BufReader::new(MultiGzDecoder::new(rewound)))),
                false => Self::Plain(BufReader::new(rewound)),
            };
        }
        match self {
            Self::Unread(_) => Err(io::ErrorKind::BrokenPipe.into()),
            Self::Plain(reader) => Ok(reader),
            Self::Gzip(reader) => Ok(reader.as_mut()),
        }
    }
}

/// Appends the bytes up to the end of the line, but at most one byte more than
/// allowed.
fn read_line(source: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    let read = source.take(LINE_BYTES_MAX as u64 + 2).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn all(bytes: &[u8]) -> Result<Vec<String>, BrokenFile> {
        let mut lines = Lines::new(bytes, "f");
        let mut texts = Vec::new();
        while let Some(line) = lines.next_line()? {
            texts.push(String::from_utf8(line.to_vec()).unwrap());
        }
        Ok(texts)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn plain_and_gzipped_read_the_same() {
        for bytes in [b"a\nb\r\n\nc".to_vec(), gzip(b"a\nb\r\n\nc")] {
            assert_eq!(all(&bytes).unwrap(), ["a", "b", "", "c"]);
        }
        assert!(all(b"").unwrap().is_empty());
        assert_eq!(all(b"x").unwrap(), ["x"]);
    }

    #[test]
    fn gzip_members_follow_each_other() {
        assert_eq!(all(&[gzip(b"a\n"), gzip(b"b\n")].concat()).unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_stream_that_is_cut_off_is_refused() {
        let bytes = gzip(&b"some line of text\n".repeat(5000));
        for kept in 3..bytes.len() {
            let broken = all(&bytes[..kept]).unwrap_err();
            assert!(broken.what.contains("cut off"), "{kept} of {}: {broken}", bytes.len());
        }
    }

    #[test]
    fn a_stream_that_was_changed_is_refused() {
        let mut bytes = gzip(&b"some line of text\n".repeat(100));
        let end = bytes.len() - 6;
        bytes[end] ^= 1;
        assert!(all(&bytes).unwrap_err().what.contains("gzip"));
        assert!(all(&[0x1f, 0x8b, 99, 99, 99, 99, 99, 99, 99, 99, 99]).is_err());
    }

    #[test]
    fn a_line_has_a_limit() {
        let longest = vec![b'x'; LINE_BYTES_MAX];
        assert_eq!(all(&longest).unwrap().len(), 1);
        assert_eq!(all(&[&longest[..], b"\nb"].concat()).unwrap().len(), 2);
        let broken = all(&[&longest[..], b"x"].concat()).unwrap_err();
        assert_eq!((broken.line, broken.what.contains("4096")), (Some(1), true));
        assert!(all(&vec![b'x'; 1 << 20]).is_err());
    }
}
