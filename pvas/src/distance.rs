//! How far two ranks of a node are from each other, and at which message sizes each
//! way of moving a message is fastest at that distance.
//!
//! ```text
//!  a receive is known to the sender              none is known
//!  ├ inline_max ┬ direct_max ┬ nt_from ...       ├ inline_max ┬ eager_max ...
//!  │ in packet  │ push       │ streaming push    │ in packet  │ slots     │ pull
//!               └────────────┴ from pull_from on, below nt_from: pull
//!                                               pull from ask_from on: a push, asked for
//!  from both_from on: both copy
//! ```
//!
//! The node's leader measures ([`calibrate`](crate::calibrate)) and publishes the
//! result in the heads of the partitions, so that both ends of a message make the
//! same decision.

use std::fmt;
use tsumugi_core::msg;
use tsumugi_core::sync::{AtomicU32, AtomicU64, Ordering};

/// How far two ranks are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Distance {
    /// The two ranks share a core, or may share one.
    SameCore = 0,
    /// Their cores share a cache: a line travels in tens of nanoseconds.
    Near = 1,
    /// Their cores share no cache.
    Far = 2,
}

/// Sizes, in bytes, at which the way of a message changes. A limit that is
/// never reached is [`Thresholds::NEVER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Up to this size a message travels inside its packet.
    pub inline_max: u64,
    /// Up to this size a message for which no receive is known travels through
    /// slots of the receiver (eager); a longer one waits for the receiver.
    pub eager_max: u64,
    /// From this size on a message goes straight into the buffer of a known
    /// receive.
    pub direct_from: u64,
    /// From this size on a posted receive is announced to the sender in a packet of
    /// its own if there is no packet that can carry it.
    pub alone_from: u64,
    /// Up to this size the sender copies into a known receive with plain stores.
    pub direct_max: u64,
    /// From this size on a message that the sender copies inside of a call is
    /// announced in two halves: the receiver fetches one half while the other is on
    /// its way.
    pub halves_from: u64,
    /// From this size on the receiver copies (pulls) instead.
    pub pull_from: u64,
    /// From this size on the sender copies with streaming stores.
    pub nt_from: u64,
    /// From this size on the receiver of a message for which no receive was known
    /// does not pull: it asks the sender to push.
    pub ask_from: u64,
    /// From this size on both sides copy, whatever the other thresholds are, if
    /// each side reaches the other's buffer.
    pub both_from: u64,
    /// Up to this size a copy is made [in pieces](crate::copy::CopyMode::Pieces).
    pub pieces_max: u64,
    /// From this size on a message between two buffers that both lie outside of the
    /// partitions is copied by the kernel ([`cma`](crate::cma)), where that is
    /// allowed; a shorter one goes through slots. This is not measured at the
    /// start: on two cores of a Zen 4 server, far from each other, 64 KiB took 21.5
    /// us by the kernel and 19.3 us through slots, 128 KiB 23 us and 38 us
    /// (`tsumugi bench message --only outside`).
    pub kernel_from: u64,
    /// The least number of pushed bytes that the sender announces at once: the
    /// receiver fetches them while the sender copies the next ones.
    pub chunk: u64,
}

/// The thresholds that the user set by hand: they hold at every distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByHand {
    /// [`Thresholds::inline_max`].
    pub inline_max: Option<u64>,
    /// [`Thresholds::eager_max`].
    pub eager_max: Option<u64>,
    /// [`Thresholds::direct_from`].
    pub direct_from: Option<u64>,
    /// [`Thresholds::alone_from`].
    pub alone_from: Option<u64>,
    /// [`Thresholds::direct_max`].
    pub direct_max: Option<u64>,
    /// [`Thresholds::halves_from`].
    pub halves_from: Option<u64>,
    /// [`Thresholds::pull_from`].
    pub pull_from: Option<u64>,
    /// [`Thresholds::nt_from`].
    pub nt_from: Option<u64>,
    /// [`Thresholds::ask_from`].
    pub ask_from: Option<u64>,
    /// [`Thresholds::both_from`].
    pub both_from: Option<u64>,
    /// [`Thresholds::pieces_max`].
    pub pieces_max: Option<u64>,
    /// [`Thresholds::kernel_from`].
    pub kernel_from: Option<u64>,
    /// [`Thresholds::chunk`].
    pub chunk: Option<u64>,
}

impl Distance {
    /// All distances, from near to far.
    pub const ALL: [Self; 3] = [Self::SameCore, Self::Near, Self::Far];

    /// The distance of two cores between which a line travels for `ns` nanoseconds.
    pub fn of_trip(ns: f64) -> Self {
        if ns < FAR_TRIP_NS { Self::Near } else { Self::Far }
    }
}

impl Thresholds {
    /// A size that no message reaches.
    pub const NEVER: u64 = u64::MAX;

    /// The thresholds where nothing was measured.
    pub const fn unmeasured(distance: Distance) -> Self {
        let common = Self {
            inline_max: 200,
            eager_max: 8 << 10,
            direct_from: 201,
            alone_from: 2 << 10,
            direct_max: Self::NEVER,
            halves_from: Self::NEVER,
            nt_from: Self::NEVER,
            pull_from: Self::NEVER,
            ask_from: Self::NEVER,
            both_from: Self::NEVER,
            pieces_max: 0,
            kernel_from: 96 << 10,
            chunk: CHUNK_BYTES,
        };
        match distance {
            // One cache: pushed bytes are already in the cache of the reader. A
            // copy through slots needs the two ranks to take turns on the core.
            Distance::SameCore => Self { kernel_from: 16 << 10, ..common },
            Distance::Near => Self { direct_max: (1 << 20) - 1, pull_from: 1 << 20, ..common },
            Distance::Far => {
                let (halves_from, ask_from, both_from) = (3 << 10, 32 << 10, 1 << 20);
                let pieces_max = 4 << 10;
                let pushed = Self { direct_max: (4 << 10) - 1, nt_from: 4 << 10, ..common };
                Self { halves_from, ask_from, both_from, pieces_max, ..pushed }
            }
        }
    }

    /// These thresholds, with those replaced that were set by hand.
    #[must_use]
    pub fn with(self, hand: &ByHand) -> Self {
        Self {
            inline_max: hand.inline_max.unwrap_or(self.inline_max),
            eager_max: hand.eager_max.unwrap_or(self.eager_max),
            direct_from: hand.direct_from.unwrap_or(self.direct_from),
            alone_from: hand.alone_from.unwrap_or(self.alone_from),
            direct_max: hand.direct_max.unwrap_or(self.direct_max),
            halves_from: hand.halves_from.unwrap_or(self.halves_from),
            pull_from: hand.pull_from.unwrap_or(self.pull_from),
            nt_from: hand.nt_from.unwrap_or(self.nt_from),
            ask_from: hand.ask_from.unwrap_or(self.ask_from),
            both_from: hand.both_from.unwrap_or(self.both_from),
            pieces_max: hand.pieces_max.unwrap_or(self.pieces_max),
            kernel_from: hand.kernel_from.unwrap_or(self.kernel_from),
            chunk: hand.chunk.unwrap_or(self.chunk),
        }
    }

    /// The name and value of each threshold.
    pub fn named(&self) -> [(&'static str, u64); VALUES] {
        [
            ("inline_max", self.inline_max),
            ("eager_max", self.eager_max),
            ("direct_from", self.direct_from),
            ("alone_from", self.alone_from),
            ("direct_max", self.direct_max),
            ("halves_from", self.halves_from),
            ("pull_from", self.pull_from),
            ("nt_from", self.nt_from),
            ("ask_from", self.ask_from),
            ("both_from", self.both_from),
            ("pieces_max", self.pieces_max),
            ("kernel_from", self.kernel_from),
            ("chunk", self.chunk),
        ]
    }

    fn from_values(values: [u64; VALUES]) -> Self {
        let [
            inline_max,
            eager_max,
            direct_from,
            alone_from,
            direct_max,
            halves_from,
            pull_from,
            nt_from,
            ask_from,
            both_from,
            pieces_max,
            kernel_from,
            chunk,
        ] = values;
        Self {
            inline_max,
            eager_max,
            direct_from,
            alone_from,
            direct_max,
            halves_from,
            pull_from,
            nt_from,
            ask_from,
            both_from,
            pieces_max,
            kernel_from,
            chunk,
        }
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameCore => "same core",
            Self::Near => "near",
            Self::Far => "far",
        })
    }
}

/// The result of the measurement at one distance.
pub(crate) struct MeasuredThresholds {
    pub(crate) thresholds: Thresholds,
    pub(crate) is_measured: bool,
    /// A reading of the [`DistanceProbe`](crate::DistanceProbe).
    pub(crate) sample_ns: Option<u64>,
}

/// The part of a partition's head from which the distance of its rank to others
/// follows. The thresholds are used in rank 0's head only; all zeroes: nothing is
/// published yet. The leader writes it before the other ranks may go on.
#[derive(Debug)]
#[repr(C)]
pub struct CorePlacement {
    /// Ranks of one group are near each other; 0: the rank shares a core, or may
    /// share one.
    group: AtomicU32,
    /// A bit for each distance that was measured, and a bit that says that the
    /// thresholds are published.
    state: AtomicU32,
    took_ns: AtomicU64,
    /// The probe's reading at each distance; 0: not measured.
    samples: [AtomicU64; Distance::ALL.len()],
    thresholds: [[AtomicU64; VALUES]; Distance::ALL.len()],
}

impl CorePlacement {
    /// Sets the group of the rank.
    pub(crate) fn set_group(&self, group: u32) {
        self.group.store(group, Ordering::Relaxed);
    }

    /// How far the ranks of two places are from each other.
    pub fn distance(&self, other: &Self) -> Distance {
        let groups = [self, other].map(|place| place.group.load(Ordering::Relaxed));
        match groups {
            [0, _] | [_, 0] => Distance::SameCore,
            [one, other] if one == other => Distance::Near,
            _ => Distance::Far,
        }
    }

    /// Publishes the thresholds that both ends must use.
    pub(crate) fn publish(&self, took_ns: u64, of: impl Fn(Distance) -> MeasuredThresholds) {
        let mut state = PUBLISHED;
        for distance in Distance::ALL {
            let MeasuredThresholds { thresholds, is_measured, sample_ns } = of(distance);
            self.samples[distance as usize].store(sample_ns.unwrap_or(0), Ordering::Relaxed);
            state |= u32::from(is_measured) << distance as u32;
            let words = &self.thresholds[distance as usize];
            for (word, (_, value)) in words.iter().zip(thresholds.named()) {
                word.store(value, Ordering::Relaxed);
            }
        }
        self.took_ns.store(took_ns, Ordering::Relaxed);
        // Release: pairs with the Acquire in `thresholds`.
        self.state.store(state, Ordering::Release);
    }

    /// The thresholds that both ends use at that distance, and whether they were
    /// measured.
    pub fn thresholds(&self, distance: Distance) -> (Thresholds, bool) {
        // Acquire: pairs with the Release in `publish`.
        let state = self.state.load(Ordering::Acquire);
        if state & PUBLISHED == 0 {
            return (Thresholds::unmeasured(distance), false);
        }
        let words = &self.thresholds[distance as usize];
        let values = std::array::from_fn(|index| words[index].load(Ordering::Relaxed));
        (Thresholds::from_values(values), state >> distance as u32 & 1 != 0)
    }

    /// The probe's reading at that distance, if it was measured.
    pub fn sample_ns(&self, distance: Distance) -> Option<u64> {
        if !self.thresholds(distance).1 {
            return None;
        }
        let sample = self.samples[distance as usize].load(Ordering::Relaxed);
        (sample > 0).then_some(sample)
    }

    /// How long the measurement took.
    pub fn took_ns(&self) -> u64 {
        self.took_ns.load(Ordering::Relaxed)
    }
}

const VALUES: usize = 13;
const PUBLISHED: u32 = 1 << 31;
/// Between the 30 ns inside a shared cache and the 100 to 200 outside.
const FAR_TRIP_NS: f64 = 75.0;
/// Default of [`Thresholds::chunk`].
pub const CHUNK_BYTES: u64 = msg::Thresholds::DEFAULT.chunk as u64;

#[cfg(test)]
mod tests {
    use super::*;

    fn place(group: u32) -> CorePlacement {
        // SAFETY: `CorePlacement` consists of atomics, for which all zeroes are valid.
        let place: CorePlacement = unsafe { std::mem::zeroed() };
        place.set_group(group);
        place
    }

    #[test]
    fn ranks_of_a_group_are_near_and_share_no_core() {
        let of = |one, other| place(one).distance(&place(other));
        assert_eq!(
            [of(0, 1), of(0, 0), of(1, 1), of(1, 2)],
            [Distance::SameCore, Distance::SameCore, Distance::Near, Distance::Far]
        );
        assert_eq!([31.0, 165.0].map(Distance::of_trip), [Distance::Near, Distance::Far]);
    }

    #[test]
    fn a_published_group_is_read_unchanged() {
        let place = place(0);
        let (thresholds, is_measured) = place.thresholds(Distance::Far);
        assert_eq!((thresholds, is_measured), (Thresholds::unmeasured(Distance::Far), false));
        let hand = ByHand { nt_from: Some(77), ..ByHand::default() };
        place.publish(5, |distance| {
            let thresholds = Thresholds::unmeasured(distance).with(&hand);
            MeasuredThresholds {
                thresholds,
                is_measured: distance == Distance::Near,
                sample_ns: Some(90),
            }
        });
        let (near, is_measured) = place.thresholds(Distance::Near);
        assert_eq!((near.nt_from, near.direct_max, is_measured), (77, (1 << 20) - 1, true));
        let (far, is_measured) = place.thresholds(Distance::Far);
        assert_eq!((far.nt_from, far.direct_max, is_measured), (77, 4095, false));
        assert_eq!(place.took_ns(), 5);
        assert_eq!(Distance::ALL.map(|of| place.sample_ns(of)), [None, Some(90), None]);
    }
}
