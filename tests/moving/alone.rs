//! Arrays that one rank makes, and that the other ranks open by a handle of one word.

use tsumugi::array::{ArrayError, ArrayHandle, ArrayOptions, Arrays, Distribution};
use tsumugi::{Error, GlobalArray, Rank, Runtime, Shared};
use tsumugi_conformance::Seeded;

/// Each rank makes an array with each distribution; all ranks use it, and it ends when the
/// last one drops it. Collective.
pub fn live(rt: &Runtime) -> Result<(), Error> {
    let (arrays, told) = (rt.arrays(1 << 20)?, rt.share::<u64>(1)?);
    for first in [Distribution::Block, Distribution::Cyclic] {
        for maker in rt.ranks() {
            live_one(rt, &arrays, &told, maker, first)?;
        }
    }
    Ok(())
}

fn live_one(
    rt: &Runtime,
    arrays: &Arrays,
    told: &Shared<u64>,
    maker: Rank,
    first: Distribution,
) -> Result<(), Error> {
    let options = ArrayOptions::new().page_len(3).distribution(first);
    let mut array = None;
    if rt.rank() == maker {
        let made = arrays.make::<u64>(LEN, options)?;
        let mut all = [1; LEN];
        made.get_slice(0, &mut all)?;
        assert_eq!(all, [0; LEN], "a new array is zero");
        let handle = made.handle().expect("one rank has made it").to_bits();
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
    // Each rank moves a part of the array to itself, while all ranks add to all elements.
    let (rank, size) = (rt.rank().0 as usize, rt.size() as usize);
    let part = rank * LEN / size..(rank + 1) * LEN / size;
    for index in 0..LEN {
        array.fetch_add(index, index as u64)?;
        if part.contains(&index) && index % 3 == 0 {
            array.own(index..index + 1)?;
        }
    }
    rt.barrier()?;
    assert_eq!(array.owner(part.start.next_multiple_of(3))?, rt.rank());
    for index in 0..LEN {
        assert_eq!(array.get(index)?, (size * index) as u64, "element {index}");
    }
    assert!(arrays.open::<u32>(handle).unwrap_err().to_string().contains("of 8 bytes"));
    // The maker drops its handle first, and the array stays.
    rt.barrier()?;
    if rt.rank() == maker {
        drop(array);
        rt.barrier()?;
        rt.barrier()?;
    } else {
        rt.barrier()?;
        assert_eq!(array.get(LEN - 1)?, (size * (LEN - 1)) as u64);
        drop(array);
        rt.barrier()?;
    }
    let gone = arrays.open::<u64>(handle).unwrap_err();
    assert_eq!(gone.to_string(), ArrayError::Gone.to_string());
    rt.barrier()
}

/// Ranks make arrays, open those of other ranks, read them and drop them, each rank at its
/// own pace. All elements of an array are its handle's number, and never that of another
/// array.
pub fn come_and_go(rt: &Runtime, steps: usize) -> Result<(), Error> {
    let (arrays, board) = (rt.arrays(ROOM)?, rt.share::<u64>(PLACES)?);
    let mut draw = Seeded(u64::from(rt.rank().0));
    let mut own: Vec<GlobalArray<u64>> = vec![];
    for _ in 0..steps {
        let place = draw.below(PLACES as u64) as usize;
        match draw.below(3) {
            0 if own.len() < 2 => {
                let len = 1 + draw.below(2000) as usize;
                let options = ArrayOptions::new().page_len(16).known(8);
                let array = arrays.make::<u64>(len, options)?;
                let number = array.handle().expect("one rank has made it").to_bits();
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
    // All memory is free again, so that one array can have it.
    if rt.rank().0 + 1 == rt.size() {
        let pages = (ROOM / PAGE_BYTES - 8) as u32;
        let options = ArrayOptions::new().known(1).room(pages).page_len(PAGE_BYTES / 8);
        let array = arrays.make::<u64>(pages as usize * (PAGE_BYTES / 8), options)?;
        let mut some = vec![1; array.len() / 8];
        for part in 0..8 {
            array.get_slice(part * some.len(), &mut some)?;
            assert!(some.iter().all(|value| *value == 0), "part {part}");
        }
    }
    rt.barrier()
}

const LEN: usize = 24;
const PLACES: usize = 4;
const PAGE_BYTES: usize = 16 << 10;
/// Enough memory for all arrays that four ranks can have at a time, three of each, also if
/// it is fragmented.
const ROOM: usize = 1 << 20;
