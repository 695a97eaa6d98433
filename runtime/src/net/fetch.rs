//! Long messages are fetched from their senders' memory, by gets.
//!
//! ```text
//!  begin ─► waiting ─► pieces under way, each into a bounce chunk
//!              ▲            │ all have come
//!              └── more ────┴─► copied out ─► last: the handler is called
//! ```
//!
//! Because of the bounce chunks, the receiver's buffer need not be registered, and a
//! fetch ends at once when the sender dies: see [`Bounce`].
//!
//! The thread that polls moves the fetches on, one such thread at a time. Progress:
//! no function here waits.

use super::bounce::{Bounce, CHUNK_BYTES};
use super::link::NetLink;
use crate::engine_call::hint;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tsumugi_core::completion::Callback;
use tsumugi_core::engine::Engine;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicBool, AtomicUsize, Ordering};

/// The handler of fetches that have ended: it gets the id, the sender, and the
/// result.
pub type FetchHandler = Box<dyn Fn(u64, Rank, Result<(), AddrError>) + Send + Sync>;

/// All fetches of a rank.
pub(super) struct Fetches {
    state: Mutex<FetchState>,
    /// The results of the pieces under way, which their callbacks write.
    ends: Box<[FetchEnd]>,
    /// How many fetches have begun and not ended.
    count: AtomicUsize,
    /// A thread should poll, because a fetch can go on.
    is_due: Arc<AtomicBool>,
    handle: OnceLock<FetchHandler>,
    /// How many fetches have succeeded.
    #[cfg(any(test, feature = "testing"))]
    pub(super) come: AtomicUsize,
}

/// A long message that is to be fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    /// The id that the caller has given to the fetch.
    pub id: u64,
    pub from: RemoteAddr,
    pub to: usize,
    pub bytes: u64,
}

struct FetchState {
    under_way: VecDeque<UnderWay>,
    pieces: [Option<Piece>; PIECES],
}

struct UnderWay {
    fetch: Fetch,
    /// The offset of the first byte for which no get was posted.
    next: u64,
    pieces: u32,
    error: Option<AddrError>,
}

/// The get of one piece.
#[derive(Clone, Copy)]
struct Piece {
    id: u64,
    chunk: usize,
    offset: u64,
    bytes: usize,
}

/// The result of the get of one piece.
struct FetchEnd {
    result: Mutex<Option<Result<u64, AddrError>>>,
    is_due: Arc<AtomicBool>,
}

impl Fetches {
    pub(super) fn new() -> Self {
        let is_due = Arc::new(AtomicBool::new(false));
        let end = |_| FetchEnd { result: Mutex::new(None), is_due: is_due.clone() };
        Self {
            state: Mutex::new(FetchState {
                under_way: VecDeque::with_capacity(2 * PIECES),
                pieces: [None; PIECES],
            }),
            ends: (0..PIECES).map(end).collect(),
            count: AtomicUsize::new(0),
            is_due,
            handle: OnceLock::new(),
            #[cfg(any(test, feature = "testing"))]
            come: AtomicUsize::new(0),
        }
    }

    /// Sets the handler of fetches that have ended. Once.
    pub(super) fn on_fetched(&self, handle: FetchHandler) {
        assert!(self.handle.set(handle).is_ok(), "the handler of fetches is set once");
    }

    /// Begins a fetch. The threads that poll go on with it.
    pub(super) fn begin(&self, fetch: Fetch) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way.push_back(UnderWay { fetch, next: 0, pieces: 0, error: None });
        // Relaxed: a hint to other threads; the caller itself sees its own store.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Whether a thread should poll for fetches.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Takes pieces that have come, and posts gets of more. Returns whether anything
    /// has changed.
    #[inline]
    pub(super) fn drive(&self, engine: &Engine<'static, NetLink>, bounce: &Bounce) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && self.drive_all(engine, bounce)
    }

    fn drive_all(&self, engine: &Engine<'static, NetLink>, bounce: &Bounce) -> bool {
        // Another thread is driving the fetches.
        let Ok(mut state) = self.state.try_lock() else { return false };
        self.is_due.store(false, Ordering::Relaxed);
        let mut has_moved = self.take_ended(&mut state, bounce);
        has_moved |= self.ask(&mut state, engine, bounce);
        let mut over = heapless::Vec::<_, PIECES>::new();
        state.under_way.retain(|one| {
            let is_over = one.pieces == 0 && (one.next == one.fetch.bytes || one.error.is_some());
            let told = is_over && over.push((one.fetch, one.error)).is_ok();
            !told
        });
        let is_stuck = |one: &UnderWay| one.pieces == 0;
        if state.under_way.iter().any(is_stuck) {
            // There was no room, and no event will report when there is.
            self.is_due.store(true, Ordering::Relaxed);
        }
        drop(state);
        self.count.fetch_sub(over.len(), Ordering::Relaxed);
        has_moved |= !over.is_empty();
        for (Fetch { id, from, .. }, error) in over {
            #[cfg(any(test, feature = "testing"))]
            self.come.fetch_add(usize::from(error.is_none()), Ordering::Relaxed);
            let handle = self.handle.get().expect("the handler is set before the first fetch");
            handle(id, from.rank, error.map_or(Ok(()), Err));
        }
        has_moved
    }

    fn take_ended(&self, state: &mut FetchState, bounce: &Bounce) -> bool {
        let FetchState { under_way, pieces } = state;
        let mut has_moved = false;
        for (piece, end) in pieces.iter_mut().zip(&self.ends) {
            let Some(Piece { id, chunk, offset, bytes }) = *piece else { continue };
            let Some(result) = end.lock().take() else { continue };
            *piece = None;
            has_moved = true;
            let mut all = under_way.iter_mut();
            let one = all.find(|one| one.fetch.id == id).expect("a fetch waits for its pieces");
            let into = one.fetch.to + offset as usize;
            let into: *mut u8 = std::ptr::with_exposed_provenance_mut(into);
            // SAFETY: the buffer is the message's until the handler is called, and
            // has at least `offset + bytes` bytes; the result is that of the get
            // into this chunk.
            let finished = unsafe { bounce.lent(chunk).finish(result, Some(into), bytes) };
            one.pieces -= 1;
            one.error = one.error.or(finished.err());
        }
        has_moved
    }

    fn ask(
        &self,
        state: &mut FetchState,
        engine: &Engine<'static, NetLink>,
        bounce: &Bounce,
    ) -> bool {
        let FetchState { under_way, pieces } = state;
        let mut has_moved = false;
        for one in under_way {
            while one.next < one.fetch.bytes && one.error.is_none() {
                let Some(free) = pieces.iter().position(Option::is_none) else {
                    return has_moved;
                };
                let Some(chunk) = bounce.try_take() else {
                    if bounce.is_used_up() {
                        one.error = Some(AddrError::Unsupported { addr: one.fetch.from });
                    }
                    return has_moved;
                };
                let bytes = (one.fetch.bytes - one.next).min(CHUNK_BYTES as u64);
                let get = Op::get(one.fetch.from.add(one.next), chunk.local(), bytes);
                let end: *const FetchEnd = &self.ends[free];
                // SAFETY: the ends live as long as the engine, and this end belongs
                // to this piece until its result was taken; `ended` does not block.
                let done = unsafe { Callback::new(ended, end.cast_mut().cast()) };
                if engine.post_callback(hint(), get, done).is_err() {
                    chunk.give_back();
                    return has_moved;
                }
                let (id, bytes_of) = (one.fetch.id, bytes as usize);
                let chunk = chunk.into_index();
                pieces[free] = Some(Piece { id, chunk, offset: one.next, bytes: bytes_of });
                one.next += bytes;
                one.pieces += 1;
                has_moved = true;
            }
        }
        has_moved
    }
}

impl FetchEnd {
    fn lock(&self) -> MutexGuard<'_, Option<Result<u64, AddrError>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The callback of the get of a piece.
fn ended(data: *mut (), result: Result<u64, AddrError>) {
    // SAFETY: `data` is the `FetchEnd` that `ask` gave to the callback, and it stays.
    let end = unsafe { &*data.cast::<FetchEnd>() };
    *end.lock() = Some(result);
    end.is_due.store(true, Ordering::Relaxed);
}

/// Pieces of all fetches that may be under way.
const PIECES: usize = 16;
