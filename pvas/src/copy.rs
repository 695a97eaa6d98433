//! How bytes move from one partition to another.
//!
//! | [`CopyMode`] | how | for |
//! |---|---|---|
//! | `Plain` | the C library's copy | what the reader of the destination may find in the writer's cache |
//! | `Pieces` | the processor's instruction for strings, 256 bytes at a time | short pushes into lines that another core holds |
//! | `Streaming` | stores that go past the caches | large pushes into the same |
//!
//! A plain store first fetches the line that it writes, from the cache of the core
//! that read the line last if it is still there. A streaming store fetches nothing,
//! so it saves more the farther away that core is; it costs a fixed time for the
//! fence at its end. The instruction for strings writes whole lines and need not
//! fetch them either, and is fastest when each use of it copies little.
//! [`calibrate`](crate::calibrate) measures at which sizes each mode is fastest.

#[cfg(any(tsumugi_asan, tsumugi_tsan))]
mod announced;
mod mode;
mod pieces;
mod stream;

pub use mode::CopyMode;
use std::ptr::NonNull;

/// Copies `bytes` bytes. A release store after the copy publishes them, in every
/// mode. Wait-free.
///
/// # Safety
///
/// `from` can be read and `to` written for `bytes` bytes, the two do not overlap,
/// and during the copy no other thread accesses `to` or writes `from`.
#[inline]
pub unsafe fn copy(mode: CopyMode, from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
    #[cfg(any(tsumugi_asan, tsumugi_tsan))]
    announced::copy(mode, from, to, bytes);
    match mode {
        // SAFETY: the caller's.
        CopyMode::Plain => unsafe { from.copy_to_nonoverlapping(to, bytes) },
        // SAFETY: the caller's.
        CopyMode::Pieces => unsafe { pieces::copy(from.as_ptr(), to.as_ptr(), bytes) },
        // SAFETY: the caller's.
        CopyMode::Streaming => unsafe { stream::copy(from.as_ptr(), to.as_ptr(), bytes) },
    }
}

/// The bytes of one streaming store; 0 where `Streaming` is the same as `Plain`.
pub fn streaming_bytes() -> usize {
    stream::Width::best().map_or(0, stream::Width::bytes)
}

#[cfg(test)]
mod tests;
