//! Making a scheduler, running it, ending it.

use super::body::run_body;
use super::code::{code_of, of_start};
use super::parameter::{self, Word, borrow, place, read};
use super::{
    TSUMUGI_ERROR_ENDED, TSUMUGI_ERROR_NO_ULT, TSUMUGI_ERROR_NULL, TSUMUGI_ERROR_RUNNING,
    TSUMUGI_ERROR_UNSUPPORTED,
};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};
use tsumugi_ult::{Config, Entered, Scheduler, Spawner, StackArea, StartError};

/// The configuration of a scheduler; zero in a member is its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tsumugi_config {
    /// `sizeof(struct tsumugi_config)`.
    pub size: usize,
    /// OS threads that run ULTs; by default as many as there are cores.
    pub workers: usize,
    /// Usable bytes of a ULT's stack, a multiple of the page; by default
    /// 64 KiB.
    pub stack_bytes: usize,
    /// Usable bytes of main's stack, a multiple of the page; by default 8 MiB.
    pub main_stack_bytes: usize,
    /// Address space for all stacks, backed by memory on first use only; by default
    /// 1 GiB. When it is full, new ULTs wait until a ULT ends.
    pub area_bytes: usize,
    /// Rounds that an idle worker searches for work before it yields its core, plus
    /// one; by default 100.
    pub spin_plus_one: usize,
}

// SAFETY: all members are words, and the first is the size.
unsafe impl parameter::Versioned for tsumugi_config {}

/// A scheduler: workers and their ULTs. A process may have any number of
/// schedulers.
#[derive(Debug)]
pub struct tsumugi_scheduler {
    scheduler: Mutex<Option<Scheduler>>,
    entered: Mutex<Option<Entered>>,
    pub(super) spawner: Spawner,
}

impl tsumugi_scheduler {
    /// The scheduler of a job, which the job itself runs.
    pub(super) fn of(spawner: Spawner) -> Self {
        Self { scheduler: Mutex::new(None), entered: Mutex::new(None), spawner }
    }
}

/// Prepares a scheduler; NULL stands for all defaults. `tsumugi_scheduler_run` or
/// `tsumugi_scheduler_start` starts it.
///
/// Errors: WORKER, STACK, MEMORY, THREAD, SIZE, NULL.
///
/// # Safety
///
/// `config` is NULL or valid for a read of as many bytes as its `size` states;
/// `out` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_scheduler_create(
    config: *const tsumugi_config,
    out: *mut *mut tsumugi_scheduler,
) -> c_int {
    let create = || {
        // SAFETY: the caller's.
        let out = unsafe { place(out) }?;
        let scheduler = match config.is_null() {
            true => create(None),
            // SAFETY: the caller's.
            false => create(Some(unsafe { read(config) }?)),
        };
        let scheduler = scheduler.map_err(|error| of_start(&error))?;
        let spawner = scheduler.spawner();
        let scheduler = Mutex::new(Some(scheduler));
        let made = tsumugi_scheduler { scheduler, entered: Mutex::new(None), spawner };
        // SAFETY: the caller's.
        unsafe { out.write(Box::into_raw(Box::new(made))) };
        Ok(())
    };
    code_of(create())
}

/// Runs `main` as the first ULT, with the calling thread as a worker, and returns
/// when `main` has returned. Then the scheduler has ended, and ULTs that have not
/// ended are cut off: they never finish. Writes the return value of `main` to
/// `value`, unless `value` is NULL. Blocks.
///
/// Errors: RUNNING, ENDED, NULL.
///
/// # Safety
///
/// `scheduler` is a live scheduler; `main(arg)` may run on any thread; `value` is
/// NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_scheduler_run(
    scheduler: *mut tsumugi_scheduler,
    main: Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>,
    arg: *mut c_void,
    value: *mut *mut c_void,
) -> c_int {
    let run = || {
        // SAFETY: the caller's.
        let this = unsafe { borrow(scheduler) }?;
        let main = main.ok_or(TSUMUGI_ERROR_NULL)?;
        let scheduler = {
            let mut kept = this.kept();
            match &*kept {
                None => return Err(this.gone()),
                Some(scheduler) if scheduler.is_started() => return Err(TSUMUGI_ERROR_RUNNING),
                Some(_) => kept.take().expect("the scheduler is kept"),
            }
        };
        let arg = Word(arg);
        // SAFETY: the caller's.
        let answer = scheduler.run(move || unsafe { run_body(main, arg) });
        if !value.is_null() {
            // SAFETY: the caller's.
            unsafe { value.write(answer.0) };
        }
        Ok(())
    };
    code_of(run())
}

/// Starts all workers in the background. They run until
/// `tsumugi_scheduler_destroy`.
///
/// Errors: THREAD, RUNNING (a thread has entered it), ENDED, NULL.
///
/// # Safety
///
/// `scheduler` is a live scheduler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_scheduler_start(scheduler: *mut tsumugi_scheduler) -> c_int {
    let start = || {
        // SAFETY: the caller's.
        let this = unsafe { borrow(scheduler) }?;
        let mut kept = this.kept();
        let scheduler = kept.as_mut().ok_or_else(|| this.gone())?;
        scheduler.start().map_err(|error| of_start(&error))
    };
    code_of(start())
}

/// Makes the caller a ULT of the scheduler, on the stack that it has, and its OS thread
/// the last worker: a program's `main` can spawn and wait as any ULT. From then on each
/// call that suspends may continue the caller on another OS thread, until it leaves.
/// Suspends the caller.
///
/// Errors: RUNNING (all workers run, or the caller is a ULT already), ENDED, UNSUPPORTED
/// (on another system than Linux on x86-64, or under a sanitizer), NULL.
///
/// # Safety
///
/// `scheduler` is a live scheduler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_scheduler_enter(scheduler: *mut tsumugi_scheduler) -> c_int {
    let enter = || {
        // SAFETY: the caller's.
        let this = unsafe { borrow(scheduler) }?;
        let is_thread = tsumugi_ult::worker().is_none();
        let scheduler = this.kept().take().ok_or_else(|| this.gone())?;
        let is_free = is_thread && !scheduler.is_started();
        match scheduler.enter() {
            Ok(entered) => *this.entered() = Some(entered),
            Err(scheduler) => {
                *this.kept() = Some(scheduler);
                let code = if is_free { TSUMUGI_ERROR_UNSUPPORTED } else { TSUMUGI_ERROR_RUNNING };
                return Err(code);
            }
        }
        Ok(())
    };
    code_of(enter())
}

/// Ends a scheduler that the caller has entered: the caller is an ordinary thread again,
/// the one that has entered. ULTs that have not ended are cut off. Blocks until all
/// workers have stopped.
///
/// Errors: NO_ULT (the caller is not the ULT that has entered), NULL.
///
/// # Safety
///
/// `scheduler` is a live scheduler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_scheduler_leave(scheduler: *mut tsumugi_scheduler) -> c_int {
    let leave = || {
        // SAFETY: the caller's.
        let this = unsafe { borrow(scheduler) }?;
        let entered = this.entered().take_if(|entered| entered.is_caller());
        entered.ok_or(TSUMUGI_ERROR_NO_ULT)?.leave();
        Ok(())
    };
    code_of(leave())
}

/// Ends a scheduler and frees it. ULTs that have not ended are cut off, and joins
/// of them return ENDED. NULL is allowed. Blocks until all workers have stopped.
/// Aborts the process if a ULT of the same scheduler calls it.
///
/// # Safety
///
/// `scheduler` is NULL or a live scheduler; no thread uses it any more. Handles of
/// its ULTs stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsumugi_scheduler_destroy(scheduler: *mut tsumugi_scheduler) {
    if !scheduler.is_null() {
        // SAFETY: the caller's: made by `tsumugi_scheduler_create`.
        drop(unsafe { Box::from_raw(scheduler) });
    }
}

impl tsumugi_scheduler {
    fn entered(&self) -> std::sync::MutexGuard<'_, Option<Entered>> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the scheduler cannot begin any more: a thread has entered it, or it has ended.
    fn gone(&self) -> c_int {
        if self.entered().is_some() { TSUMUGI_ERROR_RUNNING } else { TSUMUGI_ERROR_ENDED }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Scheduler>> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn create(config: Option<tsumugi_config>) -> Result<Scheduler, StartError> {
    let asked = |member: fn(&tsumugi_config) -> usize| {
        config.as_ref().map(member).filter(|value| *value != 0)
    };
    let area = StackArea::map(asked(|config| config.area_bytes).unwrap_or(AREA_BYTES));
    let mut chosen = Config::new(area.map_err(StartError::Stacks)?);
    let spin = asked(|config| config.spin_plus_one).map(|spin| (spin - 1).min(u32::MAX as usize));
    chosen.workers = asked(|config| config.workers).unwrap_or(chosen.workers);
    chosen.stack_bytes = asked(|config| config.stack_bytes).unwrap_or(chosen.stack_bytes);
    let main_stack_bytes = asked(|config| config.main_stack_bytes);
    chosen.main_stack_bytes = main_stack_bytes.unwrap_or(chosen.main_stack_bytes);
    chosen.spin = spin.map_or(chosen.spin, |spin| spin as u32);
    Scheduler::new(chosen)
}

const AREA_BYTES: usize = 1 << 30;
