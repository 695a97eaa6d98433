//! A test: a client of libfabric that knows the calls, the form of packets, and all
//! addresses of a rank, but has seen neither traffic nor a card. Its writes, atomics,
//! reads and packets are refused. The same calls succeed with the key and the number of
//! the job.
//!
//! Over udp the reliability layer (`ofi_rxd` of libfabric 1.17) reports success to
//! a client that is refused, or nothing, so that the client sends again for a
//! minute or more: there the test checks only the memory that is written and the
//! bytes that are read.
//!
//! Without libfabric there is nothing to test: the test reports that and passes;
//! `ci/ofi.sh` installs it.

use super::choice::Choice;
use super::endpoint::RdmEndpoint;
use super::fabric::Fabric;
use super::sys::*;
use super::{OfiConfig, OfiDomain, OfiEndpoint};
use crate::boot::random_u64;
use crate::net::{
    Arrival, CompletionStatus, LocalBuffer, Mr, PostResult, RemoteBuffer, SecretRng, ZeroedPages,
};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tsumugi_conformance::left_out;
use tsumugi_core::backend::{Completion, Domain, Endpoint};
use tsumugi_core::mem::{Access, Rank, Region};

#[test]
fn a_client_without_keys_is_refused_over_tcp() {
    tries_to_get_in("tcp;ofi_rxm", true);
}

#[test]
fn a_client_without_keys_is_refused_over_udp() {
    tries_to_get_in("udp;ofi_rxd", false);
}

/// Checks that the client is refused; `is_answered`: whether the provider reports the
/// refusals.
fn tries_to_get_in(provider: &str, is_answered: bool) {
    if let Err(error) = Library::load() {
        return left_out("a stranger over libfabric", &error.to_string(), "ci/ofi.sh");
    }
    let mut memory = [MARK; WORDS];
    let job = random_u64().unwrap();
    let config = OfiConfig {
        provider: Some(provider.to_owned()),
        source: Some("127.0.0.1".to_owned()),
        job,
        ..OfiConfig::default()
    };
    let domain = OfiDomain::open(&config, Rank(0), 2).unwrap();
    let mr_mode = domain.facts().mr_mode;
    assert_eq!(mr_mode & (FI_MR_PROV_KEY | FI_MR_RAW), 0, "this rank can choose its keys");
    assert_eq!(domain.facts().key_bytes, 8);
    let base = NonNull::from(&mut memory).cast();
    // SAFETY: the memory outlives the domain's registration; peers change it as
    // words, and only `words` reads it.
    let region = unsafe { domain.register(base, 8 * WORDS as u64, Access::ReadWrite) }.unwrap();
    let mut victim = Victim { endpoint: domain.endpoint(), base, arrived: Vec::new() };
    let card = CardSeen::of(domain.card());
    let choice = Choice::new(&config).unwrap();
    let fabric = Fabric::open(&choice).unwrap();
    let patience = if is_answered { LIMIT } else { PATIENCE };
    let meet = |patience| Stranger::open(&fabric, &choice, &card.address, patience);

    // A rank of the job reads the region's key in the directory.
    let mut insider = meet(LIMIT);
    let slot = card.origin + (region.key.index() * SLOT_BYTES) as u64;
    insider.get(&mut victim, slot, card.key, SLOT_BYTES).unwrap();
    let (origin, key) = (insider.word(3), insider.word(6));
    if mr_mode & FI_MR_VIRT_ADDR != 0 {
        assert_eq!(origin, base.as_ptr() as u64, "the address of the region is not secret");
    }
    for (index, what) in Change::ALL.into_iter().enumerate() {
        let at = origin + 8 * index as u64;
        insider.change(&mut victim, what, at, key).unwrap();
        victim.awaits(index, NOISE);
    }
    assert_eq!(insider.get(&mut victim, origin, key, 8), Ok(()));
    assert_eq!(insider.word(0), NOISE);
    insider.send(&mut victim, &packet(job, 1, PACKET, b"from rank 1")).unwrap();
    insider.send(&mut victim, &packet(job, 1, BELL, &bell(&region))).unwrap();
    victim.hears(&["packet of rank 1: from rank 1", "bell at 24"]);
    let before = victim.words();

    // Guesses of the client: keys of a program that counts, keys that the same generator
    // gives for small seeds, and near misses of the true keys.
    let mut keys: Vec<u64> = (0..20).collect();
    keys.extend([u64::from(region.key.to_bits()), region.key.index() as u64 + 16, u64::MAX]);
    keys.extend((0..4).map(|seed| SecretRng::new(seed).draw()));
    for true_key in [key, card.key] {
        keys.extend([0, 31, 32, 63].map(|bit| true_key ^ 1 << bit));
        keys.push(true_key & u64::from(u32::MAX));
    }
    for (guess, what) in keys.into_iter().zip(Change::ALL.into_iter().cycle()) {
        // A refusal may end the connection, so each guess has one of its own.
        let done = meet(patience).change(&mut victim, what, origin, guess);
        assert!(done.is_err() || !is_answered, "{what:?} under {guess:#x} is done");
        assert_eq!(victim.words(), before, "{what:?} under {guess:#x}");
        let mut reader = meet(patience);
        reader.set_word(6, MARK);
        let read = reader.get(&mut victim, slot, guess, SLOT_BYTES);
        assert!(read.is_err() || !is_answered, "the directory is read under {guess:#x}");
        assert_ne!(reader.word(6), key, "the directory is read under {guess:#x}");
    }
    // The directory's key permits only reads of it.
    let done = meet(patience).change(&mut victim, Change::Put, slot + 48, card.key);
    assert!(done.is_err() || !is_answered, "the directory is written");
    insider.get(&mut victim, slot, card.key, SLOT_BYTES).unwrap();
    assert_eq!(insider.word(6), key, "the directory is written");

    let mut stranger = meet(LIMIT);
    for number in (0..16).chain((0..64).map(|bit| job ^ 1 << bit)).chain([job.swap_bytes()]) {
        stranger.send(&mut victim, &packet(number, 1, PACKET, b"let me in")).unwrap();
        stranger.send(&mut victim, &packet(number, 1, BELL, &bell(&region))).unwrap();
    }
    for good in [packet(job, 2, PACKET, b"there is no rank 2"), packet(job, 1, PACKET, b"")] {
        stranger.send(&mut victim, &good[..good.len().min(15)]).unwrap();
    }
    stranger.send(&mut victim, &packet(job, 2, PACKET, b"there is no rank 2")).unwrap();

    // The last packet is accepted, and none of the others was; and the insider still
    // works.
    stranger.send(&mut victim, &packet(job, 1, PACKET, b"the end")).unwrap();
    victim.hears(&["packet of rank 1: the end"]);
    assert_eq!(victim.words(), before);
    insider.change(&mut victim, Change::Put, origin + 8 * 5, key).unwrap();
    victim.awaits(5, NOISE);
}

/// The rank, which the test polls while a client waits.
struct Victim<'d> {
    endpoint: OfiEndpoint<'d>,
    base: NonNull<u8>,
    arrived: Vec<String>,
}

impl Victim<'_> {
    fn poll(&mut self) {
        self.endpoint.poll(&mut [Completion::EMPTY; 16]);
        let arrived = &mut self.arrived;
        self.endpoint.receive(&mut |arrival| {
            arrived.push(match arrival {
                Arrival::Notified(word) => format!("bell at {}", word.offset),
                Arrival::Packet { from, bytes } => {
                    format!("packet of {from}: {}", String::from_utf8_lossy(bytes))
                }
            });
        });
    }

    fn words(&self) -> [u64; WORDS] {
        // SAFETY: the region; the provider writes to it only in polls of this
        // thread.
        unsafe { self.base.cast().read_volatile() }
    }

    fn awaits(&mut self, index: usize, word: u64) {
        within("the write of the word", || {
            self.poll();
            self.words()[index] == word
        });
    }

    /// Checks that exactly these arrivals have come.
    fn hears(&mut self, expected: &[&str]) {
        within("all arrivals", || {
            self.poll();
            self.arrived.len() >= expected.len()
        });
        assert_eq!(std::mem::take(&mut self.arrived), expected);
    }
}

/// The first endpoint in a card; the layout is that of `net::card`.
struct CardSeen {
    address: Vec<u8>,
    origin: u64,
    key: u64,
}

impl CardSeen {
    fn of(card: &[u8]) -> Self {
        let mut rest = &card[24..];
        let mut take = |bytes: usize| {
            let (taken, after) = rest.split_at(bytes);
            rest = after;
            taken
        };
        let short = |bytes: &[u8]| usize::from(u16::from_le_bytes(bytes.try_into().unwrap()));
        let name = short(take(2));
        take(name);
        let length = short(take(2));
        let address = take(length).to_vec();
        let origin = u64::from_le_bytes(take(8).try_into().unwrap());
        assert_eq!(short(take(2)), 8, "bytes of a key");
        Self { address, origin, key: u64::from_le_bytes(take(8).try_into().unwrap()) }
    }
}

/// A client that uses libfabric's calls and nothing else.
struct Stranger {
    endpoint: RdmEndpoint,
    peer: fi_addr_t,
    mr: Option<Mr>,
    local: LocalBuffer,
    context: ZeroedPages,
    _memory: ZeroedPages,
    patience: Duration,
}

/// The ways in which the client tries to change a word.
#[derive(Clone, Copy, Debug)]
enum Change {
    Put,
    Add,
    CompareSwap,
}

impl Change {
    const ALL: [Self; 3] = [Self::Put, Self::Add, Self::CompareSwap];
}

impl Stranger {
    fn open(fabric: &Arc<Fabric>, choice: &Choice, address: &[u8], patience: Duration) -> Self {
        let mut endpoint = RdmEndpoint::open(fabric, choice, 64, false).unwrap();
        let memory = ZeroedPages::new(AREA_BYTES);
        let at = memory.base.as_ptr();
        let access = FI_READ | FI_WRITE | FI_TRANSMIT | FI_RECV;
        // SAFETY: the client's own memory, which stays until the endpoint is closed.
        let mr = unsafe { endpoint.register(at, AREA_BYTES as u64, access, 1) }.unwrap();
        let peer = endpoint.insert(address).unwrap();
        let local = LocalBuffer { at, desc: mr.desc };
        let context = ZeroedPages::new(64);
        Self { endpoint, peer, mr: Some(mr), local, context, _memory: memory, patience }
    }

    fn here(&self, offset: usize) -> LocalBuffer {
        LocalBuffer { at: self.local.at.wrapping_add(offset), ..self.local }
    }

    /// A word of the client's memory.
    fn word(&self, index: usize) -> u64 {
        // SAFETY: inside the client's memory, which nothing writes to now.
        unsafe { self.local.at.cast::<u64>().add(index).read_volatile() }
    }

    fn set_word(&mut self, index: usize, word: u64) {
        // SAFETY: as above.
        unsafe { self.local.at.cast::<u64>().add(index).write_volatile(word) };
    }

    /// Changes a word from [`MARK`] to [`NOISE`].
    fn change(&mut self, victim: &mut Victim<'_>, what: Change, at: u64, key: u64) -> StrangerEnd {
        let remote = RemoteBuffer { peer: self.peer, addr: at, key };
        let operand = if matches!(what, Change::Add) { NOISE.wrapping_sub(MARK) } else { NOISE };
        self.set_word(0, operand);
        self.set_word(1, MARK);
        let (operand, compare, result) = (self.here(0), self.here(8), self.here(16));
        self.run(victim, |endpoint, context| {
            // SAFETY: the local ends are this client's own.
            unsafe {
                match what {
                    Change::Put => endpoint.write(operand, 8, remote, context, 0),
                    Change::Add => {
                        endpoint.fetch((FI_UINT64, FI_SUM), operand, result, remote, context)
                    }
                    Change::CompareSwap => {
                        endpoint.compare(FI_UINT64, operand, compare, result, remote, context)
                    }
                }
            }
        })
    }

    fn get(&mut self, victim: &mut Victim<'_>, at: u64, key: u64, bytes: usize) -> StrangerEnd {
        let (local, remote) = (self.here(0), RemoteBuffer { peer: self.peer, addr: at, key });
        // SAFETY: as above.
        self.run(victim, |endpoint, context| unsafe {
            endpoint.read(local, bytes, remote, context, 0)
        })
    }

    fn send(&mut self, victim: &mut Victim<'_>, bytes: &[u8]) -> StrangerEnd {
        // SAFETY: a packet is shorter than the client's memory.
        unsafe { self.local.at.copy_from(bytes.as_ptr(), bytes.len()) };
        let (local, peer, len) = (self.here(0), self.peer, bytes.len());
        // SAFETY: as above.
        self.run(victim, |endpoint, context| unsafe { endpoint.send(local, len, peer, context) })
    }

    /// Posts an operation and waits for its end; [`UNANSWERED`] if the end does not
    /// arrive.
    fn run(
        &mut self,
        victim: &mut Victim<'_>,
        mut post: impl FnMut(&mut RdmEndpoint, *mut c_void) -> PostResult,
    ) -> StrangerEnd {
        let context = self.context.base.as_ptr().cast();
        let (mut posted, mut end) = (false, None);
        let start = Instant::now();
        while end.is_none() {
            if start.elapsed() >= self.patience {
                assert!(self.patience < LIMIT, "an operation did not end within {LIMIT:?}");
                return Err(UNANSWERED);
            }
            if !posted {
                match post(&mut self.endpoint, context) as c_int {
                    0 => posted = true,
                    code if code == -EAGAIN => {}
                    code => end = Some(CompletionStatus::Refused { code: -code, provider_code: 0 }),
                }
            }
            victim.poll();
            end = end.or_else(|| self.completion());
        }
        match end {
            Some(CompletionStatus::Done(_)) => Ok(()),
            Some(CompletionStatus::Refused { code, .. }) => Err(code),
            other => panic!("the operation ended as {other:?}"),
        }
    }

    fn completion(&mut self) -> Option<CompletionStatus> {
        let mut entry: MaybeUninit<fi_cq_msg_entry> = MaybeUninit::uninit();
        // SAFETY: the queue only writes to the entry.
        let place = unsafe { core::slice::from_raw_parts_mut(entry.as_mut_ptr(), 1) };
        match self.endpoint.completions(place) as c_int {
            1 => Some(CompletionStatus::Done(place[0].len)),
            code if code == -FI_EAVAIL => {
                let error = self.endpoint.failure()?;
                Some(CompletionStatus::Refused {
                    code: error.code,
                    provider_code: error.provider_code,
                })
            }
            _ => None,
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.endpoint.shut(self.mr.take().into_iter());
    }
}

/// The result of an operation: success, or libfabric's error.
type StrangerEnd = Result<(), c_int>;

/// A packet; its layout is that of `net::packet`.
fn packet(job: u64, from: u32, kind: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = job.to_le_bytes().to_vec();
    bytes.extend(from.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(rest);
    bytes
}

/// The content of a bell for the fourth word of a region.
fn bell(region: &Region) -> Vec<u8> {
    let mut bytes = u64::from(region.key.to_bits()).to_le_bytes().to_vec();
    bytes.extend(24u64.to_le_bytes());
    bytes
}

fn within(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
    }
}

const WORDS: usize = 8;
const MARK: u64 = 0x1111_2222_3333_4444;
const NOISE: u64 = 0x6666_7777_8888_9999;
const PACKET: u32 = 1;
const BELL: u32 = 2;
const SLOT_BYTES: usize = 128;
const AREA_BYTES: usize = 4096;
/// A number that is not an error of libfabric.
const UNANSWERED: c_int = 0;
/// An operation that is accepted takes some ten microseconds here.
const PATIENCE: Duration = Duration::from_millis(100);
/// Long enough for an operation on a crowded machine.
const LIMIT: Duration = Duration::from_secs(20);
