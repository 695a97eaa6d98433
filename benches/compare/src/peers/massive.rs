//! MassiveThreads, help first: the order that is its faster one on forks.
//!
//! Layouts of myth.h: objects of the library's that we hold are given room
//! enough, and set up by the library.

use super::frames::{self, Entry, Threads};
use super::library::functions;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use tsumugi_bench_ult::asleep::Growth;
use tsumugi_bench_ult::fork::{self, Board};
use tsumugi_bench_ult::inbox::time;
use tsumugi_bench_ult::uts::{Node, T1_NODES};
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

fn help() -> &'static Help {
    HELP.get().expect("it was loaded first")
}

struct Ults;

impl Threads for Ults {
    type Handle = *mut c_void;

    #[inline(always)]
    fn create(entry: Entry, arg: *mut c_void) -> *mut c_void {
        let (Help { myth, attributes }, mut handle) = (help(), null_mut());
        // SAFETY: set up; the attributes are the library's own.
        let failed = unsafe { (myth.myth_create_ex)(&mut handle, attributes, entry, arg) };
        assert_eq!(failed, 0, "myth_create_ex");
        handle
    }

    #[inline(always)]
    fn join(handle: *mut c_void) {
        // SAFETY: a thread that was created and not joined yet.
        unsafe { (help().myth.myth_join)(handle, null_mut()) };
    }
}

fn serve(inbox: Inbox) {
    let myth = match Myth::load() {
        Ok(myth) => myth,
        Err(why) => {
            return while inbox.next() {
                inbox.refuse(&why)
            };
        }
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
        while inbox.next() {
            inbox.answer(&asleep(inbox.sleepers()));
        }
        return;
    }
    inbox.serve(|row| batch(row, inbox.tree()));
}

fn batch(row: &str, tree: Node) -> Option<f64> {
    match row {
        "yield2" => time(20_000, || crowd(2, yielder, 10_000)),
        "yield1000" => time(50_000, || crowd(1000, yielder, 50)),
        "create_join" => time(5_000, || {
            for _ in 0..5_000 {
                Ults::join(Ults::create(nothing, null_mut()));
            }
        }),
        "fib" | "fib_no_inline" => time(fork::fib_children(fork::FIB), || {
            black_box(frames::fib::<Ults>(black_box(fork::FIB)));
        }),
        "park_same" => park_same(5_000),
        "mutex" => {
            let (mutex, myth) = (mutex(), help().myth);
            time(10_000, || {
                for _ in 0..10_000 {
                    // SAFETY: set up.
                    unsafe {
                        (myth.myth_mutex_lock)(mutex);
                        (myth.myth_mutex_unlock)(mutex);
                    }
                }
            })
        }
        "condvar" => condvar(2_000),
        "uts" => time(T1_NODES, || assert_eq!(frames::tree::<Ults>(tree), T1_NODES)),
        "nqueens" => time(fork::QUEENS_CHILDREN, || {
            assert_eq!(frames::queens::<Ults>(Board::new(fork::QUEENS)), fork::QUEENS_WAYS);
        }),
        _ => None,
    }
}

fn crowd(count: usize, entry: Entry, mut times: usize) {
    frames::crowd::<Ults>(count, entry, (&raw mut times).cast());
}

extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    null_mut()
}

extern "C" fn yielder(times: *mut c_void) -> *mut c_void {
    // SAFETY: a number that nobody writes meanwhile.
    for _ in 0..unsafe { *times.cast::<usize>() } {
        // SAFETY: a plain call on a thread of the library's.
        unsafe { (help().myth.myth_yield_ex)(LOCAL_ONLY) };
    }
    null_mut()
}

/// Two threads that wake each other.
struct Pair {
    unconds: [*mut Object; 2],
    rounds: u64,
}

fn park_same(rounds: u64) -> Option<f64> {
    let (myth, mut pair) = (help().myth, Pair { unconds: [uncond(), uncond()], rounds });
    let other = Ults::create(answer, (&raw mut pair).cast());
    // Until it waits, a signal to it would spin.
    // SAFETY: a plain call on a thread of the library's.
    unsafe { (myth.myth_yield_ex)(LOCAL_ONLY) };
    let [ours, theirs] = pair.unconds;
    let ns = time(2 * rounds, || {
        for _ in 0..rounds {
            // SAFETY: set up; one waits, one signals.
            unsafe {
                (myth.myth_uncond_signal)(theirs);
                (myth.myth_uncond_wait)(ours);
            }
        }
    });
    Ults::join(other);
    ns
}

extern "C" fn answer(pair: *mut c_void) -> *mut c_void {
    // SAFETY: it is there until we have ended, and nobody writes to it.
    let Pair { unconds: [theirs, ours], rounds } = unsafe { &*pair.cast::<Pair>() };
    for _ in 0..*rounds {
        // SAFETY: set up; one waits, one signals.
        unsafe {
            (help().myth.myth_uncond_wait)(*ours);
            (help().myth.myth_uncond_signal)(*theirs);
        }
    }
    null_mut()
}

/// Two threads that hand a turn over.
struct Turn {
    mutex: *mut Object,
    cond: *mut Object,
    turn: Cell<u64>,
    rounds: u64,
}

fn condvar(rounds: u64) -> Option<f64> {
    let mut turn = Turn { mutex: mutex(), cond: cond(), turn: Cell::new(0), rounds };
    let turn = &raw mut turn;
    time(2 * rounds, || {
        let other = Ults::create(odd, turn.cast());
        play(turn, 0);
        Ults::join(other);
    })
}

extern "C" fn odd(turn: *mut c_void) -> *mut c_void {
    play(turn.cast(), 1);
    null_mut()
}

fn play(turn: *mut Turn, side: u64) {
    let myth = help().myth;
    // SAFETY: it is there until both have ended; the turn is read and written
    // under the mutex.
    unsafe {
        let Turn { mutex, cond, rounds, .. } = *turn;
        for _ in 0..rounds {
            (myth.myth_mutex_lock)(mutex);
            while (*turn).turn.get() % 2 != side {
                (myth.myth_cond_wait)(cond, mutex);
            }
            (*turn).turn.set((*turn).turn.get() + 1);
            (myth.myth_cond_signal)(cond);
            (myth.myth_mutex_unlock)(mutex);
        }
    }
}

/// Threads that sleep until a gate opens.
struct Gate {
    mutex: *mut Object,
    cond: *mut Object,
    is_open: AtomicBool,
    arrived: AtomicU64,
}

fn asleep(threads: usize) -> [f64; 3] {
    let myth = help().myth;
    let arrived = AtomicU64::new(0);
    let mut gate = Gate { mutex: mutex(), cond: cond(), is_open: AtomicBool::new(false), arrived };
    let gate = &raw mut gate;
    let mut all = Vec::with_capacity(threads);
    let growth = Growth::begin();
    // SAFETY: the gate is there until all have ended.
    let arrived = unsafe { &(*gate).arrived };
    while all.len() < threads {
        for _ in 0..128.min(threads - all.len()) {
            all.push(Ults::create(sleep, gate.cast()));
        }
        while arrived.load(Ordering::Relaxed) < all.len() as u64 {
            // SAFETY: a plain call on a thread of the library's.
            unsafe { (myth.myth_yield_ex)(LOCAL_ONLY) };
        }
    }
    let asleep = growth.asleep(threads);
    // SAFETY: set up; it is opened under the mutex.
    unsafe {
        (myth.myth_mutex_lock)((*gate).mutex);
        (*gate).is_open.store(true, Ordering::Relaxed);
        (myth.myth_cond_broadcast)((*gate).cond);
        (myth.myth_mutex_unlock)((*gate).mutex);
    }
    all.into_iter().for_each(Ults::join);
    asleep.woken()
}

extern "C" fn sleep(gate: *mut c_void) -> *mut c_void {
    let (gate, myth) = (gate.cast::<Gate>(), help().myth);
    // SAFETY: it is there until all have ended; it is read under the mutex.
    unsafe {
        (myth.myth_mutex_lock)((*gate).mutex);
        (*gate).arrived.fetch_add(1, Ordering::Relaxed);
        while !(*gate).is_open.load(Ordering::Relaxed) {
            (myth.myth_cond_wait)((*gate).cond, (*gate).mutex);
        }
        (myth.myth_mutex_unlock)((*gate).mutex);
    }
    null_mut()
}

/// Room for an object, for as long as the process.
fn object() -> *mut Object {
    Box::leak(Box::new(Object([0; 256])))
}

fn mutex() -> *mut Object {
    let object = object();
    // SAFETY: room for it, and the default attributes.
    unsafe { (help().myth.myth_mutex_init)(object, null()) };
    object
}

fn cond() -> *mut Object {
    let object = object();
    // SAFETY: room for it, and the default attributes.
    unsafe { (help().myth.myth_cond_init)(object, null()) };
    object
}

fn uncond() -> *mut Object {
    let object = object();
    // SAFETY: room for it.
    unsafe { (help().myth.myth_uncond_init)(object) };
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
