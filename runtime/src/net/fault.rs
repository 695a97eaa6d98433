//! Fault injection on a real network: simulates a slow, lossy link for all
//! operations and packets, with faults drawn from a seed.
//!
//! ```text
//!  post ───────► refused? late? ─► device ─► completions: late, shuffled, twice
//!  try_send ───► full? late? ────► device
//!  receive ◄──── late? in any order ◄──────── device
//! ```
//!
//! No packet is lost for good: the device below sends a lost packet again, so a loss
//! is a delay many times longer than others. Completions come twice, which the
//! generations of their tags detect; packets do not, because no device delivers a
//! packet twice.
//!
//! While an operation or a packet is held here, no thread sleeps on the device.

use super::device::NetDevice;
use super::device_queue::{DeviceQueue, WrappedQueue};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tsumugi_backends::ofi::{Arrival, DeviceFailure, PacketError};
use tsumugi_core::backend::{Completion, Endpoint, Fault, FaultPlan};
use tsumugi_core::mem::LocalAddr;
use tsumugi_core::mem::Rank;
use tsumugi_core::op::Op;
use tsumugi_core::random::SplitMix64;
use tsumugi_core::sync::{AtomicU64, AtomicUsize, Ordering};

/// How often each fault occurs. Rates are per mille.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The seed of the faults.
    pub seed: u64,
    /// Packets that are refused as if there were no room.
    refuse: u16,
    /// Operations, packets and arrivals that are delayed, and the longest delay.
    late: u16,
    late_max: u64,
    /// Operations, packets and arrivals that are delayed by `again_after`, as if
    /// they were lost and sent again.
    lost: u16,
    again_after: u64,
    /// The unit of delays.
    clock: FaultClock,
    /// Faults of the device's queue.
    queue: FaultPlan,
}

/// The unit in which delays are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClock {
    /// Time.
    Micros,
    /// Polls: the same in every run of a single thread.
    #[cfg_attr(not(test), allow(dead_code))]
    Polls,
}

/// State of the fault injection that all endpoints of a device share.
pub(super) struct FaultInjector {
    /// The seed, which tests change on the way.
    seed: AtomicU64,
    clock: FaultClock,
    endpoints: Vec<EndpointFaults>,
    start: Instant,
}

/// Operations and packets that are held back at one endpoint.
struct EndpointFaults {
    packets: Mutex<Packets>,
    /// How many outgoing packets are held; `held` counts operations and arrivals,
    /// and the queue if it holds completions.
    packets_held: AtomicUsize,
    held: AtomicUsize,
    polls: AtomicU64,
}

/// Outgoing packets that are held back.
struct Packets {
    faults: Faults,
    draw: SplitMix64,
    held: Vec<Delayed<(Rank, Vec<u8>)>>,
}

/// An endpoint with injected faults.
pub(super) struct FaultyQueue<'d> {
    bad: &'d FaultInjector,
    faults: Faults,
    device: &'d NetDevice,
    queue: Fault<DeviceQueue<'d>>,
    index: usize,
    draw: SplitMix64,
    ops: Vec<Delayed<Op>>,
    arrivals: Vec<Delayed<DelayedArrival>>,
}

struct Delayed<T> {
    due: u64,
    what: T,
}

enum DelayedArrival {
    Bell(LocalAddr),
    Packet(Rank, Vec<u8>),
}

impl Faults {
    /// Draws a mix of faults from the seed; each seed exaggerates other faults.
    pub fn drawn(seed: u64, clock: FaultClock) -> Self {
        let mut draw = SplitMix64::new(seed);
        let most = if clock == FaultClock::Micros { 300 } else { 30 };
        Self {
            seed,
            refuse: draw.below(300) as u16,
            late: draw.below(600) as u16,
            late_max: 1 + draw.below(most),
            lost: draw.below(10) as u16,
            again_after: 2 * most + draw.below(8 * most),
            clock,
            queue: FaultPlan::drawn(draw.next()),
        }
    }

    /// Draws a delay; `None`: no delay.
    fn wait(&self, draw: &mut SplitMix64) -> Option<u64> {
        if draw.chance(self.lost) {
            return Some(self.again_after);
        }
        let is_late = draw.chance(self.late);
        is_late.then(|| draw.between(1, self.late_max))
    }
}

impl FaultInjector {
    pub(super) fn new(faults: Faults, endpoints: usize) -> Self {
        let of_one = |index: usize| EndpointFaults {
            packets: Mutex::new(Packets { faults, draw: faults.draw(index, 1), held: Vec::new() }),
            packets_held: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            polls: AtomicU64::new(0),
        };
        let endpoints = (0..endpoints).map(of_one).collect();
        let Faults { seed, clock, .. } = faults;
        Self { seed: AtomicU64::new(seed), clock, endpoints, start: Instant::now() }
    }

    /// Goes on with the faults of another seed.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn reseed(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
        let faults = self.faults();
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let mut packets = endpoint.lock();
            (packets.faults, packets.draw) = (faults, faults.draw(index, 1));
        }
    }

    /// Opens the next endpoint of the device, with injected faults.
    pub(super) fn try_endpoint<'d>(&'d self, device: &'d NetDevice) -> Option<FaultyQueue<'d>> {
        let queue = device.try_endpoint()?;
        let index = queue.index();
        let faults = self.faults();
        let queue = Fault::new(queue, faults.plan(index));
        let draw = faults.draw(index, 3);
        let (ops, arrivals) = (Vec::new(), Vec::new());
        Some(FaultyQueue { bad: self, faults, device, queue, index, draw, ops, arrivals })
    }

    /// Sends a packet, as [`NetDevice::try_send`] does, unless a fault refuses or
    /// delays it.
    pub(super) fn try_send(
        &self,
        device: &NetDevice,
        index: usize,
        to: Rank,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        let mut packets = self.endpoints[index].lock();
        let faults = packets.faults;
        if packets.draw.chance(faults.refuse) {
            return Err(PacketError::Full);
        }
        let fits = bytes.len() <= device.packet_bytes_max() && packets.held.len() < HELD_MAX;
        match faults.wait(&mut packets.draw).filter(|_| fits) {
            None => device.try_send(index, to, bytes),
            Some(wait) => {
                let what = (to, bytes.to_vec());
                packets.held.push(Delayed { due: self.now(index) + wait, what });
                self.endpoints[index].packets_held.store(packets.held.len(), Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Whether an operation or a packet of the endpoint is held back.
    pub(super) fn holds(&self, index: usize) -> bool {
        let EndpointFaults { packets_held, held, .. } = &self.endpoints[index];
        packets_held.load(Ordering::Relaxed) + held.load(Ordering::Relaxed) > 0
    }

    /// Whether any endpoint holds an operation or a packet back.
    pub(super) fn holds_any(&self) -> bool {
        (0..self.endpoints.len()).any(|index| self.holds(index))
    }

    fn faults(&self) -> Faults {
        Faults::drawn(self.seed.load(Ordering::Relaxed), self.clock)
    }

    fn now(&self, index: usize) -> u64 {
        match self.clock {
            FaultClock::Micros => self.start.elapsed().as_micros() as u64,
            FaultClock::Polls => self.endpoints[index].polls.load(Ordering::Relaxed),
        }
    }

    /// Sends the packets that are due.
    fn flush(&self, device: &NetDevice, index: usize) {
        let endpoint = &self.endpoints[index];
        if endpoint.packets_held.load(Ordering::Relaxed) == 0 {
            return;
        }
        let (mut packets, now) = (endpoint.lock(), self.now(index));
        packets.held.retain(|Delayed { due, what: (to, bytes) }| {
            // A packet to a lost rank is dropped.
            *due > now || device.try_send(index, *to, bytes) == Err(PacketError::Full)
        });
        endpoint.packets_held.store(packets.held.len(), Ordering::Relaxed);
    }
}

impl FaultyQueue<'_> {
    /// Posts the operations that are due.
    fn post_late(&mut self) {
        if self.ops.is_empty() {
            return;
        }
        let (queue, now) = (&mut self.queue, self.bad.now(self.index));
        self.ops.retain(|held| held.due > now || queue.post(&[held.what]) == 0);
    }

    #[cold]
    fn replan(&mut self) {
        self.faults = self.bad.faults();
        self.draw = self.faults.draw(self.index, 3);
        self.queue.replan(self.faults.plan(self.index));
    }

    fn count(&self) {
        let held = self.ops.len() + self.arrivals.len() + usize::from(self.queue.is_holding());
        self.bad.endpoints[self.index].held.store(held, Ordering::Relaxed);
    }
}

impl WrappedQueue for FaultyQueue<'_> {
    fn index(&self) -> usize {
        self.index
    }

    fn last_failure(&mut self) -> Option<DeviceFailure> {
        self.queue.inner().last_failure()
    }

    /// Receives as the wrapped endpoint does. Returns how many arrivals were handed
    /// over.
    fn receive(&mut self, handle: &mut dyn FnMut(Arrival<'_>)) -> usize {
        let Self { bad, faults, queue, draw, arrivals, index, .. } = self;
        let mut now = None;
        queue.inner().receive(&mut |arrival| {
            let now = *now.get_or_insert_with(|| bad.now(*index));
            let what = match arrival {
                Arrival::Notified(word) => DelayedArrival::Bell(word),
                Arrival::Packet { from, bytes } => DelayedArrival::Packet(from, bytes.to_vec()),
            };
            let wait = faults.wait(draw).filter(|_| arrivals.len() < HELD_MAX);
            arrivals.push(Delayed { due: now + wait.unwrap_or_default(), what });
        });
        let mut handed = 0;
        if !self.arrivals.is_empty() {
            let now = self.bad.now(self.index);
            let late = self.arrivals.extract_if(.., |held| held.due <= now);
            let mut due: Vec<DelayedArrival> = late.map(|held| held.what).collect();
            handed = due.len();
            while !due.is_empty() {
                match due.swap_remove(self.draw.below(due.len() as u64) as usize) {
                    DelayedArrival::Bell(word) => handle(Arrival::Notified(word)),
                    DelayedArrival::Packet(from, bytes) => {
                        handle(Arrival::Packet { from, bytes: &bytes })
                    }
                }
            }
        }
        self.count();
        handed
    }

    fn post(&mut self, ops: &[Op]) -> usize {
        let mut taken = 0;
        for op in ops {
            let wait = self.faults.wait(&mut self.draw);
            if let Some(wait) = wait.filter(|_| self.ops.len() < HELD_MAX) {
                self.ops.push(Delayed { due: self.bad.now(self.index) + wait, what: *op });
            } else if self.queue.post(&[*op]) == 0 {
                break;
            }
            taken += 1;
        }
        self.count();
        taken
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        self.bad.endpoints[self.index].polls.fetch_add(1, Ordering::Relaxed);
        if self.bad.seed.load(Ordering::Relaxed) != self.faults.seed {
            self.replan();
        }
        self.post_late();
        self.bad.flush(self.device, self.index);
        let count = self.queue.poll(completions);
        self.count();
        count
    }

    fn arm(&mut self) -> bool {
        !self.bad.holds(self.index) && self.queue.arm()
    }
}

impl EndpointFaults {
    fn lock(&self) -> MutexGuard<'_, Packets> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Faults {
    /// The faults of the device's queue at one endpoint.
    fn plan(&self, index: usize) -> FaultPlan {
        FaultPlan { seed: self.draw(index, 2).next(), ..self.queue }
    }

    /// The generator of random numbers for one part of one endpoint.
    fn draw(&self, index: usize, part: u64) -> SplitMix64 {
        SplitMix64::new(self.seed ^ (index as u64) << 8 ^ part << 16)
    }
}

impl fmt::Debug for FaultyQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyQueue({:?}, {:?})", self.faults, self.queue)
    }
}

/// How many packets, operations or arrivals may be held at once.
const HELD_MAX: usize = 128;
