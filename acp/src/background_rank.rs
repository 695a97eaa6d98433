//! A rank that runs on threads in the background, for programs whose `main` is their own: from
//! `tsumugi_start` to `tsumugi_end`, and from `acp_init` to `acp_finalize`.
//!
//! ```text
//!   caller       start ───────────────────────► open ──► the program ──► end ─► join
//!                  │ thread                      ▲                        │      ▲
//!   background     └─► rank begins, opens ───────┘  sleeps ◄──────────────┘ ─────┘
//! ```

use crate::caller::Caller;
use crate::shared_rank;
use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use tsumugi::{Error, Runtime};
use tsumugi_core::wait::Reason;
use tsumugi_ult::sync::Latch;

/// The calls between which a rank runs in the background.
#[derive(Clone, Copy, Debug)]
pub struct BackgroundCalls {
    /// The call that begins the rank.
    pub begins: &'static str,
    /// The call that ends it.
    pub ends: &'static str,
    /// The name of the thread.
    pub thread: &'static str,
}

/// A rank that runs on threads in the background.
#[derive(Debug)]
pub struct BackgroundRank {
    calls: BackgroundCalls,
    runtime: Runtime,
    end: Arc<Latch>,
    caller: Caller,
    thread: JoinHandle<Result<(), Error>>,
}

/// Why a rank has not begun, or has ended with a failure.
#[derive(Debug)]
pub enum BackgroundError {
    /// The runtime's error.
    Runtime(Error),
    /// The sentence that says why.
    Other(String),
}

impl BackgroundRank {
    /// Runs a rank on threads of its own, calls `open` on one of its ULTs, and returns the
    /// value of `open`. Blocks.
    ///
    /// # Errors
    ///
    /// The process is a rank already, or it could not become one, or `open` has failed.
    pub fn start<T: Send + 'static>(
        calls: BackgroundCalls,
        open: impl FnOnce(&Runtime) -> Result<T, Error> + Send + 'static,
    ) -> Result<(Self, T), BackgroundError> {
        let beginning = shared_rank::begin(calls.begins).map_err(BackgroundError::Other)?;
        let end = Arc::new(Latch::new(1));
        let (sender, receiver) = mpsc::channel();
        let ended = end.clone();
        let rank = move || {
            tsumugi::run(move |runtime| {
                let opened = open(runtime)?;
                let _ = sender.send((runtime.clone(), opened, Caller::of(runtime, calls.begins)));
                drop(sender);
                ended.wait_because(Reason::new(calls.ends));
                Ok::<_, Error>(())
            })
        };
        let thread = thread::Builder::new().name(calls.thread.into()).spawn(rank);
        let thread = thread.map_err(|error| BackgroundError::Other(error.to_string()))?;
        let Ok((runtime, opened, caller)) = receiver.recv() else {
            return match thread.join() {
                Ok(Err(error)) => Err(BackgroundError::Runtime(error)),
                _ => Err(has_panicked()),
            };
        };
        caller.begin();
        beginning.runs(&runtime);
        Ok((Self { calls, runtime, end, caller, thread }, opened))
    }

    /// To be called before [`end`](Self::end), and before anything of the rank ends.
    ///
    /// # Errors
    ///
    /// The sentence that says why the caller cannot end the rank, or who uses it.
    pub fn may_end(&self) -> Result<(), String> {
        if self.runtime.ults().worker().is_some() {
            let BackgroundCalls { begins, ends, .. } = self.calls;
            return Err(format!(
                "{ends} was called by a ULT of the rank that it ends: the thread that called \
                 {begins}, or another one that is no worker of the rank, must call it"
            ));
        }
        shared_rank::end()
    }

    /// Ends the rank. Blocks.
    ///
    /// # Errors
    ///
    /// How the rank has failed; it has ended all the same.
    pub fn end(self) -> Result<(), BackgroundError> {
        let Self { runtime, end, caller, thread, .. } = self;
        drop(runtime);
        end.count_down(1);
        caller.end();
        match thread.join() {
            Ok(ended) => ended.map_err(BackgroundError::Runtime),
            Err(_) => Err(has_panicked()),
        }
    }
}

impl fmt::Display for BackgroundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => error.fmt(f),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

fn has_panicked() -> BackgroundError {
    BackgroundError::Other("the rank's thread has panicked".to_owned())
}
