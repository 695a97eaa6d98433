//! The progress thread of the network (the poller): it polls when no worker does,
//! because all ULTs compute or sleep, or are in a system call.
//!
//! ```text
//!  others poll ──► nap of 200 us ──► do they still? then twice as long,
//!      ▲               │                800 us at the most
//!      │               a worker that goes to sleep ends it
//!      │ yes            │ no
//!      └────────────────┴─► poll until nothing comes ─► asleep on the device's
//!                             ▲                         descriptor, 100 ms at
//!                             └──── linger ◄── called ──the most
//! ```
//!
//! After an event of the device the poller lingers: it polls on for 100 us, because
//! the next packet usually comes soon, and waking a sleeping thread takes longer
//! than the network needs to carry a packet. Puts and gets of other ranks make no
//! event, so if the device has another event soon after that, the poller lingers
//! twice as long, up to 4 ms. It lingers only while a worker sleeps, so that a core
//! is free for it, and only where ranks spin at all.
//!
//! A device without a descriptor is looked at again after a [`Pause`]. The poller
//! also runs the heartbeats and the [`Pulses`].

use super::layer::NetLayer;
use super::pause::{Pause, PauseStep};
use super::pulse::Pulses;
use super::silence::LOOK;
use crate::error::Error;
use crate::{affinity, panic};
use std::io::{self, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tsumugi_core::sync::{AtomicU32, Ordering};
use tsumugi_core::wait::Futex;
use tsumugi_ult::{StartError, SystemFutex};

/// The progress thread; it ends when this is dropped.
pub(crate) struct Poller {
    net: Arc<NetLayer>,
    /// The thread ends when this pipe is closed.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    pub(crate) fn start(net: &Arc<NetLayer>) -> Result<Self, Error> {
        let failed = |error| StartError::Thread(0, error);
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let own = net.clone();
        let thread = tsumugi_pvas::thread::start("tsumugi-net", move || {
            watch(&own, stopped.as_raw_fd(), &stopped)
        });
        Ok(Self { net: net.clone(), stop: Some(stop), thread: Some(thread.map_err(failed)?) })
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.stop = None;
        self.net.wake_watch();
        if let Some(thread) = self.thread.take() {
            // The thread has contained all panics.
            let _ = thread.join();
        }
        // Other nodes must get the report of deaths here before the connections of
        // this rank close, because this rank may be ending because of such a death.
        let until = Instant::now() + FAREWELL;
        while self.net.shared().heartbeats.is_due() && Instant::now() < until {
            self.net.turn();
            self.net.heartbeat();
        }
    }
}

impl NetLayer {
    /// Notes that a worker goes to sleep.
    pub(crate) fn worker_sleeps(&self) {
        // Relaxed: the count only decides whether the poller lingers.
        self.shared().asleep.fetch_add(1, Ordering::Relaxed);
        self.wake_watch();
    }

    /// Notes that a worker is awake again.
    pub(crate) fn worker_wakes(&self) {
        self.shared().asleep.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sends a heartbeat if it is time, and gives up silent nodes.
    fn heartbeat(&self) {
        let shared = self.shared();
        for lost in shared.heartbeats.round(&shared.member, |to, word| shared.tell(to, word)) {
            shared.say_silent(&lost);
        }
    }

    /// Ends neighbours that were stopped for too long.
    fn end_held_off(&self, pulses: &mut Pulses) {
        let shared = self.shared();
        for rank in pulses.round() {
            if shared.member.end_neighbour(rank) {
                shared.say_silent(&[rank]);
            }
        }
    }

    /// Wakes the poller from its nap, so that it looks at the device at once.
    fn wake_watch(&self) {
        let word = self.nap_word();
        if word.load(Ordering::SeqCst) & 1 != 0 {
            word.fetch_add(2, Ordering::SeqCst);
            SystemFutex.wake(word, 1);
        }
    }

    fn nap_word(&self) -> &AtomicU32 {
        &self.shared().nap
    }

    /// Runs a turn of the poller and contains its panics, because no other thread
    /// would go on for it. If the handler of an arrival panics, the arrival has been
    /// taken from the device already, so the next turn goes on after it.
    fn watch_turn(&self) -> bool {
        panic::contain("the network's thread", || self.turn()).unwrap_or(true)
    }
}

fn watch(net: &NetLayer, stopped: RawFd, _open: &io::PipeReader) {
    affinity::sleep_exactly();
    let shared = net.shared();
    let links = 0..shared.device.endpoints();
    let events: Option<Vec<RawFd>> = links.clone().map(|link| shared.device.event(link)).collect();
    let has_events = events.is_some();
    let mut fds = descriptors(stopped, events.unwrap_or_default());
    let (mut polls, mut pause) = (shared.polls.load(Ordering::Relaxed), Pause::new());
    let (mut patience, mut yields) = (LINGER, 0);
    let (mut rest, mut napped) = (NAP, Duration::ZERO);
    let mut was_ended = false;
    let mut noticed = Instant::now();
    let mut pulses = Pulses::new(&shared.member, shared.heartbeats.limit());
    loop {
        let now = shared.polls.load(Ordering::Relaxed);
        // The worker that has ended the nap polls no more, but it did until then.
        let was_called = std::mem::take(&mut was_ended);
        if std::mem::replace(&mut polls, now) != now && !was_called {
            was_ended = nap(net, rest);
            napped += rest;
            rest = if was_ended { NAP } else { (rest * 2).min(NAP_MAX) };
            pause.restart();
            if !was_ended && napped < NAPS_MAX {
                continue;
            }
        } else {
            rest = NAP;
            // The heartbeats wait meanwhile.
            let mut look = || {
                if has_events {
                    return net.watch_turn();
                }
                let start = Instant::now();
                let came = net.watch_turn();
                // Relaxed: it only decides whether the poller lingers.
                let may_linger = shared.rounds > 0 && shared.asleep.load(Ordering::Relaxed) > 0;
                if came {
                    pause.restart();
                }
                came || pause.after(start.elapsed(), may_linger) == PauseStep::Look
            };
            let turns = (0..TURNS).take_while(|_| look()).count();
            let limit = shared.heartbeats.until_next();
            match has_events {
                _ if turns == TURNS => {}
                true if links.clone().all(|link| shared.arm(link)) => {
                    // For packets that came between the last look and the arming.
                    yields = 0;
                    if !net.watch_turn() && !net.has_unsent() {
                        let start = Instant::now();
                        if sleep_on(&mut fds, limit) && shared.spins {
                            let soon = start.elapsed() < patience;
                            patience = if soon { patience * 2 } else { LINGER };
                            patience = patience.min(LINGER_MAX);
                            linger(net, patience);
                        }
                    }
                }
                // Another thread has the device, and may want this core.
                true if yields < YIELDS => {
                    thread::yield_now();
                    yields = if turns > 0 { 0 } else { yields + 1 };
                }
                true => _ = nap(net, NAP),
                false => _ = sleep_on(&mut fds, pause.take().min(limit)),
            }
        }
        napped = Duration::ZERO;
        if noticed.elapsed() >= NOTICES {
            noticed = Instant::now();
            shared.take_notices();
        }
        net.heartbeat();
        net.end_held_off(&mut pulses);
        if has_stopped(stopped) {
            return;
        }
    }
}

/// Leaves the device to the workers that poll, for a while. Returns whether a worker
/// has ended the nap.
fn nap(net: &NetLayer, limit: Duration) -> bool {
    let word = net.nap_word();
    // The lowest bit: the poller naps.
    let before = word.fetch_or(1, Ordering::SeqCst) | 1;
    SystemFutex.wait(word, before, Some(limit));
    word.fetch_and(!1, Ordering::SeqCst) != before
}

/// Polls for a while, or until workers poll, or a heartbeat is due.
fn linger(net: &NetLayer, patience: Duration) {
    let shared = net.shared();
    let polls = shared.polls.load(Ordering::Relaxed);
    let mut called = Instant::now();
    let end = called + shared.heartbeats.until_next();
    while shared.asleep.load(Ordering::Relaxed) > 0 && shared.polls.load(Ordering::Relaxed) == polls
    {
        // Reading the clock takes half as long as a look.
        let came = (0..LOOKS).filter(|_| net.watch_turn()).count() > 0;
        let now = Instant::now();
        if came {
            called = now;
        }
        if now - called >= patience || now >= end {
            return;
        }
    }
}

/// The descriptors for which the poller sleeps: the one that stops it, and the events of
/// the links.
fn descriptors(stopped: RawFd, events: Vec<RawFd>) -> Vec<libc::pollfd> {
    let one = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    std::iter::once(stopped).chain(events).map(one).collect()
}

/// Sleeps until one of the poller's descriptors is ready, or `limit` is over. Returns
/// whether an event has come.
fn sleep_on(fds: &mut [libc::pollfd], limit: Duration) -> bool {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    };
    // After an error or a signal, the kernel has not written the results.
    fds.iter_mut().for_each(|fd| fd.revents = 0);
    // SAFETY: the array has that many descriptors; the signal mask may be null.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &limit, std::ptr::null()) };
    fds[1..].iter().any(|fd| fd.revents != 0)
}

fn has_stopped(stopped: RawFd) -> bool {
    let mut fd = libc::pollfd { fd: stopped, events: libc::POLLIN, revents: 0 };
    // SAFETY: the array is one descriptor, a local.
    unsafe { libc::poll(&mut fd, 1, 0) > 0 }
}

/// How often the poller looks for notices that come beside the packets.
const NOTICES: Duration = Duration::from_millis(LOOK as u64);
/// How long the last heartbeats of this rank may wait for room.
const FAREWELL: Duration = Duration::from_millis(100);
const TURNS: usize = 64;
/// Yields in a row after looks that found nothing.
const YIELDS: u32 = 256;
const NAP: Duration = Duration::from_micros(200);
/// A worker that stops polling to compute is noticed after this long at most.
const NAP_MAX: Duration = Duration::from_micros(800);
/// Naps in a row after which the heartbeats are looked after.
const NAPS_MAX: Duration = Duration::from_millis(5);
const LOOKS: u32 = 8;
const LINGER: Duration = Duration::from_micros(100);
const LINGER_MAX: Duration = Duration::from_millis(4);
