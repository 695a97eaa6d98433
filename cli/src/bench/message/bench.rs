//! The measurement of cases with teams, by turns, which all groups share.

use super::case::{self, Case};
use super::state::Samples;
use super::team::{System, Team};
use super::together;
use crate::args;
use crate::bench::line::trip_ns;
use crate::bench::pinned::Pinned;
use crate::bench::row_writer::RowWriter;
use crate::core_distance::CoreDistance;
use crate::failure::Failure;
use crate::job;
use std::time::{Duration, Instant};
use tsumugi::pvas::launch::Guardian;

/// The state that all groups share.
pub struct MessageBench<'a> {
    pub message: &'a args::MessageArgs,
    pub names: &'a [&'static str],
    pub is_quick: bool,
    pub rows: RowWriter,
    /// A list of what could not be measured.
    pub text: String,
    pub peers: Vec<System>,
    /// The guardian of all teams.
    pub guardian: Guardian,
}

impl<'a> MessageBench<'a> {
    pub fn new(message: &'a args::MessageArgs, names: &'a [&'static str]) -> Result<Self, Failure> {
        let peers = message.peer.iter().map(|peer| System::parse(peer));
        let peers = peers.collect::<Result<_, _>>().map_err(Failure::Usage)?;
        let (is_quick, measure) = (message.measure.quick, &message.measure);
        let rows = RowWriter::new(measure.json.as_deref(), measure.csv.as_deref())?;
        let guardian = job::guardian("bench")?;
        let text = String::new();
        Ok(Self { message, names, is_quick, rows, text, peers, guardian })
    }

    /// Rounds of each command, if the arguments set them.
    pub fn rounds(&self) -> Option<u64> {
        self.message.measure.ops
    }

    /// Our designs and the peers, with these variables in their environment.
    pub fn systems(&self, env: &[(&str, &str)]) -> Result<Vec<System>, Failure> {
        let mut systems = case::designs()?;
        systems.extend(self.peers.iter().cloned());
        for system in &mut systems {
            system
                .env
                .extend(env.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        }
        Ok(systems)
    }

    /// Our default design and the peers, with these variables.
    pub fn one_of_ours(&self, env: &[(&str, &str)]) -> Result<Vec<System>, Failure> {
        let ours = self.systems(env)?.into_iter();
        let is_peer = |system: &System| self.peers.iter().any(|peer| peer.name == system.name);
        Ok(ours.filter(|system| system.name == case::OURS || is_peer(system)).collect())
    }

    /// Starts teams of the given number of ranks and measures the selected `cases`.
    /// If a CPU is given, the teams see only this CPU.
    pub fn measure(
        &mut self,
        cases: &[Case],
        (systems, ranks): (&[System], u32),
        cpu: Option<usize>,
    ) -> Result<(), Failure> {
        let cases: Vec<&Case> =
            cases.iter().filter(|case| self.names.contains(&case.name)).collect();
        if cases.is_empty() {
            return Ok(());
        }
        let crosses = cases.iter().any(|case| case.crosses);
        let only = self.message.state.filter(|_| crosses);
        let begin = Instant::now();
        let end = begin + self.wait();
        // The started processes inherit the pinning.
        let pinned = cpu.map(Pinned::to);
        let teams = self.start(systems, ranks, cases[0])?;
        drop(pinned);
        let mut teams = Teams { teams, systems, ranks, cpu, silent: Vec::new() };
        let enough = if only.is_some() { self.passes() } else { 1 };
        let mut samples = Samples::new(teams.teams.len(), cases.len(), enough);
        let all = cases.iter().copied().enumerate();
        let mut passes = 0;
        while only.is_none() && passes < self.passes() {
            let cases: Vec<(usize, &Case)> =
                all.clone().filter(|(_, case)| passes < case.passes).collect();
            if passes > 0 && passes % PASSES_OF_A_JOB == 0 && !cases.is_empty() {
                self.renew(&mut teams)?;
            }
            self.pass(&mut teams, &cases, &mut samples, None)?;
            passes += 1;
        }
        let wanted: Vec<CoreDistance> =
            CoreDistance::ALL.into_iter().filter(|s| only.is_none_or(|o| o == *s)).collect();
        if crosses {
            while !wanted.iter().all(|state| samples.has(*state)) && Instant::now() < end {
                match CoreDistance::of(trip_ns(), None) {
                    Some(state) if wanted.contains(&state) && !samples.has(state) => {
                        let cases: Vec<(usize, &Case)> = all.clone().collect();
                        self.pass(&mut teams, &cases, &mut samples, Some(state))?;
                    }
                    _ => std::thread::sleep(LOOK_AGAIN),
                }
            }
            for (state, seen) in wanted.iter().map(|state| (state, samples.seen(*state))) {
                if seen < cases.len() {
                    let (seconds, all) = (begin.elapsed().as_secs(), cases.len());
                    let what = format!("{} of {all} rows were not measured", all - seen);
                    let why = format!("the cores were not {state} for long enough");
                    self.text += &format!("\n{what}: {why} in {seconds} s\n");
                }
            }
        }
        self.rows.write(samples.rows(&teams.teams, &cases))
    }

    pub fn passes(&self) -> u32 {
        if self.is_quick { 1 } else { PASSES }
    }

    /// The time for which the benchmark waits for a state.
    fn wait(&self) -> Duration {
        let is_asked = !self.is_quick || self.message.state.is_some();
        let seconds = self.message.wait.unwrap_or(if is_asked { WAIT_SECONDS } else { 0 });
        Duration::from_secs(seconds)
    }

    /// Runs every case once, with the teams by turns; cases that still lack samples
    /// of a state run only while that state lasts.
    fn pass(
        &mut self,
        teams: &mut Teams<'_>,
        cases: &[(usize, &Case)],
        samples: &mut Samples,
        only: Option<CoreDistance>,
    ) -> Result<(), Failure> {
        let Some((_, first)) = cases.first() else { return Ok(()) };
        self.rows.progress.stage(first.name, cases.len() as u64);
        for (done, (index, case)) in (1..).zip(cases.iter().copied()) {
            let before = trip_ns();
            if let Some(only) = only
                && (samples.has_case(index, only) || CoreDistance::of(before, None) != Some(only))
            {
                continue;
            }
            let mut answers = Vec::new();
            for at in 0..teams.teams.len() {
                answers.push(self.answer(teams, at, case)?);
            }
            answers.push(together::measure(case));
            samples.add(index, case, answers, [before, trip_ns()]);
            self.rows.progress.at(done);
        }
        Ok(())
    }

    /// The answer of a team. A peer that does not answer is started again for the
    /// next case, and is not asked for this case any more.
    fn answer(
        &mut self,
        teams: &mut Teams<'_>,
        at: usize,
        case: &Case,
    ) -> Result<Vec<f64>, Failure> {
        if teams.silent.iter().any(|silent| *silent == (at, case.command.clone())) {
            return Ok(Vec::new());
        }
        let failure = match teams.teams[at].ask(&case.command, LIMIT) {
            Ok(answer) => return Ok(answer.ns),
            Err(failure) => failure,
        };
        let name = teams.teams[at].name.clone();
        let system = teams.systems.iter().find(|system| system.name == name);
        let Some(system) = system.filter(|_| self.peers.iter().any(|peer| peer.name == name))
        else {
            return Err(failure);
        };
        self.text += &format!("\n{failure}: this peer is left out for this row\n");
        teams.silent.push((at, case.command.clone()));
        // The started process inherits the pinning.
        let _pinned = teams.cpu.map(Pinned::to);
        teams.teams[at].end();
        teams.teams[at] = system.start(teams.ranks, &self.guardian)?;
        Ok(Vec::new())
    }

    /// Starts all teams anew: the place of a job's memory is random at each start,
    /// and on some machines it has more influence than the difference that is
    /// measured. A peer that does not start is tried again at its next case.
    fn renew(&mut self, teams: &mut Teams<'_>) -> Result<(), Failure> {
        // The started processes inherit the pinning.
        let _pinned = teams.cpu.map(Pinned::to);
        for team in &mut teams.teams {
            let system = teams.systems.iter().find(|system| system.name == team.name);
            team.end();
            match system.map(|system| system.start(teams.ranks, &self.guardian)) {
                Some(Ok(started)) => *team = started,
                Some(Err(failure)) if !self.peers.iter().any(|peer| peer.name == team.name) => {
                    return Err(failure);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Starts a team of each system. A peer that does not start or answer is left
    /// out.
    pub fn start(
        &mut self,
        systems: &[System],
        ranks: u32,
        case: &Case,
    ) -> Result<Vec<Team>, Failure> {
        let mut teams = Vec::new();
        let end = Instant::now() + self.wait();
        for system in systems {
            // The measurements that a job makes at its start must be made in this
            // state, too.
            while ranks == 2 && self.message.state.is_some_and(is_other) && Instant::now() < end {
                std::thread::sleep(LOOK_AGAIN);
            }
            let tried = system.start(ranks, &self.guardian).and_then(|mut team| {
                team.ask(&case.command, START_LIMIT)?;
                Ok(team)
            });
            match tried {
                Ok(team) => teams.push(team),
                Err(failure) if self.peers.iter().any(|peer| peer.name == system.name) => {
                    self.text += &format!("\n{failure}: this peer is left out\n");
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(teams)
    }
}

/// The running teams, and what is needed to start one of them again.
struct Teams<'s> {
    teams: Vec<Team>,
    systems: &'s [System],
    ranks: u32,
    cpu: Option<usize>,
    /// Pairs of a team and a command that the team has not answered.
    silent: Vec<(usize, String)>,
}

/// Whether the cores are known to be in another state.
fn is_other(state: CoreDistance) -> bool {
    CoreDistance::of(trip_ns(), None).is_some_and(|now| now != state)
}

const PASSES: u32 = 12;
const PASSES_OF_A_JOB: u32 = 3;
/// The longest wait for a state.
const WAIT_SECONDS: u64 = 180;
/// The interval at which the state is measured.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// The time limit for ranks to start and carry out a first command.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The time limit for any command, on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);
