//! Every one-sided operation on every other rank, on this node and on others.

// The crate `tsumugi`, under a name that the crate's own tests can use, too.
use super::{api, roles};
use api::{AddrError, Buffer, Error, Outcome, Rank, Remote, Runtime, Signal, Until};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Words of the long arrays.
    many: usize,
    /// The number of ULTs at once, and the number of updates of each.
    ults: usize,
    updates: usize,
    /// Words of the longest message.
    longest: u32,
}

impl Extent {
    pub const FULL: Self = Self { many: MANY, ults: 40, updates: 10, longest: 300_000 };
    #[allow(dead_code)]
    pub const SHORT: Self = Self { many: 500, ults: 2, updates: 2, longest: 15_000 };
}

/// Runs the whole test; the one-sided operations go to each other rank in turn.
/// Collective.
pub fn play(rt: &Runtime, extent: Extent) -> Result<(), Error> {
    let own = rt.rank();
    let words = rt.share::<u64>(WORDS)?;
    let many = rt.share::<u32>(extent.many)?;
    let halves = rt.share::<u16>(64)?;
    for step in 1..rt.size() {
        let peer = Rank((own.0 + step) % rt.size());
        let column = own.0 as usize * PLACES;
        let at = |index: usize| words.at(peer, column + index);
        atomics(rt, at(0))?;
        small(rt, at(1), halves.at(peer, own.0 as usize))?;
        rt.barrier()?;
        long(rt, &|index| many.at(peer, index), peer, extent.many)?;
        rt.barrier()?;
        owned(rt, &|index| many.at(peer, index), peer, extent.many / 2)?;
        refused(rt, at(0), many.at(peer, 0), peer)?;
        rt.barrier()?;
    }
    many_at_once(rt, &|rank| words.at(rank, TALLY), extent)?;
    signals(rt, &|rank, from: Rank| words.at(rank, SIGNALS + from.0 as usize))?;
    gathered(rt)?;
    exposed(rt)?;
    places(rt)?;
    lengths(rt)?;
    starter(rt)?;
    calls(rt, extent.ults)?;
    messages(rt, extent.longest)
}

fn atomics(rt: &Runtime, word: Remote<u64>) -> Result<(), Error> {
    rt.put(word, 0b1100)?;
    assert_eq!(rt.fetch_add(word, 1)?, 0b1100);
    assert_eq!(rt.fetch_and(word, 0b0111)?, 0b1101);
    assert_eq!(rt.fetch_or(word, 0b1000)?, 0b0101);
    assert_eq!(rt.fetch_xor(word, 0b1111)?, 0b1101);
    assert_eq!(rt.swap(word, 7)?, 0b0010);
    assert_eq!(rt.compare_swap(word, 6, 1)?, 7);
    assert_eq!(rt.compare_swap(word, 7, u64::MAX)?, 7);
    assert_eq!(rt.fetch_add(word, 2)?, u64::MAX);
    assert_eq!(rt.get(word)?, 1);
    // The halves of the word.
    let low: Remote<u32> = Remote::new(word.addr());
    assert_eq!(rt.fetch_add(low.add(1), 5)?, 0);
    assert_eq!(rt.get(word)?, 5 << 32 | 1);
    Ok(())
}

fn small(rt: &Runtime, word: Remote<u64>, half: Remote<u16>) -> Result<(), Error> {
    rt.put(half, 0xabcd)?;
    assert_eq!(rt.get(half)?, 0xabcd);
    let byte: Remote<u8> = Remote::new(word.addr());
    rt.put(word, 0)?;
    rt.put(byte.add(2), 9)?;
    assert_eq!((rt.get(word)?, rt.get(byte.add(2))?), (9 << 16, 9));
    rt.put(word, 1 << 40)?;
    assert_eq!(rt.get(word)?, 1 << 40);
    Ok(())
}

/// Puts and gets of slices in borrowed memory of the process's heap.
fn long(
    rt: &Runtime,
    at: &dyn Fn(usize) -> Remote<u32>,
    peer: Rank,
    many: usize,
) -> Result<(), Error> {
    let salt = rt.rank().0 << 16 | peer.0;
    for (start, count) in [(0, 0), (1, 1), (3, 100), (many / 60, many / 3), (100, many - 100)] {
        let values: Vec<u32> =
            (0..count as u32).map(|value| value.wrapping_mul(77) ^ salt).collect();
        rt.put_slice(at(start), &values)?;
        let mut back = vec![0; count];
        rt.get_slice(at(start), &mut back)?;
        assert!(values == back, "{count} values from {start} on, of {peer}");
    }
    Ok(())
}

/// Buffers that the operation owns: in flight, with a future and with a callback.
fn owned(
    rt: &Runtime,
    at: &dyn Fn(usize) -> Remote<u32>,
    peer: Rank,
    count: usize,
) -> Result<(), Error> {
    let mut buf = rt.buffer::<u32>(count)?;
    buf.iter_mut().zip(0..).for_each(|(to, value)| *to = value ^ peer.0 << 20);
    let sent = buf.to_vec();
    let outcome = in_flight(rt.ops().put_buffer(at(7), buf));
    outcome.result?;
    let mut buf = outcome.buf;
    buf.fill(0);
    let outcome = in_flight(rt.ops().get_buffer(at(7), buf));
    outcome.result?;
    assert_eq!(outcome.buf[..], sent);
    let mut buf = outcome.buf;
    buf.fill(1);
    let outcome = api::ult::block_on(async {
        let put = rt.ops().put_buffer(at(7), buf).await;
        assert!(put.result.is_ok());
        rt.ops().get_buffer(at(8), put.buf).await
    });
    outcome.result?;
    assert!(outcome.buf[..count - 1].iter().all(|value| *value == 1));
    assert_eq!(outcome.buf[count - 1], rt.get(at(count + 7))?);
    let (done, wait) = mpsc::channel();
    let then = move |outcome: Outcome<Buffer<u32>>| {
        let _ = done.send((outcome.result.map(drop), outcome.buf[3]));
    };
    assert!(rt.ops().get_buffer(at(7), outcome.buf).then(then).is_ok());
    let result = loop {
        match wait.try_recv() {
            Ok(result) => break result,
            Err(_) => api::ult::yield_now(),
        }
    };
    assert_eq!(result, (Ok(()), 1));
    Ok(())
}

fn in_flight<C: api::deferred::Begin>(mut operation: api::Deferred<C>) -> C::Output {
    loop {
        match operation.try_begin() {
            Ok(begun) => return begun.wait(),
            Err(busy) => operation = busy.operation,
        }
        api::ult::yield_now();
    }
}

/// Bad addresses fail with the same errors as on the own rank.
fn refused(rt: &Runtime, word: Remote<u64>, value: Remote<u32>, peer: Rank) -> Result<(), Error> {
    let beyond = word.add(1 << 20);
    let is_range = |error| matches!(error, Some(AddrError::OutOfRange { region_bytes, .. }) if region_bytes == Some(8 * WORDS as u64));
    assert!(is_range(rt.get(beyond).err()) && is_range(rt.put(beyond, 1).err()));
    assert!(is_range(rt.fetch_add(beyond, 1).err()));
    assert!(is_range(rt.put_slice(beyond, &[1; 9]).err()));
    assert!(is_range(rt.get_slice(beyond, &mut [1; 9]).err()));
    let crooked: Remote<u64> = Remote::new(value.addr().add(4));
    let unaligned = AddrError::Unaligned { addr: crooked.addr(), align: 8 };
    assert_eq!(rt.fetch_add(crooked, 1), Err(unaligned));
    assert_eq!(rt.get(crooked), Err(unaligned));
    let mut stale = word.addr();
    stale.key = tsumugi_core::mem::RegionKey::new(4000, 3);
    let error = AddrError::StaleKey { addr: stale };
    assert_eq!(rt.fetch_add(Remote::<u64>::new(stale), 1), Err(error));
    assert_eq!(rt.get(Remote::<u64>::new(stale)), Err(error));
    assert_eq!(rt.put_slice(Remote::<u64>::new(stale), &[0; 3]), Err(error));
    assert_eq!(rt.get_slice(Remote::<u64>::new(stale), &mut [0; 3]), Err(error), "{peer}");
    Ok(())
}

/// Updates of many ULTs of all ranks on the same words: none is lost.
fn many_at_once(
    rt: &Runtime,
    word: &dyn Fn(Rank) -> Remote<u64>,
    Extent { ults: count, updates, .. }: Extent,
) -> Result<(), Error> {
    let words: Vec<Remote<u64>> = rt.ranks().map(word).collect();
    rt.put(words[rt.rank().0 as usize], 0)?;
    rt.barrier()?;
    let ults: Vec<_> = (0..count)
        .map(|ult| {
            let words = words.clone();
            rt.spawn(move |rt| {
                for round in 0..updates {
                    let word = words[(ult + round) % words.len()];
                    rt.fetch_add(word, 1).unwrap();
                }
            })
        })
        .collect();
    ults.into_iter().for_each(|ult| ult.join().unwrap());
    rt.barrier()?;
    let mut all = 0;
    for word in &words {
        all += rt.get(*word)?;
    }
    assert_eq!(all, (rt.size() as usize * count * updates) as u64);
    rt.barrier()
}

/// Puts with a signal: the data are there when the word has changed.
fn signals(rt: &Runtime, word: &dyn Fn(Rank, Rank) -> Remote<u64>) -> Result<(), Error> {
    let data = rt.share::<u32>(rt.size() as usize * 100)?;
    let own = rt.rank();
    for round in 1..=10_u32 {
        for peer in rt.ranks() {
            let at = data.at(peer, own.0 as usize * 100);
            rt.put_signal(at, &[round; 100], word(peer, own), Signal::Add(1))?;
        }
        for peer in rt.ranks() {
            rt.wait_until(word(own, peer), Until::AtLeast(u64::from(round)))?;
            let mut values = [0; 100];
            rt.get_slice(data.at(own, peer.0 as usize * 100), &mut values)?;
            assert_eq!(values, [round; 100], "of {peer}");
        }
        rt.barrier()?;
    }
    let never = Duration::from_millis(5);
    assert_eq!(rt.wait_until_timeout(word(own, own), Until::Equal(3), never)?, None);
    Ok(())
}

fn gathered(rt: &Runtime) -> Result<(), Error> {
    let sum: u64 = rt.ranks().map(|rank| u64::from(rank.0)).sum();
    for round in 0..5 {
        assert_eq!(rt.sum(u64::from(rt.rank().0) + round)?, sum + round * u64::from(rt.size()));
        let all = rt.allgather(u64::from(rt.rank().0) * 3 + round)?;
        assert!(all.into_iter().eq(rt.ranks().map(|rank| u64::from(rank.0) * 3 + round)));
    }
    Ok(())
}

/// An array whose keys differ between the ranks, and which is stale at the end.
fn exposed(rt: &Runtime) -> Result<(), Error> {
    // From here on, the keys differ between the ranks.
    let _some: Vec<_> = (0..rt.rank().0).map(|_| rt.expose::<u8>(100)).collect::<Result<_, _>>()?;
    let words = rt.share::<u64>(8)?;
    let next = Rank((rt.rank().0 + 1) % rt.size());
    rt.put(words.at(next, 3), u64::from(rt.rank().0))?;
    rt.barrier()?;
    let before = (rt.rank().0 + rt.size() - 1) % rt.size();
    assert_eq!(rt.get(words.at(rt.rank(), 3))?, u64::from(before));
    let gone = words.at(next, 3);
    drop(words);
    rt.barrier()?;
    rt.barrier()?;
    assert_eq!(rt.get(gone), Err(AddrError::StaleKey { addr: gone.addr() }));
    assert!(rt.share::<u64>(rt.rank().0 as usize + 1).is_err() || rt.size() == 1);
    Ok(())
}

/// `place_of` finds the owner of an address for peers of the own node, and not for ranks
/// of other nodes.
fn places(rt: &Runtime) -> Result<(), Error> {
    let words = rt.buffer::<u64>(100)?;
    let mine = words.as_ptr() as u64;
    let near: Vec<Rank> = rt.neighbours().collect();
    for (rank, place) in rt.ranks().zip(rt.allgather(mine)?) {
        let place = NonNull::new(place as *mut u8).expect("a buffer has a place");
        let owner = rt.place_of(place, 800).map(|(owner, _)| owner);
        assert_eq!(owner == Some(rank), near.contains(&rank), "{rank} at {place:?}: {owner:?}");
    }
    rt.barrier()
}

/// Lengths around those that fill whole pieces: one byte less, equal, one byte more.
fn lengths(rt: &Runtime) -> Result<(), Error> {
    const LONGEST: usize = 1 << 18;
    let bytes = rt.share::<u8>(LONGEST + 4)?;
    let next = Rank((rt.rank().0 + 1) % rt.size());
    for whole in [256, 4096, 8192, 1 << 16, LONGEST] {
        for len in [whole - 1, whole, whole + 1] {
            let put: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
            let mut got = vec![0; len];
            rt.put_slice(bytes.at(next, 3), &put)?;
            rt.get_slice(bytes.at(next, 3), &mut got)?;
            assert!(put == got, "{len} bytes of {next}");
        }
    }
    rt.barrier()
}

fn starter(rt: &Runtime) -> Result<(), Error> {
    let before = rt.get(rt.starter(rt.rank()).add(5))?;
    rt.barrier()?;
    for rank in rt.ranks() {
        rt.fetch_add(rt.starter(rank).add(5), 1)?;
    }
    rt.barrier()?;
    assert_eq!(rt.get(rt.starter(rt.rank()).add(5))?, before + u64::from(rt.size()));
    Ok(())
}

/// Active messages, short and long, answered at once and by ULTs that block.
fn calls(rt: &Runtime, count: usize) -> Result<(), Error> {
    let own = rt.rank();
    rt.handler(1, |message| message.bytes.iter().rev().copied().collect::<Vec<u8>>());
    let words = rt.share::<u64>(1)?;
    let word = {
        let all: Vec<_> = rt.ranks().map(|rank| words.at(rank, 0)).collect();
        move |rank: Rank| all[rank.0 as usize]
    };
    rt.service(2, move |rt, from, bytes| {
        // Blocks in an operation on the caller's memory.
        rt.fetch_add(word(from), bytes.len() as u64).expect("the caller lives").to_le_bytes()
    });
    rt.barrier()?;
    let long: Vec<u8> = (0..100_000_u32).map(|index| (index * 7) as u8).collect();
    for peer in rt.ranks() {
        assert_eq!(rt.call(peer, 1, b"silk")?, b"klis", "of {peer}");
        let ults: Vec<_> = (0..count)
            .map(|ult| {
                let long = long.clone();
                rt.spawn(move |rt| {
                    let bytes = &long[..ult * 500];
                    rt.call(peer, 2, bytes).map(|_| bytes.len() as u64)
                })
            })
            .collect();
        for ult in ults {
            ult.join().expect("no panic")?;
        }
    }
    let all = (0..count as u64).map(|ult| ult * 500).sum::<u64>() * u64::from(rt.size());
    assert_eq!(rt.get(words.at(own, 0))?, all);
    rt.barrier()
}

/// Messages of every class of lengths, around the ring of all ranks.
fn messages(rt: &Runtime, longest: u32) -> Result<(), Error> {
    let (comm, size) = (rt.comm(), rt.size());
    let (next, before) = (Rank((rt.rank().0 + 1) % size), Rank((rt.rank().0 + size - 1) % size));
    for (tag, len) in (0..).zip([0, 1, 30, 1000, longest / 30, longest]) {
        let sent: Vec<u32> = (0..len).map(|index| index * 3 + tag).collect();
        let sending = comm.isend(next, tag, sent.clone())?;
        let mut received = vec![0_u32; len as usize];
        let found = comm.recv(before, tag, &mut received)?;
        assert_eq!((found.source, received), (before, sent.clone()), "{len} words");
        sending.wait()?;
    }
    rt.barrier()
}

/// All kinds of operations on another node, and a wait, until the node does not answer any
/// more: each ends with an error that names a lost rank.
pub fn until_lost(rt: &Runtime) -> Result<(), Error> {
    lost_while(rt, 0..5)
}

/// The same without long transfers between the first ranks of the nodes, which send the
/// heartbeats.
pub fn until_lost_beside_heartbeats(rt: &Runtime) -> Result<(), Error> {
    let is_first = rt.neighbours().next() == Some(rt.rank());
    lost_while(rt, if is_first { 4..5 } else { 0..5 })
}

fn lost_while(rt: &Runtime, which: std::ops::Range<usize>) -> Result<(), Error> {
    let (words, many) = (rt.share::<u64>(8)?, rt.share::<u32>(MANY)?);
    let near: Vec<Rank> = rt.neighbours().collect();
    let remote = rt.ranks().filter(|rank| !near.contains(rank)).last().expect("several nodes");
    let (word, start) = (words.at(remote, 1), many.at(remote, 0));
    let never = words.at(rt.rank(), 2);
    rt.barrier()?;
    roles::say("working");
    type Way = Box<dyn Fn(&Runtime) -> Result<(), AddrError> + Send>;
    let ways: [Way; 5] = [
        Box::new(move |rt| rt.fetch_add(word, 1).map(drop)),
        Box::new(move |rt| rt.get(word).map(drop)),
        Box::new(move |rt| rt.put_slice(start, &[7; 1000])),
        Box::new(move |rt| rt.get_slice(start, &mut vec![7; MANY])),
        Box::new(move |rt| rt.wait_until(never, Until::Equal(1)).map(drop)),
    ];
    let some = ways.into_iter().enumerate().filter(|(number, _)| which.contains(number));
    let lost = some.map(|(_, way)| {
        rt.spawn(move |rt| {
            loop {
                if let Err(error) = way(rt) {
                    return error;
                }
            }
        })
    });
    for lost in lost.collect::<Vec<_>>() {
        let error = lost.join().expect("no way panics");
        let AddrError::PeerLost { rank } = error else { return Err(error.into()) };
        assert!(!near.contains(&rank), "{rank}");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    roles::say(&format!("lost in 5 ways: at {}", now.as_millis()));
    // A slower neighbour must not notice this rank's end before the loss of the node.
    rt.put(words.at(rt.rank(), 3), 1)?;
    for near in near {
        while rt.get(words.at(near, 3))? == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Err(Error::program("nothing is left to do"))
}

/// A callback panics on the network's thread, while all workers compute, so that only this
/// thread polls the network. The next callback is called all the same.
pub fn panics(rt: &Runtime) -> Result<(), Error> {
    let words = rt.share::<u64>(8)?;
    let near: Vec<Rank> = rt.neighbours().collect();
    let remote = rt.ranks().find(|rank| !near.contains(rank)).expect("several nodes");
    rt.barrier()?;
    let (begun, ended) = (Arc::new(AtomicUsize::new(1)), Arc::new(AtomicUsize::new(0)));
    let busy: Vec<_> = (1..rt.workers())
        .map(|_| {
            let (begun, ended) = (begun.clone(), ended.clone());
            rt.spawn(move |_| {
                begun.fetch_add(1, Ordering::SeqCst);
                while ended.load(Ordering::SeqCst) < 2 {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    while begun.load(Ordering::SeqCst) < rt.workers() {
        std::hint::spin_loop();
    }
    for number in 1..=2 {
        let (buf, ends) = (rt.buffer::<u64>(1)?, ended.clone());
        let then = move |_: Outcome<Buffer<u64>>| {
            ends.fetch_add(1, Ordering::SeqCst);
            assert!(number > 1, "a callback has had enough");
        };
        assert!(rt.ops().get_buffer(words.at(remote, 0), buf).then(then).is_ok());
        while ended.load(Ordering::SeqCst) < number {
            std::hint::spin_loop();
        }
    }
    for busy in busy {
        busy.join().expect("no ULT panics");
    }
    rt.barrier()
}

/// All ranks read from another node all the time, more than the network transfers. All
/// other operations still end.
pub fn flooded(rt: &Runtime) -> Result<(), Error> {
    let (words, many) = (rt.share::<u64>(8)?, rt.share::<u32>(MANY)?);
    let near: Vec<Rank> = rt.neighbours().collect();
    let remote = rt.ranks().find(|rank| !near.contains(rank)).expect("several nodes");
    let start = many.at(remote, 0);
    rt.handler(3, |message| message.bytes.to_vec());
    rt.barrier()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let floods: Vec<_> = (0..40)
        .map(|_| {
            let is_over = is_over.clone();
            rt.spawn(move |rt| {
                while !is_over.load(Ordering::Relaxed) {
                    rt.get_slice(start, &mut vec![7; 1000])?;
                }
                Ok::<_, AddrError>(())
            })
        })
        .collect();
    for _ in 0..2 {
        messages(rt, 1000)?;
        for peer in rt.ranks() {
            assert_eq!(rt.call(peer, 3, b"silk")?, b"silk", "of {peer}");
            rt.fetch_add(words.at(peer, 1), 1)?;
        }
        rt.barrier()?;
    }
    is_over.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.join().expect("no ULT panics")?;
    }
    rt.barrier()?;
    assert_eq!(rt.get(words.at(remote, 1))?, 2 * u64::from(rt.size()));
    rt.barrier()
}

/// Long puts and gets of several ULTs, over a link that takes seconds for them: no rank
/// is taken for lost meanwhile.
pub fn bulk(rt: &Runtime) -> Result<(), Error> {
    const WORDS: usize = 3 << 20;
    const ULTS: usize = 4;
    let many = rt.share::<u32>(WORDS * ULTS)?;
    let near: Vec<Rank> = rt.neighbours().collect();
    let remote = rt.ranks().find(|rank| !near.contains(rank)).expect("several nodes");
    rt.barrier()?;
    if rt.rank() == Rank(0) {
        let ults: Vec<_> = (0..ULTS)
            .map(|ult| {
                let at = many.at(remote, ult * WORDS);
                rt.spawn(move |rt| {
                    let mut words = rt.buffer::<u32>(WORDS).expect("so much memory");
                    words.fill(ult as u32 + 1);
                    rt.put_slice(at, &words)?;
                    words.fill(0);
                    rt.get_slice(at, &mut words)?;
                    assert!(words.iter().all(|word| *word == ult as u32 + 1));
                    Ok::<_, AddrError>(())
                })
            })
            .collect();
        for ult in ults {
            ult.join().expect("no ULT panics")?;
        }
    }
    rt.barrier()
}

/// Ranks that only compute and sleep in the kernel, and never poll the network. Operations
/// on their memory work all the same. They end when each caller has done all of its
/// operations.
pub fn deaf(rt: &Runtime) -> Result<(), Error> {
    let words = rt.share::<u64>(2)?;
    rt.barrier()?;
    let remote = rt.ranks().find(|rank| rt.neighbours().all(|near| near != *rank)).unwrap();
    // The ranks of the first half of the job call, and those of the second half are deaf.
    let half = rt.size() / 2;
    if rt.rank().0 >= half {
        let told = rt.pointer(words.own().at(1))?.expose_provenance().get();
        let deaf = move || {
            be_deaf(|| {
                let told = std::ptr::with_exposed_provenance::<u64>(told);
                // SAFETY: the word belongs to the array, which lives until all have ended.
                unsafe { told.read_volatile() == u64::from(half) }
            })
        };
        let ults: Vec<_> = (0..rt.workers()).map(|_| rt.spawn(move |_| deaf())).collect();
        ults.into_iter().for_each(|ult| ult.join().unwrap());
        return Ok(());
    }
    let start = Instant::now();
    for _ in 0..ANSWERS {
        rt.fetch_add(words.at(remote, 0), 1)?;
        rt.put(words.at(remote, 0), 3)?;
    }
    roles::say(&format!("{} was answered {ANSWERS} times in {:?}", rt.rank(), start.elapsed()));
    (half..rt.size()).try_for_each(|deaf| rt.fetch_add(words.at(Rank(deaf), 1), 1).map(drop))?;
    Ok(())
}

/// Computes and sleeps in turn, without a call of the runtime, until `is_over`.
fn be_deaf(is_over: impl Fn() -> bool) {
    while !is_over() {
        let start = Instant::now();
        while start.elapsed() < DEAF {
            std::hint::spin_loop();
        }
        std::thread::sleep(3 * DEAF);
    }
}

const DEAF: Duration = Duration::from_millis(100);
const ANSWERS: u32 = 200;
const PLACES: usize = 2;
const TALLY: usize = 200;
const SIGNALS: usize = 201;
const WORDS: usize = 300;
const MANY: usize = 60_000;
