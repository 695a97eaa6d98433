//! Measures, at the start of a job, how far cores are from each other, and which
//! method of moving bytes is fastest between them.
//!
//! ```text
//!  leader: two threads, a core each     line trip ─► near or far
//!          each method, each size ─► most of the quick rounds ─► Thresholds ─► heads
//!  others: asleep in the barrier
//! ```
//!
//! The measured pairs are pairs of cores, not of ranks, and only where every rank
//! has a core of its own; copies are measured for one pair that is near and one
//! pair that is far, if the node has such pairs. The measurement ends after
//! [`TIME_MAX`] in any case: for a distance that has not been measured by then,
//! [`Thresholds::unmeasured`] holds.
//!
//! A virtual machine's memory may lie on several memory nodes of its host, and the
//! guest cannot see on which: a line travels between the same two cores in one time
//! in most frames of 2 MiB, and in nearly twice that time in some. Two jobs differ
//! in the frames that their lanes and buffers get, and so do their measurements.

mod method;
mod ping_pong;
mod copy_bench;
mod pair;
mod choose;

pub use copy_bench::SPLIT_LEAST;
pub use method::TransferMethod;
pub use pair::{Measured, Timing};

use crate::attach::Member;
use crate::distance::{ByHand, Distance, MeasuredThresholds, Thresholds};
use crate::distance_probe::{Bounds, DistanceProbe};
use std::time::{Duration, Instant};
use tsumugi_core::mem::{LocalRank, Rank};

/// One pair of cores, measured.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The times that were measured.
    pub measured: Measured,
    /// The thresholds that follow from them.
    pub thresholds: Thresholds,
}

/// Measures two CPUs of this process; `None` if threads cannot run on them or do
/// not start to run within `limit`.
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
    /// Measures and publishes how messages go between the ranks of the node. The
    /// first rank calls this while the other ranks wait. `cores` has the core of
    /// each rank, in order; it is empty if ranks share cores, and then nothing is
    /// measured.
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
        for (rank, group) in (0..).map(LocalRank).zip(pairs.groups) {
            self.space().control(rank).place().set_group(group);
        }
        let took_ns = begin.elapsed().as_nanos() as u64;
        self.space().control(LocalRank(0)).place().publish(took_ns, |distance| {
            let of = measured[distance as usize].as_ref();
            let thresholds = of.map(|calibration| calibration.thresholds);
            MeasuredThresholds {
                thresholds: thresholds.unwrap_or(Thresholds::unmeasured(distance)).with(hand),
                is_measured: of.is_some(),
                sample_ns: of.and_then(|calibration| calibration.measured.sample_ns),
            }
        });
    }

    /// How far this rank is from `rank`, and the thresholds for messages between
    /// them.
    pub fn distance_to(&self, rank: Rank) -> (Distance, Thresholds) {
        let distance = match self.local_of(rank) {
            Some(local) => self.control().place().distance(self.space().control(local).place()),
            None => Distance::Far,
        };
        (distance, self.thresholds(distance))
    }

    /// The probe that notices when this rank and `rank` come nearer to each other
    /// or move apart.
    pub fn distance_probe_of(&self, rank: Rank) -> DistanceProbe {
        let place = self.space().control(LocalRank(0)).place();
        let [near, far] = [Distance::Near, Distance::Far].map(|of| place.sample_ns(of));
        DistanceProbe::new(self.distance_to(rank).0, Bounds::of(near, far))
    }

    /// The thresholds for messages between ranks at this distance.
    pub fn thresholds(&self, distance: Distance) -> Thresholds {
        self.space().control(LocalRank(0)).place().thresholds(distance).0
    }
}

/// Which cores are near to each other, and a sample pair for each distance.
#[derive(Default)]
struct Pairs {
    /// The group of each core; numbers start at 1.
    groups: Vec<u32>,
    /// A pair of near cores and the time of a line's trip between them.
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

/// Puts each core into the group of the first core that it is near to. A core that
/// cannot be measured in time is a group of its own: far from all others.
fn groups(cores: &[usize], end: Instant) -> Pairs {
    let mut pairs = Pairs::default();
    // The copies need some of the time, too.
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

/// The limit of all measurements of a job; on a quiet machine they take 7 to 15 ms.
pub const TIME_MAX: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests;
