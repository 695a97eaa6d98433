//! Lanes, slots, return lines and memory without bytes: a buffer holds the name of a message.
//! Pushed packets are seen when a test decides so.

use crate::program::{Message, PeerIndex};
use crate::search::mix;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tsumugi_core::mem;
use tsumugi_core::msg::{
    Copy, INLINE_WORDS, LaneTransport, Offer, Packet, PacketLoad, Returned, Split, SplitSide,
};

/// The lanes and the memory between the ranks.
#[derive(Default)]
pub struct Net {
    /// Indexed by sender, then receiver.
    pub lanes: [[Lane; 3]; 3],
    /// Indexed by receiver, then sender.
    back: [[Back; 3]; 3],
    slots: BTreeMap<(PeerIndex, PeerIndex, u32), Message>,
    /// What the buffers of receives hold, by address.
    buffers: BTreeMap<u64, Content>,
    /// The parts that each side copies of a message that both copy: by sender, then receiver.
    splits: [[Split; 3]; 3],
    /// A digest of all inputs and outputs of each rank.
    pub digests: [u64; 3],
    /// The first rule that was broken.
    pub broken: Option<String>,
    /// Buffers that have been returned to their owners.
    pub closed: Vec<u64>,
}

/// The bytes of one message, as ranges; no two of these ranges overlap.
struct Content {
    message: Message,
    parts: BTreeMap<u64, u64>,
}

/// A lane: all packets that were ever pushed to it.
#[derive(Default)]
pub struct Lane {
    pub packets: Vec<(Packet, PacketLoad, Option<Message>)>,
    pub seen: usize,
    pub taken: usize,
    told: usize,
    starved: bool,
}

#[derive(Clone, Copy, Default)]
struct Back {
    returned: Returned,
    /// The number of packets of the other lane that were pushed before.
    pushed: usize,
    /// The state that the sender has read, and the length at which it found the lane empty.
    read: Returned,
    empty: Option<(usize, u32)>,
}

/// The wire of one rank.
pub struct End<'n> {
    pub net: &'n RefCell<Net>,
    pub rank: PeerIndex,
}

/// The address of a message's bytes at its sender.
pub const fn address_of_message(message: Message) -> u64 {
    1 << 40 | (message as u64) << 20
}

/// The address of a receive's buffer.
pub const fn address_of_post(rank: PeerIndex, post: usize) -> u64 {
    2 << 40 | (rank as u64) << 32 | (post as u64) << 20
}

impl Net {
    /// The message whose bytes start at an address.
    fn at(&mut self, address: u64) -> Option<Message> {
        if self.closed.contains(&buffer(address)) {
            self.breaks(format!("bytes are read at {address:#x}, which is not in use any more"));
        }
        if buffer(address) >> 40 == 1 {
            return Some((address >> 20) as Message);
        }
        self.buffers.get(&buffer(address)).map(|content| content.message)
    }

    fn put(&mut self, address: u64, message: Option<Message>, len: u64) {
        let to = buffer(address);
        if self.closed.contains(&to) {
            self.breaks(format!("bytes are put to {to:#x}, which is not in use any more"));
        }
        let Some(message) = message else {
            return self.breaks(format!("bytes that were never written are put to {to:#x}"));
        };
        let part = address - to..address - to + len;
        let content = self.buffers.entry(to).or_insert(Content { message, parts: BTreeMap::new() });
        let before = content.parts.range(..part.end).next_back().map(|(_, end)| *end);
        if content.message != message || before.is_some_and(|end| end > part.start) {
            let Content { message: other, parts } = content;
            let what =
                format!("{part:?} of {message:#x} put over {parts:?} of {other:#x} in {to:#x}");
            return self.breaks(what);
        }
        content.parts.insert(part.start, part.end);
    }

    /// The message whose first bytes are in a buffer, and the number of its bytes up to the first
    /// gap.
    pub fn content(&self, address: u64) -> Option<(Message, u64)> {
        let content = self.buffers.get(&address)?;
        let parts = content.parts.iter();
        let len = parts.fold(0, |len, (from, to)| if *from == len { *to } else { len });
        Some((content.message, len))
    }

    /// The word that both sides of a message claim their parts on.
    pub fn split(&self, rank: PeerIndex, peer: mem::PeerIndex, side: SplitSide) -> &Split {
        let (rank, peer) = (usize::from(rank), peer.0 as usize);
        match side {
            SplitSide::Sender => &self.splits[rank][peer],
            SplitSide::Receiver => &self.splits[peer][rank],
        }
    }

    fn open_split(
        &mut self,
        rank: PeerIndex,
        peer: mem::PeerIndex,
        side: SplitSide,
        id: u32,
    ) -> bool {
        let is_open = self.split(rank, peer, side).open(id);
        self.told(rank, &[u64::from(id), u64::from(is_open)]);
        is_open
    }

    fn breaks(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    /// Whether a rank could learn something by looking at its lanes and return lines, without any
    /// packet that it has not seen.
    pub fn has_news(&self, rank: PeerIndex) -> bool {
        (0..3).any(|peer| {
            let back = &self.back[peer][usize::from(rank)];
            let lane = &self.lanes[peer][usize::from(rank)];
            back.read != back.returned
                || lane.taken == lane.seen && back.empty != Some((lane.taken, back.read.taken))
        })
    }

    /// The part of the state that is not in the digests of the ranks.
    pub fn digest(&self) -> u64 {
        let mut digest = 0;
        for value in self.digests {
            mix(&mut digest, value);
        }
        for lane in self.lanes.iter().flatten() {
            mix(&mut digest, lane.seen as u64);
            mix(&mut digest, u64::from(lane.starved));
        }
        for (address, Content { message, parts }) in &self.buffers {
            mix(&mut digest, *address ^ u64::from(*message));
            parts.iter().for_each(|(from, to)| mix(&mut digest, from << 32 | to));
        }
        digest
    }

    /// Records an input or an output of a rank.
    pub fn told(&mut self, rank: PeerIndex, what: &[u64]) {
        for &word in what {
            mix(&mut self.digests[usize::from(rank)], word);
        }
    }
}

impl End<'_> {
    fn lane_from<R>(&self, from: mem::PeerIndex, with: impl FnOnce(&mut Lane) -> R) -> R {
        with(&mut self.net.borrow_mut().lanes[from.0 as usize][usize::from(self.rank)])
    }

    fn message(&self, from: mem::PeerIndex) -> Option<Message> {
        self.lane_from(from, |lane| lane.packets[lane.taken].2)
    }
}

impl LaneTransport for End<'_> {
    fn has_room(&mut self, _: mem::PeerIndex, _: u32) -> bool {
        true
    }

    fn push(&mut self, to: mem::PeerIndex, packet: &Packet, load: PacketLoad) {
        let mut net = self.net.borrow_mut();
        let message = match load {
            PacketLoad::Inline(at) => net.at(at),
            _ => None,
        };
        let Packet { kind, count, tag, id, a, b, .. } = *packet;
        let words = [kind as u64, u64::from(count), u64::from(tag) << 32 | u64::from(id), a, b];
        net.told(self.rank, &words);
        if let PacketLoad::Offer(offer) = load {
            net.told(self.rank, &[u64::from(offer.id), u64::from(offer.taken)]);
        }
        let lane = &mut net.lanes[usize::from(self.rank)][to.0 as usize];
        lane.packets.push((*packet, load, message));
    }

    fn peek(&mut self, from: mem::PeerIndex) -> Option<Packet> {
        let mut net = self.net.borrow_mut();
        let lane = &net.lanes[from.0 as usize][usize::from(self.rank)];
        if lane.taken < lane.seen {
            return Some(lane.packets[lane.taken].0);
        }
        let taken = lane.taken;
        let back = &mut net.back[from.0 as usize][usize::from(self.rank)];
        let empty = Some((taken, back.read.taken));
        if back.empty != empty {
            back.empty = empty;
            net.told(self.rank, &[u64::from(from.0), taken as u64]);
        }
        None
    }

    fn deliver(&mut self, from: mem::PeerIndex, at: u64, len: u64) {
        let message = self.message(from);
        self.net.borrow_mut().put(at, message, len);
    }

    fn keep(&mut self, from: mem::PeerIndex, into: &mut [u64; INLINE_WORDS]) {
        into[0] = u64::from(self.message(from).expect("an inline message"));
    }

    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        self.net.borrow_mut().put(at, Some(kept[0] as Message), len);
    }

    fn offer(&mut self, from: mem::PeerIndex) -> Offer {
        match self.lane_from(from, |lane| lane.packets[lane.taken].1) {
            PacketLoad::Offer(offer) => offer,
            load => panic!("no offer rides here: {load:?}"),
        }
    }

    fn pop(&mut self, from: mem::PeerIndex) {
        let taken = self.lane_from(from, |lane| {
            lane.taken += 1;
            lane.taken
        });
        let words = [u64::from(from.0), taken as u64];
        self.net.borrow_mut().told(self.rank, &words);
    }

    fn returned(&mut self, to: mem::PeerIndex) -> Returned {
        let mut net = self.net.borrow_mut();
        let Back { returned, pushed, read, .. } = net.back[to.0 as usize][usize::from(self.rank)];
        if returned != read {
            let words = [returned.taken, returned.matched, returned.slots].map(u64::from);
            net.told(self.rank, &words);
            net.back[to.0 as usize][usize::from(self.rank)].read = returned;
        }
        // All packets that the peer pushed before are seen, too.
        let lane = &mut net.lanes[to.0 as usize][usize::from(self.rank)];
        lane.seen = lane.seen.max(pushed);
        returned
    }

    fn give_back(&mut self, from: mem::PeerIndex, returned: Returned) -> bool {
        let mut net = self.net.borrow_mut();
        let pushed = net.lanes[usize::from(self.rank)][from.0 as usize].packets.len();
        let back = &mut net.back[usize::from(self.rank)][from.0 as usize];
        (back.returned, back.pushed) = (returned, pushed);
        let lane = &mut net.lanes[from.0 as usize][usize::from(self.rank)];
        lane.told = lane.taken;
        core::mem::take(&mut lane.starved)
    }

    fn untold(&mut self, from: mem::PeerIndex) -> u32 {
        self.lane_from(from, |lane| (lane.taken - lane.told) as u32)
    }

    fn set_starved(&mut self, to: mem::PeerIndex) {
        self.net.borrow_mut().lanes[usize::from(self.rank)][to.0 as usize].starved = true;
    }

    fn is_starved(&mut self, from: mem::PeerIndex) -> bool {
        self.lane_from(from, |lane| lane.starved)
    }

    fn fence(&mut self) {}

    fn ring(&mut self, _: mem::PeerIndex) {}

    fn write_slots(&mut self, to: mem::PeerIndex, slots: u32, at: u64, _: u64) {
        let mut net = self.net.borrow_mut();
        let message = net.at(at).expect("a message is written");
        for slot in (0..32).filter(|slot| slots >> slot & 1 == 1) {
            net.slots.insert((self.rank, to.0 as PeerIndex, slot), message);
        }
    }

    fn read_slots(&mut self, from: mem::PeerIndex, slots: u32, at: u64, len: u64) {
        let mut net = self.net.borrow_mut();
        let held = (0..32).filter(|slot| slots >> slot & 1 == 1);
        let key = |slot| (from.0 as PeerIndex, self.rank, slot);
        let found: Vec<_> = held.map(|slot| net.slots.get(&key(slot)).copied()).collect();
        if found.windows(2).any(|pair| pair[0] != pair[1]) {
            net.breaks(format!("slots of one message hold {found:x?}"));
        }
        net.put(at, found.first().copied().flatten(), len);
    }

    fn split_to(&mut self, to: mem::PeerIndex, id: u32) -> bool {
        self.net.borrow_mut().open_split(self.rank, to, SplitSide::Sender, id)
    }

    fn split_from(&mut self, from: mem::PeerIndex, id: u32) -> bool {
        self.net.borrow_mut().open_split(self.rank, from, SplitSide::Receiver, id)
    }

    fn copy(&mut self, copy: &Copy) {
        let mut net = self.net.borrow_mut();
        let message = net.at(copy.from);
        net.put(copy.to, message, copy.len);
    }
}

fn buffer(address: u64) -> u64 {
    address & !0xF_FFFF
}
