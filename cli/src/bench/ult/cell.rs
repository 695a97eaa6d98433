//! One cell of the table of all systems.

use crate::bench::row::Row as Line;
use tsumugi_bench_ult::System;
use tsumugi_bench_ult::turns::Missing;

/// The result of one system for one row.
#[derive(Clone, Debug)]
pub struct SystemResult {
    pub system: &'static System,
    pub row: &'static str,
    pub workers: usize,
    pub outcome: Result<Vec<Line>, Missing>,
}
