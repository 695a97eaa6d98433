//! How far the cores of the machine are from each other.

use std::fmt;
use std::str::FromStr;
use tsumugi::pvas::Distance;

/// How far the cores were from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Near,
    Far,
}

impl State {
    pub const ALL: [Self; 2] = [Self::Near, Self::Far];

    /// By the trip of a line; none where it changed, or there is none.
    pub fn of(before: Option<f64>, after: Option<f64>) -> Option<Self> {
        let (before, after) = (before?, after.or(before)?);
        if before.max(after) > before.min(after) * DRIFT_MAX {
            return None;
        }
        let is_near = |trip| Distance::of_trip(trip) == Distance::Near;
        match (is_near(before), is_near(after)) {
            (true, true) => Some(Self::Near),
            (false, false) => Some(Self::Far),
            _ => None,
        }
    }
}

impl FromStr for State {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let is_it = |state: &Self| state.to_string() == word;
        Self::ALL.into_iter().find(is_it).ok_or("expected near or far")
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Near => "near",
            Self::Far => "far",
        })
    }
}

/// As rows have it.
const DRIFT_MAX: f64 = 1.5;
