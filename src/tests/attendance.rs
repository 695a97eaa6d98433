//! Ranks of several workers, of which one polls: the other ULTs get their messages whatever
//! that worker, and a caller that polls for itself, have to do.

use crate::{Config, Error, Rank, Runtime};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_ult::Builder;

#[test]
fn a_message_comes_while_the_attendant_runs_a_handler() {
    let [begun, came] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let run = |rt: &Runtime| {
        if rt.rank() == Rank(1) {
            let (begun, seen) = (begun.clone(), came.clone());
            rt.handler(HOLD, move |_| {
                begun.store(true, Ordering::SeqCst);
                assert!(is_set_in_time(&seen), "no worker has looked for the message");
                []
            });
        }
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            rt.cast(Rank(1), HOLD, b"")?;
            assert!(is_set_in_time(&begun), "the handler has not begun");
            rt.comm().send(Rank(1), 7, b"now")?;
            return Ok(());
        }
        // All ULTs of this rank sleep while the handler runs.
        let (comm, came) = (rt.comm(), came.clone());
        let receiver = rt.spawn(move |_| {
            comm.recv(Rank(0), 7, &mut [0u8; 3])?;
            came.store(true, Ordering::SeqCst);
            Ok::<_, Error>(())
        });
        receiver.join().unwrap()
    };
    for workers in [2, 4] {
        for flag in [&begun, &came] {
            flag.store(false, Ordering::SeqCst);
        }
        config(workers).run_ranks(2, run).unwrap();
    }
}

/// A ULT polls for a message and lets another ULT of its worker run, which computes: the
/// other worker looks for messages meanwhile.
#[test]
fn a_message_comes_while_a_ult_that_polls_waits_for_its_worker() {
    let [begun, came] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let run = |rt: &Runtime| {
        if rt.rank() == Rank(0) {
            assert!(is_set_in_time(&begun), "the computation has not begun");
            rt.comm().send(Rank(1), 2, b"now")?;
            assert!(is_set_in_time(&came), "no worker has looked for the message");
            rt.comm().send(Rank(1), 1, b"end")?;
            return Ok::<_, Error>(());
        }
        let (comm, seen) = (rt.comm(), came.clone());
        let receiver = rt.spawn(move |_| {
            comm.recv(Rank(0), 2, &mut [0u8; 3])?;
            seen.store(true, Ordering::SeqCst);
            Ok::<_, Error>(())
        });
        let comm = rt.comm();
        let watcher = Builder::new().pin(0).spawn(move || {
            comm.recv(Rank(0), 1, &mut [0u8; 3])?;
            Ok::<_, Error>(())
        });
        let (begun, came) = (begun.clone(), came.clone());
        let computing = Builder::new().pin(0).spawn(move || {
            begun.store(true, Ordering::SeqCst);
            is_set_in_time(&came)
        });
        receiver.join().unwrap()?;
        watcher.join().unwrap()?;
        assert!(computing.join().unwrap());
        Ok(())
    };
    config(2).run_ranks(2, run).unwrap();
}

/// Callers that poll, callers that sleep, and workers that fall asleep meanwhile: no message
/// is left lying.
#[test]
fn pairs_of_ults_exchange_messages_beside_sleeping_workers() {
    for workers in 2..=4 {
        let run = |rt: &Runtime| {
            let ults: Vec<_> = (0..PAIRS)
                .map(|tag| {
                    let comm = rt.comm();
                    rt.spawn(move |rt: &Runtime| {
                        let other = Rank(1 - rt.rank().0);
                        let mut bytes = [0u8; 8];
                        for round in 0..ROUNDS {
                            if rt.rank() == Rank(0) {
                                comm.send(other, tag, &round.to_le_bytes())?;
                            }
                            comm.recv(other, tag, &mut bytes)?;
                            assert_eq!(bytes, round.to_le_bytes());
                            if rt.rank() == Rank(1) {
                                comm.send(other, tag, &bytes)?;
                            }
                            if round % 64 == u64::from(tag) {
                                tsumugi_ult::sleep(Duration::from_micros(200));
                            }
                        }
                        Ok::<_, Error>(())
                    })
                })
                .collect();
            ults.into_iter().try_for_each(|ult| ult.join().unwrap())
        };
        config(workers).run_ranks(2, run).unwrap();
    }
}

/// Workers that spin for a while before they sleep, on machines with few cores, too.
fn config(workers: usize) -> Config {
    Config::default().workers(workers).spin(50)
}

/// Waits until the flag is set; false if that does not happen for very long.
fn is_set_in_time(flag: &AtomicBool) -> bool {
    let start = Instant::now();
    while !flag.load(Ordering::SeqCst) {
        if start.elapsed() > VERY_LONG {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

const HOLD: u32 = 1;
const PAIRS: u32 = 3;
const ROUNDS: u64 = 300;
const VERY_LONG: Duration = Duration::from_secs(30);
