//! MassiveThreads, help first: the order that is its faster one on forks.
//!
//! Layouts of myth.h: objects of the library's that we hold are given room
//! enough, and set up by the library.

use super::frames::{Entry, Threads};
use super::library::functions;
use super::rows::{Library, batch};
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use tsumugi_bench_ult::asleep::Growth;
use tsumugi_bench_ult::inbox::time;
use tsumugi_bench_ult::{Elsewhere, Inbox, System};
use tsumugi_core::sync::{AtomicBool, AtomicU64, Ordering};

pub const SYSTEM: System = System { name: "MassiveThreads", serve, elsewhere: ELSEWHERE };

functions! {
    Myth, c"libmyth.so":
    myth_init() -> c_int;
    myth_create_ex(*mut *mut c_void, *const Attributes, Entry, *mut c_void) -> c_int;
    myth_join(*mut c_void, *mut *mut c_void) -> c_int;
    myth_thread_attr_init(*mut Attributes) -> c_int;
    myth_yield_ex(c_int);
    myth_mutex_init(*mut Object, *const c_void) -> c_int;
    myth_mutex_lock(*mut Object) -> c_int;
    myth_mutex_unlock(*mut Object) -> c_int;
    myth_cond_init(*mut Object, *const c_void) -> c_int;
    myth_cond_wait(*mut Object, *mut Object) -> c_int;
    myth_cond_signal(*mut Object) -> c_int;
    myth_cond_broadcast(*mut Object) -> c_int;
    myth_uncond_init(*mut Object) -> c_int;
    myth_uncond_wait(*mut Object) -> c_int;
    myth_uncond_signal(*mut Object) -> c_int;
}

/// `myth_thread_attr_t`.
#[repr(C)]
struct Attributes {
    stackaddr: *mut c_void,
    stacksize: usize,
    guardsize: usize,
    detachstate: c_int,
    child_first: c_int,
    custom_data_size: usize,
    custom_data: *mut c_void,
    spare: [usize; 8],
}

/// A mutex, a condition variable or an uncond.
#[repr(C, align(64))]
struct Object([u8; 256]);

struct Help {
    myth: Myth,
    attributes: Attributes,
}

// SAFETY: nobody writes to it after it was made.
unsafe impl Send for Help {}
// SAFETY: as above.
unsafe impl Sync for Help {}

static HELP: OnceLock<Help> = OnceLock::new();

impl Threads for Help {
    type Handle = *mut c_void;

    #[inline(always)]
    fn create(entry: Entry, arg: *mut c_void) -> *mut c_void {
        let (Help { myth, attributes }, mut handle) = (Help::get(), null_mut());
        // SAFETY: set up; the attributes are the library's own.
        let failed = unsafe { (myth.myth_create_ex)(&mut handle, attributes, entry, arg) };
        assert_eq!(failed, 0, "the code of myth_create_ex");
        handle
    }

    #[inline(always)]
    fn join(handle: *mut c_void) {
        // SAFETY: a thread that was created and not joined yet.
        unsafe { (Help::get().myth.myth_join)(handle, null_mut()) };
    }
}

impl Library for Help {
    type Mutex = *mut Object;
    type Cond = *mut Object;

    #[inline(always)]
    fn get() -> &'static Self {
        HELP.get().expect("the library was loaded at the start")
    }

    #[inline(always)]
    fn yield_now(&self) {
        // SAFETY: a plain call on a thread of the library's.
        unsafe { (self.myth.myth_yield_ex)(LOCAL_ONLY) };
    }

    fn mutex(&self) -> *mut Object {
        let object = object();
        // SAFETY: room for it, and the default attributes.
        unsafe { (self.myth.myth_mutex_init)(object, null()) };
        object
    }

    #[inline(always)]
    fn lock(&self, mutex: *mut Object) {
        // SAFETY: set up.
        unsafe { (self.myth.myth_mutex_lock)(mutex) };
    }

    #[inline(always)]
    fn unlock(&self, mutex: *mut Object) {
        // SAFETY: set up, and held.
        unsafe { (self.myth.myth_mutex_unlock)(mutex) };
    }

    fn cond(&self) -> *mut Object {
        let object = object();
        // SAFETY: room for it, and the default attributes.
        unsafe { (self.myth.myth_cond_init)(object, null()) };
        object
    }

    #[inline(always)]
    fn wait(&self, cond: *mut Object, mutex: *mut Object) {
        // SAFETY: both set up, the mutex held.
        unsafe { (self.myth.myth_cond_wait)(cond, mutex) };
    }

    #[inline(always)]
    fn signal(&self, cond: *mut Object) {
        // SAFETY: set up.
        unsafe { (self.myth.myth_cond_signal)(cond) };
    }

    fn park_same(&self, rounds: u64) -> Option<f64> {
        let mut pair = Pair { unconds: [uncond(), uncond()], rounds };
        let other = Self::create(answer, (&raw mut pair).cast());
        // Until it waits, a signal to it would spin.
        self.yield_now();
        let [ours, theirs] = pair.unconds;
        let ns = time(2 * rounds, || {
            for _ in 0..rounds {
                // SAFETY: set up; one waits, one signals.
                unsafe {
                    (self.myth.myth_uncond_signal)(theirs);
                    (self.myth.myth_uncond_wait)(ours);
                }
            }
        });
        Self::join(other);
        ns
    }
}

fn serve(inbox: Inbox) {
    let myth = match Myth::load() {
        Ok(myth) => myth,
        Err(why) => return inbox.refuse_all(&why),
    };
    // SAFETY: no other thread reads the environment yet; then the library is
    // set up, and after it the attributes.
    unsafe {
        std::env::set_var("MYTH_NUM_WORKERS", inbox.workers().to_string());
        // Whoever measures pins all alike.
        std::env::set_var("MYTH_BIND_WORKERS", "0");
        (myth.myth_init)();
        let mut attributes = std::mem::zeroed();
        (myth.myth_thread_attr_init)(&mut attributes);
        attributes.child_first = 0;
        if inbox.row() == "bytes_per_ult" {
            attributes.stacksize = tsumugi_bench_ult::asleep::STACK_BYTES;
        }
        HELP.get_or_init(|| Help { myth, attributes });
    }
    if inbox.row() == "bytes_per_ult" {
        return inbox.serve_parts(|| asleep(inbox.sleepers()));
    }
    inbox.serve(|row| batch::<Help>(row, inbox.tree()));
}

/// Two threads that wake each other.
struct Pair {
    unconds: [*mut Object; 2],
    rounds: u64,
}

extern "C" fn answer(pair: *mut c_void) -> *mut c_void {
    // SAFETY: it is there until we have ended, and nobody writes to it.
    let Pair { unconds: [theirs, ours], rounds } = unsafe { &*pair.cast::<Pair>() };
    for _ in 0..*rounds {
        // SAFETY: set up; one waits, one signals.
        unsafe {
            (Help::get().myth.myth_uncond_wait)(*ours);
            (Help::get().myth.myth_uncond_signal)(*theirs);
        }
    }
    null_mut()
}

/// Threads that sleep until a gate opens.
struct Gate {
    mutex: *mut Object,
    cond: *mut Object,
    is_open: AtomicBool,
    arrived: AtomicU64,
}

fn asleep(threads: usize) -> [f64; 3] {
    let (help, arrived) = (Help::get(), AtomicU64::new(0));
    let (mutex, cond) = (help.mutex(), help.cond());
    let mut gate = Gate { mutex, cond, is_open: AtomicBool::new(false), arrived };
    let gate = &raw mut gate;
    let mut all = Vec::with_capacity(threads);
    let growth = Growth::begin();
    // SAFETY: the gate is there until all have ended.
    let arrived = unsafe { &(*gate).arrived };
    while all.len() < threads {
        for _ in 0..128.min(threads - all.len()) {
            all.push(Help::create(sleep, gate.cast()));
        }
        while arrived.load(Ordering::Relaxed) < all.len() as u64 {
            help.yield_now();
        }
    }
    let asleep = growth.asleep(threads);
    help.lock(mutex);
    // SAFETY: opened under the mutex; the condition variable is set up.
    unsafe {
        (*gate).is_open.store(true, Ordering::Relaxed);
        (help.myth.myth_cond_broadcast)(cond);
    }
    help.unlock(mutex);
    all.into_iter().for_each(Help::join);
    asleep.woken()
}

extern "C" fn sleep(gate: *mut c_void) -> *mut c_void {
    let help = Help::get();
    // SAFETY: it is there until all have ended; it is read under the mutex.
    let Gate { mutex, cond, is_open, arrived } = unsafe { &*gate.cast::<Gate>() };
    help.lock(*mutex);
    arrived.fetch_add(1, Ordering::Relaxed);
    while !is_open.load(Ordering::Relaxed) {
        help.wait(*cond, *mutex);
    }
    help.unlock(*mutex);
    null_mut()
}

/// Room for an object, for as long as the process.
fn object() -> *mut Object {
    Box::leak(Box::new(Object([0; 256])))
}

fn uncond() -> *mut Object {
    let object = object();
    // SAFETY: room for it.
    unsafe { (Help::get().myth.myth_uncond_init)(object) };
    object
}

/// `myth_yield_option_local_only`.
const LOCAL_ONLY: c_int = 1;

const fn elsewhere(row: &'static str, workers: usize, min: f64) -> Elsewhere {
    Elsewhere { row, workers, min }
}

/// 07569c5e at -O3 on an EPYC of 2 virtual CPUs, which resumed and suspended
/// a bare context in 2.2 ns.
const ELSEWHERE: &[Elsewhere] = &[
    elsewhere("yield2", 1, 15.3),
    elsewhere("yield1000", 1, 20.6),
    elsewhere("create_join", 1, 33.9),
    elsewhere("fib", 1, 34.2),
    elsewhere("fib", 2, 17.6),
    elsewhere("fib_no_inline", 1, 34.2),
    elsewhere("park_same", 1, 26.3),
    elsewhere("mutex", 1, 5.4),
    elsewhere("condvar", 1, 32.7),
];
