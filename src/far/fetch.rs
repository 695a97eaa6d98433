//! Bytes of long messages, fetched from their senders' memory.
//!
//! ```text
//!  begin ─► waiting ─► pieces under way, each into a bounce chunk
//!              ▲            │ all have come
//!              └── more ────┴─► copied out ─► last: told
//! ```
//!
//! Through the chunks it does not matter where the receiver's buffer lies, and
//! a sender that dies ends it at once: see [`Bounce`].
//!
//! Whoever polls moves it on, one at a time. Progress: nothing here waits.

use super::bounce::{Bounce, CHUNK_BYTES};
use super::link::Link;
use super::{Far, window};
use crate::queue::hint;
use crate::{AddrError, Rank};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tsumugi_core::completion::Callback;
use tsumugi_core::engine::Engine;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicBool, AtomicUsize, Ordering};

/// Called with what was fetched, from whom, and whether it has come.
pub(crate) type Fetched = Box<dyn Fn(u64, Rank, Result<(), AddrError>) + Send + Sync>;

/// All of a rank.
pub(super) struct Fetches {
    state: Mutex<State>,
    /// How the pieces under way have ended: what their callbacks write.
    ends: Box<[End]>,
    /// How many have begun and not ended.
    count: AtomicUsize,
    /// Somebody is to look at them.
    is_due: Arc<AtomicBool>,
    handle: OnceLock<Fetched>,
    /// How many have come.
    #[cfg(test)]
    pub(super) come: AtomicUsize,
}

/// One.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    /// By what it is known to who wants it.
    pub id: u64,
    pub from: RemoteAddr,
    pub to: usize,
    pub bytes: u64,
}

struct State {
    under_way: VecDeque<UnderWay>,
    pieces: [Option<Piece>; PIECES],
}

struct UnderWay {
    fetch: Fetch,
    /// From here on nothing was asked for.
    next: u64,
    pieces: u32,
    error: Option<AddrError>,
}

/// One get.
#[derive(Clone, Copy)]
struct Piece {
    id: u64,
    chunk: usize,
    offset: u64,
    bytes: usize,
}

/// How the get of one piece has ended.
struct End {
    result: Mutex<Option<Result<u64, AddrError>>>,
    is_due: Arc<AtomicBool>,
}

impl Far {
    /// The word by which ranks of other nodes can [fetch](Self::fetch) these
    /// bytes of this rank's, if they can.
    pub(crate) fn place(&self, at: usize, bytes: usize) -> Option<u64> {
        let shared = self.shared();
        shared.windows.as_ref()?.place(shared, at, bytes)
    }

    /// Begins to fetch bytes from where a rank has said that they are, which
    /// is not trusted. Whoever [was set](Self::on_fetched) is told of the end
    /// by `id`. False: this device does not fetch.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `bytes` bytes until then.
    pub(crate) unsafe fn fetch(
        &self,
        from: Rank,
        place: u64,
        to: *mut u8,
        bytes: u64,
        id: u64,
    ) -> bool {
        let (key, offset) = window::parts(place);
        let from = RemoteAddr { rank: from, key, offset };
        let does = self.shared().windows.is_some();
        if does {
            self.fetches().begin(Fetch { id, from, to: to.expose_provenance(), bytes });
            self.poll();
        }
        does
    }

    /// Sets who is told of fetches that have ended, by whoever polls; it must
    /// be short and must not block. Once, before the start.
    pub(crate) fn on_fetched(&self, handle: Fetched) {
        self.fetches().on_fetched(handle);
    }
}

impl Fetches {
    pub(super) fn new() -> Self {
        let is_due = Arc::new(AtomicBool::new(false));
        let end = |_| End { result: Mutex::new(None), is_due: is_due.clone() };
        Self {
            state: Mutex::new(State {
                under_way: VecDeque::with_capacity(2 * PIECES),
                pieces: [None; PIECES],
            }),
            ends: (0..PIECES).map(end).collect(),
            count: AtomicUsize::new(0),
            is_due,
            handle: OnceLock::new(),
            #[cfg(test)]
            come: AtomicUsize::new(0),
        }
    }

    /// Sets who is told of each that has ended. Once.
    pub(super) fn on_fetched(&self, handle: Fetched) {
        assert!(self.handle.set(handle).is_ok(), "fetches have a handler");
    }

    /// Begins one. Whoever polls goes on with it.
    pub(super) fn begin(&self, fetch: Fetch) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way.push_back(UnderWay { fetch, next: 0, pieces: 0, error: None });
        // Relaxed: a hint, but for whoever has begun it.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Whether somebody should poll for them.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Takes what has come, and asks for more. Whether anything has changed.
    #[inline]
    pub(super) fn drive(&self, engine: &Engine<'static, Link>, bounce: &Bounce) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && self.drive_all(engine, bounce)
    }

    fn drive_all(&self, engine: &Engine<'static, Link>, bounce: &Bounce) -> bool {
        // Somebody else is at it.
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
            // There was no room: nobody else will say when there is.
            self.is_due.store(true, Ordering::Relaxed);
        }
        drop(state);
        self.count.fetch_sub(over.len(), Ordering::Relaxed);
        has_moved |= !over.is_empty();
        for (Fetch { id, from, .. }, error) in over {
            #[cfg(test)]
            self.come.fetch_add(usize::from(error.is_none()), Ordering::Relaxed);
            let handle = self.handle.get().expect("whoever begins one has set it");
            handle(id, from.rank, error.map_or(Ok(()), Err));
        }
        has_moved
    }

    fn take_ended(&self, state: &mut State, bounce: &Bounce) -> bool {
        let State { under_way, pieces } = state;
        let mut has_moved = false;
        for (piece, end) in pieces.iter_mut().zip(&self.ends) {
            let Some(Piece { id, chunk, offset, bytes }) = *piece else { continue };
            let Some(result) = end.lock().take() else { continue };
            *piece = None;
            has_moved = true;
            let mut all = under_way.iter_mut();
            let one = all.find(|one| one.fetch.id == id).expect("it waits for its pieces");
            let into = one.fetch.to + offset as usize;
            let into: *mut u8 = std::ptr::with_exposed_provenance_mut(into);
            // SAFETY: the buffer is the message's until it is told, so many
            // bytes are in it, and this is the outcome of the get to that
            // chunk.
            let finished = unsafe { bounce.lent(chunk).finish(result, Some(into), bytes) };
            one.pieces -= 1;
            one.error = one.error.or(finished.err());
        }
        has_moved
    }

    fn ask(&self, state: &mut State, engine: &Engine<'static, Link>, bounce: &Bounce) -> bool {
        let State { under_way, pieces } = state;
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
                let end: *const End = &self.ends[free];
                // SAFETY: the ends live as long as the engine, and this one is
                // that piece's until it was taken; `ended` does not block.
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

impl End {
    fn lock(&self) -> MutexGuard<'_, Option<Result<u64, AddrError>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The callback of a piece.
fn ended(data: *mut (), result: Result<u64, AddrError>) {
    // SAFETY: whoever has posted it has given it an end, which stays.
    let end = unsafe { &*data.cast::<End>() };
    *end.lock() = Some(result);
    end.is_due.store(true, Ordering::Relaxed);
}

/// Under way at once.
const PIECES: usize = 16;
