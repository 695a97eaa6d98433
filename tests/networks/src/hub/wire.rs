//! The wire of one endpoint on the hub.

use super::network::{FaultPlan, Hub};
use super::station::{Registered, Station, lock};
use core::ffi::c_int;
use core::fmt;
use core::ptr::NonNull;
use libc::{EACCES, EAGAIN, EHOSTUNREACH, EINPROGRESS, ENOTCONN};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};
use tsumugi_backends::net::{
    CompletionEntry, CompletionStatus, ENTRIES_MAX, LocalBuffer, Mr, NetWire, PostResult,
    RemoteBuffer, ShutOut, WireKey, WordBuffers,
};
use tsumugi_core::backend::{LoadStore, copy_bytes, execute};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Need, Rank, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::random::SplitMix64;
use tsumugi_core::sync::{AtomicBool, Ordering};

/// The wire of one endpoint.
pub struct HubWire {
    hub: Hub,
    own: Arc<Station>,
    address: u64,
    /// Whether only one operation or packet is in flight at a time, as with some
    /// libraries.
    one_by_one: bool,
    under_way: Vec<Travel>,
    ended: VecDeque<CompletionEntry>,
    receives: VecDeque<(*mut u8, usize, usize)>,
    plan: FaultPlan,
    draw: SplitMix64,
    changes: u64,
    polls: u64,
}

struct Travel {
    what: Load,
    remote: RemoteBuffer,
    context: usize,
    due: u64,
}

enum Load {
    Put { from: *const u8, bytes: usize },
    Get { into: *mut u8, bytes: usize },
    Word { op: Op, result: *mut u8 },
    Packet(Vec<u8>),
}

// SAFETY: the pointers point into memory that belongs to the operation until it has
// ended, whichever thread polls.
unsafe impl Send for HubWire {}

/// One address of a peer's memory.
struct Place(usize);

// SAFETY: the code that makes a `Place` has checked as many bytes as it is used
// for.
unsafe impl LoadStore for Place {
    fn size(&self) -> u32 {
        0
    }

    fn resolve(&self, _: RemoteAddr, _: u64, _: Need) -> Result<NonNull<u8>, AddrError> {
        NonNull::new(self.0 as *mut u8).ok_or(AddrError::OtherNode { rank: Rank(0) })
    }

    fn local(&self, _: LocalAddr, _: u64) -> Result<NonNull<u8>, AddrError> {
        unreachable!("only operations on words are carried out here")
    }

    fn notify(&self, _: RemoteAddr, _: NonNull<u8>) {}
}

/// The description of a plug.
#[derive(Debug)]
pub struct HubDescription;

impl HubWire {
    pub(super) fn new(hub: &Hub, contexts: usize, one_by_one: bool) -> Self {
        // SAFETY: a plain call; the descriptor is new, and nothing else owns it.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        assert!(fd >= 0, "the system gave no eventfd: {}", std::io::Error::last_os_error());
        let own = Arc::new(Station {
            regions: Mutex::default(),
            packets: Mutex::default(),
            // SAFETY: as above.
            event: unsafe { OwnedFd::from_raw_fd(fd) },
            is_armed: AtomicBool::new(false),
            has_rung: AtomicBool::new(false),
            is_shut: AtomicBool::new(false),
        });
        let mut stations = hub.stations();
        let address = stations.len() as u64;
        stations.push(own.clone());
        drop(stations);
        let plan = hub.plan();
        Self {
            hub: hub.clone(),
            own,
            address,
            one_by_one,
            under_way: Vec::with_capacity(contexts),
            ended: VecDeque::with_capacity(contexts),
            receives: VecDeque::new(),
            plan,
            draw: SplitMix64::new(plan.seed.wrapping_add(address)),
            changes: 0,
            polls: 0,
        }
    }

    fn begin(&mut self, what: Load, remote: RemoteBuffer, context: usize) -> PostResult {
        assert!(
            !self.one_by_one || self.under_way.is_empty(),
            "a second operation, where one at a time is possible"
        );
        if self.hub.0.is_cut.load(Ordering::Relaxed) {
            return -(EHOSTUNREACH as PostResult);
        }
        let plan = self.plan;
        if self.draw.chance(plan.refuse) {
            let code = if self.draw.chance(200) { EINPROGRESS } else { EAGAIN };
            return -(code as PostResult);
        }
        if self.draw.chance(plan.again) {
            self.ended.push_back(CompletionEntry { context, end: CompletionStatus::Again });
            return 0;
        }
        let is_late = self.draw.chance(plan.late);
        let late = if is_late { self.draw.below(u64::from(plan.late_polls_max) + 1) } else { 0 };
        self.under_way.push(Travel { what, remote, context, due: self.polls + late });
        0
    }

    /// Carries out the operations that are due, beginning at a random one.
    fn carry_out(&mut self) {
        let count = self.under_way.len();
        let start = self.draw.below(count as u64) as usize;
        self.under_way.rotate_left(start);
        let mut rest = Vec::with_capacity(count);
        for travel in std::mem::take(&mut self.under_way) {
            let end = if travel.due <= self.polls { self.arrive(&travel) } else { None };
            match end {
                Some(end) => self.ended.push_back(CompletionEntry { context: travel.context, end }),
                None => rest.push(travel),
            }
        }
        self.under_way = rest;
    }

    /// Carries out one operation; returns how it ended, `None` if it has not ended
    /// yet.
    fn arrive(&self, travel: &Travel) -> Option<CompletionStatus> {
        let RemoteBuffer { peer, addr, key } = travel.remote;
        let station = self.hub.stations().get(peer as usize).cloned();
        let Some(station) = station.filter(|station| !station.is_shut.load(Ordering::Acquire))
        else {
            return Some(CompletionStatus::Gone { code: ENOTCONN, provider_code: 0 });
        };
        if let Load::Packet(bytes) = &travel.what {
            return station.take(bytes).then_some(CompletionStatus::Done(0));
        }
        let (bytes, writes) = match &travel.what {
            Load::Put { bytes, .. } => (*bytes as u64, true),
            Load::Get { bytes, .. } => (*bytes as u64, false),
            Load::Word { op, .. } => (op.bytes(), op.writes()),
            Load::Packet(_) => unreachable!("packets are handled above"),
        };
        // The lock is held meanwhile, so that the registration does not end.
        let regions = lock(&station.regions);
        let is_there = regions.get(&key).is_some_and(|region| {
            let offset = addr.wrapping_sub(region.base);
            let fits = offset <= region.bytes && bytes <= region.bytes - offset;
            fits && (region.access == Access::ReadWrite || !writes)
        });
        let at = NonNull::new(addr as *mut u8).filter(|_| is_there);
        let Some(at) = at else {
            return Some(CompletionStatus::Refused { code: EACCES, provider_code: 0 });
        };
        match travel.what {
            // SAFETY: both ends are valid for this many bytes: registered at the
            // peer, and owned by the operation here. Other threads may read the
            // bytes meanwhile, as they may during the work of a device.
            Load::Put { from, bytes } => unsafe { copy_bytes(from, at.as_ptr(), bytes) },
            // SAFETY: as above.
            Load::Get { into, bytes } => unsafe { copy_bytes(at.as_ptr(), into, bytes) },
            Load::Word { op, result } => {
                let Ok(old) = execute(&Place(addr as usize), &op) else {
                    return Some(CompletionStatus::Refused { code: EACCES, provider_code: 0 });
                };
                // SAFETY: the word belongs to this operation.
                unsafe { result.cast::<u64>().write(old) };
            }
            Load::Packet(_) => unreachable!("packets are handled above"),
        }
        Some(CompletionStatus::Done(0))
    }

    /// Copies packets into the posted receive buffers.
    fn unpack(&mut self) {
        let mut packets = lock(&self.own.packets);
        while !packets.is_empty()
            && let Some((into, room, context)) = self.receives.pop_front()
        {
            let bytes = packets.pop_front().expect("the queue of packets is not empty");
            let count = bytes.len().min(room);
            // SAFETY: a posted buffer of `room` bytes, which is the wire's until
            // its completion.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, count) };
            self.ended.push_back(CompletionEntry { context, end: CompletionStatus::Done(count) });
        }
    }
}

impl NetWire for HubWire {
    const NAME: &'static str = "hub";
    type Description = HubDescription;

    fn event(&self) -> Option<RawFd> {
        Some(self.own.event.as_raw_fd())
    }

    fn try_wait(&mut self) -> bool {
        if !self.under_way.is_empty() || !self.ended.is_empty() {
            return false;
        }
        self.own.is_armed.store(true, Ordering::SeqCst);
        lock(&self.own.packets).is_empty()
    }

    fn address(&self) -> Result<Vec<u8>, c_int> {
        Ok(self.address.to_le_bytes().to_vec())
    }

    fn insert(&mut self, _: Rank, address: &[u8]) -> Result<u64, c_int> {
        address.try_into().map(u64::from_le_bytes).map_err(|_| libc::EINVAL)
    }

    fn remove(&mut self, peer: u64, _: ShutOut) -> Option<u64> {
        Some(peer)
    }

    unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: Access,
        key: u64,
    ) -> Result<Mr, c_int> {
        let origin = base as u64;
        lock(&self.own.regions).insert(key, Registered { base: origin, bytes, access });
        let (raw, desc) = (std::ptr::null_mut(), std::ptr::null_mut());
        Ok(Mr { raw, desc, key: WireKey::of(key), origin })
    }

    fn close_mr(&mut self, mr: &Mr) {
        lock(&self.own.regions).remove(&mr.key.words[0]);
    }

    fn map_key(&mut self, key: &WireKey, _: u64) -> Result<u64, c_int> {
        Ok(key.words[0])
    }

    fn unmap_key(&mut self, _: u64) {}

    unsafe fn put(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        _: bool,
        _: bool,
    ) -> PostResult {
        self.begin(Load::Put { from: local.at, bytes }, remote, context)
    }

    unsafe fn get(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        _: bool,
    ) -> PostResult {
        self.begin(Load::Get { into: local.at, bytes }, remote, context)
    }

    unsafe fn word(
        &mut self,
        op: &Op,
        locals: WordBuffers,
        remote: RemoteBuffer,
        context: usize,
        _: bool,
    ) -> PostResult {
        debug_assert!(
            !matches!(op.kind, Kind::Put | Kind::Get),
            "{op:?} is no operation on a word"
        );
        let mut op = *op;
        op.notify = false;
        self.begin(Load::Word { op, result: locals.result.at }, remote, context)
    }

    unsafe fn send(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        peer: u64,
        context: usize,
    ) -> PostResult {
        // SAFETY: the caller guarantees that `local` is valid for `bytes` bytes.
        let bytes = unsafe { std::slice::from_raw_parts(local.at, bytes) }.to_vec();
        self.begin(Load::Packet(bytes), RemoteBuffer { peer, addr: 0, key: 0 }, context)
    }

    unsafe fn receive(&mut self, local: LocalBuffer, bytes: usize, context: usize) -> PostResult {
        self.receives.push_back((local.at, bytes, context));
        0
    }

    fn completions(
        &mut self,
        entries: &mut [CompletionEntry; ENTRIES_MAX],
    ) -> Result<usize, c_int> {
        self.polls += 1;
        // Acquire: pairs with the Release in `Hub::replan`.
        let changes = self.hub.0.changes.load(Ordering::Acquire);
        if std::mem::replace(&mut self.changes, changes) != changes {
            self.plan = self.hub.plan();
            self.draw = SplitMix64::new(self.plan.seed.wrapping_add(self.address));
        }
        if self.own.has_rung.swap(false, Ordering::SeqCst) {
            let mut count = 0;
            // SAFETY: the station's own descriptor, and 8 bytes.
            unsafe { libc::eventfd_read(self.own.event.as_raw_fd(), &mut count) };
        }
        if !self.under_way.is_empty() {
            self.carry_out();
        }
        self.unpack();
        let count = self.ended.len().min(ENTRIES_MAX);
        entries.iter_mut().zip(self.ended.drain(..count)).for_each(|(to, entry)| *to = entry);
        Ok(count)
    }

    fn shut(&mut self, mrs: impl Iterator<Item = Mr>) {
        // Release: pairs with the Acquire in `arrive`.
        self.own.is_shut.store(true, Ordering::Release);
        mrs.for_each(|mr| self.close_mr(&mr));
        self.under_way.clear();
    }
}

impl fmt::Display for HubDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("inside of this process")
    }
}

impl fmt::Debug for HubWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plug({}, {} under way)", self.address, self.under_way.len())
    }
}
