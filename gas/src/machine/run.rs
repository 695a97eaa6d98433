//! The steps of a job, and its end.

use super::parts::after_parts;
use super::tables::{Hold, Job, Phase, What};
use super::{Agent, Machine, Outgoing};
use crate::address::GlobalAddr;
use crate::cache::{Miss, Target, Wanted};
use crate::error::AccessError;
use crate::request::{Copy, Request, Word};
use tsumugi_core::mem::{AddrError, Need, Rank, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mutant;

/// The place of the far end of an operation.
pub(super) enum Reach {
    At(Target, Hold),
    /// The job waits in a queue or for a table.
    Waits,
    Refused(AccessError),
}

impl Machine<'_> {
    /// Starts a job when the operations before it allow that.
    pub(super) fn start(&mut self, index: usize) {
        let request = self.jobs[index].request;
        let (from, to) = self.ranks_of(&request);
        let own = Some(self.setup.rank);
        let nowhere = |addr| Some(AccessError::Nowhere { addr });
        let (phase, error) = match request {
            Request::Fence => (Phase::Ended, None),
            Request::Word(_) => (Phase::Parts, None),
            Request::Copy(copy) if from.is_none() => (Phase::Ended, nowhere(copy.src)),
            Request::Copy(copy) if to.is_none() => (Phase::Ended, nowhere(copy.dst)),
            Request::Copy(_) | Request::List(_)
                if from == own || to == own || self.is_between_near((from, to)) =>
            {
                (Phase::Parts, None)
            }
            Request::Copy(copy) if self.is_carried(&copy) => (Phase::Parts, None),
            Request::Copy(_) | Request::List(_) => (Phase::Asking { probe: 0 }, None),
        };
        let job = &mut self.jobs[index];
        (job.phase, job.error) = (phase, error);
        self.run.push(self.jobs, index);
    }

    /// Carries out the next step of a job, if that is possible now.
    pub(super) fn advance(&mut self, index: usize) -> Option<Outgoing> {
        let job = &self.jobs[index];
        if job.table != 0 {
            return None;
        }
        // The other phases have one operation in flight at a time, and its end queues the job.
        debug_assert!(job.flights == 0 || job.phase == Phase::Parts, "{job:?}");
        match job.phase {
            Phase::Ended => {
                self.ended.push(self.jobs, index);
                None
            }
            Phase::Parts => self.next_part(index),
            Phase::Entries => self.fetch_entries(index),
            Phase::Confirm => self.confirm(index),
            Phase::Flag => self.raise_flag(index),
            Phase::Asking { probe } => self.ask(index, probe),
            Phase::Command => self.fetch_command(index),
            Phase::Answer => self.answer(index),
            Phase::Free | Phase::Ordered | Phase::Backoff { .. } | Phase::Asked => None,
        }
    }

    /// Handles the completion of a job's operation.
    pub(super) fn advance_completed(&mut self, index: usize, result: Result<u64, AccessError>) {
        let job = &mut self.jobs[index];
        job.flights -= 1;
        match job.phase {
            Phase::Asking { probe } => return self.note_left(index, probe, result),
            Phase::Command => return self.command_came(index, result),
            Phase::Answer => {
                *job = Job { is_queued: job.is_queued, link: job.link, ..Job::FREE };
                return;
            }
            _ => {}
        }
        match result {
            Ok(value) => job.value = value,
            Err(error) => job.error = job.error.or(Some(error)),
        }
        match job.phase {
            Phase::Parts => self.run.push(self.jobs, index),
            _ if job.error.is_some() => self.finish(index),
            Phase::Entries => self.entries_came(index),
            Phase::Confirm => after_parts(self, index),
            _ => self.finish(index),
        }
    }

    /// Ends a job that has nothing in flight and posts no more parts. What it has
    /// put must have landed first, also if the job has failed, and a guest must get
    /// a report.
    pub(super) fn finish(&mut self, index: usize) {
        let is_asked_for = self.jobs[index].phase == Phase::Confirm;
        let may_be = self.may_be_under_way(index) && !mutant("gas_failed_unconfirmed");
        if may_be && !is_asked_for {
            self.jobs[index].phase = Phase::Confirm;
            self.run.push(self.jobs, index);
            return;
        }
        self.release_command(index);
        self.let_go_of(index);
        let job = &mut self.jobs[index];
        job.table = 0;
        if !matches!(job.request, Request::Word(_)) {
            job.value = 0;
        }
        job.phase = if job.guest.is_some() { Phase::Answer } else { Phase::Ended };
        self.run.push(self.jobs, index);
    }

    /// Ends a job with an error, when its operations in flight have completed.
    pub(super) fn fail(&mut self, index: usize, error: AccessError) {
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
    ) -> Reach {
        let split = self.setup.split;
        let (Ok(table), Some(rank)) = (self.table_of(addr), split.rank(addr)) else {
            return Reach::Refused(AccessError::Nowhere { addr });
        };
        if rank == self.setup.rank {
            return match self.registry.resolve(addr, bytes, need) {
                Ok((entry, record)) => {
                    let offset = addr.to_bits() & (split.region_bytes_max() - 1);
                    let remote = tsumugi_core::mem::RemoteAddr { offset, rank, key: entry.key };
                    let hold = record.map_or(Hold::Nothing, |record| {
                        self.registry.pin(record);
                        Hold::Record(record as u32)
                    });
                    Reach::At(Target { remote, agent: entry.agent }, hold)
                }
                Err(error) => Reach::Refused(error),
            };
        }
        let wanted = match self.cache.pin(addr, bytes, need) {
            Ok(pinned) => return Reach::At(pinned.target, Hold::Slot(pinned.slot)),
            Err(Miss::Refused(error)) => return Reach::Refused(error),
            Err(Miss::NoTable) => self.fetcher.want(table),
            Err(Miss::NotListed { version }) => {
                let known = self.jobs[index].unlisted.replace((table, version));
                let was_newer = |(of, known)| of == table && known != version;
                if known.is_some_and(was_newer) || mutant("gas_never_refresh") {
                    // The copy of the table was read after the operation was issued.
                    return Reach::Refused(AccessError::Stale { addr });
                }
                self.fetcher.refresh(table, version)
            }
        };
        match wanted {
            Wanted::Coming => self.jobs[index].table = table,
            Wanted::Here => self.run.push(self.jobs, index),
            Wanted::Later => self.later.push(self.jobs, index),
        }
        Reach::Waits
    }

    /// Posts one operation of a job.
    pub(super) fn post(
        &mut self,
        index: usize,
        op: Op,
        agent: Agent,
        near: Hold,
        far: Hold,
        addr: GlobalAddr,
    ) -> Outgoing {
        self.jobs[index].flights += 1;
        self.fly(op, agent, What::Job { job: index as u32, near, far, addr })
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
                job.error = job.error.or(Some(AccessError::of(error, addr)));
                if job.phase != Phase::Parts && job.flights == 0 {
                    self.finish(index);
                    continue;
                }
            }
            if mutant("gas_tables_chase_each_other") {
                self.run.push(self.jobs, index);
            } else {
                self.run.push_front(self.jobs, index);
            }
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
            let is_asked =
                matches!(job.phase, Phase::Asked | Phase::Asking { .. } | Phase::Backoff { .. });
            let (from, to) = self.ranks_of(&job.request);
            let tells = to == Some(rank) && !mutant("gas_relay_dies");
            if !is_asked || job.command == 0 || !(from == Some(rank) || tells) {
                continue;
            }
            self.jobs[index].error = Some(AccessError::PeerLost { rank });
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
        !self.setup.remote_completion
            && !self.jobs[index].last.is_null()
            && !mutant("gas_local_completion")
    }

    /// Reads back the last byte that was put, after all puts.
    fn confirm(&mut self, index: usize) -> Option<Outgoing> {
        let addr = self.jobs[index].last;
        match self.reach(index, addr, 1, Need::Read) {
            Reach::At(target, hold) => {
                self.jobs[index].last = GlobalAddr::NULL;
                let op = Op::get_word(target.remote, Width::W1);
                Some(self.post(index, op, target.agent, Hold::Nothing, hold, addr))
            }
            Reach::Waits => None,
            Reach::Refused(error) => {
                self.fail(index, error);
                None
            }
        }
    }

    /// Changes the word that reports that a copy has landed.
    fn raise_flag(&mut self, index: usize) -> Option<Outgoing> {
        let Request::Copy(Copy { flag, add, .. }) = self.jobs[index].request else { return None };
        match self.reach(index, flag, 8, Need::Write) {
            Reach::At(target, hold) => {
                let op = Op::atomic(Kind::FetchAdd, target.remote, add).notifying();
                Some(self.post(index, op, target.agent, Hold::Nothing, hold, flag))
            }
            Reach::Waits => None,
            Reach::Refused(error) => {
                self.fail(index, error);
                None
            }
        }
    }
}

/// The address in an error that has no address of its own.
fn address_of(request: &Request) -> GlobalAddr {
    match request {
        Request::Copy(copy) => copy.dst,
        Request::List(list) => list.entries,
        Request::Word(Word { target, .. }) => *target,
        Request::Fence => GlobalAddr::NULL,
    }
}
