//! One rank and a scripted wire: the test plays its peers, and the wire records
//! each call of the machine.

use super::*;
use crate::mem::LocalRank;
use crate::msg::locked_matching::Board;
use crate::msg::tables::RequestState;
use std::collections::VecDeque;

/// A call of the machine on its wire.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Did {
    /// A packet, and the offer in it.
    Pushed(u32, Packet, Option<Offer>),
    /// A message in its packet: its length and tag.
    Inline(u32, u8, u32),
    Popped(u32),
    Told(u32, Returned),
    Rang(u32),
    Asked(u32),
    Fenced,
    /// The other rank, slots, address, length.
    Wrote(u32, u32, u64, u64),
    Read(u32, u32, u64, u64),
    /// Address and length.
    Delivered(u64, u64),
    DeliveredKept(u64, u64),
    Copied(Copy),
    Hinted(u64, u64),
    Opened(u32, SplitSide, u32),
}

/// The scripted lanes of rank 0 and of its peers.
pub(super) struct Script {
    pub(super) came: Vec<VecDeque<(Packet, Option<Offer>)>>,
    /// Lines that are free on the way to each.
    pub(super) room: Vec<u32>,
    pub(super) returned: Vec<Returned>,
    pub(super) untold: Vec<u32>,
    pub(super) starved: Vec<bool>,
    /// Whether the word of each lane is free for a message that both sides copy.
    pub(super) split_is_free: bool,
    /// How often the returned counts of a peer were read; whether one line more
    /// has been returned each time.
    pub(super) looks: u32,
    pub(super) is_restless: bool,
    /// The counts that a peer returns as soon as the machine requests room.
    pub(super) on_asked: Option<Returned>,
    /// A rank that requests room just before the machine looks for requests last.
    pub(super) asks_late: Option<usize>,
    /// The own board: messages by lane are taken under its lock.
    pub(super) board: Option<Board<'static>>,
    did: Vec<Did>,
}

/// A machine on a scripted wire.
pub(super) struct One {
    pub(super) machine: MessageMachine<'static>,
    pub(super) wire: Script,
}

/// Rank 0 and two other ranks.
pub(super) const OF_THREE: MessageShape = MessageShape { peers: 3, ..SHAPE };

fn tables(shape: MessageShape, requests: usize, unexpected: usize) -> MessageTables<'static> {
    MessageTables {
        peers: Vec::leak(vec![MessagePeer::EMPTY; shape.peers as usize]),
        requests: Vec::leak(vec![RequestEntry::EMPTY; requests]),
        unexpected: Vec::leak(vec![UnexpectedMessage::EMPTY; unexpected]),
        log: Vec::leak(vec![LoggedMessage::EMPTY; shape.log()]),
        mirror: Vec::leak(vec![MirroredOffer::EMPTY; shape.mirrored()]),
    }
}

impl One {
    pub(super) fn new(design: MatchingDesign) -> Self {
        Self::with(design, OF_THREE, REQUESTS)
    }

    pub(super) fn with(design: MatchingDesign, shape: MessageShape, requests: usize) -> Self {
        let tables = tables(shape, requests, shape.unexpected());
        let machine =
            MessageMachine::new(LocalRank(0), shape, design, Thresholds::DEFAULT, tables).unwrap();
        let peers = shape.peers as usize;
        let wire = Script {
            came: vec![VecDeque::new(); peers],
            room: vec![shape.lines; peers],
            returned: vec![Returned::default(); peers],
            untold: vec![0; peers],
            starved: vec![false; peers],
            split_is_free: false,
            looks: 0,
            is_restless: false,
            on_asked: None,
            asks_late: None,
            board: None,
            did: Vec::new(),
        };
        Self { machine, wire }
    }

    /// Makes the machine's tables longer, for that shape and so many unexpected messages.
    pub(super) fn grow(&mut self, shape: MessageShape, unexpected: usize) {
        let requests = self.machine.requests();
        self.machine.grow(tables(shape, requests, unexpected)).unwrap();
    }

    pub(super) fn thresholds(&mut self, peer: usize) -> &mut Thresholds {
        &mut self.machine.tables.peers[peer].thresholds
    }

    pub(super) fn peer(&self, rank: usize) -> &MessagePeer {
        &self.machine.tables.peers[rank]
    }

    pub(super) fn entry(&self, request: RequestId) -> &RequestEntry {
        &self.machine.tables.requests[request.index as usize]
    }

    pub(super) fn id(&self, request: RequestId) -> u32 {
        self.machine.id(request.index as usize)
    }

    pub(super) fn send(&mut self, to: u32, tag: u32, bytes: MessageBytes) -> Begun<()> {
        self.machine.send(&mut self.wire, PeerIndex(to), Label { context: 0, tag }, bytes).unwrap()
    }

    pub(super) fn receive(
        &mut self,
        source: Option<u32>,
        tag: Option<u32>,
        into: MessageBytes,
    ) -> Begun<ReceivedMessage> {
        let pattern = Pattern { context: 0, source: source.map(PeerIndex), tag };
        self.machine.receive(&mut self.wire, pattern, into).unwrap()
    }

    /// A receive that has no message yet.
    pub(super) fn post(
        &mut self,
        source: Option<u32>,
        tag: Option<u32>,
        into: MessageBytes,
    ) -> RequestId {
        self.receive(source, tag, into).pending().expect("no message is there")
    }

    /// A packet that the machine finds when it looks next.
    pub(super) fn comes(&mut self, from: usize, packet: Packet) {
        self.wire.came[from].push_back((packet, None));
    }

    pub(super) fn comes_inline(&mut self, from: usize, tag: u32, len: u8) {
        self.comes(from, Packet { count: len, tag, ..Packet::new(PacketKind::Inline) });
    }

    /// A peer offers a receive for one of its tags.
    pub(super) fn is_offered(&mut self, from: usize, id: u32, tag: u32, into: MessageBytes) {
        let at = into.in_reach.then_some(into.at);
        let offer = Offer { id, taken: 0, context: 0, tag: Some(tag), at, room: into.len };
        let packet = Packet { count: Packet::OFFER, ..Packet::new(PacketKind::Post) };
        self.wire.came[from].push_back((packet, Some(offer)));
        self.look(from as u32);
        self.did();
    }

    pub(super) fn advance(&mut self) -> bool {
        self.machine.advance(&mut self.wire)
    }

    pub(super) fn look(&mut self, from: u32) -> bool {
        self.machine.look(&mut self.wire, PeerIndex(from))
    }

    pub(super) fn rest(&mut self) -> bool {
        self.machine.rest(&mut self.wire)
    }

    pub(super) fn done(&mut self, job: CopyJob, result: Result<(), RequestError>) {
        self.machine.job_done(&mut self.wire, job.request, result);
    }

    pub(super) fn lose(&mut self, rank: u32) {
        self.machine.lost(&mut self.wire, PeerIndex(rank));
    }

    /// The calls since this was called last, except taken packets.
    pub(super) fn did(&mut self) -> Vec<Did> {
        let mut did = std::mem::take(&mut self.wire.did);
        did.retain(|did| !matches!(did, Did::Popped(_)));
        did
    }

    /// How many packets were taken from each since this was called last.
    pub(super) fn popped(&mut self) -> Vec<usize> {
        let did = std::mem::take(&mut self.wire.did);
        let of = |rank| did.iter().filter(|did| **did == Did::Popped(rank)).count();
        (0..self.wire.came.len() as u32).map(of).collect()
    }

    /// Kinds of the packets pushed since this was called last.
    pub(super) fn pushed(&mut self) -> Vec<PacketKind> {
        let did = std::mem::take(&mut self.wire.did);
        let kinds = did.into_iter().filter_map(|did| match did {
            Did::Pushed(_, packet, _) => Some(packet.kind),
            Did::Inline(..) => Some(PacketKind::Inline),
            _ => None,
        });
        kinds.collect()
    }

    pub(super) fn take(
        &mut self,
        request: RequestId,
    ) -> Option<Result<ReceivedMessage, RequestError>> {
        self.machine.take(request)
    }

    /// Requests that are neither free nor waiting to be taken.
    pub(super) fn open(&self) -> usize {
        let entries = self.machine.tables.requests.iter();
        entries
            .filter(|entry| !matches!(entry.state, RequestState::Free | RequestState::Ended))
            .count()
    }
}

/// A buffer that the wire of a test never touches.
pub(super) const fn at(at: u64, len: u64) -> MessageBytes {
    MessageBytes { at, len, in_reach: true }
}

/// A buffer as `at`, which no peer can reach.
pub(super) const fn apart(at: u64, len: u64) -> MessageBytes {
    MessageBytes { at, len, in_reach: false }
}

impl Script {
    fn is_under_lock(&self) -> bool {
        self.board.is_none_or(|board| {
            let was_free = board.try_lock(LocalRank(7));
            if was_free {
                board.unlock();
            }
            !was_free
        })
    }
}

impl LaneTransport for Script {
    fn has_room(&mut self, to: PeerIndex, lines: u32) -> bool {
        self.room[to.0 as usize] >= lines
    }

    fn push(&mut self, to: PeerIndex, packet: &Packet, load: PacketLoad) {
        assert!(self.room[to.0 as usize] >= packet.lines(), "no room for {packet:?}");
        self.room[to.0 as usize] -= packet.lines();
        self.did.push(match load {
            PacketLoad::Inline(_) => Did::Inline(to.0, packet.count, packet.tag),
            PacketLoad::Empty => Did::Pushed(to.0, *packet, None),
            PacketLoad::Offer(offer) => Did::Pushed(to.0, *packet, Some(offer)),
        });
    }

    fn peek(&mut self, from: PeerIndex) -> Option<Packet> {
        self.came[from.0 as usize].front().map(|(packet, _)| *packet)
    }

    fn deliver(&mut self, _from: PeerIndex, at: u64, len: u64) {
        assert!(self.is_under_lock());
        self.did.push(Did::Delivered(at, len));
    }

    fn keep(&mut self, from: PeerIndex, into: &mut [u64; INLINE_WORDS]) {
        assert!(self.is_under_lock());
        into[0] = self.peek(from).map_or(0, |packet| u64::from(packet.tag));
    }

    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        assert_ne!(kept[0], 0, "no slot was written");
        self.did.push(Did::DeliveredKept(at, len));
    }

    fn offer(&mut self, from: PeerIndex) -> Offer {
        self.came[from.0 as usize].front().and_then(|(_, offer)| *offer).expect("an offer rides")
    }

    fn pop(&mut self, from: PeerIndex) {
        self.came[from.0 as usize].pop_front().expect("a packet is there");
        self.untold[from.0 as usize] += 1;
        self.did.push(Did::Popped(from.0));
    }

    fn returned(&mut self, to: PeerIndex) -> Returned {
        self.looks += 1;
        self.returned[to.0 as usize].lines += u32::from(self.is_restless);
        self.returned[to.0 as usize]
    }

    fn give_back(&mut self, from: PeerIndex, returned: Returned) -> bool {
        self.untold[from.0 as usize] = 0;
        self.did.push(Did::Told(from.0, returned));
        std::mem::take(&mut self.starved[from.0 as usize])
    }

    fn untold(&mut self, from: PeerIndex) -> u32 {
        self.untold[from.0 as usize]
    }

    fn set_starved(&mut self, to: PeerIndex) {
        self.did.push(Did::Asked(to.0));
        if let Some(returned) = self.on_asked.take() {
            self.returned[to.0 as usize] = returned;
        }
    }

    fn is_starved(&mut self, from: PeerIndex) -> bool {
        self.starved[from.0 as usize]
    }

    fn fence(&mut self) {
        self.did.push(Did::Fenced);
        if let Some(rank) = self.asks_late.take() {
            self.starved[rank] = true;
        }
    }

    fn ring(&mut self, from: PeerIndex) {
        self.did.push(Did::Rang(from.0));
    }

    fn write_slots(&mut self, to: PeerIndex, slots: u32, at: u64, len: u64) {
        self.did.push(Did::Wrote(to.0, slots, at, len));
    }

    fn read_slots(&mut self, from: PeerIndex, slots: u32, at: u64, len: u64) {
        self.did.push(Did::Read(from.0, slots, at, len));
    }

    fn copy(&mut self, copy: &Copy) {
        self.did.push(Did::Copied(*copy));
    }

    fn split_to(&mut self, to: PeerIndex, id: u32) -> bool {
        self.did.push(Did::Opened(to.0, SplitSide::Sender, id));
        self.split_is_free
    }

    fn split_from(&mut self, from: PeerIndex, id: u32) -> bool {
        self.did.push(Did::Opened(from.0, SplitSide::Receiver, id));
        self.split_is_free
    }

    fn come(&mut self, at: u64, len: u64) {
        self.did.push(Did::Hinted(at, len));
    }
}
