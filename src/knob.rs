//! A list of the environment variables, with their meanings and values, and the search
//! for misspelt ones.

mod variable;
mod group_list;
mod listed;
mod names;
mod misspelt;

pub(crate) use misspelt::report_misspelt;
pub use variable::{Knob, KnobGroup};

#[cfg(test)]
mod tests;
