//! The list of the variables of one group, and the forms in which values are shown.

use super::variable::{Knob, KnobGroup};
use std::fmt::Display;
use std::time::Duration;
use tsumugi_core::quantity::Size;

/// The variables of one group, as they are listed.
pub struct GroupList {
    group: KnobGroup,
    knobs: Vec<Knob>,
}

impl GroupList {
    pub fn new(group: KnobGroup) -> Self {
        Self { group, knobs: Vec::new() }
    }

    pub fn add(
        mut self,
        name: &'static str,
        meaning: impl Display,
        default: impl Display,
        chosen: impl Display,
    ) -> Self {
        let (default, chosen) = (Some(default.to_string()), Some(chosen.to_string()));
        self.knobs.push(Knob {
            group: self.group,
            name,
            meaning: meaning.to_string(),
            default,
            chosen,
        });
        self
    }

    /// A text that is passed on as it is.
    pub fn text(self, name: &'static str, meaning: &str, default: &str) -> Self {
        let chosen = env(name).unwrap_or_else(|| default.to_owned());
        self.add(name, meaning, default, chosen)
    }

    /// A variable that a launcher sets.
    pub fn told(mut self, name: &'static str, meaning: &str) -> Self {
        let (meaning, chosen) = (meaning.to_owned(), env(name));
        self.knobs.push(Knob { group: self.group, name, meaning, default: None, chosen });
        self
    }

    /// The variables, in the order in which they were added.
    pub fn into_knobs(self) -> Vec<Knob> {
        self.knobs
    }
}

pub fn bytes(bytes: usize) -> Size {
    Size(bytes as u64)
}

pub fn show(bytes: u64) -> String {
    Size(bytes).to_string()
}

pub fn time(time: Duration) -> String {
    format!("{time:?}")
}

pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
