//! Values of one rank that are used with the handle of another rank, which is a thread of
//! the same process, or of the next job; and what the end of a job leaves behind.

use crate::Attack;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tsumugi::array::{ArrayOptions, Distribution, PageId};
use tsumugi::boot::Given;
use tsumugi::global::SegmentSource;
use tsumugi::{
    Buffer, CallError, Comm, Config, Error, Exposed, MessageError, Path, Rank, Runtime, Source,
    Tags, ult,
};

pub const ALL: &[Attack] = &[
    ("buffers_of_another_rank", buffers_of_another_rank),
    ("buffers_of_an_earlier_job", buffers_of_an_earlier_job),
    ("memory_of_another_rank_registered", memory_of_another_rank_registered),
    ("communicators_of_another_rank", communicators_of_another_rank),
    ("handlers_that_call_when_dropped", handlers_that_call_when_dropped),
    ("handlers_set_when_a_job_ends", handlers_set_when_a_job_ends),
    ("pages_for_ranks_that_do_not_exist", pages_for_ranks_that_do_not_exist),
    ("threads_that_wait_when_their_job_ends", threads_that_wait_when_their_job_ends),
    ("threads_that_exchange_when_their_job_ends", threads_that_exchange_when_their_job_ends),
    ("threads_of_a_rank_that_panics", threads_of_a_rank_that_panics),
    ("more_ranks_than_a_job_has", more_ranks_than_a_job_has),
];

fn config() -> Config {
    Config::from_env().expect("an environment without errors")
}

/// Checks that `call` panics with a sentence that has `part`.
fn is_refused<R>(part: &str, call: impl FnOnce() -> R) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else { panic!("not refused: {part}") };
    let told = panic.downcast_ref::<String>().expect("a sentence");
    assert!(told.contains(part), "{told:?} has no {part:?}");
}

/// Calls each operation with `buf`, a buffer of another rank or job, in which no byte may
/// be read or written; neither may one of the own buffer with the same key.
fn each_call(rt: &Runtime, part: &str, bufs: &mut dyn FnMut() -> Buffer<u8>) -> Result<(), Error> {
    let words = rt.share::<u8>(64)?;
    rt.put_slice(words.at(rt.rank(), 0), &[7; 64])?;
    let own: Vec<Buffer<u8>> = (0..16).map(|_| rt.buffer(64)).collect::<Result<_, _>>()?;
    let at = words.at(rt.rank(), 0);
    is_refused(part, || drop(rt.ops().get_buffer(at, bufs())));
    is_refused(part, || drop(rt.ops().put_buffer(at, bufs())));
    is_refused(part, || rt.call_buffer(rt.rank(), 1, bufs()));
    assert!(own.iter().all(|buf| buf.iter().all(|byte| *byte == 0)), "an own buffer has changed");
    let mut there = [0; 64];
    rt.get_slice(at, &mut there)?;
    assert_eq!(there, [7; 64]);
    Ok(())
}

fn buffers_of_another_rank() {
    for path in [Path::Direct, Path::Delegate, Path::Offload] {
        let given: Mutex<Vec<Buffer<u8>>> = Mutex::default();
        let ran = config().path(path).run_ranks(2, |rt| {
            rt.handler(1, |_| [0u8; 0]);
            if rt.rank() == Rank(0) {
                for _ in 0..7 {
                    given.lock().unwrap().push(rt.buffer(64)?);
                }
            }
            rt.barrier()?;
            if rt.rank() == Rank(1) {
                let part = "the buffer belongs to rank 0, and not to rank 1";
                let mut bufs = || given.lock().unwrap().pop().expect("one for each call");
                // `share` is collective.
                each_call(rt, part, &mut bufs)?;
            } else {
                rt.share::<u8>(64)?;
            }
            rt.barrier()
        });
        ran.unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
}

fn buffers_of_an_earlier_job() {
    let mut given: Vec<Buffer<u8>> = Vec::new();
    let earlier = tsumugi::run_ranks(1, |rt| (0..7).map(|_| rt.buffer(64)).collect());
    given.extend(earlier.expect("the rank ends").into_iter().flat_map(|bufs: Vec<_>| bufs));
    let given = Mutex::new(given);
    let ran = tsumugi::run_ranks(1, |rt| {
        rt.handler(1, |_| [0u8; 0]);
        let mut bufs = || given.lock().unwrap().pop().expect("one for each call");
        each_call(rt, "the buffer belongs to rank 0 of another job, and not to rank 0", &mut bufs)
    });
    ran.expect("the rank ends");
}

fn memory_of_another_rank_registered() {
    let given: Mutex<Option<Exposed<u64>>> = Mutex::default();
    let ran = tsumugi::run_ranks(2, |rt| {
        let global = rt.global()?;
        let own = rt.expose::<u64>(8)?;
        if rt.rank() == Rank(0) {
            *given.lock().unwrap() = Some(rt.expose(8)?);
        }
        rt.barrier()?;
        if rt.rank() == Rank(1) {
            let theirs = given.lock().unwrap().take().expect("rank 0 has stored it");
            let part = "the array belongs to rank 0, and not to rank 1";
            is_refused(part, || global.register(theirs));
            // It has taken no name.
            let block = global.register(own)?;
            global.put(block.at(0), 9u64)?;
            assert_eq!(rt.get(block.unregister().at(0))?, 9);
        }
        rt.barrier()
    });
    ran.expect("both ranks end");
}

fn communicators_of_another_rank() {
    let given: Mutex<Option<Comm>> = Mutex::default();
    let ran = tsumugi::run_ranks(2, |rt| {
        let global = rt.global()?;
        if rt.rank() == Rank(0) {
            *given.lock().unwrap() = Some(rt.comm());
        }
        rt.barrier()?;
        if rt.rank() == Rank(1) {
            let comm = given.lock().unwrap().take().expect("rank 0 has stored it");
            let way = (&comm, Rank(0), 5);
            let part = "the communicator belongs to rank 0, and not to rank 1";
            is_refused(part, || global.channel_to(way, 64));
            is_refused(part, || global.channel_from(way, 64));
            let own = global.starter(Rank(1))?.addr();
            is_refused(part, || SegmentSource::connect(&global, way, own, (64, 2)));
        }
        rt.barrier()
    });
    ran.expect("both ranks end");
}

/// Calls what it has when it is dropped.
struct Drops<F: FnMut()>(F);

impl<F: FnMut()> Drop for Drops<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// A handler that is replaced is dropped without a lock: its values may set handlers, sleep
/// and call.
fn handlers_that_call_when_dropped() {
    let ran = tsumugi::run_ranks(1, |rt| {
        rt.handler(3, |_| [3u8]);
        let (here, seen) = (rt.clone(), Arc::new(Mutex::new(None)));
        let sees = seen.clone();
        let drops = Drops(move || {
            here.handler(2, |_| [2u8]);
            ult::sleep(Duration::from_millis(2));
            *sees.lock().unwrap() = Some(here.call(Rank(0), 3, b"").unwrap());
        });
        rt.handler(1, move |_| {
            let _ = &drops;
            [1u8]
        });
        rt.handler(1, |_| [4u8]);
        assert_eq!(seen.lock().unwrap().take(), Some(vec![3]));
        assert_eq!((rt.call(Rank(0), 1, b"")?, rt.call(Rank(0), 2, b"")?), (vec![4], vec![2]));
        // A handler that replaces itself is dropped when it has returned, on the thread
        // that pumps: what would sleep there panics, and the job goes on.
        let (here, slept) = (rt.clone(), Arc::new(Mutex::new(false)));
        let sleeps = slept.clone();
        let drops = Drops(move || {
            ult::sleep(Duration::from_millis(2));
            *sleeps.lock().unwrap() = true;
        });
        rt.handler(5, move |_| {
            let _ = &drops;
            here.handler(5, |_| [6u8]);
            [5u8]
        });
        assert_eq!((rt.call(Rank(0), 5, b"")?, rt.call(Rank(0), 5, b"")?), (vec![5], vec![6]));
        assert!(!*slept.lock().unwrap(), "the drop has slept on the thread that pumps");
        Ok::<_, Error>(())
    });
    ran.expect("the rank ends");
}

/// Handlers that the end of the job drops may set handlers: those are dropped, too.
fn handlers_set_when_a_job_ends() {
    struct Sets(Runtime, Arc<Mutex<u32>>);
    impl Drop for Sets {
        fn drop(&mut self) {
            *self.1.lock().unwrap() += 1;
            let next = Sets(self.0.clone(), self.1.clone());
            // Only a few times, because each of them sets one more.
            if *self.1.lock().unwrap() < 5 {
                self.0.handler(1, move |_| {
                    let _ = &next;
                    [0u8]
                });
            } else {
                std::mem::forget(next);
            }
            let called = self.0.call(Rank(0), 1, b"");
            assert!(matches!(called, Err(Error::Call(CallError::Ended))), "{called:?}");
        }
    }
    let count = Arc::new(Mutex::new(0));
    let ran = tsumugi::run_ranks(1, |rt| {
        let sets = Sets(rt.clone(), count.clone());
        rt.handler(1, move |_| {
            let _ = &sets;
            [0u8]
        });
        Ok::<_, Error>(())
    });
    ran.expect("the rank ends");
    assert_eq!(*count.lock().unwrap(), 5);
}

fn pages_for_ranks_that_do_not_exist() {
    let by = |first: fn(PageId) -> Rank| {
        ArrayOptions::new().distribution(Distribution::By(first)).page_len(100)
    };
    let ran = tsumugi::run_ranks(2, |rt| {
        let refused = by(|page| Rank(if page.0 < 3 { 1 } else { 99 })).create::<u64>(rt, 500);
        let told = refused.map(drop).unwrap_err().to_string();
        for part in ["page 3", "rank 99", "2 ranks"] {
            assert!(told.contains(part), "{told:?} has no {part:?}");
        }
        let array = by(|page| Rank(page.0 as u32 % 2)).create::<u64>(rt, 500)?;
        assert_eq!(array.get(499)?, 0);
        rt.barrier()
    });
    ran.expect("both ranks end");
}

fn is_ended<T: std::fmt::Debug>(result: Result<T, MessageError>) {
    assert!(matches!(result, Err(MessageError::Ended)), "{result:?}");
}

/// Threads that are in each of the calls when the job ends: all calls end with an error.
fn threads_that_wait_when_their_job_ends() {
    let threads = Mutex::new(Vec::new());
    let kept = Mutex::new(Vec::new());
    for workers in [1, 2] {
        let ran = config().workers(workers).run_ranks(2, |rt| {
            let peer = Rank(1 - rt.rank().0);
            let spawn = |wait: fn(&Comm, Rank)| {
                let comm = rt.comm();
                threads.lock().unwrap().push(thread::spawn(move || wait(&comm, peer)));
            };
            spawn(|comm, peer| is_ended(comm.recv(peer, 1, &mut [0u8; 4])));
            spawn(|comm, peer| is_ended(comm.recv(peer, 2, &mut vec![0u8; 1 << 20])));
            spawn(|comm, _| is_ended(comm.recv(Source::Any, 3, &mut vec![0u8; 1 << 20])));
            spawn(|comm, _| is_ended(comm.recv_vec::<u64>(Source::Any, 4)));
            spawn(|comm, peer| is_ended(comm.probe(peer, 5)));
            spawn(|comm, peer| is_ended(comm.send(peer, 6, &vec![1u8; 1 << 20])));
            spawn(|comm, peer| {
                let mut into = vec![0u8; 100_000];
                let (out, _) = (vec![2u8; 100_000], ());
                comm.scope(|scope| {
                    std::mem::forget(scope.irecv(peer, 7, &mut into));
                    std::mem::forget(scope.isend(peer, 8, &out));
                });
                let buf = comm.irecv(peer, 9, vec![0u8; 100_000]);
                is_ended(buf.map(drop));
            });
            spawn(|comm, peer| {
                let one = comm.irecv(peer, 10, vec![0u8; 100_000]).unwrap();
                let other = comm.irecv(Source::Any, 11, vec![0u8; 8]).unwrap();
                comm.wait_any(&[&one, &other]);
                comm.wait_all(&[&one, &other]);
                is_ended(one.wait());
                is_ended(other.wait());
            });
            spawn(|comm, peer| {
                let polled = comm.irecv(peer, 12, vec![0u8; 100_000]).unwrap();
                while !tsumugi::comm::Message::is_done(&polled) {
                    thread::yield_now();
                }
                is_ended(polled.wait());
            });
            kept.lock().unwrap().push(rt.comm());
            thread::sleep(Duration::from_millis(200));
            Ok::<_, Error>(())
        });
        ran.expect("both ranks end");
        for thread in threads.lock().unwrap().drain(..) {
            thread.join().expect("its call ends with the error");
        }
        // And calls that begin after the end.
        for comm in kept.lock().unwrap().drain(..) {
            for to in [Rank(0), Rank(1)] {
                is_ended(comm.send(to, 1, &[0u8; 4]));
                is_ended(comm.send(to, 1, &vec![0u8; 1 << 20]));
                is_ended(comm.recv(to, Tags::Any, &mut [0u8; 4]));
                is_ended(comm.recv(Source::Any, 1, &mut vec![0u8; 1 << 20]));
                is_ended(comm.recv_vec::<u8>(to, 1));
                is_ended(comm.probe(to, 1));
            }
        }
    }
}

/// Threads of two ranks that send long messages to each other while their jobs end: each
/// buffer is the thread's own again when its call has returned.
fn threads_that_exchange_when_their_job_ends() {
    let threads = Mutex::new(Vec::new());
    for round in 0..40 {
        let ran = config().run_ranks(2, |rt| {
            for tag in 0..3u32 {
                let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
                let bytes = 1000 << (3 * tag);
                threads.lock().unwrap().push(thread::spawn(move || {
                    let (out, mut into) = (vec![tag as u8 + 1; bytes], vec![0u8; bytes]);
                    let error = loop {
                        let moved = comm.send_recv(peer, tag, &out, peer, tag, &mut into);
                        match moved {
                            Ok(_) => assert!(into.iter().all(|byte| *byte == tag as u8 + 1)),
                            Err(error) => break error,
                        }
                    };
                    into.fill(0);
                    thread::sleep(Duration::from_millis(2));
                    assert!(into.iter().all(|byte| *byte == 0), "written after {error:?}");
                    is_ended::<()>(Err(error));
                }));
            }
            thread::sleep(Duration::from_millis(5 + round % 7));
            Ok::<_, Error>(())
        });
        ran.expect("both ranks end");
        for thread in threads.lock().unwrap().drain(..) {
            thread.join().expect("the buffer is its own");
        }
    }
}

/// The same if a rank panics.
fn threads_of_a_rank_that_panics() {
    let threads = Mutex::new(Vec::new());
    let ran = catch_unwind(AssertUnwindSafe(|| {
        tsumugi::run_ranks(2, |rt| {
            let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
            threads.lock().unwrap().push(thread::spawn(move || {
                let received = comm.recv(peer, 1, &mut vec![0u8; 100_000]);
                let lost = matches!(received, Err(MessageError::PeerLost { .. }));
                assert!(lost || matches!(received, Err(MessageError::Ended)), "{received:?}");
            }));
            thread::sleep(Duration::from_millis(50));
            assert!(rt.rank() == Rank(0), "rank 1 panics");
            rt.barrier()
        })
    }));
    assert!(ran.is_err());
    for thread in threads.into_inner().unwrap() {
        thread.join().expect("its call ends with an error");
    }
}

fn more_ranks_than_a_job_has() {
    for size in [u32::MAX, 1 << 30, (1 << 24) + 1] {
        let given = Given::new(Rank(0), size, |_: &[u8], _: &mut [u8]| true).map(drop);
        let told = given.unwrap_err().to_string();
        assert!(told.contains(&size.to_string()) && told.contains("16777216"), "{told}");
    }
}
