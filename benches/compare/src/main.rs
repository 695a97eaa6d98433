//! The same work done by tsumugi and by its peers, in one run.
//!
//! | | is | with |
//! |---|---|---|
//! | `compare ult [--quick] [--only NAME] ...` | `tsumugi bench ult` | other systems of threads |
//! | `compare message [--quick] [--only NAME] ...` | `tsumugi bench message` | MPICH, Open MPI, UCX |

mod message;
mod peers;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("message") {
        return message::compare(args);
    }
    tsumugi_cli::compare(&peers::ULT)
}
