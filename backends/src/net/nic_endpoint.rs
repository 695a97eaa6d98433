//! A NIC endpoint, which is one network endpoint with all its parts: a wire, registered
//! memory of its own, and the operations in flight.
//!
//! A NIC endpoint outlives the endpoint that used it, so that operations that are still
//! in flight have valid memory. The wire is closed before this memory is freed.

use super::card::EndpointCard;
use super::failure::DeviceFailures;
use super::in_flight::InFlightOp;
use super::memory::{Directory, Listing, REGIONS_MAX, RegionCache, SLOT_BYTES};
use super::packet::{PACKET_TABLES_BYTES, Packets};
use super::scratch::{READS_MAX, Scratch, ZeroedPages};
use super::secret_rng::{DeviceKeys, SecretRng};
use super::wire::{CompletionEntry, ENTRIES_MAX, LocalBuffer, Mr, NetWire, ShutOut, WireKey};
use core::ffi::c_int;
use core::fmt;
use core::ptr::NonNull;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;
use tsumugi_core::backend::Completion;
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::mem::{
    Access, AddrError, LocalAddr, Need, Rank, RegionKey, RegionTable, RemoteAddr,
};
use tsumugi_core::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Copies a rank's card into the buffer and returns its length; `None`: the card
/// has been requested.
pub type CardSource =
    dyn Fn(Rank, &mut [u8; CARD_BYTES_MAX]) -> Result<Option<usize>, BootError> + Send + Sync;

/// The data that the NIC endpoints of a rank share.
pub(super) struct DomainShared {
    pub rank: Rank,
    pub size: u32,
    /// The job number with which packets begin.
    pub job: AtomicU64,
    pub table: Box<RegionTable<REGIONS_MAX>>,
    pub own: OnceLock<EndpointCard>,
    pub cards: OnceLock<Box<CardSource>>,
    pub lost: Mutex<Vec<LostRank>>,
    pub lost_count: AtomicUsize,
    /// The key of the region that is kept for gets from lost ranks; 0: none.
    pub kept: AtomicU32,
}

/// One network endpoint with all its parts; see the module.
pub struct NicEndpoint<W: NetWire> {
    pub(crate) wire: W,
    pub(super) index: usize,
    pub(super) limits: Limits,
    /// The generator of the devices' keys.
    keys: DeviceKeys,
    pub(super) directory: Directory,
    directory_mr: Option<Mr>,
    pub(super) cache: RegionCache,
    pub(super) peers: BTreeMap<u32, NicPeer>,
    pub(super) opened: Instant,
    /// The ranks that could not be reached yet, and when to try again.
    pub(super) backoffs: Vec<(Rank, Instant)>,
    pub(super) flights: Vec<InFlightOp>,
    pub(super) free: Vec<u32>,
    /// Operations that must be posted when there is room, or when their region is
    /// known.
    pub(super) later: VecDeque<u32>,
    /// Operations that have ended and have not been polled yet.
    pub(super) ready: VecDeque<Completion>,
    pub(super) reads: [Option<SlotRead>; READS_MAX],
    pub(super) serial: u64,
    /// The number of operations and directory reads that the device has.
    pub(super) posted: usize,
    pub(super) packets: Packets,
    pub(super) failures: DeviceFailures,
    lost_seen: usize,
    /// The buffer for completions.
    pub(super) entries: [CompletionEntry; ENTRIES_MAX],
    scratch_mr: Option<Mr>,
    pub(super) scratch: Scratch,
    _directory_memory: ZeroedPages,
}

/// How the data path uses this provider, as the probe found out.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Puts of up to this many bytes are injected.
    pub inject_bytes: u64,
    /// Packets of up to this many bytes are injected.
    pub inject_packet_bytes: usize,
    /// Longer puts and gets go in pieces of this size.
    pub piece_bytes_max: u64,
    /// Whether the library is told that a further request follows at once.
    pub more: bool,
    /// Whether a put can notify its target by itself.
    pub rings: bool,
    /// Whether only one request of any kind may be in flight at a time.
    pub one_by_one: bool,
    /// Whether a put and a get of a word must be atomics, so that they do not tear.
    pub word_atomics: bool,
    /// Whether the device reads and writes registered memory only, also the rank's own.
    pub local_mr: bool,
    /// The bytes of a key that the rank chooses for its memory.
    pub key_bytes: usize,
}

/// The sizes of a NIC endpoint's tables.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The number of operations in flight.
    pub depth: usize,
    /// The number of packets, each way.
    pub packets: usize,
    /// The bytes of the longest packet, its header included.
    pub packet_bytes: usize,
}

/// The bytes of the tables of a rank with one NIC endpoint, without the library's own
/// memory.
pub const fn footprint_of(sizes: Sizes) -> usize {
    let Sizes { depth, packets, packet_bytes } = sizes;
    let directory = Directory::BYTES + Directory::MRS_BYTES;
    let regions = size_of::<RegionTable<REGIONS_MAX>>() + directory + RegionCache::BYTES;
    let entries = ENTRIES_MAX * size_of::<CompletionEntry>();
    let reads = READS_MAX * (size_of::<Option<SlotRead>>() + SLOT_BYTES);
    let packets = packets * (2 * packet_bytes + PACKET_TABLES_BYTES);
    regions + entries + reads + depth * (size_of::<InFlightOp>() + 64) + packets
}

/// A rank that was declared dead.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostRank {
    pub rank: Rank,
    pub shut_out: ShutOut,
}

/// A peer that the NIC endpoint knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct NicPeer {
    pub addr: u64,
    pub origin: u64,
    pub key: u64,
    /// The time of the first contact: milliseconds of the NIC endpoint's life, which
    /// wrap.
    pub contacted_ms: u32,
    /// The number of injected packets since the last packet with a completion.
    pub injected: u16,
    pub lost: bool,
}

/// The bytes that a rank keeps for each peer that it has communicated with by one
/// endpoint, without the library's own memory. A B-tree is at least half full.
pub const PEER_BYTES: usize = 2 * (size_of::<u32>() + size_of::<NicPeer>());

/// A directory slot that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotRead {
    pub rank: Rank,
    pub slot: usize,
    pub serial: u64,
    pub tries: u32,
    /// Whether the read is counted in the NIC endpoint's `posted`.
    pub counted: bool,
}

impl<W: NetWire> fmt::Debug for NicEndpoint<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NicEndpoint({} {})", W::NAME, self.index)
    }
}

// SAFETY: the pointers point into memory that the NIC endpoint owns.
unsafe impl<W: NetWire> Send for NicEndpoint<W> {}

impl<W: NetWire> NicEndpoint<W> {
    /// Opens a NIC endpoint over `wire`, which must have
    /// [`contexts_of`](super::contexts_of) the sizes.
    ///
    /// # Errors
    ///
    /// The library's error, if memory cannot be registered.
    pub fn open(
        mut wire: W,
        sizes: Sizes,
        index: usize,
        limits: Limits,
        rng: SecretRng,
    ) -> Result<Self, c_int> {
        let Sizes { depth, packets, packet_bytes } = sizes;
        let scratch = Scratch::new(depth, packets, packet_bytes);
        let directory_memory = ZeroedPages::new(Directory::BYTES);
        // SAFETY: as many bytes, which the NIC endpoint keeps until the wire is closed.
        let directory = unsafe { Directory::new(directory_memory.base) };
        let base = directory_memory.base.as_ptr();
        let mut keys = DeviceKeys::new(rng, limits.key_bytes);
        let key = keys.draw(DIRECTORY_KEY);
        // SAFETY: as above; peers only read it.
        let directory_mr =
            unsafe { wire.register(base, Directory::BYTES as u64, Access::Read, key)? };
        let mut nic = Self {
            wire,
            index,
            limits,
            keys,
            directory,
            directory_mr: Some(directory_mr),
            cache: RegionCache::new(),
            peers: BTreeMap::new(),
            opened: Instant::now(),
            backoffs: Vec::new(),
            flights: (0..depth).map(|_| InFlightOp::NONE).collect(),
            free: (0..depth as u32).rev().collect(),
            later: VecDeque::with_capacity(depth),
            ready: VecDeque::with_capacity(depth),
            reads: [None; READS_MAX],
            serial: 0,
            posted: 0,
            packets: Packets::new(packets),
            failures: DeviceFailures::default(),
            lost_seen: 0,
            entries: [CompletionEntry::EMPTY; ENTRIES_MAX],
            scratch_mr: None,
            scratch,
            _directory_memory: directory_memory,
        };
        if limits.local_mr {
            let (base, bytes) = (nic.scratch.memory.base.as_ptr(), nic.scratch.memory.layout);
            let bytes = bytes.size() as u64;
            let key = nic.keys.draw(SCRATCH_KEY);
            // SAFETY: the memory is the NIC endpoint's own, which it keeps until the wire
            // is closed.
            let mr = unsafe { nic.wire.register(base, bytes, Access::Local, key)? };
            nic.scratch.desc = mr.desc;
            nic.scratch_mr = Some(mr);
        }
        nic.open_receives();
        Ok(nic)
    }

    /// Where the directory is, for the card.
    pub(super) fn directory_place(&self) -> (u64, WireKey) {
        let mr = self
            .directory_mr
            .as_ref()
            .expect("the directory is registered until the NIC endpoint is dropped");
        (mr.origin, mr.key)
    }

    /// Registers a region with this NIC endpoint's device.
    ///
    /// # Safety
    ///
    /// That of [`RegionTable::register`].
    pub(super) unsafe fn register(
        &mut self,
        key: RegionKey,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<(), c_int> {
        if access == Access::Local && (!self.limits.local_mr || bytes == 0) {
            return Ok(());
        }
        // Peers read this key in the directory; no other program knows it.
        let device_key = match self.limits.key_bytes {
            4.. => self.keys.draw(u64::from(key.to_bits())),
            // The slot alone; a stale key is then detected through the directory.
            _ => key.index() as u64 + KEYS_OWN,
        };
        // SAFETY: the caller keeps the contract of `register`.
        let mr = unsafe { self.wire.register(base.as_ptr(), bytes.max(1), access, device_key)? };
        let listing = Listing {
            key,
            access: access as u32,
            bytes,
            origin: mr.origin,
            skew: base.as_ptr() as u64 & 63,
            raw: mr.key,
        };
        let shown = (access != Access::Local).then_some(&listing);
        self.directory.publish(key.index(), shown, Some(mr));
        Ok(())
    }

    /// Ends a registration.
    pub(super) fn unregister(&mut self, key: RegionKey) {
        if let Some(mr) = self.directory.retract(key.index()) {
            self.wire.close_mr(&mr);
        }
    }

    /// The local end of a transfer.
    #[inline]
    pub(super) fn local(
        &self,
        shared: &DomainShared,
        addr: LocalAddr,
        bytes: u64,
    ) -> Result<LocalBuffer, AddrError> {
        let place = RemoteAddr { rank: shared.rank, key: addr.key, offset: addr.offset };
        let at = shared.table.resolve(place, bytes, Need::Local)?.as_ptr();
        let desc = match self.directory.mr(addr.key.index()) {
            Some(mr) => mr.desc,
            None => core::ptr::null_mut(),
        };
        Ok(LocalBuffer { at, desc })
    }

    /// Ends the operations to ranks that were declared dead meanwhile.
    #[inline]
    pub(super) fn end_lost_ops(&mut self, shared: &DomainShared) {
        // Acquire: pairs with the Release in `NetDomain::mark_dead`.
        if shared.lost_count.load(Ordering::Acquire) != self.lost_seen {
            self.end_new_losses(shared);
        }
    }

    #[cold]
    fn end_new_losses(&mut self, shared: &DomainShared) {
        let lost: Vec<LostRank> = {
            let all = shared.lost.lock().expect("no thread panics while it holds this lock");
            let new = all[self.lost_seen..].to_vec();
            self.lost_seen = all.len();
            new
        };
        if W::MEETS_UNKNOWN {
            // All of them are known before the first one is removed, because ranks of
            // one host are removed together.
            for LostRank { rank, shut_out } in &lost {
                if *shut_out != ShutOut::Rank && !self.peers.contains_key(&rank.0) {
                    // Without its card it stays unknown.
                    let _ = self.make_contact(shared, *rank);
                }
            }
        }
        for LostRank { rank, shut_out } in lost {
            let contacted_ms = self.age();
            let known = self.peers.get(&rank.0).filter(|peer| !peer.lost);
            let way = known.and_then(|peer| self.wire.remove(peer.addr, shut_out));
            let addr = way.unwrap_or(NO_ADDRESS);
            let gone = NicPeer { addr, origin: 0, key: 0, lost: true, injected: 0, contacted_ms };
            self.peers.insert(rank.0, gone);
            for key in self.cache.forget(|known| known.rank == rank) {
                self.wire.unmap_key(key);
            }
            self.abandon(shared, rank);
        }
    }
}

impl<W: NetWire> Drop for NicEndpoint<W> {
    fn drop(&mut self) {
        let mrs = self.directory.take_all();
        let own = self.directory_mr.take().into_iter().chain(self.scratch_mr.take());
        self.wire.shut(mrs.chain(own));
    }
}

/// Takes the place of the address of a peer that cannot be reached any more.
pub(super) const NO_ADDRESS: u64 = u64::MAX;
/// Keys below this one are the NIC endpoint's own; regions have larger ones.
const KEYS_OWN: u64 = 16;
const DIRECTORY_KEY: u64 = 1;
const SCRATCH_KEY: u64 = 2;
