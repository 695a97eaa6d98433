//! Operations as values that are forgotten, dropped in flight, and begun without room.

use crate::Attack;
use std::future::Future;
use std::mem::forget;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use tsumugi::deferred::Begin;
use tsumugi::{Config, Deferred, Error, Path, Rank, Runtime, Signal, Status, Until, ult};

pub const ALL: &[Attack] = &[
    ("operations_forgotten", operations_forgotten),
    ("operations_dropped_in_flight", operations_dropped_in_flight),
    ("callbacks_of_every_kind_that_panic", callbacks_of_every_kind_that_panic),
    ("callbacks_that_begin_operations", callbacks_that_begin_operations),
    ("operations_without_room", operations_without_room),
];

fn by_all_ways(main: impl Fn(&Runtime) -> Result<(), Error> + Sync) {
    std::panic::set_hook(Box::new(|_| ()));
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        let config = Config::from_env().expect("an environment without errors").path(path);
        config.run_ranks(2, &main).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
}

/// Begins the operation and polls it once as a future, then drops or forgets it.
fn leave<C: Begin>(operation: Deferred<C>, round: u64, is_forgotten: bool) {
    let mut context = Context::from_waker(Waker::noop());
    match round % 3 {
        0 if is_forgotten => forget(operation),
        0 => drop(operation),
        1 => {
            let begun = operation.try_begin();
            if is_forgotten { forget(begun) } else { drop(begun) }
        }
        _ => {
            let mut future = Box::pin(operation.into_future());
            let _ = future.as_mut().poll(&mut context);
            if is_forgotten { forget(future) } else { drop(future) }
        }
    }
}

/// Leaves operations of each kind; memory that is made afterwards keeps its values.
fn leave_each(rt: &Runtime, rounds: u64, is_forgotten: bool) -> Result<(), Error> {
    const LEN: usize = 200;
    let (ops, comm, peer) = (rt.ops(), rt.comm(), Rank(1 - rt.rank().0));
    let (words, array) = (rt.share::<u64>(LEN)?, rt.array::<u64>(LEN)?);
    rt.put_slice(words.at(peer, 0), &[7; LEN])?;
    rt.barrier()?;
    for round in 0..rounds {
        let at = words.at(peer, 1);
        leave(ops.get(at), round, is_forgotten);
        leave(ops.put(at, 7), round, is_forgotten);
        leave(ops.fetch_or(at, 7), round, is_forgotten);
        leave(ops.get_buffer(words.at(peer, 0), rt.buffer(LEN)?), round, is_forgotten);
        let bell = words.at(rt.rank(), 2);
        leave(ops.wait_until(bell, Until::Equal(99)), round, is_forgotten);
        let at = words.at(peer, 0);
        let put = ops.put_signal(at, rt.buffer::<u64>(0)?, at, Signal::Set(7));
        leave(put, round, is_forgotten);
        leave(array.ops().get(round as usize % LEN), round, is_forgotten);
        leave(comm.ops().recv(peer, 3, vec![0u8; 100]), round, is_forgotten);
        // A send that has begun goes on. It may find no room at first: the operations that
        // were left have not ended.
        let mut send = comm.ops().send(peer, 4, vec![9u8; 10]);
        if round % 3 != 0 {
            loop {
                match send.try_begin() {
                    Ok(begun) if is_forgotten => break forget(begun),
                    Ok(_) => break,
                    Err(busy) => send = busy.operation,
                }
                ult::yield_now();
            }
        }
        let mut value = [9u8; 10];
        if round % 3 != 0 {
            value.fill(0);
            comm.recv(peer, 4, &mut value)?;
        }
        assert_eq!(value, [9; 10]);
        let mut buf = rt.buffer::<u64>(LEN)?;
        let bytes = Vec::from([9u8; 100]);
        buf.fill(9);
        ult::yield_now();
        assert!(buf.iter().all(|value| *value == 9), "{round}");
        assert!(bytes.iter().all(|value| *value == 9), "{round}");
    }
    // There is room for others, and they work.
    assert_eq!(ult::block_on(ops.get(words.at(peer, 1)).into_future())?, 7);
    rt.barrier()
}

fn operations_forgotten() {
    by_all_ways(|rt| leave_each(rt, 60, true));
}

/// More operations than any table has room for.
fn operations_dropped_in_flight() {
    by_all_ways(|rt| leave_each(rt, 1600, false));
}

/// Begins the operation with a callback that panics, when there is room.
fn panic_in<C: Begin>(mut operation: Deferred<C>, called: &Arc<AtomicU64>) {
    let called = called.clone();
    let mut then = move |_| {
        called.fetch_add(1, Ordering::SeqCst);
        panic!("a callback");
    };
    while let Err(busy) = operation.then(then) {
        (operation, then) = busy.operation;
        ult::yield_now();
    }
}

fn callbacks_of_every_kind_that_panic() {
    by_all_ways(|rt| {
        let (ops, comm, peer) = (rt.ops(), rt.comm(), Rank(1 - rt.rank().0));
        let (words, array) = (rt.share::<u64>(4)?, rt.array::<u64>(100)?);
        let called = Arc::new(AtomicU64::new(0));
        for round in 1..=30 {
            panic_in(ops.get(words.at(peer, 0)), &called);
            panic_in(ops.wait_until(words.at(rt.rank(), 1), Until::AtLeast(round)), &called);
            let (at, buf) = (words.at(peer, 2), rt.buffer::<u64>(1)?);
            panic_in(ops.put_signal(at, buf, words.at(peer, 1), Signal::Add(1)), &called);
            panic_in(array.ops().put(round as usize, round), &called);
            panic_in(comm.ops().recv(peer, 1, vec![0u8; 8]), &called);
            panic_in(comm.ops().send(peer, 1, vec![0u8; 8]), &called);
            while called.load(Ordering::SeqCst) < 6 * round {
                ult::yield_now();
            }
            // Other operations still work.
            rt.fetch_add(words.at(peer, 3), 1)?;
        }
        rt.barrier()?;
        assert_eq!(rt.get(words.at(rt.rank(), 3))?, 30);
        rt.barrier()
    });
}

/// A chain of operations, each begun by the callback of the one before.
fn callbacks_that_begin_operations() {
    fn next(rt: Arc<Runtime>, at: tsumugi::Remote<u64>, left: u64, done: Arc<AtomicU64>) {
        let again = rt.clone();
        let then = move |old: Result<u64, tsumugi::AddrError>| match left {
            0 => done.store(1 + old.unwrap(), Ordering::SeqCst),
            _ => next(again, at, left - 1, done),
        };
        // What the callback captures may be too large for the slot: it is boxed.
        let mut then: Box<dyn FnOnce(Result<u64, tsumugi::AddrError>) + Send> = Box::new(then);
        let mut add = rt.ops().fetch_add(at, 1);
        while let Err(busy) = add.then(then) {
            (add, then) = busy.operation;
        }
    }
    by_all_ways(|rt| {
        let words = rt.share::<u64>(1)?;
        let done = Arc::new(AtomicU64::new(0));
        let at = words.at(Rank(1 - rt.rank().0), 0);
        next(Arc::new(rt.clone()), at, 20, done.clone());
        while done.load(Ordering::SeqCst) == 0 {
            ult::yield_now();
        }
        assert_eq!(done.load(Ordering::SeqCst), 21);
        rt.barrier()
    });
}

/// A rank begins operations until there is no room: each that is refused comes back whole.
fn operations_without_room() {
    by_all_ways(|rt| {
        let (ops, own) = (rt.ops(), rt.rank());
        let words = rt.share::<u64>(2)?;
        let mut kept = Vec::new();
        let refused = loop {
            assert!(kept.len() < 100_000, "there is room for any number of operations");
            match ops.wait_until(words.at(own, 0), Until::Equal(1)).try_begin() {
                Ok(Status::Pending(wait)) => kept.push(wait),
                Ok(Status::Done(result)) => panic!("{result:?}"),
                Err(busy) => break busy.operation,
            }
        };
        let called = Arc::new(AtomicU64::new(0));
        let (calls, buf) = (called.clone(), vec![5u8; 3]);
        let sent = rt.comm();
        let sent = sent.ops().send(own, 1, buf).then(move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
        });
        let busy = sent.expect_err("there is no room for another callback");
        assert_eq!(called.load(Ordering::SeqCst), 0);
        let mut future = pin!(refused.into_future());
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        rt.signal(words.at(own, 0), Signal::Set(1))?;
        for wait in kept {
            assert_eq!(wait.wait()?, 1);
        }
        assert_eq!(ult::block_on(future)?, 1);
        let (send, then) = busy.operation;
        assert!(send.then(then).is_ok());
        let mut value = [0u8; 3];
        rt.comm().recv(own, 1, &mut value)?;
        while called.load(Ordering::SeqCst) == 0 {
            ult::yield_now();
        }
        assert_eq!(value, [5; 3]);
        rt.barrier()
    });
}
