//! Two threads that both act as the sleeper of one race would write its waker at once.

use tsumugi_core::wait::{Race, Waker};

fn main() {
    let race = Race::new();
    let waker = || -> Waker { unimplemented!() };
    race.fall_asleep(waker());
    race.sleep_on(waker());
    let _ = race.settle(&mut || true, |_| {});
}
