//! A NIC endpoint over a scripted wire.

pub use super::script::{About, Call, Line, Placed, Script};
use crate::net::card::{CardEndpoint, EndpointCard};
use crate::net::memory::Listing;
use crate::net::nic_endpoint::{CardSource, DomainShared, Limits, LostRank, NicEndpoint, Sizes};
use crate::net::packet::{Arrival, PacketError};
use crate::net::secret_rng::SecretRng;
use crate::net::wire::{CompletionEntry, CompletionStatus, RemoteBuffer, ShutOut, WireKey};
use core::ffi::c_int;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock};
use tsumugi_core::backend::Completion;
use tsumugi_core::boot::BootError;
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::mem::{
    Access, AddrError, LocalAddr, Rank, Region, RegionKey, RegionTable, RemoteAddr,
};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU32, AtomicU64, AtomicUsize};
use tsumugi_core::tag::Tag;

/// The NIC endpoint, the shared data of its rank, and its wire.
pub struct Net {
    pub nic: NicEndpoint<Script>,
    pub shared: DomainShared,
    pub wire: Script,
}

impl Net {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Limits)) -> Self {
        Self::sized(DEPTH, change)
    }

    pub fn sized(depth: usize, change: impl FnOnce(&mut Limits)) -> Self {
        let wire = Script::default();
        let nic = nic(&wire, depth, 0, change);
        Self { nic, shared: shared(), wire }
    }

    pub fn line(&self) -> MutexGuard<'_, Line> {
        self.wire.line()
    }

    /// The calls since the previous query.
    pub fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.line().calls)
    }

    /// The only call since the previous query.
    pub fn call(&self) -> Call {
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    /// Posts that the wire has refused.
    pub fn refused(&self) -> usize {
        self.line().refused
    }

    /// Buffers for packets that the wire has.
    pub fn receives(&self) -> usize {
        self.line().receives.len()
    }

    /// Each registration: its start, its bytes, what peers may do, its key.
    pub fn registered(&self) -> Vec<(usize, u64, Access, u64)> {
        self.line().registered.clone()
    }

    /// The registrations that were ended.
    pub fn closed(&self) -> Vec<u64> {
        self.line().closed.clone()
    }

    /// The local end of a request that is under way.
    pub fn local(&self, context: usize) -> Placed {
        self.line().locals[&context]
    }

    /// Sets the answers to the next posts: these errors.
    pub fn refuse(&self, codes: &[c_int]) {
        self.line().answers.extend(codes.iter().map(|code| -code));
    }

    pub fn ends(&self, context: usize, end: CompletionStatus) {
        self.line().entries.push_back(CompletionEntry { context, end });
    }

    pub fn done(&self, context: usize) {
        self.ends(context, CompletionStatus::Done(0));
    }

    /// Puts the peer's region into the cache.
    pub fn knows(&mut self, rank: Rank, listing: &Listing) {
        let peer = self.nic.peer(&self.shared, rank).unwrap().unwrap();
        let key = MAPPED + listing.raw.words[0];
        self.nic.cache.add(rank, listing, peer.addr, key);
    }

    pub fn post(&mut self, ops: &[Op]) -> usize {
        self.nic.end_lost_ops(&self.shared);
        self.nic.post(&self.shared, ops)
    }

    /// Polls once.
    pub fn poll(&mut self) -> Vec<(u64, Result<u64, AddrError>)> {
        self.nic.end_lost_ops(&self.shared);
        let mut done = [Completion::EMPTY; 64];
        let count = self.nic.poll(&self.shared, &mut done);
        done[..count].iter().map(|done| (done.tag.to_bits(), done.result)).collect()
    }

    pub fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<(), PacketError> {
        self.nic.try_send(&self.shared, to, bytes)
    }

    /// The arrivals as text, and their number.
    pub fn receive(&mut self) -> (usize, Vec<String>) {
        let mut arrived = Vec::new();
        let count = self.nic.receive(&self.shared, &mut |arrival| {
            arrived.push(match arrival {
                Arrival::Notified(at) => format!("bell {} {}", at.key.to_bits(), at.offset),
                Arrival::Packet { from, bytes } => {
                    format!("{} of {}", String::from_utf8_lossy(bytes), from.0)
                }
            });
        });
        (count, arrived)
    }

    /// Lets a packet land in the first of the wire's receive buffers.
    pub fn lands(&self, bytes: &[u8]) {
        let context = self.line().receives.remove(0);
        self.write(context, bytes);
        self.ends(context, CompletionStatus::Done(bytes.len()));
    }

    /// Writes to the address of a post.
    pub fn write(&self, context: usize, bytes: &[u8]) {
        let at = self.line().locals[&context].at as *mut u8;
        // SAFETY: the wire was given as many bytes there for a post that is
        // under way.
        unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Lets the read of a directory slot end with this listing.
    pub fn answer_read(&self, context: usize, listing: Option<&Listing>) {
        let words = Listing::encode(listing);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(context, &bytes);
        self.done(context);
    }

    /// Registers memory of this rank at an odd address.
    pub fn own(&mut self, bytes: usize, access: Access) -> Region {
        let memory = (0..=bytes).map(|at| at.wrapping_sub(1) as u8).collect::<Vec<u8>>().leak();
        let base = NonNull::from(&mut memory[1..]).cast();
        // SAFETY: leaked, and used as nothing but bytes.
        let region = unsafe { self.shared.table.register(base, bytes as u64, access) }.unwrap();
        // SAFETY: the same.
        unsafe { self.nic.register(region.key, base, bytes as u64, access) }.unwrap();
        region
    }

    pub fn mark_dead(&mut self, rank: Rank) {
        let mut lost = self.shared.lost.lock().unwrap();
        lost.push(LostRank { rank, shut_out: ShutOut::Rank });
        *self.shared.lost_count.get_mut() = lost.len();
    }
}

/// Makes a separate NIC endpoint over this wire.
pub fn nic(
    wire: &Script,
    depth: usize,
    index: usize,
    change: impl FnOnce(&mut Limits),
) -> NicEndpoint<Script> {
    let mut limits = Limits {
        inject_bytes: 0,
        inject_packet_bytes: 0,
        piece_bytes_max: u64::MAX,
        more: false,
        rings: false,
        one_by_one: false,
        word_atomics: true,
        local_mr: false,
        key_bytes: 8,
    };
    change(&mut limits);
    let sizes = Sizes { depth, packets: PACKETS, packet_bytes: PACKET_BYTES };
    NicEndpoint::open(wire.clone(), sizes, index, limits, SecretRng::new(1)).unwrap()
}

pub fn shared() -> DomainShared {
    let shared = DomainShared {
        rank: Rank(0),
        size: SIZE,
        job: AtomicU64::new(JOB),
        table: Box::new(RegionTable::new()),
        own: OnceLock::from(card(0)),
        cards: OnceLock::new(),
        lost: Mutex::default(),
        lost_count: AtomicUsize::new(0),
        kept: AtomicU32::new(0),
    };
    let cards: Box<CardSource> = Box::new(|rank, into| {
        let bytes = card(rank.0 as u8).to_bytes();
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok::<_, BootError>(Some(bytes.len()))
    });
    assert!(shared.cards.set(cards).is_ok());
    shared
}

/// The card of a rank; the rank's number determines its address and its directory.
pub fn card(rank: u8) -> EndpointCard {
    let place = CardEndpoint {
        address: vec![rank; 8],
        origin: origin(Rank(rank.into())),
        key: WireKey::of(u64::from(rank)),
    };
    EndpointCard { job: JOB, kind: 3, name: Excerpt::new("a script"), endpoints: vec![place] }
}

/// The address of a rank's directory.
pub fn origin(rank: Rank) -> u64 {
    0x100_0000 * u64::from(rank.0 + 1)
}

/// A region of 64 bytes at 0x8000 of a peer, with the device key 50.
pub fn listing(slot: usize) -> Listing {
    Listing {
        key: RegionKey::new(slot, 1),
        access: Access::ReadWrite as u32,
        bytes: 64,
        origin: 0x8000,
        skew: 0,
        raw: WireKey::of(50),
    }
}

/// An address in that region of the peer.
pub fn at(slot: usize, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: PEER, key: RegionKey::new(slot, 1), offset }
}

/// The same address in the form that the wire gets.
pub fn remote(offset: u64) -> RemoteBuffer {
    RemoteBuffer { peer: 100 + u64::from(PEER.0), addr: 0x8000 + offset, key: MAPPED + 50 }
}

pub fn local(region: &Region, offset: u64) -> LocalAddr {
    LocalAddr { key: region.key, offset }
}

pub fn tag(bits: u64) -> Tag {
    Tag::from_bits(bits)
}

pub const PEER: Rank = Rank(1);
pub const OTHER: Rank = Rank(2);
pub const SIZE: u32 = 4;
pub const JOB: u64 = 7;
pub const DEPTH: usize = 4;
pub const PACKETS: usize = 4;
pub const PACKET_BYTES: usize = 64;
/// The wire adds this number to a key when it maps it.
pub const MAPPED: u64 = 1000;
/// The contexts of operations come first, then those of directory reads, then those of
/// outgoing packets.
pub const FIRST_READ: usize = DEPTH;
pub const FIRST_SEND: usize = DEPTH + 16;
pub const FIRST_RECEIVE: usize = DEPTH + 16 + PACKETS;
