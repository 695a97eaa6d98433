//! What `#[tsumugi::main]` makes of the `main` of a rank. Programs do not name it.

use crate::{Error, Rank, Runtime, run};
use std::fmt::Debug;
use std::process::{ExitCode, Termination};

/// Runs `body` as a rank, and reports its end as `std` reports that of a `main`, with the
/// number of the rank in front of an error.
pub fn main<R: RankResult>(body: impl FnOnce(&Runtime) -> R + Send) -> ExitCode {
    R::run(body)
}

/// What a `main` of a rank returns: nothing, an `ExitCode`, or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "`main` cannot return `{Self}`",
    note = "a `main` under `#[tsumugi::main]` returns nothing, an `ExitCode`, or a `Result<_, E>` \
            where `E` is `Send` and `From<tsumugi::Error>`, such as `tsumugi::Error` itself"
)]
pub trait RankResult: Send + Sized {
    /// Runs `body`.
    fn run(body: impl FnOnce(&Runtime) -> Self + Send) -> ExitCode;
}

impl RankResult for () {
    fn run(body: impl FnOnce(&Runtime) -> Self + Send) -> ExitCode {
        run_and_report(|rt| {
            body(rt);
            Ok::<_, Error>(())
        })
    }
}

impl RankResult for ExitCode {
    fn run(body: impl FnOnce(&Runtime) -> Self + Send) -> ExitCode {
        run_and_report(|rt| Ok::<_, Error>(body(rt)))
    }
}

impl<T: Termination + Send, E: From<Error> + Debug + Send> RankResult for Result<T, E> {
    fn run(body: impl FnOnce(&Runtime) -> Self + Send) -> ExitCode {
        run_and_report(body)
    }
}

fn run_and_report<T: Termination + Send, E: From<Error> + Debug + Send>(
    body: impl FnOnce(&Runtime) -> Result<T, E> + Send,
) -> ExitCode {
    let mut own: Option<Rank> = None;
    let result = run(|rt| {
        own = (rt.size() > 1).then(|| rt.rank());
        body(rt)
    });
    match result {
        Ok(value) => value.report(),
        Err(error) => {
            // One write, so that the line does not mix with the output of other ranks.
            let line = match own {
                Some(rank) => format!("{rank}: {error:?}\n"),
                None => format!("Error: {error:?}\n"),
            };
            eprint!("{line}");
            ExitCode::FAILURE
        }
    }
}
