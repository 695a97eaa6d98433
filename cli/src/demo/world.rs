//! The calls that the search makes: ranks as threads of this process.
//!
//! Every rank has its part of each shared array; a [`Place`] names an element
//! of any rank's part.

use std::marker::PhantomData;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use tsumugi_core::mem::Word;
use tsumugi_core::sync::{AtomicU64, Ordering};

/// What one rank sees of the job.
#[derive(Debug)]
pub struct World {
    rank: u32,
    node: Arc<Node>,
    shared: Mutex<usize>,
}

#[derive(Debug)]
struct Node {
    size: u32,
    barrier: Barrier,
    sum: AtomicU64,
    parts: Mutex<Vec<Parts>>,
}

type Parts = Arc<Vec<Vec<AtomicU64>>>;

/// An array with as many elements at every rank.
#[derive(Debug)]
pub struct Shared<T> {
    parts: Parts,
    of: PhantomData<T>,
}

/// An element of a rank's part of a shared array.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a, T> {
    part: &'a [AtomicU64],
    /// Whose part.
    pub rank: u32,
    index: usize,
    of: PhantomData<T>,
}

impl<T: Word> Shared<T> {
    /// Element `index` of `rank`'s part.
    pub fn at(&self, rank: u32, index: u64) -> Place<'_, T> {
        Place { part: &self.parts[rank as usize], rank, index: index as usize, of: PhantomData }
    }
}

/// What a call may answer.
pub type Outcome<T> = Result<T, tsumugi_core::mem::AddrError>;

impl World {
    /// Runs `body` on `size` ranks; the results by rank.
    pub fn run<R: Send>(size: u32, body: impl Fn(World) -> R + Sync) -> Vec<R> {
        let node = Arc::new(Node {
            size,
            barrier: Barrier::new(size as usize),
            sum: AtomicU64::new(0),
            parts: Mutex::new(Vec::new()),
        });
        let world = |rank| World { rank, node: node.clone(), shared: Mutex::new(0) };
        thread::scope(|scope| {
            let body = &body;
            let ranks: Vec<_> = (0..size)
                .map(|rank| {
                    let world = world(rank);
                    scope.spawn(move || body(world))
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
        })
    }

    /// Which rank this is.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> u32 {
        self.node.size
    }

    /// `len` zeroes at every rank. All ranks call it, in the same order.
    pub fn share<T: Word>(&self, len: u64) -> Outcome<Shared<T>> {
        let mut index = self.shared.lock().expect("nobody panics");
        let parts = {
            let mut all = self.node.parts.lock().expect("nobody panics");
            if all.len() == *index {
                let part = || (0..len).map(|_| AtomicU64::new(0)).collect();
                all.push(Arc::new((0..self.node.size).map(|_| part()).collect()));
            }
            all[*index].clone()
        };
        *index += 1;
        Ok(Shared { parts, of: PhantomData })
    }

    /// The element.
    pub fn get<T: Word>(&self, from: Place<'_, T>) -> Outcome<T> {
        Ok(T::from_bits(from.part[from.index].load(Ordering::Relaxed)))
    }

    /// The elements from there on.
    pub fn get_slice<T: Word>(&self, from: Place<'_, T>, into: &mut [T]) -> Outcome<()> {
        for (index, into) in into.iter_mut().enumerate() {
            *into = T::from_bits(from.part[from.index + index].load(Ordering::Relaxed));
        }
        Ok(())
    }

    /// Stores the elements from there on.
    pub fn put_slice<T: Word>(&self, to: Place<'_, T>, from: &[T]) -> Outcome<()> {
        for (index, from) in from.iter().enumerate() {
            to.part[to.index + index].store(from.to_bits(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Stores `new` if the element is `expected`; returns what it was.
    pub fn compare_swap<T: Word>(&self, at: Place<'_, T>, expected: T, new: T) -> Outcome<T> {
        let (expected, new) = (expected.to_bits(), new.to_bits());
        let order = Ordering::Relaxed;
        let old = at.part[at.index].compare_exchange(expected, new, order, order);
        Ok(T::from_bits(old.unwrap_or_else(|old| old)))
    }

    /// Adds to the element; returns what it was.
    pub fn fetch_add(&self, at: Place<'_, u64>, value: u64) -> Outcome<u64> {
        Ok(at.part[at.index].fetch_add(value, Ordering::Relaxed))
    }

    /// Waits for all ranks.
    pub fn barrier(&self) -> Outcome<()> {
        self.node.barrier.wait();
        Ok(())
    }

    /// The sum over all ranks.
    pub fn sum(&self, value: u64) -> Outcome<u64> {
        self.node.sum.fetch_add(value, Ordering::Relaxed);
        self.node.barrier.wait();
        let sum = self.node.sum.load(Ordering::Relaxed);
        if self.node.barrier.wait().is_leader() {
            self.node.sum.store(0, Ordering::Relaxed);
        }
        self.node.barrier.wait();
        Ok(sum)
    }

    /// Runs `body` on `count` threads of this rank and waits for all.
    pub fn ults(&self, count: u32, body: impl Fn() + Sync) {
        thread::scope(|scope| {
            for _ in 0..count {
                let thread = thread::Builder::new().stack_size(64 << 10);
                thread.spawn_scoped(scope, &body).expect("a thread can be started");
            }
        });
    }

    /// Lets other threads of this rank run.
    pub fn yield_now(&self) {
        thread::yield_now();
    }
}
