//! Operations on a lost rank while the launcher's report of the first death is
//! awaited.

use super::run_each;
use crate::{AddrError, Rank};
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Wait;
use tsumugi_ult::Here;

/// One thread polls for all ranks: if it waited for the launcher's report, the ULT
/// that stands for the launcher could not make that report.
#[test]
fn a_thread_that_polls_does_not_wait_for_the_launcher() {
    let stage = Arc::new(AtomicU32::new(0));
    run_each(&[1, 2, 3], None, move |rt, weather| {
        let node = &weather.nodes[rt.rank().0 as usize];
        let words = rt.share::<u64>(2)?;
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let first_failure = node.member().first_failure();
            first_failure.expect_within(Duration::from_secs(60));
            node.net().expect("of several nodes").give_up(Rank(1));
            let (lost, sound) = (words.at(Rank(1), 0), words.at(Rank(2), 0));
            // A get that had begun before would end at once.
            rt.get(sound)?;
            // Carried out by the device, by an emulated operation, and by the device.
            let fails = [
                rt.spawn(move |rt| rt.get(lost).map(drop)),
                rt.spawn(move |rt| rt.fetch_add(lost, 1).map(drop)),
                rt.spawn(move |rt| rt.put_slice(lost, &[1, 2])),
            ];
            for _ in 0..20 {
                rt.fetch_add(sound, 1)?;
            }
            // The report: rank 2 died first, and rank 1 ended because of that.
            assert!(first_failure.is_awaited() && first_failure.tell(Rank(2)));
            for ended in fails {
                let who = AddrError::PeerLost { rank: Rank(2) };
                assert_eq!(ended.join().expect("no ULT panics"), Err(who));
            }
        }
        // SeqCst: the ranks are ULTs of one worker.
        stage.fetch_add(1, Ordering::SeqCst);
        while stage.load(Ordering::SeqCst) < rt.size() {
            Here.yield_now();
        }
        Ok(())
    });
}
