//! Ranks whose three numbers differ: the rank in the job, the place on the node, and
//! the index at each peer.

use super::run_each;
use crate::{AddrError, CallError, Error, MessageError, Rank, Source};
use std::sync::Arc;
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Wait;
use tsumugi_ult::Here;

/// Rank 3 is the second rank of its node, and the last peer that rank 0 meets.
const NODES: [u64; 6] = [1, 2, 1, 2, 3, 3];

#[test]
fn calls_and_messages_name_the_rank_of_their_sender() {
    run_each(&NODES, None, |rt, _| {
        let (own, size) = (rt.rank(), rt.size());
        let words = rt.share::<u32>(size as usize)?;
        rt.handler(9, |message| message.from.0.to_le_bytes().to_vec());
        rt.barrier()?;
        // In another order than the ranks' own: indices are given in this one.
        let others = || [5, 1, 4, 0, 2, 3].map(Rank);
        for to in others() {
            rt.put(words.at(to, own.0 as usize), own.0 + 1)?;
            assert_eq!(rt.call(to, 9, &[])?, own.0.to_le_bytes());
            rt.comm().send(to, 7, &[own.0])?;
        }
        for from in others() {
            let (received, values) = rt.comm().recv_vec::<u32>(from, 7)?;
            assert_eq!((received.source, values), (from, vec![from.0]));
        }
        // From any source: the sender is in the bytes, too.
        for to in others() {
            rt.comm().send(to, 8, &[own.0])?;
        }
        let mut from = Vec::new();
        for _ in 0..size {
            let (received, values) = rt.comm().recv_vec::<u32>(Source::Any, 8)?;
            assert_eq!(values, [received.source.0]);
            from.push(received.source);
        }
        from.sort();
        assert!(from.into_iter().eq((0..size).map(Rank)));
        rt.barrier()?;
        for from in 0..size {
            assert_eq!(rt.get(words.at(own, from as usize))?, from + 1);
        }
        rt.barrier()
    });
}

#[test]
fn errors_name_the_rank_that_is_lost() {
    let ended = Arc::new(AtomicU32::new(0));
    run_each(&NODES, None, move |rt, weather| {
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            // Indices 3 and 4 here; rank 3 is a peer only after its loss.
            let (met, unmet) = (Rank(4), Rank(3));
            for to in [Rank(5), met] {
                rt.comm().send(to, 7, &[1])?;
            }
            let net = weather.nodes[0].net().expect("of several nodes");
            for lost in [met, unmet] {
                net.give_up(lost);
                // The messages hear of the loss at a later poll.
                let error = loop {
                    match rt.comm().send(lost, 7, &[1]) {
                        Ok(()) => Here.yield_now(),
                        Err(error) => break error,
                    }
                };
                assert_eq!(error, MessageError::PeerLost { rank: lost });
                let received = rt.comm().recv_vec::<u32>(lost, 7);
                assert_eq!(received.map(drop), Err(MessageError::PeerLost { rank: lost }));
                let called = rt.call(lost, 9, &[]).map(drop);
                let error = CallError::PeerLost { rank: lost };
                assert_eq!(called.unwrap_err().to_string(), error.to_string());
            }
            let none = Rank(6);
            let sent = rt.comm().send(none, 7, &[1]);
            assert_eq!(sent, Err(MessageError::NoSuchRank { rank: none, size: 6 }));
            let called = rt.call(none, 9, &[]).map(drop);
            let error = Error::Addr(AddrError::NoSuchRank { rank: none, size: 6 });
            assert_eq!(called.unwrap_err().to_string(), error.to_string());
        }
        // SeqCst: the ranks are ULTs of one worker.
        ended.fetch_add(1, Ordering::SeqCst);
        while ended.load(Ordering::SeqCst) < rt.size() {
            Here.yield_now();
        }
        Ok(())
    });
}
