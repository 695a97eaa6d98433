//! Measuring, at the start of a job, how far cores are from each other and
//! which way of moving bytes wins there.
//!
//! ```text
//!  leader: two threads, a core each     line trip ─► near or far
//!          each way, each size ─► most of the quick rounds ─► Thresholds ─► heads
//!  others: asleep in the barrier
//! ```
//!
//! Pairs of cores are measured, not pairs of ranks, and only where every rank
//! has a core of its own; copies are measured for one pair that is near and
//! one that is far, as far as there are such. It ends after
//! [`TIME_MAX`] whatever happens: what has not been measured by then is as in
//! [`Thresholds::unmeasured`].
//!
//! A virtual machine's memory may lie on several memory nodes of its host, which
//! it is not told: a line travels between the same two cores in one time in most
//! frames of 2 MiB, and in nearly twice that in some. Two jobs differ by which
//! frames their lanes and buffers got, and so does what is measured here.

mod court;
mod yard;
mod pair;
mod choose;

pub use pair::{Measured, Timing, Way};
pub use yard::SPLIT_LEAST;

use crate::attach::Member;
use crate::distance::{ByHand, Distance, Found, Thresholds};
use crate::gauge::{Bounds, Gauge};
use std::time::{Duration, Instant};
use tsumugi_core::mem::Rank;

/// One pair of cores, measured.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// What took how long.
    pub measured: Measured,
    /// What follows.
    pub thresholds: Thresholds,
}

/// Measures two CPUs of this process; `None` if threads cannot run there or
/// do not come to run within `limit`.
pub fn between(first: usize, second: usize, limit: Duration) -> Option<Calibration> {
    let end = Instant::now() + limit;
    let trip_ns = pair::trip(first, second, end)?;
    measure(first, second, trip_ns, end)
}

fn measure(first: usize, second: usize, trip_ns: f64, end: Instant) -> Option<Calibration> {
    let measured = pair::measure([first, second], trip_ns, end)?;
    let thresholds = choose::choose(&measured);
    Some(Calibration { measured, thresholds })
}

impl Member {
    /// Publishes how messages between the ranks of the node go; called by the
    /// first of them while the others wait. `cores` are those of the ranks, in order;
    /// empty: they share some, and nothing is measured.
    pub fn calibrate(&self, cores: &[usize], hand: &ByHand) {
        let begin = Instant::now();
        let end = begin + TIME_MAX;
        let pairs = if cores.len() == self.space().size() as usize {
            groups(cores, end)
        } else {
            Pairs::default()
        };
        let measured = Distance::ALL.map(|distance| {
            let (first, second, trip_ns) = pairs.sample(distance)?;
            measure(first, second, trip_ns, end)
        });
        for (rank, group) in (0..).map(Rank).zip(pairs.groups) {
            self.space().control(rank).place().set_group(group);
        }
        let took_ns = begin.elapsed().as_nanos() as u64;
        self.space().control(Rank(0)).place().publish(took_ns, |distance| {
            let of = measured[distance as usize].as_ref();
            let thresholds = of.map(|calibration| calibration.thresholds);
            Found {
                thresholds: thresholds.unwrap_or(Thresholds::unmeasured(distance)).with(hand),
                is_measured: of.is_some(),
                sample_ns: of.and_then(|calibration| calibration.measured.sample_ns),
            }
        });
    }

    /// How far this rank is from `rank`, and how messages between them go.
    pub fn way_to(&self, rank: Rank) -> (Distance, Thresholds) {
        let distance = match self.local_of(rank) {
            Some(local) => self.control().place().distance(self.space().control(local).place()),
            None => Distance::Far,
        };
        (distance, self.thresholds(distance))
    }

    /// What notices that this rank and `rank` come nearer to each other, or
    /// part.
    pub fn gauge_of(&self, rank: Rank) -> Gauge {
        let place = self.space().control(Rank(0)).place();
        let [near, far] = [Distance::Near, Distance::Far].map(|of| place.sample_ns(of));
        Gauge::new(self.way_to(rank).0, Bounds::of(near, far))
    }

    /// How messages go between ranks that are so far apart.
    pub fn thresholds(&self, distance: Distance) -> Thresholds {
        self.space().control(Rank(0)).place().thresholds(distance).0
    }
}

/// Which cores are near each other.
#[derive(Default)]
struct Pairs {
    /// From 1; of each core.
    groups: Vec<u32>,
    /// A pair of cores and its trip.
    near: Option<(usize, usize, f64)>,
    far: Option<(usize, usize, f64)>,
}

impl Pairs {
    fn sample(&self, distance: Distance) -> Option<(usize, usize, f64)> {
        match distance {
            Distance::SameCore => None,
            Distance::Near => self.near,
            Distance::Far => self.far,
        }
    }
}

/// Puts each core into the group of the first one that it is near to. What
/// cannot be measured in time is a group of its own: far from everybody.
fn groups(cores: &[usize], end: Instant) -> Pairs {
    let mut pairs = Pairs::default();
    // Copies need some of the time, too.
    let end_of_trips = end - TIME_MAX / 2;
    let mut heads: Vec<usize> = Vec::new();
    for core in cores {
        let mut own = None;
        for (group, head) in (1..).zip(&heads) {
            let Some(trip_ns) = pair::trip(*head, *core, end_of_trips) else { continue };
            let sample = (*head, *core, trip_ns);
            if Distance::of_trip(trip_ns) == Distance::Near {
                pairs.near.get_or_insert(sample);
                own = Some(group);
                break;
            }
            pairs.far.get_or_insert(sample);
        }
        pairs.groups.push(own.unwrap_or_else(|| {
            heads.push(*core);
            heads.len() as u32
        }));
    }
    pairs
}

/// All of the measuring of a job; on a quiet machine it takes 7 to 15 ms.
pub const TIME_MAX: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests;
