//! The typed calls that `values` leaves out, on the same types, counts and lengths.

use crate::Attack;
use crate::values::{all_ways, values};
use std::fmt::Debug;
use std::sync::mpsc;
use tsumugi::deferred::OnBuffer;
use tsumugi::global::ReceivedPart;
use tsumugi::global::container::{Data, Deque, Element, Keyed, List, Map, Vector};
use tsumugi::{Buffer, Deferred, Error, Plain, Rank, Runtime, Signal, Until};

pub const ALL: &[Attack] = &[
    ("more_calls_on_any_type", more_calls_on_any_type),
    ("containers_of_any_length", containers_of_any_length),
    ("channels_of_any_length", channels_of_any_length),
    ("collectives_of_any_word", collectives_of_any_word),
];

fn more_calls_on_any_type() {
    all_ways(|rt| {
        more_calls(rt, |_| [0u64; 0])?;
        more_calls(rt, |n| n as u8)?;
        more_calls(rt, |n| [n as u8, 1, 2])?;
        more_calls(rt, |n| n as u128)?;
        more_calls(rt, |n| [[n as u16; 5]; 7])?;
        more_calls(rt, |n| [n as u64; 600])
    });
}

/// Callbacks, signals, probes, messages of a scope, and reads in place.
pub fn more_calls<T: Plain + PartialEq + Debug + Send + Sync>(
    rt: &Runtime,
    make: impl Fn(usize) -> T + Copy,
) -> Result<(), Error> {
    let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
    for count in [0, 1, 7, 1000] {
        let (there, bell) = (rt.share::<T>(count)?, rt.share::<u64>(1)?);
        let given = values(count, |n| make(n + 1));
        rt.put_signal(there.at(peer, 0), &given, bell.at(peer, 0), Signal::Add(1))?;
        rt.wait_until(bell.at(rt.rank(), 0), Until::Equal(1))?;
        assert_eq!(
            called(rt, |buf| rt.ops().get_buffer(there.at(rt.rank(), 0), buf), &given)?,
            given
        );
        let back = values(count, |n| make(n + 2));
        rt.barrier()?;
        called(rt, |buf| rt.ops().put_buffer(there.at(peer, 0), buf), &back)?;
        rt.barrier()?;
        let mut taken = given.clone();
        rt.get_slice(there.at(rt.rank(), 0), &mut taken)?;
        assert_eq!(taken, back);
        let past = called(rt, |buf| rt.ops().get_buffer(there.at(peer, count + 1), buf), &given);
        assert!(size_of::<T>() == 0 || past.is_err(), "{past:?}");

        comm.scope(|scope| {
            let mut came = given.clone();
            scope.isend(peer, 1, &back)?;
            let found = comm.probe(peer, 1)?;
            assert_eq!((found.bytes, found.source), (size_of_val(&back[..]), peer));
            assert!(comm.try_probe(peer, 1).is_some() && comm.try_probe(peer, 2).is_none());
            comm.scope(|inner| {
                inner.irecv(peer, 1, &mut came)?;
                inner.wait_all()
            })?;
            assert_eq!(came, back);
            scope.wait_all()
        })?;

        let global = rt.global()?;
        let (block, word) = (global.expose::<T>(count)?, global.expose::<u64>(1)?);
        global.put_signal(block.at(0), &back, word.at(0), Signal::Set(7))?;
        assert_eq!(global.wait_until(word.at(0), Until::Equal(7))?, 7);
        for more in [count, count + 1, 1 << 61, usize::MAX] {
            let local = global.local(block.at(0), more);
            assert!(more <= count || size_of::<T>() == 0 || local.is_err(), "{more} in place");
        }
        rt.barrier()?;
    }
    Ok(())
}

/// Begins an operation whose callback sends the outcome, and returns the values of its
/// buffer.
fn called<'a, T: Plain + Send>(
    rt: &'a Runtime,
    operation: impl FnOnce(Buffer<T>) -> Deferred<OnBuffer<'a, T>>,
    values: &[T],
) -> Result<Vec<T>, Error> {
    let mut buf = rt.buffer::<T>(values.len())?;
    buf.copy_from_slice(values);
    let (tell, told) = mpsc::channel();
    let mut begun = operation(buf).then(move |outcome| drop(tell.send(outcome)));
    while let Err(busy) = begun {
        tsumugi::ult::yield_now();
        let (operation, then) = busy.operation;
        begun = operation.then(then);
    }
    let outcome = loop {
        match told.try_recv() {
            Ok(outcome) => break outcome,
            Err(_) => tsumugi::ult::yield_now(),
        }
    };
    outcome.result?;
    Ok(outcome.buf.to_vec())
}

/// Lengths of zero, of more than the pool has, and those whose sum overflows.
fn containers_of_any_length() {
    all_ways(|rt| {
        let pool = rt.global()?.pool(1 << 16)?;
        if rt.rank() == Rank(0) {
            containers(&pool)?;
        }
        rt.barrier()
    });
}

fn containers(
    pool: &tsumugi::global::Pool,
) -> Result<(), tsumugi::global::container::ContainerError> {
    let ranks = [Rank(0), Rank(1)];
    let (vector, deque) = (Vector::create(pool, 0, Rank(1))?, Deque::create(pool, 8, Rank(0))?);
    let (map, list) = (Map::create(pool, &ranks, 4, Rank(0))?, List::create(pool, Rank(1))?);
    for len in [0usize, 1, 7, 100] {
        let bytes = vec![len as u8; len];
        vector.push_back(pool, Data::Here(&bytes))?;
        deque.push_front(pool, Data::Here(&bytes))?;
        assert!(map.insert(pool, Data::Here(&bytes), Data::Here(&bytes))?);
        let mut into = vec![0; 200];
        assert_eq!(map.get(pool, Data::Here(&bytes), &mut into)?, Some(len as u64));
        assert_eq!(into[..len], bytes);
    }
    let (size, most) = (vector.size(pool)?, deque.size(pool)?);
    assert_eq!((size, most), (108, 116));
    let first = vector.at(pool, 0)?;
    for bytes in [1 << 40, 1 << 61, u64::MAX / 2 + 1, u64::MAX - 63, u64::MAX - 7, u64::MAX] {
        let there = Data::There(Element { addr: first, bytes });
        assert!(vector.reserve(pool, bytes).is_err(), "{bytes:#x} bytes are reserved");
        assert!(deque.reserve(pool, bytes).is_err(), "{bytes:#x} bytes are reserved");
        assert!(Vector::create(pool, bytes, Rank(0)).is_err());
        assert!(vector.push_back(pool, there).is_err(), "{bytes:#x} bytes are appended");
        assert!(deque.push_front(pool, there).is_err(), "{bytes:#x} bytes are prepended");
        assert!(vector.insert(pool, 4, there).is_err() && vector.write(pool, 4, there).is_err());
        assert!(vector.insert(pool, bytes, Data::Here(b"x")).is_err());
        assert!(vector.read(pool, bytes, &mut [0; 2]).is_err());
        assert!(vector.erase(pool, bytes, 1).is_err());
        assert!(map.insert(pool, there, there).is_err() && map.get(pool, there, &mut []).is_err());
        assert!(map.insert(pool, Data::Here(b"key"), there).is_err());
        assert!(list.push_back(pool, there, Rank(0)).is_err());
        let pieces = vector.pieces(pool, bytes, bytes)?;
        assert_eq!(pieces.map(|piece| piece.bytes), [0, 0]);
    }
    // The containers are unchanged.
    let mut into = [0; 108];
    vector.read(pool, 0, &mut into)?;
    assert!(into[8..].iter().all(|byte| *byte == 100) && (into[0], into[1]) == (1, 7));
    assert_eq!((vector.size(pool)?, deque.size(pool)?), (size, most));
    vector.erase(pool, 4, u64::MAX)?;
    vector.pop_back(pool, u64::MAX)?;
    deque.pop_front(pool, u64::MAX)?;
    assert!(vector.is_empty(pool)? && deque.is_empty(pool)?);
    Ok(())
}

/// Messages of no bytes, and of fewer and of more bytes than the ring has.
fn channels_of_any_length() {
    all_ways(|rt| {
        let (global, comm, peer) = (rt.global()?, rt.comm(), Rank(1 - rt.rank().0));
        let block = global.expose::<u8>(1000)?;
        let lengths = [0, 1, 7, 63, 64, 65, 1000];
        if rt.rank() == Rank(0) {
            let mut sender = global.channel_to((&comm, peer, 5), 64)?;
            let filled: Vec<u8> = (0..1000).map(|at| at as u8).collect();
            global.put_slice(block.at(0), &filled)?;
            for bytes in lengths {
                sender.send(block.at(0).addr(), bytes)?;
            }
            // An end of a channel has to last until the other end is done.
            rt.barrier()
        } else {
            let mut receiver = global.channel_from((&comm, peer, 5), 64)?;
            for bytes in lengths {
                let (mut came, mut is_over) = (Vec::<u8>::new(), false);
                while !is_over {
                    let mut into = [0; 50];
                    let received = receiver.recv(&mut into)?;
                    let (ReceivedPart::Part(bytes) | ReceivedPart::End(bytes)) = received;
                    came.extend(&into[..bytes]);
                    is_over = matches!(received, ReceivedPart::End(_));
                }
                assert_eq!(came.len() as u64, bytes);
                assert!(came.iter().enumerate().all(|(at, byte)| *byte == at as u8));
            }
            rt.barrier()
        }
    });
}

/// Every value of a word can be gathered, and sums wrap.
fn collectives_of_any_word() {
    all_ways(|rt| {
        for word in [0, 1, u64::from(u32::MAX), 1 << 63, u64::MAX - 1, u64::MAX] {
            let own = word.wrapping_add(u64::from(rt.rank().0));
            assert_eq!(rt.allgather(own)?, [word, word.wrapping_add(1)]);
            assert_eq!(rt.sum(own)?, word.wrapping_mul(2).wrapping_add(1));
        }
        Ok(())
    });
}
