//! The suite of [`LoadStore`].

use crate::Seeded;
use std::sync::Barrier;
use std::thread;
use tsumugi_core::backend::{LoadStore, execute};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Rank, Region, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// A few ranks and their memory.
pub trait Fixture: Sync {
    /// The type under test.
    type Memory: LoadStore;

    /// A job of `ranks` ranks.
    fn new(ranks: u32) -> Self;

    /// The job from the side of `rank`.
    fn memory(&self, rank: Rank) -> &Self::Memory;

    /// Registers `bytes` zero bytes of `rank`'s memory, 64-byte aligned, which
    /// live as long as the fixture.
    fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region;

    /// Ends a registration.
    fn unregister(&self, rank: Rank, key: RegionKey) -> bool;

    /// Makes `rank` dead, as far as the other ranks can see.
    fn kill(&self, rank: Rank);

    /// Makes a waiter of `rank` wait for the word at `offset` of `region`.
    fn expect_notice(&self, rank: Rank, region: &Region, offset: u64);

    /// Whether such a waiter has been notified since.
    fn has_notice(&self, rank: Rank) -> bool;
}

/// One `#[test]` per promise, for the fixture type.
#[macro_export]
macro_rules! load_store {
    ($fixture:ty) => {
        $crate::load_store!($fixture:
            words_of_every_width, atomics_answer_the_old_value, transfers_of_every_length,
            zero_length_is_nothing, a_range_outside_is_refused, a_stale_key_is_refused,
            a_wrong_rank_is_refused, an_unaligned_word_is_refused, read_only_is_read_only,
            local_memory_is_private, a_dead_rank_is_named, refused_operations_change_nothing,
            updates_are_not_lost, a_put_is_seen_after_its_flag, a_waiter_is_notified,
        );
    };
    ($fixture:ty: $($promise:ident),* $(,)?) => {$(
        #[test]
        fn $promise() {
            $crate::load_store::$promise::<$fixture>();
        }
    )*};
}

const OWN: Rank = Rank(0);
const PEER: Rank = Rank(1);

fn at(rank: Rank, region: &Region, offset: u64) -> RemoteAddr {
    RemoteAddr { rank, key: region.key, offset }
}

fn here(region: &Region, offset: u64) -> LocalAddr {
    LocalAddr { key: region.key, offset }
}

/// Stores and loads of 1, 2, 4 and 8 bytes touch these bytes and no others.
pub fn words_of_every_width<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, region) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::ReadWrite));
    let value = 0x8877_6655_4433_2211u64;
    for (width, bytes) in [(Width::W1, 1), (Width::W2, 2), (Width::W4, 4), (Width::W8, 8)] {
        let addr = at(PEER, &region, 8);
        execute(memory, &Op::put_word(addr, Width::W8, u64::MAX)).unwrap();
        execute(memory, &Op::put_word(addr, width, value)).unwrap();
        let mask = u64::MAX >> (64 - 8 * bytes);
        assert_eq!(execute(memory, &Op::get_word(addr, width)), Ok(value & mask));
        let whole = execute(memory, &Op::get_word(addr, Width::W8)).unwrap();
        assert_eq!(whole, value & mask | !mask, "a store of {bytes} bytes touched more");
    }
}

/// Every atomic, on 4 and 8 bytes, agrees with arithmetic and returns the old value.
pub fn atomics_answer_the_old_value<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, region) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::ReadWrite));
    let mut seeded = Seeded(1);
    let (mut word4, mut word8) = (0u32, 0u64);
    for _ in 0..500 {
        let kind = [Kind::FetchAdd, Kind::Swap, Kind::FetchAnd, Kind::FetchOr, Kind::FetchXor]
            [seeded.below(5) as usize];
        let operand = seeded.next();
        let model = |old: u64| match kind {
            Kind::FetchAdd => old.wrapping_add(operand),
            Kind::Swap => operand,
            Kind::FetchAnd => old & operand,
            Kind::FetchOr => old | operand,
            _ => old ^ operand,
        };
        let old = execute(memory, &Op::atomic(kind, at(PEER, &region, 8), operand));
        assert_eq!(old, Ok(word8), "{kind:?} on 8 bytes");
        word8 = model(word8);
        let old = execute(memory, &Op::atomic(kind, at(PEER, &region, 4), operand as u32));
        assert_eq!(old, Ok(u64::from(word4)), "{kind:?} on 4 bytes");
        word4 = model(u64::from(word4)) as u32;
    }
    let addr = at(PEER, &region, 8);
    assert_eq!(execute(memory, &Op::compare_swap(addr, !word8, 7u64)), Ok(word8));
    assert_eq!(execute(memory, &Op::get_word(addr, Width::W8)), Ok(word8), "compare failed");
    assert_eq!(execute(memory, &Op::compare_swap(addr, word8, 7u64)), Ok(word8));
    assert_eq!(execute(memory, &Op::get_word(addr, Width::W8)), Ok(7));
}

/// Put and get work for lengths around every power of two, at any alignment.
pub fn transfers_of_every_length<F: Fixture>() {
    let fixture = F::new(2);
    let bytes = 1 << 17;
    let (memory, peer) = (fixture.memory(OWN), fixture.register(PEER, bytes, Access::ReadWrite));
    let source = fixture.register(OWN, bytes, Access::Local);
    let target = fixture.register(OWN, bytes, Access::Local);
    let mut seeded = Seeded(2);
    for index in 0..bytes {
        // SAFETY: inside the fixture's region, which no other code touches now.
        unsafe { source.base.add(index as usize).write(seeded.next() as u8) };
    }
    let mut lengths: Vec<u64> =
        (0..17).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]).collect();
    lengths.push(bytes);
    for length in lengths {
        let [from, to, back] = [0; 3].map(|_| seeded.below(bytes - length + 1));
        execute(memory, &Op::put(here(&source, from), at(PEER, &peer, to), length)).unwrap();
        execute(memory, &Op::get(at(PEER, &peer, to), here(&target, back), length)).unwrap();
        // SAFETY: both ranges are inside their regions, and the operations have
        // ended.
        let [sent, got] = unsafe {
            [(&source, from), (&target, back)].map(|(region, offset)| {
                std::slice::from_raw_parts(
                    region.base.as_ptr().add(offset as usize),
                    length as usize,
                )
            })
        };
        assert!(sent == got, "{length} bytes from {from} by {to} to {back}");
    }
}

/// Zero bytes are allowed at any offset up to the end.
pub fn zero_length_is_nothing<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, peer) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::ReadWrite));
    let own = fixture.register(OWN, 64, Access::Local);
    for offset in [0, 1, 64] {
        assert_eq!(execute(memory, &Op::put(here(&own, 64), at(PEER, &peer, offset), 0)), Ok(0));
    }
    assert!(execute(memory, &Op::put(here(&own, 0), at(PEER, &peer, 65), 0)).is_err());
}

/// A range that is one byte too far at either end is refused, and so are offsets that
/// would wrap.
pub fn a_range_outside_is_refused<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, peer) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::ReadWrite));
    let own = fixture.register(OWN, 64, Access::Local);
    for (offset, bytes) in
        [(57, 8), (64, 1), (0, 65), (u64::MAX, 1), (u64::MAX - 7, 8), (8, u64::MAX)]
    {
        let addr = at(PEER, &peer, offset);
        let refused = execute(memory, &Op::put(here(&own, 0), addr, bytes));
        assert_eq!(refused, Err(AddrError::OutOfRange { addr, bytes, region_bytes: Some(64) }));
    }
    let local = execute(memory, &Op::put(here(&own, 60), at(PEER, &peer, 0), 8));
    assert!(matches!(local, Err(AddrError::OutOfRange { bytes: 8, region_bytes: Some(64), .. })));
}

/// A key ends with its region, also when the slot has a new region.
pub fn a_stale_key_is_refused<F: Fixture>() {
    let fixture = F::new(2);
    let memory = fixture.memory(OWN);
    let old = fixture.register(PEER, 64, Access::ReadWrite);
    let get = Op::get_word(at(PEER, &old, 0), Width::W8);
    assert_eq!(execute(memory, &get), Ok(0));
    assert!(fixture.unregister(PEER, old.key));
    assert!(!fixture.unregister(PEER, old.key), "a registration ends once");
    for _ in 0..3 {
        let stale = execute(memory, &get);
        assert_eq!(stale, Err(AddrError::StaleKey { addr: at(PEER, &old, 0) }));
        fixture.register(PEER, 64, Access::ReadWrite);
    }
    for bits in [0, 1, u32::MAX] {
        let addr = RemoteAddr { rank: PEER, key: RegionKey::from_bits(bits), offset: 0 };
        assert!(execute(memory, &Op::get_word(addr, Width::W8)).is_err(), "forged key {bits:#x}");
    }
}

/// A rank that the job does not have is refused.
pub fn a_wrong_rank_is_refused<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, region) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::ReadWrite));
    for rank in [2, 3, u32::MAX].map(Rank) {
        let refused = execute(memory, &Op::get_word(at(rank, &region, 0), Width::W8));
        assert_eq!(refused, Err(AddrError::NoSuchRank { rank, size: 2 }));
    }
}

/// Words must be naturally aligned.
pub fn an_unaligned_word_is_refused<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, region) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::ReadWrite));
    let addr = at(PEER, &region, 4);
    let refused = execute(memory, &Op::atomic(Kind::FetchAdd, addr, 1u64));
    assert_eq!(refused, Err(AddrError::Unaligned { addr, align: 8 }));
    assert_eq!(execute(memory, &Op::atomic(Kind::FetchAdd, addr, 1u32)), Ok(0));
    let addr = at(PEER, &region, 2);
    let refused = execute(memory, &Op::get_word(addr, Width::W4));
    assert_eq!(refused, Err(AddrError::Unaligned { addr, align: 4 }));
}

/// In a read-only region a get works, and every operation that writes fails.
pub fn read_only_is_read_only<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, region) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::Read));
    let addr = at(PEER, &region, 0);
    assert_eq!(execute(memory, &Op::get_word(addr, Width::W8)), Ok(0));
    for op in [
        Op::put_word(addr, Width::W8, 1),
        Op::atomic(Kind::FetchAdd, addr, 1u64),
        Op::compare_swap(addr, 0u64, 1),
    ] {
        assert_eq!(execute(memory, &op), Err(AddrError::ReadOnly { addr }), "{:?}", op.kind);
    }
}

/// Peers cannot access a region that is registered as a buffer of its owner.
pub fn local_memory_is_private<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, region) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::Local));
    let addr = at(PEER, &region, 0);
    let stale = Err(AddrError::StaleKey { addr });
    assert_eq!(execute(memory, &Op::get_word(addr, Width::W8)), stale);
    assert_eq!(execute(memory, &Op::put_word(addr, Width::W8, 1)), stale);
}

/// Operations to a dead rank fail with its name; operations to living ranks still
/// work.
pub fn a_dead_rank_is_named<F: Fixture>() {
    let fixture = F::new(3);
    let memory = fixture.memory(OWN);
    let dead = fixture.register(PEER, 64, Access::ReadWrite);
    let living = fixture.register(Rank(2), 64, Access::ReadWrite);
    fixture.kill(PEER);
    let lost = execute(memory, &Op::put_word(at(PEER, &dead, 0), Width::W8, 1));
    assert_eq!(lost, Err(AddrError::PeerLost { rank: PEER }));
    assert_eq!(execute(memory, &Op::get_word(at(Rank(2), &living, 0), Width::W8)), Ok(0));
}

/// A refused operation changes nothing.
pub fn refused_operations_change_nothing<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, peer) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::ReadWrite));
    let own = fixture.register(OWN, 64, Access::Local);
    // SAFETY: inside the fixture's region, which no other code touches.
    unsafe { own.base.write_bytes(0xff, 64) };
    assert!(execute(memory, &Op::put(here(&own, 0), at(PEER, &peer, 8), 64)).is_err());
    assert!(execute(memory, &Op::put(here(&own, 8), at(PEER, &peer, 0), 64)).is_err());
    assert!(execute(memory, &Op::atomic(Kind::Swap, at(PEER, &peer, 61), 1u64)).is_err());
    for offset in (0..64).step_by(8) {
        let word = execute(memory, &Op::get_word(at(PEER, &peer, offset), Width::W8));
        assert_eq!(word, Ok(0), "offset {offset}");
    }
}

/// Threads of all ranks add to one word, and no update is lost.
pub fn updates_are_not_lost<F: Fixture>() {
    let fixture = F::new(3);
    let region = fixture.register(PEER, 64, Access::ReadWrite);
    let (threads, rounds) = (3, 20_000u64);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (memory, region) = (fixture.memory(Rank(thread)), &region);
            scope.spawn(move || {
                for _ in 0..rounds {
                    execute(memory, &Op::atomic(Kind::FetchAdd, at(PEER, region, 0), 1u64))
                        .unwrap();
                    let addr = at(PEER, region, 8);
                    let mut old = execute(memory, &Op::get_word(addr, Width::W4)).unwrap() as u32;
                    loop {
                        let swap = Op::compare_swap(addr, old, old + 1);
                        let seen = execute(memory, &swap).unwrap() as u32;
                        if seen == old {
                            break;
                        }
                        old = seen;
                    }
                }
            });
        }
    });
    let memory = fixture.memory(OWN);
    let total = u64::from(threads) * rounds;
    assert_eq!(execute(memory, &Op::get_word(at(PEER, &region, 0), Width::W8)), Ok(total));
    assert_eq!(execute(memory, &Op::get_word(at(PEER, &region, 8), Width::W4)), Ok(total));
}

/// A blocking put has ended when it returns: a rank that sees a later flag sees the
/// put.
pub fn a_put_is_seen_after_its_flag<F: Fixture>() {
    let fixture = F::new(3);
    let region = fixture.register(PEER, 4096, Access::ReadWrite);
    let source = fixture.register(OWN, 1024, Access::Local);
    let sink = fixture.register(Rank(2), 1024, Access::Local);
    let (rounds, start) = (300u64, Barrier::new(2));
    let (flag, back) = (at(PEER, &region, 2048), at(PEER, &region, 2056));
    thread::scope(|scope| {
        scope.spawn(|| {
            let memory = fixture.memory(OWN);
            start.wait();
            for round in 1..=rounds {
                // SAFETY: only this thread uses the source.
                unsafe { source.base.write_bytes(round as u8, 1024) };
                execute(memory, &Op::put(here(&source, 0), at(PEER, &region, 0), 1024)).unwrap();
                execute(memory, &Op::put_word(flag, Width::W8, round)).unwrap();
                while execute(memory, &Op::get_word(back, Width::W8)) != Ok(round) {
                    thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            let memory = fixture.memory(Rank(2));
            start.wait();
            for round in 1..=rounds {
                while execute(memory, &Op::get_word(flag, Width::W8)) != Ok(round) {
                    thread::yield_now();
                }
                execute(memory, &Op::get(at(PEER, &region, 0), here(&sink, 0), 1024)).unwrap();
                // SAFETY: only this thread uses the sink.
                let got = unsafe { std::slice::from_raw_parts(sink.base.as_ptr(), 1024) };
                assert!(got.iter().all(|&byte| byte == round as u8), "round {round}");
                execute(memory, &Op::put_word(back, Width::W8, round)).unwrap();
            }
        });
    });
}

/// A notifying operation notifies the word's owner, if a thread waits there.
pub fn a_waiter_is_notified<F: Fixture>() {
    let fixture = F::new(2);
    let (memory, region) = (fixture.memory(OWN), fixture.register(PEER, 64, Access::ReadWrite));
    let addr = at(PEER, &region, 16);
    execute(memory, &Op::atomic(Kind::FetchAdd, addr, 1u64).notifying()).unwrap();
    assert!(!fixture.has_notice(PEER), "no thread waits yet");
    fixture.expect_notice(PEER, &region, 16);
    execute(memory, &Op::atomic(Kind::FetchAdd, addr, 1u64)).unwrap();
    assert!(!fixture.has_notice(PEER), "a silent operation notifies no waiter");
    execute(memory, &Op::put_word(addr, Width::W8, 9).notifying()).unwrap();
    assert!(fixture.has_notice(PEER));
    assert_eq!(execute(memory, &Op::get_word(addr, Width::W8)), Ok(9));
}
