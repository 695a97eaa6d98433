//! Arrays whose pages move, on ranks that are threads.

mod alone;
mod checkout;
#[path = "../every_way/mod.rs"]
mod every_way;
#[path = "../moving/mod.rs"]
mod moving;

use every_way::run_ranks;
use moving::histories;
#[cfg(debug_assertions)]
use tsumugi::Runtime;
use tsumugi::array::{ArrayError, ArrayOptions, Directory, Distribution, PageId};
use tsumugi::{AddrError, Config, Error, Rank};
#[cfg(debug_assertions)]
use tsumugi_core::sync::with_mutant;

#[test]
fn values_stay_while_parts_of_an_array_change_owners() {
    for directory in [Directory::Atomics, Directory::Device, Directory::Messages] {
        put_and_own(directory);
    }
}

fn put_and_own(directory: Directory) {
    run_ranks(3, |rt| {
        let array = ArrayOptions::new().directory(directory).create::<u64>(rt, 10_000)?;
        let (rank, size) = (rt.rank().0 as usize, rt.size() as usize);
        let part = |rank: usize| rank * 10_000 / size..(rank + 1) * 10_000 / size;
        let values: Vec<u64> = part(rank).map(|index| index as u64 * 3).collect();
        array.put_slice(part(rank).start, &values)?;
        rt.barrier()?;
        let mut all = vec![0; 10_000];
        for turn in 0..size {
            // Every rank reads the whole array while the parts move around.
            let next = part((rank + turn) % size);
            let moved = array.own(next.clone())?;
            assert!(moved <= next.len() / array.page_len() + 2);
            array.get_slice(0, &mut all)?;
            assert!(all.iter().enumerate().all(|(index, value)| *value == index as u64 * 3));
            rt.barrier()?;
            let middle = (next.start + next.end) / 2;
            assert_eq!(array.owner(middle)?, rt.rank());
            assert_eq!(array.own(middle..middle + 1)?, 0, "the page is here");
            assert_eq!(array.get(middle)?, middle as u64 * 3);
            rt.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn no_update_is_lost_while_pages_move() {
    for directory in [Directory::Atomics, Directory::Device, Directory::Messages] {
        update_and_own(directory);
    }
}

fn update_and_own(directory: Directory) {
    run_ranks(3, |rt| {
        let options = ArrayOptions::new().page_len(4).known(5).directory(directory);
        let array = options.create::<u64>(rt, 64)?;
        let ults: Vec<_> = (0..4u64)
            .map(|ult| {
                let array = array.clone();
                rt.spawn(move |rt| {
                    let mut seen = [0; 64];
                    for step in 0..ROUNDS {
                        let index = (step * 7 + ult * 13 + u64::from(rt.rank().0)) as usize % 64;
                        let old = array.fetch_add(index, 1)?;
                        assert!(old >= seen[index], "element {index} went back to {old}");
                        seen[index] = old + 1;
                        if step % 8 == ult {
                            array.own(index..(index + 6).min(64))?;
                        }
                        let now = array.get(index)?;
                        assert!(now >= seen[index], "element {index}: {now} of {}", seen[index]);
                        seen[index] = now;
                    }
                    Ok::<(), Error>(())
                })
            })
            .collect();
        ults.into_iter().try_for_each(|ult| ult.join().expect("no panic"))?;
        rt.barrier()?;
        let mut all = [0; 64];
        array.get_slice(0, &mut all)?;
        assert_eq!(all.iter().sum::<u64>(), 3 * 4 * ROUNDS);
        rt.barrier()
    });
}

#[test]
fn elements_of_any_size_and_every_atomic_work() {
    run_ranks(2, |rt| {
        let halves = ArrayOptions::new().page_len(3).create::<u32>(rt, 7)?;
        let wide = ArrayOptions::new().page_len(2).create::<[u8; 24]>(rt, 5)?;
        if rt.rank().0 == 1 {
            halves.own(2..4)?;
            halves.put(3, 5)?;
            assert_eq!(halves.fetch_add(3, 2)?, 5);
            assert_eq!(halves.fetch_and(3, 6)?, 7);
            assert_eq!(halves.fetch_or(3, 8)?, 6);
            assert_eq!(halves.fetch_xor(3, 1)?, 14);
            assert_eq!(halves.swap(3, 9)?, 15);
            assert_eq!(halves.compare_swap(3, 8, 1)?, 9);
            assert_eq!(halves.compare_swap(3, 9, 1)?, 9);
            wide.put_slice(1, &[[1; 24], [2; 24], [3; 24]])?;
        }
        rt.barrier()?;
        assert_eq!((halves.get(3)?, halves.get(4)?), (1, 0));
        let mut all = [[9; 24]; 5];
        wide.get_slice(0, &mut all)?;
        assert_eq!(all, [[0; 24], [1; 24], [2; 24], [3; 24], [0; 24]]);
        rt.barrier()
    });
}

#[test]
fn programs_on_arrays_work_on_ranks_that_are_threads() {
    for size in [1, 3] {
        run_ranks(size, |rt| moving::play(rt, 1));
    }
}

#[test]
fn elements_are_linearizable_while_pages_move() {
    for directory in [Directory::Atomics, Directory::Device, Directory::Messages] {
        run_ranks(3, |rt| {
            let plan = histories::Plan { seed: 1, ults: 3, steps: 40, directory };
            assert!(histories::play(rt, plan)? > 0);
            Ok(())
        });
    }
}

/// Each defect is planted at all ranks, and each rank has one worker.
#[test]
#[cfg(debug_assertions)]
fn histories_show_planted_defects() {
    for mutant in ["page_left_unmarked", "page_header_unread"] {
        let is_seen = |seed: &u64| {
            let plan =
                histories::Plan { seed: *seed, ults: 3, steps: 100, directory: Directory::Atomics };
            let play = |rt: &Runtime| with_mutant(mutant, || histories::play(rt, plan).map(drop));
            Config::default().workers(1).run_ranks(3, play).is_err()
        };
        let seed = (0..1000).find(is_seen);
        println!("{mutant} is seen by seed {seed:?}");
        assert!(seed.is_some(), "{mutant} is not seen");
    }
}

#[test]
fn pages_go_where_they_are_sent() {
    run_ranks(3, |rt| {
        let array = ArrayOptions::new().page_len(2).create::<u64>(rt, 30)?;
        if rt.rank().0 == 0 {
            array.put_slice(0, &(0..30).collect::<Vec<_>>())?;
            for page in 0..15u64 {
                let to = Rank((page % 3) as u32);
                let moved = array.relocate(PageId(page), to)?;
                assert_eq!(moved, array.first_owner(page as usize * 2)? != to);
                assert!(!array.relocate(PageId(page), to)?, "the page is there");
            }
            let none = AddrError::NoSuchRank { rank: Rank(3), size: 3 };
            assert_eq!(array.relocate(PageId(1), Rank(3)), Err(ArrayError::Addr(none)));
            let no_page = ArrayError::NoPage { page: PageId(15), pages: 15 };
            assert_eq!(array.relocate(PageId(15), Rank(1)), Err(no_page));
        }
        rt.barrier()?;
        for index in 0..30 {
            let page = array.page(index);
            let entry = array.entry(page)?;
            assert_eq!(entry.owner, Rank((page.0 % 3) as u32));
            assert_eq!(entry.epoch, u32::from(entry.owner != array.first_owner(index)?));
            assert_eq!(array.home(index)?, array.first_owner(index)?, "dealt in blocks");
            assert_eq!(array.get(index)?, index as u64);
        }
        rt.barrier()?;
        let mine = (0..15).map(PageId).filter(|page| page.0 % 3 == u64::from(rt.rank().0));
        assert_eq!(array.own_pages(mine)?, 0);
        rt.barrier()
    });
}

#[test]
fn pages_are_distributed_as_requested() {
    Config::default()
        .run_ranks(3, |rt| {
            let by = Distribution::By(|page: PageId| Rank((page.0 % 2) as u32 + 1));
            for (first, owners) in [
                (Distribution::Block, [0, 0, 0, 1, 1, 1, 2]),
                (Distribution::Cyclic, [0, 1, 2, 0, 1, 2, 0]),
                (by, [1, 2, 1, 2, 1, 2, 1]),
            ] {
                let options = ArrayOptions::new().distribution(first).page_len(2);
                let array = options.create::<u64>(rt, 13)?;
                for (page, owner) in owners.into_iter().enumerate() {
                    assert_eq!(array.owner(page * 2)?, Rank(owner), "{first:?}, page {page}");
                }
                rt.barrier()?;
            }
            Ok::<(), Error>(())
        })
        .unwrap();
}

/// For an array of a million pages, a rank stores the directory of the pages that it is
/// home to, its location cache, and one bit for each page that it may own.
#[test]
fn the_books_of_a_million_pages_are_small() {
    Config::default()
        .run_ranks(4, |rt| {
            let options = ArrayOptions::new().page_len(1);
            let array = options.create::<u64>(rt, PAGES)?;
            let books = PAGES as u64 / 4 * 16 + 1024 * 32 + PAGES as u64 / 8;
            let bytes = array.metadata_bytes();
            assert!((books..books + 512).contains(&bytes), "{bytes} of {books}");
            assert!(bytes / (PAGES as u64) < 5, "a rank has {bytes} bytes for {PAGES} pages");
            let rank = rt.rank().0 as usize;
            for index in (rank..PAGES).step_by(4003) {
                array.put(index, index as u64)?;
                array.own(index..index + 1)?;
            }
            rt.barrier()?;
            for index in (0..PAGES).step_by(4003) {
                assert_eq!((array.get(index)?, array.owner(index)?), (index as u64, Rank(0)));
            }
            rt.barrier()
        })
        .unwrap();
}

#[test]
fn bad_calls_on_arrays_are_errors() {
    Config::default()
        .run_ranks(2, |rt| {
            let array = ArrayOptions::new().page_len(1).room(5).create::<u64>(rt, 10)?;
            let beyond = ArrayError::OutOfRange { index: 8, count: 3, len: 10 };
            assert_eq!(array.get_slice(8, &mut [0; 3]), Err(beyond));
            assert_eq!(array.put_slice(8, &[0; 3]), Err(beyond));
            assert_eq!(array.own(8..11), Err(beyond));
            assert_eq!(
                beyond.to_string(),
                "3 elements from index 8 on do not fit in an array of 10"
            );
            assert_eq!(array.own(3..3), Ok(0));
            rt.barrier()?;
            if rt.rank().0 == 0 {
                // Rank 0 owns five pages already, and has no frame for another one.
                assert_eq!(array.own(5..6), Err(ArrayError::Full { room: 5 }));
                assert_eq!(array.get(5)?, 0);
            }
            rt.barrier()?;
            let by_mail = ArrayOptions::new().directory(Directory::Messages);
            let array = by_mail.create::<u64>(rt, 10)?;
            let refused = Err(ArrayError::NotByMessages);
            assert_eq!(array.relocate(PageId(0), rt.rank()), refused);
            let none = rt.array::<u64>(0).unwrap_err();
            assert_eq!(none.to_string(), "0 pages: there must be 1 to 34359738368");
            Ok::<(), Error>(())
        })
        .unwrap();
}

const ROUNDS: u64 = 200;
const PAGES: usize = 1_000_000;
