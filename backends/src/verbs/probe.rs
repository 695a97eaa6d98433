//! Trials of the device: they are made within this process before anything relies
//! on it.
//!
//! ```text
//!  wire a ── connect request, put, get, atomics ──► wire b, in the same process
//!         ── a put, b is not polled ────► b: is a sleeping target served?
//! ```

use super::config::{OpenError, VerbsConfig};
use super::wire::VerbsWire;
use crate::net::{
    CompletionEntry, CompletionStatus, ENTRIES_MAX, LocalBuffer, Mr, PostResult, RemoteBuffer,
    WordBuffers, ZeroedPages,
};
use crate::net::{NetWire, ProbeReport, TrialResult, TrialRow};
use core::ffi::c_int;
use std::time::{Duration, Instant};
use tsumugi_core::mem::{Access, Rank, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// Two wires, and memory at both.
struct VerbsTestbed {
    a: VerbsWire,
    b: VerbsWire,
    local: LocalBuffer,
    remote: RemoteBuffer,
    there: *mut u8,
    mrs: [Option<Mr>; 2],
    trials: usize,
    /// The number with which `b` was notified.
    rang: Option<u32>,
    _memory: [ZeroedPages; 2],
}

/// Makes all trials, also by the dynamically connected transport if that is
/// requested. Returns the options for the real domain, without the transport if a
/// trial of it failed.
pub(super) fn choose_transport(
    config: &VerbsConfig,
) -> Result<(VerbsConfig, ProbeReport), OpenError> {
    if config.dct
        && let Ok(probed) = probe(config)
        && probed.rows.iter().all(|row| row.verdict == TrialResult::Works)
    {
        return Ok((config.clone(), probed));
    }
    let config = VerbsConfig { dct: false, ..config.clone() };
    let probed = probe(&config)?;
    Ok((config, probed))
}

/// Makes all trials.
fn probe(config: &VerbsConfig) -> Result<ProbeReport, OpenError> {
    let mut testbed = VerbsTestbed::open(config)?;
    let mut rows = Vec::new();
    // The first trial connects the two wires.
    for (name, verdict) in [(PUT, testbed.put(FIRST, true)), (GET, testbed.get())] {
        rows.push(TrialRow { name, width: 0, verdict });
        if verdict != TrialResult::Works {
            return Err(OpenError::Probe { name });
        }
    }
    let mut row = |name, width, verdict| rows.push(TrialRow { name, width, verdict });
    row(ProbeReport::LANDED, 0, testbed.landed());
    row(ProbeReport::SLEEPER, 0, testbed.put(LIMIT, false));
    row(RINGS, 0, testbed.rings());
    row(FETCH_ADD, 8, testbed.word(Kind::FetchAdd, 5, 0, 45));
    row(COMPARE_SWAP, 8, testbed.word(Kind::CompareSwap, 41, 40, 41));
    row(ProbeReport::STALE, 0, testbed.stale());
    Ok(ProbeReport { rows })
}

impl VerbsTestbed {
    fn open(config: &VerbsConfig) -> Result<Self, OpenError> {
        let config = VerbsConfig { event: false, pairs_max: 2, ..config.clone() };
        let mut a = VerbsWire::open(&config, Rank(0), TRIALS_MAX, 1)?;
        let mut b = VerbsWire::open(&config, Rank(1), TRIALS_MAX, 1)?;
        let memory = [ZeroedPages::new(BYTES), ZeroedPages::new(BYTES)];
        let failed = |name| move |code: c_int| OpenError::Call { name, code };
        let (here, there) = (memory[0].base.as_ptr(), memory[1].base.as_ptr());
        let bytes = BYTES as u64;
        let address = b.address().map_err(failed("ibv_query_gid"))?;
        let peer = a.insert(Rank(1), &address).map_err(failed("parsing the own address"))?;
        // SAFETY: pages of the testbed, which stay until the wires are closed.
        let local = unsafe { a.register(here, bytes, Access::Local, 0) };
        let local = local.map_err(failed("ibv_reg_mr"))?;
        // SAFETY: as above.
        let remote = match unsafe { b.register(there, bytes, Access::ReadWrite, 0) } {
            Ok(remote) => remote,
            Err(code) => {
                a.close_mr(&local);
                return Err(OpenError::Call { name: "ibv_reg_mr", code });
            }
        };
        Ok(Self {
            local: LocalBuffer { at: here, desc: local.desc },
            remote: RemoteBuffer { peer, addr: remote.origin, key: remote.key.words[0] },
            there,
            a,
            b,
            mrs: [Some(local), Some(remote)],
            trials: 0,
            rang: None,
            _memory: memory,
        })
    }

    /// Posts, and waits for the completion; `polled` says whether the target is
    /// polled meanwhile.
    fn run(
        &mut self,
        limit: Duration,
        polled: bool,
        post: &mut dyn FnMut(&mut VerbsWire, usize) -> PostResult,
    ) -> Result<(), TrialResult> {
        self.trials += 1;
        let context = self.trials % TRIALS_MAX;
        let start = Instant::now();
        let (mut posted, mut entries) = (false, [CompletionEntry::EMPTY; ENTRIES_MAX]);
        while start.elapsed() < limit {
            if !posted {
                match post(&mut self.a, context) as c_int {
                    0 => posted = true,
                    code if code == -libc::EINPROGRESS || code == -libc::EAGAIN => {}
                    code => return Err(TrialResult::Refused(-code)),
                }
                self.a.ring_doorbell();
            }
            let count = self.a.completions(&mut entries).map_err(TrialResult::Refused)?;
            match entries[..count].iter().find(|entry| entry.context == context) {
                Some(CompletionEntry { end: CompletionStatus::Done(_), .. }) => return Ok(()),
                Some(CompletionEntry { end: CompletionStatus::Again, .. }) => posted = false,
                Some(CompletionEntry {
                    end:
                        CompletionStatus::Refused { code, .. } | CompletionStatus::Gone { code, .. },
                    ..
                }) => {
                    return Err(TrialResult::Refused(*code));
                }
                Some(CompletionEntry { end: CompletionStatus::Immediate(_), .. }) | None => {}
            }
            if polled {
                let count = self.b.completions(&mut entries).map_err(TrialResult::Refused)?;
                self.rang = entries[..count].iter().find_map(rang).or(self.rang);
            }
        }
        Err(TrialResult::Silent)
    }

    fn put(&mut self, limit: Duration, polled: bool) -> TrialResult {
        let value = 0x1122_3344_5566_7700 + self.trials as u64;
        self.set(self.local.at, value);
        let (local, remote) = (self.local, self.remote(64));
        // SAFETY: both ends are the testbed's own.
        let done = self.run(limit, polled, &mut |a, context| unsafe {
            a.put(local, 8, remote, context, false, false)
        });
        judge(done, self.word_at(64) == value)
    }

    /// Tries a put that notifies its target with a number.
    fn rings(&mut self) -> TrialResult {
        let desc =
            self.mrs[1].as_ref().expect("the memory is registered until the bench is dropped").desc;
        let buffer = LocalBuffer { at: self.there.wrapping_add(512), desc };
        // SAFETY: the buffer is the testbed's own; no other request uses the last
        // context.
        let given = unsafe { self.b.receive(buffer, 64, TRIALS_MAX - 1) };
        if given != 0 {
            return TrialResult::Refused(-given as c_int);
        }
        self.set(self.local.at, 0x77);
        let (local, remote, number) = (self.local, self.remote(192), 0x1234_5678);
        // SAFETY: both ends are the testbed's own.
        let done = self.run(LIMIT, true, &mut |a, context| unsafe {
            a.put_with_immediate(local, 8, remote, context, number)
        });
        let start = Instant::now();
        let mut entries = [CompletionEntry::EMPTY; ENTRIES_MAX];
        while self.rang.is_none() && start.elapsed() < LIMIT {
            let Ok(count) = self.b.completions(&mut entries) else { break };
            self.rang = entries[..count].iter().find_map(rang);
        }
        judge(done, self.word_at(192) == 0x77 && self.rang == Some(number))
    }

    fn get(&mut self) -> TrialResult {
        self.set(self.there.wrapping_add(128), 0x99);
        let (local, remote) = (self.local, self.remote(128));
        // SAFETY: both ends are the testbed's own.
        let done = self
            .run(LIMIT, true, &mut |a, context| unsafe { a.get(local, 8, remote, context, false) });
        judge(done, self.read(local.at) == 0x99)
    }

    /// Tries whether the bytes of a put are in memory when it completes, and not
    /// later.
    fn landed(&mut self) -> TrialResult {
        (0..ROUNDS)
            .map(|_| self.put(LIMIT, true))
            .find(|&verdict| verdict != TrialResult::Works)
            .unwrap_or(TrialResult::Works)
    }

    /// Tries an atomic on a word with the value 40.
    fn word(&mut self, kind: Kind, operand: u64, compare: u64, then: u64) -> TrialResult {
        self.set(self.there.wrapping_add(256), 40);
        let remote = self.remote(256);
        let addr = RemoteAddr { rank: Rank(1), key: RegionKey::from_bits(0), offset: 256 };
        let op = match kind {
            Kind::CompareSwap => Op::compare_swap(addr, compare, operand),
            _ => Op::atomic(kind, addr, operand),
        };
        debug_assert_eq!(op.width(), Some(Width::W8));
        let local = |at: usize| LocalBuffer { at: self.local.at.wrapping_add(at), ..self.local };
        let locals = WordBuffers { operand: local(0), compare: local(32), result: local(64) };
        // SAFETY: all ends are the testbed's own.
        let done = self.run(LIMIT, true, &mut |a, context| unsafe {
            a.word(&op, locals, remote, context, false)
        });
        judge(done, self.word_at(256) == then && self.read(locals.result.at) == 40)
    }

    /// Tries a get under a key that names nothing, and whether the next get works
    /// again.
    fn stale(&mut self) -> TrialResult {
        let (local, remote) =
            (self.local, RemoteBuffer { key: self.remote.key ^ 0x55, ..self.remote });
        // SAFETY: the local end is the testbed's own.
        let done = self
            .run(LIMIT, true, &mut |a, context| unsafe { a.get(local, 8, remote, context, false) });
        match done {
            Ok(()) => TrialResult::Wrong,
            Err(TrialResult::Refused(_)) => self.get(),
            Err(verdict) => verdict,
        }
    }

    fn remote(&self, offset: u64) -> RemoteBuffer {
        RemoteBuffer { addr: self.remote.addr + offset, ..self.remote }
    }

    fn word_at(&self, offset: usize) -> u64 {
        self.read(self.there.wrapping_add(offset))
    }

    fn read(&self, at: *const u8) -> u64 {
        // SAFETY: inside the testbed's own pages; a device may write to it.
        unsafe { at.cast::<u64>().read_volatile() }
    }

    fn set(&mut self, at: *mut u8, value: u64) {
        // SAFETY: as above.
        unsafe { at.cast::<u64>().write_volatile(value) };
    }
}

impl Drop for VerbsTestbed {
    fn drop(&mut self) {
        let [local, remote] = &mut self.mrs;
        self.a.shut(local.take().into_iter());
        self.b.shut(remote.take().into_iter());
    }
}

fn rang(entry: &CompletionEntry) -> Option<u32> {
    if let CompletionStatus::Immediate(number) = entry.end { Some(number) } else { None }
}

fn judge(done: Result<(), TrialResult>, is_right: bool) -> TrialResult {
    match done {
        Ok(()) if is_right => TrialResult::Works,
        Ok(()) => TrialResult::Wrong,
        Err(verdict) => verdict,
    }
}

const PUT: &str = "put";
const GET: &str = "get";
pub(super) const RINGS: &str = "a put notifies its target";
const FETCH_ADD: &str = "fetch-add";
const COMPARE_SWAP: &str = "compare-swap";

const BYTES: usize = 4096;
const TRIALS_MAX: usize = 64;
const ROUNDS: usize = 16;
const FIRST: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(2);
