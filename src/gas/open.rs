//! What callers have begun, and what they wait for.
//!
//! A place for each operation that was begun and whose caller has not taken
//! what came of it, in a table of fixed size: a caller who keeps what has
//! ended takes room from others, and one who lets go gives it back.

use super::{Driver, State};
use crate::{AddrError, Rank};
use std::ptr::NonNull;
use tsumugi_core::sync::UnsafeCell;
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::cache::{Miss, Wanted};
use tsumugi_gas::error::AccessError;
use tsumugi_gas::order::{After, Full, Handle};
use tsumugi_gas::request::Request;
use tsumugi_ult::Here;

/// What came of an operation.
pub(super) type Outcome = Result<u64, AccessError>;

/// The operations of all callers.
pub(super) struct Open {
    places: Vec<Place>,
    free: Vec<u32>,
    /// Of each operation of the machine's its place.
    place_of: Vec<u32>,
    /// Who waits until there is room.
    stuck: Vec<Waker>,
}

#[derive(Default)]
struct Place {
    result: Option<Outcome>,
    waker: Option<Waker>,
    /// Nobody wants to know.
    is_let_go: bool,
}

/// On the stack of who waits for a table; touched under the lock.
pub(super) struct Missing {
    pub(super) rank: Rank,
    pub(super) result: Option<Result<(), AddrError>>,
    pub(super) waker: Option<Waker>,
}

/// How a caller's lookups of an address have gone.
#[derive(Default)]
pub(crate) struct Search {
    /// The copy of the table that did not list the region.
    known: Option<u32>,
    is_again: bool,
}

impl Open {
    /// For so many operations under way, and three times as many that have
    /// ended.
    pub(super) fn new(operations: usize) -> Self {
        let places = operations * 4;
        Self {
            places: (0..places).map(|_| Place::default()).collect(),
            free: (0..places as u32).rev().collect(),
            place_of: vec![0; operations],
            stuck: Vec::new(),
        }
    }

    /// An operation has ended.
    pub(super) fn end(&mut self, handle: Handle, result: Outcome, wakers: &mut Vec<Waker>) {
        let at = self.place_of[slot_of(handle)];
        let place = &mut self.places[at as usize];
        if place.is_let_go {
            self.give_back(at);
        } else {
            place.result = Some(result);
            wakers.extend(place.waker.take());
        }
        wakers.append(&mut self.stuck);
    }

    fn give_back(&mut self, at: u32) {
        self.places[at as usize] = Place::default();
        self.free.push(at);
    }
}

/// Bytes of the places for `operations` under way.
pub(super) const fn footprint(operations: usize) -> usize {
    operations * (4 * (size_of::<Place>() + size_of::<u32>()) + size_of::<u32>())
}

impl Driver {
    /// Begins what is issued by `issue`: its handle, and the place of what
    /// comes of it. Never waits.
    pub(crate) fn try_begin(
        &self,
        request: Option<Request>,
        after: After<'_>,
        flush: Option<Rank>,
    ) -> Result<(Handle, u32), Full> {
        let mut state = self.lock();
        let State { machine, open, .. } = &mut *state;
        let at = *open.free.last().ok_or(Full::Operations)?;
        let handle = match (request, flush) {
            (Some(request), _) => machine.try_issue(request, after),
            (None, Some(rank)) => machine.try_flush(rank),
            (None, None) => machine.try_flush_all(),
        }?;
        open.free.pop();
        open.place_of[slot_of(handle)] = at;
        drop(state);
        self.drive();
        Ok((handle, at))
    }

    /// Sleeps until there may be room for one more.
    pub(crate) fn wait_for_room(&self) {
        let reason = Reason { what: "room for a global operation", at: 0, wanted: 0 };
        let mut publish = |waker| {
            let mut state = self.lock();
            let is_full = !state.machine.is_empty();
            if is_full {
                state.open.stuck.push(waker);
            }
            is_full
        };
        // SAFETY: whoever makes room takes the waker out and uses it.
        unsafe { Here.sleep(reason, &mut publish) };
        Here.yield_now();
    }

    /// Whether this one has ended.
    pub(crate) fn has_ended(&self, at: u32) -> bool {
        self.lock().open.places[at as usize].result.is_some()
    }

    /// What came of it, when it has ended; the place is given back.
    pub(crate) fn wait(&self, handle: Handle, at: u32) -> Outcome {
        let reason = Reason { what: "global operation", at: handle.to_bits(), wanted: 0 };
        let mut publish = |waker| {
            // Copied: the caller's frame may go once the waker is out.
            let (this, at) = (self, at);
            let place = &mut this.lock().open.places[at as usize];
            let asleep = place.result.is_none();
            if asleep {
                place.waker = Some(waker);
            }
            asleep
        };
        // SAFETY: the end of the operation takes the waker out and uses it. Leaving
        // takes a lock that no sleeper has.
        unsafe { Here.sleep_or_leave(reason, &mut publish, &mut || self.let_go(at)) };
        let open = &mut self.lock().open;
        let result = open.places[at as usize].result.take();
        open.give_back(at);
        result.expect("who waits is woken by the end of its operation")
    }

    /// Nobody wants to know what comes of it.
    pub(crate) fn let_go(&self, at: u32) {
        let open = &mut self.lock().open;
        match open.places[at as usize].result {
            Some(_) => open.give_back(at),
            None => open.places[at as usize].is_let_go = true,
        }
    }

    /// Places that no operation has.
    #[cfg(test)]
    pub(crate) fn places_free(&self) -> usize {
        self.lock().open.free.len()
    }

    /// A lookup has missed: who gives the table up may have waited for it.
    pub(crate) fn tell_of_miss(&self, addr: GlobalAddr) {
        if self.cache().is_waited_for(addr) {
            self.tick();
        }
    }

    /// A lookup has missed: waits until it is worth looking again.
    pub(crate) fn bring(
        &self,
        addr: GlobalAddr,
        miss: Miss,
        search: &mut Search,
    ) -> Result<(), AccessError> {
        self.tell_of_miss(addr);
        if core::mem::replace(&mut search.is_again, true) {
            // It has come and gone: whoever holds the slots of others may be a
            // ULT of this worker's.
            Here.yield_now();
        }
        let mut state = self.lock();
        let wanted = match miss {
            Miss::Refused(error) => return Err(error),
            Miss::NoTable => state.machine.want(addr)?,
            Miss::NotListed { version } => {
                if search.known.replace(version).is_some_and(|known| known != version) {
                    // The copy was read after the access began.
                    return Err(AccessError::Stale { addr });
                }
                state.machine.want_newer(addr, version)?
            }
        };
        match (wanted, self.cache().split().rank(addr)) {
            (Wanted::Coming, Some(rank)) => {
                // Before the state knows of this stack.
                tsumugi_ult::assert_may_block("table");
                let missing = Missing { rank, result: None, waker: None };
                let missing = UnsafeCell::new(missing);
                let pointer = missing.with_mut(NonNull::new).expect("it is on the stack");
                state.missing.push(pointer);
                drop(state);
                self.wait_for_table(addr, rank, &missing)
            }
            (Wanted::Later, _) => {
                drop(state);
                self.tick();
                Here.yield_now();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn wait_for_table(
        &self,
        addr: GlobalAddr,
        rank: Rank,
        missing: &UnsafeCell<Missing>,
    ) -> Result<(), AccessError> {
        self.drive();
        let reason = Reason { what: "table", at: u64::from(rank.0), wanted: 0 };
        let mut publish = |waker| {
            let this = self;
            let _state = this.lock();
            // SAFETY: under the lock, and the caller has not returned: it waits
            // for this result or for the waker.
            missing.with_mut(|missing| unsafe {
                let asleep = (*missing).result.is_none();
                if asleep {
                    (*missing).waker = Some(waker);
                }
                asleep
            })
        };
        // SAFETY: the end of the fetch takes the waker out and uses it.
        unsafe { Here.sleep(reason, &mut publish) };
        let _state = self.lock();
        // SAFETY: under the lock.
        let result = missing.with_mut(|missing| unsafe { (*missing).result.take() });
        let result = result.expect("who waits is woken by the end of the fetch");
        result.map_err(|error| AccessError::of(error, addr))
    }
}

/// The slot of the machine's that a handle names.
fn slot_of(handle: Handle) -> usize {
    usize::from(handle.to_bits() as u16)
}
