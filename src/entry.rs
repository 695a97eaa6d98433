//! What `#[tsumugi::main]` makes of the `main` of a rank. Programs do not name it.

use crate::{Error, Runtime, run};
use std::fmt::Debug;
use std::process::{ExitCode, Termination};
use tsumugi_runtime::own_rank::RankPrefix;

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
    match run(body) {
        Ok(value) => value.report(),
        Err(error) => {
            let (prefix, message) = (RankPrefix::here().to_string(), format!("{error:?}"));
            let prefix = match prefix.as_str() {
                "" => "Error: ",
                // An error of this library begins with its rank.
                _ if message.starts_with(&prefix) => "",
                prefix => prefix,
            };
            // One write, so that the line does not mix with the output of other ranks.
            let line = format!("{prefix}{message}\n");
            eprint!("{line}");
            ExitCode::FAILURE
        }
    }
}
