//! Sets, multisets and maps against std's.

use crate::Random;
use crate::plain::{Plain, View};
use std::collections::{BTreeMap, BTreeSet};
use tsumugi_core::mem::Rank;
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::container::{Data, Element, HashTable, Keyed, Map, Multiset, Reach, Set, Store};

fn bytes_of(store: &View<'_>, element: Element) -> Vec<u8> {
    let mut bytes = vec![0; element.bytes as usize];
    if element.bytes > 0 {
        store.read(element.addr, &mut bytes).unwrap();
    }
    bytes
}

/// The keys; each is found once.
fn keys(store: &View<'_>, table: HashTable, reach: Reach) -> BTreeSet<Vec<u8>> {
    let (mut found, mut at) = (BTreeSet::new(), table.begin(store, reach).unwrap());
    while at != table.end() {
        if reach == Reach::Local {
            assert_eq!(store.split().rank(at.addr), Some(store.rank()));
        }
        let key = bytes_of(store, table.key(store, at).unwrap());
        assert_eq!(table.find(store, Data::Here(&key)), Ok(at));
        assert!(found.insert(key), "a key twice");
        at = table.next(store, at, reach).unwrap();
    }
    assert_eq!(table.size(store, reach), Ok(found.len() as u64));
    if reach == Reach::Local {
        let (mut at, end) = table.local_range(store).unwrap();
        let mut count = 0;
        while at != end {
            assert_eq!(store.split().rank(at.addr), Some(store.rank()));
            at = table.next(store, at, Reach::All).unwrap();
            count += 1;
        }
        assert_eq!(count, found.len());
    }
    assert_eq!(table.is_empty(store, reach), Ok(found.is_empty()));
    found
}

/// The keys of all ranks, each found at its own rank.
fn everywhere(plain: &Plain, table: HashTable) -> BTreeSet<Vec<u8>> {
    let all = keys(&plain.view(0), table, Reach::All);
    let each = (0..3).flat_map(|rank| keys(&plain.view(rank), table, Reach::Local));
    assert_eq!(each.collect::<BTreeSet<_>>(), all);
    all
}

/// Two containers, of the same shape or of different ones.
fn two<K: Keyed>(store: &View<'_>, seed: u64) -> [K; 2] {
    let one = K::create(store, &[Rank(0), Rank(2)], 3, Rank(1)).unwrap();
    let ranks: &[Rank] = if seed.is_multiple_of(2) { &[Rank(0), Rank(2)] } else { &[Rank(1)] };
    let other = K::create(store, ranks, 3, Rank(0)).unwrap();
    let again = K::at_addr(store, one.addr).unwrap();
    [again, other]
}

#[test]
fn sets_behave_as_a_btree_set() {
    for seed in 0..4 {
        let plain = Plain::new(3);
        let (store, mut random) = (plain.view(seed as u32 % 3), Random(seed));
        let sets: [Set; 2] = two(&store, seed);
        let mut models = [BTreeSet::new(), BTreeSet::new()];
        for _ in 0..120 {
            let at = random.below(2) as usize;
            let (set, other) = (sets[at], sets[1 - at]);
            let theirs = models[1 - at].clone();
            let model = &mut models[at];
            let key = random.bytes(2).iter().map(|byte| byte % 5).collect::<Vec<u8>>();
            let data = Data::Here(&key);
            match random.below(20) {
                0..10 => assert_eq!(set.insert(&store, data), Ok(model.insert(key))),
                10..14 => assert_eq!(set.remove(&store, data), Ok(model.remove(&key))),
                14 => {
                    let found = set.find(&store, data).unwrap();
                    assert_eq!(found != set.end(), model.contains(&key));
                }
                15 => {
                    Keyed::merge(set, &store, other, Reach::All).unwrap();
                    model.extend(theirs);
                }
                16 => {
                    Keyed::take_all(set, &store, other, Reach::All).unwrap();
                    model.extend(theirs);
                    models[1 - at].clear();
                }
                17 => {
                    Keyed::assign(set, &store, other, Reach::All).unwrap();
                    *model = theirs;
                }
                18 => {
                    set.swap(&store, *other).unwrap();
                    models.swap(0, 1);
                }
                _ => {
                    set.clear(&store, Reach::Local).unwrap();
                    *model = everywhere(&plain, *set);
                    assert!(keys(&store, *set, Reach::Local).is_empty());
                }
            }
            for (set, model) in sets.iter().zip(&models) {
                assert_eq!(&everywhere(&plain, **set), model, "seed {seed}");
            }
        }
        sets.into_iter().for_each(|set| set.destroy(&store).unwrap());
        assert_eq!(plain.live(), 0);
    }
}

#[test]
fn multisets_count_their_keys() {
    for seed in 0..4 {
        let plain = Plain::new(3);
        let (store, mut random) = (plain.view(0), Random(seed));
        let sets: [Multiset; 2] = two(&store, seed);
        let mut models: [BTreeMap<Vec<u8>, u64>; 2] = Default::default();
        for _ in 0..120 {
            let at = random.below(2) as usize;
            let (set, other) = (sets[at], sets[1 - at]);
            let theirs = models[1 - at].clone();
            let model = &mut models[at];
            let key = random.bytes(2).iter().map(|byte| byte % 3).collect::<Vec<u8>>();
            let data = Data::Here(&key);
            let times = model.get(&key).copied().unwrap_or(0);
            match random.below(12) {
                0..6 => {
                    assert_eq!(set.insert(&store, data), Ok(times == 0));
                    model.insert(key, times + 1);
                }
                6..8 => {
                    assert_eq!(set.remove(&store, data), Ok(times > 0));
                    model.insert(key, times.saturating_sub(1));
                }
                8 => {
                    assert_eq!(set.remove_all(&store, data), Ok(times > 0));
                    model.remove(&key);
                }
                9 => {
                    Keyed::merge(set, &store, other, Reach::All).unwrap();
                    theirs.into_iter().for_each(|(key, n)| *model.entry(key).or_default() += n);
                }
                10 => {
                    Keyed::take_all(set, &store, other, Reach::All).unwrap();
                    theirs.into_iter().for_each(|(key, n)| *model.entry(key).or_default() += n);
                    models[1 - at].clear();
                }
                _ => {
                    set.swap(&store, *other).unwrap();
                    models.swap(0, 1);
                }
            }
            for (set, model) in sets.iter().zip(&mut models) {
                model.retain(|_, times| *times > 0);
                assert_eq!(everywhere(&plain, **set), model.keys().cloned().collect());
                for (key, times) in model {
                    assert_eq!(set.times(&store, Data::Here(key)), Ok(*times), "seed {seed}");
                }
            }
        }
        sets.into_iter().for_each(|set| set.destroy(&store).unwrap());
        assert_eq!(plain.live(), 0);
    }
}

#[test]
fn maps_have_values_of_any_length() {
    for seed in 0..4 {
        let plain = Plain::new(3);
        let (store, mut random) = (plain.view(1), Random(seed));
        let maps: [Map; 2] = two(&store, seed);
        let mut models: [BTreeMap<Vec<u8>, Vec<u8>>; 2] = Default::default();
        for _ in 0..120 {
            let at = random.below(2) as usize;
            let (map, other) = (maps[at], maps[1 - at]);
            let theirs = models[1 - at].clone();
            let model = &mut models[at];
            // Some keys are longer than the part that is compared at once.
            let mut key = random.bytes(2).iter().map(|byte| byte % 4).collect::<Vec<u8>>();
            key.resize(key.len() + random.below(2) as usize * 600, 7);
            let (data, value) = (Data::Here(&key), random.bytes(50));
            match random.below(12) {
                0..6 => {
                    let is_new = !model.contains_key(&key);
                    assert_eq!(map.insert(&store, data, Data::Here(&value)), Ok(is_new));
                    model.entry(key).or_insert(value);
                }
                6..8 => assert_eq!(map.remove(&store, data), Ok(model.remove(&key).is_some())),
                8 => {
                    Keyed::merge(map, &store, other, Reach::All).unwrap();
                    theirs.into_iter().for_each(|(key, value)| {
                        model.entry(key).or_insert(value);
                    });
                }
                9 => {
                    Keyed::take_all(map, &store, other, Reach::All).unwrap();
                    theirs.into_iter().for_each(|(key, value)| {
                        model.entry(key).or_insert(value);
                    });
                    models[1 - at].clear();
                }
                10 => {
                    Keyed::assign(map, &store, other, Reach::All).unwrap();
                    *model = theirs;
                }
                _ => {
                    map.swap(&store, *other).unwrap();
                    models.swap(0, 1);
                }
            }
            for (map, model) in maps.iter().zip(&models) {
                assert_eq!(everywhere(&plain, **map), model.keys().cloned().collect());
                for (key, value) in model {
                    let entry = map.find(&store, Data::Here(key)).unwrap();
                    let element = map.value(&store, entry).unwrap();
                    assert_eq!(&bytes_of(&store, element), value, "seed {seed}");
                    let (mut some, bytes) = ([0; 20], value.len().min(20));
                    let length = map.get(&store, Data::Here(key), &mut some).unwrap();
                    assert_eq!(length, Some(value.len() as u64));
                    assert_eq!(some[..bytes], value[..bytes]);
                }
                assert_eq!(map.get(&store, Data::Here(b"nobody"), &mut []), Ok(None));
            }
        }
        maps.into_iter().for_each(|map| map.destroy(&store).unwrap());
        assert_eq!(plain.live(), 0);
    }
}

/// Words of a rank's memory.
fn words<const N: usize>(store: &View<'_>, addr: u64) -> [u64; N] {
    let mut words = [[0; 8]; N];
    store.read(GlobalAddr::from_bits(addr), words.as_flattened_mut()).unwrap();
    words.map(u64::from_le_bytes)
}

/// The elements of a slot as programs written for ACP find them: the address of each, from the
/// first to the last and back.
fn walk(store: &View<'_>, directory: GlobalAddr, slot: u64) -> Vec<u64> {
    let [slots] = words(store, directory.to_bits());
    let [lock, first, last, count] = words(store, slots + slot * 32);
    assert_eq!(lock, 0, "the lock word of ACP");
    let (mut at, mut before, mut found) = (first, 0, Vec::new());
    while at != 0 {
        let [next, back] = words(store, at);
        assert_eq!(back, before);
        found.push(at);
        (before, at) = (at, next);
    }
    assert_eq!((before, found.len() as u64), (last, count));
    found
}

#[test]
fn tables_have_the_layout_of_acp() {
    let plain = Plain::new(1);
    let store = plain.view(0);
    let key = |n: usize| b"ABCDEFGHIJ"[..n].to_vec();
    let map = Map::create(&store, &[Rank(0)], 4, Rank(0)).unwrap();
    let set = Set::create(&store, &[Rank(0)], 1, Rank(0)).unwrap();
    let many = Multiset::create(&store, &[Rank(0)], 1, Rank(0)).unwrap();
    for n in 1..=10 {
        let key = key(n);
        assert_eq!(map.insert(&store, Data::Here(&key), Data::Here(b"value")), Ok(true));
        assert_eq!(set.insert(&store, Data::Here(&key)), Ok(true));
        many.insert(&store, Data::Here(&key)).unwrap();
        many.insert(&store, Data::Here(&key)).unwrap();
    }
    // In the slots that the upper 48 bits of the keys' CRC-64/XZ select, in the order of their
    // insertion.
    let bytes = |at: u64, count: u64| {
        bytes_of(&store, Element { addr: GlobalAddr::from_bits(at), bytes: count })
    };
    let mut lengths = [0; 4].map(|_| Vec::new());
    for slot in 0..4 {
        for at in walk(&store, map.addr, slot) {
            let [size, key_bytes] = words(&store, at + 16);
            assert_eq!(size, 8 + key_bytes + 5);
            assert_eq!(bytes(at + 32, key_bytes), key(key_bytes as usize));
            assert_eq!(bytes(at + 32 + key_bytes, 5), b"value");
            lengths[slot as usize].push(key_bytes);
        }
    }
    assert_eq!(lengths, [vec![2, 3, 10], vec![5, 8, 9], vec![4, 6, 7], vec![1]]);
    for (at, n) in walk(&store, set.addr, 0).into_iter().zip(1..) {
        assert_eq!(words(&store, at + 16), [n]);
        assert_eq!(bytes(at + 24, n), key(n as usize));
    }
    for (at, n) in walk(&store, many.addr, 0).into_iter().zip(1..) {
        assert_eq!(words(&store, at + 16), [2, n]);
        assert_eq!(bytes(at + 32, n), key(n as usize));
    }
    // The first element, one in between and the last are removed.
    for n in [1, 5, 10] {
        assert_eq!(set.remove(&store, Data::Here(&key(n))), Ok(true));
        many.remove(&store, Data::Here(&key(n))).unwrap();
    }
    let left: Vec<u64> =
        walk(&store, set.addr, 0).into_iter().map(|at| words::<1>(&store, at + 16)[0]).collect();
    assert_eq!(left, [2, 3, 4, 6, 7, 8, 9]);
    let times: Vec<u64> =
        walk(&store, many.addr, 0).into_iter().map(|at| words::<1>(&store, at + 16)[0]).collect();
    assert_eq!(times, [1, 2, 2, 2, 1, 2, 2, 2, 2, 1]);
    // Elements that another container takes over keep their order.
    let other = Set::create(&store, &[Rank(0)], 1, Rank(0)).unwrap();
    Keyed::assign(other, &store, set, Reach::All).unwrap();
    let order = |set: Set| {
        let each = walk(&store, set.addr, 0).into_iter();
        each.map(|at| words::<1>(&store, at + 16)[0]).collect::<Vec<_>>()
    };
    assert_eq!(order(other), left);
    Keyed::take_all(set, &store, other, Reach::All).unwrap();
    assert_eq!((order(set), order(other)), (left.clone(), vec![]));
    set.swap(&store, *other).unwrap();
    assert_eq!((order(set), order(other)), (vec![], left));
    for set in [set, other] {
        set.destroy(&store).unwrap();
    }
    many.destroy(&store).unwrap();
    map.destroy(&store).unwrap();
    assert_eq!(plain.live(), 0);
}
