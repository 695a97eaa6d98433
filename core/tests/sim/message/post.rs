//! Parcels between nodes: each arrives once or never, in any order, and at some times the
//! network refuses parcels.

use super::job::Plan;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::msg::{
    Buffers, ChunkPlace, LaneChunk, MessageShape, NetworkLane, NetworkLaneEnd, NetworkLanes,
    PARCEL_BYTES_MIN,
};
use tsumugi_core::sync::mutant;

/// The connections between ranks of different nodes.
pub struct Post<'m> {
    mails: Vec<NetworkLanes<'m>>,
    /// The node of each rank.
    nodes: Vec<u64>,
    flying: Vec<Parcel>,
    bytes_max: usize,
    /// Whether bytes can be fetched from other nodes, and the number of fetches out of 8 that fail.
    fetches: bool,
    pub fails: u64,
    /// The number of parcels, out of 8, that are refused.
    refused: u64,
    /// The number of looks, out of 8, at which nothing arrives.
    idle: u64,
    dead: Vec<usize>,
    /// Pairs of a rank and a rank that it has given up, whose parcels are refused.
    shut: Vec<(usize, usize)>,
    /// Whether parcels between nodes are held.
    pub is_cut: bool,
    chunks: usize,
}

struct Parcel {
    from: usize,
    to: usize,
    bytes: Vec<u8>,
}

/// Memory for all lanes of a rank: places for each, and chunks.
pub struct Bag<'m> {
    places: Vec<Vec<ChunkPlace<'m>>>,
    chunks: Vec<LaneChunk<'m>>,
}

/// A rank's own memory.
pub struct Own<'n> {
    pub memory: &'n mut Vec<u8>,
    pub me: usize,
    pub fetches: bool,
}

impl Bag<'_> {
    pub fn of_all(shape: &MessageShape) -> Vec<Self> {
        let places = || (0..NetworkLane::places(shape)).map(|_| None).collect();
        let bag = |_| Self {
            places: (0..shape.peers).map(|_| places()).collect(),
            chunks: (0..chunks(shape)).map(|_| LaneChunk::EMPTY).collect(),
        };
        (0..shape.peers).map(bag).collect()
    }
}

/// The number of chunks that a rank can use at most.
fn chunks(shape: &MessageShape) -> usize {
    (shape.peers as usize + 1) * NetworkLane::places(shape)
}

pub fn lanes_of<'m>(
    bags: &'m mut [Bag<'m>],
    shape: &MessageShape,
) -> Vec<(Vec<NetworkLane<'m>>, &'m mut [LaneChunk<'m>])> {
    let lanes = |bag: &'m mut Bag<'m>| {
        let lanes = bag.places.iter_mut().map(|places| NetworkLane::new(shape, places).unwrap());
        (lanes.collect(), &mut bag.chunks[..])
    };
    bags.iter_mut().map(lanes).collect()
}

/// The ends of every rank, connected, for ranks on different nodes.
pub fn ends_of<'m>(
    lanes: &'m mut [(Vec<NetworkLane<'m>>, &'m mut [LaneChunk<'m>])],
    shape: &MessageShape,
) -> Vec<Ends<'m>> {
    let ends = |(lanes, chunks): &'m mut (Vec<NetworkLane<'m>>, &'m mut [LaneChunk<'m>])| {
        let ends = (0..shape.peers).map(|_| NetworkLaneEnd::EMPTY).collect();
        (ends, lanes.iter_mut().collect(), &mut **chunks)
    };
    lanes.iter_mut().map(ends).collect()
}

/// The ends of a rank, the lanes that the ends will use, and their chunks.
type Ends<'m> = (Vec<NetworkLaneEnd<'m>>, Vec<&'m mut NetworkLane<'m>>, &'m mut [LaneChunk<'m>]);

impl<'m> Post<'m> {
    pub fn new(
        ends: &'m mut [Ends<'m>],
        shape: MessageShape,
        plan: Plan,
        seeded: &mut Seeded,
    ) -> Self {
        let mut mails = Vec::new();
        for (ends, lanes, chunks) in ends {
            let mut mail = NetworkLanes::new(shape, ends).unwrap();
            mail.feed(chunks);
            for (rank, lane) in (0..).map(PeerIndex).zip(lanes.drain(..)) {
                mail.connect(rank, lane);
            }
            mails.push(mail);
        }
        let mut nodes = vec![0; shape.peers as usize];
        let (mut bytes_max, mut refused, mut idle) = (0, 0, 0);
        let (mut fetches, mut fails) = (false, 0);
        if plan.far {
            nodes[1] = 1;
            let count = if plan.parts { 2 } else { 3 };
            nodes[2..].fill_with(|| seeded.below(count));
            bytes_max = [PARCEL_BYTES_MIN, 300, 700, 4096][seeded.below(4) as usize];
            refused = [0, 2, 6][seeded.below(3) as usize];
            idle = [0, 4, 7][seeded.below(3) as usize];
        }
        if plan.fetches {
            fetches = seeded.below(4) > 0;
            fails = [0, 0, 3][seeded.below(3) as usize];
        }
        let flying = Vec::new();
        let (dead, shut, is_cut, chunks) = (Vec::new(), Vec::new(), false, chunks(&shape));
        Self {
            mails,
            flying,
            bytes_max,
            fetches,
            fails,
            refused,
            idle,
            nodes,
            dead,
            shut,
            is_cut,
            chunks,
        }
    }

    pub fn is_far(&self, me: usize, rank: PeerIndex) -> bool {
        self.nodes[me] != self.nodes[rank.0 as usize]
    }

    pub fn fetches(&self) -> bool {
        self.fetches
    }

    pub fn mail(&mut self, me: usize) -> &mut NetworkLanes<'m> {
        &mut self.mails[me]
    }

    /// Reports to a rank that another has died.
    pub fn lose(&mut self, me: usize, dead: usize) {
        if let Some(mail) = self.mails.get_mut(me) {
            mail.lost(PeerIndex(dead as u32));
        }
    }

    /// Lets a rank give another up.
    pub fn give_up(&mut self, me: usize, other: usize) {
        self.shut.push((me, other));
        self.lose(me, other);
    }

    /// Whether a rank's requests to another are currently neither answered nor refused.
    pub fn is_unanswered(&self, me: usize, by: usize) -> bool {
        self.is_far(me, PeerIndex(by as u32)) && (self.is_cut || self.shut.contains(&(by, me)))
    }

    /// Whether a rank has parcels that the network has not taken.
    pub fn has_unsent(&self, me: usize) -> bool {
        self.mails.get(me).is_some_and(NetworkLanes::has_unsent)
    }

    /// Whether parcels are under way.
    pub fn is_busy(&self) -> bool {
        !self.flying.is_empty()
    }

    /// Posts the waiting parcels of a rank, and delivers some of those under way to it. Returns
    /// whether any arrived.
    pub fn carry(&mut self, me: usize, seeded: &mut Seeded) -> bool {
        if self.mails.is_empty() {
            return false;
        }
        self.send(me, seeded);
        let mut has_come = false;
        let mut left = if seeded.below(8) < self.idle { 0 } else { seeded.below(5) };
        while left > 0 && !self.is_cut {
            left -= 1;
            let coming: Vec<usize> =
                (0..self.flying.len()).filter(|at| self.flying[*at].to == me).collect();
            if coming.is_empty() {
                break;
            }
            let at = coming[seeded.below(coming.len() as u64) as usize];
            self.deliver(at);
            has_come = true;
        }
        has_come
    }

    /// When nothing is left in any lane, no chunk is in use.
    pub fn check_empty(&self, me: usize) {
        if let Some(mail) = self.mails.get(me) {
            assert_eq!(mail.chunks_free(), self.chunks, "rank {me}: free at the end");
        }
    }

    /// Delivers all parcels under way between two ranks.
    pub fn deliver_all(&mut self, from: usize, to: usize) {
        while let Some(at) =
            self.flying.iter().position(|parcel| (parcel.from, parcel.to) == (from, to))
        {
            self.deliver(at);
        }
    }

    /// Handles a death: parcels to the rank are lost, and some of those that it had sent.
    pub fn drop_some(&mut self, dead: usize, seeded: &mut Seeded) {
        self.dead.push(dead);
        let kept = seeded.below(5);
        self.flying
            .retain(|parcel| parcel.to != dead && (parcel.from != dead || seeded.below(4) < kept));
    }

    fn send(&mut self, me: usize, seeded: &mut Seeded) {
        let mut bytes = vec![0; self.bytes_max];
        let mut tries = 16;
        while tries > 0
            && let Some((to, len)) = self.mails[me].poll_parcel(&mut bytes)
        {
            if seeded.below(8) < self.refused {
                self.mails[me].refused(to);
                tries -= 1;
                continue;
            }
            self.mails[me].posted(to);
            let to = to.0 as usize;
            assert!(self.is_far(me, PeerIndex(to as u32)), "a parcel from {me} to {to}");
            if !self.dead.contains(&to) {
                self.flying.push(Parcel { from: me, to, bytes: bytes[..len].to_vec() });
            }
        }
    }

    fn deliver(&mut self, at: usize) {
        let Parcel { from, to, bytes } = self.flying.swap_remove(at);
        if self.shut.contains(&(to, from)) && !mutant("sim_given_up_let_in") {
            return;
        }
        let taken = self.mails[to].take(PeerIndex(from as u32), &bytes);
        let is_late = self.dead.contains(&from);
        assert!(taken.is_ok() || is_late, "a parcel from {from} to {to}: {taken:?}");
    }
}

impl Own<'_> {
    fn span(&self, at: u64, len: usize) -> std::ops::Range<usize> {
        assert_eq!((at >> 32) as usize, self.me, "another rank's buffer");
        let start = (at & 0x7fff_ffff) as usize;
        start..start + len
    }
}

impl Buffers for Own<'_> {
    fn read(&mut self, at: u64, into: &mut [u8]) {
        let span = self.span(at, into.len());
        into.copy_from_slice(&self.memory[span]);
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let span = self.span(at, bytes.len());
        self.memory[span].copy_from_slice(bytes);
    }

    fn place(&mut self, at: u64, len: u64) -> Option<u64> {
        self.span(at, len as usize);
        // The place of the bytes is not equal to their address.
        (self.fetches && at >> 31 & 1 == 1).then_some(at ^ PLACE)
    }
}

/// The mask that converts an address to a place and back.
pub const PLACE: u64 = 0x55 << 56;
