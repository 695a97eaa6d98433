//! The messages on the socket: fixed fields in this machine's byte order, because
//! both ends are on this machine. Every field is checked.

use super::digest::digest;
use super::error::JoinVerdict;
use super::meeting::Meeting;
use crate::config::{HugePages, Policy, SpaceConfig};
use crate::partition::{ControlBlock, PartitionShape};
use crate::sys;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use tsumugi_core::mem::LocalRank;

/// The first message of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// A digest of the layout of partitions in this build.
    layout: u64,
    job: u64,
    node: u64,
    /// The rank that sends this.
    pub rank: LocalRank,
    size: u32,
}

/// The answer of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderReply {
    /// Whether descriptors follow.
    pub verdict: JoinVerdict,
    /// Where the partitions lie.
    pub shape: PartitionShape,
    /// When pages are allocated, and which ranks may write to them.
    pub policy: Policy,
}

impl Hello {
    /// The hello of this rank.
    pub fn of(meeting: &Meeting<'_>) -> Self {
        Self {
            layout: ControlBlock::layout(),
            job: digest(meeting.job),
            node: meeting.node.0,
            rank: meeting.local,
            size: meeting.size,
        }
    }

    /// The verdict of a leader with the hello `own` on this hello.
    pub fn compare(&self, own: &Self) -> JoinVerdict {
        match self {
            _ if self.layout != own.layout => JoinVerdict::Build,
            _ if (self.job, self.node) != (own.job, own.node) => JoinVerdict::Job,
            _ if self.size != own.size || self.rank.0 >= own.size => JoinVerdict::Size,
            _ => JoinVerdict::Welcome,
        }
    }

    pub fn send(&self, stream: &UnixStream) -> Result<()> {
        let rank_and_size = u64::from(self.rank.0) << 32 | u64::from(self.size);
        let words = [MAGIC, self.layout, self.job, self.node, rank_and_size];
        send_all(stream, &words.map(u64::to_ne_bytes).concat())
    }

    pub fn receive(mut stream: &UnixStream) -> Result<Self> {
        let mut words = [0; 5];
        for word in &mut words {
            *word = receive_word(&mut stream)?;
        }
        let [magic, layout, job, node, rank_and_size] = words;
        if magic != MAGIC {
            return Err(ErrorKind::InvalidData.into());
        }
        let rank = LocalRank((rank_and_size >> 32) as u32);
        Ok(Self { layout, job, node, rank, size: rank_and_size as u32 })
    }
}

impl LeaderReply {
    /// Whether there are files of huge pages.
    pub fn has_huge(&self) -> bool {
        self.policy.huge_pages == HugePages::Reserved
    }

    pub fn send(&self, stream: &UnixStream) -> Result<()> {
        let mut text = self.shape.to_text();
        for (name, value) in self.policy.variables() {
            text += &format!("\n{name}={value}");
        }
        let head = [MAGIC, (self.verdict as u64) << 32 | text.len() as u64];
        send_all(stream, &[&head.map(u64::to_ne_bytes).concat(), text.as_bytes()].concat())
    }

    pub fn receive(mut stream: &UnixStream) -> Result<Self> {
        let bad = || Error::from(ErrorKind::InvalidData);
        let (magic, word) = (receive_word(&mut stream)?, receive_word(&mut stream)?);
        let bytes = word as u32 as usize;
        if magic != MAGIC || bytes > TEXT_BYTES_MAX {
            return Err(bad());
        }
        let verdicts = [
            JoinVerdict::Welcome,
            JoinVerdict::Build,
            JoinVerdict::Job,
            JoinVerdict::Size,
            JoinVerdict::Taken,
        ];
        let verdict = *verdicts.get((word >> 32) as usize).ok_or_else(bad)?;
        let mut text = vec![0; bytes];
        stream.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(|_| bad())?;
        let (shape, policy) = text.split_once('\n').ok_or_else(bad)?;
        let lookup = |name: &str| {
            let mut lines = policy.lines().filter_map(|line| line.split_once('='));
            lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        let policy = SpaceConfig::from_lookup(lookup).map_err(|_| bad())?.policy;
        Ok(Self { verdict, shape: PartitionShape::from_text(shape).ok_or_else(bad)?, policy })
    }
}

/// Sends without the signal (SIGPIPE) that the writer of a broken socket gets.
fn send_all(stream: &UnixStream, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let sent = sys::send_fds(stream.as_fd(), bytes, &[])?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

fn receive_word(stream: &mut &UnixStream) -> Result<u64> {
    let mut word = [0; 8];
    stream.read_exact(&mut word)?;
    Ok(u64::from_ne_bytes(word))
}

const MAGIC: u64 = u64::from_le_bytes(*b"tsumugi\x02");
const TEXT_BYTES_MAX: usize = 4096;
