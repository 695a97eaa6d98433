//! The rank of this process, which all interfaces of one library share: one of them makes it
//! and ends it, and others may use it meanwhile.
//!
//! ```text
//!   none ── begin ──► begins ── runs ──► runs, with its users ── end ──► none
//!     ▲                 │ dropped          ▲  │ use_rank, release
//!     └─────────────────┘                  └──┘
//! ```

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tsumugi::Runtime;

/// An interface that uses a rank that another one has made: the calls between which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankUser {
    /// The call that begins the use.
    pub begins: &'static str,
    /// The call that ends it.
    pub ends: &'static str,
}

/// The rank, while it begins. If this is dropped, another call may make the process a rank.
#[derive(Debug)]
#[must_use = "the rank has begun when `runs` is called"]
pub struct BeginningRank(());

enum State {
    None,
    Begins { maker: &'static str },
    Runs { maker: &'static str, runtime: Runtime, users: Vec<RankUser> },
}

/// Begins to make this process a rank, by the call `maker`.
///
/// # Errors
///
/// The sentence that says which call has made it one already.
pub fn begin(maker: &'static str) -> Result<BeginningRank, String> {
    let mut state = state();
    match &*state {
        State::None => {
            *state = State::Begins { maker };
            Ok(BeginningRank(()))
        }
        State::Begins { maker } | State::Runs { maker, .. } => {
            Err(format!("{maker} has made this process a rank already"))
        }
    }
}

/// The rank of this process, which its maker does not end before `user`
/// [releases](release) it. `None`: the process is no rank.
///
/// # Errors
///
/// The sentence that says why the rank cannot be used.
pub fn use_rank(user: RankUser) -> Result<Option<Runtime>, String> {
    match &mut *state() {
        State::None => Ok(None),
        State::Begins { maker } => Err(format!("{maker} is still making this process a rank")),
        State::Runs { runtime, users, .. } => {
            runtime.handle().check_process().map_err(|error| error.to_string())?;
            users.push(user);
            Ok(Some(runtime.clone()))
        }
    }
}

/// Ends one use by `user`, if it uses the rank.
pub fn release(user: RankUser) {
    if let State::Runs { users, .. } = &mut *state()
        && let Some(at) = users.iter().position(|other| *other == user)
    {
        users.remove(at);
    }
}

/// To be called by the maker before it ends the rank.
///
/// # Errors
///
/// The sentence that says who uses the rank: it must not end now.
pub fn end() -> Result<(), String> {
    let mut state = state();
    if let State::Runs { users, .. } = &*state
        && let Some(RankUser { begins, ends }) = users.last()
    {
        return Err(format!("{begins} uses this rank, so {ends} must be called before"));
    }
    *state = State::None;
    Ok(())
}

/// The same, where the rank ends in any case; then no interface may use it any more.
///
/// # Errors
///
/// Those of [`end`].
pub fn end_anyway() -> Result<(), String> {
    let ended = end();
    *state() = State::None;
    ended
}

impl BeginningRank {
    /// The rank has begun, and others may use it.
    pub fn runs(self, runtime: &Runtime) {
        let mut state = state();
        if let State::Begins { maker } = *state {
            *state = State::Runs { maker, runtime: runtime.clone(), users: Vec::new() };
        }
        mem::forget(self);
    }
}

impl Drop for BeginningRank {
    fn drop(&mut self) {
        *state() = State::None;
    }
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

// A static, because the interfaces of a process do not know each other.
static STATE: Mutex<State> = Mutex::new(State::None);
