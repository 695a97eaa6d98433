//! A wire that a test scripts.
//!
//! ```text
//!  test ─► Net ─► NicEndpoint ─► Script ─► Line: the calls, in order
//!    └── answers, completions ──────────▲
//! ```

use super::fixture::{MAPPED, PACKET_BYTES};
use crate::net::wire::{
    CompletionEntry, ENTRIES_MAX, LocalBuffer, Mr, NetWire, PostResult, RemoteBuffer, ShutOut,
    WireKey, WordBuffers,
};
use core::ffi::{c_int, c_void};
use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard};
use tsumugi_core::mem::{Access, Rank};
use tsumugi_core::op::{Kind, Op};

/// A call that a wire has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Put {
        bytes: Vec<u8>,
        remote: RemoteBuffer,
        context: usize,
        more: bool,
        inject: bool,
    },
    Ringing {
        bytes: Vec<u8>,
        remote: RemoteBuffer,
        context: usize,
        number: u32,
    },
    Get {
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        more: bool,
    },
    Word {
        kind: Kind,
        operand: u64,
        compare: u64,
        remote: RemoteBuffer,
        context: usize,
        atomics: bool,
    },
    Send {
        bytes: Vec<u8>,
        peer: u64,
        context: usize,
    },
    Give {
        bytes: Vec<u8>,
        peer: u64,
    },
}

/// The data that a test and its wire share.
#[derive(Debug, Default)]
pub struct Line {
    pub calls: Vec<Call>,
    /// Posts that were refused.
    pub refused: usize,
    /// Answers to the next posts; then 0.
    pub answers: VecDeque<c_int>,
    /// Contexts of the buffers for packets that it has.
    pub receives: Vec<usize>,
    /// Receive buffers that the wire takes before it refuses one; `None`: any number.
    pub receives_left: Option<usize>,
    pub entries: VecDeque<CompletionEntry>,
    /// Whether it returns one completion at a time.
    pub is_slow: bool,
    /// An error that takes the place of the next completions.
    pub broken: Option<c_int>,
    /// The local addresses that the wire may access, by context.
    pub locals: BTreeMap<usize, Placed>,
    pub doorbells: usize,
    pub waits: bool,
    pub insert_refused: Option<c_int>,
    pub map_refused: Option<c_int>,
    /// Registrations that the wire takes before it refuses one; `None`: any number.
    pub registers_left: Option<usize>,
    /// The keys that are mapped, and those that were released.
    pub mapped: Vec<(u64, u64)>,
    pub unmapped: Vec<u64>,
    pub removed: Vec<(u64, ShutOut)>,
    /// Whether packets can still be sent to lost ranks.
    pub is_way_open: bool,
    /// Notices that were sent beside the packets; `None`: the wire cannot do that.
    pub notices_sent: Option<Vec<(Vec<u8>, u64)>>,
    /// Notices that have come beside the packets.
    pub notices: VecDeque<Vec<u8>>,
    pub registered: Vec<(usize, u64, Access, u64)>,
    pub closed: Vec<u64>,
    pub shut: Option<Vec<u64>>,
    pub job: Option<u64>,
    pub event: Option<RawFd>,
    pub address_refused: Option<c_int>,
}

/// Memory that the wire was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub at: usize,
    pub desc: usize,
}

/// The wire.
#[derive(Clone, Debug, Default)]
pub struct Script(pub Arc<Mutex<Line>>);

/// The description of the wire.
#[derive(Debug)]
pub struct About;

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by a script")
    }
}

impl Script {
    pub fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap()
    }

    fn post(&self, call: impl FnOnce() -> Call, local: Option<(usize, LocalBuffer)>) -> PostResult {
        let mut line = self.line();
        let answer = line.answers.pop_front().unwrap_or(0);
        if answer == 0 {
            line.calls.push(call());
            if let Some((context, local)) = local {
                let placed = Placed { at: local.at as usize, desc: local.desc as usize };
                line.locals.insert(context, placed);
            }
        } else {
            line.refused += 1;
        }
        answer as PostResult
    }
}

/// # Safety
///
/// `local` is valid for `bytes` bytes.
unsafe fn read(local: LocalBuffer, bytes: usize) -> Vec<u8> {
    // SAFETY: the caller's.
    unsafe { core::slice::from_raw_parts(local.at, bytes) }.to_vec()
}

/// # Safety
///
/// `local` is a word of `bytes` bytes.
unsafe fn read_word(local: LocalBuffer, bytes: usize) -> u64 {
    let mut word = [0; 8];
    // SAFETY: the caller's.
    word[..bytes].copy_from_slice(&unsafe { read(local, bytes) });
    u64::from_le_bytes(word)
}

impl NetWire for Script {
    const NAME: &'static str = "script";
    const MEETS_UNKNOWN: bool = true;
    type Description = About;

    fn event(&self) -> Option<RawFd> {
        self.line().event
    }

    fn try_wait(&mut self) -> bool {
        self.line().waits
    }

    fn address(&self) -> Result<Vec<u8>, c_int> {
        self.line().address_refused.map_or(Ok(vec![0; 8]), Err)
    }

    fn insert(&mut self, _: Rank, address: &[u8]) -> Result<u64, c_int> {
        self.line().insert_refused.map_or(Ok(100 + u64::from(address[0])), Err)
    }

    fn remove(&mut self, peer: u64, shut_out: ShutOut) -> Option<u64> {
        let mut line = self.line();
        line.removed.push((peer, shut_out));
        line.is_way_open.then_some(peer)
    }

    fn send_notice(&mut self, bytes: &[u8], peer: u64) -> bool {
        let mut line = self.line();
        let Some(sent) = &mut line.notices_sent else { return false };
        sent.push((bytes.to_vec(), peer));
        true
    }

    fn take_notice(&mut self, into: &mut [u8]) -> Option<usize> {
        let notice = self.line().notices.pop_front()?;
        let length = notice.len().min(into.len());
        into[..length].copy_from_slice(&notice[..length]);
        Some(length)
    }

    unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: Access,
        key: u64,
    ) -> Result<Mr, c_int> {
        let mut line = self.line();
        if let Some(left) = &mut line.registers_left {
            *left = left.checked_sub(1).ok_or(libc::ENOMEM)?;
        }
        line.registered.push((base as usize, bytes, access, key));
        // A registration is named by its index.
        let desc = line.registered.len() as *mut c_void;
        Ok(Mr { raw: desc, desc, key: WireKey::of(key), origin: base as u64 })
    }

    fn close_mr(&mut self, mr: &Mr) {
        self.line().closed.push(mr.raw as u64);
    }

    fn map_key(&mut self, key: &WireKey, origin: u64) -> Result<u64, c_int> {
        let mut line = self.line();
        if let Some(code) = line.map_refused {
            return Err(code);
        }
        line.mapped.push((key.words[0], origin));
        Ok(MAPPED + key.words[0])
    }

    fn unmap_key(&mut self, key: u64) {
        self.line().unmapped.push(key);
    }

    unsafe fn put(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        more: bool,
        inject: bool,
    ) -> PostResult {
        // SAFETY: the caller's.
        let bytes = unsafe { read(local, bytes) };
        self.post(|| Call::Put { bytes, remote, context, more, inject }, Some((context, local)))
    }

    unsafe fn put_with_immediate(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        number: u32,
    ) -> PostResult {
        // SAFETY: the caller's.
        let bytes = unsafe { read(local, bytes) };
        self.post(|| Call::Ringing { bytes, remote, context, number }, Some((context, local)))
    }

    unsafe fn get(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        more: bool,
    ) -> PostResult {
        self.post(|| Call::Get { bytes, remote, context, more }, Some((context, local)))
    }

    unsafe fn word(
        &mut self,
        op: &Op,
        locals: WordBuffers,
        remote: RemoteBuffer,
        context: usize,
        atomics: bool,
    ) -> PostResult {
        let width = op.bytes() as usize;
        // SAFETY: the caller's: words of the operation.
        let (operand, compare) =
            unsafe { (read_word(locals.operand, width), read_word(locals.compare, width)) };
        let compare = if op.kind == Kind::CompareSwap { compare } else { 0 };
        let call = || Call::Word { kind: op.kind, operand, compare, remote, context, atomics };
        self.post(call, Some((context, locals.result)))
    }

    unsafe fn send(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        peer: u64,
        context: usize,
    ) -> PostResult {
        // SAFETY: the caller's.
        let bytes = unsafe { read(local, bytes) };
        self.post(|| Call::Send { bytes, peer, context }, Some((context, local)))
    }

    fn inject_packet(&mut self, bytes: &[u8], peer: u64) -> PostResult {
        self.post(|| Call::Give { bytes: bytes.to_vec(), peer }, None)
    }

    unsafe fn receive(&mut self, local: LocalBuffer, bytes: usize, context: usize) -> PostResult {
        assert_eq!(bytes, PACKET_BYTES);
        let mut line = self.line();
        if let Some(left) = &mut line.receives_left {
            let Some(fewer) = left.checked_sub(1) else { return -libc::EAGAIN as PostResult };
            *left = fewer;
        }
        line.receives.push(context);
        line.locals.insert(context, Placed { at: local.at as usize, desc: local.desc as usize });
        0
    }

    fn join(&mut self, job: u64) {
        self.line().job = Some(job);
    }

    fn ring_doorbell(&mut self) {
        self.line().doorbells += 1;
    }

    fn completions(
        &mut self,
        entries: &mut [CompletionEntry; ENTRIES_MAX],
    ) -> Result<usize, c_int> {
        let mut line = self.line();
        if let Some(code) = line.broken.take() {
            return Err(code);
        }
        let most = if line.is_slow { 1 } else { ENTRIES_MAX };
        let count = line.entries.len().min(most);
        for entry in &mut entries[..count] {
            *entry = line.entries.pop_front().expect("as many were counted");
        }
        Ok(count)
    }

    fn shut(&mut self, mrs: impl Iterator<Item = Mr>) {
        self.line().shut = Some(mrs.map(|mr| mr.raw as u64).collect());
    }
}
