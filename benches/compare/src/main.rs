//! The same work done by tsumugi and by its peers, in one run.
//!
//! | | is | with |
//! |---|---|---|
//! | `compare ult [--quick] [--only NAME] ...` | `tsumugi bench ult` | other systems of threads |
//! | `compare message [--quick] [--only NAME] ...` | `tsumugi bench message` | MPICH, Open MPI, UCX |
//! | `compare lock [--quick] [--only NAME] ...` | `tsumugi bench lock` | windows of MPICH and Open MPI |

mod message;
mod peers;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if let Some(figure @ ("message" | "lock")) = args.next().as_deref() {
        return message::compare(figure, args);
    }
    tsumugi_cli::compare(&peers::ULT)
}
