use super::*;
use tsumugi::run_ranks;

/// The Fibonacci numbers, with a task for each call.
fn fib(tasks: &Tasks<()>, [n, ..]: Args) -> Result<u64, Error> {
    if n < 2 {
        return Ok(n);
    }
    let one = tasks.fork(0, args([n - 1]))?;
    let two = fib(tasks, args([n - 2]))?;
    Ok(tasks.join(one)? + two)
}

/// Returns the rank that the task runs on.
fn place(tasks: &Tasks<()>, _: Args) -> Result<u64, Error> {
    Ok(tasks.rt().rank().0.into())
}

fn fails(_: &Tasks<()>, _: Args) -> Result<u64, Error> {
    Err(Error::program("the task refuses to run"))
}

fn panics(_: &Tasks<()>, _: Args) -> Result<u64, Error> {
    panic!("the task refuses to run")
}

const ALL: &[Function<()>] = &[fib, place, fails, panics];

#[test]
fn tasks_give_their_results_on_one_rank_and_on_several() {
    for ranks in [1, 2, 3] {
        let ended = run_ranks(ranks, |rt| {
            let tasks = Tasks::new(rt, (), ALL)?;
            for (n, expected) in [(1, 1), (12, 144), (17, 1597)] {
                assert_eq!(tasks.run(|tasks| fib(tasks, args([n])))?, expected);
            }
            let counts = tasks.counts();
            assert!(rt.sum(counts.stolen)? <= rt.sum(counts.ran)?);
            rt.barrier()
        });
        ended.unwrap();
    }
}

#[test]
fn a_task_runs_where_it_was_sent() {
    let ended = run_ranks(3, |rt| {
        let tasks = Tasks::new(rt, (), ALL)?;
        let sum = tasks.run(|tasks| {
            let ranks = (0..300).map(|task| Rank(task % tasks.rt().size()));
            let handles = ranks.map(|rank| Ok((rank, tasks.fork_at(rank, 1, args([]))?)));
            for handle in handles.collect::<Result<Vec<_>, Error>>()? {
                assert_eq!(tasks.join(handle.1)?, handle.0.0.into());
            }
            Ok(7)
        })?;
        assert_eq!(sum, 7);
        rt.barrier()
    });
    ended.unwrap();
}

#[test]
fn a_task_without_room_is_called_by_its_parent() {
    let ended = run_ranks(2, |rt| {
        let tasks = Tasks::new(rt, (), ALL)?;
        let many = PLACES + DEQUE_TASKS;
        let sum = tasks.run(|tasks| {
            let handles = (0..many).map(|_| tasks.fork(0, args([1])));
            let handles: Vec<_> = handles.collect::<Result<_, _>>()?;
            handles.into_iter().rev().map(|handle| tasks.join(handle)).sum()
        })?;
        assert_eq!(sum, many as u64);
        rt.barrier()
    });
    ended.unwrap();
}

#[test]
fn a_failure_reaches_the_root_and_all_ranks() {
    for (function, why) in [
        (2, "the task refuses to run"),
        (3, "a task panicked"),
        (9, "function 9: the ranks gave 4"),
    ] {
        let said = run_ranks(2, move |rt| {
            let tasks = Tasks::new(rt, (), ALL)?;
            let ended = tasks.run(|tasks| {
                let handle = tasks.fork_at(Rank(1), function, args([]))?;
                tasks.join(handle)
            });
            let said = ended.expect_err("the task fails").to_string();
            rt.barrier()?;
            Ok::<_, Error>(said)
        });
        let said = said.unwrap();
        assert!(said[0].contains("failed at rank 1"), "{said:?}");
        assert!(said[1].contains(why), "{said:?}");
    }
}

#[test]
fn a_task_that_is_not_joined_is_an_error() {
    let said = run_ranks(2, |rt| {
        let tasks = Tasks::new(rt, (), ALL)?;
        let ended = tasks.run(|tasks| {
            let _forgotten = tasks.fork(0, args([3]))?;
            Ok(1)
        });
        Ok::<_, Error>(ended.expect_err("one task was not joined").to_string())
    });
    for said in said.unwrap() {
        assert!(said.contains("not joined"), "{said}");
    }
}

#[test]
fn a_task_is_the_same_after_encoding() {
    let task = Task { function: 3, home: Rank(9), place: 77, args: [1, 2, 3, 4, 5, u64::MAX] };
    assert_eq!(Task::from_bytes(&task.to_bytes()), Some(task));
    assert_eq!(Task::from_bytes(&[1; 63]), None);
}
