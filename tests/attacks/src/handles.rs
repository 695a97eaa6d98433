//! Handles that are kept, shared, dropped and made up.

use crate::Attack;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use tsumugi::{
    CallError, Comm, Config, Error, Path, Rank, Remote, RemoteAddr, Runtime, Source, Until,
};
use tsumugi_core::mem::{Agent, RegionKey};
use tsumugi_core::random::SplitMix64;

pub const ALL: &[Attack] = &[
    ("calls_after_the_end", calls_after_the_end),
    ("jobs_one_after_another", jobs_one_after_another),
    ("messages_of_another_rank", messages_of_another_rank),
    ("messages_waited_for_twice", messages_waited_for_twice),
    ("messages_taken_by_another_thread", messages_taken_by_another_thread),
    ("futures_dropped_half_way", futures_dropped_half_way),
    ("forged_addresses", forged_addresses),
    ("forged_global_addresses", forged_global_addresses),
];

fn config() -> Config {
    Config::from_env().expect("an environment without errors")
}

fn by_all_ways(main: impl Fn(&Runtime) -> Result<(), Error> + Sync) {
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        let ran = config().path(path).run_ranks(2, &main);
        ran.unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
}

/// Calls after the end of the job return an error, with and without a time limit, and so
/// does a call that was in progress at the end.
fn calls_after_the_end() {
    let kept = Mutex::new(Vec::new());
    let callers = Mutex::new(Vec::new());
    let ran = tsumugi::run_ranks(2, |rt| {
        rt.service(1, |_, _, _| {
            loop {
                tsumugi::ult::park();
            }
            #[expect(unreachable_code, reason = "the type of an answer")]
            [0u8; 0]
        });
        rt.handler(2, |_| [7u8]);
        rt.barrier()?;
        assert_eq!(rt.call(Rank(0), 2, &[])?, [7]);
        let its = rt.clone();
        callers.lock().unwrap().push(thread::spawn(move || its.call(its.rank(), 1, &[1; 5000])));
        kept.lock().unwrap().push(rt.clone());
        rt.barrier()
    });
    ran.expect("both ranks end");
    let is_ended = |result: Result<Vec<u8>, Error>| {
        let is_lost = matches!(result, Err(Error::Call(CallError::PeerLost { .. })));
        assert!(is_lost || matches!(result, Err(Error::Call(CallError::Ended))), "{result:?}");
    };
    callers.into_inner().unwrap().into_iter().for_each(|caller| is_ended(caller.join().unwrap()));
    for rt in kept.into_inner().unwrap() {
        for to in rt.ranks() {
            for bytes in [&[1][..], &[1; 5000]] {
                is_ended(rt.call_timeout(to, 1, bytes, Duration::from_millis(100)));
                is_ended(rt.call(to, 2, bytes));
                is_ended(rt.cast(to, 2, bytes).map(|()| Vec::new()));
            }
        }
    }
}

/// More jobs than the address space has room for, if a job kept its addresses.
fn jobs_one_after_another() {
    for _ in 0..500 {
        tsumugi::run_ranks(2, |rt| rt.barrier()).expect("there are addresses");
    }
}

fn messages_of_another_rank() {
    let others: Mutex<Vec<Comm>> = Mutex::new(Vec::new());
    let ran = tsumugi::run_ranks(2, |rt| {
        let comm = rt.comm();
        others.lock().unwrap().push(comm.clone());
        rt.barrier()?;
        let other = others.lock().unwrap().iter().find(|other| other.rank() != rt.rank()).cloned();
        let other = other.expect("both ranks have stored theirs");
        let message = other.irecv(Source::Any, 1, vec![0u64; 4])?;
        let own = comm.irecv(Source::Any, 2, vec![0u64; 4])?;
        let any = catch_unwind(AssertUnwindSafe(|| comm.wait_any(&[&own, &message])));
        assert!(any.is_err(), "{any:?}");
        let all = catch_unwind(AssertUnwindSafe(|| comm.wait_all(&[&message])));
        assert!(all.is_err());
        own.cancel();
        message.cancel();
        assert!(own.wait().is_err() && message.wait().is_err());
        rt.barrier()
    });
    ran.expect("both ranks end");
}

/// Messages that are named twice in one call, and messages for which several threads
/// wait.
fn messages_waited_for_twice() {
    let ran = config().workers(2).run_ranks(2, |rt| {
        let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
        for _ in 0..100 {
            let one = comm.irecv(peer, 1, vec![0u64; 1])?;
            let other = comm.irecv(peer, 1, vec![0u64; 1])?;
            let sent = comm.isend(peer, 1, vec![3u64])?;
            let also = comm.isend(peer, 1, vec![4u64])?;
            comm.wait_any(&[&one, &other, &one]);
            comm.wait_all(&[&one, &one, &other, &sent, &also, &sent]);
            assert_eq!((one.wait()?.1, other.wait()?.1), (vec![3], vec![4]));
        }
        for _ in 0..20 {
            let message = comm.irecv(peer, 1, vec![0u64; 1])?;
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| comm.wait_any(&[&message]));
                    scope.spawn(|| comm.wait_all(&[&message, &message]));
                }
                comm.send(peer, 1, &[5u64])
            })?;
            assert_eq!(message.wait()?.1, [5]);
        }
        rt.barrier()
    });
    ran.expect("both ranks end");
}

/// While a scope waits for a message, another thread takes the message's result and
/// begins other messages in the same slot.
fn messages_taken_by_another_thread() {
    let ran = config().workers(2).run_ranks(2, |rt| {
        let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
        for _ in 0..50 {
            let (mut one, mut two) = ([0u64; 1], [0u64; 1]);
            comm.scope(|outer| {
                let taken = outer.irecv(peer, 1, &mut one)?;
                outer.irecv(peer, 2, &mut two)?;
                let comm = comm.clone();
                thread::scope(|threads| {
                    let taker = threads.spawn(move || {
                        taken.wait()?;
                        for _ in 0..10 {
                            let mut three = [0u64; 1];
                            comm.scope(|inner| {
                                inner.irecv(rt.rank(), 3, &mut three)?;
                                inner.isend(rt.rank(), 3, &[3])?;
                                inner.wait_all()
                            })?;
                            assert_eq!(three, [3]);
                        }
                        comm.send(peer, 2, &[2u64])
                    });
                    rt.comm().send(peer, 1, &[1u64])?;
                    outer.wait_all()?;
                    taker.join().unwrap()
                })
            })?;
            assert_eq!((one, two), ([1], [2]));
        }
        rt.barrier()
    });
    ran.expect("both ranks end");
}

/// The buffers of dropped futures live until their operations have ended.
fn futures_dropped_half_way() {
    by_all_ways(|rt| {
        const LEN: usize = 10_000;
        let there = rt.share::<u64>(LEN)?;
        let peer = Rank(1 - rt.rank().0);
        rt.put_slice(there.at(peer, 0), &[7; LEN])?;
        rt.barrier()?;
        for round in 0..200 {
            let mut context = Context::from_waker(Waker::noop());
            let mut get =
                Box::pin(rt.ops().get_buffer(there.at(peer, 0), rt.buffer(LEN)?).into_future());
            let is_pending = get.as_mut().poll(&mut context).is_pending();
            match round % 3 {
                0 if is_pending => drop(get),
                1 if is_pending && round < 50 => std::mem::forget(get),
                _ => drop(get),
            }
            // This memory may have been that buffer's, and the get must not change it.
            let mut buf = rt.buffer::<u64>(LEN)?;
            buf.fill(9);
            let mut put = pin!(rt.ops().put_buffer(there.at(peer, 0), rt.buffer(0)?).into_future());
            let _ = put.as_mut().poll(&mut context);
            assert!(buf.iter().all(|value| *value == 9));
        }
        rt.barrier()
    });
}

/// Reads and waits under forged keys: a buffer that its rank has not shared is never
/// read, and no wait blocks.
fn forged_addresses() {
    by_all_ways(|rt| {
        let own = rt.rank();
        let mut buf = rt.buffer::<u64>(512)?;
        buf.fill(0x1234_5678_9abc_def0 + u64::from(own.0));
        rt.barrier()?;
        let mut random = SplitMix64::new(u64::from(own.0));
        let (mut refused, mut into) = (0, [0u64; 16]);
        for _ in 0..20_000 {
            let drawn = random.next();
            let key = match drawn % 4 {
                0 => RegionKey::from_bits((drawn >> 16) as u32),
                _ => RegionKey::new((drawn >> 8) as usize % 64, 1 + (drawn >> 20) as u32 % 4),
            };
            let agent = if drawn >> 40 & 3 == 0 { Agent::Device } else { Agent::Cpu };
            let offset = match drawn >> 44 & 3 {
                0 => random.next(),
                _ => (drawn >> 46) % 512 * 8,
            };
            let rank = Rank((drawn >> 60) as u32 % 3);
            let at = Remote::<u64>::new(RemoteAddr { offset, rank, key: key.of(agent) });
            let word = rt.get(at);
            refused += u32::from(word.is_err());
            assert!(word.is_err() || word? >> 8 != buf[0] >> 8, "a buffer is read under {key:?}");
            let _ = rt.get_slice(at, &mut into);
            let _ = rt.wait_until_timeout(at, Until::NotEqual(0), Duration::ZERO);
        }
        assert!(refused > 1000, "{refused} are refused");
        rt.barrier()
    });
}

fn forged_global_addresses() {
    by_all_ways(|rt| {
        let global = rt.global()?;
        let block = global.expose::<u64>(64)?;
        let mut random = SplitMix64::new(1000 + u64::from(rt.rank().0));
        let mut into = [0u64; 16];
        for _ in 0..10_000 {
            let drawn = random.next();
            let near = block.at(0).addr().to_bits() ^ (drawn & random.next() & random.next());
            let at = global.pointer::<u64>(if drawn & 1 == 0 { drawn } else { near });
            let _ = global.get(at);
            let _ = global.get_slice(at, &mut into);
            let _ = global.copy(block.at(0), at, (drawn >> 50) as usize);
            let _ = global.local(at, (drawn >> 40) as usize);
            let _ = global.index(at, drawn as i64);
            let _ = global.wait_until_timeout(at, Until::NotEqual(0), Duration::ZERO);
        }
        rt.barrier()
    });
}
