//! Operations a second through a communication thread, by requesters that all share
//! one core, each with up to [`WINDOW`] operations outstanding.

use super::bed::{BenchDevice, TestBed};
use super::bench::RmaBench;
use super::crew::{self, Crew, Work};
use crate::bench::catalogue::Group;
use crate::bench::measured::budget;
use crate::failure::Failure;
use std::collections::VecDeque;
use std::sync::Arc;
use tsumugi::AddrError;
use tsumugi_core::completion::{Busy, Status, Ticket};
use tsumugi_core::engine::Engine;
use tsumugi_core::mem::Width;
use tsumugi_core::op::Op;

pub const GROUP: Group = Group { name: "requesters", rows: &["offload_rate"] };

/// The numbers of requesters that are compared.
pub const REQUESTERS: [usize; 4] = [1, 2, 4, 8];

pub fn measure(bench: &RmaBench<'_>, bed: &mut TestBed) -> Result<(), Failure> {
    if !bench.wants("offload_rate") {
        return Ok(());
    }
    let ops = bench.places.iter().map(|place| Op::get_word(place.addr(), Width::W8));
    let ops: Arc<[Op]> = ops.collect();
    let crews = [("thread", Crew::Threads(&bench.cpus[..1])), ("ult", Crew::Ults(bench.rt))];
    for (kind, crew) in crews {
        bench.rows.progress.stage(&format!("offload_rate, {kind}s"), ROUNDS.into());
        // All numbers of requesters take turns, so that a drift of the machine
        // affects all.
        let timed = bench.between_trips(|| {
            let mut samples = REQUESTERS.map(|_| Vec::new());
            for round in 0..ROUNDS {
                for (requesters, samples) in REQUESTERS.into_iter().zip(&mut samples) {
                    let serving = bed.offload(bench.cpus[1]);
                    let window = |hint| match crew {
                        Crew::Threads(_) => RequestWindow::new(serving.engine(), hint, &ops),
                        Crew::Ults(_) => {
                            RequestWindow::new(serving.engine(), hint, &ops).sleeping()
                        }
                    };
                    let budget = budget(bench.measure).part(ROUNDS);
                    let windows = (0..requesters).map(window).collect();
                    samples.extend(crew::run(crew, budget, windows)?);
                }
                bench.rows.progress.at(u64::from(round) + 1);
            }
            Ok(samples)
        })?;
        for (requesters, mut samples) in REQUESTERS.into_iter().zip(timed.value.clone()) {
            let params = format!("requesters={requesters} kind={kind} window={WINDOW}");
            bench.rows.write(timed.row("offload_rate", &params, &mut samples))?;
        }
    }
    Ok(())
}

/// A requester with up to [`WINDOW`] operations outstanding.
pub struct RequestWindow {
    engine: &'static Engine<'static, BenchDevice>,
    hint: usize,
    ops: Arc<[Op]>,
    next: usize,
    tickets: VecDeque<Ticket<'static, ()>>,
    /// Whether it sleeps until its oldest operation has ended, instead of yielding
    /// and polling.
    sleeps: bool,
}

impl RequestWindow {
    /// A requester that runs `ops` over and over; `hint` is its number.
    pub fn new(
        engine: &'static Engine<'static, BenchDevice>,
        hint: usize,
        ops: &Arc<[Op]>,
    ) -> Self {
        // Each requester begins at another operation, so that they do not run in
        // step.
        let next = hint * ops.len() / 16;
        let tickets = VecDeque::with_capacity(WINDOW);
        Self { engine, hint, ops: ops.clone(), next, tickets, sleeps: false }
    }

    /// The same requester, which sleeps until its oldest operation has ended.
    fn sleeping(self) -> Self {
        Self { sleeps: true, ..self }
    }

    fn reap(&mut self) -> Result<u64, AddrError> {
        let mut ended = 0;
        while self.tickets.front().is_some_and(Ticket::is_done) {
            let ticket = self.tickets.pop_front().expect("the queue has a front");
            let Ok(outcome) = ticket.try_finish() else { unreachable!("the ticket was done") };
            outcome.result?;
            ended += 1;
        }
        Ok(ended)
    }
}

impl Work for RequestWindow {
    fn turn(&mut self, relax: &dyn Fn()) -> Result<u64, AddrError> {
        let mut ended = 0;
        for _ in self.tickets.len()..WINDOW {
            let op = self.ops[self.next % self.ops.len()];
            match submit(self.engine, self.hint, op) {
                Ok(Status::Done(outcome)) => {
                    outcome.result?;
                    ended += 1;
                }
                Ok(Status::Pending(ticket)) => self.tickets.push_back(ticket),
                Err(_) => break,
            }
            self.next += 1;
        }
        ended += self.reap()?;
        if ended == 0 && self.engine.poll() == 0 {
            match self.tickets.pop_front() {
                Some(oldest) if self.sleeps => {
                    oldest.wait(&tsumugi::ult::Here).result?;
                    ended += 1 + self.reap()?;
                }
                Some(oldest) => {
                    self.tickets.push_front(oldest);
                    relax();
                }
                None => relax(),
            }
        }
        Ok(ended)
    }

    fn finish(&mut self, relax: &dyn Fn()) {
        while !self.tickets.is_empty() {
            // The turn that saw an error first has reported it.
            let _ = self.reap();
            if self.engine.poll() == 0 {
                relax();
            }
        }
    }
}

/// A submit that is not inlined, as from many places of a program.
#[inline(never)]
fn submit(
    engine: &'static Engine<'static, BenchDevice>,
    hint: usize,
    op: Op,
) -> Result<Status<'static, ()>, Busy<()>> {
    engine.submit(hint, op, ())
}

const WINDOW: usize = 64;
const ROUNDS: u32 = 10;
