//! Groups and collectives of ranks that are threads of one process.

use std::sync::Arc;
use tsumugi as api;
use tsumugi::group::{CollForced, CollKind, Sum};
use tsumugi::{CollError, Config, Error, Status, run_ranks};

mod collectives;

#[test]
fn collectives_give_the_results_of_serial_ones() {
    for size in 1..=6 {
        run_ranks(size, |rt| collectives::play(rt, &[1, 0, 5, 300])).map(drop).unwrap();
    }
    Config::default().workers(2).run_ranks(3, |rt| collectives::play(rt, &[2, 5000])).unwrap();
}

#[test]
fn forced_algorithms_give_the_same_results() {
    for words in [
        "all=rows",
        "all=rooted_rows",
        "all=tree,all=ring",
        "all=chain,all=halving,all=bruck",
        "all=spread",
    ] {
        let collectives = CollForced::parse(words).unwrap();
        let config = Config::default().collectives(collectives);
        config.run_ranks(4, |rt| collectives::play(rt, &[1, 5, 3000])).map(drop).unwrap();
    }
    run_ranks(3, |rt| {
        let forced = CollForced::NONE.with(CollKind::Broadcast, "chain").unwrap();
        let group = rt.world().duplicate_forcing(forced)?;
        let mut values = vec![group.rank(); 5000];
        group.broadcast(&mut values, 2)?;
        assert!(values.iter().all(|value| *value == 2));
        rt.world().barrier()
    })
    .unwrap();
}

#[test]
fn long_values_are_combined_in_blocks() {
    run_ranks(3, |rt| collectives::play(rt, &[40_000])).map(drop).unwrap();
    run_ranks(4, |rt| {
        let world = rt.world();
        let mut long = vec![u64::from(rt.rank().0); 200_000];
        world.broadcast(&mut long, 3)?;
        assert!(long.iter().all(|value| *value == 3));
        world.allreduce(&mut long, Sum)?;
        assert!(long.iter().all(|value| *value == 12));
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn wrong_calls_name_what_is_wrong() {
    run_ranks(2, |rt| {
        let world = rt.world();
        let me = world.rank();
        let coll = |result| match result {
            Err(Error::Coll(error)) => error,
            other => panic!("{other:?}"),
        };
        let error = coll(world.broadcast(&mut [0u8], 2));
        assert_eq!(error, CollError::NoSuchRoot { root: 2, size: 2 });
        let error = coll(world.alltoall(&[0u8; 3]).map(drop));
        assert_eq!(error, CollError::WrongLength { len: 3, needed: 2 });
        let error = coll(world.allgather_v(&[0u8; 3], &[3]).map(drop));
        assert_eq!(error, CollError::WrongLength { len: 1, needed: 2 });
        // The member with the shorter buffer notices it, and both go on.
        let mut values = vec![1u32; 1 + me as usize];
        let ended = world.allreduce(&mut values, Sum);
        let peer = rt.ranks().nth(1 - me as usize).unwrap();
        let (bytes, expected) = if me == 0 { (8, 4) } else { (4, 8) };
        assert_eq!(coll(ended), CollError::LengthsDiffer { rank: peer, bytes, expected });
        world.barrier()
    })
    .unwrap();
}

/// The member that reads the values of all does not publish what lacks one of them.
#[test]
fn a_value_of_another_length_is_an_error_at_all() {
    run_ranks(4, |rt| {
        let forced = CollForced::NONE.with(CollKind::Allreduce, "rooted_rows").unwrap();
        let group = rt.world().duplicate_forcing(forced)?;
        let mut values = vec![1u32; if rt.rank().0 == 2 { 2 } else { 1 }];
        match group.allreduce(&mut values, Sum) {
            Err(Error::Coll(CollError::LengthsDiffer { rank, bytes, expected })) => {
                let wanted = match rt.rank().0 {
                    0 => (2, 8, 4),
                    2 => (0, 0, 8),
                    _ => (0, 0, 4),
                };
                assert_eq!((rank.0, bytes, expected), wanted);
            }
            other => panic!("{other:?}"),
        }
        let mut values = [rt.rank().0];
        group.allreduce(&mut values, Sum)?;
        assert_eq!(values, [6]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// The program computes, and the collective goes on without it.
#[test]
fn a_begun_collective_goes_on_while_the_program_computes() {
    run_ranks(3, |rt| {
        let world = rt.world();
        let Ok(pending) = world.ops().allreduce(vec![1u64], Sum).try_begin() else {
            panic!("there is room")
        };
        if rt.rank().0 > 0 {
            // This rank's only worker does not return to its scheduler until the first
            // rank has the result.
            let word = rt.starter(rt.rank());
            while rt.get(word)? == 0 {
                std::hint::spin_loop();
            }
        } else {
            assert_eq!(pending.wait()?, [3]);
            for rank in rt.ranks().skip(1) {
                rt.put(rt.starter(rank), 1)?;
            }
            return world.barrier();
        }
        assert_eq!(pending.wait()?, [3]);
        world.barrier()
    })
    .unwrap();
}

/// More groups than a rank has rows: those without one send messages, and a row is used
/// again when its group has gone.
#[test]
fn groups_share_few_rows() {
    run_ranks(4, |rt| {
        let (world, me) = (rt.world(), rt.rank().0);
        for round in 0..3u32 {
            let mut groups = Vec::new();
            for number in 0..11u32 {
                let color = if number % 2 == 0 { 0 } else { me % 2 };
                groups.push(world.split(Some(color), 0)?.expect("a color"));
            }
            for group in groups.iter().chain(&groups) {
                let mut values = [1u32, me];
                group.allreduce(&mut values, Sum)?;
                let sum = match group.size() {
                    4 => 6,
                    _ => 2 + 2 * (me % 2),
                };
                assert_eq!(values, [group.size(), sum], "round {round}");
                for root in 0..group.size() {
                    let mut value = [group.rank() + 10 * round];
                    group.broadcast(&mut value, root)?;
                    assert_eq!(value, [root + 10 * round]);
                }
            }
            // The rows of the later groups are those of the earlier ones.
            groups.truncate(round as usize);
            world.barrier()?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// A root that waits for one member after the other asks each to wake it. The row then goes to
/// a group which that root is not in.
#[test]
fn a_row_goes_on_without_the_watchers_of_its_former_group() {
    run_ranks(4, |rt| {
        let (world, me) = (rt.world(), rt.rank().0);
        let all = world.duplicate()?;
        let take = |count: u64| {
            (0..count).try_for_each(|_| {
                let mut value = [0u64];
                all.broadcast(&mut value, 3)?;
                assert_eq!(value, [7]);
                Ok::<_, Error>(())
            })
        };
        // The root can be four broadcasts ahead: it waits for member 0 first.
        let begin = |_| all.ops().broadcast(vec![7u64], 3).try_begin().expect("room");
        let begun: Vec<_> = (0..if me == 3 { 6 } else { 0 }).map(begin).collect();
        for member in 0..3 {
            world.barrier()?;
            if me == member {
                take(4)?;
            }
            world.barrier()?;
            begun.iter().for_each(|one| _ = matches!(one, Status::Pending(one) if one.is_done()));
        }
        if me != 3 {
            take(2)?;
        }
        begun.into_iter().try_for_each(|one| one.wait().map(drop))?;
        drop(all);
        world.barrier()?;
        let pair = world.split(Some(me / 2), 0)?.expect("a color");
        for _ in 0..10 {
            let mut values = [1u64];
            pair.allreduce(&mut values, Sum)?;
            assert_eq!(values, [2]);
        }
        world.barrier()
    })
    .unwrap();
}

/// A thread that moves a collective must not wait, so the operation panics there; the other
/// members have the values in any case.
#[test]
fn an_operation_of_a_begun_collective_cannot_wait() {
    run_ranks(3, |rt| {
        let world = rt.world();
        let one_waits = {
            let (group, waits) = (Arc::new(world.duplicate()?), rt.rank().0 == 0);
            move |a: u64, b: u64| {
                if waits {
                    group.barrier().expect("never comes so far");
                }
                a + b
            }
        };
        let begun = world.ops().allreduce(vec![1u64; 4], one_waits).try_begin();
        let ended = match begun.expect("room") {
            Status::Done(result) => result,
            Status::Pending(in_flight) => in_flight.wait(),
        };
        if rt.rank().0 == 0 {
            let error = ended.expect_err("the operation would wait").to_string();
            assert!(error.contains("the operation of a collective has panicked"), "{error}");
        } else {
            assert_eq!(ended?, [3; 4]);
        }
        world.barrier()
    })
    .unwrap();
}

/// Collectives that were begun, and one that the caller waits for, end in the order of
/// their calls.
#[test]
fn begun_collectives_precede_one_that_is_waited_for() {
    run_ranks(3, |rt| {
        let world = rt.world();
        for round in 0..20u64 {
            let begin = |number| world.ops().allreduce(vec![number + round], Sum).try_begin();
            let begun: Vec<_> = (0..6).map(begin).collect::<Result<_, _>>().expect("room");
            let mut values = [rt.rank().0];
            world.allreduce(&mut values, Sum)?;
            assert_eq!(values, [3]);
            for (number, status) in (0..).zip(begun) {
                let values = match status {
                    Status::Done(result) => result?,
                    Status::Pending(in_flight) => in_flight.wait()?,
                };
                assert_eq!(values, [3 * (number + round)]);
            }
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

/// Counts whose sum exceeds all memory are refused: they do not wrap to the length of a
/// buffer.
#[test]
fn counts_do_not_wrap() {
    let most = usize::MAX - 7;
    run_ranks(2, |rt| {
        let world = rt.world();
        let counts = [8, most];
        let is_refused = |result: Result<Vec<u8>, Error>| {
            matches!(result, Err(Error::Coll(CollError::WrongLength { .. })))
        };
        assert!(is_refused(world.alltoall_v(&[], &counts, &counts)));
        assert!(is_refused(world.alltoall_v(&[], &counts, &[0, 0])));
        assert!(is_refused(world.allgather_v(&[0; 8], &counts)));
        if rt.rank().0 == 0 {
            assert!(is_refused(world.gather_v(&[0; 8], &counts, 0)));
            let refused = world.scatter_v(&[], &counts, &mut [0u8; 8], 0);
            assert!(matches!(refused, Err(Error::Coll(CollError::WrongLength { .. }))));
        }
        // Values without bytes: a slice may have as many as a number can count.
        let empty = [[0u8; 0]; usize::MAX];
        let is_refused = |result| matches!(result, Err(Error::Coll(CollError::WrongLength { .. })));
        assert!(is_refused(world.allgather(&empty).map(drop)));
        assert!(rt.rank().0 != 0 || is_refused(world.gather(&empty, 0).map(drop)));
        let values = world.ops().alltoall_v(vec![0u8; 0], vec![0u8; 0], &counts, &counts);
        assert!(matches!(values.wait(), Err(Error::Coll(CollError::WrongLength { .. }))));
        world.barrier()
    })
    .unwrap();
}
