//! Calls that hold a key, a sequence or a list for several steps, and visits.

use crate::Random;
use crate::plain::{Plain, View};
use std::collections::{BTreeMap, VecDeque};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::container::{
    ContainerError, Data, Deque, Element, HashTable, Keyed, List, ListEnd, Map, Multiset, Reach,
    Store,
};

fn bytes_of(store: &View<'_>, element: Element) -> Result<Vec<u8>, ContainerError> {
    let mut bytes = vec![0; element.bytes as usize];
    if element.bytes > 0 {
        store.read(element.addr, &mut bytes)?;
    }
    Ok(bytes)
}

/// All elements, by visits of at least `count` elements each.
fn visited(
    store: &View<'_>,
    table: HashTable,
    reach: Reach,
    count: usize,
) -> BTreeMap<Vec<u8>, (Vec<u8>, u64)> {
    let (mut found, mut next) = (BTreeMap::new(), Some((0, 0)));
    while let Some(from) = next {
        let mut seen = 0;
        next = table
            .visit(store, reach, from, count, |key, value, times| {
                seen += 1;
                let both = (bytes_of(store, value)?, times);
                assert_eq!(found.insert(bytes_of(store, key)?, both), None, "a key twice");
                Ok(())
            })
            .unwrap();
        assert!(next.is_none() || seen >= count, "{seen} of {count}");
    }
    found
}

#[test]
fn a_held_key_is_put_and_removed_as_in_a_btree_map() {
    for seed in 0..4 {
        let plain = Plain::new(3);
        let (store, mut random) = (plain.view(seed as u32 % 3), Random(seed));
        let map = Map::create(&store, &[Rank(0), Rank(2)], 5, Rank(1)).unwrap();
        let mut model = BTreeMap::new();
        for _ in 0..300 {
            let key = random.bytes(2).iter().map(|byte| byte % 5).collect::<Vec<u8>>();
            // Values of one length and of others.
            let value = if random.below(2) == 0 { vec![7; 3] } else { random.bytes(100) };
            let held = map.hold(&store, Data::Here(&key)).unwrap();
            let old = held.value().map(|value| bytes_of(&store, value).unwrap());
            assert_eq!(old.as_ref(), model.get(&key), "seed {seed}");
            assert_eq!(held.times(), u64::from(old.is_some()));
            match random.below(3) {
                0 => assert_eq!(held.remove(), Ok(model.remove(&key).is_some())),
                1 => drop(held),
                _ => {
                    held.put(Data::Here(&value)).unwrap();
                    model.insert(key.clone(), value);
                }
            }
            let read = map.read(&store, Data::Here(&key), |value| bytes_of(&store, value));
            assert_eq!(read.unwrap().as_ref(), model.get(&key));
        }
        let wanted = model.iter().map(|(key, value)| (key.clone(), (value.clone(), 1)));
        let wanted: BTreeMap<_, _> = wanted.collect();
        for count in [1, 4, 1000] {
            assert_eq!(visited(&store, *map, Reach::All, count), wanted, "seed {seed}");
        }
        let each = (0..3).flat_map(|rank| visited(&plain.view(rank), *map, Reach::Local, 2));
        assert_eq!(each.collect::<BTreeMap<_, _>>(), wanted);
        for key in model.keys() {
            let rank = map.home(&store, Data::Here(key)).unwrap();
            assert!(visited(&plain.view(rank.0), *map, Reach::Local, 1).contains_key(key));
        }
        map.destroy(&store).unwrap();
        assert_eq!(plain.live(), 0);
    }
}

#[test]
fn a_key_without_memory_for_its_value_keeps_the_old_one() {
    let plain = Plain::new(1);
    let store = plain.view(0);
    let map = Map::create(&store, &[Rank(0)], 1, Rank(0)).unwrap();
    let key = Data::Here(b"key");
    map.hold(&store, key).unwrap().put(Data::Here(b"old")).unwrap();
    let long = vec![1; 8 << 20];
    let error = map.hold(&store, key).unwrap().put(Data::Here(&long)).unwrap_err();
    assert!(matches!(error, ContainerError::Heap(_)), "{error}");
    let other = map.hold(&store, Data::Here(b"other")).unwrap().put(Data::Here(&long));
    assert!(matches!(other, Err(ContainerError::Heap(_))), "{other:?}");
    let wanted = BTreeMap::from([(b"key".to_vec(), (b"old".to_vec(), 1))]);
    assert_eq!(visited(&store, *map, Reach::All, 1), wanted);
}

#[test]
fn a_visit_returns_the_counts_of_a_multiset_and_the_error_of_the_visitor() {
    let plain = Plain::new(2);
    let store = plain.view(1);
    let set = Multiset::create(&store, &[Rank(1)], 2, Rank(0)).unwrap();
    for key in [&b"a"[..], b"b", b"a", b"a"] {
        set.insert(&store, Data::Here(key)).unwrap();
    }
    let found = visited(&store, *set, Reach::All, 1);
    assert_eq!(found.values().map(|(_, times)| *times).collect::<Vec<_>>(), [3, 1]);
    let lost = ContainerError::Access(AddrError::Nowhere { addr: GlobalAddr::NULL });
    assert_eq!(set.visit(&store, Reach::All, (0, 0), 1, |_, _, _| Err(lost)), Err(lost));
    // The lock was given back.
    assert_eq!(set.remove_all(&store, Data::Here(b"a")), Ok(true));
}

#[test]
fn elements_are_taken_from_both_ends() {
    for seed in 0..4 {
        let plain = Plain::new(2);
        let (store, mut random) = (plain.view(1), Random(seed));
        let deque = Deque::create(&store, 0, Rank(0)).unwrap();
        let list = List::create(&store, Rank(0)).unwrap();
        let mut model = VecDeque::new();
        for step in 0..300_u64 {
            let word = step.to_le_bytes();
            let mut taken = [0; 8];
            match random.below(5) {
                0 => {
                    deque.push_front(&store, Data::Here(&word)).unwrap();
                    list.push_front(&store, Data::Here(&word), Rank(1)).unwrap();
                    model.push_front(step);
                }
                1 | 2 => {
                    deque.push_back(&store, Data::Here(&word)).unwrap();
                    list.push_back(&store, Data::Here(&word), Rank(0)).unwrap();
                    model.push_back(step);
                }
                3 => {
                    let wanted = model.pop_front();
                    let is_taken = deque.take_front(&store, &mut taken).unwrap();
                    assert_eq!(is_taken.then(|| u64::from_le_bytes(taken)), wanted);
                    let from_list =
                        list.take(&store, ListEnd::Front, |element| bytes_of(&store, element));
                    assert_eq!(
                        from_list.unwrap(),
                        wanted.map(|wanted: u64| wanted.to_le_bytes().to_vec())
                    );
                }
                _ => {
                    let wanted = model.pop_back();
                    let is_taken = deque.take_back(&store, &mut taken).unwrap();
                    assert_eq!(is_taken.then(|| u64::from_le_bytes(taken)), wanted);
                    let from_list =
                        list.take(&store, ListEnd::Back, |element| bytes_of(&store, element));
                    assert_eq!(
                        from_list.unwrap(),
                        wanted.map(|wanted: u64| wanted.to_le_bytes().to_vec())
                    );
                }
            }
        }
        let wanted: Vec<u8> = model.iter().flat_map(|word| word.to_le_bytes()).collect();
        let all = deque.view(&store, |size, read| {
            let mut all = vec![0; size as usize];
            read(0, &mut all)?;
            Ok(all)
        });
        assert_eq!(all.as_ref(), Ok(&wanted));
        let mut seen = Vec::new();
        list.visit(&store, |element| {
            seen.extend(bytes_of(&store, element)?);
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, wanted);
        deque.destroy(&store).unwrap();
        list.destroy(&store).unwrap();
        assert_eq!(plain.live(), 0);
    }
}
