//! Operations in flight when their rank ends: each ends, with its result if the rank has
//! ended well, else with an error.

use std::sync::mpsc;
use std::thread;
use tsumugi::group::Sum;
use tsumugi::{AddrError, CollError, Error, Rank, Runtime, Until, run_ranks};

/// A rank whose `main` returns takes part in what it has begun.
#[test]
fn a_rank_that_ends_well_ends_what_it_has_begun() {
    let (tell, told) = mpsc::channel();
    run_ranks(3, |rt| {
        let tell = [tell.clone(), tell.clone()];
        let [first, second] = tell;
        let world = rt.world();
        let sum = world.ops().allreduce(vec![1u64], Sum);
        let begun = sum.then(move |sum| first.send(sum.map(|sum| sum[0])).expect("awaited"));
        assert!(begun.is_ok());
        let barrier = rt.ops().barrier();
        assert!(barrier.then(move |end| second.send(end.map(|()| 0)).expect("awaited")).is_ok());
        Ok::<_, Error>(())
    })
    .unwrap();
    drop(tell);
    let mut ends: Vec<u64> = told.iter().map(|end| end.unwrap()).collect();
    ends.sort_unstable();
    assert_eq!(ends, [0, 0, 0, 3, 3, 3]);
}

/// A rank whose `main` fails ends what it has begun with an error: for threads that wait and
/// for callbacks.
#[test]
fn a_rank_that_fails_ends_what_it_has_begun_with_an_error() {
    let (tell, told) = mpsc::channel();
    let (keep, kept) = mpsc::channel();
    let failed = run_ranks(2, |rt| {
        if rt.rank() != Rank(0) {
            let words = rt.share::<u64>(1)?;
            // Until the first rank is lost.
            rt.wait_until(words.own().at(0), Until::Equal(1))?;
            return Ok(());
        }
        rt.share::<u64>(1)?;
        waits_elsewhere(rt, &tell, |rt| {
            let begun = rt.ops().barrier().try_begin().expect("there is room");
            move || begun.wait()
        });
        let tell = tell.clone();
        let world = rt.world();
        let sum = world.ops().allreduce(vec![1u64], Sum);
        let begun = sum.then(move |sum| tell.send(sum.map(drop)).expect("awaited"));
        assert!(begun.is_ok());
        keep.send(rt.clone()).expect("awaited");
        Err(Error::program("the rank gives up"))
    });
    assert!(failed.is_err());
    for _ in 0..2 {
        assert_ended(told.recv().unwrap());
    }
    // Later operations end at once.
    let rt = kept.recv().unwrap();
    let late = rt.ops().barrier().try_begin().expect("there is room");
    assert_ended(late.wait());
    let late = rt.world().ops().barrier().wait();
    assert!(late.is_err(), "{late:?}");
}

/// Begins an operation, and waits for it on another OS thread.
fn waits_elsewhere<W: FnOnce() -> Result<(), Error>>(
    rt: &Runtime,
    tell: &mpsc::Sender<Result<(), Error>>,
    begin: impl FnOnce(&'static Runtime) -> W + Send + 'static,
) {
    // The operation borrows the handle, and outlives this call.
    let (rt, tell): (&'static Runtime, _) = (Box::leak(Box::new(rt.clone())), tell.clone());
    let (begun, has_begun) = mpsc::channel();
    thread::spawn(move || {
        let wait = begin(rt);
        begun.send(()).expect("awaited");
        tell.send(wait()).expect("awaited");
    });
    has_begun.recv().expect("it begins");
}

fn assert_ended(result: Result<(), Error>) {
    let has_ended = matches!(result, Err(Error::Coll(CollError::Addr(AddrError::Ended))));
    assert!(has_ended, "{result:?}");
}
