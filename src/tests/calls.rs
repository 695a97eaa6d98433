//! Tests of messages between ranks of several nodes, over a network of threads: the
//! guarantees hold however late operations end, in any order, and however often
//! there is no room.

mod net;

use crate::tests::ending::cut_off;
use crate::{AddrError, CallError, Config, Error, Rank, Runtime};
use net::{Net, Plan};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tsumugi_conformance::Seeded;
use tsumugi_core::am::{CallPayload, HandlerAnswer, HandlerId, Inline, ReplyTo};
use tsumugi_core::mem::{Access, LocalAddr};
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tsumugi_core::wait::Wait;
use tsumugi_runtime::service::am::Function;
use tsumugi_ult::Here;

/// A network of one rank a node, without faults.
const CALM: Plan = Plan { per_node: 1, micros_max: 20, refuse: 0, room: 256, at_once: 0 };

/// Runs `main` on each rank, once the network between them is in use. Fails if that
/// takes too long, because a lost wake-up would end nothing.
fn run(
    ranks: u32,
    plan: Plan,
    seed: u64,
    main: impl Fn(&Runtime, &Net) -> Result<(), Error> + Sync + Send + 'static,
) -> Result<(), Error> {
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || {
        let (net, _running) = Net::start(ranks, plan, seed);
        let result = Config::default().workers(2).run_ranks(ranks, |rt| {
            net.join(rt);
            rt.barrier()?;
            let result = main(rt, &net).and_then(|()| {
                rt.handle().node().settle();
                rt.barrier()
            });
            net.leave(rt);
            result
        });
        let _ = done.send(result.map(|_: Vec<()>| ()));
    });
    let late = |_| panic!("seed {seed}: the ranks have failed or sleep for ever");
    outcome.recv_timeout(LIMIT).unwrap_or_else(late)
}

fn plan(seed: u64) -> Plan {
    let mut seeded = Seeded(seed);
    Plan {
        per_node: 1 + seeded.below(2) as u32,
        micros_max: [0, 20, 300][seeded.below(3) as usize],
        refuse: [0, 100, 700][seeded.below(3) as usize],
        room: [1, 4, 256][seeded.below(3) as usize],
        at_once: [0, 0, 300][seeded.below(3) as usize],
    }
}

#[test]
fn calls_casts_and_long_messages_arrive_once_in_order() {
    for seed in 0..12 {
        run(4, plan(seed), seed, move |rt, _| chatter(rt, seed)).unwrap();
    }
}

/// Exchanges messages with all ranks at once, and checks that each is handled in
/// order.
fn chatter(rt: &Runtime, seed: u64) -> Result<(), Error> {
    let size = rt.size() as usize;
    let next: Arc<Mutex<Vec<u64>>> = Arc::new(Mutex::new(vec![0; size]));
    rt.handler(COUNT, {
        let next = next.clone();
        move |message| {
            let mut next = next.lock().unwrap();
            let wanted = &mut next[message.from.0 as usize];
            let (number, rest) = message.bytes.split_at(8);
            assert_eq!(number, wanted.to_le_bytes(), "from {}", message.from);
            assert!(rest.iter().all(|byte| *byte == number[0]), "{} is torn", *wanted);
            *wanted += 1;
            number.to_vec()
        }
    });
    rt.service(LATER, |_, _, bytes| {
        Here.yield_now();
        bytes.to_vec()
    });
    rt.barrier()?;
    let senders: Vec<_> = (0..size as u32)
        .map(|to| {
            rt.spawn(move |rt: &Runtime| {
                let mut seeded = Seeded(seed << 8 | u64::from(to));
                for number in 0..ROUNDS {
                    let len = [8, 200, 3000][seeded.below(3) as usize];
                    let mut bytes = vec![number as u8; len];
                    bytes[..8].copy_from_slice(&number.to_le_bytes());
                    match seeded.below(2) {
                        0 => rt.cast(Rank(to), COUNT, &bytes)?,
                        _ => assert_eq!(rt.call(Rank(to), COUNT, &bytes)?, bytes[..8]),
                    }
                    if number % 4 == 0 {
                        assert_eq!(rt.call(Rank(to), LATER, &bytes[..8])?, bytes[..8]);
                    }
                }
                Ok::<_, Error>(())
            })
        })
        .collect();
    for sender in senders {
        sender.join().unwrap()?;
    }
    rt.handle().node().settle();
    rt.barrier()?;
    for from in 0..size as u32 {
        // The last messages that arrived may not have been handled yet.
        rt.call(rt.rank(), LATER, b"")?;
        while next.lock().unwrap()[from as usize] < ROUNDS {
            Here.yield_now();
        }
    }
    Ok(())
}

#[test]
fn a_time_limit_ends_a_remote_call_and_keeps_its_payload() {
    run(2, CALM, 1, |rt, _| {
        let gate = Arc::new(AtomicBool::new(false));
        rt.service(LATER, {
            let gate = gate.clone();
            move |_, _, _| {
                while !gate.load(Ordering::SeqCst) {
                    Here.yield_now();
                }
                []
            }
        });
        rt.handler(OPEN, {
            let gate = gate.clone();
            move |_| {
                gate.store(true, Ordering::SeqCst);
                []
            }
        });
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let buf = rt.buffer::<u8>(5000)?;
            // SAFETY: the buffer has that many bytes, and `kept` holds it below.
            let region = unsafe {
                rt.handle().direct().register(
                    std::ptr::NonNull::from(&buf[..]).cast(),
                    5000,
                    Access::Read,
                )?
            };
            let payload =
                CallPayload::Long { from: LocalAddr { key: region.key, offset: 0 }, bytes: 5000 };
            let kept = Arc::new(buf);
            let limit = Some(Duration::from_millis(5));
            let holds = Box::new(kept.clone());
            let ended =
                rt.handle().am().call(Rank(1), HandlerId(LATER), payload, Some(holds), limit);
            assert!(matches!(ended, Err(Error::Call(CallError::Timeout))), "{ended:?}");
            assert_eq!(Arc::strong_count(&kept), 2, "the target may still read the payload");
            rt.call(Rank(1), OPEN, b"")?;
            while Arc::strong_count(&kept) > 1 {
                Here.yield_now();
            }
            rt.handle().direct().unregister(region.key);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_death_ends_remote_calls_and_nothing_else() {
    for seed in 0..8 {
        let plan = Plan { per_node: 1, ..plan(seed) };
        let asked = Arc::new(AtomicU32::new(0));
        let failed = run(3, plan, seed, move |rt, net| {
            rt.handler(COUNT, |message| message.bytes[..8].to_vec());
            let duties = Arc::new(Mutex::new(Vec::<ReplyTo>::new()));
            let own = duties.clone();
            let keep = move |_: Rank, _: Box<[u8]>, reply_to: Option<ReplyTo>| {
                own.lock().unwrap().extend(reply_to);
            };
            rt.handle().am().set(HandlerId(LATER), Function::Elsewhere(Box::new(keep)));
            rt.barrier()?;
            if rt.rank() == Rank(2) {
                // As many requests as there is room for: then no operation is under
                // way, or one still is.
                let wanted = [0, 5, 32][seed as usize % 3];
                while duties.lock().unwrap().len() < wanted {
                    Here.yield_now();
                }
                net.kill(Rank(2));
                return Err(Error::program("no more"));
            }
            let lost = CallError::PeerLost { rank: Rank(2) };
            let callers: Vec<_> = (0..20)
                .map(|index| {
                    rt.spawn(move |rt: &Runtime| {
                        let long = vec![1; [8, 3000][index % 2]];
                        let result = rt.call(Rank(2), LATER, &long).unwrap_err();
                        assert!(matches!(result, Error::Call(error) if error == lost), "{result}");
                    })
                })
                .collect();
            for caller in callers {
                caller.join().unwrap();
            }
            let result = rt.cast(Rank(2), COUNT, b"").unwrap_err();
            assert!(matches!(result, Error::Call(error) if error == lost), "{result}");
            let other = Rank(1 - rt.rank().0);
            for number in 0..20u64 {
                let bytes = number.to_le_bytes();
                assert_eq!(rt.call(other, COUNT, &bytes)?, bytes);
            }
            // The other rank may still call.
            asked.fetch_add(1, Ordering::Release);
            while asked.load(Ordering::Acquire) < 2 {
                Here.yield_now();
            }
            // This rank has got the death from the network, perhaps before the dead
            // rank has ended; the dead rank must be the first to fail.
            while rt.handle().node().member().control_of(Rank(2)).is_alive() {
                Here.yield_now();
            }
            Err(Error::program("we neither"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more", "seed {seed}");
    }
}

#[test]
fn an_operation_that_ends_after_its_job_has_no_effect() {
    let (net, running) = Net::start(2, CALM, 5);
    let config = Config::default().workers(1);
    let job = config.run_ranks(2, |rt| {
        net.join(rt);
        rt.handler(COUNT, |_| []);
        rt.barrier()?;
        net.hold(&[Rank(0), Rank(1)]);
        // The put is not completed to the machine, so its bell is never rung.
        rt.handle().am().cast(Rank(1 - rt.rank().0), HandlerId(COUNT), b"late")?;
        net.leave(rt);
        rt.barrier()?;
        // Ends as a lost rank does: without waiting for the rest.
        Err::<(), _>(Error::program("enough"))
    });
    assert!(job.is_err());
    assert_eq!(net.under_way(), 2);
    drop(running);
    assert_eq!(net.under_way(), 0);
}

#[test]
fn a_rank_that_computes_is_woken_by_its_helper() {
    run(2, CALM, 6, |rt, _| {
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        rt.handler(COUNT, move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            []
        });
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            for _ in 0..20 {
                rt.call(Rank(1), COUNT, b"")?;
            }
            return Ok(());
        }
        // Both workers compute, and never poll.
        let compute = |count: &AtomicU64| {
            while count.load(Ordering::SeqCst) < 20 {
                std::hint::spin_loop();
            }
        };
        let shared = count.clone();
        let other = rt.spawn(move |_| compute(&shared));
        compute(&count);
        other.join().unwrap();
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_rank_with_an_operation_under_way_is_not_quiet() {
    run(2, CALM, 7, |rt, net| {
        let outside = || rt.handle().node().member().control().outside().load(Ordering::SeqCst);
        rt.handler(COUNT, |_| []);
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            net.hold(&[Rank(1)]);
            rt.cast(Rank(1), COUNT, b"")?;
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(5) {
                Here.yield_now();
            }
            assert!(outside() > 0, "an operation is in progress");
            net.hold(&[]);
            rt.handle().node().settle();
            assert_eq!(net.under_way(), 0, "the operation has ended");
            while outside() > 0 {
                Here.yield_now();
            }
        }
        rt.barrier()
    })
    .unwrap();
}

#[test]
fn a_refused_operation_is_offered_again_without_a_doorbell() {
    // No other operation is under way that could end.
    let refusing = Plan { refuse: 950, ..CALM };
    run(2, refusing, 8, |rt, net| {
        rt.handler(COUNT, |message| message.bytes.to_vec());
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            for number in 0..10u64 {
                let bytes = number.to_le_bytes();
                assert_eq!(rt.call(Rank(1), COUNT, &bytes)?, bytes);
            }
            assert!(net.refused() > 40, "{} refused", net.refused());
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_message_of_an_os_thread_is_offered_although_all_workers_sleep() {
    let refusing = Plan { refuse: 950, ..CALM };
    run(2, refusing, 12, |rt, _| {
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        rt.handler(COUNT, move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            []
        });
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let own = rt.clone();
            thread::spawn(move || {
                // All workers are asleep in the barrier by then.
                thread::sleep(Duration::from_millis(50));
                own.cast(Rank(1), COUNT, b"").unwrap();
            });
        }
        // This rank sends nothing to the other one before.
        while rt.rank() == Rank(1) && count.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        rt.barrier()
    })
    .unwrap();
}

#[test]
fn a_rank_that_stalls_does_not_delay_others() {
    run(3, Plan { room: 3, ..CALM }, 11, |rt, net| {
        rt.handler(COUNT, |message| message.bytes.to_vec());
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            net.hold(&[Rank(2)]);
            rt.cast(Rank(2), COUNT, b"")?;
            let call =
                |number: u8| rt.spawn(move |rt: &Runtime| rt.call(Rank(1), COUNT, &[number]));
            let calls: Vec<_> = (0..40).map(call).collect();
            for (number, call) in (0..).zip(calls) {
                assert_eq!(call.join().unwrap()?, [number]);
            }
            net.hold(&[]);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_node_that_stalls_does_not_delay_the_own_node() {
    run(8, Plan { per_node: 2, ..CALM }, 14, |rt, net| {
        rt.handler(COUNT, |message| message.bytes.to_vec());
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let others: Vec<Rank> = (2..8).map(Rank).collect();
            net.hold(&others);
            let cast = |to| rt.spawn(move |rt: &Runtime| rt.cast(to, COUNT, b""));
            let casts: Vec<_> =
                others.iter().flat_map(|to| (0..16).map(|_| *to)).map(cast).collect();
            for _ in 0..100 {
                Here.yield_now();
            }
            for number in 0..40 {
                assert_eq!(rt.call(Rank(1), COUNT, &[number])?, [number]);
            }
            net.hold(&[]);
            for cast in casts {
                cast.join().unwrap()?;
            }
        }
        rt.barrier()
    })
    .unwrap();
}

#[test]
fn an_operation_that_never_began_is_freed_with_the_rank() {
    let (net, _running) = Net::start(2, Plan { room: 0, ..CALM }, 13);
    let gone = Mutex::new(Vec::new());
    let job = Config::default().workers(1).run_ranks(2, |rt| {
        net.join(rt);
        rt.barrier()?;
        rt.handle().am().cast(Rank(1 - rt.rank().0), HandlerId(COUNT), b"never")?;
        gone.lock().unwrap().push(rt.handle().am().operations());
        net.leave(rt);
        Err::<(), _>(Error::program("enough"))
    });
    assert!(job.is_err());
    for table in gone.into_inner().unwrap() {
        assert!(table.strong_count() == 0, "a refused operation keeps the table");
    }
}

#[test]
fn a_refused_address_ends_the_calls() {
    run(2, CALM, 9, |rt, _| {
        rt.handler(COUNT, |_| []);
        rt.barrier()?;
        if rt.rank() == Rank(1) {
            rt.handle().direct().unregister(rt.handle().am().key());
        }
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let lost = rt.call(Rank(1), COUNT, b"").unwrap_err();
            let wanted = CallError::PeerLost { rank: Rank(1) };
            assert!(matches!(lost, Error::Call(error) if error == wanted), "{lost}");
            let nobody = rt.call(Rank(2), COUNT, b"").unwrap_err();
            let wanted = AddrError::NoSuchRank { rank: Rank(2), size: 2 };
            assert!(matches!(nobody, Error::Addr(error) if error == wanted), "{nobody}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn answers_may_come_late_and_from_any_thread() {
    run(2, Plan { room: 2, ..CALM }, 10, |rt, _| {
        let duties = Arc::new(Mutex::new(Vec::<(Box<[u8]>, ReplyTo)>::new()));
        let own = duties.clone();
        let keep = move |_: Rank, bytes: Box<[u8]>, reply_to: Option<ReplyTo>| {
            own.lock().unwrap().extend(reply_to.map(|reply_to| (bytes, reply_to)));
        };
        rt.handle().am().set(HandlerId(LATER), Function::Elsewhere(Box::new(keep)));
        rt.barrier()?;
        let peer = Rank(1 - rt.rank().0);
        let call = |number: u8| rt.spawn(move |rt: &Runtime| rt.call(peer, LATER, &[number]));
        let calls: Vec<_> = (0..16).map(call).collect();
        while duties.lock().unwrap().len() < 16 {
            Here.yield_now();
        }
        let runtime = rt.clone();
        let taken = std::mem::take(&mut *duties.lock().unwrap());
        let answers = thread::spawn(move || {
            for (bytes, reply_to) in taken.into_iter().rev() {
                let answer = tsumugi_core::am::Inline::new(&bytes).expect("one byte");
                runtime.handle().am().answer(reply_to, &HandlerAnswer::Value(answer));
            }
        });
        for (number, call) in (0..).zip(calls) {
            assert_eq!(call.join().unwrap()?, [number]);
        }
        answers.join().unwrap();
        Ok(())
    })
    .unwrap();
}

/// The time limit of a call whose ULT was cut off wakes no caller, and the call does not
/// count as in progress outside of the rank any more.
#[test]
fn the_time_limit_of_a_ult_that_was_cut_off_is_dropped() {
    run(2, CALM, 11, |rt, _| {
        let gate = Arc::new(AtomicBool::new(false));
        let (own, opens) = (gate.clone(), gate);
        rt.service(LATER, move |_, _, _| {
            while !own.load(Ordering::SeqCst) {
                Here.yield_now();
            }
            []
        });
        rt.handler(OPEN, move |_| {
            opens.store(true, Ordering::SeqCst);
            []
        });
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let theirs = rt.clone();
            let limit = Duration::from_secs(1000);
            cut_off(move || drop(theirs.call_timeout(Rank(1), LATER, b"", limit)));
            rt.handle().node().settle();
            while rt.handle().node().member().control().outside().load(Ordering::SeqCst) > 0 {
                Here.yield_now();
            }
            rt.call(Rank(1), OPEN, b"")?;
        }
        rt.barrier()
    })
    .unwrap();
}

#[test]
fn an_answer_of_a_ult_that_was_cut_off_is_sent() {
    run(6, CALM, 12, |rt, net| {
        rt.handler(COUNT, |_| []);
        let duty = Arc::new(Mutex::new(None));
        let own = duty.clone();
        let keep = move |_: Rank, _: Box<[u8]>, reply_to| *own.lock().unwrap() = reply_to;
        rt.handle().am().set(HandlerId(LATER), Function::Elsewhere(Box::new(keep)));
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            assert_eq!(rt.call(Rank(1), LATER, b"")?, [7]);
        } else if rt.rank() == Rank(1) {
            let reply_to = loop {
                if let Some(reply_to) = duty.lock().unwrap().take() {
                    break reply_to;
                }
                Here.yield_now();
            };
            let others = [0, 2, 3, 4, 5].map(Rank);
            for rank in others {
                rt.call(rank, COUNT, b"")?;
            }
            // No operation of this rank ends, and its staging cells fill up.
            net.hold(&others);
            rt.handle().am().fill_staging(&others, HandlerId(COUNT));
            let theirs = rt.clone();
            cut_off(move || {
                let answer = Inline::new(&[7]).expect("one byte");
                theirs.handle().am().answer(reply_to, &HandlerAnswer::Value(answer));
            });
            net.hold(&[]);
        }
        rt.barrier()
    })
    .unwrap();
}

const COUNT: u32 = 1;
const LATER: u32 = 2;
const OPEN: u32 = 3;
const ROUNDS: u64 = 60;
const LIMIT: Duration = Duration::from_secs(300);
