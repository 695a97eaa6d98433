//! `tsumugi bench message`: messages between ranks, by each of our designs and by
//! the given peers, in turns.
//!
//! | group | what is measured |
//! |---|---|
//! | `latency` | half a round trip by size, pre-posted or not, on two cores |
//! | `same_core` | the same with both ranks on one core |
//! | `rate8` | messages of 8 bytes, 64 in flight |
//! | `halo` | 8 ranks in a cube: compute, exchange with 26 neighbours, agree |
//! | `crowd` | 8, 32 and 64 ranks in a ring on the available cores |
//! | `outside` | half a round trip between buffers outside of the partitions |
//! | `one_sided` | puts and gets by global addresses, beside the peers' ping-pong; copies between two other ranks |
//!
//! Long messages are compared with what two cores can do [`together`].
//!
//! Each system is a [team](team) of ranks that sleeps until its turn. A sample
//! counts for the state of the machine, near or far, that was measured just before
//! and just after. If a state does not occur, the benchmark waits for it for a
//! while, and then reports that it was not seen.

mod bars;
mod case;
mod crowd;
mod figures;
mod halo;
mod one_sided;
mod serve;
mod state;
mod team;
mod together;
mod work;

pub use figures::FIGURES;

use self::case::Case;
use self::state::Samples;
use self::team::{System, Team};
use super::pinned::Pinned;
use super::row::Row;
use super::{Group, Progress, chosen, table, trip_ns};
use crate::args;
use crate::failure::Failure;
use crate::job;
use crate::state::State;
use std::time::{Duration, Instant};
use tsumugi::pvas::launch::Guardian;

/// The rows of this figure.
pub const CATALOGUE: &[Group] = &[
    Group { name: "latency", rows: &["latency_pre", "latency"] },
    Group { name: "same_core", rows: &["same_core_pre", "same_core"] },
    Group { name: "rate8", rows: &["rate8"] },
    Group { name: "halo", rows: &["halo10", "halo20", "halo_limits"] },
    Group { name: "crowd", rows: &[crowd::ROW] },
    Group { name: "outside", rows: &["outside"] },
    Group { name: "one_sided", rows: &["put", "get", "third"] },
];

/// The measured rows, and a text about them.
pub struct Outcome {
    pub rows: Vec<Row>,
    pub text: String,
}

/// Measures; returns `None` if this process is one of the measured ranks.
pub fn message(message: &args::Messages) -> Result<Option<Outcome>, Failure> {
    if let Some(folder) = &message.serve {
        if !job::is_rank() {
            return Err(Failure::Usage(
                "--serve: this process is not a rank of a benchmark".to_owned(),
            ));
        }
        // If there are cores for all ranks, ranks 0 and 1 run on the first two, as
        // commands assume: the job measures these two at its start.
        job::config(Some(1))?.run(|rt| serve::serve(rt, folder))?;
        return Ok(None);
    }
    let names = chosen(message.measure.only.as_deref(), CATALOGUE)?;
    let mut bench = Bench::new(message, &names)?;
    let systems = bench.systems(&[])?;
    let cases = case::two_cores(bench.is_quick, bench.rounds());
    let mut rows = bench.measure(&cases, (&systems, 2), None)?;
    let cases = case::same_core(bench.is_quick, bench.rounds());
    let systems = bench.systems(case::YIELDING)?;
    rows.extend(bench.measure(&cases, (&systems, 2), Some(case::cpus()[0]))?);
    let [pairs, thirds] = case::one_sided(bench.is_quick, bench.rounds());
    let cases = case::outside(bench.is_quick, bench.rounds());
    let mut systems = bench.one_of_ours(&[])?;
    systems.insert(1, systems[0].by_slots());
    rows.extend(bench.measure(&cases, (&systems, 2), None)?);
    let systems = bench.one_of_ours(&[])?;
    rows.extend(bench.measure(&pairs, (&systems, 2), None)?);
    rows.extend(bench.measure(&thirds, (&systems[..1], 3), None)?);
    let mut text = bench.text.clone();
    let halo = halo::measure(&mut bench)?;
    rows.extend(halo.rows);
    text += &halo.text;
    let crowd = crowd::measure(&mut bench)?;
    rows.extend(crowd.rows);
    text += &crowd.text;
    // Rows with hundreds of points are shown as tables of their own.
    let listed: Vec<Row> = rows.iter().filter(|row| !figures::is_plotted(row)).cloned().collect();
    let plots = FIGURES.iter().filter_map(|figure| Some((figure.name, figure.plot(&rows)?)));
    let figures: String = plots.map(|(name, plot)| table::figure(name, &plot)).collect();
    let text = table::table(&listed) + &figures + &text + &bars::bars(&rows);
    Ok(Some(Outcome { rows, text }))
}

/// The state that all groups share.
struct Bench<'a> {
    message: &'a args::Messages,
    names: &'a [&'static str],
    is_quick: bool,
    progress: Progress,
    /// A list of what could not be measured.
    text: String,
    peers: Vec<System>,
    /// The guardian of all teams.
    guardian: Guardian,
}

impl<'a> Bench<'a> {
    fn new(message: &'a args::Messages, names: &'a [&'static str]) -> Result<Self, Failure> {
        let peers = message.peer.iter().map(|peer| System::parse(peer));
        let peers = peers.collect::<Result<_, _>>().map_err(Failure::Usage)?;
        let (is_quick, progress) = (message.measure.quick, Progress::new());
        let guardian = super::guardian("bench")?;
        let text = String::new();
        Ok(Self { message, names, is_quick, progress, text, peers, guardian })
    }

    /// Rounds of each command, if the arguments set them.
    fn rounds(&self) -> Option<u64> {
        self.message.measure.ops
    }

    /// Our designs and the peers, with these variables in their environment.
    fn systems(&self, env: &[(&str, &str)]) -> Result<Vec<System>, Failure> {
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
    fn one_of_ours(&self, env: &[(&str, &str)]) -> Result<Vec<System>, Failure> {
        let ours = self.systems(env)?.into_iter();
        let is_peer = |system: &System| self.peers.iter().any(|peer| peer.name == system.name);
        Ok(ours.filter(|system| system.name == case::OURS || is_peer(system)).collect())
    }

    /// Starts teams of the given number of ranks and measures the selected `cases`.
    /// If a CPU is given, the teams see only this CPU.
    fn measure(
        &mut self,
        cases: &[Case],
        (systems, ranks): (&[System], u32),
        cpu: Option<usize>,
    ) -> Result<Vec<Row>, Failure> {
        let cases: Vec<&Case> =
            cases.iter().filter(|case| self.names.contains(&case.name)).collect();
        if cases.is_empty() {
            return Ok(Vec::new());
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
        let wanted: Vec<State> =
            State::ALL.into_iter().filter(|s| only.is_none_or(|o| o == *s)).collect();
        if crosses {
            while !wanted.iter().all(|state| samples.has(*state)) && Instant::now() < end {
                match State::of(trip_ns(), None) {
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
        Ok(samples.rows(&teams.teams, &cases))
    }

    fn passes(&self) -> u32 {
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
        only: Option<State>,
    ) -> Result<(), Failure> {
        let Some((_, first)) = cases.first() else { return Ok(()) };
        self.progress.stage(first.name, cases.len() as u64);
        for (done, (index, case)) in (1..).zip(cases.iter().copied()) {
            let before = trip_ns();
            if let Some(only) = only
                && (samples.has_case(index, only) || State::of(before, None) != Some(only))
            {
                continue;
            }
            let mut answers = Vec::new();
            for at in 0..teams.teams.len() {
                answers.push(self.answer(teams, at, case)?);
            }
            answers.push(together::measure(case));
            samples.add(index, case, answers, [before, trip_ns()]);
            self.progress.at(done);
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
    fn start(&mut self, systems: &[System], ranks: u32, case: &Case) -> Result<Vec<Team>, Failure> {
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
fn is_other(state: State) -> bool {
    State::of(trip_ns(), None).is_some_and(|now| now != state)
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
const LIMIT: Duration = Duration::from_secs(60);
