//! Global memory as the containers use it: blocking one-sided operations, and the
//! queue nodes in which claims to locks wait.
//!
//! The facade implements it with processes and threads, a test with plain memory.
//! This module runs the sans-IO state machines of the heap.

use super::error::ContainerError;
use crate::address::{GlobalAddr, Split};
use crate::heap::{Heap, HeapError, HeapStep};
use crate::lock::NodeId;
use crate::request::WordRequest;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::op::Kind;
use tsumugi_core::signal::Until;

/// The memory of all ranks, for callers that may block. Each operation has taken
/// effect at its target when it returns.
pub trait Store {
    /// The split of addresses.
    fn split(&self) -> Split;

    /// The calling rank.
    fn rank(&self) -> Rank;

    /// Reads bytes from `from` on.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the rank has died; another [`AddrError`] if the
    /// address names no registered memory, or the memory does not allow the access.
    fn read(&self, from: GlobalAddr, into: &mut [u8]) -> Result<(), AddrError<GlobalAddr>>;

    /// Writes bytes from `to` on.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the rank has died; another [`AddrError`] if the
    /// address names no registered memory, or the memory does not allow the access.
    fn write(&self, to: GlobalAddr, bytes: &[u8]) -> Result<(), AddrError<GlobalAddr>>;

    /// Copies between any two ranks. The two ranges must not overlap.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if one of the two ranks has died; another
    /// [`AddrError`] if an address names no registered memory, or the memory does not
    /// allow the access.
    fn copy(
        &self,
        dst: GlobalAddr,
        src: GlobalAddr,
        bytes: u64,
    ) -> Result<(), AddrError<GlobalAddr>>;

    /// Carries out an atomic, a load or a store of a word, and returns the old
    /// value. A notifying operation wakes the threads that [wait](Self::wait) for
    /// the word.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if the rank has died; another [`AddrError`] if the
    /// address names no registered memory, or the memory does not allow the access.
    fn word(&self, word: WordRequest) -> Result<u64, AddrError<GlobalAddr>>;

    /// Takes `bytes` bytes of `rank`'s heap.
    ///
    /// # Errors
    ///
    /// - [`HeapError::NoMemory`]: no free run of the heap is long enough.
    /// - [`HeapError::TooLarge`]: the heap has no blocks of this size.
    /// - [`HeapError::Access`]: the heap is out of reach, for example because the rank
    ///   has died.
    fn allocate(&self, rank: Rank, bytes: u64) -> Result<GlobalAddr, HeapError>;

    /// Frees a block of any rank's heap.
    ///
    /// # Errors
    ///
    /// [`HeapError::NoBlock`] if no block begins at `addr`; [`HeapError::Access`] if
    /// the heap is out of reach, for example because the rank has died.
    fn free(&self, addr: GlobalAddr) -> Result<(), HeapError>;

    /// The address of the queue nodes of `rank`'s claims.
    ///
    /// # Errors
    ///
    /// An [`AddrError`] if there is no such rank, or its nodes are out of reach.
    fn nodes(&self, rank: Rank) -> Result<GlobalAddr, AddrError<GlobalAddr>>;

    /// Takes a node, in a new life. Waits until one is free.
    fn take_node(&self) -> NodeId;

    /// Gives a node back; `has_left`: its claim has left it in a queue.
    fn release_node(&self, node: NodeId, has_left: bool);

    /// Sleeps until the word at `at`, in this rank's own nodes, satisfies `until`,
    /// and returns its value.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`] if a rank has died, which the error names; another
    /// [`AddrError`] if the word is not one of this rank's.
    fn wait(&self, at: GlobalAddr, until: Until) -> Result<u64, AddrError<GlobalAddr>>;

    /// A rank that has died, if this rank knows of one.
    fn lost(&self) -> Option<Rank>;

    /// Sleeps for about a millisecond.
    fn pause(&self);
}

/// Takes `bytes` bytes of a heap. `word` carries out the atomics on the heap's bits;
/// `hint` selects the place where the search begins.
///
/// # Errors
///
/// - [`HeapError::NoMemory`]: no free run of the heap is long enough.
/// - [`HeapError::TooLarge`]: the heap has no blocks of this size.
/// - [`HeapError::Access`]: `word` has returned this error. If this was the second
///   atomic, the block stays taken.
pub fn malloc(
    heap: &Heap,
    bytes: u64,
    hint: u32,
    mut word: impl FnMut(WordRequest) -> Result<u64, AddrError<GlobalAddr>>,
) -> Result<GlobalAddr, HeapError> {
    let (mut malloc, mut answer) = (heap.malloc(bytes, hint), None);
    loop {
        match malloc.step(answer) {
            HeapStep::Do(next) => answer = Some(word(next)),
            HeapStep::Done(result) => return result,
        }
    }
}

/// Frees a block of a heap.
///
/// # Errors
///
/// [`HeapError::NoBlock`] if no block begins at `addr`, or another caller has freed it;
/// [`HeapError::Access`] if `word` has returned this error.
pub fn free(
    heap: &Heap,
    addr: GlobalAddr,
    mut word: impl FnMut(WordRequest) -> Result<u64, AddrError<GlobalAddr>>,
) -> Result<(), HeapError> {
    let (mut free, mut answer) = (heap.free(addr), None);
    loop {
        match free.step(answer) {
            HeapStep::Do(next) => answer = Some(word(next)),
            HeapStep::Done(result) => return result,
        }
    }
}

/// The address `bytes` after `addr`. If there is none, it is null, and an access to
/// it is refused.
pub(super) fn after<S: Store + ?Sized>(store: &S, addr: GlobalAddr, bytes: u64) -> GlobalAddr {
    match i64::try_from(bytes) {
        Ok(bytes) => store.split().add(addr, bytes).unwrap_or(GlobalAddr::NULL),
        Err(_) => GlobalAddr::NULL,
    }
}

/// Reads `N` words from `at` on.
pub(super) fn words<S: Store + ?Sized, const N: usize>(
    store: &S,
    at: GlobalAddr,
) -> Result<[u64; N], ContainerError> {
    let mut words = [[0; 8]; N];
    store.read(at, words.as_flattened_mut())?;
    Ok(words.map(u64::from_le_bytes))
}

/// Writes `N` words from `at` on.
pub(super) fn set_words<S: Store + ?Sized, const N: usize>(
    store: &S,
    at: GlobalAddr,
    words: [u64; N],
) -> Result<(), ContainerError> {
    Ok(store.write(at, words.map(u64::to_le_bytes).as_flattened())?)
}

/// Writes zeroes to `bytes` bytes from `at` on, which are whole words.
pub(super) fn clear<S: Store + ?Sized>(
    store: &S,
    at: GlobalAddr,
    bytes: u64,
) -> Result<(), ContainerError> {
    let zeroes = [0; CLEARED];
    for from in (0..bytes).step_by(CLEARED) {
        let count = CLEARED.min((bytes - from) as usize);
        store.write(after(store, at, from), &zeroes[..count])?;
    }
    Ok(())
}

/// The number of bytes that are cleared at a time.
const CLEARED: usize = 1024;

/// Reads one word, which is not torn if another thread writes it meanwhile.
pub(super) fn word<S: Store + ?Sized>(store: &S, at: GlobalAddr) -> Result<u64, ContainerError> {
    Ok(store.word(WordRequest::atomic(Kind::GetWord, at, 0u64))?)
}
