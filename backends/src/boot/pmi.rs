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
//! Values are text, and the launcher limits their length, so a card is sent in
//! hexadecimal, in as many values as it needs; its head, which every rank reads at
//! start, is under a key of its own. A card may be requested between `barrier_in`
//! and `barrier_out`. What the launcher does when a rank ends without `finalize` is
//! up to the launcher: hydra ends the job.

mod line;

pub use line::{LineError, PmiLine};

use super::sys::{self, Watched};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use tsumugi_core::boot::{
    BootError, Bootstrap, CARD_BYTES_MAX, EndpointHead, HEAD_BYTES, OpenBootstrap, head_of,
};
use tsumugi_core::mem::Rank;

/// A bootstrap through a PMI-1 server. Blocking; each answer must come within the
/// time limit.
#[derive(Debug)]
pub struct Pmi {
    file: File,
    rank: Rank,
    size: u32,
    limit: Duration,
    bytes: Vec<u8>,
    kvsname: String,
    value_bytes_max: usize,
    /// How many cards this rank has published: a key can be written only once.
    round: u32,
    /// The barrier at which this rank has arrived.
    barrier: Option<PmiBarrier>,
}

#[derive(Clone, Copy, Debug)]
struct PmiBarrier {
    deadline: Instant,
    /// How the barrier ended; its end may come while the rank waits for another
    /// answer.
    is_ok: Option<bool>,
}

/// The data that a key names.
#[derive(Clone, Copy, Debug)]
enum CardPart {
    Head,
    Card,
}

impl Pmi {
    /// Greets the server at the other end of `fd`.
    ///
    /// # Errors
    ///
    /// - [`BootError::NoSuchRank`]: `rank` is not below `size`.
    /// - [`BootError::TimedOut`]: the server has not answered within `limit`.
    /// - [`BootError::Disconnected`]: the connection to the server broke.
    /// - [`BootError::Garbled`]: an answer is not as PMI-1 requires.
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
            barrier: None,
        };
        pmi.ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init")?;
        let maxes = pmi.ask("cmd=get_maxes\n", "maxes")?;
        let bytes = maxes.field("vallen_max").and_then(|text| text.parse::<usize>().ok());
        // One less, for the end of a C string.
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

    /// Sends one line, and reads the line that answers it.
    fn ask(&mut self, line: &str, wanted: &str) -> Result<PmiLine, BootError> {
        self.say(line)?;
        let deadline = Instant::now() + self.limit;
        loop {
            let line = self.line(deadline)?;
            let line = line.ok_or(BootError::TimedOut { what: "the PMI server" })?;
            let answer = PmiLine::parse(&line).map_err(|_| GARBLED)?;
            match answer.field("cmd") {
                Some(command) if command == wanted => return Ok(answer),
                _ if self.ends_barrier(&answer) => {}
                _ => return Err(GARBLED),
            }
        }
    }

    fn say(&mut self, line: &str) -> Result<(), BootError> {
        self.file.write_all(line.as_bytes()).map_err(|_| BootError::Disconnected)
    }

    /// Keeps an answer that ends the barrier at which this rank waits; returns
    /// whether it is one.
    fn ends_barrier(&mut self, answer: &PmiLine) -> bool {
        match &mut self.barrier {
            Some(PmiBarrier { is_ok: is_ok @ None, .. })
                if answer.field("cmd") == Some("barrier_out") =>
            {
                *is_ok = Some(answer.is_ok());
                true
            }
            _ => false,
        }
    }

    /// The next line, if it comes before the deadline.
    fn line(&mut self, deadline: Instant) -> Result<Option<String>, BootError> {
        let mut chunk = [0; 1024];
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(end + 1);
                let line = std::mem::replace(&mut self.bytes, rest);
                return String::from_utf8(line).map(Some).map_err(|_| GARBLED);
            }
            if self.bytes.len() > LINE_BYTES_MAX {
                return Err(GARBLED);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
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

    fn key(&self, rank: Rank, of: CardPart, at: usize) -> String {
        let of = match of {
            CardPart::Head => "h",
            CardPart::Card => "",
        };
        format!("tsumugi-{}-{of}{}-{at}", self.round, rank.0)
    }

    fn put(&mut self, of: CardPart, bytes: &[u8]) -> Result<(), BootError> {
        for (at, value) in values(bytes, self.value_bytes_max).iter().enumerate() {
            let key = self.key(self.rank, of, at);
            let line = format!("cmd=put kvsname={} key={key} value={value}\n", self.kvsname);
            if !self.ask(&line, "put_result")?.is_ok() {
                return Err(BootError::Refused { why: "the PMI server does not accept its card" });
            }
        }
        Ok(())
    }

    fn get(&mut self, rank: Rank, of: CardPart, at: usize) -> Result<String, BootError> {
        let line = format!("cmd=get kvsname={} key={}\n", self.kvsname, self.key(rank, of, at));
        let answer = self.ask(&line, "get_result")?;
        match answer.field("value") {
            Some(value) if answer.is_ok() => Ok(value.to_owned()),
            _ => Err(BootError::NoCard { rank }),
        }
    }

    /// Copies the bytes that a rank has put, and returns their length.
    fn read(&mut self, rank: Rank, of: CardPart, into: &mut [u8]) -> Result<usize, BootError> {
        let first = self.get(rank, of, 0)?;
        let (length, hex) = first.split_at_checked(PREFIX_BYTES).ok_or(GARBLED)?;
        let len = usize::from_str_radix(length, 16).map_err(|_| GARBLED)?;
        if len > into.len() {
            return Err(GARBLED);
        }
        let mut hex = hex.to_owned();
        let mut at = 0;
        while hex.len() < 2 * len {
            at += 1;
            let more = self.get(rank, of, at)?;
            if more.is_empty() || hex.len() + more.len() > 2 * len {
                return Err(GARBLED);
            }
            hex.push_str(&more);
        }
        from_hex(&hex, &mut into[..len]).ok_or(GARBLED)?;
        Ok(len)
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
        self.put(CardPart::Head, &head_of(card))?;
        self.put(CardPart::Card, card)
    }

    fn card(&mut self, rank: Rank, card: &mut [u8; CARD_BYTES_MAX]) -> Result<usize, BootError> {
        BootError::check_rank(rank, self.size)?;
        self.read(rank, CardPart::Card, card)
    }

    fn heads(&mut self, each: &mut dyn FnMut(Rank, &EndpointHead)) -> Result<(), BootError> {
        for rank in (0..self.size).map(Rank) {
            let mut head = [0; HEAD_BYTES];
            if self.read(rank, CardPart::Head, &mut head)? != HEAD_BYTES {
                return Err(GARBLED);
            }
            each(rank, &head);
        }
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), BootError> {
        self.arrive()?;
        while !self.has_met(self.limit)? {}
        Ok(())
    }

    fn leave(&mut self) -> Result<(), BootError> {
        self.ask("cmd=finalize\n", "finalize_ack").map(drop)
    }
}

impl OpenBootstrap for Pmi {
    fn arrive(&mut self) -> Result<(), BootError> {
        self.barrier = Some(PmiBarrier { deadline: Instant::now() + self.limit, is_ok: None });
        self.say("cmd=barrier_in\n")
    }

    fn has_met(&mut self, within: Duration) -> Result<bool, BootError> {
        let Some(PmiBarrier { deadline, mut is_ok }) = self.barrier else { return Ok(true) };
        let until = deadline.min(Instant::now() + within);
        if is_ok.is_none() {
            let Some(line) = self.line(until)? else {
                let late = BootError::TimedOut { what: "the PMI server" };
                return if Instant::now() < deadline { Ok(false) } else { Err(late) };
            };
            let answer = PmiLine::parse(&line).map_err(|_| GARBLED)?;
            if !self.ends_barrier(&answer) {
                return Err(GARBLED);
            }
            is_ok = self.barrier.and_then(|barrier| barrier.is_ok);
        }
        self.barrier = None;
        if is_ok == Some(true) { Ok(true) } else { Err(BootError::Disconnected) }
    }
}

/// A card as values of at most `bytes_max` bytes: the first value starts with the
/// card's length.
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

const GARBLED: BootError = BootError::Garbled { what: "the answer of the PMI server" };
const PREFIX_BYTES: usize = 4;
const VALUE_BYTES_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 1024;
const LINE_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests;
