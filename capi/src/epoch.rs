//! Holds and epochs of windows: which ranks may access which targets at which time.

use super::code::{code_of, of_addr, of_window};
use super::object::{end, given, list_at, live, make, object};
use super::rank_lock::mode_of;
use super::tsumugi_window;
use std::ffi::c_int;
use std::mem::transmute;
use std::sync::Arc;
use tsumugi::lock::LockMode;
use tsumugi::window::{Epoch, Exposure, Hold};
use tsumugi::{Rank, Window};

/// A lock on one target of a window or on all of them. The handle lives until
/// `tsumugi_hold_release`.
#[derive(Debug)]
pub struct tsumugi_hold(
    // Declared before the window, which it borrows.
    Hold<'static, u8>,
    #[allow(dead_code, reason = "borrowed by the hold")] Arc<Window<u8>>,
);

/// An exposure epoch: this rank's memory is open to some ranks, until they have
/// completed. The handle lives until `tsumugi_exposure_wait`.
#[derive(Debug)]
pub struct tsumugi_exposure(
    Exposure<'static, u8>,
    #[allow(dead_code, reason = "borrowed by the exposure")] Arc<Window<u8>>,
);

/// An access epoch: the memory of some ranks is open to this rank, until it completes.
/// The handle lives until `tsumugi_epoch_complete`.
#[derive(Debug)]
pub struct tsumugi_epoch(
    Epoch<'static, u8>,
    #[allow(dead_code, reason = "borrowed by the epoch")] Arc<Window<u8>>,
);

/// Locks `target`, shared with other holders or exclusively (`TSUMUGI_SHARED`,
/// `TSUMUGI_EXCLUSIVE`). Blocks.
///
/// Errors: RANK, VALUE (of `mode`), LOST, ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_lock(
    window: *const tsumugi_window,
    target: u32,
    mode: c_int,
    out: *mut *mut tsumugi_hold,
) -> c_int {
    let lock = || {
        // SAFETY: the caller's.
        let (of, out) = unsafe { (live(window)?, given(out, "out")?) };
        let window = &of.window;
        let hold = match mode_of(mode)? {
            LockMode::Shared => window.shared(Rank(target)),
            LockMode::Exclusive => window.exclusive(Rank(target)),
        };
        // SAFETY: the caller's.
        unsafe { tsumugi_hold::tell(out, window, hold.map_err(of_window)?) };
        Ok(())
    };
    code_of(lock())
}

/// Locks all targets, shared with other holders. Blocks.
///
/// Errors: LOST, ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_lock_all(
    window: *const tsumugi_window,
    out: *mut *mut tsumugi_hold,
) -> c_int {
    let lock = || {
        // SAFETY: the caller's.
        let (of, out) = unsafe { (live(window)?, given(out, "out")?) };
        // SAFETY: the caller's.
        unsafe { tsumugi_hold::tell(out, &of.window, of.window.lock_all().map_err(of_window)?) };
        Ok(())
    };
    code_of(lock())
}

/// A hold of all targets without a lock, for a program that has no conflicting accesses:
/// it takes no operation, and its release flushes puts. Wait-free.
///
/// Errors: ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_unchecked(
    window: *const tsumugi_window,
    out: *mut *mut tsumugi_hold,
) -> c_int {
    let hold = || {
        // SAFETY: the caller's.
        let (of, out) = unsafe { (live(window)?, given(out, "out")?) };
        // SAFETY: the caller's.
        unsafe { tsumugi_hold::tell(out, &of.window, of.window.unchecked()) };
        Ok(())
    };
    code_of(hold())
}

/// Locks one more target, by a caller that has `hold` already. Ranks that take several
/// targets must take them in the same order, or they deadlock. Blocks.
///
/// Errors: HELD (the hold has the target already, or excludes the new one), and those of
/// `tsumugi_window_lock`.
///
/// # Safety
///
/// `hold` is a hold; `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_hold_lock(
    hold: *const tsumugi_hold,
    target: u32,
    mode: c_int,
    out: *mut *mut tsumugi_hold,
) -> c_int {
    let lock = || {
        // SAFETY: the caller's.
        let (tsumugi_hold(hold, window), out) = unsafe { (live(hold)?, given(out, "out")?) };
        let more = match mode_of(mode)? {
            LockMode::Shared => hold.shared(Rank(target)),
            LockMode::Exclusive => hold.exclusive(Rank(target)),
        };
        // SAFETY: the caller's.
        unsafe { tsumugi_hold::tell(out, window, more.map_err(of_window)?) };
        Ok(())
    };
    code_of(lock())
}

/// Flushes the puts to the targets of the hold, and gives the lock back, also if a put
/// has failed. Blocks for the flush.
///
/// Errors: those of the first put that failed, or of giving back; ENDED, NULL.
///
/// # Safety
///
/// `hold` is a hold; no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_hold_release(hold: *mut tsumugi_hold) -> c_int {
    let release = || {
        // SAFETY: the caller's.
        let tsumugi_hold(hold, _window) = unsafe { end(hold) }?;
        hold.release().map_err(of_addr)
    };
    code_of(release())
}

/// Opens this rank's memory to the `count` ranks in `origins`, each of which must call
/// `tsumugi_window_start`. Does not wait for them.
///
/// Errors: RANK, LOST, ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `origins` is valid for a read of `count` ranks; `out` is valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_post(
    window: *const tsumugi_window,
    origins: *const u32,
    count: usize,
    out: *mut *mut tsumugi_exposure,
) -> c_int {
    let post = || {
        // SAFETY: the caller's.
        let (of, out) = unsafe { (live(window)?, given(out, "out")?) };
        // SAFETY: the caller's.
        let origins = unsafe { ranks(origins, count, "origins") }?;
        let window = of.window.clone();
        let exposure = window.post(&origins).map_err(of_window)?;
        // SAFETY: the epoch borrows the window in the counted memory beside it, which is
        // dropped later.
        let exposure = unsafe { transmute::<Exposure<'_, u8>, Exposure<'static, u8>>(exposure) };
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_exposure(exposure, window)) };
        Ok(())
    };
    code_of(post())
}

/// Waits until all origins have completed: their puts have landed. Ends the exposure.
/// Blocks.
///
/// Errors: LOST, ENDED, NULL.
///
/// # Safety
///
/// `exposure` is an exposure; no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_exposure_wait(exposure: *mut tsumugi_exposure) -> c_int {
    let wait = || {
        // SAFETY: the caller's.
        let tsumugi_exposure(exposure, _window) = unsafe { end(exposure) }?;
        exposure.wait().map_err(of_addr)
    };
    code_of(wait())
}

/// Writes to `is_over` whether all origins have completed. Does not end the exposure.
/// Wait-free.
///
/// Errors: LOST, ENDED, NULL.
///
/// # Safety
///
/// `exposure` is an exposure; `is_over` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_exposure_test(
    exposure: *const tsumugi_exposure,
    is_over: *mut bool,
) -> c_int {
    let test = || {
        // SAFETY: the caller's.
        let (exposure, is_over) = unsafe { (live(exposure)?, given(is_over, "is_over")?) };
        let over = exposure.0.is_over().map_err(of_addr)?;
        // SAFETY: the caller's.
        unsafe { is_over.write(over) };
        Ok(())
    };
    code_of(test())
}

/// Waits until each of the `count` ranks in `targets` has opened its memory to this rank
/// by `tsumugi_window_post`. Blocks.
///
/// Errors: RANK, LOST, ENDED, NULL.
///
/// # Safety
///
/// `window` is a window; `targets` is valid for a read of `count` ranks; `out` is valid
/// for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_window_start(
    window: *const tsumugi_window,
    targets: *const u32,
    count: usize,
    out: *mut *mut tsumugi_epoch,
) -> c_int {
    let start = || {
        // SAFETY: the caller's.
        let (of, out) = unsafe { (live(window)?, given(out, "out")?) };
        // SAFETY: the caller's.
        let targets = unsafe { ranks(targets, count, "targets") }?;
        let window = of.window.clone();
        let epoch = window.start(&targets).map_err(of_window)?;
        // SAFETY: the epoch borrows the window in the counted memory beside it, which is
        // dropped later.
        let epoch = unsafe { transmute::<Epoch<'_, u8>, Epoch<'static, u8>>(epoch) };
        // SAFETY: the caller's.
        unsafe { make(out, tsumugi_epoch(epoch, window)) };
        Ok(())
    };
    code_of(start())
}

/// Waits until all puts to the targets have landed, tells the targets, also if a put has
/// failed, and ends the epoch. Blocks.
///
/// Errors: those of the first put that failed; LOST, ENDED, NULL.
///
/// # Safety
///
/// `epoch` is an epoch; no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_epoch_complete(epoch: *mut tsumugi_epoch) -> c_int {
    let complete = || {
        // SAFETY: the caller's.
        let tsumugi_epoch(epoch, _window) = unsafe { end(epoch) }?;
        epoch.complete().map_err(of_addr)
    };
    code_of(complete())
}

impl tsumugi_hold {
    /// Makes a handle of a hold.
    ///
    /// # Safety
    ///
    /// `out` is valid for a write; `hold` borrows the window in this counted memory.
    unsafe fn tell(out: *mut *mut Self, window: &Arc<Window<u8>>, hold: Hold<'_, u8>) {
        // SAFETY: the hold borrows the window in the counted memory beside it, which is
        // dropped later.
        let hold = unsafe { transmute::<Hold<'_, u8>, Hold<'static, u8>>(hold) };
        // SAFETY: the caller's.
        unsafe { make(out, Self(hold, window.clone())) };
    }
}

object!(tsumugi_hold, "hold");
object!(tsumugi_exposure, "exposure");
object!(tsumugi_epoch, "epoch");

/// The ranks of a list.
///
/// # Safety
///
/// `list` is null or valid for a read of `count` ranks.
unsafe fn ranks(list: *const u32, count: usize, name: &str) -> Result<Vec<Rank>, c_int> {
    // SAFETY: the caller's.
    Ok(unsafe { list_at(list, count, name)? }.iter().map(|rank| Rank(*rank)).collect())
}
