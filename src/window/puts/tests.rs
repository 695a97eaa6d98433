//! Giving a lock back waits for the puts under it, and changes nothing of other
//! holders. A network between nodes may reorder a put and the operation that gives
//! the lock back (hazard M8): here the puts are on such a network, and land when the
//! test completes them.

use super::*;
use crate::window::inner::WindowInner;
use crate::window::{Design, Window, WindowError, WindowOptions};
use crate::{Config, Error};
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_gas::lock::Want;
use tsumugi_ult::{spawn, yield_now};

const TARGET: Rank = Rank(1);
const WANTS: [Want; 3] = [Want::Exclusive(TARGET), Want::Shared(TARGET), Want::All];

impl Puts {
    fn begin(&self, target: Rank) {
        self.lock().entry(target).or_default().count += 1;
    }

    fn are_waited_for(&self, target: Rank) -> bool {
        self.lock().get(&target).is_some_and(|open| !open.waiting.is_empty())
    }
}

/// Runs `main` as rank 0 of two, with a window that treats its puts as far.
fn on_two_nodes(design: Design, main: impl Fn(Window<u64>) -> Result<(), Error> + Sync) {
    let ended = Config::default().run_ranks(2, |rt| {
        let mut window = WindowOptions::new().design(design).create::<u64>(rt, 1)?;
        if rt.rank() == Rank(0) {
            inner(&mut window).puts = Arc::new(Puts::new(true));
            main(window)?;
        }
        rt.barrier()
    });
    ended.unwrap();
}

fn inner(window: &mut Window<u64>) -> &mut WindowInner {
    Arc::get_mut(&mut window.inner).expect("the only handle of the window")
}

#[test]
fn a_lock_is_not_released_before_its_puts_have_landed() {
    for design in Design::ALL {
        on_two_nodes(design, |window| {
            for want in WANTS {
                for failed in [None, Some(AddrError::PeerLost { rank: TARGET })] {
                    released_late(&window, want, failed);
                }
            }
            Ok(())
        });
    }
}

fn released_late(window: &Window<u64>, want: Want, failed: Option<AddrError>) {
    let is_released = Arc::new(AtomicBool::new(false));
    let (ours, told) = (window.clone(), is_released.clone());
    let holder = spawn(move || {
        let hold = ours.hold(want).unwrap();
        ours.inner.puts.begin(TARGET);
        let released = hold.release();
        told.store(true, Ordering::SeqCst);
        released
    });
    while !window.inner.puts.are_waited_for(TARGET) {
        assert!(!is_released.load(Ordering::SeqCst), "{want:?} is given back before the put");
        yield_now();
    }
    window.inner.puts.landed(TARGET, failed.map_or(Ok(()), Err));
    assert_eq!(holder.join().unwrap(), failed.map_or(Ok(()), Err), "{want:?}");
    // Other ranks can take the lock, whatever the result of the put.
    window.hold(Want::Exclusive(TARGET)).unwrap().release().unwrap();
}

#[test]
fn a_lock_of_all_targets_that_fails_releases_those_it_holds() {
    on_two_nodes(Design::Each, |mut window| {
        // As if a third rank were gone.
        inner(&mut window).ranks = 3;
        let error = window.lock_all().map(drop).unwrap_err();
        let no_such = AddrError::NoSuchRank { rank: Rank(2), size: 2 };
        assert_eq!(error, WindowError::Addr(no_such));
        inner(&mut window).ranks = 2;
        for target in [Rank(0), Rank(1)] {
            window.exclusive(target).unwrap().release().unwrap();
        }
        Ok(())
    });
}

/// A caller that must wait does so in a queue node, of which there are a limited
/// number: all nodes come back.
#[test]
fn a_queue_node_is_returned_after_each_wait() {
    // For each want, more rounds than a rank has nodes.
    const ROUNDS: usize = 3 * 300;
    on_two_nodes(Design::Each, |window| {
        for round in 0..ROUNDS {
            let want = WANTS[round % 3];
            let hold = window.exclusive(TARGET).unwrap();
            let word = RemoteAddr { rank: TARGET, ..window.inner.lock.home };
            let count = || window.inner.words.load(word).unwrap();
            let alone = count();
            let ours = window.clone();
            let waiter = spawn(move || ours.hold(want).unwrap().release());
            while count() == alone && !matches!(want, Want::Exclusive(_)) {
                yield_now();
            }
            (0..4).for_each(|_| yield_now());
            hold.release().unwrap();
            waiter.join().unwrap().unwrap();
        }
        Ok(())
    });
}
