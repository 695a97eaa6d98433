//! The steps of a job, and its end.

use super::rank::GlobalMachine;
use super::tables::{FlightPurpose, OpPhase, OpPin, PendingOp};
use super::traffic::OutgoingOp;
use crate::address::GlobalAddr;
use crate::cache::{Miss, ResolvedAddr, TableWanted};
use crate::request::{Copy, GlobalRequest, WordRequest};
use crate::table::Agent;
use tsumugi_core::mem::{AddrError, Need, Rank, Width};
use tsumugi_core::mutate;
use tsumugi_core::op::{Kind, Op};

/// The place of the far end of an operation.
pub(super) enum ReachedAddr {
    At(ResolvedAddr, OpPin),
    /// The job waits in a queue or for a table.
    Waits,
    Refused(AddrError<GlobalAddr>),
}

impl GlobalMachine<'_> {
    /// Starts a job when the operations before it allow that.
    pub(super) fn start(&mut self, index: usize) {
        let request = self.jobs[index].request;
        let (from, to) = self.ranks_of(&request);
        let own = Some(self.setup.rank);
        let nowhere = |addr| Some(AddrError::Nowhere { addr });
        let (phase, error) = match request {
            GlobalRequest::Fence => (OpPhase::Ended, None),
            GlobalRequest::Word(_) => (OpPhase::Parts, None),
            GlobalRequest::Copy(copy) if from.is_none() => (OpPhase::Ended, nowhere(copy.src)),
            GlobalRequest::Copy(copy) if to.is_none() => (OpPhase::Ended, nowhere(copy.dst)),
            GlobalRequest::Copy(_) | GlobalRequest::List(_)
                if from == own || to == own || self.is_between_near((from, to)) =>
            {
                (OpPhase::Parts, None)
            }
            GlobalRequest::Copy(copy) if self.is_carried(&copy) => (OpPhase::Parts, None),
            GlobalRequest::Copy(_) | GlobalRequest::List(_) => (OpPhase::Asking { probe: 0 }, None),
        };
        let job = &mut self.jobs[index];
        (job.phase, job.error) = (phase, error);
        self.run.push(self.jobs, index);
    }

    /// Carries out the next step of a job, if that is possible now.
    pub(super) fn advance(&mut self, index: usize) -> Option<OutgoingOp> {
        let job = &self.jobs[index];
        if job.table != 0 {
            return None;
        }
        // The other phases have one operation in flight at a time, and its end queues the job.
        debug_assert!(job.flights == 0 || job.phase == OpPhase::Parts, "{job:?}");
        match job.phase {
            OpPhase::Ended => {
                self.ended.push(self.jobs, index);
                None
            }
            OpPhase::Parts => self.next_part(index),
            OpPhase::Entries => self.fetch_entries(index),
            OpPhase::Confirm => self.confirm(index),
            OpPhase::Flag => self.raise_flag(index),
            OpPhase::Asking { probe } => self.ask(index, probe),
            OpPhase::Command => self.fetch_command(index),
            OpPhase::Answer => self.answer(index),
            OpPhase::Free | OpPhase::Ordered | OpPhase::Backoff { .. } | OpPhase::Asked => None,
        }
    }

    /// Handles the completion of a job's operation.
    pub(super) fn advance_completed(
        &mut self,
        index: usize,
        result: Result<u64, AddrError<GlobalAddr>>,
    ) {
        let job = &mut self.jobs[index];
        job.flights -= 1;
        match job.phase {
            OpPhase::Asking { probe } => return self.note_left(index, probe, result),
            OpPhase::Command => return self.command_came(index, result),
            OpPhase::Answer => {
                *job = PendingOp { is_queued: job.is_queued, link: job.link, ..PendingOp::FREE };
                return;
            }
            _ => {}
        }
        match result {
            Ok(value) => job.value = value,
            Err(error) => job.error = job.error.or(Some(error)),
        }
        match job.phase {
            OpPhase::Parts => self.run.push(self.jobs, index),
            _ if job.error.is_some() => self.finish(index),
            OpPhase::Entries => self.entries_came(index),
            OpPhase::Confirm => self.after_parts(index),
            _ => self.finish(index),
        }
    }

    /// Ends a job that has nothing in flight and posts no more parts. What it has
    /// put must have landed first, also if the job has failed, and a remote caller must
    /// get a report.
    pub(super) fn finish(&mut self, index: usize) {
        let is_asked_for = self.jobs[index].phase == OpPhase::Confirm;
        let may_be = mutate!("gas_failed_unconfirmed": self.may_be_under_way(index) => false);
        if may_be && !is_asked_for {
            self.jobs[index].phase = OpPhase::Confirm;
            self.run.push(self.jobs, index);
            return;
        }
        self.release_command(index);
        self.let_go_of(index);
        let job = &mut self.jobs[index];
        job.table = 0;
        if !matches!(job.request, GlobalRequest::Word(_)) {
            job.value = 0;
        }
        job.phase = if job.caller.is_some() { OpPhase::Answer } else { OpPhase::Ended };
        self.run.push(self.jobs, index);
    }

    /// Ends a job with an error, when its operations in flight have completed.
    pub(super) fn fail(&mut self, index: usize, error: AddrError<GlobalAddr>) {
        let job = &mut self.jobs[index];
        job.error = job.error.or(Some(error));
        if job.flights == 0 {
            self.finish(index);
        }
    }

    /// The place of `bytes` bytes of any rank, which stay there until the hold is
    /// given back.
    pub(super) fn reach(
        &mut self,
        index: usize,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> ReachedAddr {
        let split = self.setup.split;
        let (Ok(table), Some(rank)) = (self.table_of(addr), split.rank(addr)) else {
            return ReachedAddr::Refused(AddrError::Nowhere { addr });
        };
        if rank == self.setup.rank {
            return match self.registry.resolve(addr, bytes, need) {
                Ok((entry, record)) => {
                    let offset = addr.to_bits() & (split.region_bytes_max() - 1);
                    let remote = tsumugi_core::mem::RemoteAddr { offset, rank, key: entry.key };
                    let hold = record.map_or(OpPin::Nothing, |record| {
                        self.registry.pin(record);
                        OpPin::Record(record as u32)
                    });
                    ReachedAddr::At(ResolvedAddr { remote, agent: entry.agent }, hold)
                }
                Err(error) => ReachedAddr::Refused(error),
            };
        }
        let wanted = match self.cache.pin(addr, bytes, need) {
            Ok(pinned) => return ReachedAddr::At(pinned.target, OpPin::Slot(pinned.slot)),
            Err(Miss::Refused(error)) => return ReachedAddr::Refused(error),
            Err(Miss::NoTable) => self.fetcher.want(table),
            Err(Miss::NotListed { version }) => {
                let known = self.jobs[index].unlisted.replace((table, version));
                let was_newer = |(of, known)| of == table && known != version;
                if mutate!("gas_never_refresh": known.is_some_and(was_newer) => true) {
                    // The copy of the table was read after the operation was issued.
                    return ReachedAddr::Refused(AddrError::StaleKey { addr });
                }
                self.fetcher.refresh(table, version)
            }
        };
        match wanted {
            TableWanted::Coming => self.jobs[index].table = table,
            TableWanted::Here => self.run.push(self.jobs, index),
            TableWanted::Later => self.later.push(self.jobs, index),
        }
        ReachedAddr::Waits
    }

    /// Posts one operation of a job.
    pub(super) fn post(
        &mut self,
        index: usize,
        op: Op,
        agent: Agent,
        near: OpPin,
        far: OpPin,
        addr: GlobalAddr,
    ) -> OutgoingOp {
        self.jobs[index].flights += 1;
        self.fly(op, agent, FlightPurpose::Job { job: index as u32, near, far, addr })
    }

    /// Handles a table that has come, or will not come. Jobs that wait for it go on
    /// before jobs for which the table could be evicted.
    pub(super) fn table_came(&mut self, table: u32, result: Result<(), AddrError>) {
        for index in 0..self.jobs.len() {
            let job = &mut self.jobs[index];
            if job.table != table {
                continue;
            }
            job.table = 0;
            if let Err(error) = result {
                let addr = address_of(&job.request);
                job.error = job.error.or(Some(error.at(addr)));
                if job.phase != OpPhase::Parts && job.flights == 0 {
                    self.finish(index);
                    continue;
                }
            }
            mutate!("gas_tables_chase_each_other":
                self.run.push_front(self.jobs, index) => self.run.push(self.jobs, index));
        }
        self.wake_later();
    }

    /// Handles the death of a rank: it does not carry out the commands that it has,
    /// and does not report copies into its memory.
    pub(super) fn lose(&mut self, rank: Rank) {
        self.knows_loss = true;
        self.registry.forget(rank);
        for index in 0..self.setup.shape.own_jobs as usize {
            let job = &self.jobs[index];
            let is_asked = matches!(
                job.phase,
                OpPhase::Asked | OpPhase::Asking { .. } | OpPhase::Backoff { .. }
            );
            let (from, to) = self.ranks_of(&job.request);
            let tells = mutate!("gas_relay_dies": to == Some(rank) => false);
            if !is_asked || job.command == 0 || !(from == Some(rank) || tells) {
                continue;
            }
            self.jobs[index].error = Some(AddrError::PeerLost { rank });
            self.forget_note(index);
            self.finish(index);
        }
    }

    pub(super) fn wake_later(&mut self) {
        while let Some(job) = self.later.pop(self.jobs) {
            self.run.push(self.jobs, job);
        }
    }

    /// Whether puts of a job that have completed may not have landed.
    pub(super) fn may_be_under_way(&self, index: usize) -> bool {
        let may_be = !self.setup.remote_completion && !self.jobs[index].last.is_null();
        mutate!("gas_local_completion": may_be => false)
    }

    /// Reads back the last byte that was put, after all puts.
    fn confirm(&mut self, index: usize) -> Option<OutgoingOp> {
        let addr = self.jobs[index].last;
        match self.reach(index, addr, 1, Need::Read) {
            ReachedAddr::At(target, hold) => {
                self.jobs[index].last = GlobalAddr::NULL;
                let op = Op::get_word(target.remote, Width::W1);
                Some(self.post(index, op, target.agent, OpPin::Nothing, hold, addr))
            }
            ReachedAddr::Waits => None,
            ReachedAddr::Refused(error) => {
                self.fail(index, error);
                None
            }
        }
    }

    /// Changes the word that reports that a copy has landed.
    fn raise_flag(&mut self, index: usize) -> Option<OutgoingOp> {
        let GlobalRequest::Copy(Copy { flag, add, .. }) = self.jobs[index].request else {
            return None;
        };
        match self.reach(index, flag, 8, Need::Write) {
            ReachedAddr::At(target, hold) => {
                let op = Op::atomic(Kind::FetchAdd, target.remote, add).notifying();
                Some(self.post(index, op, target.agent, OpPin::Nothing, hold, flag))
            }
            ReachedAddr::Waits => None,
            ReachedAddr::Refused(error) => {
                self.fail(index, error);
                None
            }
        }
    }
}

/// The address in an error that has no address of its own.
fn address_of(request: &GlobalRequest) -> GlobalAddr {
    match request {
        GlobalRequest::Copy(copy) => copy.dst,
        GlobalRequest::List(list) => list.entries,
        GlobalRequest::Word(WordRequest { target, .. }) => *target,
        GlobalRequest::Fence => GlobalAddr::NULL,
    }
}
