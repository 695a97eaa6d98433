//! The beginning and the end of the library in a process: attributes, the environment,
//! and the scheduler.

use crate::bind::Binding;
use std::ffi::c_int;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering, UnsafeCell};
use tsumugi_core::wait::DoorbellSet;
use tsumugi_ult::{Config, Entered, Order, Scheduler, Spawner, StackArea};

/// Attributes of the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct myth_globalattr_t {
    pub(crate) stacksize: usize,
    pub(crate) guardsize: usize,
    n_workers: c_int,
    bind_workers: c_int,
    pub(crate) child_first: c_int,
    initialized: c_int,
}

/// The scheduler, once it runs.
struct Process {
    entered: Option<Entered>,
    spawner: Spawner,
}

struct Slot(UnsafeCell<Option<Process>>);

// SAFETY: `STATE` says which thread may access the slot: the one that changed it to
// `CHANGING`, and any thread for reading while it is `RUNNING`.
unsafe impl Sync for Slot {}

static PROCESS: Slot = Slot(UnsafeCell::new(None));
static STATE: AtomicU32 = AtomicU32::new(NONE);
static HELP_FIRST: AtomicBool = AtomicBool::new(false);
static WORKERS: AtomicUsize = AtomicUsize::new(1);

const NONE: u32 = 0;
const CHANGING: u32 = 1;
const RUNNING: u32 = 2;

/// Starts the library with the attributes of the process; see `myth_init_ex`.
#[unsafe(no_mangle)]
pub extern "C" fn myth_init() -> c_int {
    start(None)
}

/// Starts the library: the caller becomes a ULT, and its thread the first worker. Any
/// other function does the same when it is called first. If the library runs already,
/// nothing happens. Returns 0, or -1 if there is no memory or no thread.
///
/// # Safety
///
/// `attr` is NULL or valid for a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_init_ex(attr: *const myth_globalattr_t) -> c_int {
    // SAFETY: the caller's.
    start(unsafe { attr.as_ref() })
}

/// Ends the library: the caller, which is the ULT that has started it, becomes an
/// ordinary thread again. ULTs that have not ended are cut off. Called by another
/// thread, the function does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_fini() {
    if STATE.compare_exchange(RUNNING, CHANGING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: this thread has changed the state.
    let process = PROCESS.0.with_mut(|process| unsafe { &mut *process });
    let own = process
        .as_ref()
        .is_some_and(|process| process.entered.as_ref().is_some_and(Entered::is_caller));
    if !own {
        return STATE.store(RUNNING, Ordering::Release);
    }
    if let Some(entered) = process.take().and_then(|process| process.entered) {
        entered.leave();
    }
    STATE.store(NONE, Ordering::Release);
}

/// Fills in the attributes of the process: the defaults, or what the environment says.
///
/// # Safety
///
/// `attr` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myth_globalattr_init(attr: *mut myth_globalattr_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { attr.write(of_environment()) };
    0
}

/// Does nothing: attributes own nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myth_globalattr_destroy(_attr: *mut myth_globalattr_t) -> c_int {
    0
}

/// The functions that get and set one attribute: NULL for `attr` stands for the
/// attributes of the process.
macro_rules! attribute {
    ($get:ident, $set:ident, $member:ident, $type:ty) => {
        #[doc = concat!("Reads the attribute `", stringify!($member), "`.")]
        ///
        /// # Safety
        ///
        /// `attr` is NULL or valid for a read, `value` is valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(attr: *const myth_globalattr_t, value: *mut $type) -> c_int {
            // SAFETY: the caller's.
            let attr = unsafe { attr.as_ref() }.copied().unwrap_or_else(self::attr);
            // SAFETY: the caller's.
            unsafe { value.write(attr.$member as $type) };
            0
        }

        #[doc = concat!("Sets the attribute `", stringify!($member), "`.")]
        ///
        /// # Safety
        ///
        /// `attr` is NULL or valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(attr: *mut myth_globalattr_t, value: $type) -> c_int {
            // SAFETY: the caller's.
            match unsafe { attr.as_mut() } {
                Some(attr) => attr.$member = value as _,
                None => with_process_attr(|attr| attr.$member = value as _),
            }
            0
        }
    };
}

attribute!(myth_globalattr_get_stacksize, myth_globalattr_set_stacksize, stacksize, usize);
attribute!(myth_globalattr_get_guardsize, myth_globalattr_set_guardsize, guardsize, usize);
attribute!(myth_globalattr_get_n_workers, myth_globalattr_set_n_workers, n_workers, usize);
attribute!(myth_globalattr_get_bind_workers, myth_globalattr_set_bind_workers, bind_workers, c_int);
attribute!(myth_globalattr_get_child_first, myth_globalattr_set_child_first, child_first, c_int);

/// The number of workers.
#[unsafe(no_mangle)]
pub extern "C" fn myth_get_num_workers() -> c_int {
    ensure();
    WORKERS.load(Ordering::Relaxed) as c_int
}

/// The number of workers, as `myth_get_num_workers`.
#[unsafe(no_mangle)]
pub extern "C" fn myth_getconcurrency() -> c_int {
    myth_get_num_workers()
}

/// The number of the caller's worker, from 0; 0 on a thread that is no worker.
#[unsafe(no_mangle)]
pub extern "C" fn myth_get_worker_num() -> c_int {
    ensure();
    spawner().worker().unwrap_or(0) as c_int
}

/// 1 if the calling thread is a worker, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn myth_is_myth_worker() -> c_int {
    let runs = STATE.load(Ordering::Acquire) == RUNNING;
    c_int::from(runs && spawner().worker().is_some())
}

/// The order of a spawn without attributes.
#[inline(always)]
pub(crate) fn order() -> Order {
    if HELP_FIRST.load(Ordering::Relaxed) { Order::HelpFirst } else { Order::ChildFirst }
}

/// Whether the caller is the thread that has started the library.
pub(crate) fn is_first() -> bool {
    ensure();
    // SAFETY: the library runs, and the slot is only written while it does not.
    let process = PROCESS.0.with(|process| unsafe { &*process });
    process.as_ref().and_then(|process| process.entered.as_ref()).is_some_and(Entered::is_caller)
}

/// The scheduler, which runs.
pub(crate) fn spawner() -> &'static Spawner {
    // SAFETY: the library runs, and the slot is only written while it does not.
    let process = PROCESS.0.with(|process| unsafe { &*process });
    &process.as_ref().expect("myth: the library was ended").spawner
}

/// Starts the library if it does not run.
#[inline(always)]
pub(crate) fn ensure() {
    if STATE.load(Ordering::Acquire) != RUNNING {
        start_or_end();
    }
}

/// Starts the library, or ends the process.
#[cold]
#[inline(never)]
pub(crate) fn start_or_end() {
    if start(None) != 0 {
        fatal("the library cannot start");
    }
}

/// Ends the process with a message.
pub(crate) fn fatal(why: &str) -> ! {
    eprintln!("myth: {why}");
    std::process::abort()
}

fn start(asked: Option<&myth_globalattr_t>) -> c_int {
    loop {
        match STATE.compare_exchange(NONE, CHANGING, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => break,
            Err(RUNNING) => return 0,
            // Another thread starts the library.
            Err(_) => std::thread::sleep(Duration::from_micros(10)),
        }
    }
    let attr = asked.copied().unwrap_or_else(self::attr);
    let Some(entered) = enter(&attr) else {
        STATE.store(NONE, Ordering::Release);
        return -1;
    };
    HELP_FIRST.store(attr.child_first == 0, Ordering::Relaxed);
    WORKERS.store(workers(&attr), Ordering::Relaxed);
    let spawner = entered.spawner();
    // SAFETY: this thread of control has changed the state.
    PROCESS.0.with_mut(|process| unsafe {
        *process = Some(Process { entered: Some(entered), spawner });
    });
    STATE.store(RUNNING, Ordering::Release);
    0
}

fn workers(attr: &myth_globalattr_t) -> usize {
    usize::try_from(attr.n_workers).unwrap_or(1).clamp(1, WORKERS_MAX)
}

fn enter(attr: &myth_globalattr_t) -> Option<Entered> {
    // Address space is not memory, but a system may limit it.
    let area = AREAS.iter().find_map(|bytes| StackArea::map(*bytes).ok())?;
    let page = 4096;
    let config = Config::new(area)
        .workers(workers(attr))
        .stack_bytes(attr.stacksize.max(16 << 10).next_multiple_of(page))
        .main_stack_bytes(HUB_BYTES)
        .spin(SPIN)
        .progress(Arc::new(Binding::of_environment(attr.bind_workers != 0)));
    Scheduler::new(config).ok()?.enter().ok()
}

fn of_environment() -> myth_globalattr_t {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let workers = number("MYTH_NUM_WORKERS").or_else(|| number("MYTH_WORKER_NUM"));
    myth_globalattr_t {
        stacksize: number("MYTH_DEF_STKSIZE").unwrap_or(128 << 10),
        guardsize: number("MYTH_DEF_GUARDSIZE").unwrap_or(4096),
        n_workers: workers.unwrap_or(cores).min(WORKERS_MAX) as c_int,
        bind_workers: c_int::from(text("MYTH_BIND_WORKERS").is_none_or(|text| text != "0")),
        child_first: c_int::from(text("MYTH_CHILD_FIRST").is_none_or(|text| text != "0")),
        initialized: 1,
    }
}

/// A positive number in the environment.
fn number(name: &str) -> Option<usize> {
    text(name)?.parse().ok().filter(|number| *number > 0)
}

fn text(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The attributes of the process.
pub(crate) fn attr() -> myth_globalattr_t {
    let mut copy = None;
    with_process_attr(|attr| copy = Some(*attr));
    copy.expect("the function was called")
}

fn with_process_attr(f: impl FnOnce(&mut myth_globalattr_t)) {
    static ATTR: OnceLock<std::sync::Mutex<myth_globalattr_t>> = OnceLock::new();
    let attr = ATTR.get_or_init(|| of_environment().into());
    f(&mut attr.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
}

const WORKERS_MAX: usize = DoorbellSet::WORKERS_MAX;
/// Address space for all stacks: as much as the system gives.
const AREAS: [usize; 4] = [64 << 30, 8 << 30, 1 << 30, 64 << 20];
/// Rounds that an idle worker searches before it yields its core and sleeps: some
/// milliseconds, because MassiveThreads' workers never sleep.
const SPIN: u32 = 4096;
/// The stack of the first worker's scheduler loop.
const HUB_BYTES: usize = 256 << 10;
