//! The suite of [`Domain`] and its [`Endpoint`]s.

use crate::Seeded;
use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, AddrError, LocalAddr, Rank, Region, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::tag::Tag;

/// A job of a few ranks; rank 0 posts.
pub trait Fixture {
    /// The type under test.
    type Domain: Domain;

    /// The rounds of the longest promise. Fewer for a fixture that runs once for each
    /// of many seeds.
    const ROUNDS: usize = 50;

    /// A job of `ranks` ranks.
    fn new(ranks: u32) -> Self;

    /// The device that rank 0 has opened.
    fn domain(&self) -> &Self::Domain;

    /// Registers `bytes` zero bytes of `rank`'s memory, 64-byte aligned, which
    /// live as long as the fixture.
    fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region;

    /// A tag that is not in use, a new one each time.
    fn tag(&self) -> Tag;
}

/// One `#[test]` per promise, for the fixture type.
#[macro_export]
macro_rules! endpoint {
    ($fixture:ty) => {
        $crate::endpoint!($fixture:
            every_post_completes_once, a_full_queue_takes_fewer, errors_are_completions,
            transfers_arrive, capabilities_are_kept,
        );
    };
    ($fixture:ty: $($promise:ident),* $(,)?) => {$(
        #[test]
        fn $promise() {
            $crate::endpoint::$promise::<$fixture>();
        }
    )*};
}

const PEER: Rank = Rank(1);

/// A limit for waits: at least so many polls, however long they take, and at least so
/// long, however many polls that are.
struct Patience {
    start: Instant,
    polls: Cell<usize>,
}

impl Patience {
    fn new() -> Self {
        Self { start: Instant::now(), polls: Cell::new(0) }
    }

    fn lasts(&self) -> bool {
        let polls = self.polls.replace(self.polls.get() + 1);
        polls < POLLS || self.start.elapsed() < TIME
    }
}

const POLLS: usize = 1_000_000;
const TIME: Duration = Duration::from_secs(60);

fn at(region: &Region, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: PEER, key: region.key, offset }
}

/// Posts all operations, polling when the queue is full; returns all completions.
fn run(endpoint: &mut impl Endpoint, mut ops: &[Op]) -> Vec<Completion> {
    let (mut done, mut buffer) = (Vec::new(), [Completion::EMPTY; 7]);
    let wanted = ops.len();
    let patience = Patience::new();
    while patience.lasts() {
        if !ops.is_empty() {
            ops = &ops[endpoint.post(ops)..];
        }
        let count = endpoint.poll(&mut buffer);
        done.extend_from_slice(&buffer[..count]);
        if done.len() >= wanted {
            break;
        }
    }
    assert_eq!(done.len(), wanted, "completions");
    assert_eq!(endpoint.poll(&mut buffer), 0, "a completion too many");
    done
}

/// Each tag comes back once, with its own result, in any order.
pub fn every_post_completes_once<F: Fixture>() {
    let fixture = F::new(2);
    let region = fixture.register(PEER, 8 * 64, Access::ReadWrite);
    let mut endpoint = fixture.domain().endpoint();
    let mut seeded = Seeded(3);
    for _ in 0..F::ROUNDS {
        let mut want = HashMap::new();
        let fill: Vec<Op> = (0..64)
            .map(|slot| {
                Op::put_word(at(&region, slot * 8), Width::W8, seeded.next()).tagged(fixture.tag())
            })
            .collect();
        assert!(run(&mut endpoint, &fill).iter().all(|done| done.result.is_ok()));
        let gets: Vec<Op> = fill
            .iter()
            .map(|put| {
                let get = Op::get_word(put.remote, Width::W8).tagged(fixture.tag());
                want.insert(get.tag, put.operand());
                get
            })
            .collect();
        for done in run(&mut endpoint, &gets) {
            assert_eq!(done.result.ok(), want.remove(&done.tag), "{:?}", done.tag);
        }
        assert!(want.is_empty());
    }
}

/// If a caller posts more than the queue holds, some posts are left to the caller,
/// and none is lost.
pub fn a_full_queue_takes_fewer<F: Fixture>() {
    let fixture = F::new(2);
    let region = fixture.register(PEER, 64, Access::ReadWrite);
    let limit = fixture.domain().capabilities().in_flight_max;
    let mut endpoint = fixture.domain().endpoint();
    let ops: Vec<Op> = (0..limit * 3 + 1)
        .map(|_| Op::atomic(Kind::FetchAdd, at(&region, 0), 1u64).tagged(fixture.tag()))
        .collect();
    assert!(endpoint.post(&[]) == 0);
    let done = run(&mut endpoint, &ops);
    let mut drawn: Vec<u64> = done.iter().map(|done| done.result.unwrap()).collect();
    drawn.sort_unstable();
    assert!(drawn.iter().copied().eq(0..ops.len() as u64), "each add drew another number");
}

/// A refused operation completes with its error; the operations beside it are carried
/// out.
pub fn errors_are_completions<F: Fixture>() {
    let fixture = F::new(2);
    let region = fixture.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = fixture.domain().endpoint();
    let outside = at(&region, 64);
    let nobody = RemoteAddr { rank: Rank(9), ..at(&region, 0) };
    let ops = [
        Op::put_word(at(&region, 0), Width::W8, 5).tagged(fixture.tag()),
        Op::get_word(outside, Width::W8).tagged(fixture.tag()),
        Op::get_word(nobody, Width::W8).tagged(fixture.tag()),
        Op::put_word(at(&region, 8), Width::W8, 6).tagged(fixture.tag()),
    ];
    let done = run(&mut endpoint, &ops);
    let result = |op: &Op| done.iter().find(|done| done.tag == op.tag).unwrap().result;
    assert!(result(&ops[0]).is_ok() && result(&ops[3]).is_ok());
    let range = AddrError::OutOfRange { addr: outside, bytes: 8, region_bytes: Some(64) };
    assert_eq!(result(&ops[1]), Err(range));
    assert_eq!(result(&ops[2]), Err(AddrError::NoSuchRank { rank: Rank(9), size: 2 }));
}

/// Put and get copy the given bytes between registered buffers, and no others.
pub fn transfers_arrive<F: Fixture>() {
    let fixture = F::new(2);
    let peer = fixture.register(PEER, 8192, Access::ReadWrite);
    let own = fixture.register(Rank(0), 8192, Access::Local);
    let mut endpoint = fixture.domain().endpoint();
    for (round, bytes) in [0u64, 1, 63, 64, 1000, 4096].into_iter().enumerate() {
        // SAFETY: the memory belongs to the fixture, and nothing is in flight.
        unsafe {
            own.base.write_bytes(round as u8 + 1, 4096);
            own.base.add(4096).write_bytes(0, 4096);
        }
        let out = LocalAddr { key: own.key, offset: 0 };
        let back = LocalAddr { key: own.key, offset: 4096 };
        run(&mut endpoint, &[Op::put(out, at(&peer, 8), bytes).tagged(fixture.tag())]);
        run(&mut endpoint, &[Op::get(at(&peer, 8), back, bytes).tagged(fixture.tag())]);
        // SAFETY: as above.
        let got = unsafe { std::slice::from_raw_parts(own.base.as_ptr().add(4096), 4096) };
        let (copied, rest) = got.split_at(bytes as usize);
        assert!(copied.iter().all(|&byte| byte == round as u8 + 1), "{bytes} bytes");
        assert!(rest.iter().all(|&byte| byte == 0), "{bytes} bytes and no more");
    }
}

/// The device keeps the capabilities that it reports.
pub fn capabilities_are_kept<F: Fixture>() {
    let fixture = F::new(3);
    let domain = fixture.domain();
    let capabilities = domain.capabilities();
    assert_eq!((domain.rank(), domain.size()), (Rank(0), 3));
    assert!(capabilities.in_flight_max > 0 && !capabilities.name.is_empty());
    let region = fixture.register(PEER, 64, Access::ReadWrite);
    let mut endpoint = domain.endpoint();
    let ops: Vec<Op> = (0..capabilities.in_flight_max + 5)
        .map(|_| Op::get_word(at(&region, 0), Width::W8).tagged(fixture.tag()))
        .collect();
    let taken = endpoint.post(&ops);
    assert!(taken <= capabilities.in_flight_max, "{taken} posts were taken at once");
    let done = run_rest(&mut endpoint, taken);
    if capabilities.in_order {
        assert!(done.iter().zip(&ops).all(|(done, op)| done.tag == op.tag), "order");
    }
}

fn run_rest(endpoint: &mut impl Endpoint, wanted: usize) -> Vec<Completion> {
    let (mut done, mut buffer) = (Vec::new(), [Completion::EMPTY; 3]);
    let patience = Patience::new();
    while patience.lasts() {
        let count = endpoint.poll(&mut buffer);
        done.extend_from_slice(&buffer[..count]);
        if done.len() >= wanted {
            return done;
        }
    }
    panic!("{} of {wanted} completions came", done.len());
}
