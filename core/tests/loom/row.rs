//! Rows of cells: a value is whole when its number is seen, no cell is written while it is
//! read, and no member misses its wake-up.

use crate::{Threads, check};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;
use tsumugi_core::coll::row::{CellRow, RowMemory, RowSeat, RowWait};
use tsumugi_core::signal::{ParkingLot, Until, Waiters};
use tsumugi_core::sync::AtomicU64;

/// Members that share memory, each with a parking lot and a bell of its own.
struct Node {
    members: Vec<(CellRow, ParkingLot, Waiters, Bell)>,
    how: Waits,
}

/// How a member waits.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    /// In its parking lot.
    Parked,
    /// As a collective that was begun: for its bell, after one more try.
    AtBell,
    /// It only tries again.
    Trying,
}

struct Bell(Mutex<u32>, Condvar);

impl RowMemory for Node {
    fn row(&self, member: u32) -> &CellRow {
        &self.members[member as usize].0
    }

    fn wake(&self, member: u32, at: &AtomicU64) {
        let (_, parking_lot, waiters, Bell(rung, bell)) = &self.members[member as usize];
        *rung.lock().unwrap() += 1;
        bell.notify_one();
        if parking_lot.announce(&raw const *at as u64) {
            waiters.drain(parking_lot);
        }
    }
}

impl Node {
    fn new(size: u32, how: Waits) -> Arc<Self> {
        let bell = || Bell(Mutex::new(0), Condvar::new());
        let member = |_| (CellRow::new(), ParkingLot::new(), Waiters::new(), bell());
        Arc::new(Self { members: (0..size).map(member).collect(), how })
    }

    /// Does what `attempt` does; sleeps as long as another member must do something first.
    fn until<T>(
        &self,
        seat: &RowSeat,
        me: u32,
        mut attempt: impl FnMut() -> Result<T, RowWait>,
    ) -> T {
        loop {
            let wait = match attempt() {
                Ok(done) => return done,
                Err(wait) => wait,
            };
            let (_, parking_lot, waiters, Bell(rung, bell)) = &self.members[me as usize];
            if self.how == Waits::Trying {
                thread::yield_now();
                continue;
            }
            let before = *rung.lock().unwrap();
            seat.watch(self, wait);
            if self.how == Waits::Parked {
                let (word, until) = seat.word(self, wait);
                waiters.wait(parking_lot, word, Until::AtLeast(until), &Threads).unwrap();
            } else if let Ok(done) = attempt() {
                seat.unwatch(self, wait);
                return done;
            } else {
                let mut rung = rung.lock().unwrap();
                while *rung == before {
                    rung = bell.wait(rung).unwrap();
                }
            }
            seat.unwatch(self, wait);
        }
    }

    /// Publishes a value in each collective, if `publishes`, and takes that of `from`.
    fn run(&self, me: u32, numbers: u64, publishes: bool, from: Option<u32>) {
        let size = self.members.len() as u32;
        let seat = RowSeat::new(me, size, 0, self);
        for number in 1..=numbers {
            assert_eq!(seat.take_numbers(1), number);
            let value = [number as u8; 8];
            let value = publishes.then_some(&value[..]);
            self.until(&seat, me, || seat.try_enter(self, number, value));
            if let Some(from) = from {
                let mut into = [0; 8];
                self.until(&seat, me, || seat.try_take(self, number, from, 0, &mut into));
                assert_eq!(into, [number as u8; 8], "{me} in {number}");
            }
            let has_seen_all = publishes && from.is_some() && size == 2;
            seat.leave(self, number, has_seen_all.then_some(1));
        }
    }

    /// Each member publishes a value, which the member 0 takes; then that one publishes another
    /// value, which the others take.
    fn run_rooted(&self, me: u32, times: u64) {
        let size = self.members.len() as u32;
        let seat = RowSeat::new(me, size, 0, self);
        for _ in 0..times {
            for is_result in [false, true] {
                let number = seat.take_numbers(1);
                let value = [number as u8; 8];
                let value = (!is_result || me == 0).then_some(&value[..]);
                self.until(&seat, me, || seat.try_enter(self, number, value));
                let from = match (is_result, me) {
                    (false, 0) => 1..size,
                    (true, 0) | (false, _) => 0..0,
                    (true, _) => 0..1,
                };
                for from in from {
                    let mut into = [0; 8];
                    self.until(&seat, me, || seat.try_take(self, number, from, 0, &mut into));
                    assert_eq!(into, [number as u8; 8], "{me} in {number}");
                }
                let has_seen_all = !is_result && me == 0;
                let all_left = if has_seen_all { Some(1) } else { is_result.then_some(2) };
                seat.leave(self, number, all_left);
            }
        }
    }
}

/// Two members that bring each other a value.
#[test]
fn two_members_exchange_values() {
    check(&["row_value_late", "row_sleeper_missed"], || {
        let node = Node::new(2, Waits::Parked);
        let other = {
            let node = node.clone();
            thread::spawn(move || node.run(1, 2, true, Some(0)))
        };
        node.run(0, 2, true, Some(1));
        other.join().unwrap();
    });
}

/// The same, of collectives that no thread waits for.
#[test]
fn two_collectives_that_were_begun_exchange_values() {
    check(&["row_look_too_early"], || {
        let node = Node::new(2, Waits::AtBell);
        let other = {
            let node = node.clone();
            thread::spawn(move || node.run(1, 1, true, Some(0)))
        };
        node.run(0, 1, true, Some(1));
        other.join().unwrap();
    });
}

/// A root is ahead of a reader by the cells of its row, and then waits.
#[test]
fn a_root_waits_for_its_reader() {
    check(&["row_no_room"], || {
        let node = Node::new(2, Waits::Trying);
        let other = {
            let node = node.clone();
            thread::spawn(move || node.run(1, 3, false, Some(0)))
        };
        node.run(0, 3, true, None);
        other.join().unwrap();
    });
}

/// A member combines the values of all, and the others take its result: each of them goes on
/// without a look at what the others have done.
#[test]
fn one_member_brings_the_result_to_all() {
    check(&["row_value_late"], || {
        let node = Node::new(2, Waits::Trying);
        let other = {
            let node = node.clone();
            thread::spawn(move || node.run_rooted(1, 2))
        };
        node.run_rooted(0, 2);
        other.join().unwrap();
    });
}
