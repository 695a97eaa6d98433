//! The state of the simulated devices of one thread.

use super::{calls, dct};
use core::ffi::{c_int, c_uint};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use tsumugi_backends::verbs::VerbsLibraries;
use tsumugi_backends::verbs::dct::sys::{MLX5DV_DCTYPE_DCI, MLX5DV_DCTYPE_DCT};
use tsumugi_backends::verbs::sys::*;
use tsumugi_core::backend::copy_bytes;

/// The state of this thread's cards.
#[derive(Default)]
pub(super) struct World {
    pub pairs: BTreeMap<u32, *mut Pair>,
    pub regions: BTreeMap<u32, (u64, u64, c_int)>,
    /// Pairs with something to do, each once.
    pub busy: VecDeque<u32>,
    pub last: u32,
    pub alive_max: BTreeMap<usize, (usize, usize)>,
    /// See [`restrict`].
    pub is_plain: bool,
    pub refuses: Option<u32>,
}

#[repr(C)]
pub(super) struct Queue {
    pub raw: ibv_cq,
    pub entries: VecDeque<ibv_wc>,
}

#[repr(C)]
pub(super) struct Buffers {
    pub raw: ibv_srq,
    pub free: VecDeque<Buffer>,
}

#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pub wr_id: u64,
    pub at: u64,
    pub bytes: u32,
}

#[repr(C)]
pub(super) struct Pair {
    pub raw: ibv_qp,
    pub peer: u32,
    pub access: c_uint,
    pub depth: usize,
    pub requests: VecDeque<Request>,
    /// The receive buffers of a pair for datagrams.
    pub own: VecDeque<Buffer>,
    pub is_busy: bool,
    /// Set for a pair of the dynamically connected transport.
    pub part: Option<Box<dct::Part>>,
}

/// A request, as the card has read it.
pub(super) struct Request {
    pub wr_id: u64,
    pub opcode: u32,
    pub imm: u32,
    pub inline: Option<Vec<u8>>,
    pub at: u64,
    pub bytes: u32,
    pub remote: u64,
    pub operands: (u64, u64),
    pub key: u32,
    /// The receiving pair of a datagram, or of a request by the dynamically
    /// connected transport.
    pub to: u32,
    pub access_key: u64,
}

/// How a request has ended.
pub(super) enum Done {
    Well,
    Badly(u32),
    /// There is no buffer yet.
    Waits,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
}

/// The libraries of this thread's devices, for
/// [`VerbsConfig::libraries`](tsumugi_backends::verbs::VerbsConfig::libraries).
pub fn libraries() -> VerbsLibraries {
    let driver = WORLD.with_borrow(|world| (!world.is_plain).then_some(&dct::DRIVER));
    VerbsLibraries { verbs: &calls::LIBRARY, driver }
}

/// Reduces this thread's cards: they have no driver library any more; or the
/// targets of the dynamically connected transport refuse requests of that kind.
pub fn restrict(is_plain: bool, refuses: Option<u32>) {
    with(|world| (world.is_plain, world.refuses) = (is_plain, refuses));
}

/// The largest number of request-sending pairs that one of this thread's cards had
/// at once.
pub fn alive_max() -> usize {
    with(|world| world.alive_max.values().map(|(_, max)| *max).max().unwrap_or(0))
}

pub(super) fn with<R>(f: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with(|world| f(&mut world.borrow_mut()))
}

impl World {
    pub(super) fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// The pair that answers a request, if there is one, and whether it goes on
    /// when the request is refused.
    fn target(&self, pair: &Pair, request: &Request) -> Option<(*mut Pair, bool)> {
        let Some(part) = &pair.part else {
            let &peer = self.pairs.get(&pair.peer)?;
            // SAFETY: as in `step`: a pair is never its own peer.
            let Pair { raw, peer: its, .. } = unsafe { &*peer };
            let answers = matches!(raw.state, IBV_QPS_RTR | IBV_QPS_RTS);
            return (answers && *its == pair.raw.qp_num).then_some((peer, false));
        };
        debug_assert_eq!(part.kind, MLX5DV_DCTYPE_DCI);
        let &peer = self.pairs.get(&request.to)?;
        // SAFETY: as above.
        let Pair { raw, part, .. } = unsafe { &*peer };
        let is_one =
            |part: &dct::Part| part.kind == MLX5DV_DCTYPE_DCT && part.key == request.access_key;
        let answers = raw.state == IBV_QPS_RTR && part.as_deref().is_some_and(is_one);
        answers.then_some((peer, true))
    }

    /// Carries out a few requests of the pairs that have some.
    pub(super) fn step(&mut self) {
        for _ in 0..STEPS.min(self.busy.len()) {
            let Some(number) = self.busy.pop_front() else { return };
            let Some(&pair) = self.pairs.get(&number) else { continue };
            // SAFETY: a pair is in the table as long as it lives, and only this
            // thread uses it; the fields of two pairs do not overlap.
            let pair = unsafe { &mut *pair };
            pair.is_busy = false;
            let Some(request) = pair.requests.front() else { continue };
            let done = match pair.raw.qp_type {
                _ if pair.raw.state == IBV_QPS_ERR => Done::Badly(IBV_WC_WR_FLUSH_ERR),
                IBV_QPT_UD => self.datagram(request),
                _ => self.carry_out(pair, request),
            };
            let status = match done {
                Done::Waits => {
                    pair.is_busy = true;
                    self.busy.push_back(number);
                    continue;
                }
                Done::Well => IBV_WC_SUCCESS,
                Done::Badly(status) => {
                    pair.raw.state = IBV_QPS_ERR;
                    status
                }
            };
            let request = pair.requests.pop_front().expect("the first request was seen above");
            complete(pair.raw.send_cq, entry(request.wr_id, status, 0));
            if !pair.requests.is_empty() {
                pair.is_busy = true;
                self.busy.push_back(number);
            }
        }
    }

    fn carry_out(&self, pair: &Pair, request: &Request) -> Done {
        let Some((peer, goes_on)) = self.target(pair, request) else {
            return Done::Badly(IBV_WC_RETRY_EXC_ERR);
        };
        // SAFETY: as in `step`: a pair is never its own peer.
        let peer = unsafe { &mut *peer };
        if goes_on && self.refuses == Some(request.opcode) {
            return Done::Badly(IBV_WC_REM_OP_ERR);
        }
        let Request { opcode, at, bytes, remote, key, operands: (operand, swap), .. } = *request;
        let may = |need: u32| {
            let region = self.regions.get(&key);
            let holds = |(base, size, access): &(u64, u64, c_int)| {
                remote >= *base
                    && remote + u64::from(bytes) <= base + size
                    && *access as u32 & need == need
            };
            region.is_some_and(holds) && peer.access & need == need
        };
        let need = match opcode {
            IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM => IBV_ACCESS_REMOTE_WRITE,
            IBV_WR_RDMA_READ => IBV_ACCESS_REMOTE_READ,
            IBV_WR_SEND => 0,
            _ => IBV_ACCESS_REMOTE_ATOMIC,
        };
        if need != 0 && !may(need) {
            if !goes_on {
                peer.raw.state = IBV_QPS_ERR;
            }
            return Done::Badly(IBV_WC_REM_ACCESS_ERR);
        }
        let from = request.inline.as_ref().map_or(at, |bytes| bytes.as_ptr() as u64);
        // SAFETY: pairs of this kind are made with a queue for buffers.
        let buffers = unsafe { &mut *peer.raw.srq.cast::<Buffers>() };
        match opcode {
            IBV_WR_SEND => {
                let Some(buffer) = buffers.free.pop_front() else { return Done::Waits };
                assert!(
                    buffer.bytes >= bytes,
                    "a packet of {bytes} bytes for a buffer of {}",
                    buffer.bytes
                );
                copy(from, buffer.at, bytes);
                complete(peer.raw.recv_cq, entry(buffer.wr_id, IBV_WC_SUCCESS, bytes));
            }
            IBV_WR_RDMA_WRITE => copy(from, remote, bytes),
            IBV_WR_RDMA_WRITE_WITH_IMM => {
                let Some(buffer) = buffers.free.pop_front() else { return Done::Waits };
                copy(from, remote, bytes);
                let (flags, imm) = (IBV_WC_WITH_IMM, request.imm);
                let arrival = ibv_wc {
                    opcode: IBV_WC_RECV_RDMA_WITH_IMM,
                    wc_flags: flags,
                    imm_data: imm,
                    ..entry(buffer.wr_id, IBV_WC_SUCCESS, bytes)
                };
                complete(peer.raw.recv_cq, arrival);
            }
            IBV_WR_RDMA_READ => copy(remote, at, bytes),
            _ => {
                // SAFETY: a word of 8 bytes of a region; there is one thread.
                let old = unsafe { (remote as *const u64).read() };
                let new = match opcode {
                    IBV_WR_ATOMIC_FETCH_AND_ADD => old.wrapping_add(operand),
                    _ if old == operand => swap,
                    _ => old,
                };
                // SAFETY: as above; `at` is the initiator's own word.
                unsafe {
                    (remote as *mut u64).write(new);
                    (at as *mut u64).write(old);
                }
            }
        }
        Done::Well
    }

    fn datagram(&self, request: &Request) -> Done {
        if let Some(&to) = self.pairs.get(&request.to) {
            // SAFETY: as in `step`; a door does not send to itself.
            let to = unsafe { &mut *to };
            if let Some(buffer) = to.own.pop_front() {
                copy(request.at, buffer.at + GRH_BYTES, request.bytes);
                let bytes = request.bytes + GRH_BYTES as u32;
                complete(to.raw.recv_cq, entry(buffer.wr_id, IBV_WC_SUCCESS, bytes));
            }
        }
        Done::Well
    }

    pub(super) fn wake(&mut self, pair: &mut Pair) {
        if !std::mem::replace(&mut pair.is_busy, true) {
            self.busy.push_back(pair.raw.qp_num);
        }
    }
}

impl Pair {
    /// Whether the pair sends requests to peers.
    pub(super) fn asks(&self) -> bool {
        self.depth > 1 && self.raw.qp_type != IBV_QPT_UD
    }
}

/// Assigns a number to a pair, under which other pairs find it.
pub(super) fn number(world: &mut World, pair: *mut Pair) -> u32 {
    let number = world.number();
    world.pairs.insert(number, pair);
    number
}

fn copy(from: u64, to: u64, bytes: u32) {
    // SAFETY: both ends were checked or are the initiator's own; they may overlap.
    unsafe { copy_bytes(from as *const u8, to as *mut u8, bytes as usize) };
}

fn entry(wr_id: u64, status: u32, byte_len: u32) -> ibv_wc {
    // SAFETY: a structure of numbers, for which zeroes are valid.
    ibv_wc { wr_id, status, byte_len, ..unsafe { core::mem::zeroed() } }
}

fn complete(cq: *mut ibv_cq, entry: ibv_wc) {
    // SAFETY: an open queue of this thread, which `create_cq` made.
    unsafe { (*cq.cast::<Queue>()).entries.push_back(entry) };
}

/// The number of requests that one poll carries out.
const STEPS: usize = 8;
/// The bytes before a datagram.
const GRH_BYTES: u64 = 40;
