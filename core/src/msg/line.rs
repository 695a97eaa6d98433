//! The ring of lines of one lane: packets from one sender to one receiver.
//!
//! ```text
//!           ┌──────────────┬───────────────────────────────┐
//!  line     │ stamp │ head │ 7 words                       │  64 bytes
//!           └──────────────┴───────────────────────────────┘
//!  lap 3    3   3   3   2   2   2   2   2     stamp = lap + 1
//!                       ▲ the receiver waits for a stamp of 3 here
//!
//!  return   lines, messages taken │ messages matched, slots    receiver writes
//!  need     how often the sender has requested more            sender writes
//! ```
//!
//! A line is new if its stamp is that of the lap. So no side clears a line, and
//! an empty poll is one load of a line that stays in the reader's cache. The
//! first line of a packet is stamped last; further lines have a stamp, too, so
//! that the word of a stamp never contains payload.
//!
//! The receiver returns its counts now and then, in a line of its own that the
//! sender reads only when it needs room. A sender that still finds too little
//! requests more in the need word, and looks once more. The receiver looks at
//! that word each time it has taken something and, before it stops polling, after
//! a fence.
//!
//! Progress: everything is wait-free.

mod memory;

pub use memory::{Lane, LaneLine, NeedLine, ReturnLine};

use super::packet::{FIRST_WORDS, INLINE_WORDS, LINE_WORDS, Offer, Packet, PacketLoad};
use super::split::Split;
use super::wire::Returned;
use crate::mutate;
use crate::sync::{Ordering, fence};
use core::fmt;

/// The sending end of a lane.
pub struct LaneSender<'m> {
    lane: Lane<'m>,
    lap_bits: u32,
    tail: u32,
    taken: u32,
    asked: u64,
}

/// The receiving end of a lane.
pub struct LaneReceiver<'m> {
    lane: Lane<'m>,
    lap_bits: u32,
    head: u32,
    told: u32,
    /// Lines of the packet that was looked at last.
    lines: u32,
    answered: u64,
}

impl<'m> LaneSender<'m> {
    /// Makes the sending end of a lane that was never used.
    ///
    /// # Panics
    ///
    /// If the number of lines is no power of two.
    ///
    /// # Safety
    ///
    /// This is the only sending end of this lane, ever.
    pub const unsafe fn new(lane: Lane<'m>) -> Self {
        Self { lane, lap_bits: lap_bits(lane.lines), tail: 0, taken: 0, asked: 0 }
    }

    /// Returns the word on which both sides claim the parts of a message to copy.
    pub const fn split(&self) -> &'m Split {
        &self.lane.need.split
    }

    /// Returns whether `lines` more lines are free.
    #[inline]
    pub fn has_room(&mut self, lines: u32) -> bool {
        let size = self.lane.lines.len() as u32;
        if self.tail.wrapping_sub(self.taken) + lines <= size {
            return true;
        }
        // Acquire: pairs with `give_back`: the receiver has read those lines.
        let taken = (self.lane.returned.taken.load(Ordering::Acquire) >> 32) as u32;
        // With the count of a correct peer, 0 to `size` lines are in use; any other
        // count is ignored, now and in the next call.
        if self.tail.wrapping_sub(taken) > size {
            return false;
        }
        self.taken = taken;
        self.tail.wrapping_sub(taken) + lines <= size
    }

    /// Puts a packet into the lane; there must be room. `inline` returns words of
    /// the inline bytes by their number.
    #[inline(always)]
    pub fn push(&mut self, packet: &Packet, load: PacketLoad, inline: impl Fn(usize) -> u64) {
        let lines = packet.lines();
        let words = match load {
            PacketLoad::Inline(_) => usize::from(packet.count).div_ceil(8),
            PacketLoad::Empty | PacketLoad::Offer(_) => 0,
        };
        mutate!("msg_head_first": {} =>
            self.stamp(self.tail, packet.head(), Ordering::Release));
        if lines > 1 {
            // All lines are fetched at once: by stores they would come one by
            // one.
            (0..lines).for_each(|line| self.fetch(self.tail.wrapping_add(line)));
        }
        for line in 1..lines {
            let start = FIRST_WORDS + (line as usize - 1) * LINE_WORDS;
            let end = (start + LINE_WORDS).min(words);
            self.line(self.tail.wrapping_add(line)).words.with_mut(|cell| {
                for (index, word) in (start..end).enumerate() {
                    // SAFETY: the line is free, so the sender alone accesses it.
                    unsafe { (*cell)[index] = inline(word) };
                }
            });
            // Relaxed: the first line is stamped after this line, with Release.
            self.stamp(self.tail.wrapping_add(line), 0, Ordering::Relaxed);
        }
        self.line(self.tail).words.with_mut(|cell| {
            // SAFETY: the first line is free, too.
            let first = unsafe { &mut *cell };
            first[0] = u64::from(packet.tag) | u64::from(packet.id) << 32;
            match load {
                PacketLoad::Inline(_) => {
                    for word in 0..FIRST_WORDS {
                        if word >= words {
                            break;
                        }
                        first[3 + word] = inline(word);
                    }
                }
                PacketLoad::Empty => (first[1], first[2]) = (packet.a, packet.b),
                PacketLoad::Offer(offer) => {
                    (first[1], first[2]) = (packet.a, packet.b);
                    first[3..].copy_from_slice(&offer.to_words());
                }
            }
        });
        // Release: pairs with the Acquire in `peek`.
        let order = mutate!("msg_stamp_relaxed": Ordering::Release => Ordering::Relaxed);
        mutate!("msg_head_first": self.stamp(self.tail, packet.head(), order) => ());
        self.tail = self.tail.wrapping_add(lines);
    }

    /// Prefetches a line that later packets will need, because the sender writes
    /// several in a row. The receiver does not look at that line before the
    /// packets come.
    #[inline(always)]
    pub fn fetch_ahead(&self) {
        self.fetch(self.tail.wrapping_add(AHEAD));
    }

    /// Prefetches a line that is written soon.
    #[inline(always)]
    fn fetch(&self, position: u32) {
        let ahead: *const LaneLine = self.line(position);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a hint, valid for any address; processors without it do
        // nothing.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) ahead, options(nostack, preserves_flags));
        }
        let _ = ahead;
    }

    /// Returns the counts that the receiver has returned last.
    pub fn returned(&self) -> Returned {
        // Acquire: pairs with `give_back`: what the receiver did before is seen,
        // above all its packets to this rank.
        let taken = self.lane.returned.taken.load(Ordering::Acquire);
        // Acquire: the receiver has read the slots that it returns.
        let matched = self.lane.returned.matched.load(Ordering::Acquire);
        Returned {
            lines: (taken >> 32) as u32,
            taken: taken as u32,
            matched: (matched >> 32) as u32,
            slots: matched as u32,
        }
    }

    /// Requests more than was returned. Counts that the receiver returned before
    /// it could see the request are visible to the sender after this call.
    pub fn set_starved(&mut self) {
        self.asked += 1;
        self.lane.need.asked.store(self.asked, Ordering::Relaxed);
        // SeqCst: pairs with the fence of the receiver before it rests: one of the
        // two sees what the other wrote before its fence. A weaker order would let
        // both miss it.
        mutate!("msg_starved_unfenced": fence(Ordering::SeqCst) => ());
    }

    #[inline(always)]
    fn line(&self, position: u32) -> &'m LaneLine {
        line(self.lane.lines, position)
    }

    #[inline(always)]
    fn stamp(&self, position: u32, head: u64, order: Ordering) {
        self.line(position).head.store(head | stamp(self.lap_bits, position), order);
    }
}

impl<'m> LaneReceiver<'m> {
    /// Makes the receiving end of a lane that was never used.
    ///
    /// # Panics
    ///
    /// If the number of lines is no power of two.
    ///
    /// # Safety
    ///
    /// This is the only receiving end of this lane, ever.
    pub const unsafe fn new(lane: Lane<'m>) -> Self {
        let lap_bits = lap_bits(lane.lines);
        Self { lane, lap_bits, head: 0, told: 0, lines: 0, answered: 0 }
    }

    /// Returns the word on which both sides claim the parts of a message to copy.
    pub const fn split(&self) -> &'m Split {
        &self.lane.need.split
    }

    /// Returns the next packet; it stays in the lane. A line with an invalid
    /// packet looks like an empty line.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<Packet> {
        let line = self.line(0);
        // Acquire: pairs with the stamp in `push`.
        let head = line.head.load(Ordering::Acquire);
        if head as u32 != stamp(self.lap_bits, self.head) as u32 {
            return None;
        }
        let packet = line.words.with(|cell| {
            // SAFETY: the line is stamped, so the receiver alone accesses it
            // until it gives the line back.
            let words = unsafe { &*cell };
            Packet::from_words(head, words[0], words[1], words[2])
        })?;
        self.lines = packet.lines();
        Some(packet)
    }

    /// Calls `each` for the first `words` inline words of the packet that was
    /// looked at.
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

    /// Does the same for the words in the further lines.
    fn inline_more(&self, words: usize, mut each: impl FnMut(usize, u64)) {
        for line in 1.. {
            let start = FIRST_WORDS + (line - 1) * LINE_WORDS;
            if start >= words {
                break;
            }
            self.line(line as u32).words.with(|cell| {
                // SAFETY: the first line was stamped after this line, and both
                // are given back together.
                let more = unsafe { &*cell };
                for word in start..words.min(start + LINE_WORDS) {
                    each(word, more[word - start]);
                }
            });
        }
    }

    /// Returns the offer that is in the packet.
    #[inline]
    pub fn offer(&self) -> Offer {
        self.line(0).words.with(|cell| {
            // SAFETY: as in `peek`.
            let [_, _, _, words @ ..] = unsafe { *cell };
            Offer::from_words(words)
        })
    }

    /// Takes the packet that was looked at out of the lane.
    #[inline(always)]
    pub fn pop(&mut self) {
        self.head = self.head.wrapping_add(core::mem::take(&mut self.lines));
    }

    /// Returns how many lines were taken, ever; wraps.
    #[inline(always)]
    pub fn taken(&self) -> u32 {
        self.head
    }

    /// Returns how many lines were taken and not given back.
    #[inline(always)]
    pub fn untold(&self) -> u32 {
        self.head.wrapping_sub(self.told)
    }

    /// Gives these lines back, and returns `returned` to the sender. Returns
    /// whether the sender had requested more; this call answers the request.
    pub fn give_back(&mut self, returned: Returned) -> bool {
        // The stores below answer all requests that this load sees.
        let asked = self.lane.need.asked.load(Ordering::Relaxed);
        let was_starved = core::mem::replace(&mut self.answered, asked) != asked;
        self.told = self.head;
        let taken = u64::from(self.head) << 32 | u64::from(returned.taken);
        let matched = u64::from(returned.matched) << 32 | u64::from(returned.slots);
        // Release: pairs with the Acquire in `returned`: the slots were read.
        let order = mutate!("msg_slots_relaxed": Ordering::Release => Ordering::Relaxed);
        self.lane.returned.matched.store(matched, order);
        // Release: pairs with the Acquire in `has_room` and `returned`: the
        // receiver has read the lines, and all packets that it pushed before are
        // in its lane to the sender.
        let order = mutate!("msg_return_relaxed": Ordering::Release => Ordering::Relaxed);
        self.lane.returned.taken.store(taken, order);
        was_starved
    }

    /// Returns whether the sender has requested more since the last answer.
    #[inline(always)]
    pub fn is_starved(&self) -> bool {
        self.lane.need.asked.load(Ordering::Relaxed) != self.answered
    }

    /// To be called between the last `give_back` and the last look at
    /// `is_starved` before a rest.
    pub fn fence() {
        // SeqCst: pairs with the fence in `set_starved`.
        mutate!("msg_rest_unfenced": fence(Ordering::SeqCst) => ());
    }

    #[inline(always)]
    fn line(&self, after: u32) -> &'m LaneLine {
        line(self.lane.lines, self.head.wrapping_add(after))
    }
}

#[inline(always)]
fn line(lines: &[LaneLine], position: u32) -> &LaneLine {
    // SAFETY: the masked index is below the number of lines, which is a power of
    // two.
    unsafe { lines.get_unchecked(position as usize & (lines.len() - 1)) }
}

/// Returns the number of bits of a position that select the line; the other bits
/// select the lap.
const fn lap_bits(lines: &[LaneLine]) -> u32 {
    assert!(lines.len().is_power_of_two(), "the number of lines of a lane must be a power of two");
    lines.len().trailing_zeros()
}

/// Returns the lap, from 1 on: a position's stamp differs from the stamp one lap
/// before, even where positions wrap.
#[inline(always)]
fn stamp(lap_bits: u32, position: u32) -> u64 {
    u64::from(position >> lap_bits) + 1
}

/// How far ahead of the next packet the sender prefetches, in lines.
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
#[allow(unsafe_code)]
mod tests;
