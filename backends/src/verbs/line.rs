//! What a rail asks, in libibverbs' terms: requests written down, linked by
//! peer, and sent with one doorbell for each peer; completions read.
//!
//! ```text
//!  put, get, word, send ─► requests[context] ─ linked ─► link.first .. last
//!                                                            │ ring
//!                                       ibv_post_send ◄──────┘ one per link
//!  ibv_poll_cq ─► wr_id = context | generation << 32 ─► Entry │ a call │ stray
//! ```
//!
//! A request has the number of its context, of which there is one under way at
//! a time; its generation tells a completion of another time from it.

use super::config::{Config, OpenError};
use super::device::{Address, Device, Facts, errno};
use super::door::{self, Door};
use super::link::{Guest, Link, State};
use super::pair::Terms;
use super::sys::*;
use super::{About, Counts};
use crate::net::{self, Answer, Area, ENTRIES_MAX, End, Entry, Far, Key, Mr, Near, Nears};
use core::ffi::c_int;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::null_mut;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use tsumugi_core::mem::{Access, Rank, Width};
use tsumugi_core::op::{Kind, Op};

/// See the module.
pub struct Line {
    pub(super) device: Device,
    pub(super) terms: Terms,
    channel: *mut ibv_comp_channel,
    pub(super) door: Option<Door>,
    pub(super) own: Rank,
    pub(super) job: u64,
    pub(super) pairs_max: usize,
    pub(super) patience: Duration,
    pub(super) links: Vec<Link>,
    pub(super) guests: VecDeque<Guest>,
    /// A request and its buffer for each context.
    requests: Area,
    contexts: usize,
    /// The link that has each context's request.
    owners: Box<[u32]>,
    /// One for each context, and for each of the door's.
    generations: Box<[u32]>,
    /// Links that have requests to be sent.
    touched: Vec<u32>,
    /// What has ended without reaching the device.
    pub(super) unsent: VecDeque<Entry>,
    completions: Box<[ibv_wc; ENTRIES_MAX]>,
    pub(super) turn: u64,
    pub(super) clock: u64,
    /// Pairs to reach peers by, and those of them that nobody has answered.
    pub(super) alive: usize,
    pub(super) opening: usize,
    /// Nothing more can be opened until a link is closed, or one is open that
    /// can be.
    pub(super) is_full: bool,
    /// When it was last looked whether a hello is to be said again.
    pub(super) tended: Instant,
    pub(super) counts: Counts,
}

// SAFETY: libibverbs' objects belong to no thread, and the pointers are to
// memory of its own.
unsafe impl Send for Line {}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { device, port, .. } = &self.device.facts;
        write!(f, "Line({device}:{port}, {} pairs)", self.alive)
    }
}

/// A request and the buffer that it is about.
#[repr(C)]
struct Request {
    wr: ibv_send_wr,
    sge: ibv_sge,
}

impl Line {
    /// A line for as many contexts, of which `receives` are for packets that
    /// come.
    pub(super) fn open(
        config: &Config,
        own: Rank,
        contexts: usize,
        receives: usize,
    ) -> Result<Self, OpenError> {
        let device = Device::open(config)?;
        let terms = Terms {
            cq: null_mut(),
            srq: null_mut(),
            depth: contexts as u32,
            inline_bytes: config.inline_bytes_max as u32,
            timeout: config.timeout,
        };
        let mut line = Self {
            device,
            terms,
            channel: null_mut(),
            door: None,
            own,
            job: config.job,
            pairs_max: config.pairs_max,
            patience: Duration::from_millis(config.patience_ms.into()),
            links: Vec::new(),
            guests: VecDeque::new(),
            requests: Area::new(contexts * size_of::<Request>()),
            contexts,
            owners: vec![0; contexts].into(),
            generations: vec![0; contexts + door::COUNT].into(),
            touched: Vec::with_capacity(config.pairs_max),
            unsent: VecDeque::with_capacity(contexts),
            completions: Box::new(core::array::from_fn(|_| nothing())),
            turn: 0,
            clock: 0,
            alive: 0,
            opening: 0,
            is_full: false,
            tended: Instant::now(),
            counts: Counts::default(),
        };
        line.open_queues(config.event, contexts, receives)?;
        line.try_inline()?;
        let failed = |code| OpenError::Call { name: "ibv_create_qp", code };
        let mut door = Door::open(&line.device, &line.terms, contexts).map_err(failed)?;
        for slot in 0..door::RECEIVES {
            door.listen(slot, line.wr_id(contexts + slot));
        }
        line.door = Some(door);
        Ok(line)
    }

    fn open_queues(
        &mut self,
        event: bool,
        contexts: usize,
        receives: usize,
    ) -> Result<(), OpenError> {
        let failed = |name| OpenError::Call { name, code: errno() };
        let Device { library, context, pd, .. } = self.device;
        if event {
            // SAFETY: an open context.
            self.channel = unsafe { (library.ibv_create_comp_channel)(context) };
            if self.channel.is_null() {
                return Err(failed("ibv_create_comp_channel"));
            }
            // SAFETY: the channel's descriptor, which is ours alone.
            unsafe { libc::fcntl((*self.channel).fd, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        let entries = (contexts + door::COUNT + SPARE) as c_int;
        // SAFETY: an open context and a channel of it, or none.
        self.terms.cq =
            unsafe { (library.ibv_create_cq)(context, entries, null_mut(), self.channel, 0) };
        if self.terms.cq.is_null() {
            return Err(failed("ibv_create_cq"));
        }
        let mut attr = ibv_srq_init_attr {
            srq_context: null_mut(),
            attr: ibv_srq_attr { max_wr: receives as u32, max_sge: 1, srq_limit: 0 },
        };
        // SAFETY: an open domain.
        self.terms.srq = unsafe { (library.ibv_create_srq)(pd, &mut attr) };
        if self.terms.srq.is_null() {
            return Err(failed("ibv_create_srq"));
        }
        Ok(())
    }

    /// Finds out how many bytes the device takes into a request.
    fn try_inline(&mut self) -> Result<(), OpenError> {
        loop {
            match self.device.make_pair(&self.terms, true) {
                Ok(qp) => {
                    self.device.end_pair(qp);
                    return Ok(());
                }
                Err(_) if self.terms.inline_bytes > 0 => self.terms.inline_bytes /= 2,
                Err(code) => return Err(OpenError::Call { name: "ibv_create_qp", code }),
            }
        }
    }

    /// A new request's name.
    pub(super) fn wr_id(&mut self, number: usize) -> u64 {
        let generation = &mut self.generations[number];
        *generation = generation.wrapping_add(1);
        number as u64 | u64::from(*generation) << 32
    }

    /// Whether a request may be written down for this link now.
    #[inline]
    fn enter(&mut self, peer: u64) -> Result<(), c_int> {
        if self.links[peer as usize].state == State::Open { Ok(()) } else { self.try_open(peer) }
    }

    /// Writes a request down.
    #[inline]
    fn write(
        &mut self,
        context: usize,
        peer: u64,
        (opcode, mut flags): (u32, u32),
        near: Near,
        bytes: usize,
        wr: ibv_wr,
    ) {
        let wr_id = self.wr_id(context);
        let is_short = bytes <= self.terms.inline_bytes as usize;
        if is_short && matches!(opcode, IBV_WR_RDMA_WRITE | IBV_WR_SEND) {
            flags |= IBV_SEND_INLINE;
        }
        let lkey = near.desc.addr() as u32;
        // Wrapping is out of the question: there are as many.
        let place = self.requests.base.as_ptr().cast::<Request>().wrapping_add(context);
        // SAFETY: the context's own request, which is not with the device: its
        // last one has completed.
        let request = unsafe {
            (*place).sge = ibv_sge { addr: near.at as u64, length: bytes as u32, lkey };
            let request = &raw mut (*place).wr;
            (*request).wr_id = wr_id;
            (*request).next = null_mut();
            ((*request).sg_list, (*request).num_sge) = (&raw mut (*place).sge, 1);
            (*request).opcode = opcode;
            (*request).send_flags = flags | IBV_SEND_SIGNALED;
            (*request).wr = wr;
            request
        };
        let link = &mut self.links[peer as usize];
        if link.last.is_null() {
            link.first = request;
            self.touched.push(peer as u32);
        } else {
            // SAFETY: one of `requests`, which has not been sent yet.
            unsafe { (*link.last).next = request };
        }
        link.last = request;
        link.in_flight += 1;
        self.owners[context] = peer as u32;
    }

    /// Sends what was written down for a link.
    fn send_all(&mut self, at: u32) {
        let link = &mut self.links[at as usize];
        let (first, mut bad) = (link.first, null_mut());
        (link.first, link.last) = (null_mut(), null_mut());
        self.clock += 1;
        link.used = self.clock;
        self.counts.doorbells += 1;
        // SAFETY: an open pair (only those are written for, and none is closed
        // that has something in flight), and requests of our own.
        let code = unsafe { ibv_post_send(link.qp, first, &mut bad) };
        if code != 0 {
            self.take_back(at, bad, code);
        }
    }

    #[cold]
    fn take_back(&mut self, at: u32, mut bad: *mut ibv_send_wr, code: c_int) {
        // The first was refused; the others were not looked at.
        let mut end = End::Refused { code, provider_code: 0 };
        while !bad.is_null() {
            // SAFETY: of our own list.
            let (wr_id, next) = unsafe { ((*bad).wr_id, (*bad).next) };
            self.unsent.push_back(Entry { context: wr_id as u32 as usize, end });
            (bad, end) = (next, End::Again);
            self.links[at as usize].in_flight -= 1;
        }
        self.settle(at);
    }

    /// What a completion means to the rail, if anything.
    fn completed(&mut self, at: usize) -> Option<Entry> {
        let ibv_wc { wr_id, status, byte_len, vendor_err, .. } = self.completions[at];
        let (number, generation) = (wr_id as u32 as usize, (wr_id >> 32) as u32);
        if self.generations.get(number) != Some(&generation) {
            self.counts.strays += 1;
            return None;
        }
        if let Some(slot) = number.checked_sub(self.contexts) {
            self.heard(slot, status == IBV_WC_SUCCESS, byte_len as usize);
            return None;
        }
        let owner = core::mem::replace(&mut self.owners[number], NOBODY);
        if owner == NOBODY {
            // A packet that came: its buffer goes back if it came badly.
            let came = status == IBV_WC_SUCCESS;
            let end = if came { End::Done(byte_len as usize) } else { End::Again };
            return Some(Entry { context: number, end });
        }
        self.links[owner as usize].in_flight -= 1;
        let end = match status {
            IBV_WC_SUCCESS => End::Done(0),
            _ => self.broken(owner, status, vendor_err),
        };
        self.settle(owner);
        Some(Entry { context: number, end })
    }

    fn heard(&mut self, slot: usize, is_well: bool, bytes: usize) {
        let number = self.contexts + slot;
        if slot >= door::RECEIVES {
            self.door.as_mut().expect("open").said(slot);
            return;
        }
        let call = self.door.as_ref().expect("open").heard(slot, bytes);
        if let Some(call) = call.filter(|_| is_well) {
            self.hear(&call);
        }
        let wr_id = self.wr_id(number);
        self.door.as_mut().expect("open").listen(slot, wr_id);
    }
}

impl net::Wire for Line {
    const NAME: &'static str = "verbs";

    type About = About;

    fn event(&self) -> Option<RawFd> {
        // SAFETY: ours, open as long as the line.
        unsafe { self.channel.as_ref().map(|channel| channel.fd) }
    }

    fn try_wait(&mut self) -> bool {
        if self.channel.is_null() || self.opening > 0 || !self.unsent.is_empty() {
            return false;
        }
        let (mut cq, mut context, mut events) = (null_mut(), null_mut(), 0);
        let library = self.device.library;
        // SAFETY: the channel is open and answers at once; each event is
        // acknowledged before the queue goes.
        unsafe {
            while (library.ibv_get_cq_event)(self.channel, &mut cq, &mut context) == 0 {
                events += 1;
            }
            if events > 0 {
                (library.ibv_ack_cq_events)(self.terms.cq, events);
            }
            ibv_req_notify_cq(self.terms.cq) == 0
        }
    }

    fn address(&self) -> Result<Vec<u8>, c_int> {
        let door = self.door.as_ref().ok_or(libc::EINVAL)?;
        Ok(self.device.address(door.number()).to_bytes().to_vec())
    }

    fn insert(&mut self, rank: Rank, address: &[u8]) -> Result<u64, c_int> {
        let address = Address::parse(address).ok_or(libc::EPROTO)?;
        self.links.push(Link::new(rank, address));
        Ok(self.links.len() as u64 - 1)
    }

    fn remove(&mut self, peer: u64) {
        self.give_up(peer as u32);
    }

    unsafe fn register(
        &mut self,
        base: *mut u8,
        bytes: u64,
        access: Access,
        _: u64,
    ) -> Result<Mr, c_int> {
        // SAFETY: the caller's.
        unsafe { self.device.register(base, bytes, access) }
    }

    fn close_mr(&mut self, mr: &Mr) {
        self.device.close_mr(mr);
    }

    fn map_key(&mut self, key: &Key, _: u64) -> Result<u64, c_int> {
        Ok(key.words[0])
    }

    fn unmap_key(&mut self, _: u64) {}

    #[inline]
    unsafe fn put(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: usize,
        _: bool,
        _: bool,
    ) -> Answer {
        if let Err(code) = self.enter(far.peer) {
            return -code as Answer;
        }
        self.write(context, far.peer, (IBV_WR_RDMA_WRITE, 0), near, bytes, rdma(far));
        0
    }

    #[inline]
    unsafe fn get(
        &mut self,
        near: Near,
        bytes: usize,
        far: Far,
        context: usize,
        _: bool,
    ) -> Answer {
        if let Err(code) = self.enter(far.peer) {
            return -code as Answer;
        }
        self.write(context, far.peer, (IBV_WR_RDMA_READ, 0), near, bytes, rdma(far));
        0
    }

    unsafe fn word(&mut self, op: &Op, nears: Nears, far: Far, context: usize, _: bool) -> Answer {
        let width = op.width().unwrap_or(Width::W8);
        let has_atomics = self.device.facts.atomics != super::Atomics::None;
        let (opcode, compare_add, swap) = match op.kind {
            Kind::PutWord => {
                // SAFETY: the caller's.
                return unsafe {
                    self.put(nears.operand, width as usize, far, context, false, false)
                };
            }
            Kind::GetWord => {
                let bytes = width as usize;
                // SAFETY: the caller's.
                return unsafe { self.get(nears.result, bytes, far, context, false) };
            }
            _ if width != Width::W8 || !has_atomics => return -libc::EOPNOTSUPP as Answer,
            Kind::FetchAdd => (IBV_WR_ATOMIC_FETCH_AND_ADD, op.operand(), 0),
            Kind::CompareSwap => (IBV_WR_ATOMIC_CMP_AND_SWP, op.compare(), op.operand()),
            _ => return -libc::EOPNOTSUPP as Answer,
        };
        if let Err(code) = self.enter(far.peer) {
            return -code as Answer;
        }
        let (remote_addr, rkey) = (far.addr, far.key as u32);
        let atomic = ibv_wr_atomic { remote_addr, compare_add, swap, rkey };
        let wr = ibv_wr { atomic: ManuallyDrop::new(atomic) };
        self.write(context, far.peer, (opcode, 0), nears.result, 8, wr);
        0
    }

    unsafe fn send(&mut self, near: Near, bytes: usize, peer: u64, context: usize) -> Answer {
        if let Err(code) = self.enter(peer) {
            return -code as Answer;
        }
        let nowhere = Far { peer, addr: 0, key: 0 };
        self.write(context, peer, (IBV_WR_SEND, 0), near, bytes, rdma(nowhere));
        0
    }

    unsafe fn receive(&mut self, near: Near, bytes: usize, context: usize) -> Answer {
        let wr_id = self.wr_id(context);
        self.owners[context] = NOBODY;
        let lkey = near.desc.addr() as u32;
        let mut sge = ibv_sge { addr: near.at as u64, length: bytes as u32, lkey };
        let mut request = ibv_recv_wr { wr_id, next: null_mut(), sg_list: &mut sge, num_sge: 1 };
        // SAFETY: an open queue; the buffer is the caller's promise.
        -unsafe { ibv_post_srq_recv(self.terms.srq, &mut request, &mut null_mut()) } as Answer
    }

    fn join(&mut self, job: u64) {
        self.job = job;
    }

    #[inline]
    fn ring(&mut self) {
        while let Some(at) = self.touched.pop() {
            self.send_all(at);
        }
    }

    fn completions(&mut self, entries: &mut [Entry; ENTRIES_MAX]) -> Result<usize, c_int> {
        let mut count = 0;
        while let Some(entry) = self.unsent.pop_front() {
            entries[count] = entry;
            count += 1;
            if count == ENTRIES_MAX {
                return Ok(count);
            }
        }
        if self.opening > 0 {
            self.tend();
        }
        let room = (ENTRIES_MAX - count) as c_int;
        // SAFETY: an open queue, and room for as many.
        let came = unsafe { ibv_poll_cq(self.terms.cq, room, self.completions.as_mut_ptr()) };
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
        if let Some(door) = self.door.take() {
            door.shut(&self.device);
        }
        for mr in mrs {
            self.device.close_mr(&mr);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        net::Wire::shut(self, core::iter::empty());
        let library = self.device.library;
        // SAFETY: ours or null, each ended once, what is used by others last.
        unsafe {
            if !self.terms.srq.is_null() {
                (library.ibv_destroy_srq)(self.terms.srq);
            }
            if !self.terms.cq.is_null() {
                (library.ibv_destroy_cq)(self.terms.cq);
            }
            if !self.channel.is_null() {
                (library.ibv_destroy_comp_channel)(self.channel);
            }
        }
    }
}

/// Bytes of what a line keeps for as many contexts.
pub(super) fn footprint(contexts: usize) -> usize {
    let each = size_of::<Request>() + 2 * size_of::<u32>() + size_of::<Entry>();
    contexts * each + ENTRIES_MAX * size_of::<ibv_wc>()
}

/// A completion that has not come.
fn nothing() -> ibv_wc {
    // SAFETY: numbers.
    unsafe { core::mem::zeroed() }
}

fn rdma(far: Far) -> ibv_wr {
    let rdma = ibv_wr_rdma { remote_addr: far.addr, rkey: far.key as u32 };
    ibv_wr { rdma: ManuallyDrop::new(rdma) }
}

/// The owner of a request that is no link's.
const NOBODY: u32 = u32::MAX;

/// Completions that a queue has room for beyond those that can come.
const SPARE: usize = 64;
