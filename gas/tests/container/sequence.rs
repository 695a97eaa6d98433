//! Vectors and deques compared with those of std.

use crate::Random;
use crate::plain::{Plain, SPLIT, View};
use std::collections::VecDeque;
use tsumugi_core::mem::Rank;
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::container::{ContainerError, Data, Deque, Element, Sequence, Store, Vector};

fn all(store: &View<'_>, sequence: Sequence) -> Vec<u8> {
    let mut bytes = vec![0; sequence.size(store).unwrap() as usize];
    sequence.read(store, 0, &mut bytes).unwrap();
    bytes
}

/// Writes bytes to the memory of a rank.
fn put(store: &View<'_>, bytes: &[u8], rank: u64) -> Element {
    let addr = store.allocate(Rank(rank as u32), bytes.len() as u64).unwrap();
    store.write(addr, bytes).unwrap();
    Element { addr, bytes: bytes.len() as u64 }
}

#[test]
fn vectors_behave_as_vec() {
    for seed in 0..10 {
        let plain = Plain::new(3);
        let (store, mut random) = (plain.view(seed as u32 % 3), Random(seed));
        let vectors = [0, 1].map(|rank| Vector::create(&store, 0, Rank(rank)).unwrap());
        let mut models = [Vec::new(), Vec::new()];
        for _ in 0..150 {
            let at = random.below(2) as usize;
            let (vector, other) = (vectors[at], vectors[1 - at]);
            let theirs = models[1 - at].clone();
            let model = &mut models[at];
            let size = model.len() as u64;
            let data = random.bytes(40);
            match random.below(13) {
                0 | 1 => {
                    assert_eq!(vector.push_back(&store, Data::Here(&data)), Ok(size));
                    model.extend(&data);
                }
                2 => {
                    let element = put(&store, &data, random.below(3));
                    vector.push_back(&store, element.into()).unwrap();
                    model.extend(&data);
                    store.free(element.addr).unwrap();
                }
                3 | 4 => {
                    let to = random.below(size + 1);
                    vector.insert(&store, to, Data::Here(&data)).unwrap();
                    model.splice(to as usize..to as usize, data);
                }
                5 => {
                    let (from, bytes) = (random.below(size + 1), random.below(30));
                    vector.erase(&store, from, bytes).unwrap();
                    model.drain(from as usize..(from + bytes).min(size) as usize);
                }
                6 => {
                    let bytes = random.below(20);
                    vector.pop_back(&store, bytes).unwrap();
                    model.truncate(size.saturating_sub(bytes) as usize);
                }
                7 if size > 0 => {
                    let data = &data[..data.len().min(model.len())];
                    let to = random.below(size - data.len() as u64 + 1);
                    vector.write(&store, to, Data::Here(data)).unwrap();
                    model[to as usize..to as usize + data.len()].copy_from_slice(data);
                }
                8 => {
                    let range = range(&mut random, theirs.len());
                    vector.assign(&store, *other, range).unwrap();
                    *model = theirs[range.0 as usize..range.1 as usize].to_vec();
                }
                9 => {
                    let (range, to) = (range(&mut random, theirs.len()), random.below(size + 1));
                    vector.insert_range(&store, to, *other, range).unwrap();
                    let some = theirs[range.0 as usize..range.1 as usize].to_vec();
                    model.splice(to as usize..to as usize, some);
                }
                10 => {
                    let (range, to) = (range(&mut random, model.len()), random.below(size + 1));
                    vector.insert_range(&store, to, *vector, range).unwrap();
                    let some = model[range.0 as usize..range.1 as usize].to_vec();
                    model.splice(to as usize..to as usize, some);
                }
                11 => {
                    let range = range(&mut random, model.len());
                    vector.assign(&store, *vector, range).unwrap();
                    *model = model[range.0 as usize..range.1 as usize].to_vec();
                }
                _ => {
                    vector.swap(&store, *other).unwrap();
                    models.swap(0, 1);
                }
            }
            for (vector, model) in vectors.iter().zip(&models) {
                assert_eq!(&all(&store, **vector), model, "seed {seed}");
                assert!(vector.capacity(&store).unwrap() >= model.len() as u64);
                if let Some(&last) = model.last() {
                    let at = vector.at(&store, model.len() as u64 - 1).unwrap();
                    let mut byte = [0];
                    store.read(at, &mut byte).unwrap();
                    assert_eq!(byte, [last]);
                }
                assert!(vector.at(&store, model.len() as u64).unwrap().is_null());
            }
        }
        vectors.into_iter().for_each(|vector| vector.destroy(&store).unwrap());
        assert_eq!(plain.live(), 0);
    }
}

#[test]
fn deques_behave_as_vec_deque() {
    for seed in 0..10 {
        let plain = Plain::new(2);
        let (store, mut random) = (plain.view(0), Random(seed));
        let deque = Deque::create(&store, 5, Rank(1)).unwrap();
        deque.write(&store, 0, Data::Here(&[1, 2, 3, 4, 5])).unwrap();
        let mut model = VecDeque::from([1, 2, 3, 4, 5u8]);
        for _ in 0..200 {
            let data = random.bytes(24);
            let size = model.len() as u64;
            match random.below(8) {
                0 | 1 => {
                    deque.push_back(&store, Data::Here(&data)).unwrap();
                    model.extend(&data);
                }
                2 | 3 => {
                    deque.push_front(&store, Data::Here(&data)).unwrap();
                    data.iter().rev().for_each(|&byte| model.push_front(byte));
                }
                4 => {
                    let bytes = random.below(30);
                    deque.pop_front(&store, bytes).unwrap();
                    model.drain(..bytes.min(size) as usize);
                }
                5 => {
                    let bytes = random.below(30);
                    deque.pop_back(&store, bytes).unwrap();
                    model.truncate(size.saturating_sub(bytes) as usize);
                }
                6 => {
                    let to = random.below(size + 1);
                    deque.insert(&store, to, Data::Here(&data)).unwrap();
                    let rest = model.split_off(to as usize);
                    model.extend(data.iter().chain(&rest));
                }
                _ => {
                    let (from, bytes) = (random.below(size + 1), random.below(12));
                    deque.erase(&store, from, bytes).unwrap();
                    model.drain(from as usize..(from + bytes).min(size) as usize);
                }
            }
            assert_eq!(all(&store, *deque), model.make_contiguous(), "seed {seed}");
            let pieces = deque.pieces(&store, 0, u64::MAX).unwrap();
            assert_eq!(pieces[0].bytes + pieces[1].bytes, model.len() as u64);
        }
        deque.destroy(&store).unwrap();
        assert_eq!(plain.live(), 0);
    }
}

/// The words of a header.
fn header(store: &View<'_>, addr: GlobalAddr) -> [u64; 4] {
    let mut words = [[0; 8]; 4];
    store.read(addr, words.as_flattened_mut()).unwrap();
    words.map(u64::from_le_bytes)
}

/// Programs that were written for ACP read the headers.
#[test]
fn headers_have_the_layout_of_acp() {
    let plain = Plain::new(2);
    let store = plain.view(1);
    let vector = Vector::create(&store, 0, Rank(0)).unwrap();
    assert_eq!(header(&store, vector.addr()), [0; 4]);
    // While the vector is small, it holds one element after the other at the same address.
    let mut first = None;
    for count in 1..=16 {
        vector.push_back(&store, Data::Here(&[count; 4])).unwrap();
        let bytes = u64::from(count) * 4;
        let [at, size, capacity, _] = header(&store, vector.addr());
        assert_eq!((size, capacity), (bytes, bytes.next_multiple_of(8)));
        assert_eq!(*first.get_or_insert(at), at, "it has moved");
    }
    vector.push_back(&store, Data::Here(&[0])).unwrap();
    assert_eq!(vector.capacity(&store), Ok(96), "the capacity grows by half");

    let deque = Deque::create(&store, 0, Rank(0)).unwrap();
    for count in 1..=3 {
        deque.push_back(&store, Data::Here(&[count; 5])).unwrap();
        let bytes = u64::from(count) * 5;
        assert_eq!(header(&store, deque.addr())[1..], [0, bytes, bytes]);
    }
    deque.pop_front(&store, 6).unwrap();
    assert_eq!(header(&store, deque.addr())[1..], [6, 9, 15]);
    deque.push_front(&store, Data::Here(&[7; 8])).unwrap();
    // A full deque has its bytes in order again, from the first one on.
    assert_eq!(header(&store, deque.addr())[1..], [0, 17, 17]);
    deque.pop_back(&store, 9).unwrap();
    deque.shrink_to_fit(&store).unwrap();
    let [at, offset, size, capacity] = header(&store, deque.addr());
    assert_eq!((offset, size, capacity), (0, 8, 8));
    let mut bytes = [0; 8];
    store.read(GlobalAddr::from_bits(at), &mut bytes).unwrap();
    assert_eq!(bytes, [7; 8]);
    deque.clear(&store).unwrap();
    deque.shrink_to_fit(&store).unwrap();
    assert_eq!(header(&store, deque.addr()), [0; 4]);
    deque.destroy(&store).unwrap();
    vector.destroy(&store).unwrap();
    assert_eq!(plain.live(), 0);
}

/// Bytes on the rank that a container was made on stay there.
#[test]
fn a_swap_between_ranks_leaves_bytes_on_their_ranks() {
    let plain = Plain::new(2);
    let store = plain.view(0);
    let vectors = [0, 1].map(|rank| Vector::create(&store, 0, Rank(rank)).unwrap());
    for (vector, bytes) in vectors.iter().zip([[1; 20].as_slice(), &[2; 3]]) {
        vector.push_back(&store, Data::Here(bytes)).unwrap();
    }
    vectors[0].swap(&store, *vectors[1]).unwrap();
    assert_eq!(all(&store, *vectors[0]), [2; 3]);
    assert_eq!(all(&store, *vectors[1]), [1; 20]);
    for (vector, rank) in vectors.into_iter().zip(0..) {
        let at = vector.at(&store, 0).unwrap();
        assert_eq!(SPLIT.rank(at), Some(Rank(rank)));
        vector.destroy(&store).unwrap();
    }
    assert_eq!(plain.live(), 0);
}

#[test]
fn an_access_to_a_missing_element_is_an_error() {
    let plain = Plain::new(1);
    let store = plain.view(0);
    let vector = Vector::create(&store, 4, Rank(0)).unwrap();
    let error = Err(ContainerError::OutOfRange { at: 2, bytes: 3, size: 4 });
    assert_eq!(vector.read(&store, 2, &mut [0; 3]), error);
    assert_eq!(vector.write(&store, 2, Data::Here(&[0; 3])), error);
    let error = Err(ContainerError::OutOfRange { at: 5, bytes: 0, size: 4 });
    assert_eq!(vector.insert(&store, 5, Data::Here(&[1])), error);
    assert_eq!(vector.erase(&store, 5, 1), error);
    for bytes in [1 << 40, u64::MAX] {
        assert!(vector.reserve(&store, bytes).is_err());
    }
    vector.reserve(&store, 1000).unwrap();
    assert_eq!(vector.capacity(&store), Ok(1000));
    assert_eq!(vector.size(&store), Ok(4));
    vector.clear(&store).unwrap();
    assert_eq!(vector.is_empty(&store), Ok(true));
}

fn range(random: &mut Random, size: usize) -> (u64, u64) {
    let (one, other) = (random.below(size as u64 + 1), random.below(size as u64 + 1));
    (one.min(other), one.max(other))
}
