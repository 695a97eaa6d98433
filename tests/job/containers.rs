//! Containers that the ULTs of all ranks use at once; the containers lie on several ranks.

use std::collections::BTreeSet;
use tsumugi::global::container::{
    ContainerError, Data, Deque, Keyed, List, Map, Multiset, Reach, Set, Store, Vector,
};
use tsumugi::global::{GlobalAddr, Pool};
use tsumugi::{AddrError, Error, GlobalMap, GlobalVec, Rank, Runtime};

/// The amount of work of each rank.
#[derive(Clone, Copy)]
struct Work {
    ults: u64,
    steps: u64,
}

/// Runs the whole test. Collective.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    let work = some(rt);
    let pool = rt.global()?.pool(4 << 20)?;
    rows(rt, &pool, work)?;
    keys(rt, &pool, work)?;
    memory(rt, &pool)?;
    values(rt, work)
}

/// The same with a thousand ULTs of each rank.
pub fn crowd(rt: &Runtime) -> Result<(), Error> {
    let work = Work { ults: 1000, steps: 2 };
    let pool = rt.global()?.pool(64 << 20)?;
    rows(rt, &pool, work)?;
    keys(rt, &pool, work)
}

/// ULTs of all ranks push to a vector until the last rank is killed, and a while longer:
/// each push works, or fails with the loss of the killed rank. Pushes to another vector,
/// which the killed rank does not use, work all the time.
pub fn holders(rt: &Runtime) -> Result<(), Error> {
    let pool = rt.global()?.pool(16 << 20)?;
    let make = || Vector::create(&pool, 0, Rank(0)).map(|vector| vector.addr());
    let (all, apart) = (made(rt, &pool, make)?, made(rt, &pool, make)?);
    let (all, apart) = (Vector::at_addr(all), Vector::at_addr(apart));
    let victim = Rank(rt.size() - 1);
    rt.barrier()?;
    super::roles::say(&format!("working {}", std::process::id()));
    let pushes = on_ults(rt, &pool, some(rt).ults, move |pool, _| {
        let (mut pushed, mut left) = (0, 3);
        while left > 0 {
            left -= u32::from(pool.lost().is_some());
            match all.push_back(pool, Data::Here(&[1])) {
                Ok(_) => {}
                Err(error) if has_gone(error, victim) => break,
                Err(error) => assert!(is_lost(error), "{error}"),
            }
            if pool.rank() != victim {
                match apart.push_back(pool, Data::Here(&[1])) {
                    Ok(_) => pushed += 1,
                    Err(error) if has_gone(error, victim) => break,
                    Err(error) => panic!("the dead rank did not use this vector: {error}"),
                }
            }
        }
        pushed
    });
    super::roles::say(&format!("all pushes ended: {}", pushes > 0));
    Ok(())
}

fn is_lost(error: ContainerError) -> bool {
    matches!(error, ContainerError::Access(AddrError::PeerLost { .. }))
}

/// Whether the error says that a rank other than the killed one has ended.
fn has_gone(error: ContainerError, victim: Rank) -> bool {
    let is_stale = matches!(error, ContainerError::Access(AddrError::StaleKey { .. }));
    let is_its = error == ContainerError::Access(AddrError::PeerLost { rank: victim });
    is_stale || (is_lost(error) && !is_its)
}

/// Vector, deque and list.
fn rows(rt: &Runtime, pool: &Pool, work: Work) -> Result<(), Error> {
    let last = Rank(rt.size() - 1);
    let vector =
        Vector::at_addr(made(rt, pool, || Vector::create(pool, 0, last).map(|v| v.addr()))?);
    let deque =
        Deque::at_addr(made(rt, pool, || Deque::create(pool, 0, Rank(0)).map(|d| d.addr()))?);
    let list = List::at_addr(made(rt, pool, || List::create(pool, last).map(|list| list.addr()))?);
    on_ults(rt, pool, work.ults, move |pool, ult| {
        for step in 0..work.steps {
            let record = record(pool.rank(), ult, step).to_le_bytes();
            let data = Data::Here(&record);
            vector.push_back(pool, data).unwrap();
            if step % 2 == 0 {
                deque.push_back(pool, data).map(drop)
            } else {
                deque.push_front(pool, data)
            }
            .unwrap();
            list.push_back(pool, data, pool.rank()).unwrap();
        }
        0
    });
    rt.barrier()?;
    let wanted: BTreeSet<u64> = rt
        .ranks()
        .flat_map(|rank| (0..work.ults * work.steps).map(move |at| (rank, at)))
        .map(|(rank, at)| record(rank, at / work.steps, at % work.steps))
        .collect();
    for sequence in [*vector, *deque] {
        let mut bytes = vec![0; sequence.size(pool).unwrap() as usize];
        sequence.read(pool, 0, &mut bytes).unwrap();
        let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        assert_eq!(words.clone().count(), wanted.len());
        assert_eq!(words.collect::<BTreeSet<_>>(), wanted);
    }
    assert_eq!(list.size(pool), Ok(wanted.len() as u64));
    rt.barrier()?;
    on_ults(rt, pool, work.ults, move |pool, _| {
        for step in 0..work.steps {
            vector.pop_back(pool, 8).unwrap();
            deque.pop_front(pool, 8).unwrap();
            if step % 2 == 0 { list.pop_front(pool) } else { list.pop_back(pool) }.unwrap();
        }
        0
    });
    rt.barrier()?;
    assert_eq!((vector.size(pool), deque.size(pool), list.size(pool)), (Ok(0), Ok(0), Ok(0)));
    rt.barrier()?;
    if rt.rank() == last {
        vector.destroy(pool).unwrap();
        deque.destroy(pool).unwrap();
        list.destroy(pool).unwrap();
    }
    rt.barrier()
}

/// Set, multiset and map.
fn keys(rt: &Runtime, pool: &Pool, work: Work) -> Result<(), Error> {
    let ranks: Vec<Rank> = rt.ranks().collect();
    let set = Set::create(pool, &ranks, 4, Rank(0))?;
    let set = keyed::<Set>(rt, pool, set.addr)?;
    let counts = Multiset::create(pool, &ranks, 4, Rank(0))?;
    let counts = keyed::<Multiset>(rt, pool, counts.addr)?;
    let map = Map::create(pool, &ranks, 4, Rank(0))?;
    let map = keyed::<Map>(rt, pool, map.addr)?;
    let firsts = on_ults(rt, pool, work.ults, move |pool, ult| {
        let mut firsts = 0;
        for key in 0..work.steps {
            firsts += u64::from(set.insert(pool, Data::Here(&key.to_le_bytes())).unwrap());
            let some = ((ult + key) % 7).to_le_bytes();
            counts.insert(pool, Data::Here(&some)).unwrap();
            let value = [ult as u8; 100];
            match (ult + key) % 3 {
                0 => _ = map.insert(pool, Data::Here(&some), Data::Here(&value)).unwrap(),
                1 => _ = map.remove(pool, Data::Here(&some)).unwrap(),
                _ => {
                    let mut found = [0; 100];
                    if map.get(pool, Data::Here(&some), &mut found).unwrap().is_some() {
                        assert!(found.iter().all(|&byte| byte == found[0]), "{found:?}");
                    }
                }
            }
        }
        firsts
    });
    assert_eq!(rt.sum(firsts)?, work.steps, "each key is inserted once");
    let times = |key: u64| counts.times(pool, Data::Here(&key.to_le_bytes())).unwrap();
    let all = u64::from(rt.size()) * work.ults * work.steps;
    assert_eq!((0..7).map(times).sum::<u64>(), all);
    let own = set.size(pool, Reach::Local).unwrap();
    assert_eq!(rt.sum(own)?, set.size(pool, Reach::All).unwrap());
    rt.barrier()?;
    if rt.rank() == Rank(0) {
        set.destroy(pool).unwrap();
        counts.destroy(pool).unwrap();
        map.destroy(pool).unwrap();
    }
    rt.barrier()
}

/// Containers of values: each ULT has a key of its own, and all have one.
fn values(rt: &Runtime, work: Work) -> Result<(), Error> {
    let last = Rank(rt.size() - 1);
    let map = GlobalMap::<str, u64>::options().buckets(4).create(rt)?;
    let vector = GlobalVec::<[u64; 3]>::options().home(last).create(rt)?;
    let (deque, list) = (rt.deque::<u64>()?, rt.list::<[u8]>()?);
    // Names travel in words; each rank opens what the rank before it has.
    let next = (rt.rank().0 as usize + 1) % rt.size() as usize;
    let name = GlobalAddr::from_bits(rt.allgather(map.addr().to_bits())?[next]);
    let opened = GlobalMap::<str, u64>::open(rt, name)?;
    let ults: Vec<_> = (0..work.ults)
        .map(|ult| {
            let (map, vector) = (opened.clone(), vector.clone());
            let (deque, list) = (deque.clone(), list.clone());
            rt.spawn(move |rt| {
                let own = record(rt.rank(), ult, 0);
                for step in 1..=work.steps {
                    map.update("all", |count| Some(count.unwrap_or(0) + 1))?;
                    let old = map.insert(&format!("thread {own}"), step)?;
                    assert_eq!(old, (step > 1).then_some(step - 1));
                    vector.push([own + step; 3])?;
                    deque.push_front(step)?;
                    list.push_back(&vec![step as u8; step as usize])?;
                    assert!(deque.pop_back()?.is_some_and(|found| found <= work.steps));
                }
                Ok::<_, Error>(())
            })
        })
        .collect();
    for ult in ults {
        ult.join()??;
    }
    drop(opened);
    rt.barrier()?;
    let calls = u64::from(rt.size()) * work.ults * work.steps;
    assert_eq!(map.get("all")?, Some(calls));
    let entries = map.iter().collect::<Result<BTreeSet<_>, _>>()?;
    assert_eq!(entries.len() as u64, 1 + u64::from(rt.size()) * work.ults);
    let own = map.iter_local().count() as u64;
    assert_eq!(rt.sum(own)?, entries.len() as u64);
    let rows = vector.iter().collect::<Result<BTreeSet<_>, _>>()?;
    assert!(rows.iter().all(|row| row[0] == row[1] && row[1] == row[2]));
    assert_eq!((rows.len() as u64, vector.len()? as u64), (calls, calls));
    assert!(deque.is_empty()?);
    let own = list.iter_local().map(|value| value.map(|value| value.len() as u64));
    let bytes = rt.sum(own.sum::<Result<u64, _>>()?)?;
    let all = list.iter().map(|value| value.map(|value| value.len() as u64));
    assert_eq!((bytes, all.sum::<Result<u64, _>>()?), (bytes, bytes));
    assert_eq!(bytes, calls * (work.steps + 1) / 2);
    rt.barrier()?;
    map.free()?;
    vector.free()?;
    deque.free()?;
    list.free()
}

/// Allocates all blocks of the next rank, frees them, and allocates them again.
fn memory(rt: &Runtime, pool: &Pool) -> Result<(), Error> {
    let next = Rank((rt.rank().0 + 1) % rt.size());
    for _ in 0..2 {
        let mut blocks = Vec::new();
        while let Ok(block) = pool.allocate(next, 64 << 10) {
            pool.write(block, &[7; 100])?;
            blocks.push(block);
        }
        assert!(blocks.len() >= 20, "{} blocks", blocks.len());
        blocks.into_iter().for_each(|block| pool.free(block).unwrap());
        assert!(pool.allocate(next, 1 << 30).is_err());
        rt.barrier()?;
    }
    rt.barrier()
}

/// Makes an object on rank 0, and returns its address to all ranks. Collective.
fn made<E: std::fmt::Debug>(
    rt: &Runtime,
    pool: &Pool,
    make: impl FnOnce() -> Result<GlobalAddr, E>,
) -> Result<GlobalAddr, Error> {
    let own = if rt.rank() == Rank(0) { make().unwrap() } else { GlobalAddr::NULL };
    Ok(pool.global().tell(own)?[0])
}

/// Keeps the table that rank 0 has made, and destroys those of the other ranks.
/// Collective.
fn keyed<K: Keyed>(rt: &Runtime, pool: &Pool, own: GlobalAddr) -> Result<K, Error> {
    let first = pool.global().tell(own)?[0];
    if rt.rank() != Rank(0) {
        K::at_addr(pool, own)?.destroy(pool)?;
    }
    K::at_addr(pool, first).map_err(Error::other)
}

/// A number that is unique for each step of each ULT of each rank.
fn record(rank: Rank, ult: u64, step: u64) -> u64 {
    (u64::from(rank.0) << 32) | (ult << 16) | step
}

/// Fewer ULTs on several nodes, where each step takes messages.
fn some(rt: &Runtime) -> Work {
    let is_near = rt.neighbours().count() == rt.size() as usize;
    Work { ults: if is_near { 30 } else { 6 }, steps: 8 }
}

/// Runs `call` on `ults` ULTs, and returns the sum of their results.
fn on_ults(
    rt: &Runtime,
    pool: &Pool,
    ults: u64,
    call: impl Fn(&Pool, u64) -> u64 + Copy + Send + 'static,
) -> u64 {
    let ults: Vec<_> = (0..ults)
        .map(|ult| {
            let pool = pool.clone();
            rt.spawn(move |_| call(&pool, ult))
        })
        .collect();
    ults.into_iter().map(|ult| ult.join().unwrap()).sum()
}
