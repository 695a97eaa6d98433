//! The puts, gets and atomics of a job: block by block, in parts that fit in one
//! operation.

use super::rank::GlobalMachine;
use super::run::ReachedAddr;
use super::tables::{OpPhase, OpPin, PendingOp};
use super::traffic::OutgoingOp;
use crate::address::{GlobalAddr, Split};
use crate::request::{Copy, ENTRY_BYTES, GlobalRequest, ListCopy, WordRequest};
use crate::table::Agent;
use tsumugi_core::mem::{AddrError, LocalAddr, Need, RegionKey, RemoteAddr};
use tsumugi_core::mutate;
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::Ordering;

/// The part of a copy that one operation carries.
struct CopyPart {
    dst: GlobalAddr,
    src: GlobalAddr,
    bytes: u64,
    /// Whether the part is the last one of its block.
    is_last: bool,
}

impl GlobalMachine<'_> {
    /// Posts the next part, if there is one and it may be posted. When no part is
    /// left or in flight, goes on to the next phase.
    pub(super) fn next_part(&mut self, index: usize) -> Option<OutgoingOp> {
        let job = self.jobs[index];
        if let (GlobalRequest::Word(word), None) = (job.request, job.error) {
            if job.block == 0 {
                return self.post_word(index, word);
            }
        } else if job.error.is_none() {
            match self.part_of(index) {
                Ok(Some(_)) if job.flights >= self.window => return None,
                Ok(Some(part)) => {
                    let posted = self.post_part(index, &part);
                    if posted.is_some() || self.jobs[index].error.is_none() {
                        return posted;
                    }
                }
                Ok(None) => {}
                Err(error) => self.jobs[index].error = Some(error),
            }
        }
        if self.jobs[index].flights == 0 {
            self.after_parts(index);
        }
        None
    }

    /// Goes to the next phase after all parts of a job have completed.
    pub(super) fn after_parts(&mut self, index: usize) {
        let may_be_under_way = self.may_be_under_way(index);
        let job = &mut self.jobs[index];
        if job.is_relayed && job.error.is_none() {
            // The bytes have landed before the destination got the relay note.
            *job = PendingOp { is_queued: job.is_queued, link: job.link, ..PendingOp::FREE };
            return;
        }
        let phase = match job.request {
            _ if job.error.is_some() => OpPhase::Ended,
            GlobalRequest::List(ListCopy { count, .. }) if job.block < count => OpPhase::Entries,
            _ if may_be_under_way => OpPhase::Confirm,
            GlobalRequest::Copy(copy) if !copy.flag.is_null() => OpPhase::Flag,
            _ => OpPhase::Ended,
        };
        if phase == OpPhase::Ended {
            return self.finish(index);
        }
        self.jobs[index].phase = phase;
        self.run.push(self.jobs, index);
    }

    /// Fetches the next entries of a list.
    pub(super) fn fetch_entries(&mut self, index: usize) -> Option<OutgoingOp> {
        let job = self.jobs[index];
        let GlobalRequest::List(ListCopy { entries, count, .. }) = job.request else { return None };
        let batch = (count - job.block).min(ENTRIES);
        let at = self.setup.split.add(entries, i64::from(job.block) * ENTRY_BYTES as i64);
        let bytes = u64::from(batch) * ENTRY_BYTES;
        let Ok(addr) = at else {
            self.fail(index, AddrError::OutOfRange { addr: entries, bytes, region_bytes: None });
            return None;
        };
        match self.reach(index, addr, bytes, Need::Read) {
            ReachedAddr::At(target, hold) => {
                self.jobs[index].landed = (batch, 0);
                let op = Op::get(target.remote, self.control.landing(index), bytes);
                Some(self.post(index, op, target.agent, OpPin::Nothing, hold, addr))
            }
            ReachedAddr::Waits => None,
            ReachedAddr::Refused(error) => {
                self.fail(index, error);
                None
            }
        }
    }

    pub(super) fn entries_came(&mut self, index: usize) {
        self.jobs[index].phase = OpPhase::Parts;
        self.run.push(self.jobs, index);
    }

    fn post_word(&mut self, index: usize, word: WordRequest) -> Option<OutgoingOp> {
        let need = if word.kind == Kind::GetWord { Need::Read } else { Need::Write };
        match self.reach(index, word.target, word.width() as u64, need) {
            ReachedAddr::At(target, hold) => {
                self.jobs[index].block = 1;
                if word.kind == Kind::PutWord {
                    self.jobs[index].last = word.target;
                }
                let op = word.at(target.remote);
                Some(self.post(index, op, target.agent, OpPin::Nothing, hold, word.target))
            }
            ReachedAddr::Waits => None,
            ReachedAddr::Refused(error) => {
                self.fail(index, error);
                None
            }
        }
    }

    fn post_part(&mut self, index: usize, part: &CopyPart) -> Option<OutgoingOp> {
        let CopyPart { dst, src, bytes, is_last } = *part;
        let rank = |addr| self.setup.split.rank(addr) == Some(self.setup.rank);
        let (is_push, is_pull) = (rank(src), rank(dst));
        let (near, far) = if is_pull && !is_push { (dst, src) } else { (src, dst) };
        let (local, source, near) = if is_push || is_pull {
            match self.registry.local(near, bytes) {
                Ok((local, record)) => {
                    let hold = record.map_or(OpPin::Nothing, |record| OpPin::Record(record as u32));
                    (local, None, hold)
                }
                Err(error) => return self.refuse(index, error),
            }
        } else {
            match self.reach(index, near, bytes, Need::Read) {
                ReachedAddr::At(target, hold) => (UNUSED, Some(target.remote), hold),
                ReachedAddr::Waits => return None,
                ReachedAddr::Refused(error) => return self.refuse(index, error),
            }
        };
        if let OpPin::Record(record) = near {
            self.registry.pin(record as usize);
        }
        self.let_go_of(index);
        let need = if far == dst { Need::Write } else { Need::Read };
        let (target, hold) = match self.reach(index, far, bytes, need) {
            ReachedAddr::At(target, hold) => (target, hold),
            end => {
                // The near end stays pinned while the table of the far end is on its
                // way: otherwise two tables that share one slot would evict each
                // other again and again. While there is no room for the other table,
                // the pin is given back, so that it does not keep another table from
                // being evicted.
                if self.jobs[index].table != 0 {
                    self.jobs[index].held = near;
                } else {
                    self.let_go(near);
                }
                let ReachedAddr::Refused(error) = end else { return None };
                return self.refuse(index, error);
            }
        };
        if source.is_some_and(|source| is_devices(source) || is_devices(target.remote)) {
            self.let_go(near);
            self.let_go(hold);
            self.hand_over(index);
            return None;
        }
        let op = if far == dst {
            Op::put(local, target.remote, bytes)
        } else {
            Op::get(target.remote, local, bytes)
        };
        let is_near = source.is_some() && self.is_near(self.setup.split.rank(dst));
        let near = mutate!("gas_carried_unpinned": near => self.unpin_carried(near, source));
        let job = &mut self.jobs[index];
        job.at += bytes;
        if is_last {
            (job.at, job.block, job.landed.1) = (0, job.block + 1, job.landed.1 + 1);
        }
        if far == dst && !is_near {
            job.last = GlobalAddr::from_bits(dst.to_bits() + bytes - 1);
        }
        self.run.push(self.jobs, index);
        let out = self.post(index, op, target.agent, near, hold, far);
        let is_ordered = mutate!("gas_relay_overtakes":
            bytes <= self.setup.ordered_bytes_max => true);
        let then = if is_last && is_push && is_ordered { self.relay(index) } else { None };
        Some(OutgoingOp { source, then, ..out })
    }

    /// A copy between two other ranks of this node, of memory that is left to the
    /// device: the source rank has a device for it, so it gets a command for the
    /// whole copy, when nothing is in flight any more; some entries of a list are
    /// then copied again.
    fn hand_over(&mut self, index: usize) {
        let job = &mut self.jobs[index];
        if job.flights == 0 {
            job.phase = OpPhase::Asking { probe: 0 };
            self.run.push(self.jobs, index);
        }
    }

    /// Gives back the pin that a job has kept.
    pub(super) fn let_go_of(&mut self, index: usize) {
        let held = core::mem::replace(&mut self.jobs[index].held, OpPin::Nothing);
        self.let_go(held);
    }

    /// The planted defect `gas_carried_unpinned`: the source of a copy that the
    /// driver carries does not stay in place.
    fn unpin_carried(&mut self, near: OpPin, source: Option<RemoteAddr>) -> OpPin {
        if source.is_none() {
            return near;
        }
        self.let_go(near);
        OpPin::Nothing
    }

    fn refuse(&mut self, index: usize, error: AddrError<GlobalAddr>) -> Option<OutgoingOp> {
        self.jobs[index].error = Some(error);
        None
    }

    /// The next part of a job, if it has one now.
    fn part_of(&mut self, index: usize) -> Result<Option<CopyPart>, AddrError<GlobalAddr>> {
        match self.jobs[index].request {
            GlobalRequest::Copy(copy) => self.part_of_copy(index, &copy),
            GlobalRequest::List(list) => self.part_of_list(index, &list),
            GlobalRequest::Word(_) | GlobalRequest::Fence => Ok(None),
        }
    }

    fn part_of_copy(
        &self,
        index: usize,
        copy: &Copy,
    ) -> Result<Option<CopyPart>, AddrError<GlobalAddr>> {
        let (job, split) = (&self.jobs[index], self.setup.split);
        if job.block == copy.count || copy.bytes == 0 {
            return Ok(None);
        }
        let dst = block_of(split, copy.dst, copy.dst_stride, job.block, copy.bytes)?;
        let src = block_of(split, copy.src, copy.src_stride, job.block, copy.bytes)?;
        self.part_at(dst, src, copy.bytes, job.at).map(Some)
    }

    fn part_of_list(
        &mut self,
        index: usize,
        list: &ListCopy,
    ) -> Result<Option<CopyPart>, AddrError<GlobalAddr>> {
        let split = self.setup.split;
        loop {
            let job = &self.jobs[index];
            if job.landed.1 == job.landed.0 {
                return Ok(None);
            }
            let first = self.control.landing_words(index) + 3 * job.landed.1 as usize;
            let [dst, src, bytes] =
                [0, 1, 2].map(|word| self.words[first + word].load(Ordering::Relaxed));
            let (dst, src) = (GlobalAddr::from_bits(dst), GlobalAddr::from_bits(src));
            if split.rank(dst) != Some(list.to) {
                return Err(AddrError::OtherRank { addr: dst });
            }
            if split.rank(src) != Some(list.from) {
                return Err(AddrError::OtherRank { addr: src });
            }
            if bytes > 0 {
                return self.part_at(dst, src, bytes, job.at).map(Some);
            }
            let job = &mut self.jobs[index];
            (job.block, job.landed.1) = (job.block + 1, job.landed.1 + 1);
        }
    }

    /// The next part of a block of which `at` bytes have been posted.
    fn part_at(
        &self,
        dst: GlobalAddr,
        src: GlobalAddr,
        bytes: u64,
        at: u64,
    ) -> Result<CopyPart, AddrError<GlobalAddr>> {
        let split = self.setup.split;
        // The whole block must be within the range of an address before any part of
        // it is posted.
        let place = |addr: GlobalAddr| {
            let last = i64::try_from(bytes - 1).ok().and_then(|last| split.add(addr, last).ok());
            last.and_then(|_| split.add(addr, at as i64).ok()).ok_or(AddrError::OutOfRange {
                addr,
                bytes,
                region_bytes: None,
            })
        };
        let part = (bytes - at).min(self.setup.part_bytes_max);
        Ok(CopyPart {
            dst: place(dst)?,
            src: place(src)?,
            bytes: part,
            is_last: at + part == bytes,
        })
    }
}

fn is_devices(addr: RemoteAddr) -> bool {
    addr.key.agent() == Agent::Device
}

/// The address at which block `block` starts.
fn block_of(
    split: Split,
    first: GlobalAddr,
    stride: i64,
    block: u32,
    bytes: u64,
) -> Result<GlobalAddr, AddrError<GlobalAddr>> {
    let error = AddrError::OutOfRange { addr: first, bytes, region_bytes: None };
    let by = stride.checked_mul(i64::from(block)).ok_or(error)?;
    split.add(first, by).map_err(|_| error)
}

/// The local end of a put that has another source.
const UNUSED: LocalAddr = LocalAddr { key: RegionKey::from_bits(0), offset: 0 };
/// Entries of a list for which a landing has room.
const ENTRIES: u32 = (crate::control::LANDING_BYTES as u64 / ENTRY_BYTES) as u32;
