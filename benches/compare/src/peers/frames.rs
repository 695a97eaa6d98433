//! Fork and join as one writes it in C: what a child is given and returns lies
//! in its parent's frame.

use std::ffi::c_void;
use std::ptr::null_mut;
use tsumugi_bench_ult::fork::Board;
use tsumugi_bench_ult::uts::Node;

/// What a thread runs.
pub type Entry = extern "C" fn(*mut c_void) -> *mut c_void;

/// A C library's threads.
pub trait Threads {
    /// One of them.
    type Handle: Copy;

    /// Starts `entry(arg)`.
    fn create(entry: Entry, arg: *mut c_void) -> Self::Handle;

    /// Waits for its end.
    fn join(handle: Self::Handle);
}

/// Work that children share.
trait Work: Copy {
    fn run<T: Threads>(self) -> u64;
}

#[derive(Clone, Copy)]
struct Frame<W> {
    work: W,
    result: u64,
}

extern "C" fn child<T: Threads, W: Work>(frame: *mut c_void) -> *mut c_void {
    // SAFETY: the parent's frame, which it does not touch until we have ended.
    let frame = unsafe { &mut *frame.cast::<Frame<W>>() };
    frame.result = frame.work.run::<T>();
    null_mut()
}

fn start<T: Threads, W: Work>(frame: *mut Frame<W>) -> T::Handle {
    T::create(child::<T, W>, frame.cast())
}

#[derive(Clone, Copy)]
struct Fib(u64);

impl Work for Fib {
    fn run<T: Threads>(self) -> u64 {
        let Self(n) = self;
        if n < 2 {
            return n;
        }
        let mut left = Frame { work: Self(n - 1), result: 0 };
        let at = &raw mut left;
        let handle = start::<T, Self>(at);
        let right = Self(n - 2).run::<T>();
        T::join(handle);
        // SAFETY: the child has ended.
        unsafe { (*at).result + right }
    }
}

impl Work for Node {
    fn run<T: Threads>(self) -> u64 {
        1 + all::<T, Self>((0..self.children()).map(|number| self.child(number)))
    }
}

impl Work for Board {
    fn run<T: Threads>(self) -> u64 {
        if self.is_full() { 1 } else { all::<T, Self>(self.next()) }
    }
}

/// The sum of what children with this work return.
fn all<T: Threads, W: Work>(work: impl Iterator<Item = W>) -> u64 {
    let mut frames: Vec<_> = work.map(|work| Frame { work, result: 0 }).collect();
    let at = frames.as_mut_ptr();
    // SAFETY: within the vector, which stays where it is.
    let handles: Vec<_> = (0..frames.len()).map(|n| start::<T, W>(unsafe { at.add(n) })).collect();
    handles.into_iter().for_each(T::join);
    // SAFETY: the children have ended.
    (0..frames.len()).map(|n| unsafe { (*at.add(n)).result }).sum()
}

/// Fibonacci's `n`th number, a child per call.
pub fn fib<T: Threads>(n: u64) -> u64 {
    Fib(n).run::<T>()
}

/// The nodes below and with `node`, a child per node.
pub fn tree<T: Threads>(node: Node) -> u64 {
    node.run::<T>()
}

/// In how many ways the queens stand, a child per queen placed.
pub fn queens<T: Threads>(board: Board) -> u64 {
    board.run::<T>()
}
