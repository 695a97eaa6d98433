//! Lanes, slots and memory of a few ranks, for machines of messages: a rank sees another rank's
//! writes in their order, but late.
//!
//! The writes of a rank for another (packets, returned counts, requests for room) are numbered;
//! the number up to which the reader sees them advances when the reader looks, by as much as the
//! seed draws. Therefore the lane, the lane back and the return line overtake each other in
//! every way that memory allows. Ranks of different nodes have parcels instead: see `post`.

use super::post::{Own, PLACE, Post};
use std::collections::VecDeque;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::msg::{
    Copy, INLINE_WORDS, LaneTransport, MessageShape, NetworkLanes, Offer, Packet, PacketLoad,
    Returned, Split, SplitSide,
};

/// All connections between the ranks.
pub struct Net<'m> {
    pub shape: MessageShape,
    pub seeded: Seeded,
    /// The number of looks, out of 8, that see more than the look before.
    pub sight: u64,
    /// Each rank's memory.
    pub memory: Vec<Vec<u8>>,
    /// The ranks that were rung or got a packet since they last looked.
    pub bells: Vec<bool>,
    /// The connections between nodes.
    pub post: Post<'m>,
    /// Indexed by writer, then reader.
    ways: Vec<Vec<Way>>,
    splits: Vec<Vec<Split>>,
}

/// The connection from one rank to another.
#[derive(Default)]
struct Way {
    written: u64,
    seen: u64,
    // The lane and the receiver's progress.
    packets: VecDeque<(u64, Packet, Freight)>,
    pushed: u32,
    popped: u32,
    told: u32,
    slots: Vec<u8>,
    // The counts that the writer returns for the lane back, and its requests for this lane.
    returned: VecDeque<(u64, u32, Returned)>,
    asked: VecDeque<u64>,
    answered: usize,
}

enum Freight {
    Nothing,
    Bytes(Vec<u8>),
    Offer(Offer),
}

/// The network as one rank sees it.
pub struct At<'n, 'm> {
    pub net: &'n mut Net<'m>,
    pub me: usize,
}

/// The address of a byte, made of its rank, whether it is in reach, and its offset.
pub fn address(rank: usize, in_reach: bool, offset: usize) -> u64 {
    (rank as u64) << 32 | u64::from(in_reach) << 31 | offset as u64
}

impl<'m> Net<'m> {
    pub fn new(shape: MessageShape, post: Post<'m>, seed: u64) -> Self {
        let ranks = shape.peers as usize;
        let slots = (shape.slots * shape.slot_bytes) as usize;
        let way = || Way {
            slots: vec![0; slots],
            returned: VecDeque::from([(0, 0, Returned::default())]),
            ..Way::default()
        };
        Self {
            shape,
            seeded: Seeded(seed),
            sight: 4,
            memory: vec![Vec::new(); ranks],
            bells: vec![false; ranks],
            post,
            ways: (0..ranks).map(|_| (0..ranks).map(|_| way()).collect()).collect(),
            splits: (0..ranks).map(|_| (0..ranks).map(|_| Split::new()).collect()).collect(),
        }
    }

    /// Lets a rank see all writes of another.
    pub fn see_all(&mut self, from: usize, me: usize) {
        let way = &mut self.ways[from][me];
        way.seen = way.written;
    }

    /// Whether a packet lies in a lane to that rank.
    pub fn has_mail(&self, me: usize) -> bool {
        self.ways.iter().any(|from| !from[me].packets.is_empty())
    }

    /// Sends waiting parcels of a rank, if the network takes them, and delivers some of those for
    /// it. Returns whether any was delivered or waits.
    pub fn carry(&mut self, me: usize) -> bool {
        if self.post.carry(me, &mut self.seeded) {
            self.bells[me] = true;
            return true;
        }
        self.post.has_unsent(me)
    }

    /// The word of the lane to a peer, or from it.
    pub fn split(&self, me: usize, peer: PeerIndex, side: SplitSide) -> &Split {
        match side {
            SplitSide::Sender => &self.splits[me][peer.0 as usize],
            SplitSide::Receiver => &self.splits[peer.0 as usize][me],
        }
    }

    /// Carries out a copy, of a rank, between its buffer and one in reach.
    pub fn copy(&mut self, me: usize, copy: &Copy) {
        let mut copy = *copy;
        if self.post.is_far(me, copy.peer) {
            copy.from ^= PLACE;
            assert_eq!((copy.to >> 32) as usize, me, "{copy:?} by {me} is out of the node");
        }
        for at in [copy.from, copy.to] {
            let owner = (at >> 32) as usize;
            assert!(owner == me || owner == copy.peer.0 as usize, "{copy:?} by {me}");
            let in_reach = owner == me || at >> 31 & 1 == 1;
            assert!(in_reach || copy.by_kernel, "{copy:?} by {me} is out of reach");
        }
        let bytes = self.bytes(copy.from, copy.len).to_vec();
        self.bytes(copy.to, copy.len).copy_from_slice(&bytes);
    }

    pub fn bytes(&mut self, at: u64, len: u64) -> &mut [u8] {
        let start = (at & 0x7fff_ffff) as usize;
        &mut self.memory[(at >> 32) as usize][start..start + len as usize]
    }
}

impl<'m> At<'_, 'm> {
    fn is_far(&self, rank: PeerIndex) -> bool {
        self.net.post.is_far(self.me, rank)
    }

    fn mail(&mut self) -> &mut NetworkLanes<'m> {
        self.net.post.mail(self.me)
    }

    /// The lanes to other nodes, and this rank's memory.
    fn mail_and_own(&mut self) -> (&mut NetworkLanes<'m>, Own<'_>) {
        let Net { post, memory, .. } = &mut *self.net;
        let fetches = post.fetches();
        (post.mail(self.me), Own { memory: &mut memory[self.me], me: self.me, fetches })
    }

    /// The writes of `from` for this rank, after another look at them.
    fn look(&mut self, from: PeerIndex) -> &mut Way {
        let (draw, sight) = (self.net.seeded.next(), self.net.sight);
        let way = &mut self.net.ways[from.0 as usize][self.me];
        if draw % 8 < sight {
            let more = way.written - way.seen;
            way.seen += if sight == 8 { more } else { (draw >> 32) % (more + 1) };
        }
        way
    }

    fn write(&mut self, to: PeerIndex) -> (&mut Way, u64) {
        let way = &mut self.net.ways[self.me][to.0 as usize];
        way.written += 1;
        let number = way.written;
        (way, number)
    }

    fn slots(&self, slots: u32, len: u64) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let size = self.net.shape.slot_bytes as usize;
        let each = (0..32).filter(move |slot| slots >> slot & 1 == 1).enumerate();
        let len = len as usize;
        each.map(move |(number, slot)| (slot as usize * size, number * size))
            .take_while(move |(_, at)| *at < len)
            .map(move |(slot, at)| (slot, at, size.min(len - at)))
    }
}

impl LaneTransport for At<'_, '_> {
    fn has_room(&mut self, to: PeerIndex, lines: u32) -> bool {
        if self.is_far(to) {
            return self.mail().has_room(to, lines);
        }
        let size = self.net.shape.lines;
        let seen = self.look(to).seen;
        let back = &mut self.net.ways[to.0 as usize][self.me];
        while back.returned.len() > 1 && back.returned[1].0 <= seen {
            back.returned.pop_front();
        }
        let taken = back.returned[0].1;
        let pushed = self.net.ways[self.me][to.0 as usize].pushed;
        pushed + lines - taken <= size
    }

    fn push(&mut self, to: PeerIndex, packet: &Packet, load: PacketLoad) {
        if self.is_far(to) {
            let (mail, mut own) = self.mail_and_own();
            return mail.push(to, packet, load, &mut own);
        }
        let freight = match load {
            PacketLoad::Empty => Freight::Nothing,
            PacketLoad::Inline(at) => {
                Freight::Bytes(self.net.bytes(at, packet.count.into()).to_vec())
            }
            PacketLoad::Offer(offer) => Freight::Offer(offer),
        };
        let size = self.net.shape.lines;
        let (way, number) = self.write(to);
        way.pushed += packet.lines();
        way.packets.push_back((number, *packet, freight));
        assert!(way.pushed - way.told <= size, "the lane to {to} is run over");
        self.net.bells[to.0 as usize] = true;
    }

    fn peek(&mut self, from: PeerIndex) -> Option<Packet> {
        if self.is_far(from) {
            return self.mail().peek(from);
        }
        let way = self.look(from);
        let (number, packet, _) = way.packets.front()?;
        (*number <= way.seen).then_some(*packet)
    }

    fn deliver(&mut self, from: PeerIndex, at: u64, len: u64) {
        if self.is_far(from) {
            let (mail, mut own) = self.mail_and_own();
            return mail.deliver(from, at, len, &mut own);
        }
        let way = &self.net.ways[from.0 as usize][self.me];
        let Some((_, _, Freight::Bytes(bytes))) = way.packets.front() else { panic!("no bytes") };
        let bytes = bytes[..len as usize].to_vec();
        self.net.bytes(at, len).copy_from_slice(&bytes);
    }

    fn keep(&mut self, from: PeerIndex, into: &mut [u64; INLINE_WORDS]) {
        if self.is_far(from) {
            return self.mail().keep(from, into);
        }
        let way = &self.net.ways[from.0 as usize][self.me];
        let Some((_, _, Freight::Bytes(bytes))) = way.packets.front() else { panic!("no bytes") };
        for (word, bytes) in into.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
    }

    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        let bytes: Vec<u8> = kept.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.net.bytes(at, len).copy_from_slice(&bytes[..len as usize]);
    }

    fn offer(&mut self, from: PeerIndex) -> Offer {
        if self.is_far(from) {
            return self.mail().offer(from);
        }
        let way = &self.net.ways[from.0 as usize][self.me];
        let Some((_, _, Freight::Offer(offer))) = way.packets.front() else { panic!("no offer") };
        *offer
    }

    fn pop(&mut self, from: PeerIndex) {
        if self.is_far(from) {
            return self.mail().pop(from);
        }
        let way = &mut self.net.ways[from.0 as usize][self.me];
        let (_, packet, _) = way.packets.pop_front().expect("it was seen");
        way.popped += packet.lines();
    }

    fn returned(&mut self, to: PeerIndex) -> Returned {
        if self.is_far(to) {
            return self.mail().returned(to);
        }
        self.has_room(to, 0);
        self.net.ways[to.0 as usize][self.me].returned[0].2
    }

    fn give_back(&mut self, from: PeerIndex, returned: Returned) -> bool {
        if self.is_far(from) {
            return self.mail().give_back(from, returned);
        }
        let was_answered = self.look(from).answered;
        let lane = &mut self.net.ways[from.0 as usize][self.me];
        lane.told = lane.popped;
        lane.answered = lane.asked.iter().filter(|number| **number <= lane.seen).count();
        let (told, was_starved) = (lane.told, lane.answered > was_answered);
        let (way, number) = self.write(from);
        way.returned.push_back((number, told, Returned { lines: told, ..returned }));
        was_starved
    }

    fn untold(&mut self, from: PeerIndex) -> u32 {
        if self.is_far(from) {
            return self.mail().untold(from);
        }
        let lane = &self.net.ways[from.0 as usize][self.me];
        lane.popped - lane.told
    }

    fn set_starved(&mut self, to: PeerIndex) {
        if self.is_far(to) {
            return self.mail().set_starved(to);
        }
        let (way, number) = self.write(to);
        way.asked.push_back(number);
        self.net.bells[to.0 as usize] = true;
        self.net.see_all(to.0 as usize, self.me);
    }

    fn is_starved(&mut self, from: PeerIndex) -> bool {
        if self.is_far(from) {
            return self.mail().is_starved(from);
        }
        let way = self.look(from);
        way.asked.iter().filter(|number| **number <= way.seen).count() > way.answered
    }

    fn fence(&mut self) {
        for from in 0..self.net.ways.len() {
            self.net.see_all(from, self.me);
        }
    }

    fn ring(&mut self, from: PeerIndex) {
        if self.is_far(from) {
            // The peer will see the packets that are under way.
            return;
        }
        self.net.bells[from.0 as usize] = true;
    }

    fn write_slots(&mut self, to: PeerIndex, slots: u32, at: u64, len: u64) {
        if self.is_far(to) {
            let (mail, mut own) = self.mail_and_own();
            return mail.write_slots(to, slots, at, len, &mut own);
        }
        for (slot, at_message, len) in self.slots(slots, len) {
            let bytes = self.net.bytes(at + at_message as u64, len as u64).to_vec();
            self.net.ways[self.me][to.0 as usize].slots[slot..slot + len].copy_from_slice(&bytes);
        }
    }

    fn read_slots(&mut self, from: PeerIndex, slots: u32, at: u64, len: u64) {
        if self.is_far(from) {
            let (mail, mut own) = self.mail_and_own();
            return mail.read_slots(from, slots, at, len, &mut own);
        }
        for (slot, at_message, len) in self.slots(slots, len) {
            let way = &self.net.ways[from.0 as usize][self.me];
            let bytes = way.slots[slot..slot + len].to_vec();
            self.net.bytes(at + at_message as u64, len as u64).copy_from_slice(&bytes);
        }
    }

    fn split_to(&mut self, to: PeerIndex, id: u32) -> bool {
        !self.is_far(to) && self.net.split(self.me, to, SplitSide::Sender).open(id)
    }

    fn split_from(&mut self, from: PeerIndex, id: u32) -> bool {
        !self.is_far(from) && self.net.split(self.me, from, SplitSide::Receiver).open(id)
    }

    fn copy(&mut self, copy: &Copy) {
        self.net.copy(self.me, copy);
    }
}
