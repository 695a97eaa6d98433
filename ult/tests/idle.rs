//! An idle scheduler uses no processor time. The test is alone in its process, whose processor time
//! it reads.

mod common;

use common::scheduler;
use std::mem::MaybeUninit;
use std::time::Duration;
use tsumugi_core::stats::Counter;
use tsumugi_ult::park;

#[test]
fn idle_workers_use_no_processor() {
    let mut scheduler = scheduler(2, 8);
    scheduler.start().unwrap();
    let spawner = scheduler.spawner();
    spawner.spawn(|| ()).join().unwrap();
    let _asleep = spawner.spawn(park);
    // A worker that is kept from its core falls asleep in a later second.
    let mut seconds = 0;
    loop {
        let (before, sleeps) = (processor_time(), spawner.counts()[Counter::Sleeps]);
        std::thread::sleep(Duration::from_secs(1));
        let used = processor_time() - before;
        // Workers that never slept would have used two seconds, and workers that are woken now and
        // then would have slept again.
        let woken = spawner.counts()[Counter::Sleeps] - sleeps;
        if used < Duration::from_millis(50) && woken == 0 {
            break;
        }
        seconds += 1;
        assert!(seconds < 20, "{used:?} of processor in 1 s of nothing, {woken} wake-ups");
    }
    assert_eq!(spawner.spawn(|| 1).join().unwrap(), 1, "the first work wakes one");
}

fn processor_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the call fills the structure.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000))
        .sum()
}
