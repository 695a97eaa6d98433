//! The start and the end of a rank.
//!
//! [`run_job`] makes the calling process a rank of its job, and so does [`enter_job`], whose
//! caller goes on as a ULT of the rank. [`run_threads`] makes ranks
//! that are threads of this process: each has its partition, its scheduler and its region
//! table, and all calls work between them as between processes, except that they die
//! together.

mod place;
mod begun;
mod entered;

use crate::config::Chosen;
use crate::error::Error;
use crate::handle::RankHandle;
use crate::job::JoinedJob;
use begun::{BegunRank, Span};
use place::place_of;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_pvas::Member;
use tsumugi_pvas::launch::Stall;
use tsumugi_pvas::partition::declare_lost;

pub use begun::Apart;
#[cfg(any(test, feature = "testing"))]
pub(crate) use begun::make;
pub use entered::{EnteredRank, enter_job};
pub(crate) use place::StartPlace;

/// Runs `main` as a rank of `job`, on a ULT, and returns its result. The calling thread
/// is a worker meanwhile.
///
/// # Errors
///
/// Those of `main`, and of the start of the rank; [`Error::Coll`] if another rank has
/// died before the end of its own `main`.
pub fn run_job<T: Send, E: From<Error> + Send>(
    job: JoinedJob,
    chosen: &Chosen,
    main: impl FnOnce(RankHandle) -> Result<T, E> + Send,
) -> Result<T, E> {
    let JoinedJob { member, method, is_shared, network, mut ties } = job;
    let (place, unpin) = place_of(&member, method, is_shared, chosen);
    let mut meet = || ties.meet();
    let span = network.map(|network| Span { network, meet: &mut meet });
    let result = be(member, chosen, place, span, Apart::default(), main);
    unpin.end();
    if result.is_ok() {
        ties.finish();
    }
    result
}

/// Runs `main` on the ranks `members`, which are threads of this process, and returns
/// the values that `main` returned, in the order of the ranks. Some of the ranks may see
/// each other as ranks of other nodes; `apart` returns the view of each. If no rank does, the
/// calling thread looks for a standstill, and writes its report to the standard error.
///
/// # Errors
///
/// The error of the rank that failed first.
///
/// # Panics
///
/// If a rank panics.
pub fn run_threads<T: Send, E: From<Error> + Send>(
    members: Vec<Member>,
    chosen: &Chosen,
    apart: impl Fn(&Member) -> Apart,
    main: impl Fn(RankHandle) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let first_failure = OnceLock::new();
    let be_one = |(member, apart): (Member, Apart)| {
        let (rank, space) = (member.rank(), member.space().clone());
        let result = catch_unwind(AssertUnwindSafe(|| {
            be(member, chosen, StartPlace::ANYWHERE, None, apart, &main)
        }));
        if !matches!(result, Ok(Ok(_))) {
            let _ = first_failure.set(rank.0 as usize);
            declare_lost(rank, space.controls());
        }
        result
    };
    let Some(space) = members.first().map(|member| member.space().clone()) else {
        return Ok(Vec::new());
    };
    let members: Vec<_> = members.into_iter().map(|member| (apart(&member), member)).collect();
    // Among nodes a thread of the network may wake a rank at any time.
    let is_one_node = members.iter().all(|((neighbours, _), _)| neighbours.is_none());
    let members = members.into_iter().map(|(apart, member)| (member, apart));
    let (ended, starter) = (&AtomicUsize::new(0), &thread::current());
    let be_one = &|member| {
        let result = be_one(member);
        // Release: pairs with the Acquire below; the thread has no more to do.
        ended.fetch_add(1, Ordering::Release);
        starter.unpark();
        result
    };
    let mut results: Vec<_> = thread::scope(|scope| {
        let ranks: Vec<_> = members.map(|member| scope.spawn(move || be_one(member))).collect();
        let mut stall = Stall::new(Instant::now());
        // Acquire: pairs with the Release above.
        while ended.load(Ordering::Acquire) < ranks.len() {
            thread::park_timeout(stall.next().saturating_duration_since(Instant::now()));
            if is_one_node && let Some(text) = stall.poll(Instant::now(), space.controls()) {
                // Not by `eprint!`, whose text a test shows at its end only.
                let _ = std::io::stderr().write_all(text.as_bytes());
            }
        }
        ranks.into_iter().map(|rank| rank.join().unwrap_or_else(Err)).collect()
    });
    // The error of the rank that failed first has the cause; the others only
    // lost it.
    if let Some(first) = first_failure.get() {
        results.rotate_left(*first);
    }
    results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}

/// Runs the rank `member` from its start to its end.
fn be<T: Send, E: From<Error> + Send>(
    member: Member,
    chosen: &Chosen,
    place: StartPlace,
    span: Option<Span<'_>>,
    apart: Apart,
    main: impl FnOnce(RankHandle) -> Result<T, E> + Send,
) -> Result<T, E> {
    let (begun, scheduler, meet) = BegunRank::begin(member, chosen, &place, span, apart)?;
    let result = scheduler.run(|| {
        let value = main(begun.handle.clone())?;
        begun.settle()?;
        Ok(value)
    });
    begun.end(result.is_ok(), meet);
    result
}
