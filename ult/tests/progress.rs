//! Work by polls, and bells that other threads ring.

mod common;

use common::config;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tsumugi_core::wait::{DoorbellSet, Reason, Wait, Waker};
use tsumugi_ult::{Here, Progress, Scheduler, SystemFutex, spawn, yield_now};

/// A device: an event comes, and a poll finds it and wakes the waiter.
#[derive(Default)]
struct Device {
    event: AtomicBool,
    waiting: Mutex<Option<Waker>>,
    polls: AtomicUsize,
    armed: AtomicUsize,
}

impl Device {
    /// Whether a ULT waits for an event that has not been sent yet.
    fn is_waited_for(&self) -> bool {
        let waiting = self.waiting.lock().unwrap();
        waiting.is_some() && !self.event.load(Ordering::SeqCst)
    }
}

impl Progress for Device {
    fn poll(&self) -> bool {
        self.polls.fetch_add(1, Ordering::Relaxed);
        let waiting = {
            let mut waiting = self.waiting.lock().unwrap();
            // One event wakes one waiter, whichever worker polls.
            if waiting.is_none() || !self.event.swap(false, Ordering::SeqCst) {
                return false;
            }
            waiting.take()
        };
        waiting.map(|waker| waker.wake()).is_some()
    }

    fn has_work(&self) -> bool {
        self.event.load(Ordering::SeqCst) && self.waiting.lock().unwrap().is_some()
    }

    fn on_sleep(&self, _worker: usize) {
        self.armed.fetch_add(1, Ordering::Relaxed);
    }
}

fn wait_for_event(device: &Device) {
    let mut publish = |waker| {
        *device.waiting.lock().unwrap() = Some(waker);
        true
    };
    // SAFETY: a poll takes the waker out once.
    unsafe { Here.sleep(Reason::new("device"), &mut publish) };
}

#[test]
fn a_peer_rings_and_a_worker_polls() {
    let bells: &'static DoorbellSet = Box::leak(Box::new(DoorbellSet::new()));
    let device = Arc::new(Device::default());
    for workers in [1, 2] {
        let mut config = config(workers, 8);
        config.bells = Some(bells);
        config.progress = device.clone();
        let peer = {
            let device = device.clone();
            let asleep = device.armed.load(Ordering::Relaxed);
            std::thread::spawn(move || {
                for event in 0..50 {
                    while !device.is_waited_for() {
                        std::thread::yield_now();
                    }
                    // Some events come while a worker searches, some when one is about to sleep or
                    // sleeps.
                    std::thread::sleep(Duration::from_micros(200));
                    while event == 0 && device.armed.load(Ordering::Relaxed) == asleep {
                        std::thread::yield_now();
                    }
                    device.event.store(true, Ordering::SeqCst);
                    bells.ring(&SystemFutex);
                }
            })
        };
        Scheduler::new(config).unwrap().run(|| {
            let device = device.clone();
            spawn(move || (0..50).for_each(|_| wait_for_event(&device))).join().unwrap();
        });
        peer.join().unwrap();
    }
}

#[test]
fn busy_workers_poll_now_and_then() {
    let device = Arc::new(Device::default());
    let mut config = config(1, 8);
    config.progress = device.clone();
    Scheduler::new(config).unwrap().run(|| {
        let waiter = {
            let device = device.clone();
            spawn(move || wait_for_event(&device))
        };
        yield_now();
        device.event.store(true, Ordering::SeqCst);
        // This ULT keeps the worker from becoming idle.
        while !waiter.is_finished() {
            yield_now();
        }
    });
}
