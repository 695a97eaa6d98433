//! Hostile bytes: the files of a stored corpus, and seeded changes of them.
//!
//! A parser of bytes from another process must be given both. It must accept a file
//! with `good` in its name, and refuse every other file.

use crate::Seeded;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The files of one folder, in the order of their names.
#[derive(Clone, Debug)]
pub struct Corpus(Vec<(String, Vec<u8>)>);

impl Corpus {
    /// Opens `tests/corpus/<name>` in the folder `krate` of a crate.
    ///
    /// # Panics
    ///
    /// If the files cannot be read, or are fewer than `least`.
    pub fn open(krate: &str, name: &str, least: usize) -> Self {
        let folder = Path::new(krate).join("tests/corpus").join(name);
        let mut files: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
            .collect();
        files.sort();
        assert!(files.len() >= least, "{}: {} files", folder.display(), files.len());
        Self(files)
    }

    /// Gives each file to `check`: its path, whether it is good, and its bytes.
    pub fn replay(&self, mut check: impl FnMut(&str, bool, &[u8])) {
        for (path, bytes) in &self.0 {
            let name = Path::new(path).file_name().unwrap_or_default();
            check(path, name.to_string_lossy().contains("good"), bytes);
        }
    }

    /// Gives so many changes of the files to `parse`, the same in every run. Returns
    /// the sum of the results of `parse`.
    ///
    /// # Panics
    ///
    /// If `parse` panics; the message has the bytes.
    pub fn change(&self, rounds: u32, parse: impl Fn(&[u8]) -> usize) -> usize {
        let mut seeded = Seeded(0x75);
        let mut sum = 0;
        for round in 0..rounds {
            let (path, bytes) = self.any(&mut seeded);
            let (_, other) = self.any(&mut seeded);
            let changed = change(bytes, other, &mut seeded);
            let parsed = catch_unwind(AssertUnwindSafe(|| parse(&changed)));
            sum += parsed.unwrap_or_else(|_| panic!("round {round}, from {path}: {changed:02x?}"));
        }
        sum
    }

    fn any(&self, seeded: &mut Seeded) -> &(String, Vec<u8>) {
        &self.0[seeded.below(self.0.len() as u64) as usize]
    }
}

/// The number of packets in a file of them: each packet follows its length in two
/// bytes.
pub fn packets(bytes: &[u8]) -> usize {
    let (mut rest, mut count) = (bytes, 0);
    while let Some((len, more)) = rest.split_first_chunk() {
        count += 1;
        rest = more.get(usize::from(u16::from_le_bytes(*len))..).unwrap_or(&[]);
    }
    count
}

fn change(bytes: &[u8], other: &[u8], seeded: &mut Seeded) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=seeded.below(4) {
        let at = seeded.below(bytes.len() as u64 + 1) as usize;
        match seeded.below(8) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << seeded.below(8),
            2 if at < bytes.len() => bytes[at] = seeded.next() as u8,
            3 if at < bytes.len() => bytes[at] = seeded.next() as u8 >> seeded.below(8),
            4 => bytes.insert(at, seeded.next() as u8),
            5 if at < bytes.len() => drop(bytes.remove(at)),
            6 => bytes.extend_from_slice(other),
            _ => {
                let from = seeded.below(other.len() as u64 + 1) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes
}
