//! The same work done by tsumugi and by its peers, in one run.
//!
//! | | is | with |
//! |---|---|---|
//! | `compare ult [--quick] [--only NAME] ...` | `tsumugi bench ult` | other systems of threads |
//! | `compare message [--quick] [--only NAME] ...` | `tsumugi bench message` | MPICH, Open MPI, UCX |
//! | `compare lock [--quick] [--only NAME] ...` | `tsumugi bench lock` | windows of MPICH and Open MPI |
//! | `compare exchange [--quick] [--ranks N] ...` | a program on MPI | MPICH, Open MPI |
//! | `compare c [--quick] [--only NAME] ...` | programs in C | MassiveThreads, ACP, Rust |

mod c;
mod exchange;
mod message;
mod peers;
mod turns;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some(figure @ ("message" | "lock")) => return message::compare(figure, args),
        Some("c") => return c::compare(args),
        Some("exchange") => {
            return match exchange::compare(args) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("compare: {error}");
                    ExitCode::FAILURE
                }
            };
        }
        _ => {}
    }
    tsumugi_cli::compare(&peers::ULT)
}
