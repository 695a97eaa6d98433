//! The ring of lines of one lane: packets from one sender to one receiver.
//!
//! ```text
//!           ┌──────────────┬───────────────────────────────┐
//!  line     │ stamp │ head │ 7 words                       │  64 bytes
//!           └──────────────┴───────────────────────────────┘
//!  lap 3    3   3   3   2   2   2   2   2     stamp = lap + 1
//!                       ▲ the receiver waits for a 3 here
//!
//!  return   lines, messages taken │ messages matched, slots    receiver writes
//!  need     how often the sender has asked for more            sender writes
//! ```
//!
//! A line is new if its stamp is that of the lap: nobody clears anything, and
//! an empty look is one load of a line that stays in the reader's cache. The
//! first line of a packet is stamped last; further lines have a stamp, too, so
//! that the word where a stamp is looked for is never payload.
//!
//! The receiver returns what it has taken now and then, in a line of its own
//! that the sender reads only when it needs room. A sender that still finds
//! too little says so in the need word, and looks once more; the receiver
//! looks at that word whenever it has taken something and, before it stops
//! looking, after a fence.
//!
//! Progress: everything is wait-free.

mod memory;

pub use memory::{Lane, Line, NeedLine, ReturnLine};

use super::packet::{FIRST_WORDS, INLINE_WORDS, LINE_WORDS, Load, Offer, Packet};
use super::split::Split;
use super::wire::Returned;
use crate::sync::{Ordering, fence, mutant};
use core::fmt;

/// The sending end.
pub struct LaneSender<'m> {
    lane: Lane<'m>,
    lap_bits: u32,
    tail: u32,
    taken: u32,
    asked: u64,
}

/// The receiving end.
pub struct LaneReceiver<'m> {
    lane: Lane<'m>,
    lap_bits: u32,
    head: u32,
    told: u32,
    /// Of the packet that was seen last.
    lines: u32,
    answered: u64,
}

impl<'m> LaneSender<'m> {
    /// The sending end of a lane that was never used.
    ///
    /// # Panics
    ///
    /// If its lines are no power of two.
    ///
    /// # Safety
    ///
    /// It is the only one of this lane, ever.
    pub const unsafe fn new(lane: Lane<'m>) -> Self {
        Self { lane, lap_bits: lap_bits(lane.lines), tail: 0, taken: 0, asked: 0 }
    }

    /// Who copies which part of a message, on both sides.
    pub const fn split(&self) -> &'m Split {
        &self.lane.need.split
    }

    /// Whether `lines` more lines are free.
    #[inline]
    pub fn has_room(&mut self, lines: u32) -> bool {
        let size = self.lane.lines.len() as u32;
        if self.tail.wrapping_sub(self.taken) + lines <= size {
            return true;
        }
        // Acquire: pairs with `give_back`: the receiver has read those lines.
        self.taken = (self.lane.returned.taken.load(Ordering::Acquire) >> 32) as u32;
        // What a peer in its right mind says is between 0 and the size.
        self.tail.wrapping_sub(self.taken) <= size
            && self.tail.wrapping_sub(self.taken) + lines <= size
    }

    /// Puts a packet in for which there is room. `inline` hands out words of
    /// the inline bytes by their number.
    #[inline(always)]
    pub fn push(&mut self, packet: &Packet, load: Load, inline: impl Fn(usize) -> u64) {
        let lines = packet.lines();
        let words = match load {
            Load::Inline(_) => usize::from(packet.count).div_ceil(8),
            Load::Empty | Load::Offer(_) => 0,
        };
        if mutant("msg_head_first") {
            self.stamp(self.tail, packet.head(), Ordering::Release);
        }
        if lines > 1 {
            // All at once: stores would have them come over one by one.
            (0..lines).for_each(|line| self.fetch(self.tail.wrapping_add(line)));
        }
        for line in 1..lines {
            let start = FIRST_WORDS + (line as usize - 1) * LINE_WORDS;
            let end = (start + LINE_WORDS).min(words);
            self.line(self.tail.wrapping_add(line)).words.with_mut(|cell| {
                for (index, word) in (start..end).enumerate() {
                    // SAFETY: the line is free, so it is the sender's alone.
                    unsafe { (*cell)[index] = inline(word) };
                }
            });
            // Relaxed: the first line is stamped after it, with Release.
            self.stamp(self.tail.wrapping_add(line), 0, Ordering::Relaxed);
        }
        self.line(self.tail).words.with_mut(|cell| {
            // SAFETY: as above.
            let first = unsafe { &mut *cell };
            first[0] = u64::from(packet.tag) | u64::from(packet.id) << 32;
            match load {
                Load::Inline(_) => {
                    for word in 0..FIRST_WORDS {
                        if word >= words {
                            break;
                        }
                        first[3 + word] = inline(word);
                    }
                }
                Load::Empty => (first[1], first[2]) = (packet.a, packet.b),
                Load::Offer(offer) => {
                    (first[1], first[2]) = (packet.a, packet.b);
                    first[3..].copy_from_slice(&offer.to_words());
                }
            }
        });
        if !mutant("msg_head_first") {
            // Release: pairs with the Acquire in `peek`.
            self.stamp(self.tail, packet.head(), order("msg_stamp_relaxed"));
        }
        self.tail = self.tail.wrapping_add(lines);
    }

    /// Has a line that more packets will need fetched already, as the sender
    /// writes several in a row. Its receiver does not look at it before those.
    #[inline(always)]
    pub fn fetch_ahead(&self) {
        self.fetch(self.tail.wrapping_add(AHEAD));
    }

    /// Has a line that is written soon come over.
    #[inline(always)]
    fn fetch(&self, position: u32) {
        let ahead: *const Line = self.line(position);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a hint, of any address; processors without it do nothing.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) ahead, options(nostack, preserves_flags));
        }
        let _ = ahead;
    }

    /// What the receiver has returned last.
    pub fn returned(&self) -> Returned {
        // Acquire: pairs with `give_back`: what the receiver did before, its
        // packets to this rank above all, is seen.
        let taken = self.lane.returned.taken.load(Ordering::Acquire);
        // Acquire: it has read the slots that it returns.
        let matched = self.lane.returned.matched.load(Ordering::Acquire);
        Returned {
            lines: (taken >> 32) as u32,
            taken: taken as u32,
            matched: (matched >> 32) as u32,
            slots: matched as u32,
        }
    }

    /// Asks for more than was returned. What the receiver returned before it
    /// could see that is seen from here on.
    pub fn set_starved(&mut self) {
        self.asked += 1;
        self.lane.need.asked.store(self.asked, Ordering::Relaxed);
        if !mutant("msg_starved_unfenced") {
            // SeqCst: pairs with the fence of the receiver that rests: one of
            // the two sees what the other wrote before it. With less, both
            // could miss it.
            fence(Ordering::SeqCst);
        }
    }

    #[inline(always)]
    fn line(&self, position: u32) -> &'m Line {
        line(self.lane.lines, position)
    }

    #[inline(always)]
    fn stamp(&self, position: u32, head: u64, order: Ordering) {
        self.line(position).head.store(head | stamp(self.lap_bits, position), order);
    }
}

impl<'m> LaneReceiver<'m> {
    /// The receiving end of a lane that was never used.
    ///
    /// # Panics
    ///
    /// If its lines are no power of two.
    ///
    /// # Safety
    ///
    /// It is the only one of this lane, ever.
    pub const unsafe fn new(lane: Lane<'m>) -> Self {
        let lap_bits = lap_bits(lane.lines);
        Self { lane, lap_bits, head: 0, told: 0, lines: 0, answered: 0 }
    }

    /// Who copies which part of a message, on both sides.
    pub const fn split(&self) -> &'m Split {
        &self.lane.need.split
    }

    /// The next packet; it stays. What is no packet looks as if nothing came.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<Packet> {
        let line = self.line(0);
        // Acquire: pairs with the stamp in `push`.
        let head = line.head.load(Ordering::Acquire);
        if head as u32 != stamp(self.lap_bits, self.head) as u32 {
            return None;
        }
        let packet = line.words.with(|cell| {
            // SAFETY: stamped, so it is the receiver's until it is given back.
            let words = unsafe { &*cell };
            Packet::from_words(head, words[0], words[1], words[2])
        })?;
        self.lines = packet.lines();
        Some(packet)
    }

    /// Hands out the first `words` inline words of that packet.
    #[inline(always)]
    pub fn inline(&self, words: usize, mut each: impl FnMut(usize, u64)) {
        let words = words.min(INLINE_WORDS);
        self.line(0).words.with(|cell| {
            // SAFETY: as in `peek`.
            let first = unsafe { &*cell };
            for word in 0..FIRST_WORDS {
                if word >= words {
                    break;
                }
                each(word, first[3 + word]);
            }
        });
        if words > FIRST_WORDS {
            self.inline_more(words, each);
        }
    }

    /// Those of the further lines.
    fn inline_more(&self, words: usize, mut each: impl FnMut(usize, u64)) {
        for line in 1.. {
            let start = FIRST_WORDS + (line - 1) * LINE_WORDS;
            if start >= words {
                break;
            }
            self.line(line as u32).words.with(|cell| {
                // SAFETY: the first line was stamped after it, and it is given
                // back with it.
                let more = unsafe { &*cell };
                for word in start..words.min(start + LINE_WORDS) {
                    each(word, more[word - start]);
                }
            });
        }
    }

    /// The offer that rides on it.
    #[inline]
    pub fn offer(&self) -> Offer {
        self.line(0).words.with(|cell| {
            // SAFETY: as in `peek`.
            let [_, _, _, words @ ..] = unsafe { *cell };
            Offer::from_words(words)
        })
    }

    /// Takes that packet out.
    #[inline(always)]
    pub fn pop(&mut self) {
        self.head = self.head.wrapping_add(core::mem::take(&mut self.lines));
    }

    /// Lines that were taken, ever; wraps.
    #[inline(always)]
    pub fn taken(&self) -> u32 {
        self.head
    }

    /// Lines that were taken and not given back.
    #[inline(always)]
    pub fn untold(&self) -> u32 {
        self.head.wrapping_sub(self.told)
    }

    /// Gives them back, with this. Whether the sender had asked for more,
    /// which this answers.
    pub fn give_back(&mut self, returned: Returned) -> bool {
        // Asked for until here: it is answered by what follows.
        let asked = self.lane.need.asked.load(Ordering::Relaxed);
        let was_starved = core::mem::replace(&mut self.answered, asked) != asked;
        self.told = self.head;
        let taken = u64::from(self.head) << 32 | u64::from(returned.taken);
        let matched = u64::from(returned.matched) << 32 | u64::from(returned.slots);
        // Release: pairs with the Acquire in `returned`: the slots were read.
        self.lane.returned.matched.store(matched, order("msg_slots_relaxed"));
        // Release: pairs with the Acquire in `has_room` and `returned`: the
        // lines were read, and whatever this rank pushed before is in its
        // lane.
        self.lane.returned.taken.store(taken, order("msg_return_relaxed"));
        was_starved
    }

    /// Whether the sender has asked for more since the last time.
    #[inline(always)]
    pub fn is_starved(&self) -> bool {
        self.lane.need.asked.load(Ordering::Relaxed) != self.answered
    }

    /// Between the last `give_back` and the last look at `is_starved` before a
    /// rest.
    pub fn fence() {
        if !mutant("msg_rest_unfenced") {
            // SeqCst: pairs with that in `set_starved`.
            fence(Ordering::SeqCst);
        }
    }

    #[inline(always)]
    fn line(&self, after: u32) -> &'m Line {
        line(self.lane.lines, self.head.wrapping_add(after))
    }
}

#[inline(always)]
fn line(lines: &[Line], position: u32) -> &Line {
    // SAFETY: less than their number, which is a power of two.
    unsafe { lines.get_unchecked(position as usize & (lines.len() - 1)) }
}

/// Bits of a position that say which line it is; the others say in which lap.
const fn lap_bits(lines: &[Line]) -> u32 {
    assert!(lines.len().is_power_of_two(), "a lane's lines are a power of two");
    lines.len().trailing_zeros()
}

/// The lap, from 1 on: a position's stamp differs from that of one lap before
/// even where positions wrap.
#[inline(always)]
fn stamp(lap_bits: u32, position: u32) -> u64 {
    u64::from(position >> lap_bits) + 1
}

/// Release, but for a test.
#[inline(always)]
fn order(defect: &'static str) -> Ordering {
    if mutant(defect) { Ordering::Relaxed } else { Ordering::Release }
}

/// How far ahead of the next packet.
const AHEAD: u32 = 6;

impl fmt::Debug for LaneSender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaneSender({} pushed, {} taken)", self.tail, self.taken)
    }
}

impl fmt::Debug for LaneReceiver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaneReceiver({} taken, {} told)", self.head, self.told)
    }
}

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    /// Memory of a lane may be zero at first.
    #[test]
    fn no_line_is_stamped_as_memory_that_was_never_used() {
        for position in [0, 15, 16, u32::MAX - 16, u32::MAX] {
            assert_ne!(stamp(4, position), 0, "line {position}");
            assert_ne!(stamp(4, position), stamp(4, position.wrapping_sub(16)));
        }
    }
}
