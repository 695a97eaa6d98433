//! Lists against a vector of elements.

use crate::Random;
use crate::plain::{Plain, View};
use std::cmp::Ordering;
use tsumugi_core::mem::Rank;
use tsumugi_gas::container::{Cursor, Data, Element, List, Store};

type Model = Vec<(Vec<u8>, u32)>;

fn bytes_of(store: &View<'_>, element: Element) -> Vec<u8> {
    let mut bytes = vec![0; element.bytes as usize];
    store.read(element.addr, &mut bytes).unwrap();
    bytes
}

/// All elements from the front; checked to be the same from the back.
fn all(store: &View<'_>, list: List) -> Model {
    let (mut found, mut at) = (Vec::new(), list.begin(store).unwrap());
    while at != list.end(store) {
        let rank = store.split().rank(at.addr()).unwrap();
        found.push((bytes_of(store, list.element(store, at).unwrap()), rank.0));
        at = list.next(store, at).unwrap();
    }
    let mut count = 0;
    at = list.before(store, at).unwrap();
    while at != list.end(store) {
        let (bytes, rank) = &found[found.len() - 1 - count];
        assert_eq!(&bytes_of(store, list.element(store, at).unwrap()), bytes);
        assert_eq!(store.split().rank(at.addr()), Some(Rank(*rank)));
        at = list.before(store, at).unwrap();
        count += 1;
    }
    assert_eq!((count, list.size(store)), (found.len(), Ok(found.len() as u64)));
    found
}

fn compare(store: &View<'_>, one: Element, other: Element) -> Ordering {
    // By the first byte only, so that equal elements can differ.
    let first = |element| bytes_of(store, element).first().copied();
    first(one).cmp(&first(other))
}

#[test]
fn lists_behave_as_a_vector_of_elements() {
    for seed in 0..20 {
        let plain = Plain::new(3);
        let (store, mut random) = (plain.view(seed as u32 % 3), Random(seed));
        let lists = [2, 1].map(|rank| List::create(&store, Rank(rank)).unwrap());
        let mut models: [Model; 2] = Default::default();
        for _ in 0..120 {
            let which = random.below(2) as usize;
            let (list, other) = (lists[which], lists[1 - which]);
            let [ref mut one, ref mut two] = models;
            let (model, theirs) = if which == 0 { (one, two) } else { (two, one) };
            let place = random.below(model.len() as u64 + 1) as usize;
            let at = nth(&store, list, place);
            let (first, last) = range(&mut random, theirs.len());
            let span = (nth(&store, other, first), nth(&store, other, last));
            // Few different bytes, so that some elements are equal.
            let data: Vec<u8> = random.bytes(3).iter().map(|byte| byte % 3).collect();
            let rank = random.below(3) as u32;
            let element = (data.clone(), rank);
            match random.below(18) {
                0 | 1 => {
                    let cursor = list.insert(&store, at, Data::Here(&data), Rank(rank)).unwrap();
                    assert_eq!(cursor, nth(&store, list, place));
                    model.insert(place, element);
                }
                2 | 3 => {
                    list.push_back(&store, Data::Here(&data), Rank(rank)).unwrap();
                    model.push(element);
                }
                4 | 5 => {
                    list.push_front(&store, Data::Here(&data), Rank(rank)).unwrap();
                    model.insert(0, element);
                }
                6 => {
                    list.pop_back(&store).unwrap();
                    model.pop();
                }
                7 => {
                    list.pop_front(&store).unwrap();
                    model.drain(..model.len().min(1));
                }
                8 if place < model.len() => {
                    model.remove(place);
                    let next = list.erase(&store, at).unwrap();
                    assert_eq!(next, nth(&store, list, place));
                }
                9 => {
                    let answer = other.erase_range(&store, span.0, span.1).unwrap();
                    assert_eq!(answer, span.1);
                    theirs.drain(first..last);
                }
                10 => {
                    let count = list.remove(&store, Data::Here(&data)).unwrap();
                    let before = model.len();
                    model.retain(|element| element.0 != data);
                    assert_eq!(count, (before - model.len()) as u64);
                }
                11 => {
                    list.unique(&store).unwrap();
                    model.dedup_by(|one, other| one.0 == other.0);
                }
                12 => {
                    list.reverse(&store).unwrap();
                    model.reverse();
                }
                13 => {
                    list.sort(&store, |one, other| compare(&store, one, other)).unwrap();
                    model.sort_by_key(|element| element.0.first().copied());
                }
                14 => {
                    let by = |one, other| compare(&store, one, other);
                    list.sort(&store, by).unwrap();
                    other.sort(&store, by).unwrap();
                    list.merge(&store, other, by).unwrap();
                    model.sort_by_key(|element| element.0.first().copied());
                    theirs.sort_by_key(|element| element.0.first().copied());
                    model.append(theirs);
                    model.sort_by_key(|element| element.0.first().copied());
                }
                15 => {
                    list.splice_range(&store, at, other, span).unwrap();
                    model.splice(place..place, theirs.drain(first..last));
                }
                16 => {
                    list.insert_range(&store, at, other, span).unwrap();
                    let some = theirs[first..last].to_vec();
                    model.splice(place..place, some);
                }
                _ => {
                    match random.below(4) {
                        0 => {
                            list.assign(&store, other).unwrap();
                            *model = theirs.clone();
                        }
                        1 => {
                            list.assign_range(&store, other, span).unwrap();
                            *model = theirs[first..last].to_vec();
                        }
                        2 => {
                            list.swap(&store, other).unwrap();
                            std::mem::swap(model, theirs);
                        }
                        _ if first < theirs.len() => {
                            list.splice(&store, at, other, span.0).unwrap();
                            model.insert(place, theirs.remove(first));
                        }
                        _ => {}
                    };
                }
            }
            for (list, model) in lists.iter().zip(&models) {
                assert_eq!(&all(&store, *list), model, "seed {seed}");
            }
        }
        lists.into_iter().for_each(|list| list.destroy(&store).unwrap());
        assert_eq!(plain.live(), 0);
    }
}

#[test]
fn cursors_move_forward_and_back() {
    let plain = Plain::new(2);
    let store = plain.view(0);
    let list = List::create(&store, Rank(0)).unwrap();
    assert_eq!(list.begin(&store).unwrap(), list.end(&store));
    assert_eq!(list.element(&store, list.end(&store)), Ok(Element::NONE));
    for n in 0..5u8 {
        list.push_back(&store, Data::Here(&[n]), Rank(u32::from(n) % 2)).unwrap();
    }
    let (begin, end) = (list.begin(&store).unwrap(), list.end(&store));
    let third = list.advance(&store, begin, 2).unwrap();
    assert_eq!(bytes_of(&store, list.element(&store, third).unwrap()), [2]);
    assert_eq!(list.advance(&store, third, -1), list.next(&store, begin));
    assert_eq!(list.advance(&store, third, -9), Ok(begin));
    assert_eq!(list.advance(&store, third, 9), Ok(end));
    assert_eq!(list.advance(&store, end, -5), Ok(begin));
    assert_eq!(list.distance(&store, begin, third), Ok(Some(2)));
    assert_eq!(list.distance(&store, begin, end), Ok(Some(5)));
    assert_eq!(list.distance(&store, third, begin), Ok(None));
    // Within one list.
    list.splice(&store, begin, list, third).unwrap();
    list.insert_range(&store, third, list, (begin, end)).unwrap();
    let bytes: Vec<u8> = all(&store, list).into_iter().map(|element| element.0[0]).collect();
    assert_eq!(bytes, [0, 1, 3, 4, 2, 0, 1, 3, 4]);
    let begin = list.begin(&store).unwrap();
    list.assign_range(&store, list, (begin, third)).unwrap();
    let bytes: Vec<u8> = all(&store, list).into_iter().map(|element| element.0[0]).collect();
    assert_eq!(bytes, [0, 1, 3, 4]);
}

fn nth(store: &View<'_>, list: List, count: usize) -> Cursor {
    let begin = list.begin(store).unwrap();
    list.advance(store, begin, count as i64).unwrap()
}

fn range(random: &mut Random, size: usize) -> (usize, usize) {
    let (one, other) = (random.below(size as u64 + 1), random.below(size as u64 + 1));
    (one.min(other) as usize, one.max(other) as usize)
}
