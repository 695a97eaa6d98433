//! Tests of whole ranks, over networks inside of the process.

mod attendance;
mod calls;
mod ending;
mod messages;
mod nodes;
