//! Functions of the program that the runtime calls and that panic or block.

use crate::Attack;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;
use tsumugi::{CallError, Config, Error, Path, Rank, Runtime};

pub const ALL: &[Attack] = &[
    ("callbacks_that_panic", callbacks_that_panic),
    ("callbacks_that_block", callbacks_that_block),
    ("wakers_that_panic", wakers_that_panic),
    ("handlers_that_panic", handlers_that_panic),
    ("handlers_that_block", handlers_that_block),
];

/// Runs two ranks with each path that operations can take.
fn by_all_ways(main: impl Fn(&Runtime) -> Result<(), Error> + Sync) {
    // The default hook writes a backtrace for each panic, which is too much for a pipe
    // that is read at the end.
    std::panic::set_hook(Box::new(|_| ()));
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        let config = Config::from_env().expect("an environment without errors").path(path);
        config.run_ranks(2, &main).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
}

/// Puts ten values, each with a callback; waits until all callbacks have run, and checks
/// the values.
fn puts_with(rt: &Runtime, then: fn()) -> Result<(), Error> {
    const PUTS: usize = 10;
    let words = rt.share::<u64>(PUTS)?;
    let peer = Rank(1 - rt.rank().0);
    let ended = Arc::new(AtomicUsize::new(0));
    for index in 0..PUTS {
        let mut buf = rt.buffer::<u64>(1)?;
        buf[0] = index as u64 + 1;
        let mut put = rt.ops().put_buffer(words.at(peer, index), buf);
        let ended = ended.clone();
        let mut callback = move |outcome: tsumugi::Outcome<_>| {
            outcome.result.unwrap();
            ended.fetch_add(1, Ordering::SeqCst);
            then();
        };
        while let Err(busy) = put.then(callback) {
            (put, callback) = busy.operation;
            tsumugi::ult::yield_now();
        }
    }
    while ended.load(Ordering::SeqCst) < PUTS {
        tsumugi::ult::yield_now();
    }
    rt.barrier()?;
    for index in 0..PUTS {
        assert_eq!(rt.get(words.at(rt.rank(), index))?, index as u64 + 1);
    }
    rt.barrier()
}

fn callbacks_that_panic() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a bomb");
        }
    }
    by_all_ways(|rt| puts_with(rt, || panic!("a callback")));
    by_all_ways(|rt| puts_with(rt, || std::panic::panic_any(Bomb)));
}

/// The callbacks run on the stack of a ULT, of a worker, or of a thread of the runtime.
fn callbacks_that_block() {
    by_all_ways(|rt| puts_with(rt, || tsumugi::ult::sleep(Duration::from_millis(1))));
    by_all_ways(|rt| puts_with(rt, tsumugi::ult::park));
    by_all_ways(|rt| puts_with(rt, || _ = tsumugi::ult::spawn(|| 3).join()));
    by_all_ways(|rt| puts_with(rt, tsumugi::ult::yield_now));
}

/// A future is woken by the thread that ends its operation: a thread of another rank, or
/// a ULT that has begun something else.
fn wakers_that_panic() {
    struct Loud(AtomicUsize);
    impl Wake for Loud {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("a waker");
        }
    }
    by_all_ways(|rt| {
        let words = rt.share::<u64>(1)?;
        let peer = Rank(1 - rt.rank().0);
        for _ in 0..30 {
            let loud = Arc::new(Loud(AtomicUsize::new(0)));
            let waker = loud.clone().into();
            let mut future =
                pin!(rt.ops().get_buffer(words.at(peer, 0), rt.buffer(1)?).into_future());
            let mut polls = 0;
            loop {
                // If there is no room for the operation, `poll` calls the waker itself.
                let poll = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    future.as_mut().poll(&mut Context::from_waker(&waker))
                }));
                match poll {
                    Ok(Poll::Ready(outcome)) => {
                        outcome.result?;
                        break;
                    }
                    Ok(Poll::Pending) => polls += 1,
                    Err(_) => break,
                }
                while loud.0.load(Ordering::SeqCst) < polls {
                    tsumugi::ult::yield_now();
                }
            }
            // Other operations still work.
            rt.fetch_add(words.at(peer, 0), 1)?;
        }
        rt.barrier()?;
        assert_eq!(rt.get(words.at(rt.rank(), 0))?, 30);
        rt.barrier()
    });
}

fn handlers_that_panic() {
    by_all_ways(|rt| {
        rt.handler(1, |message| {
            assert!(message.bytes[0] % 2 == 0, "an odd message");
            [message.bytes[0]]
        });
        rt.service(2, |_, _, bytes| {
            assert!(bytes[0] % 2 == 0, "an odd message");
            [bytes[0]]
        });
        rt.barrier()?;
        for (id, byte) in [1, 2].into_iter().flat_map(|id| (0..20).map(move |byte| (id, byte))) {
            let answer = rt.call(Rank(1 - rt.rank().0), id, &[byte]);
            match byte % 2 {
                0 => assert_eq!(answer?, [byte]),
                _ => assert!(matches!(answer, Err(Error::Call(CallError::Failed))), "{answer:?}"),
            }
        }
        rt.barrier()
    });
}

/// A call to a handler that would block ends with an error for the caller, and the job
/// goes on.
fn handlers_that_block() {
    by_all_ways(|rt| {
        let words = Arc::new(rt.share::<u64>(70_000)?);
        let own = rt.rank();
        let limit = Duration::from_millis(300);
        let block = |id, call: fn(&Runtime)| {
            let rt = rt.clone();
            rt.clone().handler(id, move |_| {
                call(&rt);
                [0u8; 0]
            });
        };
        block(1, |rt| _ = rt.call_timeout(rt.rank(), 9, &[1], Duration::from_millis(300)));
        block(2, |rt| _ = rt.call(rt.rank(), 9, &[1]));
        block(3, |rt| _ = rt.call(rt.rank(), 9, &[1; 5000]));
        block(4, |rt| _ = rt.barrier());
        block(5, |rt| _ = rt.comm().recv(tsumugi::Source::Any, 77, &mut [0u64; 1]));
        block(6, |rt| _ = rt.comm().recv_vec::<u64>(tsumugi::Source::Any, 77));
        block(7, |rt| _ = rt.comm().send(rt.rank(), 78, &vec![1u64; 200_000]));
        block(8, |rt| {
            let mut into = [0u64; 4];
            let comm = rt.comm();
            _ = comm.scope(|scope| scope.irecv(tsumugi::Source::Any, 77, &mut into).map(drop));
        });
        block(10, |rt| {
            let comm = rt.comm();
            _ = comm.irecv(tsumugi::Source::Any, 77, vec![0u64; 4]).unwrap().wait();
        });
        block(11, |_| tsumugi::ult::park());
        block(12, |_| tsumugi::ult::sleep(Duration::from_millis(1)));
        block(13, |_| _ = tsumugi::ult::spawn(|| 3).join());
        let shared = words.clone();
        let its = rt.clone();
        rt.handler(14, move |_| {
            // No rank changes this word.
            let _ = its.wait_until(shared.at(its.rank(), 5), tsumugi::Until::Equal(1));
            [0u8; 0]
        });
        rt.handler(9, |_| [0u8; 0]);
        rt.barrier()?;
        for id in [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14] {
            let answer = rt.call(Rank(1 - own.0), id, &[]);
            assert!(matches!(answer, Err(Error::Call(CallError::Failed))), "{id}: {answer:?}");
            let answer = rt.call_timeout(own, id, &[], limit * 100);
            assert!(matches!(answer, Err(Error::Call(CallError::Failed))), "{id}: {answer:?}");
        }
        // The job still works.
        rt.barrier()?;
        assert_eq!(rt.call(Rank(1 - own.0), 9, &[])?, b"");
        rt.put(words.at(own, 69_999), 3)?;
        assert_eq!(rt.sum(rt.get(words.at(own, 69_999))?)?, 6);
        rt.barrier()
    });
}
