//! The interface of a NIC endpoint, implemented with libibverbs: requests are written
//! down, linked by peer, and sent with one doorbell for each peer; completions are read.
//!
//! ```text
//!  put, get, word, send ─► requests[context] ─ linked ─► connection.first .. last
//!                                                            │ ring_doorbell
//!                                       ibv_post_send ◄──────┘ one per connection
//!  ibv_poll_cq ─► wr_id = context | generation << 32 ─► CompletionEntry │ a CM message │ stray
//! ```
//!
//! A request has the number of its context, of which one is under way at a time; a
//! generation distinguishes a completion of an earlier request with that context.
//!
//! | file | what is in it |
//! |---|---|
//! | here | the interface of a NIC endpoint |
//! | `requests` | requests that are written down, sent, and completed |
//! | `open`, `queues` | libibverbs' objects, opened and ended |
//! | `active`, `passive`, `cm_handler`, `dci` | connections, made and closed |

mod cm_handler;
mod dci;
mod open;
mod passive;
mod active;
mod queues;
mod request;
mod requests;

use self::request::{NOBODY, SendRequest, rdma};
use super::address::Address;
use super::cm::CmEndpoint;
use super::connection::Connection;
use super::dct::DctTarget;
use super::description::{QpCounters, VerbsDescription};
use super::device::{Facts, VerbsDevice};
use super::pair::QpParams;
use super::passive::PassiveQp;
use super::sys::*;
use crate::net::{
    self, CompletionEntry, ENTRIES_MAX, LocalBuffer, Mr, PostResult, RemoteBuffer, ShutOut,
    WireKey, WordBuffers, ZeroedPages,
};
use core::ffi::c_int;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::null_mut;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use tsumugi_core::mem::{Access, Rank, Width};
use tsumugi_core::op::{Kind, Op};

/// The network wire of one NIC endpoint; see the module.
pub struct VerbsWire {
    pub(super) device: VerbsDevice,
    pub(super) qp_params: QpParams,
    channel: *mut ibv_comp_channel,
    pub(super) cm: Option<CmEndpoint>,
    /// The pair that any peer with the dynamically connected transport reaches; and
    /// the initiators that no connection has.
    pub(super) target: Option<DctTarget>,
    pub(super) spare_dcis: Vec<*mut ibv_qp>,
    pub(super) own: Rank,
    pub(super) job: u64,
    pub(super) pairs_max: usize,
    pub(super) connect_timeout: Duration,
    pub(super) connections: Vec<Connection>,
    pub(super) passive_qps: VecDeque<PassiveQp>,
    /// A request and its buffer for each context.
    requests: ZeroedPages,
    contexts: usize,
    /// The connection that owns each context's request.
    owners: Box<[u32]>,
    /// A generation for each context, and for each of the CM endpoint's.
    generations: Box<[u32]>,
    /// Links that have requests to be sent.
    touched: Vec<u32>,
    /// Requests that have ended without reaching the device.
    unsent: VecDeque<CompletionEntry>,
    completions: Box<[ibv_wc; ENTRIES_MAX]>,
    pub(super) attempt: u64,
    clock: u64,
    /// The number of pairs that reach peers, and of those without a connect reply yet.
    pub(super) qps: usize,
    pub(super) connecting: usize,
    /// The time since which no connection can be opened: until a connection is closed, or
    /// one is open that can be closed, or has waited for its first request long enough.
    pub(super) full_since: Option<Instant>,
    /// When the wire last checked whether a connect request must be repeated.
    pub(super) retried: Instant,
    pub(super) counters: QpCounters,
}

// SAFETY: libibverbs' objects are not bound to a thread, and the pointers point to
// memory that the wire owns.
unsafe impl Send for VerbsWire {}

impl fmt::Debug for VerbsWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { device, port, .. } = &self.device.facts;
        write!(f, "VerbsWire({device}:{port}, {} pairs)", self.qps)
    }
}

impl VerbsWire {
    /// The counters of this wire.
    pub fn counters(&self) -> QpCounters {
        self.counters
    }

    /// The number of pairs by which peers reach this rank, apart from a DCT.
    pub fn passive_pairs(&self) -> usize {
        self.passive_qps.len()
    }
}

impl net::NetWire for VerbsWire {
    const NAME: &'static str = "verbs";

    type Description = VerbsDescription;

    fn event(&self) -> Option<RawFd> {
        // SAFETY: null, or the wire's own channel, open as long as the wire.
        unsafe { self.channel.as_ref().map(|channel| channel.fd) }
    }

    fn try_wait(&mut self) -> bool {
        if self.channel.is_null() || self.connecting > 0 || !self.unsent.is_empty() {
            return false;
        }
        let (mut cq, mut context, mut events) = (null_mut(), null_mut(), 0);
        let library = self.device.library;
        // SAFETY: the channel is open and does not block; each event is
        // acknowledged before the queue ends.
        unsafe {
            while (library.ibv_get_cq_event)(self.channel, &mut cq, &mut context) == 0 {
                events += 1;
            }
            if events > 0 {
                (library.ibv_ack_cq_events)(self.qp_params.cq, events);
            }
            ibv_req_notify_cq(self.qp_params.cq) == 0
        }
    }

    fn address(&self) -> Result<Vec<u8>, c_int> {
        let cm = self.cm.as_ref().ok_or(libc::EINVAL)?;
        Ok(self.device.address(cm.number(), self.target()).to_bytes().to_vec())
    }

    fn insert(&mut self, rank: Rank, address: &[u8]) -> Result<u64, c_int> {
        let address = Address::parse(address).ok_or(libc::EPROTO)?;
        self.connections.push(Connection::new(rank, address));
        Ok(self.connections.len() as u64 - 1)
    }

    fn remove(&mut self, peer: u64, _: ShutOut) -> Option<u64> {
        // Its pair accepts nothing more, so that neither the peer's device nor this
        // one writes to the other's memory.
        self.drop_dead_peer(peer as u32);
        None
    }

    unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: Access,
        _: u64,
    ) -> Result<Mr, c_int> {
        // SAFETY: the caller keeps the contract of `register`.
        unsafe { self.device.register(base, bytes, access) }
    }

    fn close_mr(&mut self, mr: &Mr) {
        self.device.close_mr(mr);
    }

    fn map_key(&mut self, key: &WireKey, _: u64) -> Result<u64, c_int> {
        Ok(key.words[0])
    }

    fn unmap_key(&mut self, _: u64) {}

    #[inline]
    unsafe fn put(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        _: bool,
        _: bool,
    ) -> PostResult {
        if let Err(code) = self.enter(remote.peer) {
            return -code as PostResult;
        }
        self.write(context, remote.peer, (IBV_WR_RDMA_WRITE, 0), local, bytes, rdma(remote));
        0
    }

    unsafe fn put_with_immediate(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        number: u32,
    ) -> PostResult {
        if let Err(code) = self.enter(remote.peer) {
            return -code as PostResult;
        }
        let how = (IBV_WR_RDMA_WRITE_WITH_IMM, number);
        self.write(context, remote.peer, how, local, bytes, rdma(remote));
        0
    }

    #[inline]
    unsafe fn get(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        remote: RemoteBuffer,
        context: usize,
        _: bool,
    ) -> PostResult {
        if let Err(code) = self.enter(remote.peer) {
            return -code as PostResult;
        }
        self.write(context, remote.peer, (IBV_WR_RDMA_READ, 0), local, bytes, rdma(remote));
        0
    }

    unsafe fn word(
        &mut self,
        op: &Op,
        locals: WordBuffers,
        remote: RemoteBuffer,
        context: usize,
        _: bool,
    ) -> PostResult {
        let width = op.width().unwrap_or(Width::W8);
        let has_atomics = self.device.facts.atomics != super::Atomics::None;
        let (opcode, compare_add, swap) = match op.kind {
            Kind::PutWord => {
                // SAFETY: the caller keeps the contract of `word`, which includes
                // that of `put`.
                return unsafe {
                    self.put(locals.operand, width as usize, remote, context, false, false)
                };
            }
            Kind::GetWord => {
                let bytes = width as usize;
                // SAFETY: the caller keeps the contract of `word`, which includes
                // that of `get`.
                return unsafe { self.get(locals.result, bytes, remote, context, false) };
            }
            _ if width != Width::W8 || !has_atomics => return -libc::EOPNOTSUPP as PostResult,
            Kind::FetchAdd => (IBV_WR_ATOMIC_FETCH_AND_ADD, op.operand(), 0),
            Kind::CompareSwap => (IBV_WR_ATOMIC_CMP_AND_SWP, op.compare(), op.operand()),
            _ => return -libc::EOPNOTSUPP as PostResult,
        };
        if let Err(code) = self.enter(remote.peer) {
            return -code as PostResult;
        }
        let (remote_addr, rkey) = (remote.addr, remote.key as u32);
        let atomic = ibv_wr_atomic { remote_addr, compare_add, swap, rkey };
        let wr = ibv_wr { atomic: ManuallyDrop::new(atomic) };
        self.write(context, remote.peer, (opcode, 0), locals.result, 8, wr);
        0
    }

    unsafe fn send(
        &mut self,
        local: LocalBuffer,
        bytes: usize,
        peer: u64,
        context: usize,
    ) -> PostResult {
        if let Err(code) = self.enter(peer) {
            return -code as PostResult;
        }
        let nowhere = RemoteBuffer { peer, addr: 0, key: 0 };
        self.write(context, peer, (IBV_WR_SEND, 0), local, bytes, rdma(nowhere));
        0
    }

    unsafe fn receive(&mut self, local: LocalBuffer, bytes: usize, context: usize) -> PostResult {
        let wr_id = self.wr_id(context);
        self.owners[context] = NOBODY;
        let lkey = local.desc.addr() as u32;
        let mut sge = ibv_sge { addr: local.at as u64, length: bytes as u32, lkey };
        let mut request = ibv_recv_wr { wr_id, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
        // SAFETY: the queue is open; the caller guarantees the buffer.
        -unsafe { ibv_post_srq_recv(self.qp_params.srq, &mut request, &mut null_mut()) }
            as PostResult
    }

    fn join(&mut self, job: u64) {
        self.job = job;
    }

    #[inline]
    fn ring_doorbell(&mut self) {
        while let Some(at) = self.touched.pop() {
            self.send_all(at);
        }
    }

    fn completions(
        &mut self,
        entries: &mut [CompletionEntry; ENTRIES_MAX],
    ) -> Result<usize, c_int> {
        let mut count = 0;
        while let Some(entry) = self.unsent.pop_front() {
            entries[count] = entry;
            count += 1;
            if count == ENTRIES_MAX {
                return Ok(count);
            }
        }
        if self.connecting > 0 {
            self.retry_connects();
        }
        let room = (ENTRIES_MAX - count) as c_int;
        // SAFETY: the queue is open, and the array has room for `room` entries.
        let came = unsafe { ibv_poll_cq(self.qp_params.cq, room, self.completions.as_mut_ptr()) };
        if came < 0 {
            return Err(-came);
        }
        for at in 0..came as usize {
            if let Some(entry) = self.completed(at) {
                entries[count] = entry;
                count += 1;
            }
        }
        Ok(count)
    }

    fn shut(&mut self, mrs: impl Iterator<Item = Mr>) {
        self.end_pairs();
        if let Some(cm) = self.cm.take() {
            cm.shut(&self.device);
        }
        if let Some(target) = self.target.take() {
            target.shut(&self.device);
        }
        for mr in mrs {
            self.device.close_mr(&mr);
        }
    }
}

/// The bytes of the tables of a wire with this many contexts.
pub(super) fn footprint(contexts: usize) -> usize {
    let each = size_of::<SendRequest>() + 2 * size_of::<u32>() + size_of::<CompletionEntry>();
    contexts * each + ENTRIES_MAX * size_of::<ibv_wc>()
}

/// An empty completion.
fn nothing() -> ibv_wc {
    // SAFETY: a structure of numbers, for which zeroes are valid.
    unsafe { core::mem::zeroed() }
}
