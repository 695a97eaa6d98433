//! The first operation after the communication thread has gone to sleep, beside the
//! time in which the system wakes a thread from a futex.
//!
//! ```text
//!  first_after_sleep   nap · [submit · wait]
//!  futex_wake          nap · [store, wake · spin until it has answered]
//! ```

use super::bed::TestBed;
use super::bench::RmaBench;
use crate::bench::catalogue::Group;
use crate::bench::measured::budget;
use crate::bench::sample::Budget;
use crate::failure::Failure;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tsumugi::affinity;
use tsumugi::ult::SystemFutex;
use tsumugi_core::engine::Idle;
use tsumugi_core::mem::Width;
use tsumugi_core::op::Op;
use tsumugi_core::sync::{AtomicU32, Ordering, spin_loop};
use tsumugi_core::wait::Futex;

pub const GROUP: Group = Group { name: "wake", rows: &["first_after_sleep", "futex_wake"] };

pub fn measure(bench: &RmaBench<'_>, bed: &mut TestBed) -> Result<(), Failure> {
    let wanted: Vec<_> = GROUP.rows.iter().filter(|name| bench.wants(name)).collect();
    let Some(first) = wanted.first() else { return Ok(()) };
    bench.rows.progress.stage(first, 1);
    let rounds = match budget(bench.measure) {
        Budget::Time(time) => (time.as_micros() / NAP.as_micros() / 2).max(10) as u64,
        Budget::Operations(operations) => operations.min(ROUNDS_MAX),
    };
    let timed = bench.between_trips(|| {
        let serving = bed.offload_idling(bench.cpus[1], Idle { spins: 0, yields: 0 });
        let sleeper = WordSleeper::start(bench.cpus[1]);
        let mut samples = [Vec::new(), Vec::new()];
        for place in bench.places.iter().cycle().take(rounds as usize) {
            thread::sleep(NAP);
            let begin = Instant::now();
            let op = Op::get_word(place.addr(), Width::W8);
            let ticket = serving.engine().post(0, op, ()).expect("nothing else is under way");
            while !ticket.is_done() {
                spin_loop();
            }
            samples[0].push(begin.elapsed().as_nanos() as f64);
            drop(ticket);
            thread::sleep(NAP);
            samples[1].push(sleeper.wake().as_nanos() as f64);
        }
        Ok(samples)
    })?;
    let params = format!("nap_us={}", NAP.as_micros());
    let rows = GROUP.rows.iter().zip(timed.value.clone()).filter(|(name, _)| bench.wants(name));
    let rows = rows.filter_map(|(name, mut samples)| timed.row(name, &params, &mut samples));
    bench.rows.write(rows)
}

/// A thread that sleeps on a word, and counts its wakes.
struct WordSleeper {
    words: Arc<[AtomicU32; 2]>,
    thread: Option<thread::JoinHandle<()>>,
}

impl WordSleeper {
    fn start(cpu: usize) -> Self {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let thread = thread::spawn({
            let words = words.clone();
            move || {
                // If the machine does not allow pinning, the measured trips
                // show that.
                let _ = affinity::pin(cpu);
                let [asked, answered] = &*words;
                loop {
                    let seen = asked.load(Ordering::Acquire);
                    answered.store(seen, Ordering::Release);
                    if seen == STOP {
                        return;
                    }
                    SystemFutex.wait(asked, seen, None);
                }
            }
        });
        Self { words, thread: Some(thread) }
    }

    fn wake(&self) -> Duration {
        let [asked, answered] = &*self.words;
        let next = asked.load(Ordering::Relaxed) + 1;
        let begin = Instant::now();
        asked.store(next, Ordering::Release);
        SystemFutex.wake(asked, 1);
        while answered.load(Ordering::Acquire) != next {
            spin_loop();
        }
        begin.elapsed()
    }
}

impl Drop for WordSleeper {
    fn drop(&mut self) {
        self.words[0].store(STOP, Ordering::Release);
        SystemFutex.wake(&self.words[0], 1);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

/// Long enough for an idle thread to fall asleep.
const NAP: Duration = Duration::from_micros(200);
const ROUNDS_MAX: u64 = 2000;
const STOP: u32 = u32::MAX;
