//! Containers that many threads use at once: each call acts as if it were alone.

use crate::Random;
use crate::plain::{Plain, View};
use std::collections::BTreeMap;
use std::thread;
use tsumugi_core::mem::Rank;
use tsumugi_gas::container::{Data, Deque, Keyed, List, Map, Multiset, Reach, Set, Store, Vector};

/// Calls on several threads of each rank.
fn on_threads(plain: &Plain, call: impl Fn(View<'_>, u64) + Sync) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let call = &call;
            scope.spawn(move || call(plain.view(thread as u32 % 3), thread));
        }
    });
}

#[test]
fn each_pushed_element_is_there_once() {
    let plain = Plain::new(3);
    let store = plain.view(0);
    let vector = Vector::create(&store, 0, Rank(2)).unwrap();
    let deque = Deque::create(&store, 0, Rank(1)).unwrap();
    let list = List::create(&store, Rank(0)).unwrap();
    on_threads(&plain, |store, thread| {
        for step in 0..STEPS {
            let record = (thread << 32 | step).to_le_bytes();
            let data = Data::Here(&record);
            vector.push_back(&store, data).unwrap();
            if step % 2 == 0 {
                deque.push_front(&store, data).unwrap();
                list.push_front(&store, data, store.rank()).unwrap();
            } else {
                deque.push_back(&store, data).unwrap();
                list.push_back(&store, data, store.rank()).unwrap();
            }
        }
    });
    let wanted: Vec<u64> =
        (0..THREADS).flat_map(|thread| (0..STEPS).map(move |step| thread << 32 | step)).collect();
    for sequence in [*vector, *deque] {
        let mut bytes = vec![0; sequence.size(&store).unwrap() as usize];
        sequence.read(&store, 0, &mut bytes).unwrap();
        let words = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let mut found: Vec<u64> = words.collect();
        found.sort_unstable();
        assert_eq!(found, wanted);
    }
    assert_eq!(list.size(&store), Ok(wanted.len() as u64));
    on_threads(&plain, |store, _| {
        for step in 0..STEPS {
            vector.pop_back(&store, 8).unwrap();
            deque.pop_front(&store, 8).unwrap();
            if step % 2 == 0 { list.pop_front(&store) } else { list.pop_back(&store) }.unwrap();
        }
    });
    vector.destroy(&store).unwrap();
    deque.destroy(&store).unwrap();
    list.destroy(&store).unwrap();
    assert_eq!(plain.live(), 0);
}

#[test]
fn of_several_inserts_of_a_key_one_is_the_first() {
    let plain = Plain::new(3);
    let store = plain.view(0);
    let ranks = [0, 1, 2].map(Rank);
    let set = Set::create(&store, &ranks, 2, Rank(0)).unwrap();
    let counts = Multiset::create(&store, &ranks, 2, Rank(0)).unwrap();
    let firsts = std::sync::Mutex::new(0);
    on_threads(&plain, |store, thread| {
        let mut random = Random(thread);
        for key in 0..STEPS {
            if set.insert(&store, Data::Here(&key.to_le_bytes())).unwrap() {
                *firsts.lock().unwrap() += 1;
            }
            let key = random.below(5).to_le_bytes();
            counts.insert(&store, Data::Here(&key)).unwrap();
            // Sizes are read meanwhile.
            assert!(set.size(&store, Reach::All).unwrap() <= STEPS);
        }
    });
    assert_eq!(*firsts.lock().unwrap(), STEPS);
    let times = |key: u64| counts.times(&store, Data::Here(&key.to_le_bytes())).unwrap();
    assert_eq!((0..5).map(times).sum::<u64>(), THREADS * STEPS);
    on_threads(&plain, |store, _| {
        for key in 0..STEPS {
            set.remove(&store, Data::Here(&key.to_le_bytes())).unwrap();
        }
    });
    assert_eq!(set.is_empty(&store, Reach::All), Ok(true));
    set.destroy(&store).unwrap();
    counts.destroy(&store).unwrap();
    assert_eq!(plain.live(), 0);
}

/// A value that is read was written as a whole by one thread.
#[test]
fn a_value_is_read_whole() {
    let plain = Plain::new(3);
    let store = plain.view(0);
    let map = Map::create(&store, &[Rank(0), Rank(1)], 2, Rank(2)).unwrap();
    on_threads(&plain, |store, thread| {
        let mut random = Random(thread);
        for _ in 0..STEPS {
            let key = random.below(4).to_le_bytes();
            let (data, value) = (Data::Here(&key), [thread as u8; 40]);
            match random.below(3) {
                0 => _ = map.insert(&store, data, Data::Here(&value)).unwrap(),
                1 => _ = map.remove(&store, data).unwrap(),
                _ => {
                    let mut value = [0; 40];
                    if map.get(&store, data, &mut value).unwrap().is_some() {
                        assert!(value.iter().all(|&byte| byte == value[0]), "{value:?}");
                    }
                }
            }
        }
    });
    map.destroy(&store).unwrap();
    assert_eq!(plain.live(), 0);
}

/// Two containers that take each other's elements, in either order: no thread waits for ever,
/// and no element is lost.
#[test]
fn two_containers_are_merged_into_each_other() {
    let plain = Plain::new(3);
    let store = plain.view(0);
    let lists = [0, 1].map(|rank| List::create(&store, Rank(rank)).unwrap());
    let vectors = [2, 1].map(|rank| Vector::create(&store, 0, Rank(rank)).unwrap());
    let sets: [Multiset; 2] =
        [1, 3].map(|slots| Multiset::create(&store, &[Rank(0), Rank(1)], slots, Rank(0)).unwrap());
    for n in 0..20u8 {
        lists[n as usize % 2].push_back(&store, Data::Here(&[n]), Rank(0)).unwrap();
        sets[n as usize % 2].insert(&store, Data::Here(&[n % 7])).unwrap();
        vectors[n as usize % 2].push_back(&store, Data::Here(&[n])).unwrap();
    }
    on_threads(&plain, |store, thread| {
        for step in 0..STEPS / 4 {
            let at = (thread + step) as usize % 2;
            match step % 3 {
                0 => lists[at].swap(&store, lists[1 - at]).unwrap(),
                1 => {
                    let others = lists[1 - at];
                    lists[at].merge(&store, others, |_, _| std::cmp::Ordering::Less).unwrap();
                }
                _ => {}
            }
            vectors[at].swap(&store, *vectors[1 - at]).unwrap();
            Keyed::take_all(sets[at], &store, sets[1 - at], Reach::All).unwrap();
        }
    });
    let sizes = lists.map(|list| list.size(&store).unwrap());
    assert_eq!(sizes[0] + sizes[1], 20);
    let mut counts = BTreeMap::new();
    for set in sets {
        for key in 0..7u8 {
            *counts.entry(key).or_insert(0) += set.times(&store, Data::Here(&[key])).unwrap();
        }
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [3, 3, 3, 3, 3, 3, 2]);
    lists.into_iter().for_each(|list| list.destroy(&store).unwrap());
    vectors.into_iter().for_each(|vector| vector.destroy(&store).unwrap());
    sets.into_iter().for_each(|set| set.destroy(&store).unwrap());
    assert_eq!(plain.live(), 0);
}

const THREADS: u64 = 6;
const STEPS: u64 = 60;
