//! Operations on another node that a ULT has begun before its scheduler ended.

use super::{run, run_as};
use crate::global::{Copy, GlobalAddr, GlobalPtr};
use crate::tests::ending::cut_off;
use crate::{Config, Rank};
use tsumugi_core::wait::Wait;
use tsumugi_ult::Here;

/// A ULT that polls for its operation is cut off: another ULT can poll, and the
/// operation keeps no tag.
#[test]
fn a_ult_that_is_cut_off_while_it_polls_lets_others_poll() {
    let config = Config::default().workers(1).spin(1 << 28);
    run_as(config, &[1, 2], None, |rt, weather| {
        let words = rt.share::<u64>(1)?;
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            let net = weather.nodes[0].net().expect("of two nodes");
            let (theirs, word) = (rt.clone(), words.at(Rank(1), 0));
            // The worker of this test polls for the other rank, too.
            cut_off(move || {
                let _ = theirs.fetch_add(word, 1);
            });
            assert!(!net.is_looked_for(), "the flag of the poller is still set");
            while rt.get(word)? == 0 {
                Here.yield_now();
            }
            (0..POLLS).for_each(|_| Here.yield_now());
            assert_eq!(net.in_flight(), 0, "the operation keeps its tag");
        }
        Ok(())
    });
}

#[test]
fn an_operation_of_a_ult_that_was_cut_off_keeps_no_place() {
    run(&[1, 2], None, |rt, weather| {
        let global = rt.global()?;
        let words = global.expose::<u64>(1)?;
        let all = rt.allgather(words.at(0).addr().to_bits())?;
        let at = |rank: usize| GlobalPtr::<u64>::new(GlobalAddr::from_bits(all[rank]));
        if rt.rank() == Rank(0) {
            let driver = weather.nodes[0].global().expect("the global memory is open");
            let (free, theirs) = (driver.places_free(), global.clone());
            let copy = Copy::new(at(1).addr(), at(0).addr(), 8);
            cut_off(move || {
                let _ = theirs.begin(copy).wait();
            });
            (0..POLLS).for_each(|_| Here.yield_now());
            assert_eq!(driver.places_free(), free);
        }
        rt.barrier()
    });
}

/// More polls than any operation takes over a network without faults.
const POLLS: u32 = 3_000;
