use super::layout::{NONE, RANK_MASK};
use super::*;
use crate::mem::LocalRank;
use crate::msg::{Label, Pattern};
use crate::sync::Ordering;
extern crate std;
use core::ops::Deref;
use core::ptr::NonNull;
use std::boxed::Box;

const OWNER: LocalRank = LocalRank(0);
const A: u32 = 7;
const B: u32 = 8;

fn board() -> Board<'static> {
    #[repr(align(64))]
    struct Memory(#[allow(dead_code)] [u8; 64 * 40]);
    let shape = BoardShape { peers: 3, posts: 24 };
    let memory = Box::leak(Box::new(Memory([0; 64 * 40])));
    assert!(Board::memory_size(shape) <= size_of::<Memory>());
    // SAFETY: large and aligned enough, and never given back.
    unsafe { Board::init(NonNull::from(memory).cast(), shape) }.unwrap()
}

/// Holds the lock until it is dropped.
struct EarlyParcel<'b, 'm>(&'b Board<'m>);

impl<'m> Deref for EarlyParcel<'_, 'm> {
    type Target = Board<'m>;
    fn deref(&self) -> &Board<'m> {
        self.0
    }
}

impl Drop for EarlyParcel<'_, '_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

fn hold<'b, 'm>(board: &'b Board<'m>) -> EarlyParcel<'b, 'm> {
    board.lock(OWNER);
    EarlyParcel(board)
}

fn post(number: u32, source: Option<u32>, tag: Option<u32>) -> BoardPost {
    let pattern = Pattern { context: 3, source: source.map(LocalRank), tag };
    BoardPost { number, pattern, at: 0x1000 + u64::from(number), room: 100, in_reach: true }
}

const fn label(tag: u32) -> Label {
    Label { context: 3, tag }
}

fn claim(board: &Board<'_>, me: u32, number: u32, tag: u32) -> Result<u32, ClaimError> {
    board.try_claim(LocalRank(me), number, label(tag), 10).map(|claim| claim.index)
}

#[test]
fn a_message_is_claimed_copied_and_found() {
    let board = board();
    hold(&board).post(5, &post(0, Some(1), Some(A)));
    let claim = board.try_claim(LocalRank(1), 0, label(A), 10).unwrap();
    assert_eq!(claim, ClaimedPost { index: 5, at: 0x1000 });
    assert_eq!(board.standing(5), PostState::Claimed(LocalRank(1)));
    assert_eq!(hold(&board).withdraw(5, Some(LocalRank(1))), Err(PostState::Claimed(LocalRank(1))));
    board.finish(LocalRank(1), claim.index, true);
    let arrival = Arrival { source: LocalRank(1), tag: A, len: 10 };
    assert_eq!(board.standing(5), PostState::Done(arrival));
    hold(&board).remove(5, Some(LocalRank(1)));
    hold(&board).post(5, &post(1, Some(1), Some(A)));
    assert_eq!(self::claim(&board, 1, 1, A), Ok(5));
}

#[test]
fn posts_are_taken_in_their_order_over_both_lists() {
    for (first, second) in [(None, Some(1)), (Some(1), None), (Some(1), Some(1)), (None, None)] {
        let board = board();
        // The numbers wrap in between.
        hold(&board).post(4, &post(u32::MAX, first, Some(A)));
        hold(&board).post(2, &post(0, second, None));
        assert_eq!(claim(&board, 1, 0, A), Ok(4), "{first:?} {second:?}");
        assert_eq!(claim(&board, 1, 1, A), Ok(2), "{first:?} {second:?}");
        assert_eq!(claim(&board, 1, 2, A), Err(ClaimError::NoPost));
    }
}

#[test]
fn a_receive_that_does_not_match_is_passed_over() {
    let board = board();
    hold(&board).post(0, &post(0, Some(2), None));
    hold(&board).post(1, &post(1, Some(1), Some(B)));
    hold(&board).post(
        2,
        &BoardPost {
            pattern: Pattern { context: 4, ..post(2, None, None).pattern },
            ..post(2, None, None)
        },
    );
    assert_eq!(claim(&board, 1, 0, A), Err(ClaimError::NoPost));
    hold(&board).post(3, &post(3, None, None));
    assert_eq!(claim(&board, 1, 0, A), Ok(3));
}

#[test]
fn a_message_behind_others_in_the_lane_cannot_claim() {
    let board = board();
    hold(&board).post(0, &post(0, Some(1), None));
    assert_eq!(claim(&board, 1, 1, A), Err(ClaimError::Undrained));
    hold(&board).expect_next(LocalRank(1));
    assert_eq!(claim(&board, 1, 1, A), Ok(0));
}

#[test]
fn the_first_match_decides_even_if_it_is_out_of_reach() {
    let board = board();
    hold(&board).post(0, &BoardPost { in_reach: false, ..post(0, Some(1), None) });
    hold(&board).post(1, &post(1, Some(1), None));
    assert_eq!(claim(&board, 1, 0, A), Err(ClaimError::OutOfReach));
    assert_eq!(hold(&board).withdraw(0, Some(LocalRank(1))), Ok(()));
    assert_eq!(board.try_claim(LocalRank(1), 0, label(A), 101), Err(ClaimError::OutOfReach));
    assert_eq!(claim(&board, 1, 0, A), Ok(1));
}

#[test]
fn a_claim_looks_at_a_limited_number_of_receives() {
    let board = board();
    for index in 0..WALK_MAX as u32 {
        hold(&board).post(index, &post(index, Some(1), Some(B)));
    }
    hold(&board).post(WALK_MAX as u32, &post(WALK_MAX as u32, Some(1), Some(A)));
    assert_eq!(claim(&board, 1, 0, A), Err(ClaimError::NoPost));
    hold(&board).withdraw(0, Some(LocalRank(1))).unwrap();
    assert_eq!(claim(&board, 1, 0, A), Ok(WALK_MAX as u32));
}

#[test]
fn receives_are_withdrawn_in_any_order() {
    let board = board();
    for index in 0..4 {
        hold(&board).post(index, &post(index, Some(1), None));
    }
    for index in [1, 3, 0] {
        hold(&board).withdraw(index, Some(LocalRank(1))).unwrap();
    }
    hold(&board).post(1, &post(9, Some(1), None));
    assert_eq!(claim(&board, 1, 0, A), Ok(2));
    assert_eq!(claim(&board, 1, 1, A), Ok(1));
}

#[test]
fn a_claim_only_tries_the_lock_and_a_death_frees_it() {
    let board = board();
    hold(&board).post(0, &post(0, None, None));
    let held = hold(&board);
    assert_eq!(claim(&board, 1, 0, A), Err(ClaimError::Locked));
    drop(held);
    // Rank 2 dies while it holds the lock.
    board.lock(LocalRank(2));
    assert_eq!(claim(&board, 1, 0, A), Err(ClaimError::Locked));
    board.lost(LocalRank(2));
    drop(hold(&board));
    assert_eq!(claim(&board, 1, 0, A), Ok(0));
}

#[test]
fn a_board_is_attached_where_it_was_initialized() {
    #[repr(align(64))]
    struct Memory([u8; 64 * 8]);
    let mut memory = Memory([0; 64 * 8]);
    let place = NonNull::from(&mut memory.0).cast::<u8>();
    let shape = BoardShape { peers: 3, posts: 4 };
    assert_eq!(Board::memory_size(shape), size_of::<Memory>());
    // SAFETY: large and aligned enough; zero, then a board.
    unsafe {
        assert_eq!(Board::attach(place, shape).unwrap_err(), BoardError::Missing(shape));
        Board::init(place, shape).unwrap();
        let found = Board::attach(place, shape).unwrap();
        hold(&found).post(0, &post(0, None, None));
        assert_eq!(claim(&found, 1, 0, A), Ok(0));
        let other = BoardShape { posts: 3, ..shape };
        assert_eq!(Board::attach(place, other).unwrap_err(), BoardError::Missing(other));
        let none = BoardShape { posts: 0, ..shape };
        assert_eq!(Board::init(place, none).unwrap_err(), BoardError::Shape(none));
        let error = Board::init(place.add(8), shape).unwrap_err();
        assert_eq!(error, BoardError::Unaligned { address: place.as_ptr() as usize + 8 });
    }
}

#[test]
fn a_message_as_long_as_its_receive_fits() {
    let board = board();
    hold(&board).post(0, &post(0, Some(1), None));
    assert_eq!(board.try_claim(LocalRank(1), 0, label(A), 101), Err(ClaimError::OutOfReach));
    let claim = board.try_claim(LocalRank(1), 0, label(A), 100).unwrap();
    board.finish(LocalRank(1), claim.index, false);
    assert_eq!(board.standing(0), PostState::Failed(LocalRank(1)));
    let refused = hold(&board).withdraw(0, Some(LocalRank(1)));
    assert_eq!(
        refused,
        Err(PostState::Failed(LocalRank(1))),
        "the sender learns of the truncation"
    );
    hold(&board).remove(0, Some(LocalRank(1)));
    assert_eq!(board.standing(0), PostState::Posted, "the place is free");
}

/// A refused message changes nothing: its sender may try again.
#[test]
fn a_refused_claim_leaves_the_board_unchanged() {
    let board = board();
    assert_eq!(claim(&board, 3, 0, A), Err(ClaimError::NoPost), "there is no rank 3");
    assert_eq!(claim(&board, 1, 0, A), Err(ClaimError::NoPost));
    // Without any receive on the board the lock is not even tried.
    board.lock(LocalRank(2));
    assert_eq!(claim(&board, 1, 0, A), Err(ClaimError::NoPost));
    assert!(!board.try_lock(OWNER));
    board.unlock();
    hold(&board).post(0, &post(0, Some(2), None));
    assert_eq!(claim(&board, 1, 0, A), Err(ClaimError::NoPost), "the receive is for another rank");
    assert_eq!(claim(&board, 2, 1, A), Err(ClaimError::Undrained));
    assert_eq!(claim(&board, 2, 0, A), Ok(0));
    assert!(board.try_lock(OWNER), "every refused claim has released the lock");
    board.unlock();
}

#[test]
fn one_rank_holds_the_lock_until_it_releases_it_or_dies() {
    let board = board();
    for (holder, other) in [(0, 1), (1, 2), (2, 0)] {
        assert!(board.try_lock(LocalRank(holder)));
        assert!(
            !board.try_lock(LocalRank(other)) && !board.try_lock(LocalRank(holder)),
            "{holder} has it"
        );
        // The death of another rank does not free the holder's lock.
        board.lost(LocalRank(9));
        assert!(!board.try_lock(LocalRank(other)));
        board.unlock();
    }
    assert!(board.try_lock(LocalRank(1)));
    board.lost(LocalRank(2));
    assert!(!board.try_lock(OWNER), "rank 1 lives");
    board.lost(LocalRank(1));
    assert!(board.try_lock(OWNER) && !board.try_lock(OWNER));
    board.unlock();
    // A rank that does not exist cannot hold the lock.
    board.lock(LocalRank(7));
    assert!(board.try_lock(OWNER));
}

#[test]
fn a_post_for_any_tag_takes_tags_of_its_context_alone() {
    let board = board();
    let any = |context, index: u32| BoardPost {
        pattern: Pattern { context, source: Some(LocalRank(1)), tag: None },
        ..post(index, None, None)
    };
    hold(&board).post(0, &any(4, 0));
    assert_eq!(claim(&board, 1, 0, 0), Err(ClaimError::NoPost));
    hold(&board).post(1, &any(3, 1));
    assert_eq!(claim(&board, 1, 0, 0), Ok(1));
    assert_eq!(claim(&board, 1, 1, A), Err(ClaimError::NoPost), "the receive was claimed");
}

#[test]
fn empty_and_excessive_shapes_are_refused() {
    let memory = NonNull::<u64>::dangling();
    let place = NonNull::new((memory.as_ptr() as usize).next_multiple_of(64) as *mut u8).unwrap();
    for (peers, posts) in [(0, 4), (4, 0), (RANK_MASK + 1, 4), (4, NONE)] {
        let shape = BoardShape { peers, posts };
        // SAFETY: an invalid shape is refused before any memory is accessed.
        let refused = unsafe { Board::init(place, shape) };
        assert_eq!(refused.unwrap_err(), BoardError::Shape(shape));
    }
}

#[test]
fn the_owner_waits_for_a_sender_that_holds_the_lock() {
    use crate::sync::AtomicU32;
    use std::thread;
    let (board, step) = (board(), AtomicU32::new(0));
    board.lock(LocalRank(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            step.store(1, Ordering::SeqCst);
            board.lock(OWNER);
            assert_eq!(step.load(Ordering::SeqCst), 2, "the sender had the lock until then");
            board.unlock();
        });
        while step.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        // The thread waits for the lock by now, or tries it soon.
        (0..50).for_each(|_| thread::yield_now());
        step.store(2, Ordering::SeqCst);
        board.unlock();
    });
    assert!(board.try_lock(OWNER));
}

#[test]
fn a_new_board_is_empty_whatever_its_memory_held() {
    #[repr(align(64))]
    struct Memory([u8; 64 * 6]);
    let mut memory = Memory([0xa5; 64 * 6]);
    let place = NonNull::from(&mut memory.0).cast::<u8>();
    let shape = BoardShape { peers: 2, posts: 3 };
    assert_eq!(Board::memory_size(shape), size_of::<Memory>());
    // SAFETY: large and aligned enough, and used as nothing else.
    let board = unsafe { Board::init(place, shape) }.unwrap();
    for (rank, index) in [(0, 0), (1, 2)] {
        assert_eq!(claim(&board, rank, 0, A), Err(ClaimError::NoPost));
        hold(&board).post(index, &post(index, Some(rank), Some(A)));
        assert_eq!(claim(&board, rank, 0, A), Ok(index));
        board.lock(LocalRank(rank));
        assert!(!board.try_lock(OWNER), "rank {rank} lives");
        board.unlock();
    }
    assert_eq!(board.standing(1), PostState::Posted, "the place is free");
}
