//! How callers begin operations, and wait for them or for a table.

use super::driver::{DriverState, GlobalDriver};
use super::open::{AccessOutcome, Missing, OperationEnd, TableSearch, slot_of};
use crate::block_pool::PoolBox;
use crate::engine_call::hint;
use crate::panic;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};
use tsumugi_core::completion::{OnEnd, Why};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::UnsafeCell;
use tsumugi_core::tag::Tag;
use tsumugi_core::wait::{Reason, Wait};
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::cache::{Miss, TableWanted};
use tsumugi_gas::order::{After, Full, Handle};
use tsumugi_gas::request::GlobalRequest;
use tsumugi_ult::Here;

impl GlobalDriver {
    /// Begins an operation or a flush. Returns its handle, and the place of its
    /// result. Never waits.
    pub fn try_begin(
        &self,
        request: Option<GlobalRequest>,
        after: After<'_>,
        flush: Option<Rank>,
    ) -> Result<(Handle, u32), Full> {
        let mut state = self.lock();
        let DriverState { machine, open, .. } = &mut *state;
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

    /// Sleeps until there may be room for one more operation.
    pub fn wait_for_room(&self) {
        let reason = Reason { what: "room for a global operation", at: 0, wanted: 0 };
        let mut publish = |waker| {
            let mut state = self.lock();
            let is_full = !state.machine.is_empty();
            if is_full {
                state.open.stuck.push(waker);
            }
            is_full
        };
        // SAFETY: the end of any operation takes the waker out of `stuck` and uses
        // it.
        unsafe { Here.sleep(reason, &mut publish) };
        Here.yield_now();
    }

    /// Whether the operation with this place has ended.
    pub fn has_ended(&self, at: u32) -> bool {
        self.lock().open.places[at as usize].has_ended()
    }

    /// Waits for the end of an operation and returns its result; frees the place.
    pub fn wait(&self, handle: Handle, at: u32) -> AccessOutcome {
        let reason = Reason { what: "global operation", at: handle.to_bits(), wanted: 0 };
        let mut publish = |waker| {
            // Copied, because the caller's frame may be gone once the waker is
            // published.
            let (this, at) = (self, at);
            let place = &mut this.lock().open.places[at as usize];
            let asleep = !place.has_ended();
            if asleep {
                place.waker = Some(waker);
            }
            asleep
        };
        // SAFETY: the end of the operation takes the waker out and uses it. Leaving
        // takes a lock that no sleeper holds.
        unsafe { Here.sleep_or_leave(reason, &mut publish, &mut || self.let_go(at)) };
        let result = self.lock().open.take(at);
        result.expect("a caller is woken by the end of its operation")
    }

    /// Polls for the result of an operation, as a future; frees the place with it.
    pub fn poll_end(&self, at: u32, context: &mut Context<'_>) -> Poll<AccessOutcome> {
        let mut state = self.lock();
        if let Some(result) = state.open.take(at) {
            return Poll::Ready(result);
        }
        state.open.keep_task(at, context.waker());
        Poll::Pending
    }

    /// Lets the end of an operation call `then` with its result. Never waits.
    ///
    /// # Errors
    ///
    /// `then`: as many operations are in flight as the rank has room for.
    pub fn end_with<F>(self: &Arc<Self>, at: u32, then: F) -> Result<(), (F, Why)>
    where
        F: FnOnce(AccessOutcome) + Send + 'static,
    {
        let tag = self.reserve(at, then)?;
        self.end_by(at, tag);
        Ok(())
    }

    /// Begins an operation whose end calls `then` with its result. Never waits.
    ///
    /// # Errors
    ///
    /// `then`: there is no room, and nothing happened.
    pub fn try_begin_then<F>(
        self: &Arc<Self>,
        request: GlobalRequest,
        then: F,
    ) -> Result<(), (F, Why)>
    where
        F: FnOnce(AccessOutcome) + Send + 'static,
    {
        let tag = self.reserve(u32::MAX, then)?;
        let table = self.host.tables().completions();
        match self.try_begin(Some(request), After::Nothing, None) {
            Ok((_, at)) => {
                // SAFETY: the slot has such a callback, and no other thread knows the tag.
                unsafe { table.buffer_of::<Boxed<F>>(tag).as_mut() }.0.at = at;
                self.end_by(at, tag);
                Ok(())
            }
            Err(_) => {
                // SAFETY: the slot has such a callback, and no operation refers to the tag.
                let Boxed(boxed) = unsafe { table.retract_owned::<Boxed<F>>(tag) };
                Err((boxed.into_inner().then, Why::NoTag))
            }
        }
    }

    /// Reserves a slot for the callback of the operation with this place.
    fn reserve<F>(self: &Arc<Self>, at: u32, then: F) -> Result<Tag, (F, Why)>
    where
        F: FnOnce(AccessOutcome) + Send + 'static,
    {
        let tables = self.host.tables();
        let ends = ThenOperation { driver: self.clone(), at, then };
        // SAFETY: the box is in a slot beside the pool, or with the thread that ends the
        // operation, which keeps both.
        let boxed = unsafe { tables.blocks().try_box(hint(), ends) };
        let boxed = boxed.map_err(|ends| (ends.then, Why::NoTag))?;
        let tag = tables.completions().try_begin_owned(hint(), Boxed(boxed));
        tag.map_err(|Boxed(boxed)| (boxed.into_inner().then, Why::NoTag))
    }

    /// Lets the end of the operation complete the tag.
    fn end_by(&self, at: u32, tag: Tag) {
        let mut state = self.lock();
        drop(state.open.take_task(at));
        let place = &mut state.open.places[at as usize];
        let has_ended = place.has_ended();
        if !has_ended {
            place.end = OperationEnd::Host(tag);
        }
        drop(state);
        if has_ended {
            self.host.tables().completions().complete(tag, Ok(0));
        }
    }

    /// Drops an operation, so that its result is not kept.
    pub fn let_go(&self, at: u32) {
        let open = &mut self.lock().open;
        drop(open.take_task(at));
        let place = &mut open.places[at as usize];
        match place.has_ended() {
            true => open.give_back(at),
            false => place.end = OperationEnd::LetGo,
        }
    }

    /// The number of free places.
    #[cfg(any(test, feature = "testing"))]
    pub fn places_free(&self) -> usize {
        self.lock().open.free.len()
    }

    /// Called when a lookup has missed. Its hold may have kept a table that the
    /// machine wants to evict; then the machine is polled, as after the end of an
    /// operation.
    pub fn tell_of_miss(&self, addr: GlobalAddr) {
        if self.cache().is_waited_for(addr) {
            self.tick();
        }
    }

    /// Called when a lookup has missed: waits until another lookup may succeed.
    pub fn bring(
        &self,
        addr: GlobalAddr,
        miss: Miss,
        search: &mut TableSearch,
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.tell_of_miss(addr);
        if core::mem::replace(&mut search.is_again, true) {
            // The table has come and was evicted again: the slots may be held by a
            // ULT of this worker, which must run.
            Here.yield_now();
        }
        let mut state = self.lock();
        let wanted = match miss {
            Miss::Refused(error) => return Err(error),
            Miss::NoTable => state.machine.want(addr)?,
            Miss::NotListed { version } => {
                if search.known.replace(version).is_some_and(|known| known != version) {
                    // The copy was read after the access began, so the region does
                    // not exist.
                    return Err(AddrError::StaleKey { addr });
                }
                state.machine.want_newer(addr, version)?
            }
        };
        match (wanted, self.cache().split().rank(addr)) {
            (TableWanted::Coming, Some(rank)) => {
                // Checked before the state has a pointer to this stack.
                tsumugi_ult::assert_may_block("table");
                let missing = Missing { rank, result: None, waker: None };
                let missing = UnsafeCell::new(missing);
                let pointer = missing.with_mut(NonNull::new).expect("a variable has an address");
                state.missing.push(pointer);
                drop(state);
                self.wait_for_table(addr, rank, &missing)
            }
            (TableWanted::Later, _) => {
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
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.drive();
        let reason = Reason { what: "table", at: u64::from(rank.0), wanted: 0 };
        let mut publish = |waker| {
            let this = self;
            let _state = this.lock();
            // SAFETY: the lock is held, and the caller has not returned, because it
            // waits for this result or for the waker.
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
        // SAFETY: the lock is held, so the driver does not access `missing`.
        let result = missing.with_mut(|missing| unsafe { (*missing).result.take() });
        let result = result.expect("a caller is woken by the end of the fetch");
        result.map_err(|error| error.at(addr))
    }
}

/// The callback of an operation.
struct ThenOperation<F> {
    driver: Arc<GlobalDriver>,
    at: u32,
    then: F,
}

struct Boxed<F>(PoolBox<ThenOperation<F>>);

impl<F: FnOnce(AccessOutcome) + Send + 'static> OnEnd for Boxed<F> {
    fn ended(self, _: Result<u64, AddrError>) {
        let ThenOperation { driver, at, then } = self.0.into_inner();
        let result = driver.lock().open.take(at);
        let result = result.expect("the operation has ended");
        panic::call_back(|| then(result));
    }
}
