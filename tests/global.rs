//! The interface of the global memory, on ranks that are threads.

mod every_way;

use every_way::run_ranks;
use std::sync::Arc;
use tsumugi::global::{
    AddressParts, After, Change, Copy, ReceivedPart, SegmentSink, SegmentSource,
};
use tsumugi::{AddrError, Config, Error, GlobalAddr, GlobalPtr, Rank, Runtime, Until};
use tsumugi_core::op::Kind;

/// Gathers one address of each rank, in the order of the ranks. Collective.
fn tell<T: tsumugi::Plain>(rt: &Runtime, own: GlobalPtr<T>) -> Result<Vec<GlobalPtr<T>>, Error> {
    let bits = rt.allgather(own.addr().to_bits())?.into_iter();
    Ok(bits.map(|bits| GlobalPtr::new(GlobalAddr::from_bits(bits))).collect())
}

#[test]
fn every_access_reaches_every_rank() {
    run_ranks(3, |rt| {
        let global = rt.global()?;
        let words = global.expose::<u64>(8)?;
        let halves = global.expose::<u32>(2)?;
        let (all, all_halves) = (tell(rt, words.at(0))?, tell(rt, halves.at(1))?);
        let next = (rt.rank().0 as usize + 1) % 3;
        let (at, half) = (all[next], all_halves[next]);
        global.put(at, 5)?;
        assert_eq!(global.get(at)?, 5);
        assert_eq!(global.fetch_add(at, 2)?, 5);
        assert_eq!(global.fetch_and(at, 6)?, 7);
        assert_eq!(global.fetch_or(at, 8)?, 6);
        assert_eq!(global.fetch_xor(at, 1)?, 14);
        assert_eq!(global.swap(at, 9)?, 15);
        assert_eq!(global.compare_swap(at, 8, 1)?, 9);
        assert_eq!(global.compare_swap(at, 9, 1)?, 9);
        // The same atomics without the old value.
        global.add(at, 15)?;
        global.and(at, 0b0110)?;
        global.or(at, 2)?;
        global.xor(at, 0b1111)?;
        assert_eq!(global.swap(at, 1)?, 2 ^ 0b1111);
        assert_eq!(global.fetch_add(half, u32::MAX)?, 0);
        assert_eq!(global.get(half)?, u32::MAX);
        global.put_slice(global.index(at, 1)?, &[1, 2, 3])?;
        let mut back = [0; 4];
        global.get_slice(at, &mut back)?;
        assert_eq!(back, [1, 1, 2, 3]);
        // Access to the own memory, which the previous rank has written.
        rt.barrier()?;
        assert_eq!(global.get(words.at(3))?, 3);
        // Starter memory needs no registration.
        let starter = global.starter(Rank(next as u32))?;
        global.put(starter, 77)?;
        rt.barrier()?;
        assert_eq!(global.get(global.starter(rt.rank())?)?, 77);
        rt.barrier()
    });
}

#[test]
fn copies_go_between_any_two_ranks() {
    run_ranks(3, |rt| {
        let global = rt.global()?;
        let words = global.expose::<u64>(300_000)?;
        let all = tell(rt, words.at(0))?;
        let index = |rank: usize, at: i64| global.index(all[rank], at);
        let own = u64::from(rt.rank().0);
        let lines: Vec<u64> = (0..300_000).map(|word| own << 32 | word).collect();
        global.put_slice(words.at(0), &lines)?;
        rt.barrier()?;
        if own == 0 {
            // A copy that the caller does, and a copy that the source rank does.
            global.copy(index(2, 0)?, index(1, 10)?, 100)?;
            let (dst, src) = (index(2, 1000)?, index(1, 1000)?);
            let copy = Copy::new(dst.addr(), src.addr(), 8 * 200_000);
            global.begin(copy.then_add(index(2, 299_999)?.addr(), 1)).wait()?;
        }
        rt.barrier()?;
        if own == 2 {
            assert_eq!(global.get(words.at(99))?, 1 << 32 | 109);
            assert_eq!(global.get(words.at(100))?, 2 << 32 | 100);
            for at in [1000, 100_000, 200_999] {
                assert_eq!(global.get(words.at(at))?, 1 << 32 | at as u64);
            }
            assert_eq!(global.get(words.at(201_000))?, 2 << 32 | 201_000);
            assert_eq!(global.get(words.at(299_999))?, (2 << 32 | 299_999) + 1);
        }
        rt.barrier()
    });
}

/// A chain of operations through all ranks keeps its order, and a flush ends after it.
#[test]
fn operations_of_a_chain_keep_their_order() {
    run_ranks(4, |rt| {
        let global = rt.global()?;
        let words = global.expose::<u64>(4)?;
        let all = tell(rt, words.at(0))?;
        if rt.rank() == Rank(0) {
            for round in 1..=20u64 {
                let put = Change::atomic(Kind::Swap, all[1].addr(), round);
                let mut chain = vec![global.begin(put)];
                for (dst, src) in [(2, 1), (3, 2), (0, 3)] {
                    let copy = Copy::new(all[dst].addr(), all[src].addr(), 8);
                    let last = chain[chain.len() - 1].handle();
                    chain.push(global.begin_after(copy, After::One(last)));
                }
                let flush = [global.flush_all(), global.flush(Rank(3))];
                for flush in flush {
                    assert_eq!(flush.wait(), Ok(0));
                }
                assert!(chain.iter().all(|operation| operation.has_ended()));
                let ends: Vec<_> = chain.into_iter().map(|operation| operation.wait()).collect();
                assert_eq!(ends, [Ok(round - 1), Ok(0), Ok(0), Ok(0)]);
                assert_eq!(global.get(words.at(0))?, round);
            }
        }
        rt.barrier()
    });
}

/// A copy changes a word after it has landed, which wakes the ULT that waits for the word.
#[test]
fn a_copy_that_has_landed_wakes_a_waiter() {
    run_ranks(3, |rt| {
        let global = rt.global()?;
        let words = global.expose::<u64>(2)?;
        let all = tell(rt, words.at(0))?;
        let starter = global.starter(Rank(2))?;
        match rt.rank().0 {
            0 => {
                let copy = Copy::new(all[2].addr(), all[1].addr(), 16);
                global.begin(copy.then_add(starter.addr(), 1)).wait()?;
            }
            1 => global.put_slice(words.at(0), &[0, 0])?,
            _ => {
                rt.wait_until(rt.starter(rt.rank()), Until::Equal(1))?;
            }
        }
        rt.barrier()
    });
}

#[test]
fn a_wrong_access_is_an_error_with_its_address() {
    run_ranks(2, |rt| {
        let global = rt.global()?;
        let words = global.expose::<u64>(2)?;
        let all = tell(rt, words.at(0))?;
        let peer = all[1 - rt.rank().0 as usize];
        let null = GlobalPtr::<u64>::NULL;
        assert_eq!(global.get(null), Err(AddrError::Nowhere { addr: null.addr() }));
        let beyond = global.index(peer, 2)?;
        let error = AddrError::OutOfRange { addr: beyond.addr(), bytes: 8, region_bytes: Some(16) };
        assert_eq!(global.get(beyond), Err(error));
        assert_eq!(global.copy(words.at(0), beyond, 1), Err(error));
        let place = global.split().place(peer.addr()).unwrap();
        let of = |place| GlobalPtr::<u64>::new(global.split().addr(place).unwrap());
        let unknown = of(AddressParts { region: 200, ..place });
        assert_eq!(global.put(unknown, 1), Err(AddrError::StaleKey { addr: unknown.addr() }));
        let nobody = of(AddressParts { rank: Rank(2), ..place });
        assert_eq!(global.get(nobody), Err(AddrError::Nowhere { addr: nobody.addr() }));
        assert!(global.starter(Rank(2)).is_err());
        let odd = of(AddressParts { offset: 2, ..place }).cast::<u32>();
        let unaligned = Err(AddrError::Unaligned { addr: odd.addr(), align: 4 });
        assert_eq!(global.fetch_add(odd, 1), unaligned);
        rt.barrier()
    });
}

/// The address of memory that is gone is soon stale at all ranks. An access by it never
/// reaches a later region with the same number or at the same place.
#[test]
fn an_address_that_outlives_its_memory_is_stale() {
    run_ranks(2, |rt| {
        let global = rt.global()?;
        let mut before = Vec::new();
        for round in 0..100u64 {
            let words = global.expose::<u64>(4)?;
            let all = tell(rt, words.at(1))?;
            let peer = all[1 - rt.rank().0 as usize];
            assert_eq!(global.fetch_add(peer, round)?, 0);
            rt.barrier()?;
            assert_eq!(global.get(words.at(1))?, round);
            drop(words);
            rt.barrier()?;
            before.push(peer);
            for &gone in before.iter().rev().take(3) {
                // Until this rank knows of the end, the put still finds the memory.
                let put = loop {
                    match global.put(gone, 1) {
                        Ok(()) => tsumugi::ult::yield_now(),
                        Err(error) => break error,
                    }
                };
                assert_eq!(put, AddrError::StaleKey { addr: gone.addr() }, "round {round}");
            }
        }
        rt.barrier()
    });
}

/// Registers memory that the program has already: an array, and a part of it. The other
/// ranks access it all the time; after `unregister` has returned, none of them does.
#[test]
fn registered_memory_comes_back_when_no_rank_accesses_it() {
    run_ranks(3, |rt| {
        let global = rt.global()?;
        let stop = global.expose::<u64>(1)?;
        let stops = tell(rt, stop.at(0))?;
        if rt.rank() == Rank(0) {
            let mut mine = rt.expose::<u64>(64)?;
            for round in 1..=40u64 {
                let array = global.register(mine)?;
                assert_eq!(array.agent(), tsumugi::Agent::Cpu);
                rt.allgather(array.at(0).addr().to_bits())?;
                while rt.get(array.remote(7))? < 20 {
                    tsumugi::ult::yield_now();
                }
                let at = array.at(7);
                mine = array.unregister();
                assert_eq!(global.get(at), Err(AddrError::StaleKey { addr: at.addr() }));
                let was = rt.get(mine.at(7))?;
                rt.put(mine.at(7), 0)?;
                // A part of the array is registered under another address, which is valid
                // after that of the array has ended.
                let base = rt.pointer(mine.at(8))?;
                // SAFETY: bytes of an array, which only operations access.
                let part = unsafe { global.register_at(base, 8)? };
                assert_eq!(global.get(part.first())?, round - 1, "registration keeps the values");
                global.put(part.first(), round)?;
                let place = part.first();
                part.unregister();
                assert_eq!(global.get(place), Err(AddrError::StaleKey { addr: place.addr() }));
                assert!(was >= 20);
                // The other ranks still use the array's address, without an effect.
                tsumugi::ult::yield_now();
                assert_eq!(rt.get(mine.at(7))?, 0, "round {round}");
                rt.put(mine.at(7), 0)?;
                rt.barrier()?;
            }
            global.put(stops[0], 1)?;
            return rt.barrier();
        }
        for round in 0..40 {
            let bits = rt.allgather(0)?[0];
            let at = global.index(global.pointer::<u64>(bits), 7)?;
            let error = loop {
                match global.fetch_add(at, 1) {
                    Ok(_) => tsumugi::ult::yield_now(),
                    Err(error) => break error,
                }
            };
            assert_eq!(error, AddrError::StaleKey { addr: at.addr() }, "round {round}");
            rt.barrier()?;
        }
        rt.barrier()
    });
}

/// `addr_of` and `local` are inverse to each other, and `rank_of` names the owner.
#[test]
fn addr_of_and_local_are_inverse() {
    run_ranks(2, |rt| {
        let global = rt.global()?;
        let words = global.expose::<u64>(10)?;
        let all = tell(rt, words.at(0))?;
        let (own, peer) = (all[rt.rank().0 as usize], all[1 - rt.rank().0 as usize]);
        let third = global.index(own, 3)?;
        let at = global.local(third, 7)?;
        assert_eq!(rt.pointer(words.remote(3))?, at);
        assert_eq!(global.addr_of(at.as_ptr()), Some(third));
        let refused =
            AddrError::OutOfRange { addr: third.addr(), bytes: 64, region_bytes: Some(80) };
        assert_eq!(global.local(third, 8), Err(refused));
        // A neighbour's memory can be accessed in place, but has no address of this rank.
        let there = global.local(peer, 10)?;
        assert_eq!(global.addr_of(there.as_ptr()), None);
        assert_eq!(
            (global.rank_of(own), global.rank_of(peer)),
            (Some(rt.rank()), Some(Rank(1 - rt.rank().0)))
        );
        assert_eq!(global.rank_of(GlobalPtr::<u64>::NULL), None);
        // Starter memory is registered, a local variable is not.
        let starter = global.starter(rt.rank())?;
        let base = global.local(starter, 1)?;
        assert_eq!(global.addr_of(base.as_ptr()), Some(starter));
        let variable = 5u64;
        assert_eq!(global.addr_of(&raw const variable), None);
        let published = global.publish(std::sync::Arc::from(vec![1u64, 2]));
        assert!(matches!(published, Err(Error::Register(_))), "it is not in the rank's heap");
        rt.barrier()?;
        drop(words);
        assert_eq!(global.addr_of(at.as_ptr()), None);
        // The end of the region reaches this rank's own copy of the table a moment later.
        let error = loop {
            match global.local(own, 1) {
                Ok(_) => tsumugi::ult::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(error, AddrError::StaleKey { addr: own.addr() });
        rt.barrier()
    });
}

/// Many ULTs of all ranks add to words of all ranks, and no addition is lost.
#[test]
fn no_update_of_many_ults_is_lost() {
    const ULTS: u64 = 60;
    run_ranks(3, |rt| {
        let global = rt.global()?;
        let words = global.expose::<u64>(16)?;
        let all = Arc::new(tell(rt, words.at(0))?);
        let ults: Vec<_> = (0..ULTS)
            .map(|ult| {
                let (global, all) = (global.clone(), all.clone());
                rt.spawn(move |_| {
                    for step in 0..40 {
                        let rank = ((ult + step) % 3) as usize;
                        let at = global.index(all[rank], (step % 16) as i64).unwrap();
                        if step % 4 == 0 {
                            let add = Change::atomic(Kind::FetchAdd, at.addr(), 1u64);
                            global.begin(add).wait().unwrap();
                        } else {
                            global.fetch_add(at, 1).unwrap();
                        }
                        if step % 10 == 0 {
                            // Regions begin and end meanwhile.
                            drop(global.expose::<u8>(100).unwrap());
                            tsumugi::ult::yield_now();
                        }
                    }
                })
            })
            .collect();
        ults.into_iter().for_each(|ult| ult.join().unwrap());
        rt.barrier()?;
        let mut own = [0; 16];
        global.get_slice(words.at(0), &mut own)?;
        assert_eq!(rt.sum(own.iter().sum::<u64>())?, ULTS * 40 * 3);
        rt.barrier()
    });
}

/// The ranks' keys differ, because one rank has registered memory before.
#[test]
fn the_global_memory_opens_although_keys_differ() {
    run_ranks(3, |rt| {
        let _own = if rt.rank() == Rank(1) { Some(rt.expose::<u64>(1)?) } else { None };
        let global = rt.global()?;
        let words = global.expose::<u64>(1)?;
        let all = tell(rt, words.at(0))?;
        let (own, next) = (rt.rank().0 as usize, (rt.rank().0 as usize + 1) % 3);
        if own == 0 {
            global.begin(Copy::new(all[2].addr(), all[1].addr(), 8)).wait()?;
        }
        global.fetch_add(all[next], 1)?;
        rt.barrier()
    });
}

/// An operation on the memory of a rank that is gone fails with an error that names the
/// rank. All other operations still work.
#[test]
fn operations_on_a_lost_rank_fail() {
    let lost = AddrError::PeerLost { rank: Rank(2) };
    let error = Config::default().run_ranks(3, |rt| {
        let global = rt.global()?;
        let words = global.expose::<u64>(4)?;
        let all = tell(rt, words.at(0))?;
        if rt.rank() == Rank(2) {
            return Err(Error::program("the last rank gives up"));
        }
        // The rank's array may end before the rank: the error is another one until then.
        while global.get(all[2]) != Err(lost) {
            tsumugi::ult::yield_now();
        }
        let (own, peer) = (rt.rank().0 as usize, 1 - rt.rank().0 as usize);
        assert_eq!(global.get(all[2]), Err(lost));
        assert_eq!(global.fetch_add(all[2], 1), Err(lost));
        assert_eq!(global.begin(Copy::new(all[own].addr(), all[2].addr(), 8)).wait(), Err(lost));
        assert_eq!(global.begin(Copy::new(all[2].addr(), all[own].addr(), 8)).wait(), Err(lost));
        // A copy from the dead rank to the peer, which the dead rank would have to do.
        assert_eq!(global.begin(Copy::new(all[peer].addr(), all[2].addr(), 8)).wait(), Err(lost));
        assert_eq!(global.flush(Rank(2)).wait(), Ok(0));
        global.put(all[own], 1)?;
        // The drop does not wait for the dead rank, either.
        drop(words);
        Ok::<_, Error>(())
    });
    assert_eq!(error.unwrap_err().to_string(), "the last rank gives up");
}

/// A ring of segments wraps around several times, and no segment is overwritten before it
/// is taken.
#[test]
fn segments_arrive_in_order_and_whole() {
    run_ranks(3, |rt| {
        let global = rt.global()?;
        let buffer = global.expose::<u64>(4 * 16)?;
        let (comm, own, shape) = (rt.comm(), buffer.at(0).addr(), (128, 4));
        match rt.rank().0 {
            0 => {
                let mut source = SegmentSource::connect(&global, (&comm, Rank(2), 5), own, shape)?;
                for round in 0..50u64 {
                    while source.sent() + 4 <= round {
                        tsumugi::ult::yield_now();
                    }
                    let at = buffer.at((round % 4) as usize * 16);
                    global.put_slice(at, &[round; 16])?;
                    source.send()?;
                    assert!(source.tail() - source.head()? <= 4);
                }
                source.flush()?;
                assert_eq!((source.tail(), source.sent()), (50, 50));
                source.close()?;
            }
            2 => {
                let mut sink = SegmentSink::connect(&global, (&comm, Rank(0), 5), own, shape)?;
                for round in 0..50 {
                    let at = sink.wait()? as usize * 16;
                    let mut segment = [0; 16];
                    global.get_slice(buffer.at(at), &mut segment)?;
                    assert_eq!(segment, [round; 16]);
                    assert!(sink.take()?);
                }
                assert_eq!((sink.head(), sink.tail()?, sink.take()?), (50, 50, false));
                sink.close()?;
            }
            _ => {}
        }
        rt.barrier()
    });
}

#[test]
fn a_workspace_is_one_row_of_bytes() {
    run_ranks(3, |rt| {
        let global = rt.global()?;
        let space = global.workspace(5000, Rank(2), 900)?;
        let own = global.expose::<u8>(5000)?;
        let at = own.at(0).addr();
        if rt.rank() == Rank(0) {
            let bytes: Vec<u8> = (0..5000).map(|byte| byte as u8).collect();
            global.put_slice(own.at(0), &bytes)?;
            space.write(at, 5000, 0)?;
            assert!(space.write(at, 2, 4999).is_err());
        }
        rt.barrier()?;
        for (bytes, offset) in [(5000, 0), (1, 899), (2000, 777), (0, 5000), (1100, 900)] {
            space.read(at, bytes, offset)?;
            let mut found = vec![0; bytes as usize];
            global.get_slice(own.at(0), &mut found)?;
            let wanted: Vec<u8> = (offset..offset + bytes).map(|byte| byte as u8).collect();
            assert_eq!(found, wanted, "{bytes} at {offset}");
        }
        rt.barrier()
    });
}

/// Messages of any length arrive in order, through a ring that is shorter than some of
/// them.
#[test]
fn a_channel_keeps_its_order() {
    run_ranks(2, |rt| {
        let global = rt.global()?;
        let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
        let lengths = [0, 1, 8, 100, 255, 256, 257, 900, 7, 3000, 0, 3];
        let byte_of = |message: usize, at: usize| (message * 31 + at) as u8;
        if rt.rank() == Rank(0) {
            let buffer = global.expose::<u8>(3000)?;
            let mut sender = global.channel_to((&comm, peer, 9), 256)?;
            for round in 0..3 {
                for (message, &bytes) in lengths.iter().enumerate() {
                    let values: Vec<u8> =
                        (0..bytes).map(|at| byte_of(message + round, at)).collect();
                    global.put_slice(buffer.at(0), &values)?;
                    sender.send(buffer.at(0).addr(), bytes as u64)?;
                }
            }
            rt.barrier()
        } else {
            let mut receiver = global.channel_from((&comm, peer, 9), 256)?;
            for round in 0..3 {
                for (message, &bytes) in lengths.iter().enumerate() {
                    let (mut found, mut room) = (Vec::<u8>::new(), [0; 333]);
                    loop {
                        match receiver.recv(&mut room)? {
                            ReceivedPart::Part(count) => found.extend(&room[..count]),
                            ReceivedPart::End(count) => break found.extend(&room[..count]),
                        }
                    }
                    let wanted: Vec<u8> =
                        (0..bytes).map(|at| byte_of(message + round, at)).collect();
                    assert_eq!(found, wanted, "message {message} of round {round}");
                }
            }
            assert_eq!(receiver.try_recv(&mut [0; 8])?, None);
            rt.barrier()
        }
    });
}
