//! PMI-1 over a descriptor that the launcher left: MPICH's hydra, gforker,
//! SLURM's `pmi2` plugin.
//!
//! ```text
//!  cmd=init pmi_version=1 pmi_subversion=1  ─►  ◄─ cmd=response_to_init ...
//!  cmd=get_maxes                            ─►  ◄─ cmd=maxes keylen_max= vallen_max=
//!  cmd=get_my_kvsname                       ─►  ◄─ cmd=my_kvsname kvsname=
//!  cmd=put kvsname= key= value=             ─►  ◄─ cmd=put_result
//!  cmd=barrier_in                           ─►  ◄─ cmd=barrier_out
//!  cmd=get kvsname= key=                    ─►  ◄─ cmd=get_result value=
//!  cmd=finalize                             ─►  ◄─ cmd=finalize_ack
//! ```
//!
//! Values are text of a length that the launcher limits, so a card goes in
//! hexadecimal, in as many values as it needs. What the launcher does when a
//! rank is gone without `finalize` is its own: hydra ends the job.

mod line;

pub use line::{Line, LineError};

use super::sys::{self, Watched};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;

/// Ranks that find each other through a PMI-1 server. Blocking, each answer
/// within the time limit.
#[derive(Debug)]
pub struct Pmi {
    file: File,
    rank: Rank,
    size: u32,
    limit: Duration,
    bytes: Vec<u8>,
    kvsname: String,
    value_bytes_max: usize,
    /// Cards that this rank has published: a key is written once.
    round: u32,
}

impl Pmi {
    /// Greets the server at the other end of `fd`.
    ///
    /// # Errors
    ///
    /// [`BootError`].
    pub fn new(fd: OwnedFd, rank: Rank, size: u32, limit: Duration) -> Result<Self, BootError> {
        BootError::check_rank(rank, size)?;
        let mut pmi = Self {
            file: File::from(fd),
            rank,
            size,
            limit,
            bytes: Vec::new(),
            kvsname: String::new(),
            value_bytes_max: 0,
            round: 0,
        };
        pmi.ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init")?;
        let maxes = pmi.ask("cmd=get_maxes\n", "maxes")?;
        let bytes = maxes.field("vallen_max").and_then(|text| text.parse::<usize>().ok());
        // One less for the end of a C string.
        let room = bytes.unwrap_or(VALUE_BYTES_MAX).clamp(1, VALUE_BYTES_MAX) - 1;
        if room < 2 * PREFIX_BYTES {
            return Err(GARBLED);
        }
        pmi.value_bytes_max = room;
        let named = pmi.ask("cmd=get_my_kvsname\n", "my_kvsname")?;
        let name = named.field("kvsname").filter(|name| name.len() <= NAME_BYTES_MAX);
        pmi.kvsname = name.ok_or(GARBLED)?.to_owned();
        Ok(pmi)
    }

    /// Sends one line, and reads the one that answers it.
    fn ask(&mut self, line: &str, wanted: &str) -> Result<Line, BootError> {
        self.file.write_all(line.as_bytes()).map_err(|_| BootError::Disconnected)?;
        let answer = Line::parse(&self.line()?).map_err(|_| GARBLED)?;
        match answer.field("cmd") {
            Some(command) if command == wanted => Ok(answer),
            _ => Err(GARBLED),
        }
    }

    fn line(&mut self) -> Result<String, BootError> {
        let deadline = Instant::now() + self.limit;
        let mut chunk = [0; 1024];
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(end + 1);
                let line = std::mem::replace(&mut self.bytes, rest);
                return String::from_utf8(line).map_err(|_| GARBLED);
            }
            if self.bytes.len() > LINE_BYTES_MAX {
                return Err(GARBLED);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(BootError::TimedOut { what: "the PMI server" });
            }
            let watched = Watched { fd: self.file.as_fd(), writes: false };
            let ready = sys::poll(&[watched], left).map_err(|_| BootError::Disconnected)?;
            if !ready[0] {
                continue;
            }
            match self.file.read(&mut chunk) {
                Ok(0) => return Err(BootError::Disconnected),
                Ok(read) => self.bytes.extend_from_slice(&chunk[..read]),
                Err(error) if is_passing(&error) => {}
                Err(_) => return Err(BootError::Disconnected),
            }
        }
    }

    fn key(&self, rank: Rank, part: usize) -> String {
        format!("tsumugi-{}-{}-{part}", self.round, rank.0)
    }

    fn get(&mut self, rank: Rank, part: usize) -> Result<String, BootError> {
        let line = format!("cmd=get kvsname={} key={}\n", self.kvsname, self.key(rank, part));
        let answer = self.ask(&line, "get_result")?;
        match answer.field("value") {
            Some(value) if answer.is_ok() => Ok(value.to_owned()),
            _ => Err(BootError::NoCard { rank }),
        }
    }
}

impl Bootstrap for Pmi {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn publish(&mut self, card: &[u8]) -> Result<(), BootError> {
        BootError::check_card(card)?;
        self.round += 1;
        for (part, value) in values(card, self.value_bytes_max).iter().enumerate() {
            let key = self.key(self.rank, part);
            let line = format!("cmd=put kvsname={} key={key} value={value}\n", self.kvsname);
            if !self.ask(&line, "put_result")?.is_ok() {
                return Err(BootError::Refused { why: "the PMI server does not take its card" });
            }
        }
        Ok(())
    }

    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError> {
        BootError::check_rank(rank, self.size)?;
        let first = self.get(rank, 0)?;
        let (length, hex) = first.split_at_checked(PREFIX_BYTES).ok_or(GARBLED)?;
        let len = usize::from_str_radix(length, 16).map_err(|_| GARBLED)?;
        if len > CARD_BYTES_MAX {
            return Err(GARBLED);
        }
        let mut hex = hex.to_owned();
        let mut part = 0;
        while hex.len() < 2 * len {
            part += 1;
            let more = self.get(rank, part)?;
            if more.is_empty() || hex.len() + more.len() > 2 * len {
                return Err(GARBLED);
            }
            hex.push_str(&more);
        }
        from_hex(&hex, &mut card[..len]).ok_or(GARBLED)?;
        Ok(len)
    }

    fn barrier(&mut self) -> Result<(), BootError> {
        match self.ask("cmd=barrier_in\n", "barrier_out")?.is_ok() {
            true => Ok(()),
            false => Err(BootError::Disconnected),
        }
    }

    fn leave(&mut self) -> Result<(), BootError> {
        self.ask("cmd=finalize\n", "finalize_ack").map(drop)
    }
}

/// A card as values of at most `bytes_max` bytes: the first one starts with
/// the card's length.
fn values(card: &[u8], bytes_max: usize) -> Vec<String> {
    let mut text = format!("{:04x}", card.len());
    for byte in card {
        let _ = write!(text, "{byte:02x}");
    }
    let chunks = text.as_bytes().chunks(bytes_max);
    chunks.map(|chunk| String::from_utf8_lossy(chunk).into_owned()).collect()
}

pub(super) fn from_hex(hex: &str, bytes: &mut [u8]) -> Option<()> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(())
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

const GARBLED: BootError = BootError::Garbled { what: "what the PMI server says" };
const PREFIX_BYTES: usize = 4;
const VALUE_BYTES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 1024;
const LINE_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests;
