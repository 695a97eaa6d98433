//! Argobots: pools that steal, and children that run first.

#![expect(non_snake_case, reason = "the names of the library")]

use super::frames::{Entry, Threads};
use super::library::functions;
use super::rows::{Library, batch};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Instant;
use tsumugi_bench_ult::apart::{middle_wake, pause, wait_for};
use tsumugi_bench_ult::asleep::Growth;
use tsumugi_bench_ult::inbox::time;
use tsumugi_bench_ult::{Elsewhere, Inbox, System};
use tsumugi_core::sync::{AtomicU64, CachePadded, Ordering};

pub const SYSTEM: System = System { name: "Argobots", serve, elsewhere: ELSEWHERE };

functions! {
    Abt, c"libabt.so":
    ABT_init(c_int, *mut *mut c_char) -> c_int;
    ABT_xstream_self(*mut Handle) -> c_int;
    ABT_xstream_set_main_sched_basic(Handle, c_int, c_int, *mut Handle) -> c_int;
    ABT_xstream_create_basic(c_int, c_int, *mut Handle, Handle, *mut Handle) -> c_int;
    ABT_pool_create_basic(c_int, c_int, c_int, *mut Handle) -> c_int;
    ABT_thread_create(Handle, Entry, *mut c_void, Handle, *mut Handle) -> c_int;
    ABT_thread_create_to(Handle, Entry, *mut c_void, Handle, *mut Handle) -> c_int;
    ABT_thread_free(*mut Handle) -> c_int;
    ABT_thread_resume(Handle) -> c_int;
    ABT_self_get_thread(*mut Handle) -> c_int;
    ABT_self_get_last_pool(*mut Handle) -> c_int;
    ABT_self_suspend() -> c_int;
    ABT_self_yield() -> c_int;
    ABT_mutex_create(*mut Handle) -> c_int;
    ABT_mutex_lock(Handle) -> c_int;
    ABT_mutex_unlock(Handle) -> c_int;
    ABT_cond_create(*mut Handle) -> c_int;
    ABT_cond_wait(Handle, Handle) -> c_int;
    ABT_cond_signal(Handle) -> c_int;
    ABT_eventual_create(c_int, *mut Handle) -> c_int;
    ABT_eventual_wait(Handle, *mut *mut c_void) -> c_int;
    ABT_eventual_set(Handle, *mut c_void, c_int) -> c_int;
    ABT_eventual_reset(Handle) -> c_int;
}

/// Of any of the library's objects.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Handle(usize);

static ABT: OnceLock<Abt> = OnceLock::new();

/// Panics with the name of the call that failed.
fn checked(call: &str, code: c_int) {
    assert_eq!(code, 0, "the code of {call}");
}

/// What a call leaves where it is told to.
fn made(call: &str, make: impl FnOnce(*mut Handle) -> c_int) -> Handle {
    let mut handle = Handle(0);
    checked(call, make(&mut handle));
    handle
}

impl Threads for Abt {
    type Handle = Handle;

    #[inline(always)]
    fn create(entry: Entry, arg: *mut c_void) -> Handle {
        let (abt, mut pool, mut handle) = (Abt::get(), Handle(0), Handle(0));
        // SAFETY: the caller is a thread of the library's; what the entry
        // returns is not looked at.
        let code = unsafe {
            (abt.ABT_self_get_last_pool)(&mut pool);
            (abt.ABT_thread_create_to)(pool, entry, arg, ATTRIBUTES_NULL, &mut handle)
        };
        checked("ABT_thread_create_to", code);
        handle
    }

    #[inline(always)]
    fn join(mut handle: Handle) {
        // SAFETY: a thread that was created and not freed yet.
        unsafe { (Abt::get().ABT_thread_free)(&mut handle) };
    }
}

impl Library for Abt {
    type Mutex = Handle;
    type Cond = Handle;

    #[inline(always)]
    fn get() -> &'static Self {
        ABT.get().expect("the library was loaded at the start")
    }

    #[inline(always)]
    fn yield_now(&self) {
        // SAFETY: a plain call on a thread of the library's.
        unsafe { (self.ABT_self_yield)() };
    }

    fn mutex(&self) -> Handle {
        // SAFETY: a plain call.
        made("ABT_mutex_create", |mutex| unsafe { (self.ABT_mutex_create)(mutex) })
    }

    #[inline(always)]
    fn lock(&self, mutex: Handle) {
        // SAFETY: created.
        unsafe { (self.ABT_mutex_lock)(mutex) };
    }

    #[inline(always)]
    fn unlock(&self, mutex: Handle) {
        // SAFETY: created, and held.
        unsafe { (self.ABT_mutex_unlock)(mutex) };
    }

    fn cond(&self) -> Handle {
        // SAFETY: a plain call.
        made("ABT_cond_create", |cond| unsafe { (self.ABT_cond_create)(cond) })
    }

    #[inline(always)]
    fn wait(&self, cond: Handle, mutex: Handle) {
        // SAFETY: both created, the mutex held.
        unsafe { (self.ABT_cond_wait)(cond, mutex) };
    }

    #[inline(always)]
    fn signal(&self, cond: Handle) {
        // SAFETY: created.
        unsafe { (self.ABT_cond_signal)(cond) };
    }

    fn park_same(&self, rounds: u64) -> Option<f64> {
        let mut pair = Pair { main: current(), rounds };
        // It runs first, until it is suspended.
        let other = Self::create(answer, (&raw mut pair).cast());
        let ns = time(2 * rounds, || {
            for _ in 0..rounds {
                // SAFETY: it is suspended, because we run and it shares our
                // stream.
                unsafe {
                    (self.ABT_thread_resume)(other);
                    (self.ABT_self_suspend)();
                }
            }
        });
        Self::join(other);
        ns
    }
}

fn serve(inbox: Inbox) {
    let abt = match Abt::load() {
        Ok(abt) => *ABT.get_or_init(|| abt),
        Err(why) => return inbox.refuse_all(&why),
    };
    let workers = inbox.workers();
    // SAFETY: set up in the order of the library's manual; whoever measures
    // pins all alike.
    let pools = unsafe {
        std::env::set_var("ABT_SET_AFFINITY", "0");
        checked("ABT_init", (abt.ABT_init)(0, null_mut()));
        let is_own = inbox.row() == "wake_spinning";
        let (pool, sched) = if is_own { (FIFO, BASIC) } else { (POOL_RANDWS, SCHED_RANDWS) };
        let pool =
            |_| made("ABT_pool_create_basic", |p| (abt.ABT_pool_create_basic)(pool, MPMC, 1, p));
        let pools: Vec<Handle> = (0..workers).map(pool).collect();
        for worker in 0..workers {
            // Its own first; then those that it steals from.
            let mut mine = pools.clone();
            mine.rotate_left(worker);
            mine.truncate(if is_own { 1 } else { workers });
            let (count, mine) = (mine.len() as c_int, mine.as_mut_ptr());
            if worker == 0 {
                let primary = made("ABT_xstream_self", |x| (abt.ABT_xstream_self)(x));
                let set = abt.ABT_xstream_set_main_sched_basic;
                checked("ABT_xstream_set_main_sched", set(primary, sched, count, mine));
            } else {
                let create = abt.ABT_xstream_create_basic;
                made("ABT_xstream_create", |x| create(sched, count, mine, CONFIG_NULL, x));
            }
        }
        pools
    };
    match inbox.row() {
        "bytes_per_ult" => inbox.serve_parts(|| asleep(inbox.sleepers())),
        "wake_spinning" => inbox.serve(|_| Some(wake_spinning(pools[1], 200))),
        _ => inbox.serve(|row| batch::<Abt>(row, inbox.tree())),
    }
}

fn current() -> Handle {
    // SAFETY: a plain call on a thread of the library's.
    made("ABT_self_get_thread", |thread| unsafe { (Abt::get().ABT_self_get_thread)(thread) })
}

/// Two threads that wake each other.
struct Pair {
    main: Handle,
    rounds: u64,
}

extern "C" fn answer(pair: *mut c_void) -> *mut c_void {
    // SAFETY: it is there until we have ended, and nobody writes to it.
    let Pair { main, rounds } = unsafe { &*pair.cast::<Pair>() };
    for _ in 0..*rounds {
        // SAFETY: main is suspended when we run.
        unsafe {
            (Abt::get().ABT_self_suspend)();
            (Abt::get().ABT_thread_resume)(*main);
        }
    }
    null_mut()
}

/// Who is woken on the other stream.
struct Sleeper {
    event: Handle,
    said: CachePadded<AtomicU64>,
    rounds: u64,
}

/// A wake of a thread on the other stream, which spins for want of work, until
/// it says so through a word.
fn wake_spinning(pool: Handle, rounds: u64) -> f64 {
    let (abt, said) = (Abt::get(), CachePadded::new(AtomicU64::new(0)));
    let mut sleeper = Sleeper { event: eventual(), said, rounds };
    let at = &raw mut sleeper;
    let create = abt.ABT_thread_create;
    // SAFETY: the sleeper is there until it has ended.
    let other = made("ABT_thread_create", |thread| unsafe {
        create(pool, wakes, at.cast(), ATTRIBUTES_NULL, thread)
    });
    // SAFETY: shared with the other one only.
    let sleeper = unsafe { &*at };
    let mut wakes = Vec::with_capacity(rounds as usize);
    for round in 1..=rounds {
        pause();
        let start = Instant::now();
        // SAFETY: created.
        unsafe { (abt.ABT_eventual_set)(sleeper.event, null_mut(), 0) };
        wait_for(&sleeper.said, round);
        wakes.push(start.elapsed().as_nanos() as f64);
    }
    Abt::join(other);
    middle_wake(wakes)
}

extern "C" fn wakes(sleeper: *mut c_void) -> *mut c_void {
    // SAFETY: it is there until we have ended.
    let Sleeper { event, said, rounds } = unsafe { &*sleeper.cast::<Sleeper>() };
    for round in 1..=*rounds {
        // SAFETY: created; it is set again only after we have said so.
        unsafe {
            (Abt::get().ABT_eventual_wait)(*event, null_mut());
            (Abt::get().ABT_eventual_reset)(*event);
        }
        // Release: pairs with the Acquire of the waker.
        said.store(round, Ordering::Release);
    }
    null_mut()
}

fn asleep(threads: usize) -> [f64; 3] {
    let mut event = eventual();
    let at = &raw mut event;
    let mut all = Vec::with_capacity(threads);
    let growth = Growth::begin();
    // Each runs first, until it sleeps.
    (0..threads).for_each(|_| all.push(Abt::create(sleep, at.cast())));
    let asleep = growth.asleep(threads);
    // SAFETY: created.
    unsafe { (Abt::get().ABT_eventual_set)(*at, null_mut(), 0) };
    all.into_iter().for_each(Abt::join);
    asleep.woken()
}

extern "C" fn sleep(event: *mut c_void) -> *mut c_void {
    // SAFETY: it is there until all have ended, and nobody writes to it.
    unsafe { (Abt::get().ABT_eventual_wait)(*event.cast::<Handle>(), null_mut()) };
    null_mut()
}

fn eventual() -> Handle {
    // SAFETY: a plain call.
    made("ABT_eventual_create", |event| unsafe { (Abt::get().ABT_eventual_create)(0, event) })
}

// The numbers of abt.h 1.2, in a build whose null handles are not NULL, which
// is the default.
const FIFO: c_int = 0;
const POOL_RANDWS: c_int = 2;
const MPMC: c_int = 4;
const BASIC: c_int = 1;
const SCHED_RANDWS: c_int = 3;
const CONFIG_NULL: Handle = Handle(0x04);
const ATTRIBUTES_NULL: Handle = Handle(0x09);

const fn elsewhere(row: &'static str, workers: usize, min: f64) -> Elsewhere {
    Elsewhere { row, workers, min }
}

/// bffdf569 at -O3 on an EPYC of 2 virtual CPUs, which resumed and suspended
/// a bare context in 2.2 ns.
const ELSEWHERE: &[Elsewhere] = &[
    elsewhere("yield2", 1, 21.8),
    elsewhere("yield1000", 1, 25.7),
    elsewhere("create_join", 1, 36.5),
    elsewhere("fib", 1, 45.5),
    elsewhere("fib", 2, 24.4),
    elsewhere("fib_no_inline", 1, 45.5),
    elsewhere("park_same", 1, 26.2),
    elsewhere("wake_spinning", 2, 200.0),
    elsewhere("mutex", 1, 4.4),
    elsewhere("condvar", 1, 34.6),
    elsewhere("bytes_per_ult", 1, 4516.0),
];
