//! Arrays that one rank makes, and others open by a word.

use super::run_ranks;
use tsumugi::array::{ArrayError, ArrayHandle, Arrays, Dealt, Directory, Distribution};
use tsumugi::{Error, GlobalArray, Rank, Runtime, Shared};
use tsumugi_conformance::Seeded;

#[test]
fn one_rank_makes_it_and_others_open_it() {
    run_ranks(3, |rt| {
        let (arrays, told) = (rt.arrays(1 << 20)?, rt.share::<u64>(1)?);
        for first in [Distribution::Block, Distribution::Cyclic] {
            for maker in rt.ranks() {
                lives(rt, &arrays, &told, maker, first)?;
            }
        }
        Ok(())
    });
}

/// From its beginning to its end.
fn lives(
    rt: &Runtime,
    arrays: &Arrays,
    told: &Shared<u64>,
    maker: Rank,
    first: Distribution,
) -> Result<(), Error> {
    let dealt = Dealt { page_len: 3, first, ..Dealt::default() };
    let mut array = None;
    if rt.rank() == maker {
        let made = arrays.make::<u64>(LEN, dealt)?;
        let mut all = [1; LEN];
        made.get_slice(0, &mut all)?;
        assert_eq!(all, [0; LEN], "what was there before is gone");
        let handle = made.handle().expect("it was made alone").to_bits();
        for rank in rt.ranks() {
            rt.put(told.at(rank, 0), handle)?;
        }
        array = Some(made);
    }
    rt.barrier()?;
    let handle = ArrayHandle::from_bits(rt.get(told.at(rt.rank(), 0))?);
    let array = match array {
        Some(array) => array,
        None => arrays.open::<u64>(handle)?,
    };
    // Each brings a part of it here, while all add to all of it.
    let part = rt.rank().0 as usize * LEN / 3..(rt.rank().0 as usize + 1) * LEN / 3;
    for index in 0..LEN {
        array.fetch_add(index, index as u64)?;
        if part.contains(&index) && index % 3 == 0 {
            array.own(index..index + 1)?;
        }
    }
    rt.barrier()?;
    assert_eq!(array.owner(part.start + 3)?, rt.rank());
    for index in 0..LEN {
        assert_eq!(array.get(index)?, 3 * index as u64, "element {index}");
    }
    assert!(arrays.open::<u32>(handle).unwrap_err().to_string().contains("of 8 bytes"));
    // The maker lets go first, and it stays.
    rt.barrier()?;
    if rt.rank() == maker {
        drop(array);
        rt.barrier()?;
        rt.barrier()?;
    } else {
        rt.barrier()?;
        assert_eq!(array.get(LEN - 1)?, 3 * (LEN as u64 - 1));
        drop(array);
        rt.barrier()?;
    }
    let gone = arrays.open::<u64>(handle).unwrap_err();
    assert_eq!(gone.to_string(), ArrayError::Gone.to_string());
    rt.barrier()
}

/// Ranks make arrays, open those of others, write to them and drop them, each
/// at its own pace. What is in one is its number, and never another's.
#[test]
fn they_come_and_go_in_the_same_room() {
    run_ranks(3, |rt| {
        let (arrays, board) = (rt.arrays(ROOM)?, rt.share::<u64>(PLACES)?);
        let mut draw = Seeded(u64::from(rt.rank().0));
        let mut own: Vec<GlobalArray<u64>> = vec![];
        for _ in 0..STEPS {
            let place = draw.below(PLACES as u64) as usize;
            match draw.below(3) {
                0 if own.len() < 2 => {
                    let len = 1 + draw.below(2000) as usize;
                    let dealt = Dealt { page_len: 16, known: 8, ..Dealt::default() };
                    let array = arrays.make::<u64>(len, dealt)?;
                    let number = array.handle().expect("made alone").to_bits();
                    array.put_slice(0, &vec![number; len])?;
                    rt.put(board.at(Rank(0), place), number)?;
                    own.push(array);
                }
                1 => {
                    let number = rt.get(board.at(Rank(0), place))?;
                    if let Ok(array) = arrays.open::<u64>(ArrayHandle::from_bits(number)) {
                        let index = draw.below(array.len() as u64) as usize;
                        array.own(index..index + 1)?;
                        let mut all = vec![0; array.len()];
                        array.get_slice(0, &mut all)?;
                        assert!(all.iter().all(|value| *value == number), "{number}: {all:?}");
                    }
                }
                _ if own.is_empty() => {}
                _ => drop(own.swap_remove(draw.below(own.len() as u64) as usize)),
            }
        }
        drop(own);
        rt.barrier()?;
        // All of the room is free again.
        if rt.rank().0 == 1 {
            let dealt = Dealt { known: 1, room: 55, page_len: 2048, ..Dealt::default() };
            let array = arrays.make::<u64>(100 * 2048, dealt)?;
            let mut all = vec![1; array.len()];
            array.get_slice(0, &mut all)?;
            assert!(all.iter().all(|value| *value == 0));
        }
        rt.barrier()
    });
}

#[test]
fn what_cannot_be_made_alone_is_said() {
    run_ranks(2, |rt| {
        let arrays = rt.arrays(1 << 16)?;
        if rt.rank().0 == 1 {
            let by = Dealt { first: Distribution::By(|_| Rank(0)), ..Dealt::default() };
            let mail = Dealt { directory: Directory::Messages, ..Dealt::default() };
            for dealt in [by, mail] {
                let error = arrays.make::<u64>(10, dealt).unwrap_err();
                assert_eq!(error.to_string(), ArrayError::NotAlone.to_string());
            }
            let error = arrays.make::<u64>(1 << 20, Dealt::default()).unwrap_err();
            assert!(error.to_string().starts_with("no room for another array, of"), "{error}");
            let error = arrays.make::<u64>(0, Dealt::default()).unwrap_err();
            assert!(error.to_string().starts_with("0 pages"), "{error}");
            assert!(arrays.open::<u64>(ArrayHandle::from_bits(7)).is_err());
        }
        rt.barrier()
    });
}

const LEN: usize = 60;
const PLACES: usize = 4;
const STEPS: usize = 60;
/// Of nine arrays that there can be at a time each has room, however they lie.
const ROOM: usize = 1 << 20;
