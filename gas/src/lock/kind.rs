//! The kinds of locks, and the modes in which a claim uses a lock.

/// Which claims wait for which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockKind {
    /// Each claim waits for all others, first come, first served.
    Mutex,
    /// Readers wait for a writer that holds the lock, writers for all readers.
    /// Writers may starve.
    Readers,
    /// Phases: a reader waits for one writer at most, a writer for the readers that
    /// came before it and for the writers before it.
    #[default]
    Neutral,
    /// A writer that waits behind another has the lock before any reader.
    /// Readers may starve.
    Writers,
}

/// How a claim uses the lock. The enum is exhaustive: together with others or alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Together with other claims that share the lock.
    Shared,
    /// Alone. The only mode of [`LockKind::Mutex`].
    Exclusive,
}
