//! The rows that C libraries of threads do alike, each call through the
//! library's own table.

use super::frames::{self, Entry, Threads};
use std::cell::Cell;
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null_mut;
use tsumugi_bench_ult::fork::{self, Board};
use tsumugi_bench_ult::inbox::time;
use tsumugi_bench_ult::uts::{Node, T1_NODES};

/// A C library's threads, and what they wait with. All calls are for a thread
/// of the library's.
pub trait Library: Threads + 'static {
    /// One of its mutexes.
    type Mutex: Copy;
    /// One of its condition variables.
    type Cond: Copy;

    /// The library, which was loaded first.
    fn get() -> &'static Self;

    /// Lets others run.
    fn yield_now(&self);

    /// A mutex, for as long as the process.
    fn mutex(&self) -> Self::Mutex;

    /// Takes it.
    fn lock(&self, mutex: Self::Mutex);

    /// Gives it back; by its holder.
    fn unlock(&self, mutex: Self::Mutex);

    /// A condition variable, for as long as the process.
    fn cond(&self) -> Self::Cond;

    /// Waits for a signal; by the mutex's holder.
    fn wait(&self, cond: Self::Cond, mutex: Self::Mutex);

    /// Wakes one that waits.
    fn signal(&self, cond: Self::Cond);

    /// The row of two threads that wake each other, `rounds` times.
    fn park_same(&self, rounds: u64) -> Option<f64>;
}

/// A batch of a row.
pub fn batch<L: Library>(row: &str, tree: Node) -> Option<f64> {
    match row {
        "yield2" => time(20_000, || crowd::<L>(2, 10_000)),
        "yield1000" => time(50_000, || crowd::<L>(1000, 50)),
        "create_join" => time(5_000, || {
            for _ in 0..5_000 {
                L::join(L::create(nothing, null_mut()));
            }
        }),
        "fib" | "fib_no_inline" => time(fork::fib_children(fork::FIB), || {
            black_box(frames::fib::<L>(black_box(fork::FIB)));
        }),
        "park_same" => L::get().park_same(5_000),
        "mutex" => {
            let library = L::get();
            let mutex = library.mutex();
            time(10_000, || {
                for _ in 0..10_000 {
                    library.lock(mutex);
                    library.unlock(mutex);
                }
            })
        }
        "condvar" => condvar::<L>(2_000),
        "uts" => time(T1_NODES, || assert_eq!(frames::tree::<L>(tree), T1_NODES)),
        "nqueens" => time(fork::QUEENS_CHILDREN, || {
            assert_eq!(frames::queens::<L>(Board::new(fork::QUEENS)), fork::QUEENS_WAYS);
        }),
        _ => None,
    }
}

extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    null_mut()
}

/// Threads that let each other run, `times` times each.
fn crowd<L: Library>(count: usize, mut times: usize) {
    let arg = (&raw mut times).cast();
    let all: Vec<_> = (0..count).map(|_| L::create(yielder::<L>, arg)).collect();
    all.into_iter().for_each(L::join);
}

extern "C" fn yielder<L: Library>(times: *mut c_void) -> *mut c_void {
    let library = L::get();
    // SAFETY: a number that nobody writes meanwhile.
    for _ in 0..unsafe { *times.cast::<usize>() } {
        library.yield_now();
    }
    null_mut()
}

/// Two threads that hand a turn over.
struct Turn<L: Library> {
    mutex: L::Mutex,
    cond: L::Cond,
    turn: Cell<u64>,
    rounds: u64,
}

fn condvar<L: Library>(rounds: u64) -> Option<f64> {
    let (mutex, cond) = (L::get().mutex(), L::get().cond());
    let mut turn = Turn::<L> { mutex, cond, turn: Cell::new(0), rounds };
    let turn = &raw mut turn;
    let odd: Entry = odd::<L>;
    time(2 * rounds, || {
        let other = L::create(odd, turn.cast());
        play(turn, 0);
        L::join(other);
    })
}

extern "C" fn odd<L: Library>(turn: *mut c_void) -> *mut c_void {
    play(turn.cast::<Turn<L>>(), 1);
    null_mut()
}

fn play<L: Library>(turn: *mut Turn<L>, side: u64) {
    let library = L::get();
    // SAFETY: it is there until both have ended; the turn is read and written
    // under the mutex.
    let Turn { mutex, cond, turn, rounds } = unsafe { &*turn };
    for _ in 0..*rounds {
        library.lock(*mutex);
        while turn.get() % 2 != side {
            library.wait(*cond, *mutex);
        }
        turn.set(turn.get() + 1);
        library.signal(*cond);
        library.unlock(*mutex);
    }
}
