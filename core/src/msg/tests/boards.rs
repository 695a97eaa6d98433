//! One rank with boards: the receives that it puts on its board and takes off, and the claims
//! that succeed.

use super::script::{Did, OF_THREE, One, apart, at};
use super::*;
use crate::mem::LocalRank;
use crate::msg::locked_matching::{Board, BoardPost, ClaimError, PostState};
use crate::sync::{AtomicBool, Ordering};
use std::time::Duration;

/// PeerIndex 0, and the boards of all three.
pub(super) struct Up {
    pub(super) one: One,
    pub(super) boards: &'static [Board<'static>],
}

fn boards(of: &One) -> &'static [Board<'static>] {
    let shape = of.machine.board_shape();
    let board = |_| {
        let lines = Board::memory_size(shape).div_ceil(size_of::<LaneLine>());
        let memory = Vec::leak((0..lines).map(|_| LaneLine::new()).collect());
        // SAFETY: zero lines, as aligned as a board, that live for ever.
        unsafe { Board::init(NonNull::from(memory).cast(), shape) }.unwrap()
    };
    Vec::leak((0..3).map(board).collect())
}

pub(super) fn up() -> Up {
    let mut one = One::with(MatchingDesign::Locked, OF_THREE, 8);
    let boards = boards(&one);
    one.machine.put_up(boards);
    one.wire.board = Some(boards[0]);
    Up { one, boards }
}

fn label(tag: u32) -> Label {
    Label { context: 0, tag }
}

impl Up {
    /// Rank 1 claims a receive of this rank; returns which.
    fn claims(&self, number: u32, tag: u32, len: u64) -> Result<u32, ClaimError> {
        self.boards[0].try_claim(LocalRank(1), number, label(tag), len).map(|claim| claim.index)
    }

    /// Rank 1 has put up a receive for tag 7 of this rank.
    pub(super) fn peer_posts(&self, index: u32, room: u64) {
        let pattern = Pattern { context: 0, source: Some(LocalRank(0)), tag: Some(7) };
        let at = 0x5000 + u64::from(index);
        let post = BoardPost { number: index, pattern, at, room, in_reach: true };
        self.boards[1].lock(LocalRank(1));
        self.boards[1].post(index, &post);
        self.boards[1].unlock();
    }

    pub(super) fn direct(&self) -> u64 {
        self.one.machine.counts().messages(MessagePath::Direct).iter().sum()
    }
}

#[test]
fn only_the_locked_design_has_boards() {
    let mut one = One::with(MatchingDesign::Mirror, OF_THREE, 8);
    let boards = boards(&one);
    one.machine.put_up(boards);
    assert!(!one.machine.has_board());
    let mut two = up();
    assert!(two.one.machine.has_board());
    let shape = two.one.machine.board_shape();
    assert_eq!((shape.peers, shape.posts), (3, 8));
    // The short paths are for machines without a board.
    let pattern = Pattern { context: 0, source: Some(PeerIndex(1)), tag: None };
    let (machine, wire) = (&mut two.one.machine, &mut two.one.wire);
    assert_eq!(machine.post_short(wire, &pattern, apart(64, 8)), None);
    assert!(!machine.send_short(wire, PeerIndex(1), LABEL, at(0, 8)));
    assert!(!machine.is_quiet(wire, PeerIndex(1)));
    two.one.comes_inline(1, 7, 8);
    let (machine, wire) = (&mut two.one.machine, &mut two.one.wire);
    assert_eq!(machine.receive_next(wire, &pattern, at(64, 8)), None);
}

#[test]
#[should_panic(expected = "the machine needs one board for each rank")]
fn a_machine_with_boards_needs_one_of_each_rank() {
    let mut one = One::with(MatchingDesign::Locked, OF_THREE, 8);
    let boards = boards(&one);
    one.machine.put_up(&boards[..2]);
}

#[test]
#[should_panic(expected = "boards must be set while no request is under way")]
fn boards_are_put_up_before_any_request() {
    let mut one = One::with(MatchingDesign::Locked, OF_THREE, 8);
    let boards = boards(&one);
    one.post(Some(1), None, at(64, 8));
    one.machine.put_up(boards);
}

#[test]
fn a_receive_is_claimed_and_found_done() {
    for source in [Some(1), None] {
        for tag in [Some(7), None] {
            let mut up = up();
            let post = up.one.post(source, tag, at(64, 300));
            assert_eq!(up.boards[0].standing(post.index), PostState::Posted);
            assert_eq!(up.claims(0, 7, 301), Err(ClaimError::OutOfReach));
            assert_eq!(up.claims(0, 7, 250), Ok(post.index));
            assert!(!up.one.advance() && up.one.take(post).is_none());
            assert_eq!(up.one.machine.cancel(&mut up.one.wire, post), Cancel::TooLate);
            up.boards[0].finish(LocalRank(1), post.index, true);
            up.one.did();
            assert!(up.one.advance());
            let told = Returned { taken: 1, matched: 1, ..Returned::default() };
            assert_eq!(up.one.did(), [Did::Told(1, told)]);
            assert_eq!(up.one.take(post), Some(Ok(received(1, 7, 250, false))));
            assert!(!up.one.advance());
            // Its place can be used again.
            let next = up.one.post(source, tag, at(64, 300));
            assert_eq!((next.index, up.claims(1, 7, 300)), (post.index, Ok(next.index)));
            assert_eq!(up.one.machine.under_way(), 1);
        }
    }
}

#[test]
fn only_a_matching_buffer_in_reach_is_claimed() {
    let mut up = up();
    up.one.post(Some(2), None, at(64, 300));
    assert_eq!(up.claims(0, 7, 250), Err(ClaimError::NoPost));
    up.one.post(Some(1), Some(8), at(64, 300));
    assert_eq!(up.claims(0, 7, 250), Err(ClaimError::NoPost));
    up.one.post(Some(1), Some(7), apart(64, 300));
    assert_eq!(up.claims(0, 7, 250), Err(ClaimError::OutOfReach));
    let pattern = Pattern { context: 3, source: None, tag: Some(7) };
    up.one.machine.receive(&mut up.one.wire, pattern, at(64, 300)).unwrap();
    let context = Label { context: 3, tag: 7 };
    assert!(up.boards[0].try_claim(LocalRank(1), 0, context, 8).is_ok());
}

#[test]
fn a_failed_claim_ends_its_receive() {
    let mut up = up();
    let post = up.one.post(Some(1), Some(7), at(64, 300));
    assert_eq!(up.claims(0, 7, 250), Ok(post.index));
    up.boards[0].finish(LocalRank(1), post.index, false);
    assert!(
        up.one.machine.advance_from(&mut up.one.wire, PeerIndex(2)),
        "a look at any lane finds the failed claim"
    );
    assert_eq!(up.one.take(post), Some(Err(RequestError::Failed { peer: PeerIndex(1) })));
    let next = up.one.post(Some(1), Some(7), at(64, 300));
    assert_eq!(up.claims(1, 7, 250), Ok(next.index));
    up.boards[0].finish(LocalRank(1), next.index, true);
    assert!(up.one.rest(), "the failed claim is found before a rest");
    assert!(!up.one.rest());
    assert!(up.one.take(next).unwrap().is_ok());
}

/// A message by lane takes the first receive that is not claimed, and is counted.
#[test]
fn a_message_by_lane_passes_claimed_receives() {
    let mut up = up();
    let posts = [0; 3].map(|_| up.one.post(None, None, at(64, 300)));
    assert_eq!(up.claims(0, 7, 250), Ok(posts[0].index));
    up.one.comes_inline(1, 8, 8);
    assert_eq!(up.claims(2, 7, 250), Err(ClaimError::Undrained));
    up.one.look(1);
    assert_eq!(up.one.take(posts[1]), Some(Ok(received(1, 8, 8, false))));
    assert_eq!(up.claims(2, 7, 250), Ok(posts[2].index));
    assert!(up.boards[0].try_lock(LocalRank(0)), "the lock is free");
    up.boards[0].unlock();
    // The same for a message that is stored.
    up.one.comes_inline(1, 9, 8);
    up.one.look(1);
    assert_eq!(up.claims(4, 7, 250), Err(ClaimError::NoPost), "no receive is left");
    let pattern = Pattern { context: 0, source: Some(PeerIndex(1)), tag: Some(9) };
    assert!(up.one.machine.probe(&pattern).is_some());
    // Other packets are taken without the lock.
    up.one.comes(1, Packet::new(PacketKind::Fin));
    up.one.look(1);
    assert_eq!(up.one.machine.counts().dropped, 1);
    up.one.post(Some(1), Some(7), at(64, 300));
    assert!(up.claims(4, 7, 250).is_ok(), "the packet was not a message");
}

#[test]
fn a_cancelled_receive_is_on_no_board() {
    let mut up = up();
    let posts = [0; 2].map(|_| up.one.post(Some(1), Some(7), at(64, 300)));
    assert_eq!(up.one.machine.cancel(&mut up.one.wire, posts[0]), Cancel::Done);
    assert_eq!(up.one.take(posts[0]), Some(Err(RequestError::Cancelled)));
    assert_eq!(up.claims(0, 7, 250), Ok(posts[1].index));
    assert!(up.one.peer(1).posted.first().is_some());
    // Receives that were met are off the board, too.
    up.boards[0].finish(LocalRank(1), posts[1].index, true);
    up.one.advance();
    assert!(up.one.machine.boarded.is_empty() && up.one.peer(1).posted.is_empty());
    up.one.post(Some(1), None, at(64, 300));
    up.one.comes_inline(1, 7, 8);
    up.one.look(1);
    assert!(up.one.machine.boarded.is_empty());
    assert_eq!(up.claims(2, 7, 250), Err(ClaimError::NoPost));
}

/// Receives that a dead rank has claimed end, receives that it has finished have their
/// message, and receives that other ranks can meet stay on the board.
#[test]
fn a_death_ends_the_receives_that_the_rank_has_claimed() {
    let mut up = up();
    let done = up.one.post(None, Some(1), at(64, 300));
    let claimed = up.one.post(None, Some(2), at(64, 300));
    let exact = up.one.post(Some(1), Some(3), at(64, 300));
    let any = up.one.post(None, Some(4), at(64, 300));
    let other = up.one.post(Some(2), Some(5), at(64, 300));
    assert_eq!([up.claims(0, 1, 250), up.claims(1, 2, 250)], [Ok(done.index), Ok(claimed.index)]);
    up.boards[0].finish(LocalRank(1), done.index, true);
    assert!(up.boards[0].try_lock(LocalRank(1)), "rank 1 dies with the lock");
    up.one.lose(1);
    let died = Some(Err(RequestError::PeerLost { peer: PeerIndex(1) }));
    assert_eq!(up.one.take(done), Some(Ok(received(1, 1, 250, false))));
    assert_eq!((up.one.take(claimed), up.one.take(exact)), (died, died));
    assert_eq!((up.one.take(any), up.one.take(other)), (None, None));
    assert_eq!(up.one.machine.under_way(), 2);
    let claim = |number, tag| up.boards[0].try_claim(LocalRank(2), number, label(tag), 8);
    assert_eq!(claim(0, 4).map(|claim| claim.index), Ok(any.index));
    assert_eq!(claim(1, 5).map(|claim| claim.index), Ok(other.index));
    assert_eq!(claim(2, 3).err(), Some(ClaimError::NoPost));
    let pattern = Pattern { context: 0, source: Some(PeerIndex(1)), tag: None };
    let lost = Err(CallError::PeerLost { peer: PeerIndex(1) });
    assert_eq!(up.one.machine.receive(&mut up.one.wire, pattern, at(64, 8)), lost);
}

/// Calls that change the board wait for a sender that holds the lock.
#[test]
fn a_post_waits_for_the_lock() {
    let mut up = up();
    let first = up.one.post(Some(1), Some(7), at(64, 300));
    let calls: [fn(&mut One, RequestId); 3] = [
        |one, _| {
            one.post(Some(1), Some(8), at(64, 300));
        },
        |one, first| {
            one.machine.cancel(&mut one.wire, first);
        },
        |one, _| {
            one.comes(1, Packet { tag: 99, b: 1, a: 8, ..Packet::new(PacketKind::Eager) });
            one.look(1);
        },
    ];
    for (number, call) in calls.into_iter().enumerate() {
        let board = up.boards[0];
        assert!(board.try_lock(LocalRank(1)));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (machine, is_over) = (Apart(&mut up.one), &is_over);
            scope.spawn(move || {
                let machine = machine;
                call(machine.0, first);
                is_over.store(true, Ordering::Release);
            });
            std::thread::sleep(Duration::from_millis(5));
            let early = is_over.load(Ordering::Acquire);
            board.unlock();
            assert!(!early, "call {number} did not wait");
        });
    }
}

/// A machine that another thread has for a while.
struct Apart<'a>(&'a mut One);

// SAFETY: the tables are of no thread, and one thread at a time has them.
unsafe impl Send for Apart<'_> {}

/// Receives that a dead rank has claimed leave the lists once, in any order of their places in
/// the table.
#[test]
fn receives_claimed_by_a_dead_rank_are_in_no_list() {
    let mut up = up();
    // Places are used again in reverse order.
    let first = [0; 2].map(|_| up.one.post(None, Some(9), at(64, 300)));
    for post in first {
        assert_eq!(up.one.machine.cancel(&mut up.one.wire, post), Cancel::Done);
        assert!(up.one.take(post).is_some());
    }
    let posts = [0; 3].map(|_| up.one.post(None, None, at(64, 300)));
    assert!(posts[1].index < posts[0].index);
    assert!(up.claims(0, 7, 250).is_ok() && up.claims(1, 7, 250).is_ok());
    up.one.lose(1);
    assert_eq!(up.one.machine.any_posted.first(), Some(posts[2].index as usize));
    up.one.comes_inline(2, 7, 8);
    up.one.look(2);
    let died = Some(Err(RequestError::PeerLost { peer: PeerIndex(1) }));
    assert_eq!([up.one.take(posts[0]), up.one.take(posts[1])], [died, died]);
    assert_eq!(up.one.take(posts[2]), Some(Ok(received(2, 7, 8, false))));
    assert_eq!(up.one.machine.under_way(), 0);
    // They are off the board, and their places can be used again.
    assert!(up.one.machine.boarded.is_empty());
    let next = [0; 3].map(|_| up.one.post(Some(2), None, at(64, 300)));
    assert!(posts.iter().all(|post| next.iter().any(|next| next.index == post.index)));
    let claim = up.boards[0].try_claim(LocalRank(2), 1, label(7), 250);
    assert_eq!(claim.map(|claim| claim.index), Ok(next[0].index));
}

/// A state word with a rank that does not exist is treated as the last rank's.
#[test]
fn a_claim_by_a_missing_rank_counts_as_the_last_ranks() {
    let mut up = up();
    let post = up.one.post(None, None, at(64, 300));
    assert_eq!(up.claims(0, 7, 250), Ok(post.index));
    up.boards[0].finish(LocalRank(77), post.index, true);
    assert!(up.one.advance());
    assert_eq!(up.one.take(post), Some(Ok(received(2, 7, 250, false))));
}
