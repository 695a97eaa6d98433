//! Addresses that a program forges.

use crate::Attack;
use tsumugi::lock::LockKind;
use tsumugi::{AddrError, Error, Rank, Remote, RemoteAddr, Runtime, run_ranks};
use tsumugi_core::mem::RegionKey;
use tsumugi_core::random::SplitMix64;

pub const ALL: &[Attack] = &[
    ("forge_rings", forge_rings),
    ("forge_all_keys", forge_all_keys),
    ("forge_words_of_a_gather", forge_words_of_a_gather),
    ("forge_words_of_locks", forge_words_of_locks),
];

/// Puts of noise into the regions that a rank registers first: rings, words of
/// collectives, lanes of calls.
fn forge_rings() {
    let keys: Vec<RegionKey> = (0..16)
        .flat_map(|index| (1..4).map(move |generation| RegionKey::new(index, generation)))
        .flat_map(|key| [key, RegionKey::from_bits(key.to_bits() | 1 << 30)])
        .collect();
    beside_noise(move |draw| keys[draw.below(keys.len() as u64) as usize], 200_000);
}

/// The same with keys of random bits.
fn forge_all_keys() {
    beside_noise(|draw| RegionKey::from_bits(draw.next() as u32), 100_000);
}

/// The words by which ranks gather cannot be written: under the keys that every rank
/// gives to its first regions, no memory but the starter memory is accessible.
fn forge_words_of_a_gather() {
    let gathered = run_ranks(2, |rt| {
        let peer = Rank(1 - rt.rank().0);
        for bits in (1..8).flat_map(|index| [1 << 12 | index, 1 << 30 | 1 << 12 | index]) {
            for offset in (0..4096).step_by(8) {
                let addr = RemoteAddr { rank: peer, key: RegionKey::from_bits(bits), offset };
                let put = rt.put(Remote::<u64>::new(addr), u64::MAX);
                assert!(matches!(put, Err(AddrError::StaleKey { .. })), "{addr}: {put:?}");
            }
        }
        rt.allgather(u64::from(rt.rank().0) + 40)
    });
    assert_eq!(gathered.expect("both ranks end"), [[40, 41], [40, 41]]);
}

/// The words of locks, windows and arrays, their directories and pages cannot be
/// accessed under a forged key.
fn forge_words_of_locks() {
    let ran = run_ranks(2, |rt| {
        let (lock, array) = (rt.share_lock(Rank(0), LockKind::Mutex)?, rt.array::<u64>(100)?);
        let (counted, window) = (rt.array::<u64>(100)?, rt.window::<u64>(0)?);
        let arrays = rt.arrays(1 << 16)?;
        rt.barrier()?;
        for index in 0..128 {
            for generation in 1..4 {
                for (rank, offset) in
                    rt.ranks().flat_map(|rank| [0, 8, 64, 512].map(|at| (rank, at)))
                {
                    let key = RegionKey::new(index, generation);
                    let addr =
                        RemoteAddr { rank, key: RegionKey::from_bits(key.to_bits()), offset };
                    // The starter memory is accessible to all.
                    if addr.key == rt.starter(rank).addr().key {
                        continue;
                    }
                    for put in [
                        rt.put(Remote::<u64>::new(addr), u64::MAX),
                        rt.fetch_add(Remote::<u64>::new(addr), 1).map(drop),
                    ] {
                        let is_refused = matches!(
                            put,
                            Err(AddrError::StaleKey { .. } | AddrError::OutOfRange { .. })
                        );
                        assert!(is_refused, "{addr}: {put:?}");
                    }
                }
            }
        }
        rt.barrier()?;
        for index in 0..100 {
            let _held = lock.write()?;
            array.put(index, array.get(index)? + 1)?;
            counted.fetch_add(index, 1)?;
        }
        window.fence()?;
        rt.barrier()?;
        assert!((0..100).all(|index| array.get(index) == Ok(2) && counted.get(index) == Ok(2)));
        drop(arrays);
        rt.barrier()
    });
    ran.expect("both ranks end");
}

/// Runs messages, calls and collectives of two ranks, while a thread of each rank puts
/// noise under the keys that `key` draws.
fn beside_noise(key: impl Fn(&mut SplitMix64) -> RegionKey + Sync, puts: usize) {
    let refused = run_ranks(2, |rt| {
        rt.handler(1, |message| message.bytes.iter().map(|byte| byte ^ 1).collect::<Vec<u8>>());
        rt.barrier()?;
        let (peer, forger) = (Rank(1 - rt.rank().0), rt.clone());
        std::thread::scope(|scope| {
            let noise = scope.spawn(|| forge(&forger, &key, puts));
            // Both ranks do the same number of rounds: they go on until both are done.
            loop {
                talk(rt, peer)?;
                if rt.sum(u64::from(noise.is_finished()))? == 2 {
                    break;
                }
            }
            Ok::<_, Error>(noise.join().expect("a forged put does not panic"))
        })
    });
    for refused in refused.expect("both ranks end") {
        assert!(refused * 10 > puts * 9, "{refused} of {puts} forged operations were refused");
    }
}

/// Puts noise to random ranks; returns how many puts were refused.
fn forge(rt: &Runtime, key: impl Fn(&mut SplitMix64) -> RegionKey, puts: usize) -> usize {
    let mut draw = SplitMix64::new(u64::from(rt.rank().0) + 1);
    let mut refused = 0;
    for _ in 0..puts {
        let rank = Rank(draw.below(2) as u32);
        let addr = RemoteAddr { rank, key: key(&mut draw), offset: 8 * draw.below(4096) };
        match rt.put(Remote::<u64>::new(addr), draw.next()) {
            Ok(()) => {}
            // A key of the device's memory is refused as an address on another node.
            Err(
                AddrError::StaleKey { .. }
                | AddrError::OutOfRange { .. }
                | AddrError::OtherNode { .. },
            ) => refused += 1,
            Err(error) => panic!("{addr}: {error}"),
        }
    }
    refused
}

/// One message each way, a call, and a barrier.
fn talk(rt: &Runtime, peer: Rank) -> Result<(), Error> {
    let (comm, own) = (rt.comm(), u64::from(rt.rank().0));
    for len in [1, 100, 5000] {
        let mut came = vec![0u64; len];
        comm.send_recv(peer, 3, &vec![own; len], peer, 3, &mut came)?;
        assert!(came.iter().all(|word| *word == u64::from(peer.0)), "a message of {len} words");
    }
    assert_eq!(rt.call(peer, 1, b"abc")?, b"`cb");
    rt.barrier()
}
