//! A rank that another rank has given up although it is alive: its packets are
//! refused.

use super::{ROUNDS, run_each};
use crate::{AddrError, Rank};
use std::sync::{Arc, Mutex};
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Wait;
use tsumugi_ult::Here;

/// With packets only: each of them passes the fence of the link.
#[test]
fn packets_of_a_rank_that_was_given_up_are_refused() {
    let (stage, handled) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(0)));
    run_each(&[1, 2], Some(3 * ROUNDS), move |rt, weather| {
        let net = weather.nodes[rt.rank().0 as usize].net().expect("of two nodes");
        let words = rt.share::<u64>(2)?;
        let (word, sum) = (words.at(Rank(0), 0), words.at(Rank(0), 1));
        let count = handled.clone();
        rt.handler(5, move |_| {
            *count.lock().unwrap() += 1;
            Vec::new()
        });
        rt.barrier()?;
        // SeqCst: the ranks are ULTs of one worker.
        let until = |wanted| {
            while stage.load(Ordering::SeqCst) < wanted {
                Here.yield_now();
            }
        };
        if rt.rank() == Rank(0) {
            net.give_up(Rank(1));
            let before = net.strays();
            stage.store(1, Ordering::SeqCst);
            until(2);
            assert_eq!((rt.get(word)?, rt.get(sum)?), (0, 0));
            assert_eq!(*handled.lock().unwrap(), 0, "a request was handled");
            assert!(net.strays() > before, "the other rank has sent nothing");
            return Ok(());
        }
        until(1);
        // This rank has no notice that it was given up.
        let put = rt.spawn(move |rt| rt.put(word, 7));
        let add = rt.spawn(move |rt| rt.fetch_add(sum, 7).map(drop));
        let call = rt.spawn(|rt| rt.call(Rank(0), 5, &[1]).map(drop));
        (0..POLLS).for_each(|_| Here.yield_now());
        net.give_up(Rank(0));
        let lost = AddrError::PeerLost { rank: Rank(0) };
        for ended in [put.join(), add.join()] {
            assert_eq!(ended.expect("no ULT panics"), Err(lost));
        }
        assert!(call.join().expect("no ULT panics").is_err());
        stage.store(2, Ordering::SeqCst);
        Ok(())
    });
}

/// More polls than any packet is delayed.
const POLLS: u32 = 3_000;
