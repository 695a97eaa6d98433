//! Computes thresholds from timings.

use super::method::TransferMethod;
use super::pair::{HALVED, Measured, PAYLOADS, PIECES_MAX, SHORT, SIZES};
use crate::distance::{Distance, Thresholds};

/// The thresholds at which each method is the fastest. A threshold without timings is
/// taken from the distance that the trip belongs to; a value out of bounds is
/// clamped.
pub fn choose(measured: &Measured) -> Thresholds {
    let unmeasured = Thresholds::unmeasured(Distance::of_trip(measured.trip_ns));
    let inline_max = inline_max(measured).unwrap_or(unmeasured.inline_max);
    let both_from = both_from(measured, unmeasured.both_from).unwrap_or(unmeasured.both_from);
    let pieces_max = pieces_max(measured, unmeasured.pieces_max);
    let (direct_max, pull_from, nt_from) = pushes(measured, both_from).unwrap_or((
        unmeasured.direct_max,
        unmeasured.pull_from,
        unmeasured.nt_from,
    ));
    let direct_from = direct_from(measured, inline_max).unwrap_or(unmeasured.direct_from);
    let direct_from = direct_from.clamp(inline_max + 1, direct_max.max(inline_max + 1));
    let alone_from = alone_from(measured, inline_max).unwrap_or(unmeasured.alone_from);
    Thresholds {
        inline_max,
        direct_from,
        // The measurement shows from which size it already pays, and is noisy
        // beyond.
        alone_from: alone_from.min(unmeasured.alone_from).max(direct_from),
        eager_max: eager_max(measured).unwrap_or(unmeasured.eager_max),
        direct_max,
        halves_from: halves_from(measured, pieces_max).unwrap_or(unmeasured.halves_from),
        nt_from,
        pull_from,
        ask_from: ask_from(measured).unwrap_or(unmeasured.ask_from),
        both_from,
        pieces_max,
        ..unmeasured
    }
}

/// What a push costs beyond the copy, because its receiver must have announced the
/// buffer to the sender: half of a packet's trip.
fn offer_ns(measured: &Measured) -> Option<f64> {
    Some(packet_ns(measured)? / 2.0)
}

/// The same cost if the announcement needs a packet of its own: the sender has to
/// fetch it.
fn packet_ns(measured: &Measured) -> Option<f64> {
    measured.ns(TransferMethod::Inline, PAYLOADS[0])
}

/// The longest packet that is no slower than a push into an announced buffer.
fn inline_max(measured: &Measured) -> Option<u64> {
    let mut max = PAYLOADS[0];
    for payload in PAYLOADS {
        let push = measured.ns(TransferMethod::Push, payload)? + offer_ns(measured)?;
        if measured.ns(TransferMethod::Inline, payload)? <= push {
            max = payload;
        }
    }
    Some(max as u64)
}

/// The size from which a push into an announced buffer is faster than slots.
fn direct_from(measured: &Measured, inline_max: u64) -> Option<u64> {
    pushed_from(measured, inline_max, offer_ns(measured)?)
}

/// The same if the announcement went in a packet of its own.
fn alone_from(measured: &Measured, inline_max: u64) -> Option<u64> {
    pushed_from(measured, inline_max, packet_ns(measured)?)
}

/// The size from which a push, with an announcement that costs `offer`, is faster
/// than slots. Between two measured sizes it is the size at which both would cost
/// the same.
fn pushed_from(measured: &Measured, inline_max: u64, offer: f64) -> Option<u64> {
    measured.ns(TransferMethod::Bounce, SIZES[0])?;
    let mut from = inline_max + 1;
    let mut before = 0.0;
    for bytes in measured.sizes(TransferMethod::Bounce) {
        let more = measured.push_ns(bytes)? + offer - measured.ns(TransferMethod::Bounce, bytes)?;
        if more <= 0.0 {
            let part = before / (before - more).max(1.0);
            return Some(from + ((bytes as u64).saturating_sub(from) as f64 * part) as u64);
        }
        (from, before) = (bytes as u64, more);
    }
    Some(from + 1)
}

/// The size up to which pushes are faster in pieces, over all sizes that were
/// measured: 0 if at none. If there was no time for the larger sizes, it is the
/// unmeasured value, unless the last measured size shows another one.
fn pieces_max(measured: &Measured, unmeasured: u64) -> u64 {
    let (mut gain, mut most, mut max) = (0.0, 0.0, 0);
    let (mut last, mut is_whole) = (0, false);
    for bytes in measured.sizes(TransferMethod::Pieces) {
        let methods =
            [TransferMethod::Push, TransferMethod::Pieces].map(|method| measured.ns(method, bytes));
        let [Some(plain), Some(pieces)] = methods else { break };
        gain += (plain.max(1.0) / pieces.max(1.0)).ln();
        if gain > most {
            (most, max) = (gain, bytes as u64);
        }
        (last, is_whole) = (bytes as u64, bytes == PIECES_MAX);
    }
    if !is_whole && max == last { unmeasured.max(max) } else { max }
}

/// The size from which a push is faster in two halves than at once, over the sizes
/// that were measured, each with its copy mode. Halves take a packet more, so in a
/// draw the whole push wins.
fn halves_from(measured: &Measured, pieces_max: u64) -> Option<u64> {
    let mut gains = [0.0; HALVED.len()];
    for (gain, bytes) in gains.iter_mut().zip(HALVED) {
        let of = |method, in_pieces, len: usize| {
            measured.ns(if len as u64 <= pieces_max { in_pieces } else { method }, bytes)
        };
        let whole = of(TransferMethod::Push, TransferMethod::Pieces, bytes)?;
        let halves = of(TransferMethod::Halves, TransferMethod::HalvesInPieces, bytes / 2)?;
        *gain = (whole.max(1.0) / halves.max(1.0)).ln() - DRAW_OF_HALVES;
    }
    let gain_from = |at: &usize| gains[*at..].iter().sum::<f64>();
    let from = (0..=HALVED.len()).max_by(|a, b| gain_from(a).total_cmp(&gain_from(b)))?;
    let Some(bytes) = HALVED.get(from) else { return Some(Thresholds::NEVER) };
    SIZES.iter().position(|size| size == bytes).map(between)
}

/// The largest size at which two copies through slots are no slower than waiting
/// for the receiver; limited, so that a few messages do not fill the slots.
fn eager_max(measured: &Measured) -> Option<u64> {
    let mut max = EAGER_MIN;
    for bytes in
        measured.sizes(TransferMethod::Bounce).into_iter().filter(|bytes| !SHORT.contains(bytes))
    {
        let (bounce, pull) = (
            measured.ns(TransferMethod::Bounce, bytes)?,
            measured.ns(TransferMethod::Pull, bytes)?,
        );
        if bounce <= pull {
            max = bytes as u64;
        }
    }
    measured.ns(TransferMethod::Bounce, EAGER_MIN as usize)?;
    Some(max.clamp(EAGER_MIN, EAGER_MAX))
}

/// `direct_max`, `pull_from`, `nt_from`: the two sizes that separate pushes, pulls
/// and streams with the least loss against the best method of each size, in
/// proportion. At sizes at which both sides copy, one side copies alone only if the
/// other cannot: these sizes hardly count. `None` unless enough sizes were
/// measured.
fn pushes(measured: &Measured, both_from: u64) -> Option<(u64, u64, u64)> {
    const ENDS: usize = SIZES.len();
    let costs = costs(measured)?;
    let cost = |pull: usize, stream: usize| -> f64 {
        let method = |at| {
            if at < pull {
                0
            } else if at < stream {
                1
            } else {
                2
            }
        };
        let weight = |at: usize| if SIZES[at] as u64 >= both_from { SELDOM } else { 1.0 };
        (0..ENDS).map(|at| weight(at) * costs[at][method(at)]).sum()
    };
    let splits = (0..=ENDS).flat_map(|stream| (0..=stream).map(move |pull| (pull, stream)));
    let (pull, stream) = splits.min_by(|a, b| cost(a.0, a.1).total_cmp(&cost(b.0, b.1)))?;
    let pull_from = if pull == stream { Thresholds::NEVER } else { between(pull) };
    let direct_max = if pull == ENDS { Thresholds::NEVER } else { between(pull) - 1 };
    Some((direct_max, pull_from, between(stream)))
}

/// The logarithms of the times of a push, a pull and a stream of each size. There
/// may have been no time for the largest sizes: they get the values of the last
/// size that was measured.
fn costs(measured: &Measured) -> Option<[[f64; 3]; SIZES.len()]> {
    let ln = |method, bytes| Some(measured.ns(method, bytes)?.max(1.0).ln());
    let mut costs = [[0.0; 3]; SIZES.len()];
    for (at, bytes) in SIZES.into_iter().enumerate() {
        let push = measured.push_ns(bytes).map(|ns| ns.max(1.0).ln());
        let of = [push, ln(TransferMethod::Pull, bytes), ln(TransferMethod::Stream, bytes)];
        costs[at] = match of {
            [Some(push), Some(pull), Some(stream)] => [push, pull, stream],
            _ if bytes > LARGE => costs[at - 1],
            _ => return None,
        };
    }
    Some(costs)
}

/// The limit between a measured size and the one before it, at which both are
/// equally far in proportion.
fn between(at: usize) -> u64 {
    match at {
        0 => SIZES[0] as u64,
        at if at == SIZES.len() => Thresholds::NEVER,
        at => (SIZES[at - 1] as f64 * SIZES[at] as f64).sqrt() as u64,
    }
}

/// The size from which a push that the receiver requests loses less, over all
/// sizes, than a pull. The request costs a packet more, and needs the sender: in a
/// draw the pull wins.
fn ask_from(measured: &Measured) -> Option<u64> {
    let packet = packet_ns(measured)?;
    let gains = costs(measured)?.map(|[push, pull, stream]| {
        let asked = (push.min(stream).exp() + packet).ln();
        pull - asked - DRAW
    });
    let gain_from = |at: &usize| gains[*at..].iter().sum::<f64>();
    let from = (0..=SIZES.len()).max_by(|a, b| gain_from(a).total_cmp(&gain_from(b)))?;
    Some(between(from))
}

/// The size from which copies of both sides lose less, over all sizes, than the
/// best method of one side. They take two cores, and a packet more on each side: in a
/// draw one side wins; the margin is narrow, because the copies of one side vary
/// from job to job. A size for which there was no time counts as the last measured
/// one, except for sizes at which both sides win in `unmeasured`: those are longer
/// than a cache, and smaller sizes show nothing about them.
fn both_from(measured: &Measured, unmeasured: u64) -> Option<u64> {
    let costs = costs(measured)?;
    let mut gain = f64::NEG_INFINITY;
    let gains = SIZES.into_iter().zip(costs).map(|(bytes, [push, pull, stream])| {
        if let Some(ns) = measured.ns(TransferMethod::Both, bytes) {
            gain = push.min(pull).min(stream) - ns.max(1.0).ln() - DRAW_OF_BOTH;
        } else if bytes as u64 >= unmeasured {
            gain = gain.max(DRAW_OF_BOTH);
        }
        gain
    });
    let gains: Vec<f64> = gains.collect();
    let gain_from = |at: &usize| gains[*at..].iter().sum::<f64>();
    let from = (0..=SIZES.len()).max_by(|a, b| gain_from(a).total_cmp(&gain_from(b)))?;
    Some(between(from))
}

const EAGER_MIN: u64 = 4 << 10;
/// The largest size: half of the slots.
const EAGER_MAX: u64 = 16 << 10;
/// Larger sizes may go unmeasured.
const LARGE: usize = 32 << 10;
/// The margin of a draw, as a difference of logarithms.
const DRAW: f64 = 0.15;
const DRAW_OF_BOTH: f64 = 0.05;
const DRAW_OF_HALVES: f64 = 0.03;
/// The weight of a size at which another method is the rule.
const SELDOM: f64 = 0.05;

#[cfg(test)]
mod tests;
