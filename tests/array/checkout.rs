//! Checkout and checkin: copies of elements that a rank keeps.

use super::moving::copies;
use super::run_ranks;
use tsumugi::Config;
use tsumugi::array::{ArrayError, ArrayOptions, Read, ReadWrite, Write};

#[test]
fn values_checked_in_before_a_fence_are_seen_after_it() {
    run_ranks(3, |rt| copies::rounds(rt, 12_000, 1));
}

#[test]
fn a_copy_is_kept_until_an_acquire() {
    run_ranks(2, |rt| {
        let array = rt.array::<u32>(100)?;
        let lent = array.checkout(60..70, Read)?;
        assert!(lent.iter().all(|value| *value == 0));
        rt.barrier()?;
        if rt.rank().0 == 0 {
            array.put(65, 9)?;
        }
        rt.barrier()?;
        assert_eq!(array.checkout(65..66, Read)?[0], 0, "a copy is not refreshed by itself");
        array.acquire();
        assert_eq!(array.checkout(65..66, Read)?[0], 0, "an acquire keeps what is lent");
        drop(lent);
        assert_eq!(array.checkout(65..66, Read)?[0], 9);
        // Rank 1 has checked in these elements and has not released them: the other ranks
        // do not see the new values yet.
        if rt.rank().0 == 1 {
            array.checkout(1..3, Write)?.copy_from_slice(&[4, 5]);
            assert_eq!(array.checkout(0..4, Read)?[..], [0, 4, 5, 0]);
            array.acquire();
            assert_eq!(array.checkout(2..3, Read)?[0], 5, "an acquire keeps dirty elements");
        }
        array.fence()?;
        assert_eq!(array.get(1)?, 4);
        rt.barrier()
    });
}

#[test]
fn a_range_is_lent_to_one_writer_or_to_several_readers() {
    run_ranks(2, |rt| {
        let options = ArrayOptions::new().page_len(16).cached_bytes(32 << 10);
        let array = options.create::<u64>(rt, 1 << 14)?;
        let lent = |index, count| ArrayError::Lent { index, count };
        let (one, two) = (array.checkout(10..20, Read)?, array.checkout(15..30, Read)?);
        assert_eq!((one.range(), two.len()), (10..20, 15));
        assert_eq!(array.checkout(19..21, Write).unwrap_err(), lent(19, 2));
        drop(one);
        let mut three = array.checkout(10..15, ReadWrite)?;
        three[0] = 3;
        assert_eq!(array.checkout(14..15, Read).unwrap_err(), lent(14, 1));
        assert_eq!(array.checkout(5..5, Read)?.len(), 0);
        // With `four`, all blocks of the cache are lent.
        let four = array.checkout(2048..2049, Read)?;
        let full = ArrayError::NoCopies { bytes: 32 << 10 };
        assert_eq!(array.checkout(4096..4097, Read).unwrap_err(), full);
        drop(four);
        assert_eq!(array.checkout(4096..4097, Read)?[0], 0);
        let beyond = ArrayError::OutOfRange { index: 16_383, count: 2, len: 1 << 14 };
        assert_eq!(array.checkout(16_383..16_385, Read).unwrap_err(), beyond);
        rt.barrier()
    });
}

/// A ULT that has elements checked out may go on on any worker.
#[test]
fn checkouts_move_between_workers_with_their_ults() {
    Config::default()
        .workers(2)
        .run_ranks(2, |rt| {
            let array = rt.array::<u64>(4096)?;
            let part = rt.rank().0 as usize * 2048;
            let ults: Vec<_> = (0..32)
                .map(|ult| {
                    let array = array.clone();
                    rt.spawn(move |_| {
                        let start = part + ult * 64;
                        let mut lent = array.checkout(start..start + 64, ReadWrite)?;
                        for turn in 0..64 {
                            lent[turn] += start as u64;
                            tsumugi::ult::yield_now();
                        }
                        Ok::<_, ArrayError>(lent)
                    })
                })
                .collect();
            for ult in ults {
                let lent = ult.join().expect("no panic")?;
                assert!(lent.iter().all(|value| *value == lent.range().start as u64));
            }
            array.fence()?;
            assert_eq!(array.get(4095)?, 4032);
            rt.barrier()
        })
        .unwrap();
}
