//! Global memory access: copies and atomic operations, and their handles.
//!
//! A handle is the number of a call: an earlier call has a lower number. Only
//! copies that have to leave the node may still be in progress when the call
//! returns. ACP has no way to report a copy that fails later, and few programs
//! check for `ACP_HANDLE_NULL`, so the reason of a failure is also printed on
//! standard error.

use super::acp_ga_t;
use super::life::{Handles, Life, Reason, Table, note, quickly, with};
use std::ffi::c_int;
use tsumugi::AddrError;
use tsumugi::global::{After, Change, Copy, GlobalAddr, GlobalPtr, Operation};
use tsumugi_core::op::Kind;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_ult::sync::MutexGuard;

/// The handle of a copy or an atomic operation that was begun; 0 is no handle.
pub type acp_handle_t = i64;

/// No handle.
pub const ACP_HANDLE_NULL: acp_handle_t = 0;
/// All operations that were begun so far.
pub const ACP_HANDLE_ALL: acp_handle_t = -1;
/// As an order: the operation that was begun just before, if it was between the
/// same two ranks; otherwise all operations so far.
pub const ACP_HANDLE_CONT: acp_handle_t = -2;

/// Copies `size` bytes from `src` to `dst`, each in memory of any rank, when
/// `order` and all operations before it are complete. On failure it returns
/// `ACP_HANDLE_NULL` and prints the reason on standard error.
#[unsafe(no_mangle)]
pub extern "C" fn acp_copy(
    dst: acp_ga_t,
    src: acp_ga_t,
    size: usize,
    order: acp_handle_t,
) -> acp_handle_t {
    let (to, from) = (GlobalAddr::from_bits(dst), GlobalAddr::from_bits(src));
    let copied = quickly(|near| {
        let can = near.handles.are_complete() && near.global.try_copy(to, from, size as u64);
        can.then(|| near.handles.next())
    });
    copied.unwrap_or_else(|| {
        with(ACP_HANDLE_NULL, |life| {
            told(life, life.handles.copy(life, (dst, src, size as u64), order))
        })
    })
}

/// Stores `newval` in the 4 bytes at `src` if they hold `oldval`. The old value
/// goes to `dst`, memory of the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_cas4(
    dst: acp_ga_t,
    src: acp_ga_t,
    oldval: u32,
    newval: u32,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic4(dst, Change::compare_swap(GlobalAddr::from_bits(src), oldval, newval), order)
}

/// Does the same as `acp_cas4` on 8 bytes.
#[unsafe(no_mangle)]
pub extern "C" fn acp_cas8(
    dst: acp_ga_t,
    src: acp_ga_t,
    oldval: u64,
    newval: u64,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic8(dst, Change::compare_swap(GlobalAddr::from_bits(src), oldval, newval), order)
}

/// Stores `value` in the 4 bytes at `src`. The old value goes to `dst`, memory of
/// the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap4(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u32,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic4(dst, Change::atomic(Kind::Swap, GlobalAddr::from_bits(src), value), order)
}

/// Stores `value` in the 8 bytes at `src`. The old value goes to `dst`, memory of
/// the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_swap8(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u64,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic8(dst, Change::atomic(Kind::Swap, GlobalAddr::from_bits(src), value), order)
}

/// Adds `value` to the 4 bytes at `src`. The old value goes to `dst`, memory of the
/// calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_add4(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u32,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic4(dst, Change::atomic(Kind::FetchAdd, GlobalAddr::from_bits(src), value), order)
}

/// Adds `value` to the 8 bytes at `src`. The old value goes to `dst`, memory of the
/// calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_add8(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u64,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic8(dst, Change::atomic(Kind::FetchAdd, GlobalAddr::from_bits(src), value), order)
}

/// Flips the bits of `value` in the 4 bytes at `src`. The old value goes to `dst`,
/// memory of the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_xor4(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u32,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic4(dst, Change::atomic(Kind::FetchXor, GlobalAddr::from_bits(src), value), order)
}

/// Flips the bits of `value` in the 8 bytes at `src`. The old value goes to `dst`,
/// memory of the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_xor8(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u64,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic8(dst, Change::atomic(Kind::FetchXor, GlobalAddr::from_bits(src), value), order)
}

/// Sets the bits of `value` in the 4 bytes at `src`. The old value goes to `dst`,
/// memory of the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_or4(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u32,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic4(dst, Change::atomic(Kind::FetchOr, GlobalAddr::from_bits(src), value), order)
}

/// Sets the bits of `value` in the 8 bytes at `src`. The old value goes to `dst`,
/// memory of the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_or8(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u64,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic8(dst, Change::atomic(Kind::FetchOr, GlobalAddr::from_bits(src), value), order)
}

/// Keeps only the bits of `value` in the 4 bytes at `src`. The old value goes to
/// `dst`, memory of the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_and4(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u32,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic4(dst, Change::atomic(Kind::FetchAnd, GlobalAddr::from_bits(src), value), order)
}

/// Keeps only the bits of `value` in the 8 bytes at `src`. The old value goes to
/// `dst`, memory of the calling rank.
#[unsafe(no_mangle)]
pub extern "C" fn acp_and8(
    dst: acp_ga_t,
    src: acp_ga_t,
    value: u64,
    order: acp_handle_t,
) -> acp_handle_t {
    atomic8(dst, Change::atomic(Kind::FetchAnd, GlobalAddr::from_bits(src), value), order)
}

/// Waits until an operation and all operations before it are complete; with
/// `ACP_HANDLE_ALL`, all operations that were begun.
#[unsafe(no_mangle)]
pub extern "C" fn acp_complete(handle: acp_handle_t) {
    if quickly(|near| near.handles.are_complete().then_some(())).is_some() {
        return;
    }
    with((), |life| {
        life.handles.complete(life, handle);
        Ok(())
    });
}

/// Returns 1 if the operation or one before it is not complete yet, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn acp_inquire(handle: acp_handle_t) -> c_int {
    with(0, |life| Ok(c_int::from(life.handles.is_open(life, handle))))
}

impl Handles {
    /// Whether all operations that were begun are complete. An operation that another
    /// thread begins meanwhile is not one of them.
    #[inline(always)]
    fn are_complete(&self) -> bool {
        // Acquire: pairs with the Release in `counted`, after the last operation has
        // ended. The caller learns of a handle after its operation was counted.
        self.count.load(Ordering::Acquire) == 0
    }

    /// The handle of an operation that is complete.
    #[inline(always)]
    fn next(&self) -> acp_handle_t {
        // Relaxed: only the order of the numbers matters.
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn copy(
        &self,
        life: &Life,
        (dst, src, bytes): (acp_ga_t, acp_ga_t, u64),
        order: acp_handle_t,
    ) -> Result<acp_handle_t, Reason> {
        let mut table = self.lock();
        table.reap(life, OPEN_MAX);
        self.counted(&table);
        let (dst, src) = (GlobalAddr::from_bits(dst), GlobalAddr::from_bits(src));
        let before = table.newest(order);
        if bytes == 0 {
            // A copy of no bytes only takes a place in the order.
        } else if before.is_none() && life.global.is_by_caller(dst, src) {
            let (dst, src) = (GlobalPtr::<u8>::new(dst), GlobalPtr::new(src));
            life.global.copy(dst, src, bytes as usize).map_err(|error| reason(life, error))?;
        } else {
            let after = match before {
                None => After::Nothing,
                Some(_) if order == ACP_HANDLE_CONT => After::Cont,
                Some(operation) => After::UpTo(operation.handle()),
            };
            let operation = life.global.begin_after(Copy::new(dst, src, bytes), after);
            // Counted before anyone has the handle.
            let handle = self.next();
            table.open.push_back((handle, operation));
            self.counted(&table);
            return Ok(handle);
        }
        Ok(self.next())
    }

    /// Carries out an atomic operation; `keep` stores the old value.
    fn atomic(
        &self,
        life: &Life,
        word: Change,
        order: acp_handle_t,
        keep: impl FnOnce(u64) -> Result<(), Reason>,
    ) -> Result<acp_handle_t, Reason> {
        let mut table = self.lock();
        let count = table.open.iter().filter(|(open, _)| is_in(*open, order)).count();
        table.finish(life, count);
        self.counted(&table);
        keep(life.global.change(word).map_err(|error| reason(life, error))?)?;
        Ok(self.next())
    }

    /// Waits for the operation `handle` and all operations before it.
    pub(super) fn complete(&self, life: &Life, handle: acp_handle_t) {
        let mut table = self.lock();
        let count = table.open.iter().filter(|(open, _)| is_in(*open, handle)).count();
        table.finish(life, count);
        self.counted(&table);
    }

    fn is_open(&self, life: &Life, handle: acp_handle_t) -> bool {
        let mut table = self.lock();
        table.reap(life, usize::MAX);
        self.counted(&table);
        table.open.iter().any(|(open, operation)| is_in(*open, handle) && !operation.has_ended())
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// Publishes the number of operations on the list.
    fn counted(&self, table: &Table) {
        // Release: pairs with the Acquire in `are_complete`.
        self.count.store(table.open.len(), Ordering::Release);
    }
}

impl Table {
    /// The newest operation, up to `handle`, that may not be complete.
    fn newest(&self, handle: acp_handle_t) -> Option<&Operation> {
        let newest = self.open.iter().rev().find(|(open, _)| is_in(*open, handle));
        newest.map(|(_, operation)| operation)
    }

    /// Removes completed operations from the front of the list; if more than `most`
    /// stay, waits for the oldest of them.
    fn reap(&mut self, life: &Life, most: usize) {
        while self.open.front().is_some_and(|(_, operation)| operation.has_ended())
            || self.open.len() > most
        {
            self.finish(life, 1);
        }
    }

    /// Waits for the `count` oldest operations.
    fn finish(&mut self, life: &Life, count: usize) {
        for (_, operation) in self.open.drain(..count) {
            if let Err(error) = operation.wait() {
                let reason = reason(life, error);
                tell(life, &reason);
                note((), reason.0);
            }
        }
    }
}

/// Whether `open` is the operation `handle` or was begun before it.
const fn is_in(open: acp_handle_t, handle: acp_handle_t) -> bool {
    // Compared as unsigned numbers: ALL and CONT are higher than all handles.
    open as u64 <= handle as u64
}

fn atomic4(dst: acp_ga_t, word: Change, order: acp_handle_t) -> acp_handle_t {
    let dst = GlobalAddr::from_bits(dst);
    let keep = |old| Change::atomic(Kind::PutWord, dst, old as u32);
    atomic(word, order, keep)
}

fn atomic8(dst: acp_ga_t, word: Change, order: acp_handle_t) -> acp_handle_t {
    let dst = GlobalAddr::from_bits(dst);
    atomic(word, order, |old| Change::atomic(Kind::PutWord, dst, old))
}

/// Carries out an atomic operation, and then the put of the old value.
#[inline(always)]
fn atomic(word: Change, order: acp_handle_t, put: impl Fn(u64) -> Change) -> acp_handle_t {
    let keep = |life: &Life, old| {
        life.global.change(put(old)).map(drop).map_err(|error| reason(life, error))
    };
    let changed = quickly(|near| {
        if !near.handles.are_complete() {
            return None;
        }
        let old = near.global.try_change(word)?;
        let is_kept = near.global.try_change(put(old)).is_some();
        Some((old, is_kept, near.handles.next()))
    });
    match changed {
        Some((_, true, handle)) => handle,
        Some((old, false, handle)) => {
            with(ACP_HANDLE_NULL, |life| told(life, keep(life, old).map(|()| handle)))
        }
        None => with(ACP_HANDLE_NULL, |life| {
            let done = life.handles.atomic(life, word, order, |old| keep(life, old));
            told(life, done)
        }),
    }
}

/// Prints on standard error why a call failed.
fn told<T>(life: &Life, result: Result<T, Reason>) -> Result<T, Reason> {
    result.inspect_err(|reason| tell(life, reason))
}

/// Prints the reason, up to a maximum number of failures: a loop may fail a million
/// times.
#[cold]
fn tell(life: &Life, reason: &Reason) {
    // Relaxed: a count.
    let count = TOLD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
        (count < TOLD_MAX).then_some(count + 1)
    });
    let Ok(count) = count else { return };
    let more = if count + 1 == TOLD_MAX { "; further failures are not printed" } else { "" };
    // One write, because all ranks share standard error.
    let line = format!("acp: rank {}: {}{more}\n", life.number(), reason.0);
    eprint!("{line}");
}

/// The reason of a failed access, in words for a program that uses ACP.
#[cold]
fn reason(life: &Life, error: AddrError<GlobalAddr>) -> Reason {
    let AddrError::OutOfRange { addr, .. } = error else { return error.into() };
    match life.starter_of(addr) {
        Some(rank) => Reason(format!(
            "{error}; the starter memory of rank {rank} has {} bytes, --acp-size-smem sets its \
             size",
            life.starter.memory().1
        )),
        None => error.into(),
    }
}

/// The maximum number of copies in progress.
const OPEN_MAX: usize = 64;
/// How many failures this process has printed, and the maximum.
static TOLD: AtomicU32 = AtomicU32::new(0);
const TOLD_MAX: u32 = 16;
