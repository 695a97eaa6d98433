//! Global memory as a container sees it: blocking one-sided operations, and
//! where claims to locks wait.
//!
//! The facade has one on processes and threads; a test has one on plain
//! memory. What the heap and the locks do without IO is carried out here.

use super::ContainerError;
use crate::address::{GlobalAddr, Split};
use crate::error::AccessError;
use crate::heap::{Heap, HeapError, Step};
use crate::lock::NodeId;
use crate::request::Word;
use tsumugi_core::mem::Rank;
use tsumugi_core::op::Kind;
use tsumugi_core::signal::Until;

/// The memory of all ranks, for whoever may block. Each operation has taken
/// effect where its bytes are when it returns.
pub trait Store {
    /// How addresses are split.
    fn split(&self) -> Split;

    /// The rank that calls.
    fn rank(&self) -> Rank;

    /// Reads from `from` on.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    fn read(&self, from: GlobalAddr, into: &mut [u8]) -> Result<(), AccessError>;

    /// Writes from `to` on.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    fn write(&self, to: GlobalAddr, bytes: &[u8]) -> Result<(), AccessError>;

    /// Copies between any two ranks; the two ranges do not overlap.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    fn copy(&self, dst: GlobalAddr, src: GlobalAddr, bytes: u64) -> Result<(), AccessError>;

    /// An atomic, a load or a store of a word; what was there. One that
    /// notifies wakes who [waits](Self::wait) for the word.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    fn word(&self, word: Word) -> Result<u64, AccessError>;

    /// Takes `bytes` bytes of `rank`'s heap.
    ///
    /// # Errors
    ///
    /// [`HeapError`].
    fn allocate(&self, rank: Rank, bytes: u64) -> Result<GlobalAddr, HeapError>;

    /// Gives them back.
    ///
    /// # Errors
    ///
    /// [`HeapError`].
    fn free(&self, addr: GlobalAddr) -> Result<(), HeapError>;

    /// Where `rank` has the queue nodes of its claims.
    ///
    /// # Errors
    ///
    /// [`AccessError`].
    fn nodes(&self, rank: Rank) -> Result<GlobalAddr, AccessError>;

    /// A node in a new life; waits for one.
    fn take_node(&self) -> NodeId;

    /// Gives it back; `has_left` it in a queue.
    fn release_node(&self, node: NodeId, has_left: bool);

    /// Sleeps until the word of this rank's own nodes at `at` is as wanted.
    ///
    /// # Errors
    ///
    /// [`AccessError::PeerLost`]: a rank has died.
    fn wait(&self, at: GlobalAddr, until: Until) -> Result<u64, AccessError>;

    /// A rank that has died, as far as this one knows.
    fn lost(&self) -> Option<Rank>;

    /// Sleeps for a millisecond or so.
    fn pause(&self);
}

/// Takes `bytes` bytes of a heap, whose bits `word` changes, beginning to look
/// at a place of `hint`'s.
///
/// # Errors
///
/// [`HeapError`].
pub fn malloc(
    heap: &Heap,
    bytes: u64,
    hint: u32,
    mut word: impl FnMut(Word) -> Result<u64, AccessError>,
) -> Result<GlobalAddr, HeapError> {
    let (mut malloc, mut answer) = (heap.malloc(bytes, hint), None);
    loop {
        match malloc.step(answer) {
            Step::Do(next) => answer = Some(word(next)),
            Step::Done(result) => return result,
        }
    }
}

/// Gives a block of a heap back.
///
/// # Errors
///
/// [`HeapError`].
pub fn free(
    heap: &Heap,
    addr: GlobalAddr,
    mut word: impl FnMut(Word) -> Result<u64, AccessError>,
) -> Result<(), HeapError> {
    let (mut free, mut answer) = (heap.free(addr), None);
    loop {
        match free.step(answer) {
            Step::Do(next) => answer = Some(word(next)),
            Step::Done(result) => return result,
        }
    }
}

/// The address `bytes` after `addr`; null, whose access is refused, if there is
/// none.
pub(super) fn after<S: Store + ?Sized>(store: &S, addr: GlobalAddr, bytes: u64) -> GlobalAddr {
    match i64::try_from(bytes) {
        Ok(bytes) => store.split().add(addr, bytes).unwrap_or(GlobalAddr::NULL),
        Err(_) => GlobalAddr::NULL,
    }
}

/// So many words from `at` on.
pub(super) fn words<S: Store + ?Sized, const N: usize>(
    store: &S,
    at: GlobalAddr,
) -> Result<[u64; N], ContainerError> {
    let mut words = [[0; 8]; N];
    store.read(at, words.as_flattened_mut())?;
    Ok(words.map(u64::from_le_bytes))
}

/// Writes so many words.
pub(super) fn set_words<S: Store + ?Sized, const N: usize>(
    store: &S,
    at: GlobalAddr,
    words: [u64; N],
) -> Result<(), ContainerError> {
    Ok(store.write(at, words.map(u64::to_le_bytes).as_flattened())?)
}

/// One word, whole whoever writes it meanwhile.
pub(super) fn word<S: Store + ?Sized>(store: &S, at: GlobalAddr) -> Result<u64, ContainerError> {
    Ok(store.word(Word::atomic(Kind::GetWord, at, 0u64))?)
}
