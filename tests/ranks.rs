//! The interface of the runtime, on ranks that are threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tsumugi::ult::block_on;
use tsumugi::{
    AddrError, Buffer, CollError, Config, Error, Outcome, Path, Rank, Remote, RemoteAddr, Runtime,
    Signal, Until,
};
use tsumugi_core::mem::RegionKey;

/// Runs `main` on `size` ranks, once with each path for operations; returns the results of
/// the last run.
fn run_ranks<T: Send>(
    size: u32,
    main: impl Fn(&Runtime) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    Config::default().path(Path::Delegate).run_ranks(size, &main)?;
    Config::default().path(Path::Offload).run_ranks(size, &main)?;
    Config::default().run_ranks(size, &main)
}

#[test]
fn every_operation_reaches_the_other_rank() {
    run_ranks(2, |rt: &Runtime| {
        let words = rt.share::<u64>(8)?;
        let peer = Rank(1 - rt.rank().0);
        rt.put(words.at(peer, 0), 5)?;
        rt.barrier()?;
        let at = words.at(peer, 0);
        assert_eq!(rt.get(at)?, 5);
        assert_eq!(rt.fetch_add(at, 2)?, 5);
        assert_eq!(rt.fetch_and(at, 6)?, 7);
        assert_eq!(rt.fetch_or(at, 8)?, 6);
        assert_eq!(rt.fetch_xor(at, 1)?, 14);
        assert_eq!(rt.swap(at, 9)?, 15);
        assert_eq!(rt.compare_swap(at, 8, 1)?, 9);
        assert_eq!(rt.compare_swap(at, 9, 1)?, 9);
        assert_eq!(rt.get(at)?, 1);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn values_of_every_size_arrive() {
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        let bytes = rt.share::<u8>(4)?;
        let halves = rt.share::<u16>(4)?;
        let floats = rt.share::<f32>(4)?;
        let triples = rt.share::<[u64; 3]>(4)?;
        rt.put(bytes.at(peer, 3), 200)?;
        rt.put(halves.at(peer, 3), 60_000)?;
        rt.put(floats.at(peer, 3), -1.5)?;
        rt.put(triples.at(peer, 3), [1, 2, 3])?;
        rt.barrier()?;
        assert_eq!(rt.get(bytes.own().at(3))?, 200);
        assert_eq!(rt.get(halves.own().at(3))?, 60_000);
        assert_eq!(rt.get(floats.own().at(3))?, -1.5);
        assert_eq!(rt.get(triples.own().at(3))?, [1, 2, 3]);
        assert_eq!(rt.get(bytes.own().at(2))?, 0);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn bad_addresses_are_errors_at_the_call() {
    run_ranks(2, |rt: &Runtime| {
        let words = rt.share::<u64>(8)?;
        let peer = Rank(1 - rt.rank().0);
        let beyond = words.at(peer, 8);
        let range = AddrError::OutOfRange { addr: beyond.addr(), bytes: 8, region_bytes: Some(64) };
        assert_eq!(rt.get(beyond), Err(range));
        assert!(rt.get(words.at(peer, usize::MAX)).is_err());
        let nobody = AddrError::NoSuchRank { rank: Rank(2), size: 2 };
        assert_eq!(rt.put(words.at(Rank(2), 0), 1), Err(nobody));
        let odd = Remote::<u64>::new(words.at(peer, 0).addr().add(4));
        let unaligned = AddrError::Unaligned { addr: odd.addr(), align: 8 };
        assert_eq!(rt.fetch_add(odd, 1), Err(unaligned));
        let not_own = AddrError::OtherRank { addr: words.at(peer, 0).addr() };
        assert_eq!(rt.wait_until(words.at(peer, 0), Until::Equal(0)), Err(not_own));
        rt.barrier()?;

        let old = words.at(peer, 0);
        drop(words);
        rt.barrier()?;
        rt.barrier()?;
        assert_eq!(rt.get(old), Err(AddrError::StaleKey { addr: old.addr() }));
        let _words = rt.share::<u64>(8)?;
        assert_eq!(rt.get(old), Err(AddrError::StaleKey { addr: old.addr() }));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_pointer_leads_to_the_same_word() {
    run_ranks(2, |rt: &Runtime| {
        let words = rt.share::<u64>(8)?;
        let peer = Rank(1 - rt.rank().0);
        let place = rt.pointer(words.at(peer, 3))?;
        // SAFETY: the word lives until both ranks have passed the barrier, and only this
        // rank writes to it.
        unsafe { place.write_volatile(7) };
        assert_eq!(rt.get(words.at(peer, 3)), Ok(7));
        let beyond = words.at(peer, 8);
        let range = AddrError::OutOfRange { addr: beyond.addr(), bytes: 8, region_bytes: Some(64) };
        assert_eq!(rt.pointer(beyond), Err(range));
        let odd = tsumugi::Remote::<u64>::new(words.at(peer, 0).addr().add(4));
        assert!(matches!(rt.pointer(odd), Err(AddrError::Unaligned { align: 8, .. })));
        rt.barrier()
    })
    .map(|_: Vec<()>| ())
    .unwrap();
}

#[test]
fn arrays_of_different_lengths_are_refused() {
    let failed = run_ranks(2, |rt: &Runtime| {
        rt.share::<u64>(8 + rt.rank().0 as usize)?;
        Ok::<_, Error>(())
    });
    // The error is that of the rank that failed first.
    let said = failed.unwrap_err().to_string();
    let either = [(8, 1, 9), (9, 0, 8)].map(|(own, rank, other)| {
        format!(
            "this rank has called a collective allocation with length {own}, rank {rank} with \
             length {other}; all ranks must give the same length"
        )
    });
    assert!(either.contains(&said), "{said}");
}

#[test]
fn a_request_for_too_much_memory_is_an_error() {
    run_ranks(1, |rt: &Runtime| {
        let failed = rt.expose::<u64>(1 << 50).unwrap_err();
        assert!(matches!(failed, Error::OutOfMemory { bytes, .. } if bytes == 8 << 50), "{failed}");
        assert!(failed.to_string().contains("TSUMUGI_EXPOSED_BYTES"), "{failed}");
        assert!(rt.expose::<u64>(usize::MAX).is_err());
        let failed = rt.buffer::<u64>(1 << 50).unwrap_err();
        assert!(failed.to_string().contains("TSUMUGI_HEAP_BYTES"), "{failed}");
        let empty = rt.expose::<u64>(0)?;
        assert!(empty.is_empty());
        assert!(rt.get(empty.at(0)).is_err());
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_huge_array_costs_no_memory_before_it_is_used() {
    const LEN: usize = 1 << 30;
    let before = resident_shared_bytes();
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        for round in 0..3 {
            let words = rt.share::<u64>(LEN)?;
            for index in [0, LEN / 2, LEN - 1] {
                assert_eq!(rt.swap(words.at(peer, index), 7)?, 0, "round {round} at {index}");
            }
            drop(words);
            rt.barrier()?;
        }
        let grown = resident_shared_bytes().saturating_sub(before);
        assert!(grown < 1 << 30, "6 arrays of 8 GiB took {grown} bytes");
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// The shared memory of this process that is resident, with the stacks of other tests.
fn resident_shared_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_stale_key_stays_stale_when_its_memory_is_used_again() {
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        let mut old = Vec::new();
        for round in 0..100u64 {
            let words = rt.expose::<u64>(64)?;
            rt.put(words.at(3), round)?;
            let key = u64::from(words.at(0).addr().key.to_bits());
            let theirs = rt.allgather(key)?[peer.0 as usize];
            let key = RegionKey::from_bits(theirs as u32);
            let addr = RemoteAddr { rank: peer, key, offset: 24 };
            assert_eq!(rt.get(Remote::<u64>::new(addr)), Ok(round));
            for addr in &old {
                let stale = Err(AddrError::StaleKey { addr: *addr });
                assert_eq!(rt.get(Remote::<u64>::new(*addr)), stale);
                assert_eq!(rt.put(Remote::new(*addr), u64::MAX), stale.map(|_| ()));
            }
            old.push(addr);
            rt.barrier()?;
            assert_eq!(rt.get(words.at(3))?, round);
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn memory_of_dropped_arrays_is_used_again() {
    // 3,000 arrays of up to 128 KiB in an area of 16 MiB.
    let mut config = Config::default();
    config.space.exposed_bytes = 16 << 20;
    let made = config.run_ranks(2, |rt: &Runtime| {
        let (mut kept, mut made) = (VecDeque::new(), 0);
        for round in 0..1500usize {
            let len = 1 + round * 7919 % (16 << 10);
            kept.push_back(rt.share::<u64>(len)?);
            let own = rt.expose::<u64>(len)?;
            rt.put(own.at(len - 1), 1)?;
            made += 2 * len * 8;
            if kept.len() > 20 {
                kept.pop_front();
            }
        }
        Ok::<_, Error>(made)
    });
    assert!(made.unwrap().into_iter().all(|bytes| bytes > 10 * (16 << 20)));
}

#[test]
fn a_buffer_travels_and_comes_back() {
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        let words = rt.share::<u32>(1000)?;
        let mut buf = rt.buffer::<u32>(500)?;
        (0..500).for_each(|index| buf[index as usize] = index + rt.rank().0);
        let buf = done(rt.ops().put_buffer(words.at(peer, 250), buf).try_begin().unwrap().wait());
        rt.barrier()?;
        drop(buf);
        let buf = block_on(rt.ops().get_buffer(words.own().at(250), rt.buffer(500)?).into_future());
        assert_eq!(buf.result, Ok(0));
        assert!(buf.buf.iter().zip(peer.0..).all(|(found, wanted)| *found == wanted));

        let (send, receive) = std::sync::mpsc::channel();
        let get = rt.ops().get_buffer(words.at(peer, 999), buf.buf);
        assert!(get.then(move |outcome| send.send(outcome).unwrap()).is_ok());
        let outcome = receive.recv().unwrap();
        assert!(matches!(outcome.result, Err(AddrError::OutOfRange { bytes: 2000, .. })));
        assert_eq!(outcome.buf.len(), 500);
        Ok::<_, Error>(())
    })
    .unwrap();
}

fn done(outcome: Outcome<Buffer<u32>>) -> Buffer<u32> {
    outcome.result.unwrap();
    outcome.buf
}

#[test]
fn thousands_of_ults_sleep_on_signals() {
    const ULTS: usize = 2000;
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        let words = Arc::new(rt.share::<u64>(ULTS)?);
        let ults: Vec<_> = (0..ULTS)
            .map(|index| {
                let words = words.clone();
                rt.spawn(move |rt| rt.wait_until(words.own().at(index), Until::NotEqual(0)))
            })
            .collect();
        for index in (0..ULTS).rev() {
            rt.signal(words.at(peer, index), Signal::Set(index as u64 + 1))?;
        }
        for (index, ult) in ults.into_iter().enumerate() {
            assert_eq!(ult.join().unwrap(), Ok(index as u64 + 1));
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_wait_has_a_limit() {
    run_ranks(2, |rt: &Runtime| {
        let words = Arc::new(rt.share::<u64>(64)?);
        let peer = Rank(1 - rt.rank().0);
        // Many ULTs whose limits pass, and as many that are signalled.
        let ults: Vec<_> = (0..64)
            .map(|index| {
                let words = words.clone();
                rt.spawn(move |rt| {
                    let limit = Duration::from_millis(if index % 2 == 0 { 3 } else { 60_000 });
                    rt.wait_until_timeout(words.own().at(index), Until::Equal(1), limit)
                })
            })
            .collect();
        for index in (1..64).step_by(2) {
            rt.signal(words.at(peer, index), Signal::Set(1))?;
        }
        for (index, ult) in ults.into_iter().enumerate() {
            let wanted = if index % 2 == 0 { None } else { Some(1) };
            assert_eq!(ult.join().unwrap(), Ok(wanted), "word {index}");
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn os_threads_may_wait_too() {
    run_ranks(2, |rt: &Runtime| {
        let words = Arc::new(rt.share::<u64>(1)?);
        let peer = Rank(1 - rt.rank().0);
        let waiter = thread::spawn({
            let (rt, words) = (rt.clone(), words.clone());
            move || rt.wait_until(words.own().at(0), Until::AtLeast(3))
        });
        for _ in 0..3 {
            rt.signal(words.at(peer, 0), Signal::Add(1))?;
        }
        while !waiter.is_finished() {
            // A join of std would block this rank's only worker.
            tsumugi::ult::yield_now();
        }
        assert_eq!(waiter.join().unwrap(), Ok(3));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_failed_rank_is_lost_to_the_others() {
    let failed = run_ranks(3, |rt: &Runtime| {
        let words = rt.share::<u64>(1)?;
        if rt.rank() == Rank(2) {
            return Err(Error::program("no more"));
        }
        let lost = rt.wait_until(words.own().at(0), Until::Equal(1));
        assert_eq!(lost, Err(AddrError::PeerLost { rank: Rank(2) }));
        let lost = rt.get(words.at(Rank(2), 0));
        assert_eq!(lost, Err(AddrError::PeerLost { rank: Rank(2) }));
        Err::<(), _>(Error::program("we neither"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no more");
}

#[test]
fn a_barrier_without_a_failed_rank_ends_and_so_do_all_later_ones() {
    let failed = run_ranks(3, |rt: &Runtime| {
        (0..3).try_for_each(|_| rt.barrier())?;
        if rt.rank() == Rank(1) {
            return Err(Error::program("no more"));
        }
        for _ in 0..2 {
            let lost = rt.barrier();
            let named = AddrError::PeerLost { rank: Rank(1) };
            assert!(matches!(lost, Err(Error::Coll(CollError::Addr(addr))) if addr == named));
        }
        Err::<(), _>(Error::program("we neither"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no more");
}

#[test]
fn a_barrier_waits_for_a_late_rank() {
    run_ranks(3, |rt: &Runtime| {
        let come = rt.share::<u64>(1)?;
        for round in 1..=6u64 {
            // Each rank is late in two rounds; the others sleep in the barrier by then.
            if round % 3 == u64::from(rt.rank().0) {
                tsumugi::ult::sleep(Duration::from_millis(20));
            }
            rt.fetch_add(come.at(Rank(0), 0), 1)?;
            rt.barrier()?;
            assert!(rt.get(come.at(Rank(0), 0))? >= 3 * round, "round {round}");
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn two_collectives_at_once_are_refused() {
    run_ranks(2, |rt: &Runtime| {
        let second = Arc::new(rt.share::<u64>(1)?);
        if rt.rank() == Rank(0) {
            let first = rt.spawn(|rt| rt.barrier());
            while !sleeps_on_a_signal(rt) {
                tsumugi::ult::yield_now();
            }
            let refused = rt.sum(1u64);
            rt.signal(second.at(Rank(1), 0), Signal::Set(1))?;
            first.join().unwrap()?;
            assert!(matches!(refused, Err(Error::Coll(CollError::Busy))), "{refused:?}");
        } else {
            rt.wait_until(second.own().at(0), Until::Equal(1))?;
            rt.barrier()?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

fn sleeps_on_a_signal(rt: &Runtime) -> bool {
    let mut found = false;
    rt.ults().dump(&mut |ult| found |= ult.reason.is_some_and(|reason| reason.what == "signal"));
    found
}

#[test]
fn sums_of_floats_are_the_same_on_all_ranks() {
    let sums = run_ranks(11, |rt: &Runtime| rt.sum(0.1 * f64::from(rt.rank().0))).unwrap();
    assert!(sums.iter().all(|sum| sum.to_bits() == sums[0].to_bits()), "{sums:?}");
    assert!((sums[0] - 5.5).abs() < 1e-12);
}
