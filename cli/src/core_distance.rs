//! How far the cores of the machine are from each other.

use std::fmt;
use std::str::FromStr;
use tsumugi::pvas::Distance;

/// The distance between the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreDistance {
    Near,
    Far,
}

impl CoreDistance {
    pub const ALL: [Self; 2] = [Self::Near, Self::Far];

    /// The state by the one-way trip of a cache line before and after a measurement;
    /// `None` if the trip changed, or was not measured.
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

impl FromStr for CoreDistance {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let is_it = |state: &Self| state.to_string() == word;
        Self::ALL.into_iter().find(is_it).ok_or("expected 'near' or 'far'")
    }
}

impl fmt::Display for CoreDistance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Near => "near",
            Self::Far => "far",
        })
    }
}

/// The same limit as for rows.
const DRIFT_MAX: f64 = 1.5;
