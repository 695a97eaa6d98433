//! Every kind of operation as a value, used in every way: for ranks of one node, and of
//! several.

use super::api;
use api::array::{ArrayError, ArrayOptions, Directory};
use api::comm::Owned;
use api::deferred::Begin;
use api::global::{Change, Copy};
use api::group::Sum;
use api::{
    AddrError, CollError, Deferred, Error, MessageError, Rank, Runtime, Signal, Status, Until, ult,
};
use std::sync::mpsc;
use tsumugi_core::op::Kind;

/// The ways to use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Wait,
    Await,
    Try,
    Then,
}

impl Use {
    const ALL: [Self; 4] = [Self::Wait, Self::Await, Self::Try, Self::Then];

    /// The result of the operation, used in this way.
    fn of<C: Begin<Output: Send + 'static>>(self, operation: Deferred<C>) -> C::Output {
        match self {
            Self::Wait => operation.wait(),
            Self::Await => ult::block_on(async { operation.await }),
            Self::Try => {
                let mut begun = operation.try_begin();
                let mut in_flight = loop {
                    match begun {
                        Ok(Status::Done(output)) => return output,
                        Ok(Status::Pending(in_flight)) => break in_flight,
                        Err(busy) => {
                            ult::yield_now();
                            begun = busy.operation.try_begin();
                        }
                    }
                };
                loop {
                    match in_flight.try_finish() {
                        Ok(output) => return output,
                        Err(back) => in_flight = back,
                    }
                    ult::yield_now();
                }
            }
            Self::Then => {
                let (tell, told) = mpsc::channel();
                let mut begun = operation.then(move |output| drop(tell.send(output)));
                while let Err(busy) = begun {
                    ult::yield_now();
                    let (operation, then) = busy.operation;
                    begun = operation.then(then);
                }
                loop {
                    match told.try_recv() {
                        Ok(output) => return output,
                        Err(mpsc::TryRecvError::Empty) => ult::yield_now(),
                        Err(error) => panic!("the callback was dropped: {error}"),
                    }
                }
            }
        }
    }
}

/// All kinds, in all ways.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    for way in Use::ALL {
        words(rt, way)?;
        narrow(rt, way)?;
        buffers(rt, way)?;
        put_signal(rt, way)?;
        barrier(rt, way)?;
        array(rt, way)?;
        messages(rt, way)?;
        wait_until(rt, way)?;
        global(rt, way)?;
        global_words(rt, way)?;
        collectives(rt, way)?;
    }
    Ok(())
}

fn next(rt: &Runtime) -> Rank {
    Rank((rt.rank().0 + 1) % rt.size())
}

/// Words of 4 and 8 bytes: puts, gets and all atomics, and their errors.
fn words(rt: &Runtime, way: Use) -> Result<(), Error> {
    let (ops, words, peer) = (rt.ops(), rt.share::<u64>(4)?, next(rt));
    let at = words.at(peer, 1);
    way.of(ops.put(at, 5))?;
    assert_eq!(way.of(ops.get(at)), Ok(5), "{way:?}");
    assert_eq!(way.of(ops.fetch_add(at, 3)), Ok(5));
    assert_eq!(way.of(ops.fetch_and(at, 12)), Ok(8));
    assert_eq!(way.of(ops.fetch_or(at, 1)), Ok(8));
    assert_eq!(way.of(ops.fetch_xor(at, 3)), Ok(9));
    assert_eq!(way.of(ops.swap(at, 40)), Ok(10));
    assert_eq!(way.of(ops.compare_swap(at, 41, 1)), Ok(40));
    assert_eq!(way.of(ops.compare_swap(at, 40, 1)), Ok(40));
    way.of(ops.add(at, 6))?;
    way.of(ops.and(at, 6))?;
    way.of(ops.or(at, 1))?;
    way.of(ops.xor(at, 2))?;
    assert_eq!(way.of(ops.signal(at, Signal::Add(1))), Ok(5));
    assert_eq!(way.of(ops.signal(at, Signal::Set(2))), Ok(6));
    assert_eq!(way.of(ops.get(at)), Ok(2));
    let beyond = way.of(ops.get(words.at(peer, 4)));
    assert!(matches!(beyond, Err(AddrError::OutOfRange { .. })), "{beyond:?}");
    let nobody = way.of(ops.fetch_add(words.at(Rank(rt.size()), 0), 1));
    assert!(matches!(nobody, Err(AddrError::NoSuchRank { .. })), "{nobody:?}");
    rt.barrier()
}

/// Words of other widths and types.
fn narrow(rt: &Runtime, way: Use) -> Result<(), Error> {
    let (ops, peer) = (rt.ops(), next(rt));
    let (bytes, floats, ints) = (rt.share::<u8>(4)?, rt.share::<f64>(2)?, rt.share::<i32>(2)?);
    way.of(ops.put(bytes.at(peer, 3), 200))?;
    way.of(ops.put(floats.at(peer, 1), -1.5))?;
    way.of(ops.put(ints.at(peer, 1), -7))?;
    assert_eq!(way.of(ops.get(bytes.at(peer, 3))), Ok(200));
    assert_eq!(way.of(ops.get(bytes.at(peer, 2))), Ok(0));
    assert_eq!(way.of(ops.get(floats.at(peer, 1))), Ok(-1.5));
    assert_eq!(way.of(ops.fetch_add(ints.at(peer, 1), -1)), Ok(-7));
    assert_eq!(way.of(ops.get(ints.at(peer, 1))), Ok(-8));
    rt.barrier()
}

/// Whole buffers, of lengths that take one piece and many.
fn buffers(rt: &Runtime, way: Use) -> Result<(), Error> {
    let (ops, peer) = (rt.ops(), next(rt));
    let words = rt.share::<u32>(40_000)?;
    for (start, count) in [(3, 1), (7, 500), (100, 39_000)] {
        let mut buf = rt.buffer::<u32>(count)?;
        buf.iter_mut().zip(0..).for_each(|(to, value)| *to = value ^ peer.0);
        let put = way.of(ops.put_buffer(words.at(peer, start), buf));
        put.result?;
        let mut buf = put.buf;
        buf.fill(0);
        let got = way.of(ops.get_buffer(words.at(peer, start), buf));
        got.result?;
        assert!(got.buf.iter().zip(0..).all(|(found, value)| *found == value ^ peer.0));
        let beyond = way.of(ops.put_buffer(words.at(peer, 40_000), got.buf));
        assert!(matches!(beyond.result, Err(AddrError::OutOfRange { .. })), "{beyond:?}");
        assert_eq!(beyond.buf.len(), count);
    }
    rt.barrier()
}

/// A thread that sees the signal sees the values.
fn put_signal(rt: &Runtime, way: Use) -> Result<(), Error> {
    let (ops, own, peer) = (rt.ops(), rt.rank(), next(rt));
    let (words, bells) = (rt.share::<u64>(1000)?, rt.share::<u64>(1)?);
    for (round, signal) in [(1, Signal::Add(1)), (2, Signal::Set(2))] {
        let mut buf = rt.buffer::<u64>(1000)?;
        buf.fill(round);
        let sent = way.of(ops.put_signal(words.at(peer, 0), buf, bells.at(peer, 0), signal));
        sent.result?;
        assert_eq!(rt.wait_until(bells.at(own, 0), Until::Equal(round)), Ok(round), "{way:?}");
        let mut found = [0; 1000];
        rt.get_slice(words.at(own, 0), &mut found)?;
        assert_eq!(found, [round; 1000]);
        rt.barrier()?;
    }
    let buf = rt.buffer::<u64>(2)?;
    let beyond =
        way.of(ops.put_signal(words.at(peer, 999), buf, bells.at(peer, 0), Signal::Add(9)));
    assert!(matches!(beyond.result, Err(AddrError::OutOfRange { .. })), "{beyond:?}");
    rt.barrier()?;
    assert_eq!(rt.get(bells.at(own, 0)), Ok(2), "no signal follows a put that has failed");
    rt.barrier()
}

fn barrier(rt: &Runtime, way: Use) -> Result<(), Error> {
    let count = rt.share::<u64>(1)?;
    for round in 1..=5 {
        rt.fetch_add(count.at(Rank(0), 0), 1)?;
        way.of(rt.ops().barrier())?;
        assert_eq!(rt.get(count.at(Rank(0), 0))?, round * u64::from(rt.size()), "{way:?}");
        rt.barrier()?;
    }
    Ok(())
}

/// Elements of pages that are here and elsewhere, with each kind of directory.
fn array(rt: &Runtime, way: Use) -> Result<(), Error> {
    for directory in [Directory::Atomics, Directory::Messages] {
        let options = ArrayOptions::new().page_len(8).directory(directory);
        let array = options.create::<u64>(rt, 240)?;
        let (ops, own) = (array.ops(), rt.rank().0 as usize);
        for index in (own..240).step_by(rt.size() as usize) {
            way.of(ops.put(index, 7 * index as u64))?;
        }
        rt.barrier()?;
        for index in (0..240).step_by(7) {
            assert_eq!(way.of(ops.get(index)), Ok(7 * index as u64), "{way:?}");
        }
        rt.barrier()?;
        for index in (own..240).step_by(rt.size() as usize) {
            let value = 7 * index as u64;
            assert_eq!(way.of(ops.fetch_add(index, 1)), Ok(value), "{way:?}");
            assert_eq!(way.of(ops.fetch_and(index, 3)), Ok(value + 1));
            assert_eq!(way.of(ops.fetch_or(index, 4)), Ok((value + 1) & 3));
            assert_eq!(way.of(ops.fetch_xor(index, 7)), Ok((value + 1) & 3 | 4));
            assert_eq!(way.of(ops.swap(index, 9)), Ok(((value + 1) & 3 | 4) ^ 7));
            assert_eq!(way.of(ops.compare_swap(index, 8, 1)), Ok(9));
            assert_eq!(way.of(ops.compare_swap(index, 9, 1)), Ok(9));
            assert_eq!(way.of(ops.get(index)), Ok(1));
        }
        assert!(matches!(way.of(ops.swap(240, 1)), Err(ArrayError::OutOfRange { .. })));
        let beyond = way.of(ops.get(240));
        assert!(matches!(beyond, Err(ArrayError::OutOfRange { .. })), "{beyond:?}");
        assert!(matches!(way.of(ops.put(1 << 40, 1)), Err(ArrayError::OutOfRange { .. })));
        rt.barrier()?;
    }
    Ok(())
}

/// Messages of all lengths, from vectors and from buffers; both sides in the same way.
fn messages(rt: &Runtime, way: Use) -> Result<(), Error> {
    for bytes in [0, 8, 500, 20_000, 200_000] {
        let mut buf = rt.buffer::<u8>(bytes)?;
        buf.fill(rt.rank().0 as u8);
        exchange(rt, way, bytes, buf, rt.buffer(bytes)?)?;
        exchange(rt, way, bytes, vec![rt.rank().0 as u8; bytes], vec![0; bytes])?;
    }
    let (comm, nobody) = (rt.comm(), Rank(rt.size()));
    let refused = way.of(comm.ops().send(nobody, 1, vec![1u8]));
    assert!(matches!(refused, Err(MessageError::NoSuchRank { .. })), "{refused:?}");
    // A receive that is dropped takes no message.
    let received = comm.ops().recv(rt.rank(), 2, vec![0u8; 4]).try_begin();
    drop(received.map_err(|busy| busy.why).expect("there is room"));
    comm.send(rt.rank(), 2, &[7u8])?;
    let (received, values) = way.of(comm.ops().recv(rt.rank(), 2, vec![0u8; 4]))?;
    assert_eq!((received.bytes, values), (1, vec![7, 0, 0, 0]), "{way:?}");
    comm.send(rt.rank(), 2, &[7u8; 9])?;
    let longer = way.of(comm.ops().recv(rt.rank(), 2, vec![0u8; 4]));
    assert!(matches!(longer, Err(MessageError::Truncated { bytes: 9, .. })), "{longer:?}");
    rt.barrier()
}

fn exchange<B>(rt: &Runtime, way: Use, bytes: usize, sent: B, room: B) -> Result<(), Error>
where
    B: Owned + std::ops::Deref<Target = [u8]> + Send + 'static,
{
    let (to, from) = (next(rt), Rank((rt.rank().0 + rt.size() - 1) % rt.size()));
    let sender = rt.spawn(move |rt| way.of(rt.comm().ops().send(to, 1, sent)).map(drop));
    let (received, values) = way.of(rt.comm().ops().recv(from, 1, room))?;
    assert_eq!((received.source, received.bytes), (from, bytes), "{way:?}");
    assert!(values.iter().all(|value| *value == from.0 as u8));
    sender.join().expect("no ULT panics")?;
    Ok(())
}

/// Waits that are over at once, that a signal ends, and that are dropped.
fn wait_until(rt: &Runtime, way: Use) -> Result<(), Error> {
    let (ops, own, peer) = (rt.ops(), rt.rank(), next(rt));
    let words = rt.share::<u64>(3)?;
    let word = words.at(own, 1);
    assert_eq!(way.of(ops.wait_until(word, Until::Equal(0))), Ok(0));
    for round in 1..=3 {
        let dropped = ops.wait_until(word, Until::AtLeast(100)).try_begin();
        rt.barrier()?;
        let at = words.at(peer, 1);
        let signals = rt.spawn(move |rt| {
            for _ in 0..5 {
                ult::yield_now();
            }
            rt.signal(at, Signal::Add(1))
        });
        assert_eq!(way.of(ops.wait_until(word, Until::AtLeast(round))), Ok(round), "{way:?}");
        signals.join().expect("no ULT panics")?;
        drop(dropped);
    }
    let elsewhere = way.of(ops.wait_until(words.at(peer, 1), Until::Equal(0)));
    assert!(elsewhere.is_err(), "{elsewhere:?}");
    rt.barrier()
}

/// Operations on global memory that have begun: awaited, looked for, called back.
fn global(rt: &Runtime, way: Use) -> Result<(), Error> {
    let global = rt.global()?;
    let words = global.expose::<u64>(4)?;
    let all = rt.allgather(words.at(0).addr().to_bits())?;
    let peer = global.pointer::<u64>(all[next(rt).0 as usize]);
    let end = |operation: api::global::Operation| match way {
        Use::Wait => operation.wait(),
        Use::Await => ult::block_on(operation),
        Use::Try => {
            while !operation.has_ended() {
                ult::yield_now();
            }
            operation.wait()
        }
        Use::Then => {
            let (tell, told) = mpsc::channel();
            assert!(
                operation.then(move |result| tell.send(result).expect("it is awaited")).is_ok()
            );
            loop {
                match told.try_recv() {
                    Ok(result) => return result,
                    Err(_) => ult::yield_now(),
                }
            }
        }
    };
    let add = Change::atomic(Kind::FetchAdd, peer.addr(), 5u64);
    assert_eq!(end(global.begin(add)), Ok(0), "{way:?}");
    assert_eq!(end(global.begin(add)), Ok(5));
    let (to, from) = (global.index(words.at(0), 2)?.addr(), peer.addr());
    assert_eq!(end(global.begin(Copy::new(to, from, 8))), Ok(0));
    assert_eq!(global.get(global.index(words.at(0), 2)?)?, 10);
    let beyond = end(global.begin(Copy::new(to, from, 1 << 20)));
    assert!(matches!(beyond, Err(AddrError::OutOfRange { .. })), "{beyond:?}");
    rt.barrier()
}

/// Words and copies of global memory as values.
fn global_words(rt: &Runtime, way: Use) -> Result<(), Error> {
    let global = rt.global()?;
    let (ops, words) = (global.ops(), global.expose::<u64>(4)?);
    let all = rt.allgather(words.at(0).addr().to_bits())?;
    let at = global.pointer::<u64>(all[next(rt).0 as usize]);
    assert_eq!(way.of(ops.put(at, 5)), Ok(()), "{way:?}");
    assert_eq!(way.of(ops.get(at)), Ok(5));
    assert_eq!(way.of(ops.fetch_add(at, 3)), Ok(5));
    assert_eq!(way.of(ops.fetch_and(at, 12)), Ok(8));
    assert_eq!(way.of(ops.fetch_or(at, 1)), Ok(8));
    assert_eq!(way.of(ops.fetch_xor(at, 3)), Ok(9));
    assert_eq!(way.of(ops.swap(at, 40)), Ok(10));
    assert_eq!(way.of(ops.compare_swap(at, 41, 1)), Ok(40));
    assert_eq!(way.of(ops.add(at, 6)), Ok(()));
    assert_eq!(way.of(ops.and(at, 6)), Ok(()));
    assert_eq!(way.of(ops.or(at, 1)), Ok(()));
    assert_eq!(way.of(ops.xor(at, 2)), Ok(()));
    assert_eq!(way.of(ops.get(at)), Ok(5));
    let own = global.index(words.at(0), 3)?;
    assert_eq!(way.of(ops.copy(own, at, 1)), Ok(0));
    assert_eq!(way.of(ops.get(own)), Ok(5));
    let add = Change::atomic(Kind::FetchAdd, at.addr(), 2u64);
    assert_eq!(way.of(ops.request(add)), Ok(5));
    let beyond = way.of(ops.get(global.index(at, 4)?));
    assert!(matches!(beyond, Err(AddrError::OutOfRange { .. })), "{beyond:?}");
    let beyond = way.of(ops.copy(own, at, 1 << 20));
    assert!(matches!(beyond, Err(AddrError::OutOfRange { .. })), "{beyond:?}");
    rt.barrier()
}

/// Collectives of vectors and of buffers, with the results that they must have, and their
/// errors.
fn collectives(rt: &Runtime, way: Use) -> Result<(), Error> {
    let group = rt.world();
    let (ops, me, size) = (group.ops(), group.rank(), group.size());
    let (own, n) = (u64::from(me), size as usize);
    let total = u64::from(size * (size - 1) / 2);
    way.of(ops.barrier())?;
    let mut buf = rt.buffer::<u64>(1000)?;
    buf.fill(own);
    let buf = way.of(ops.broadcast(buf, 1))?;
    assert!(buf.iter().all(|value| *value == 1), "{way:?}");
    assert_eq!(way.of(ops.allreduce(vec![own; 3], Sum))?, [total; 3], "{way:?}");
    let reduced = way.of(ops.reduce(vec![own], 0, Sum))?;
    assert_eq!(reduced, [if me == 0 { total } else { own }]);
    assert_eq!(way.of(ops.scan(vec![1u64], Sum))?, [own + 1]);
    assert_eq!(way.of(ops.exscan(vec![1u64], Sum))?, [own.max(1)]);
    let ranks: Vec<u64> = (0..u64::from(size)).collect();
    let at_root = |values: &[u64]| if me == 0 { values.to_vec() } else { Vec::new() };
    let room = at_root(&vec![0; n]);
    let (given, gathered) = way.of(ops.gather(vec![own], room.clone(), 0))?;
    assert_eq!((given, gathered), (vec![own], at_root(&ranks)), "{way:?}");
    assert_eq!(way.of(ops.scatter(at_root(&ranks), vec![0], 0))?.1, [own]);
    assert_eq!(way.of(ops.allgather(vec![own], vec![0; n]))?.1, ranks);
    assert_eq!(way.of(ops.alltoall(vec![own; n], vec![0; n]))?.1, ranks);
    assert_eq!(way.of(ops.reduce_scatter(ranks.clone(), vec![0], Sum))?.1, [own * n as u64]);
    let counts = vec![1; n];
    assert_eq!(way.of(ops.gather_v(vec![own], room, &counts, 0))?.1, at_root(&ranks));
    assert_eq!(way.of(ops.scatter_v(at_root(&ranks), vec![0], &counts, 0))?.1, [own]);
    assert_eq!(way.of(ops.allgather_v(vec![own], vec![0; n], &counts))?.1, ranks);
    assert_eq!(way.of(ops.alltoall_v(vec![own; n], vec![0; n], &counts, &counts))?.1, ranks);
    let parts = way.of(ops.reduce_scatter_v(ranks, vec![0], &counts, Sum))?;
    assert_eq!(parts.1, [own * n as u64]);
    let nobody = way.of(ops.broadcast(vec![0u8], size));
    assert!(matches!(nobody, Err(Error::Coll(CollError::NoSuchRoot { .. }))), "{nobody:?}");
    let short = way.of(ops.allgather_v(vec![own], vec![0; n], &counts[1..]));
    assert!(matches!(short, Err(Error::Coll(CollError::WrongLength { .. }))), "{short:?}");
    group.barrier()
}
