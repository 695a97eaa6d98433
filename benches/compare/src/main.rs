//! The same work done by tsumugi and by its peers, in one run.
//!
//! `compare ult [--quick] [--only NAME] [--json FILE] [--csv FILE]` is
//! `tsumugi bench ult` with more systems: the same turns, the same report.

mod peers;

use std::process::ExitCode;

fn main() -> ExitCode {
    tsumugi_cli::compare(&peers::ULT)
}
