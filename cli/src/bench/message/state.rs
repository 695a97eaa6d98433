//! The samples, by the state of the machine in which they were taken.

use super::case::Case;
use super::team::Team;
use super::together;
use crate::bench::row::Row;
use crate::core_distance::CoreDistance;
use crate::summary::Summary;

/// Samples of all teams and cases.
#[derive(Debug)]
pub struct Samples {
    teams: usize,
    /// The number of samples that a case needs in a state.
    enough: usize,
    /// By case, team and state; after the teams, the limit of two cores
    /// ([`together`]).
    cells: Vec<Vec<[CaseSamples; 2]>>,
}

#[derive(Clone, Debug, Default)]
struct CaseSamples {
    ns: Vec<f64>,
    before: Vec<f64>,
    after: Vec<f64>,
}

impl Samples {
    /// An empty set of samples.
    pub fn new(teams: usize, cases: usize, enough: u32) -> Self {
        let cells = vec![vec![Default::default(); teams + 1]; cases];
        Self { teams, enough: enough as usize, cells }
    }

    /// Adds the answers of the teams between two trips. If the ranks share a core,
    /// the state has no influence, and all samples count as near.
    pub fn add(
        &mut self,
        index: usize,
        case: &Case,
        answers: Vec<Vec<f64>>,
        trips: [Option<f64>; 2],
    ) {
        let state = if case.crosses {
            CoreDistance::of(trips[0], trips[1])
        } else {
            Some(CoreDistance::Near)
        };
        let Some(state) = state else { return };
        for (cells, ns) in self.cells[index].iter_mut().zip(answers) {
            let cell = &mut cells[state as usize];
            cell.ns.extend(ns);
            cell.before.extend(trips[0]);
            cell.after.extend(trips[1]);
        }
    }

    /// The number of cases that have enough samples of a state.
    pub fn seen(&self, state: CoreDistance) -> usize {
        (0..self.cells.len()).filter(|index| self.has_case(*index, state)).count()
    }

    /// Whether a case has enough samples of a state.
    pub fn has_case(&self, index: usize, state: CoreDistance) -> bool {
        let teams = &self.cells[index][..self.teams];
        teams.iter().all(|cell| cell[state as usize].before.len() >= self.enough)
    }

    /// Whether every case has enough samples of a state.
    pub fn has(&self, state: CoreDistance) -> bool {
        self.seen(state) == self.cells.len()
    }

    /// A row for each case, team and state.
    pub fn rows(self, teams: &[Team], cases: &[&Case]) -> Vec<Row> {
        let names: Vec<&str> =
            teams.iter().map(|team| &*team.name).chain([together::NAME]).collect();
        let mut rows = Vec::new();
        for (cells, case) in self.cells.into_iter().zip(cases) {
            for (cells, name) in cells.into_iter().zip(&names) {
                for (mut cell, state) in cells.into_iter().zip(CoreDistance::ALL) {
                    let Some(summary) = Summary::of(&mut cell.ns) else { continue };
                    let state =
                        if case.crosses { format!(" state={state}") } else { String::new() };
                    let params = format!("{}{state}", case.params);
                    let [before, after] = [cell.before, cell.after].map(median);
                    let row_name = case.name.to_owned();
                    rows.push(row(name, row_name, params, summary, [before, after]));
                }
            }
        }
        rows
    }
}

/// A row of this benchmark.
pub fn row(
    system: &str,
    name: String,
    params: String,
    summary: Summary,
    trips: [Option<f64>; 2],
) -> Row {
    Row {
        figure: "message".to_owned(),
        system: system.to_owned(),
        name,
        params,
        unit: "ns".to_owned(),
        summary,
        line_ns_before: trips[0],
        line_ns_after: trips[1],
    }
}

fn median(mut trips: Vec<f64>) -> Option<f64> {
    Summary::of(&mut trips).map(|summary| summary.median)
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_seen_before_and_after() {
        assert_eq!(CoreDistance::of(Some(31.0), Some(35.0)), Some(CoreDistance::Near));
        assert_eq!(CoreDistance::of(Some(165.0), Some(160.0)), Some(CoreDistance::Far));
        assert_eq!(CoreDistance::of(Some(31.0), Some(165.0)), None);
        assert_eq!(CoreDistance::of(None, None), None);
        assert_eq!(CoreDistance::of(Some(165.0), None), Some(CoreDistance::Far));
    }

    #[test]
    fn a_state_is_parsed_from_its_name() {
        for state in CoreDistance::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        assert!("Far".parse::<CoreDistance>().is_err());
    }

    #[test]
    fn samples_count_for_their_state() {
        let case = Case::new("latency", "bytes=8".to_owned(), String::new(), true);
        let mut samples = Samples::new(1, 1, 1);
        samples.add(0, &case, vec![vec![90.0]], [Some(31.0), Some(31.0)]);
        samples.add(0, &case, vec![vec![270.0]], [Some(31.0), Some(165.0)]);
        assert_eq!(CoreDistance::ALL.map(|state| samples.seen(state)), [1, 0]);
        assert_eq!(CoreDistance::ALL.map(|state| samples.has_case(0, state)), [true, false]);
        samples.add(0, &case, vec![vec![270.0]], [Some(165.0), Some(165.0)]);
        assert!(CoreDistance::ALL.into_iter().all(|state| samples.has(state)));
        samples.enough = 2;
        assert!(!samples.has(CoreDistance::Far));
    }
}
