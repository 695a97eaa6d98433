//! How bytes move from one partition to another.
//!
//! | [`Mode`] | how | for |
//! |---|---|---|
//! | `Plain` | the C library's copy | what the reader of the destination may find in the writer's cache |
//! | `Pieces` | the processor's instruction for strings, 256 bytes at a time | short pushes into lines that another core holds |
//! | `Streaming` | stores that go past the caches | large pushes into the same |
//!
//! A plain store first fetches the line that it writes: from the cache of
//! the core that read it last, if that is where it is. A streaming store
//! fetches nothing, so that the farther that core, the more it saves; it
//! costs a fixed time for the fence at its end. The instruction for strings
//! writes whole lines and need not fetch them either, and is quickest where it
//! is given little at a time. At which sizes they win is measured
//! ([`calibrate`](crate::calibrate)).

#[cfg(any(tsumugi_asan, tsumugi_tsan))]
mod announced;
mod pieces;
mod stream;

use std::ptr::NonNull;

/// How bytes are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// As the C library does.
    #[default]
    Plain,
    /// By the processor's instruction for strings, in short pieces; plain where
    /// it has none.
    Pieces,
    /// Past the caches, by the widest stores that the processor has; plain
    /// where it has none.
    Streaming,
}

/// Copies `bytes` bytes. A release store after it publishes them, whatever
/// the mode. Wait-free.
///
/// # Safety
///
/// `from` can be read and `to` written for `bytes` bytes, the two do not
/// overlap, and nobody else touches `to`, or writes `from`, meanwhile.
#[inline]
pub unsafe fn copy(mode: Mode, from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
    #[cfg(any(tsumugi_asan, tsumugi_tsan))]
    announced::copy(mode, from, to, bytes);
    match mode {
        // SAFETY: the caller's.
        Mode::Plain => unsafe { from.copy_to_nonoverlapping(to, bytes) },
        // SAFETY: the caller's.
        Mode::Pieces => unsafe { pieces::copy(from.as_ptr(), to.as_ptr(), bytes) },
        // SAFETY: the caller's.
        Mode::Streaming => unsafe { stream::copy(from.as_ptr(), to.as_ptr(), bytes) },
    }
}

/// Bytes of one streaming store; 0 where `Streaming` is `Plain`.
pub fn streaming_bytes() -> usize {
    stream::Width::best().map_or(0, stream::Width::bytes)
}

#[cfg(test)]
mod tests;
