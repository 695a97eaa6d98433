//! The data path allocates nothing after start.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tsumugi::deferred::Begin;
use tsumugi::group::Max;
use tsumugi::{Config, Deferred, Error, Path, Rank, Runtime, Signal, Status, Until};
use tsumugi_core::sync::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// The allocations of threads that are not ranks.
static OTHERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread is a rank's; the test harness has a thread of its own.
    static IS_RANK: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_RANK.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        } else {
            OTHERS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// One test for all paths, because the counters are those of the process.
#[test]
fn operations_allocate_nothing_on_any_path() {
    for (path, rounds) in
        [(Path::Direct, 200_000), (Path::Delegate, 50_000), (Path::Offload, 4_000)]
    {
        // Each rank has one worker, which is the rank's thread.
        let config = Config::default().workers(1).path(path);
        let job = config.run_ranks(2, |rt| operate(rt, path, rounds));
        job.map(|_: Vec<()>| ()).unwrap_or_else(|error: Error| panic!("{path:?}: {error}"));
    }
    Config::default().workers(1).run_ranks(2, collect).unwrap();
}

fn collect(rt: &Runtime) -> Result<(), Error> {
    IS_RANK.with(|is_rank| is_rank.set(true));
    let (world, mut before) = (rt.world(), [0; 2]);
    let (mut short, mut long) = ([1u64; 4], [1u64; 1000]);
    let mut all = [0u64; 8];
    for round in 0..=2000 {
        world.barrier()?;
        for values in [&mut short[..], &mut long] {
            world.broadcast(values, round % 2)?;
            world.allreduce(values, Max)?;
            world.reduce(values, 1, Max)?;
            world.scan(values, Max)?;
        }
        world.allgather_into(&short, &mut all)?;
        world.alltoall_into(&all.clone(), &mut all)?;
        if round == 0 {
            // The first round is part of the start.
            rt.barrier()?;
            before = [&ALLOCATIONS, &OTHERS].map(|count| count.load(Ordering::Relaxed));
            rt.barrier()?;
        }
    }
    rt.barrier()?;
    let after = [&ALLOCATIONS, &OTHERS].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(after[0], before[0], "allocations in collectives");
    assert!(after[1] - before[1] < 100, "{} allocations beside collectives", after[1] - before[1]);
    rt.barrier()?;
    Ok(())
}

fn operate(rt: &Runtime, path: Path, rounds: usize) -> Result<(), Error> {
    IS_RANK.with(|is_rank| is_rank.set(true));
    let words = rt.share::<u64>(4096)?;
    let buf = &mut [0u64; 64];
    rt.barrier()?;
    if rt.rank() == Rank(0) {
        let counts = || [&ALLOCATIONS, &OTHERS].map(|count| count.load(Ordering::Relaxed));
        let mut before = counts();
        for round in 0..=rounds {
            let at = words.at(Rank(1), round & 4000);
            rt.put(at, 1)?;
            rt.get(at)?;
            rt.fetch_add(at, 1)?;
            rt.get_slice(at, buf)?;
            tsumugi::ult::yield_now();
            assert!(rt.get(words.at(Rank(1), 4096)).is_err());
            if round == 0 {
                // The first round is part of the start.
                before = counts();
            }
        }
        let after = counts();
        let operations = 5 * rounds;
        assert_eq!(after[0] - before[0], 0, "allocations in {operations} operations, {path:?}");
        // These are the allocations of a communication thread and of the test harness.
        let others = after[1] - before[1];
        assert!(others < 100, "{others} allocations beside {operations} operations, {path:?}");
    }
    rt.barrier()?;
    // The callbacks of a communication thread are not this thread's.
    if path != Path::Offload {
        values(rt, path)?;
    }
    if path == Path::Direct { exchange(rt, 1000) } else { Ok(()) }
}

/// Every kind of operation as a value, in every way, on both ranks at the same time.
fn values(rt: &Runtime, path: Path) -> Result<(), Error> {
    let (ops, comm, peer) = (rt.ops(), rt.comm(), Rank(1 - rt.rank().0));
    let (words, array) = (rt.share::<u64>(64)?, rt.array::<u64>(64)?);
    let (at, bell) = (words.at(peer, 0), words.at(rt.rank(), 1));
    let mut buf = Some(rt.buffer::<u64>(64)?);
    let mut bytes = Some((rt.buffer::<u8>(5000)?, rt.buffer::<u8>(5000)?));
    for (number, way) in [Use::Wait, Use::Await, Use::Try, Use::Then].into_iter().enumerate() {
        let mut before = 0;
        for round in 0..=65 {
            way.of(ops.put(at, 5)).expect("a put");
            way.of(ops.get(at)).expect("a get");
            way.of(ops.fetch_add(at, 1)).expect("an atomic");
            way.of(ops.compare_swap(at, 5, 6)).expect("an atomic");
            way.of(ops.add(at, 1)).expect("an atomic");
            let got = way.of(ops.get_buffer(words.at(peer, 0), buf.take().expect("a buffer")));
            let put =
                ops.put_signal(words.at(peer, 2), got.buf, words.at(peer, 60), Signal::Add(1));
            buf = Some(way.of(put).buf);
            way.of(ops.signal(words.at(peer, 1), Signal::Add(1))).expect("a signal");
            let wanted = number as u64 * 66 + round + 1;
            way.of(ops.wait_until(bell, Until::AtLeast(wanted))).expect("a wait");
            for index in [0, 63] {
                way.of(array.ops().put(index, round)).expect("a put");
                way.of(array.ops().get(index)).expect("a get");
            }
            let (sent, room) = bytes.take().expect("buffers");
            let room = comm.irecv(peer, 2, room).expect("a receive");
            let sent = way.of(comm.ops().send(peer, 2, sent)).expect("a send");
            let (_, room) = room.wait().expect("a message");
            comm.send(peer, 3, &[1u8; 8])?;
            let (_, room) = way.of(comm.ops().recv(peer, 3, room)).expect("a message");
            bytes = Some((sent, room));
            way.of(ops.barrier())?;
            if round == 15 {
                // The first rounds make the tables, and the descriptors of ULTs.
                before = ALLOCATIONS.load(Ordering::Relaxed);
                rt.barrier()?;
            }
        }
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(allocations, 0, "allocations in 50 rounds, {path:?}, {way:?}");
        rt.barrier()?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Use {
    Wait,
    Await,
    Try,
    Then,
}

impl Use {
    /// The result of the operation, used in this way.
    fn of<C: Begin<Output: Send + 'static>>(self, operation: Deferred<C>) -> C::Output {
        match self {
            Self::Wait => operation.wait(),
            Self::Await => {
                let mut future = pin!(operation.into_future());
                let mut context = Context::from_waker(Waker::noop());
                loop {
                    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                        return output;
                    }
                    tsumugi::ult::yield_now();
                }
            }
            Self::Try => match operation.try_begin() {
                Ok(Status::Done(output)) => output,
                Ok(Status::Pending(mut in_flight)) => loop {
                    match in_flight.try_finish() {
                        Ok(output) => return output,
                        Err(back) => in_flight = back,
                    }
                    tsumugi::ult::yield_now();
                },
                Err(busy) => panic!("{busy}"),
            },
            Self::Then => {
                let mut place = (None, AtomicU64::new(0));
                let at = &raw mut place;
                let to = Place(at);
                let then = move |output| {
                    let to = to;
                    // SAFETY: the place is written once, before the flag, which the waiter
                    // reads first.
                    unsafe {
                        (*to.0).0 = Some(output);
                        // Release: pairs with the Acquire below.
                        (*to.0).1.store(1, Ordering::Release);
                    }
                };
                assert!(operation.then(then).is_ok(), "there is room");
                // SAFETY: the place is alive; the flag is an atomic.
                let flag = unsafe { &(*at).1 };
                // Acquire: pairs with the Release above.
                while flag.load(Ordering::Acquire) == 0 {
                    tsumugi::ult::yield_now();
                }
                place.0.expect("the callback has run")
            }
        }
    }
}

/// A place for a result, and its flag.
struct Place<T>(*mut (Option<T>, AtomicU64));

// SAFETY: only the callback uses it, on one thread, and the result is `Send`.
unsafe impl<T: Send> Send for Place<T> {}

/// Messages of each kind, in both directions.
fn exchange(rt: &Runtime, rounds: usize) -> Result<(), Error> {
    let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
    let (sent, mut received) = (rt.buffer::<u8>(20_000)?, rt.buffer::<u8>(20_000)?);
    rt.barrier()?;
    let mut before = 0;
    for round in 0..=rounds {
        for bytes in [8, 500, 20_000] {
            if round % 100 == 0 || bytes < 20_000 {
                let into = &mut received[..bytes];
                comm.send_recv(peer, 1, &sent[..bytes], peer, 1, into)?;
            }
        }
        comm.scope(|scope| {
            for into in received.chunks_mut(100).take(8) {
                scope.irecv(peer, 2, into)?;
            }
            for values in sent.chunks(100).take(8) {
                scope.isend(peer, 2, values)?;
            }
            scope.wait_all()
        })?;
        if round == 0 {
            before = ALLOCATIONS.load(Ordering::Relaxed);
        }
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(allocations, 0, "allocations in {rounds} exchanges");
    rt.barrier()
}
