//! Containers of values, on ranks that are threads: each against std's by random calls of
//! several ranks and ULTs, and what happens when memory runs out or a rank dies.

mod every_way;

use every_way::run_ranks;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use tsumugi::container::ContainerError;
use tsumugi::{
    AddrError, Config, Error, GlobalAddr, GlobalDeque, GlobalList, GlobalMap, GlobalMultiset,
    GlobalSet, GlobalVec, Plain, Rank, Runtime,
};
use tsumugi_conformance::Seeded;

/// A key of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Plain)]
#[repr(C)]
struct Cell {
    row: u32,
    column: u32,
}

/// The seeds of a test; each is printed if the test fails.
fn seeds() -> impl Iterator<Item = u64> {
    let one = std::env::var("TSUMUGI_SEED").ok();
    let one = one.and_then(|seed| u64::from_str_radix(seed.trim_start_matches("0x"), 16).ok());
    one.map_or(1..4, |seed| seed..seed + 1)
}

/// Runs `call` on `ults` ULTs of this rank.
fn on_ults(rt: &Runtime, ults: u64, call: impl Fn(&Runtime, u64) + Clone + Send + 'static) {
    let ults: Vec<_> = (0..ults)
        .map(|ult| {
            let call = call.clone();
            rt.spawn(move |rt| call(rt, ult))
        })
        .collect();
    ults.into_iter().for_each(|ult| ult.join().unwrap());
}

/// Each thread has keys of its own, so a model for each of them knows all results, while the
/// buckets are common to all.
#[test]
fn a_map_behaves_as_a_btree_map_under_calls_of_all_ranks() {
    for seed in seeds() {
        run_ranks(3, |rt| {
            let options = GlobalMap::<Cell, [u16; 5]>::options();
            let map = options.buckets(4).home(Rank(1)).ranks(&[Rank(0), Rank(2)]).create(rt)?;
            let shared = map.clone();
            on_ults(rt, 4, move |rt, ult| {
                let map = shared.clone();
                let thread = rt.rank().0 * 4 + ult as u32;
                let mut draw = Seeded(seed << 8 | u64::from(thread));
                let mut model = BTreeMap::new();
                for step in 0..60 {
                    let key = Cell { row: thread, column: draw.below(7) as u32 };
                    let value = [step; 5];
                    let old = model.get(&key).copied();
                    match draw.below(6) {
                        0 | 1 => {
                            assert_eq!(map.insert(key, value).unwrap(), old);
                            model.insert(key, value);
                        }
                        2 => {
                            assert_eq!(map.remove(key).unwrap(), old);
                            model.remove(&key);
                        }
                        3 => {
                            assert_eq!(map.insert_new(key, value).unwrap(), old.is_none());
                            model.entry(key).or_insert(value);
                        }
                        4 => {
                            let change = |value: Option<[u16; 5]>| match value {
                                Some([first, ..]) if first % 2 == 0 => None,
                                Some([first, ..]) => Some([first + 1; 5]),
                                None => Some([1; 5]),
                            };
                            assert_eq!(map.update(key, change).unwrap(), change(old));
                            match change(old) {
                                Some(value) => model.insert(key, value),
                                None => model.remove(&key),
                            };
                        }
                        _ => {
                            assert_eq!(map.get(key).unwrap(), old, "seed {seed:#x}");
                            assert_eq!(map.contains_key(key).unwrap(), old.is_some());
                        }
                    }
                }
                let own = map.iter().map(Result::unwrap).filter(|(key, _)| key.row == thread);
                assert_eq!(own.collect::<BTreeMap<_, _>>(), model, "seed {seed:#x}");
            });
            rt.barrier()?;
            let all: Vec<_> = map.iter().collect::<Result<_, _>>()?;
            assert_eq!(all.len(), map.len()?);
            let local: Vec<_> = map.iter_local().collect::<Result<_, _>>()?;
            assert_eq!(local.len(), map.len_local()?);
            assert!(rt.rank() != Rank(1) || local.is_empty());
            for (key, value) in local {
                assert_eq!((map.rank_of(key)?, map.get(key)?), (rt.rank(), Some(value)));
            }
            assert_eq!(rt.sum(map.len_local()? as u64)?, all.len() as u64);
            rt.barrier()?;
            if rt.rank() == Rank(2) {
                map.clear()?;
                assert!(map.is_empty()?);
            }
            rt.barrier()?;
            map.free()
        });
    }
}

#[test]
fn sets_and_counts_are_those_of_all_ranks() {
    run_ranks(3, |rt| {
        let (set, counts) = (rt.set::<str>()?, rt.multiset::<[u8]>()?);
        let (own_set, own_counts) = (set.clone(), counts.clone());
        let firsts = rt.spawn(move |_| {
            let mut firsts = 0;
            for number in 0..50_u8 {
                firsts += u64::from(own_set.insert(&format!("key {}", number % 10)).unwrap());
                own_counts.insert(&[number % 5][..usize::from(number % 2)]).unwrap();
            }
            firsts
        });
        assert_eq!(rt.sum(firsts.join()?)?, 10);
        let keys: BTreeSet<String> = set.iter().collect::<Result<_, _>>()?;
        assert_eq!(keys, (0..10).map(|number| format!("key {number}")).collect());
        assert_eq!(counts.count(&[])?, 3 * 25);
        let all: BTreeMap<Vec<u8>, u64> = counts.iter().collect::<Result<_, _>>()?;
        assert_eq!(all.values().sum::<u64>(), 3 * 50);
        assert_eq!(all.len(), counts.len()?);
        rt.barrier()?;
        if rt.rank() == Rank(1) {
            assert!(set.remove("key 3")? && !set.remove("key 3")? && !set.contains("key 3")?);
            assert!(counts.remove(&[])?);
            assert_eq!((counts.remove_all(&[])?, counts.count(&[])?), (3 * 25 - 1, 0));
            assert!(!counts.remove(&[])?);
        }
        rt.barrier()?;
        assert_eq!((set.len()?, rt.sum(set.iter_local().count() as u64)?), (9, 9));
        assert_eq!(rt.sum(counts.iter_local().count() as u64)?, counts.len()? as u64);
        rt.barrier()
    });
}

#[test]
fn a_vector_behaves_as_a_vec() {
    for seed in seeds() {
        run_ranks(2, |rt| {
            let vector = GlobalVec::<Cell>::options().capacity(3).home(Rank(1)).create(rt)?;
            let mut model = Vec::new();
            // One rank after the other changes it; both know the changes.
            let mut draw = Seeded(seed);
            for step in 0..120_u32 {
                let value = Cell { row: step, column: seed as u32 };
                let index = draw.below(model.len() as u64 + 1) as usize;
                let other = draw.below(model.len() as u64 + 1) as usize;
                let (call, is_inside) = (draw.below(10), index < model.len());
                if rt.rank().0 == step % 2 {
                    match call {
                        0..4 => assert_eq!(vector.push(value)?, model.len()),
                        4 => assert_eq!(vector.pop()?, model.last().copied(), "seed {seed:#x}"),
                        5 => vector.insert(index, value)?,
                        6 if is_inside => assert_eq!(vector.remove(index)?, model[index]),
                        7 if is_inside => assert_eq!(vector.set(index, value)?, model[index]),
                        8 if is_inside && other < model.len() => vector.swap(index, other)?,
                        9 if is_inside => {
                            let new = vector.update(index, |old| Cell { row: 0, ..old })?;
                            assert_eq!(new, Cell { row: 0, ..model[index] });
                        }
                        _ => vector.extend_from_slice(&[value; 3])?,
                    }
                }
                match call {
                    0..4 => model.push(value),
                    4 => _ = model.pop(),
                    5 => model.insert(index, value),
                    6 if is_inside => _ = model.remove(index),
                    7 if is_inside => model[index] = value,
                    8 if is_inside && other < model.len() => model.swap(index, other),
                    9 if is_inside => model[index].row = 0,
                    _ => model.extend([value; 3]),
                }
                rt.barrier()?;
                assert_eq!(vector.get(index)?, model.get(index).copied(), "seed {seed:#x}");
                assert_eq!((vector.len()?, vector.first()?), (model.len(), model.first().copied()));
                rt.barrier()?;
            }
            assert_eq!(vector.to_vec()?, model, "seed {seed:#x}");
            let all: Vec<_> = vector.iter().collect::<Result<_, _>>()?;
            assert_eq!(all, model);
            let mut some = vec![Cell { row: 0, column: 0 }; model.len()];
            vector.get_slice(0, &mut some)?;
            assert_eq!(some, model);
            let (index, len) = (model.len() as u64, model.len() as u64);
            for refused in [
                vector.set(model.len(), model[0]).map(drop),
                vector.update(model.len(), |old| old).map(drop),
                vector.remove(model.len()).map(drop),
                vector.swap(0, model.len()),
                vector.get_slice(1, &mut some),
            ] {
                let wanted = ContainerError::NoElement { index, len };
                assert!(matches!(refused, Err(Error::Container(error)) if error == wanted));
            }
            assert_eq!(vector.get(usize::MAX)?, None);
            rt.barrier()?;
            if rt.rank() == Rank(0) {
                vector.truncate(2)?;
                assert_eq!(vector.to_vec()?, model[..2]);
                vector.clear()?;
            }
            rt.barrier()?;
            assert!(vector.is_empty()? && vector.iter().next().is_none());
            rt.barrier()
        });
    }
}

#[test]
fn rows_of_all_ranks_have_each_element_once() {
    run_ranks(3, |rt| {
        let (vector, deque, list) = (rt.vector::<u64>()?, rt.deque::<u64>()?, rt.list::<str>()?);
        let all = (vector.clone(), deque.clone(), list.clone());
        on_ults(rt, 5, move |rt, ult| {
            let (vector, deque, list) = &all;
            for step in 0..20 {
                let value = u64::from(rt.rank().0) << 32 | ult << 16 | step;
                vector.push(value).unwrap();
                if step % 2 == 0 { deque.push_back(value) } else { deque.push_front(value) }
                    .unwrap();
                let text = value.to_string();
                if step % 2 == 0 { list.push_back(&text) } else { list.push_front(&text) }.unwrap();
            }
        });
        rt.barrier()?;
        let once: BTreeSet<u64> = vector.iter().collect::<Result<_, _>>()?;
        assert_eq!(once.len(), 3 * 5 * 20);
        assert_eq!(deque.to_vec()?.into_iter().collect::<BTreeSet<_>>(), once);
        let texts = list.iter().map(|text| text.map(|text| text.parse().unwrap()));
        assert_eq!(texts.collect::<Result<BTreeSet<u64>, _>>()?, once);
        assert_eq!(list.iter_local().count(), 5 * 20);
        rt.barrier()?;
        let taken = std::sync::Arc::new(AtomicU64::new(0));
        let (tally, (own_vector, own_deque, own_list)) =
            (taken.clone(), (vector.clone(), deque.clone(), list.clone()));
        on_ults(rt, 5, move |_, ult| {
            let mut count = 0;
            let is_back = ult % 2 == 0;
            let from_deque = || match is_back {
                true => own_deque.pop_back(),
                false => own_deque.pop_front(),
            };
            let from_list = || match is_back {
                true => own_list.pop_back(),
                false => own_list.pop_front(),
            };
            count += std::iter::from_fn(|| own_vector.pop().unwrap()).count() as u64;
            count += std::iter::from_fn(|| from_deque().unwrap()).count() as u64;
            count += std::iter::from_fn(|| from_list().unwrap()).count() as u64;
            tally.fetch_add(count, Ordering::Relaxed);
        });
        assert_eq!(rt.sum(taken.load(Ordering::Relaxed))?, 3 * 3 * 5 * 20);
        assert!(vector.is_empty()? && deque.is_empty()? && list.is_empty()?);
        rt.barrier()
    });
}

#[test]
fn a_deque_and_a_list_behave_as_those_of_std() {
    for seed in seeds() {
        run_ranks(1, |rt| {
            let (deque, list) = (rt.deque::<i16>()?, rt.list::<i16>()?);
            let (mut model, mut draw) = (VecDeque::new(), Seeded(seed));
            for step in 0..400 {
                match draw.below(6) {
                    0 | 1 => {
                        deque.push_back(step)?;
                        list.push_back(step)?;
                        model.push_back(step);
                    }
                    2 | 3 => {
                        deque.push_front(step)?;
                        list.push_front(step)?;
                        model.push_front(step);
                    }
                    4 => {
                        let wanted = model.pop_back();
                        assert_eq!((deque.pop_back()?, list.pop_back()?), (wanted, wanted));
                    }
                    _ => {
                        let wanted = model.pop_front();
                        assert_eq!((deque.pop_front()?, list.pop_front()?), (wanted, wanted));
                    }
                }
            }
            let model = Vec::from(model);
            assert_eq!(deque.to_vec()?, model, "seed {seed:#x}");
            assert_eq!(list.iter().collect::<Result<Vec<_>, _>>()?, model);
            assert_eq!(list.len()?, model.len());
            list.push_back(model[0])?;
            assert_eq!(list.remove(model[0])?, 2);
            list.clear()?;
            assert!(list.is_empty()?);
            Ok(())
        });
    }
}

/// A thread that goes through a map while others change it sees each key that stays.
#[test]
fn an_iteration_sees_each_element_that_stays() {
    run_ranks(3, |rt| {
        let map = GlobalMap::<u64, u64>::options().buckets(8).create(rt)?;
        for key in (0..30).filter(|key| key % 3 == u64::from(rt.rank().0)) {
            map.insert(key, key)?;
        }
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            for _ in 0..20 {
                let seen: Vec<_> = map.iter().collect::<Result<_, _>>()?;
                let once: BTreeMap<_, _> = seen.iter().copied().collect();
                assert_eq!(once.len(), seen.len(), "a key twice");
                for key in 0..30 {
                    assert_eq!(once.get(&key), Some(&key));
                }
            }
        } else {
            for step in 0..200 {
                let key = 100 + step % 40;
                map.update(key, |value| value.is_none().then_some(key))?;
            }
        }
        rt.barrier()
    });
}

#[test]
fn a_container_is_opened_by_its_name_and_freed_when_no_handle_is_left() {
    run_ranks(2, |rt| {
        let map = rt.map::<str, u64>()?;
        let words = rt.share::<GlobalAddr>(1)?;
        rt.put(words.at(Rank(1 - rt.rank().0), 0), map.addr())?;
        rt.barrier()?;
        let name = rt.get(words.at(rt.rank(), 0))?;
        let opened = GlobalMap::<str, u64>::open(rt, name)?;
        opened.update("handles", |count| Some(count.unwrap_or(0) + 1))?;
        // Other types, another kind, another address.
        let refused = |error| matches!(error, Error::Container(ContainerError::NoContainer { addr }) if addr == name);
        assert!(refused(GlobalMap::<str, u32>::open(rt, name).unwrap_err()));
        assert!(refused(GlobalMap::<[u8], u64>::open(rt, name).unwrap_err()));
        assert!(refused(GlobalSet::<str>::open(rt, name).unwrap_err()));
        assert!(refused(GlobalList::<str>::open(rt, name).unwrap_err()));
        let own = rt.global()?.expose::<u64>(8)?;
        assert!(GlobalVec::<u64>::open(rt, own.at(0).addr()).is_err());
        assert!(GlobalVec::<u64>::open(rt, GlobalAddr::NULL).is_err());
        rt.barrier()?;
        assert_eq!(map.get("handles")?, Some(2));
        let in_use = |freed| matches!(freed, Err(Error::Container(ContainerError::InUse)));
        assert!(in_use(map.clone().free()), "a clone is there");
        let other = if rt.rank() == Rank(0) { Some(map.clone()) } else { None };
        assert!(in_use(map.free()), "rank 0 has a clone, and both have opened it");
        drop(other);
        assert_eq!(opened.get("handles")?, Some(2), "nothing was freed");
        rt.barrier()?;
        assert!(in_use(opened.free()), "the constructor has not returned it");
        let deque = rt.deque::<u8>()?;
        let name = deque.addr();
        deque.push_back(1)?;
        deque.free()?;
        assert!(GlobalDeque::<u8>::open(rt, name).is_err(), "it was freed");
        rt.barrier()
    });
}

#[test]
fn a_pool_of_the_program_has_containers_of_its_own() {
    run_ranks(2, |rt| {
        let pool = rt.global()?.pool(1 << 20)?;
        let set = GlobalSet::<u32>::options().buckets(4).pool(&pool).create(rt)?;
        set.insert(rt.rank().0)?;
        assert_eq!(GlobalSet::<u32>::open_in(&pool, set.addr())?.home(), Rank(0));
        assert!(GlobalSet::<u32>::open(rt, set.addr()).is_err(), "it lies in another pool");
        let none = GlobalSet::<u32>::options().buckets(0).pool(&pool).create(rt);
        assert!(matches!(none, Err(Error::Container(_))));
        let nowhere = GlobalVec::<u32>::options().home(Rank(9)).pool(&pool).create(rt);
        let no_such = AddrError::NoSuchRank { rank: Rank(9), size: 2 };
        assert!(matches!(nowhere, Err(Error::Addr(error)) if error == no_such));
        let elsewhere = GlobalVec::<u32>::options().home(rt.rank()).pool(&pool).create(rt);
        let other = Rank(1 - rt.rank().0);
        assert!(matches!(elsewhere, Err(Error::HomesDiffer { own, rank, other: home })
                if own == rt.rank() && rank == other && home == other));
        // Until the pool is full. The set is as before then.
        let vector = GlobalVec::<[u64; 512]>::options().pool(&pool).create(rt)?;
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let full = loop {
                if let Err(error) = vector.push([7; 512]) {
                    break error;
                }
            };
            assert!(matches!(full, Error::Container(ContainerError::Heap(_))), "{full}");
        }
        rt.barrier()?;
        assert_eq!(set.len()?, 2);
        assert!(vector.iter().all(|value| value.unwrap() == [7; 512]));
        rt.barrier()
    });
}

#[test]
fn a_full_pool_names_its_variable_and_loses_nothing() {
    let config = Config::default().pool_bytes(256 << 10);
    let main = |rt: &Runtime| {
        let map = GlobalMap::<u64, [u64; 32]>::options().buckets(8).create(rt)?;
        let counts = GlobalMultiset::<u64>::options().buckets(8).create(rt)?;
        rt.barrier()?;
        let mut own = Vec::new();
        let full = loop {
            let key = own.len() as u64 * 2 + u64::from(rt.rank().0);
            match map.insert(key, [key; 32]) {
                Ok(old) => assert_eq!(old, None),
                Err(error) => break error,
            }
            own.push(key);
        };
        let said = full.to_string();
        assert!(said.contains("a larger TSUMUGI_POOL_BYTES gives more"), "{said}");
        assert!(matches!(full, Error::OutOfMemory { variable: "TSUMUGI_POOL_BYTES", .. }));
        for key in &own {
            assert_eq!(map.get(*key)?, Some([*key; 32]));
        }
        assert_eq!(rt.sum(own.len() as u64)?, map.len()? as u64);
        rt.barrier()?;
        // A value in the place of another one needs no memory, and a removal gives some back.
        map.insert(own[0], [1; 32])?;
        for key in own {
            assert!(map.remove(key)?.is_some());
        }
        rt.barrier()?;
        counts.insert(1)?;
        assert!(map.is_empty()?);
        // No block is so large.
        let large = GlobalVec::<u64>::options().capacity(1 << 20).create(rt).unwrap_err();
        assert_eq!(matches!(large, Error::OutOfMemory { .. }), rt.rank() == Rank(0), "{large}");
        rt.barrier()
    };
    config.run_ranks(2, main).unwrap();
}

#[test]
fn a_panic_of_a_change_leaves_the_container_as_it_was() {
    run_ranks(2, |rt| {
        let (map, vector) = (rt.map::<u8, u64>()?, rt.vector::<u64>()?);
        if rt.rank() == Rank(0) {
            map.insert(1, 5)?;
            vector.push(5)?;
            let (own_map, own_vector) = (map.clone(), vector.clone());
            assert!(rt.spawn(move |_| own_map.update(1, |_| panic!("planned"))).join().is_err());
            assert!(rt.spawn(move |_| own_vector.update(0, |_| panic!("planned"))).join().is_err());
        }
        rt.barrier()?;
        assert_eq!((map.get(1)?, vector.get(0)?), (Some(5), Some(5)));
        rt.barrier()?;
        map.update(1, |old| old.map(|old| old + 1))?;
        rt.barrier()?;
        assert_eq!(map.get(1)?, Some(7));
        rt.barrier()
    });
}

#[test]
fn floats_are_keys_by_their_bits() {
    run_ranks(1, |rt| {
        let set = rt.set::<f64>()?;
        assert!(set.insert(0.0)? && set.insert(-0.0)? && set.insert(f64::NAN)?);
        assert!(!set.insert(f64::NAN)? && set.contains(f64::NAN)?);
        Ok(())
    });
}

/// A rank without memory for its part of the pool says so, and the others do not wait for it.
#[test]
fn a_rank_without_memory_for_the_pool_is_named() {
    let mut config = Config::default();
    config.space.exposed_bytes = 64 << 20;
    config.pool_bytes = Some(32 << 20);
    let main = |rt: &Runtime| {
        let all = (rt.rank() == Rank(1)).then(|| rt.expose::<u64>(5 << 20)).transpose()?;
        let error = rt.map::<u64, u64>().unwrap_err();
        match rt.rank() {
            Rank(1) => assert!(matches!(error, Error::OutOfMemory { .. }), "{error}"),
            _ => assert_eq!(error.to_string(), "rank 1 could not make the container"),
        }
        drop(all);
        rt.barrier()?;
        let map = rt.map::<u64, u64>()?;
        map.insert(rt.rank().0.into(), 1)?;
        rt.barrier()
    };
    config.run_ranks(2, main).unwrap();
}

#[test]
fn a_dead_rank_is_named() {
    let ended = Config::default().run_ranks(2, |rt| {
        let map = GlobalMap::<u64, u64>::options().ranks(&[Rank(1)]).create(rt)?;
        map.insert(u64::from(rt.rank().0), 1)?;
        rt.barrier()?;
        if rt.rank() == Rank(1) {
            return Err(Error::program("rank 1 gives up"));
        }
        let lost = loop {
            match map.get(0) {
                Ok(_) => tsumugi::ult::yield_now(),
                Err(error) => break error,
            }
        };
        let is_its = |error: &Error| match error {
            Error::Access(AddrError::PeerLost { rank }) => *rank == Rank(1),
            Error::Access(AddrError::StaleKey { .. }) => true,
            _ => false,
        };
        assert!(is_its(&lost), "{lost}");
        assert!(map.iter().any(|entry| entry.is_err_and(|error| is_its(&error))));
        Err::<(), _>(lost)
    });
    assert_eq!(ended.unwrap_err().to_string(), "rank 1 gives up");
}
