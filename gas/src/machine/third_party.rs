//! Copies by commands: this rank asks others to do them, and does them for others.

use super::rank::GlobalMachine;
use super::tables::{FlightPurpose, OpPhase, OpPin, PendingOp, RemoteCaller, SentCommand};
use super::traffic::OutgoingOp;
use crate::address::GlobalAddr;
use crate::command::{CommandEnd, CommandNote, CopyCommand, WORDS};
use crate::control::COMMAND_BYTES;
use crate::request::{Copy, GlobalRequest};
use crate::table::{Agent, take};
use core::time::Duration;
use tsumugi_core::mem::{AddrError, Rank, Width};
use tsumugi_core::mutate;
use tsumugi_core::op::Op;
use tsumugi_core::sync::mapped::Ordering;
use tsumugi_core::time::Instant;

impl GlobalMachine<'_> {
    /// Sends a command to the source of a copy, and leaves a note there.
    pub(super) fn ask(&mut self, index: usize, probe: u32) -> Option<OutgoingOp> {
        let job = self.jobs[index];
        let (Some(to), _) = self.ranks_of(&job.request) else { return None };
        let Some(at) = self.command_of(index, to) else {
            self.later.push(self.jobs, index);
            return None;
        };
        let own = self.setup.rank;
        if self.setup.shape.cells > 0 && !self.commands[at].is_sent {
            self.commands[at].is_sent = true;
            let from = self.control.own_command(at as u32);
            let op = Op::put(from, self.control.cell(to, own), COMMAND_BYTES as u64);
            let hint = self.fly(op, Agent::Cpu, FlightPurpose::Hint);
            if self.is_near(Some(to))
                || self.setup.ordered_bytes_max < op.bytes()
                || !self.has_flight()
            {
                self.run.push(self.jobs, index);
                return Some(hint);
            }
            let note = self.note(index, at, to, probe);
            return Some(OutgoingOp { then: Some(note.op), ..hint });
        }
        Some(self.note(index, at, to, probe))
    }

    /// The operation that leaves the note of a command.
    fn note(&mut self, index: usize, at: usize, to: Rank, probe: u32) -> OutgoingOp {
        let own = self.setup.rank;
        let stamp = self.commands[at].stamp;
        let note =
            CommandNote { from: own, index: at as u16, stamp: stamp as u16, is_relay: false };
        let op = self.leave(note, to, own.0 ^ stamp << 16, probe);
        let addr = source_of(&self.jobs[index].request);
        let out = self.post(index, op, Agent::Cpu, OpPin::Nothing, OpPin::Nothing, addr);
        self.commands[at].note = out.op.tag.index() as u32;
        out
    }

    /// The command has ended. If the completion of its note is still on its way, no
    /// job waits for that completion any more.
    pub(super) fn forget_note(&mut self, index: usize) {
        let job = &mut self.jobs[index];
        if core::mem::take(&mut job.flights) > 0 {
            let note = self.commands[job.command as usize - 1].note;
            self.flights[note as usize].what = FlightPurpose::Hint;
        }
    }

    /// The operation that stores a note in one of the words for notes at `to`, if
    /// the word is free.
    fn leave(&self, note: CommandNote, to: Rank, seed: u32, probe: u32) -> Op {
        let mixed = seed.wrapping_add(probe).wrapping_mul(0x9e37_79b9);
        let word = (mixed >> 8) & (self.setup.shape.notes - 1);
        Op::compare_swap(self.control.note(to, word), 0u64, note.encode()).notifying()
    }

    /// The note that is posted right behind a remote caller's last put, which keeps its
    /// order, so that the destination reports the end to the caller. It is posted
    /// only if nothing else of the job is in flight, because an operation that the
    /// device did not take is posted again later.
    pub(super) fn relay(&mut self, index: usize) -> Option<Op> {
        let PendingOp { caller, request, block, flights, .. } = self.jobs[index];
        let (caller, GlobalRequest::Copy(copy)) = (caller?, request) else { return None };
        let RemoteCaller { rank, index: at, stamp, no_relay } = caller;
        // If the source has to raise the flag after the bytes have landed, the
        // source reports the end, too.
        let is_all = block == copy.count && (copy.flag.is_null() || !copy.is_one_block());
        let to = self.ranks_of(&request).1?;
        // If the caller itself is the destination, the relay is not faster.
        let is_seen = to == rank || self.is_near(Some(to));
        if !is_all || flights != 1 || is_seen || no_relay || !self.has_flight() {
            return None;
        }
        let note = CommandNote { from: rank, index: at, stamp: stamp as u16, is_relay: true };
        let op = self.leave(note, to, rank.0 ^ stamp << 16, 0);
        self.jobs[index].flights += 1;
        Some(self.fly(op, Agent::Cpu, FlightPurpose::Relay { job: index as u32 }).op)
    }

    /// Handles the result of the relay note: the destination has it, or there was no
    /// room for it.
    pub(super) fn relay_left(&mut self, index: usize, result: Result<u64, AddrError>) {
        let job = &mut self.jobs[index];
        job.flights -= 1;
        job.is_relayed = result == Ok(0);
        self.run.push(self.jobs, index);
    }

    /// Handles the result of a note: it was left, or its word was in use.
    pub(super) fn note_left(
        &mut self,
        index: usize,
        probe: u32,
        result: Result<u64, AddrError<GlobalAddr>>,
    ) {
        match result {
            Err(error) => self.fail(index, error),
            Ok(0) => self.jobs[index].phase = OpPhase::Asked,
            Ok(_) if probe + 1 < PROBES => {
                self.jobs[index].phase = OpPhase::Asking { probe: probe + 1 };
                self.run.push(self.jobs, index);
            }
            Ok(_) => self.back_off(index),
        }
    }

    /// Takes ends of commands that may have come.
    pub(super) fn take_ends(&mut self) {
        for at in 0..self.commands.len() {
            // Acquire: orders all that the source did before this.
            let word = take(&self.words[self.control.end_words() + at]);
            if word == 0 {
                continue;
            }
            let SentCommand { job, stamp, .. } = self.commands[at];
            let end = CommandEnd::decode(word);
            let code = mutate!("gas_end_of_any_life": end.of(stamp) => Some(0));
            match job.zip(code) {
                Some((job, code)) => {
                    self.relayed += u64::from(matches!(end, CommandEnd::Relayed { .. }));
                    self.ended_elsewhere(job as usize, code);
                }
                None => self.dropped += 1,
            }
        }
    }

    /// Takes notes that may have come, as long as there are free jobs for them.
    pub(super) fn take_notes(&mut self) {
        let own = self.setup.shape.own_jobs as usize;
        let first = self.control.note_words();
        let words = &self.words[first..first + self.setup.shape.notes as usize];
        while self.has_notes {
            let is_free = |job: &PendingOp| job.phase == OpPhase::Free && !job.is_queued;
            let end = self.jobs.len();
            let places = own..mutate!("gas_guests_wait_for_hosts":
                end => if self.order.is_empty() { end } else { own });
            let Some(index) = places.into_iter().find(|&job| is_free(&self.jobs[job])) else {
                return;
            };
            // Begins after the word that was taken last, so that each word has its
            // turn.
            let found = (0..words.len())
                .map(|step| (self.note_cursor + step) % words.len())
                .find(|&word| words[word].load(Ordering::Relaxed) != 0);
            let Some(word) = found else {
                self.has_notes = false;
                return;
            };
            self.note_cursor = word + 1;
            // Acquire: the command was written before. No other thread or rank
            // changes a word that is not zero.
            let note = words[word].load(Ordering::Acquire);
            words[word].store(0, Ordering::Release);
            let ranks = self.setup.shape.ranks;
            let Some(note) = CommandNote::decode(note).filter(|note| note.from.0 < ranks) else {
                self.dropped += 1;
                continue;
            };
            let stamp = u32::from(note.stamp);
            let (rank, at) = (note.from, note.index);
            let caller = Some(RemoteCaller { rank, index: at, stamp, no_relay: false });
            if note.is_relay {
                let job = PendingOp {
                    phase: OpPhase::Answer,
                    caller,
                    is_relayed: true,
                    ..PendingOp::FREE
                };
                self.jobs[index] = job;
                self.run.push(self.jobs, index);
                continue;
            }
            self.jobs[index] = PendingOp { phase: OpPhase::Command, caller, ..PendingOp::FREE };
            if self.setup.shape.cells > 0 {
                let command = self.command_at(self.control.cell_words(note.from), note.from);
                if command.is_some_and(|command| self.accept_command(index, command)) {
                    self.hints += 1;
                    continue;
                }
            }
            self.run.push(self.jobs, index);
        }
    }

    pub(super) fn fetch_command(&mut self, index: usize) -> Option<OutgoingOp> {
        let RemoteCaller { rank, index: at, .. } = self.jobs[index].caller?;
        if u32::from(at) >= self.setup.shape.commands {
            self.drop_caller(index);
            return None;
        }
        let from = self.control.command(rank, u32::from(at));
        let op = Op::get(from, self.control.landing(index), (WORDS * 8) as u64);
        let addr = crate::address::GlobalAddr::NULL;
        Some(self.post(index, op, Agent::Cpu, OpPin::Nothing, OpPin::Nothing, addr))
    }

    pub(super) fn command_came(
        &mut self,
        index: usize,
        result: Result<u64, AddrError<GlobalAddr>>,
    ) {
        let Some(RemoteCaller { rank, .. }) = self.jobs[index].caller else { return };
        let command = self.command_at(self.control.landing_words(index), rank);
        let command = command.filter(|_| result.is_ok());
        if !command.is_some_and(|command| self.accept_command(index, command)) {
            self.drop_caller(index);
        }
    }

    /// The command in the words from `first` on, if it is a valid command of `from`.
    fn command_at(&self, first: usize, from: Rank) -> Option<CopyCommand> {
        let words = &self.words[first..first + WORDS];
        let words = core::array::from_fn(|word| words[word].load(Ordering::Relaxed));
        CopyCommand::decode(&words, from)
    }

    /// Begins the command that a note has announced, if this is that command.
    fn accept_command(&mut self, index: usize, command: CopyCommand) -> bool {
        let Some(caller) = self.jobs[index].caller else { return false };
        let is_it = command.to == self.setup.rank
            && command.index == caller.index
            && command.stamp as u16 == caller.stamp as u16;
        if !is_it {
            return false;
        }
        let job = &mut self.jobs[index];
        let CopyCommand { stamp, no_relay, .. } = command;
        job.caller = Some(RemoteCaller { stamp, no_relay, ..caller });
        (job.request, job.phase) = (command.request, OpPhase::Parts);
        let is_own = self.ranks_of(&command.request).0 == Some(self.setup.rank);
        if is_own {
            self.run.push(self.jobs, index);
        } else {
            self.fail(index, AddrError::OtherRank { addr: source_of(&command.request) });
        }
        true
    }

    /// Reports the end of its copy to a remote caller.
    pub(super) fn answer(&mut self, index: usize) -> Option<OutgoingOp> {
        let PendingOp { caller, error, is_relayed, .. } = self.jobs[index];
        let RemoteCaller { rank, index: at, stamp, .. } = caller?;
        let end = match error {
            None if is_relayed => CommandEnd::Relayed { stamp: stamp as u16 },
            error => CommandEnd::Told { stamp, code: error.map_or(0, AddrError::to_code) },
        };
        let word = end.encode();
        let op = Op::put_word(self.control.end(rank, u32::from(at)), Width::W8, word).notifying();
        let addr = crate::address::GlobalAddr::NULL;
        Some(self.post(index, op, Agent::Cpu, OpPin::Nothing, OpPin::Nothing, addr))
    }

    /// Tries again to leave the notes for which the pause is over.
    pub(super) fn wake_backoffs(&mut self) {
        self.earliest = None;
        for index in 0..self.setup.shape.own_jobs as usize {
            let OpPhase::Backoff { until } = self.jobs[index].phase else { continue };
            if until <= self.now {
                self.jobs[index].phase = OpPhase::Asking { probe: 0 };
                self.run.push(self.jobs, index);
            } else {
                self.expect(until);
            }
        }
    }

    /// Frees the place of a job's command for another command.
    pub(super) fn release_command(&mut self, index: usize) {
        let at = core::mem::take(&mut self.jobs[index].command);
        if at != 0 {
            self.commands[at as usize - 1].job = None;
            self.wake_later();
        }
    }

    /// The place of a job's command. If the command has none, it is written to a
    /// free place first.
    fn command_of(&mut self, index: usize, to: Rank) -> Option<usize> {
        if let Some(at) = self.jobs[index].command.checked_sub(1) {
            return Some(at as usize);
        }
        let at = self.commands.iter().position(|command| command.job.is_none())?;
        let place = &mut self.commands[at];
        // Never 0, which is the content of fresh memory.
        let stamp = place.stamp.checked_add(1).unwrap_or(1);
        *place = SentCommand { job: Some(index as u32), stamp, ..SentCommand::FREE };
        self.jobs[index].command = at as u32 + 1;
        let request = self.jobs[index].request;
        let no_relay = mutate!("gas_relay_of_the_lost": self.knows_loss => false);
        let command = CopyCommand { request, index: at as u16, stamp, to, no_relay };
        let words = command.encode(self.setup.rank).expect("only copies are sent as commands");
        let first = self.control.command_words() + at * WORDS;
        for (word, value) in words.into_iter().enumerate() {
            // Relaxed: the note that follows is posted by the same thread, or was
            // handed to another thread through a lock.
            self.words[first + word].store(value, Ordering::Relaxed);
        }
        Some(at)
    }

    fn back_off(&mut self, index: usize) {
        let at = self.jobs[index].command as usize - 1;
        let round = self.commands[at].backoffs;
        self.commands[at].backoffs = round.saturating_add(1);
        let spread = u64::from(self.setup.rank.0.wrapping_mul(0x9e37_79b9) >> 22);
        let ns = (BACKOFF_NS << round.min(6)) + spread;
        let until = self.now + Duration::from_nanos(ns);
        self.jobs[index].phase = OpPhase::Backoff { until };
        self.expect(until);
    }

    fn expect(&mut self, at: Instant) {
        self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
    }

    fn ended_elsewhere(&mut self, index: usize, code: u32) {
        let job = &mut self.jobs[index];
        let (bytes, addr) = match job.request {
            GlobalRequest::Copy(Copy { dst, bytes, .. }) => (bytes, dst),
            _ => (0, source_of(&job.request)),
        };
        job.error = job.error.or(AddrError::from_code(code, addr, bytes));
        self.forget_note(index);
        self.release_command(index);
        // With strided blocks, the caller has to raise the flag.
        let job = &mut self.jobs[index];
        let is_left = matches!(job.request, GlobalRequest::Copy(copy)
            if !copy.is_one_block() && !copy.flag.is_null());
        if is_left && job.error.is_none() {
            job.phase = OpPhase::Flag;
            return self.run.push(self.jobs, index);
        }
        self.finish(index);
    }

    fn drop_caller(&mut self, index: usize) {
        self.dropped += 1;
        self.jobs[index] = PendingOp::FREE;
    }
}

fn source_of(request: &GlobalRequest) -> crate::address::GlobalAddr {
    match request {
        GlobalRequest::Copy(copy) => copy.src,
        GlobalRequest::List(list) => list.entries,
        GlobalRequest::Word(word) => word.target,
        GlobalRequest::Fence => crate::address::GlobalAddr::NULL,
    }
}

/// Words for a note that are tried before a pause.
const PROBES: u32 = 4;
/// The length of the first pause, in nanoseconds.
const BACKOFF_NS: u64 = 1_000;
