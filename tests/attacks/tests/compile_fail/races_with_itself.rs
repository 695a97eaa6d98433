//! Two threads that are the sleeper of one race write its waker at once.

use tsumugi_core::wait::{Race, Waker};

fn main() {
    let race = Race::new();
    let waker = || -> Waker { unimplemented!() };
    race.fall_asleep(waker());
    race.sleep_on(waker());
    let _ = race.settle(&mut || true, |_| {});
}
