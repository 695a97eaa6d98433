//! The backend over simulated cards, by pairs and by the dynamically connected
//! transport: many more peers than pairs, errors, and puts that notify.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::VecDeque;
use std::ptr::NonNull;
use tsumugi_backends::net::{
    Arrival, CompletionEntry, CompletionStatus, ENTRIES_MAX, LocalBuffer, Mr, NetWire, PostResult,
    RemoteBuffer, WordBuffers,
};
use tsumugi_backends::verbs::{QpCounters, VerbsConfig, VerbsDomain, VerbsEndpoint, VerbsWire};
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Rank, Region, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::tag::Tag;
use tsumugi_test_networks::verbs::{alive_max, libraries};

/// The timeout is so long that no connection ends by it, even on a busy machine.
pub fn config(pairs_max: usize, dynamic: bool) -> VerbsConfig {
    VerbsConfig {
        pairs_max,
        dct: dynamic,
        packets: 8,
        job: 7,
        connect_timeout_ms: 1 << 24,
        libraries: Some(libraries()),
        ..VerbsConfig::default()
    }
}

/// Zeroed pages that this value owns.
pub struct ZeroedPages {
    pub base: NonNull<u8>,
    layout: Layout,
}

impl ZeroedPages {
    pub fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 4096).unwrap();
        // SAFETY: no test asks for 0 bytes.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        Self { base, layout }
    }
}

impl Drop for ZeroedPages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// A rank's wire, a page of the rank, and the requests that the rank is to make.
struct SimulatedRank {
    wire: VerbsWire,
    page: ZeroedPages,
    mr: Mr,
    asks: VecDeque<u64>,
    free: Vec<usize>,
    done: usize,
}

impl SimulatedRank {
    fn new(rank: u32, pairs_max: usize, dynamic: bool) -> Self {
        let mut wire =
            VerbsWire::open(&config(pairs_max, dynamic), Rank(rank), CONTEXTS, 1).unwrap();
        wire.join(7);
        let page = ZeroedPages::new(4096);
        // SAFETY: pages of its own, which stay as long as the wire.
        let mr = unsafe { wire.register(page.base.as_ptr(), 4096, Access::ReadWrite, 0) }.unwrap();
        Self { wire, page, mr, asks: VecDeque::new(), free: (0..CONTEXTS).collect(), done: 0 }
    }

    /// The word that other ranks add to.
    fn word(&self) -> u64 {
        // SAFETY: of its own page; one thread.
        unsafe { self.page.base.cast::<u64>().read() }
    }

    fn far(&self, peer: u64) -> RemoteBuffer {
        RemoteBuffer { peer, addr: self.mr.origin, key: self.mr.key.words[0] }
    }

    /// Posts as many requests as it can, and takes completions.
    fn turn(&mut self, fars: &[RemoteBuffer]) {
        for _ in 0..self.asks.len().min(self.free.len()) {
            let Some(peer) = self.asks.pop_front() else { break };
            let context = self.free.pop().expect("as many were counted");
            if self.add(fars[peer as usize], context) != 0 {
                self.asks.push_back(peer);
                self.free.push(context);
            }
        }
        self.wire.ring_doorbell();
        let mut entries = [CompletionEntry::EMPTY; ENTRIES_MAX];
        let came = self.wire.completions(&mut entries).unwrap();
        for entry in &entries[..came] {
            assert_eq!(entry.end, CompletionStatus::Done(0));
            self.free.push(entry.context);
            self.done += 1;
        }
    }

    fn add(&mut self, far: RemoteBuffer, context: usize) -> PostResult {
        let remote = RemoteAddr { rank: Rank(0), key: RegionKey::from_bits(0), offset: 0 };
        let op = Op::atomic(Kind::FetchAdd, remote, 1u64);
        let at = self.page.base.as_ptr().wrapping_add(64 + 8 * context);
        let near = LocalBuffer { at, desc: self.mr.desc };
        let nears = WordBuffers { operand: near, compare: near, result: near };
        // SAFETY: a word of its own page for each context.
        let answer = unsafe { self.wire.word(&op, nears, far, context, false) };
        assert!([0, -libc::EINPROGRESS as PostResult].contains(&answer), "{answer}");
        answer
    }
}

impl Drop for SimulatedRank {
    fn drop(&mut self) {
        self.wire.shut(core::iter::empty());
    }
}

#[test]
fn five_hundred_peers_are_reached_by_sixty_four_pairs() {
    let counters = reach_all(|_| false);
    assert!(counters.pairs_made >= PEERS.into(), "each peer got a pair");
}

#[test]
fn five_hundred_peers_are_reached_by_sixty_four_dynamic_pairs() {
    let counters = reach_all(|_| true);
    assert!(counters.pairs_made <= PAIRS as u64, "no pair is made twice");
    assert_eq!(counters.cm_messages, 0, "no connection was requested");
}

#[test]
fn peers_without_dynamic_transport_are_reached_by_pairs() {
    let counters = reach_all(|rank| rank % 3 != 1);
    assert!(
        counters.pairs_made >= u64::from(PEERS) / 3,
        "each peer without the transport got a pair"
    );
}

/// Three ranks send requests to all ranks, and all ranks to the first; returns the
/// counters of the first. `is_dynamic` selects the ranks that have the dynamically
/// connected transport.
fn reach_all(is_dynamic: impl Fn(u32) -> bool) -> QpCounters {
    let mut all: Vec<SimulatedRank> =
        (0..PEERS).map(|rank| SimulatedRank::new(rank, PAIRS, is_dynamic(rank))).collect();
    let addresses: Vec<Vec<u8>> = all.iter().map(|one| one.wire.address().unwrap()).collect();
    let fars: Vec<RemoteBuffer> = (0..).zip(&all).map(|(peer, one)| one.far(peer)).collect();
    let peers = u64::from(PEERS);
    for (own, one) in (0..peers).zip(&mut all) {
        for (rank, address) in (0..).map(Rank).zip(&addresses) {
            one.wire.insert(rank, address).unwrap();
        }
        // Each rank has an order of its own.
        let everybody = (0..4 * peers).map(|at| (at * 7 + own) % peers);
        match own {
            0..3 => one.asks.extend(everybody),
            _ => one.asks.push_back(0),
        }
    }
    let due = |own: usize| if own < 3 { 4 * PEERS as usize } else { 1 };
    let mut turns = 0;
    while all.iter().enumerate().any(|(own, one)| one.done < due(own)) {
        all.iter_mut().for_each(|one| one.turn(&fars));
        turns += 1;
        assert!(turns < 1_000_000, "{:?}", all[0].wire.counters());
    }
    for (own, one) in all.iter().enumerate() {
        let of_the_first = if own == 0 { peers - 3 } else { 0 };
        assert_eq!(one.word(), 12 + of_the_first, "{own}");
        assert_eq!((one.wire.counters().pairs_broken, one.wire.counters().strays), (0, 0), "{own}");
        assert!(one.wire.passive_pairs() <= 2 * PAIRS);
    }
    let counters = all[0].wire.counters();
    println!("{turns} turns, {counters:?}");
    assert_eq!(alive_max(), PAIRS);
    counters
}

/// Two ranks, polled in turn.
pub struct Two {
    pub domains: [VerbsDomain; 2],
    regions: Vec<(Region, ZeroedPages)>,
    tags: u64,
}

impl Two {
    pub fn new(dynamic: bool) -> Self {
        let open = |rank| VerbsDomain::open(&config(4, dynamic), Rank(rank), 2).unwrap();
        let domains = [open(0), open(1)];
        let cards = [0, 1].map(|at: usize| domains[at].card().to_vec());
        for domain in &domains {
            let cards = cards.clone();
            domain.find(move |rank, into| {
                let card = cards.get(rank.0 as usize)?;
                into[..card.len()].copy_from_slice(card);
                Some(card.len())
            });
        }
        Self { domains, regions: Vec::new(), tags: 0 }
    }

    /// A region of that rank.
    pub fn region(&mut self, rank: usize, bytes: usize) -> Region {
        let area = ZeroedPages::new(bytes);
        // SAFETY: the memory goes after the domains.
        let region = unsafe {
            self.domains[rank].register(area.base, bytes as u64, Access::ReadWrite).unwrap()
        };
        self.regions.push((region, area));
        region
    }

    pub fn tagged(&mut self, op: Op) -> Op {
        self.tags += 1;
        op.tagged(Tag::from_bits(self.tags))
    }

    /// Waits for this many completions of the first rank; the other rank polls, and
    /// may look at its arrivals.
    pub fn wait(
        &self,
        [a, b]: &mut [VerbsEndpoint<'_>; 2],
        count: usize,
        mut look: impl FnMut(&mut VerbsEndpoint<'_>),
    ) -> Vec<Completion> {
        let mut all = Vec::new();
        for _ in 0..100_000 {
            let mut some = [Completion::EMPTY; 16];
            let came = a.poll(&mut some);
            all.extend_from_slice(&some[..came]);
            b.poll(&mut []);
            look(b);
            if all.len() >= count {
                return all;
            }
        }
        panic!("{} of {count} completions came", all.len());
    }
}

pub fn at(region: &Region, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank(1), key: region.key, offset }
}

fn bell_of(arrival: Arrival<'_>) -> LocalAddr {
    let Arrival::Notified(bell) = arrival else { panic!("{arrival:?}") };
    bell
}

/// The word at an offset of a region.
pub fn word(region: &Region, offset: u64) -> u64 {
    // SAFETY: of a region of the test's; one thread.
    unsafe { region.base.byte_add(offset as usize).cast::<u64>().read() }
}

#[test]
fn a_notifying_put_is_one_request_and_its_bell_follows_its_bytes() {
    [false, true].into_iter().for_each(puts_tell);
}

fn puts_tell(dynamic: bool) {
    let mut two = Two::new(dynamic);
    let (far, near) = (two.region(1, 9 << 20), two.region(0, 64));
    let local = LocalAddr { key: near.key, offset: 0 };
    // SAFETY: of the test's own region.
    unsafe { near.base.cast::<u64>().write(5) };
    let mut bells = Vec::new();
    let places = [(8, true), (64, true), (8 << 20, false), (20, false)];
    let first = two.tagged(Op::get_word(at(&far, 0), Width::W8));
    let ops = places.map(|(offset, _)| {
        let op = if offset == 8 {
            Op::put_word(at(&far, offset), Width::W8, 5)
        } else {
            Op::put(local, at(&far, offset), 8)
        };
        two.tagged(op.notifying())
    });
    let [a, b] = &two.domains;
    let mut ends = [a.endpoint(), b.endpoint()];
    assert_eq!(ends[0].post(&[first]), 1);
    two.wait(&mut ends, 1, |_| ());
    for (op, (offset, is_one)) in ops.into_iter().zip(places) {
        let before = ends[0].counters().doorbells;
        assert_eq!(ends[0].post(&[op]), 1);
        let done = two.wait(&mut ends, 1, |b| {
            b.receive(&mut |arrival| {
                assert_eq!(word(&far, offset), 5, "the bytes come before the bell");
                bells.push(bell_of(arrival));
            });
        });
        assert_eq!(done[0].result, Ok(0));
        for _ in 0..100 {
            ends[0].poll(&mut []);
            ends[1].poll(&mut []);
            ends[1].receive(&mut |arrival| bells.push(bell_of(arrival)));
        }
        let bell = LocalAddr { key: far.key, offset };
        assert_eq!(std::mem::take(&mut bells), [bell], "one bell");
        let doorbells = ends[0].counters().doorbells - before;
        assert_eq!(doorbells, if is_one { 1 } else { 2 }, "at {offset}");
    }
}

#[test]
fn notifying_puts_wait_for_a_peer_that_does_not_receive() {
    [false, true].into_iter().for_each(puts_wait);
}

fn puts_wait(dynamic: bool) {
    let mut two = Two::new(dynamic);
    let far = two.region(1, 4096);
    let ops: Vec<Op> = (0..40)
        .map(|at_word| {
            two.tagged(Op::put_word(at(&far, 8 * at_word), Width::W8, 1 + at_word).notifying())
        })
        .collect();
    let [a, b] = &two.domains;
    let mut ends = [a.endpoint(), b.endpoint()];
    assert_eq!(ends[0].post(&ops), ops.len());
    // Rank 1 polls but receives nothing, so that as many puts arrive as it has buffers.
    let mut came = 0;
    for _ in 0..1000 {
        came += ends[0].poll(&mut [Completion::EMPTY; 16]);
        ends[1].poll(&mut []);
    }
    assert_eq!(came, config(4, false).packets);
    let mut bells = Vec::new();
    let left = ops.len() - came;
    let look = |b: &mut VerbsEndpoint<'_>| {
        b.receive(&mut |arrival| bells.push(bell_of(arrival).offset));
    };
    let done = two.wait(&mut ends, left, look);
    assert!(done.iter().all(|done| done.result == Ok(0)));
    ends[1].poll(&mut []);
    ends[1].receive(&mut |arrival| bells.push(bell_of(arrival).offset));
    let expected: Vec<u64> = (0..40).map(|at_word| 8 * at_word).collect();
    assert_eq!(bells, expected, "each put arrives once, in order");
}

#[test]
fn an_error_names_its_operation_and_others_are_done_once() {
    [false, true].into_iter().for_each(errors_are_named);
}

fn errors_are_named(dynamic: bool) {
    let mut two = Two::new(dynamic);
    let (far, gone) = (two.region(1, 64), two.region(1, 64));
    let warm = [&far, &gone].map(|region| two.tagged(Op::get_word(at(region, 0), Width::W8)));
    let adds: Vec<Op> =
        (0..9).map(|_| two.tagged(Op::atomic(Kind::FetchAdd, at(&far, 0), 1u64))).collect();
    let stale = two.tagged(Op::put_word(at(&gone, 0), Width::W8, 1));
    let [a, b] = &two.domains;
    let mut ends = [a.endpoint(), b.endpoint()];
    assert_eq!(ends[0].post(&warm), 2);
    two.wait(&mut ends, 2, |_| ());
    assert!(b.unregister(gone.key));
    let mut ops = adds.clone();
    ops.insert(3, stale);
    assert_eq!(ends[0].post(&ops), ops.len());
    for done in two.wait(&mut ends, ops.len(), |_| ()) {
        match done.tag == stale.tag {
            true => assert_eq!(done.result, Err(AddrError::StaleKey { addr: stale.remote })),
            false => assert!(done.result.is_ok(), "{done:?}"),
        }
    }
    assert_eq!(word(&far, 0), adds.len() as u64);
    let counters = ends[0].counters();
    assert_eq!((counters.pairs_broken, counters.pairs_made), (1, 2));
    let failure = ends[0].failures().last.unwrap();
    assert_eq!((failure.peer, failure.kind), (Some(Rank(1)), Some(Kind::PutWord)));
}

#[test]
fn operations_on_a_peer_that_has_gone_end_with_its_rank() {
    [false, true].into_iter().for_each(a_peer_that_has_gone_is_named);
}

fn a_peer_that_has_gone_is_named(dynamic: bool) {
    let mut two = Two::new(dynamic);
    let far = two.region(1, 64);
    let get = two.tagged(Op::get_word(at(&far, 0), Width::W8));
    let puts: Vec<Op> =
        (0..5).map(|value| two.tagged(Op::put_word(at(&far, 8), Width::W8, value))).collect();
    let Two { domains: [a, b], regions, .. } = two;
    let mut end = a.endpoint();
    assert_eq!(end.post(&[get]), 1);
    let mut done = [Completion::EMPTY; 16];
    while end.poll(&mut done) == 0 {
        b.endpoint().poll(&mut []);
    }
    drop(b);
    assert_eq!(end.post(&puts), puts.len());
    let mut came = 0;
    while came < puts.len() {
        let count = end.poll(&mut done);
        let lost = Err(AddrError::PeerLost { rank: Rank(1) });
        assert!(done[..count].iter().all(|done| done.result == lost), "{done:?}");
        came += count;
    }
    let failure = end.failures().last.unwrap();
    assert_eq!((failure.peer, failure.kind), (Some(Rank(1)), Some(Kind::PutWord)));
    drop(regions);
}

const CONTEXTS: usize = 32;
const PEERS: u32 = 500;
const PAIRS: usize = 64;
