//! Counts allocations of ranks, and a program of all operations as values, in every way,
//! which allocates nothing once it has run for some rounds.

use super::api;
use api::array::ArrayOptions;
use api::deferred::Begin;
use api::global::Change;
use api::group::Sum;
use api::{Deferred, Error, Rank, Runtime, Signal, Status, Until, ult};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tsumugi_core::op::Kind;
use tsumugi_core::sync::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// The allocations of threads that are not ranks.
static OTHERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread is a rank's; the test harness has a thread of its own.
    static IS_RANK: Cell<bool> = const { Cell::new(false) };
}

/// Counts an allocation. Called by the allocator.
pub fn note() {
    let is_rank = IS_RANK.try_with(Cell::get).unwrap_or(false);
    let count = if is_rank { &ALLOCATIONS } else { &OTHERS };
    count.fetch_add(1, Ordering::Relaxed);
}

/// From now on the allocations of this thread are those of a rank.
pub fn count_this_thread() {
    IS_RANK.with(|is_rank| is_rank.set(true));
}

/// The allocations of ranks, and those of other threads.
pub fn counts() -> [u64; 2] {
    [&ALLOCATIONS, &OTHERS].map(|count| count.load(Ordering::Relaxed))
}

/// Every kind of operation as a value, in every way, on the first two ranks at the same
/// time: each accesses the memory of the other.
pub fn values(rt: &Runtime) -> Result<(), Error> {
    let mut parts = Parts::new(rt)?;
    let mut round = 0;
    for way in [Use::Wait, Use::Await, Use::Try, Use::Then] {
        // The first rounds make the tables, and the descriptors of ULTs.
        for _ in 0..WARM_ROUNDS {
            round += 1;
            parts.play(rt, way, round)?;
        }
        rt.barrier()?;
        // Each kind by itself, so that a failure says which one allocates.
        for kind in Parts::KINDS {
            let what = format!("in {ROUNDS} rounds of {}, {way:?}", kind.0);
            let mut counted = Vec::new();
            // A table may grow if more has come at once than ever before; that ends.
            while counted.len() < TRIES && counted.last() != Some(&0) {
                let before = counts();
                for _ in 0..ROUNDS {
                    round += 1;
                    (kind.1)(&mut parts, rt, way, round)?;
                }
                let after = counts();
                rt.barrier()?;
                let others = after[1] - before[1];
                assert!(others < 100, "{others} allocations of other threads {what}");
                counted.push(rt.allgather(after[0] - before[0])?.iter().sum::<u64>());
            }
            assert_eq!(counted.last(), Some(&0), "{counted:?} allocations {what}");
        }
    }
    Ok(())
}

/// What the operations use.
struct Parts {
    peer: Rank,
    words: api::Shared<u64>,
    array: api::GlobalArray<u64>,
    global: api::Global,
    far: api::GlobalPtr<u64>,
    near: api::GlobalPtr<u64>,
    group: api::Group,
    bells: u64,
    buf: Option<api::Buffer<u64>>,
    bytes: Option<(api::Buffer<u8>, api::Buffer<u8>)>,
    vectors: Option<(Vec<u64>, Vec<u64>)>,
    long: Option<api::Buffer<u64>>,
}

/// The operations of one kind, once.
type Play = fn(&mut Parts, &Runtime, Use, u64) -> Result<(), Error>;

impl Parts {
    const KINDS: [(&'static str, Play); 8] = [
        ("words", Self::words),
        ("buffers and signals", Self::buffers),
        ("arrays", Self::array),
        ("messages", Self::messages),
        ("global memory", Self::global),
        ("barriers", Self::barrier),
        ("collectives in place", Self::in_place),
        ("collectives of blocks", Self::blocks),
    ];

    fn new(rt: &Runtime) -> Result<Self, Error> {
        let peer = Rank(rt.rank().0 ^ 1);
        let global = rt.global()?;
        let exposed = global.expose::<u64>(8)?;
        let all = rt.allgather(exposed.at(0).addr().to_bits())?;
        let near = exposed.at(0);
        std::mem::forget(exposed);
        let far = global.pointer(all[peer.0 as usize]);
        let options = ArrayOptions::new().page_len(8);
        let room = || vec![0; 64];
        Ok(Self {
            peer,
            words: rt.share(64)?,
            array: options.create(rt, 64)?,
            global,
            far,
            near,
            group: rt.world(),
            bells: 0,
            buf: Some(rt.buffer(64)?),
            bytes: Some((rt.buffer(5000)?, rt.buffer(5000)?)),
            vectors: Some((room(), room())),
            long: Some(rt.buffer(5000)?),
        })
    }

    fn play(&mut self, rt: &Runtime, way: Use, round: u64) -> Result<(), Error> {
        Self::KINDS.iter().try_for_each(|(_, kind)| kind(self, rt, way, round))
    }

    fn words(&mut self, rt: &Runtime, way: Use, round: u64) -> Result<(), Error> {
        let (ops, at) = (rt.ops(), self.words.at(self.peer, 0));
        way.of(ops.put(at, round))?;
        way.of(ops.get(at))?;
        way.of(ops.fetch_add(at, 1))?;
        way.of(ops.fetch_and(at, 7))?;
        way.of(ops.fetch_or(at, 8))?;
        way.of(ops.fetch_xor(at, 9))?;
        way.of(ops.swap(at, 5))?;
        way.of(ops.compare_swap(at, 5, 6))?;
        way.of(ops.add(at, 1))?;
        way.of(ops.and(at, 7))?;
        way.of(ops.or(at, 8))?;
        way.of(ops.xor(at, 9))?;
        Ok(())
    }

    fn buffers(&mut self, rt: &Runtime, way: Use, _: u64) -> Result<(), Error> {
        let (ops, words, peer) = (rt.ops(), &self.words, self.peer);
        let got = way.of(ops.get_buffer(words.at(peer, 0), self.buf.take().expect("a buffer")));
        got.result?;
        let put = ops.put_signal(words.at(peer, 0), got.buf, words.at(peer, 60), Signal::Add(1));
        let put = way.of(put);
        put.result?;
        let put = way.of(ops.put_buffer(words.at(peer, 0), put.buf));
        put.result?;
        self.buf = Some(put.buf);
        rt.barrier()?;
        // The buffers have overwritten the bell.
        rt.put(words.at(rt.rank(), 61), self.bells)?;
        rt.barrier()?;
        way.of(ops.signal(words.at(peer, 61), Signal::Add(1)))?;
        self.bells += 1;
        way.of(ops.wait_until(words.at(rt.rank(), 61), Until::AtLeast(self.bells)))?;
        rt.barrier()
    }

    fn array(&mut self, _: &Runtime, way: Use, round: u64) -> Result<(), Error> {
        for index in [0, 63] {
            let ops = || self.array.ops();
            way.of(ops().put(index, round))?;
            way.of(ops().get(index))?;
            way.of(ops().fetch_add(index, 1))?;
            way.of(ops().fetch_and(index, 7))?;
            way.of(ops().fetch_or(index, 8))?;
            way.of(ops().fetch_xor(index, 9))?;
            way.of(ops().swap(index, 5))?;
            way.of(ops().compare_swap(index, 5, 6))?;
        }
        Ok(())
    }

    fn messages(&mut self, rt: &Runtime, way: Use, _: u64) -> Result<(), Error> {
        let (comm, peer) = (rt.comm(), self.peer);
        let (sent, room) = self.bytes.take().expect("buffers");
        let room = comm.irecv(peer, 2, room)?;
        let sent = way.of(comm.ops().send(peer, 2, sent))?;
        let (_, room) = room.wait()?;
        comm.send(peer, 3, &[1u8; 8])?;
        let (_, room) = way.of(comm.ops().recv(peer, 3, room))?;
        self.bytes = Some((sent, room));
        Ok(())
    }

    fn global(&mut self, _: &Runtime, way: Use, round: u64) -> Result<(), Error> {
        let (ops, far) = (self.global.ops(), self.far);
        way.of(ops.put(far, round))?;
        way.of(ops.get(far))?;
        way.of(ops.fetch_add(far, 1))?;
        way.of(ops.fetch_and(far, 7))?;
        way.of(ops.fetch_or(far, 8))?;
        way.of(ops.fetch_xor(far, 9))?;
        way.of(ops.swap(far, 5))?;
        way.of(ops.compare_swap(far, 5, 6))?;
        way.of(ops.add(far, 1))?;
        way.of(ops.and(far, 7))?;
        way.of(ops.or(far, 8))?;
        way.of(ops.xor(far, 9))?;
        way.of(ops.copy(self.near, far, 4))?;
        way.of(ops.request(Change::atomic(Kind::FetchAdd, far.addr(), 2u64)))?;
        Ok(())
    }

    fn barrier(&mut self, rt: &Runtime, way: Use, _: u64) -> Result<(), Error> {
        way.of(rt.ops().barrier())?;
        way.of(self.group.ops().barrier())
    }

    fn in_place(&mut self, _: &Runtime, way: Use, _: u64) -> Result<(), Error> {
        let ops = self.group.ops();
        let (one, other) = self.vectors.take().expect("vectors");
        let one = way.of(ops.broadcast(one, 1))?;
        let one = way.of(ops.reduce(one, 0, Sum))?;
        let one = way.of(ops.allreduce(one, |a: u64, b: u64| a ^ b))?;
        let one = way.of(ops.scan(one, Sum))?;
        let one = way.of(ops.exscan(one, Sum))?;
        self.vectors = Some((one, other));
        let long = way.of(ops.allreduce(self.long.take().expect("a buffer"), Sum))?;
        self.long = Some(long);
        Ok(())
    }

    fn blocks(&mut self, _: &Runtime, way: Use, _: u64) -> Result<(), Error> {
        let (ops, size) = (self.group.ops(), self.group.size() as usize);
        let (mut one, mut all) = self.vectors.take().expect("vectors");
        let whole = 64 / size * size;
        one.resize(64 / size, 1);
        all.resize(whole, 1);
        let (one, all) = way.of(ops.gather(one, all, 0))?;
        let (all, one) = way.of(ops.scatter(all, one, 0))?;
        let (one, all) = way.of(ops.allgather(one, all))?;
        let (all, one) = way.of(ops.reduce_scatter(all, one, Sum))?;
        let mut counts = [0; 8];
        counts[..size].fill(64 / size);
        let counts = &counts[..size];
        let (one, all) = way.of(ops.gather_v(one, all, counts, 0))?;
        let (all, one) = way.of(ops.scatter_v(all, one, counts, 0))?;
        let (one, all) = way.of(ops.allgather_v(one, all, counts))?;
        let (all, mut one) = way.of(ops.reduce_scatter_v(all, one, counts, Sum))?;
        one.resize(whole, 1);
        let (all, one) = way.of(ops.alltoall(all, one))?;
        let (all, one) = way.of(ops.alltoall_v(all, one, counts, counts))?;
        self.vectors = Some((one, all));
        Ok(())
    }
}

/// Rounds of all kinds before allocations are counted.
const WARM_ROUNDS: usize = 8;
/// Rounds of each kind in which they are counted.
const ROUNDS: usize = 20;
/// One of so many counts must be none.
const TRIES: usize = 5;

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
                    ult::yield_now();
                }
            }
            Self::Try => match operation.try_begin() {
                Ok(Status::Done(output)) => output,
                Ok(Status::Pending(mut in_flight)) => loop {
                    match in_flight.try_finish() {
                        Ok(output) => return output,
                        Err(back) => in_flight = back,
                    }
                    ult::yield_now();
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
                    ult::yield_now();
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
