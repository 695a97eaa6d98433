//! What a sender claims on the board of another rank.

use super::boards::{Up, up};
use super::script::{Did, at};
use super::*;
use crate::mem::LocalRank;
use crate::msg::locked_matching::{Arrival, BoardPost, PostState};
use crate::msg::tables::RequestState;

#[test]
fn a_message_claims_a_receive_on_its_receivers_board() {
    for (len, is_job) in [(201, false), (8_192, false), (8_193, true)] {
        for fails in [false, true] {
            let mut up = up();
            up.peer_posts(3, 10_000);
            let begun = up.one.send(1, 7, at(0x100, len));
            let (peer, streaming, by_kernel) = (PeerIndex(1), false, false);
            let copy = Copy { peer, from: 0x100, to: 0x5003, len, streaming, by_kernel };
            assert_eq!((up.direct(), up.one.peer(1).sent), (1, 1));
            let there = PostState::Done(Arrival { source: LocalRank(0), tag: 7, len });
            let Begun::Pending(sent) = begun else {
                assert!(!is_job);
                assert_eq!(up.one.did(), [Did::Copied(copy), Did::Rang(1)]);
                assert_eq!(up.boards[1].standing(3), there);
                continue;
            };
            assert!(is_job && up.one.did().is_empty());
            assert_eq!(up.boards[1].standing(3), PostState::Claimed(LocalRank(0)));
            assert_eq!(up.one.entry(sent).state, RequestState::Claiming);
            let job = up.one.machine.poll_job().unwrap();
            assert_eq!((job.copy, job.split), (copy, None));
            let failed = RequestError::Failed { peer: PeerIndex(1) };
            up.one.done(job, if fails { Err(failed) } else { Ok(()) });
            assert_eq!(up.one.did(), [Did::Rang(1)]);
            let failed_there = PostState::Failed(LocalRank(0));
            assert_eq!(up.boards[1].standing(3), if fails { failed_there } else { there });
            assert_eq!(up.one.take(sent).unwrap().err(), fails.then_some(failed));
        }
    }
}

#[test]
fn a_message_goes_by_lane_where_it_cannot_claim() {
    let by_lane = |prepare: fn(&mut Up), bytes: MessageBytes, kind: PacketKind| {
        let mut up = up();
        up.peer_posts(3, 200_000);
        prepare(&mut up);
        up.one.send(1, 7, bytes);
        assert_eq!(up.boards[1].standing(3), PostState::Posted);
        assert_eq!(up.one.pushed(), [kind]);
        assert_eq!((up.one.peer(1).sent, up.direct()), (1, 0));
    };
    by_lane(|_| {}, at(0x100, 200), PacketKind::Inline);
    by_lane(|up| up.one.thresholds(1).direct_from = 0, at(0x100, 200), PacketKind::Inline);
    by_lane(|_| {}, at(0x100, 16_384), PacketKind::Rts);
    by_lane(|up| up.one.machine.set_remote(PeerIndex(1)), at(0x100, 300), PacketKind::Eager);
    by_lane(|up| assert!(up.boards[1].try_lock(LocalRank(2))), at(0x100, 300), PacketKind::Eager);
    by_lane(|up| up.boards[1].expect_next(LocalRank(0)), at(0x100, 300), PacketKind::Eager);
    // A very long message is copied past the cache.
    let mut up = up();
    up.peer_posts(3, 200_000);
    up.one.send(1, 7, at(0x100, 131_072));
    assert!(up.one.machine.poll_job().unwrap().copy.streaming);
    // The next message has the next number, whichever path it takes.
    up.peer_posts(4, 300);
    up.one.send(1, 7, at(0x100, 250));
    up.one.send(1, 7, at(0x100, 100));
    assert_eq!((up.direct(), up.one.peer(1).sent), (2, 3));
    up.peer_posts(5, 300);
    up.one.send(1, 7, at(0x100, 250));
    assert_eq!(up.direct(), 2, "the previous message is in the lane");
    up.boards[1].expect_next(LocalRank(0));
    up.boards[1].expect_next(LocalRank(0));
    up.one.send(1, 7, at(0x100, 250));
    assert_eq!(up.direct(), 3);
}

#[test]
fn a_claim_at_a_dead_rank_ends_with_the_copy() {
    let mut up = up();
    up.peer_posts(3, 10_000);
    let sent = up.one.send(1, 7, at(0x100, 9_000)).pending().unwrap();
    let job = up.one.machine.poll_job().unwrap();
    up.one.lose(1);
    assert_eq!(up.one.take(sent), None, "the buffer is in use");
    up.one.did();
    up.one.done(job, Ok(()));
    assert_eq!(up.one.did(), [], "a dead rank gets no doorbell");
    assert_eq!(up.one.take(sent), Some(Err(RequestError::PeerLost { peer: PeerIndex(1) })));
}

/// No message passes another: the board may change between two looks.
#[test]
fn messages_that_wait_keep_their_order() {
    let mut up = up();
    (0..4).for_each(|_| {
        up.one.send(1, 8, at(0x100, 8));
    });
    let waiting = [8, 7].map(|tag| up.one.send(1, tag, at(0x100, 300)).pending().unwrap());
    (0..4).for_each(|_| up.boards[1].expect_next(LocalRank(0)));
    up.peer_posts(3, 300);
    up.one.did();
    assert!(!up.one.advance());
    assert_eq!(up.boards[1].standing(3), PostState::Posted);
    // The first message finds its own receive.
    let pattern = Pattern { context: 0, source: Some(LocalRank(0)), tag: Some(8) };
    let post = BoardPost { number: 9, pattern, at: 0x6000, room: 300, in_reach: true };
    up.boards[1].lock(LocalRank(1));
    up.boards[1].post(4, &post);
    up.boards[1].unlock();
    assert!(up.one.advance());
    assert_eq!(waiting.map(|request| up.one.machine.has_ended(request)), [true, true]);
    assert_eq!((up.direct(), up.one.machine.wants_poll()), (2, false));
    assert!(up.one.peer(1).waiting.is_empty());
}
