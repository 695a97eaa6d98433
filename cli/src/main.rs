//! The command `tsumugi`; all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tsumugi_cli::command()
}
