//! Trials of the device: they are made within this process before anything relies
//! on it.
//!
//! ```text
//!  line a ── hello, put, get, atomics ──► line b, in the same process
//!         ── a put, b is not polled ────► b: is a sleeping target served?
//! ```

use super::config::{Config, OpenError};
use super::line::Line;
use crate::net::{Answer, Area, ENTRIES_MAX, End, Entry, Far, Mr, Near, Nears};
use crate::net::{Probed, Row, Verdict, Wire};
use core::ffi::c_int;
use std::time::{Duration, Instant};
use tsumugi_core::mem::{Access, Rank, RegionKey, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};

/// Two lines, and memory at both.
struct Bench {
    a: Line,
    b: Line,
    near: Near,
    far: Far,
    there: *mut u8,
    mrs: [Option<Mr>; 2],
    trials: usize,
    /// The number with which `b` was notified.
    rang: Option<u32>,
    _memory: [Area; 2],
}

/// Makes all trials, also by the dynamically connected transport if that is
/// requested. Returns the options for the real domain, without the transport if a
/// trial of it failed.
pub(super) fn settle(config: &Config) -> Result<(Config, Probed), OpenError> {
    if config.dynamic
        && let Ok(probed) = probe(config)
        && probed.rows.iter().all(|row| row.verdict == Verdict::Works)
    {
        return Ok((config.clone(), probed));
    }
    let config = Config { dynamic: false, ..config.clone() };
    let probed = probe(&config)?;
    Ok((config, probed))
}

/// Makes all trials.
fn probe(config: &Config) -> Result<Probed, OpenError> {
    let mut bench = Bench::open(config)?;
    let mut rows = Vec::new();
    // The first trial connects the two lines.
    for (name, verdict) in [(PUT, bench.put(FIRST, true)), (GET, bench.get())] {
        rows.push(Row { name, width: 0, verdict });
        if verdict != Verdict::Works {
            return Err(OpenError::Probe { name });
        }
    }
    let mut row = |name, width, verdict| rows.push(Row { name, width, verdict });
    row(Probed::LANDED, 0, bench.landed());
    row(Probed::SLEEPER, 0, bench.put(LIMIT, false));
    row(RINGS, 0, bench.rings());
    row(FETCH_ADD, 8, bench.word(Kind::FetchAdd, 5, 0, 45));
    row(COMPARE_SWAP, 8, bench.word(Kind::CompareSwap, 41, 40, 41));
    row(Probed::STALE, 0, bench.stale());
    Ok(Probed { rows })
}

impl Bench {
    fn open(config: &Config) -> Result<Self, OpenError> {
        let config = Config { event: false, pairs_max: 2, ..config.clone() };
        let mut a = Line::open(&config, Rank(0), TRIALS_MAX, 1)?;
        let mut b = Line::open(&config, Rank(1), TRIALS_MAX, 1)?;
        let memory = [Area::new(BYTES), Area::new(BYTES)];
        let failed = |name| move |code: c_int| OpenError::Call { name, code };
        let (here, there) = (memory[0].base.as_ptr(), memory[1].base.as_ptr());
        let bytes = BYTES as u64;
        let address = b.address().map_err(failed("ibv_query_gid"))?;
        let peer = a.insert(Rank(1), &address).map_err(failed("parsing the own address"))?;
        // SAFETY: pages of the bench, which stay until the lines are closed.
        let near = unsafe { a.register(here, bytes, Access::Local, 0) };
        let near = near.map_err(failed("ibv_reg_mr"))?;
        // SAFETY: as above.
        let far = match unsafe { b.register(there, bytes, Access::ReadWrite, 0) } {
            Ok(far) => far,
            Err(code) => {
                a.close_mr(&near);
                return Err(OpenError::Call { name: "ibv_reg_mr", code });
            }
        };
        Ok(Self {
            near: Near { at: here, desc: near.desc },
            far: Far { peer, addr: far.origin, key: far.key.words[0] },
            there,
            a,
            b,
            mrs: [Some(near), Some(far)],
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
        mut post: impl FnMut(&mut Line, usize) -> Answer,
    ) -> Result<(), Verdict> {
        self.trials += 1;
        let context = self.trials % TRIALS_MAX;
        let start = Instant::now();
        let (mut posted, mut entries) = (false, [Entry::EMPTY; ENTRIES_MAX]);
        while start.elapsed() < limit {
            if !posted {
                match post(&mut self.a, context) as c_int {
                    0 => posted = true,
                    code if code == -libc::EINPROGRESS || code == -libc::EAGAIN => {}
                    code => return Err(Verdict::Refused(-code)),
                }
                self.a.ring();
            }
            let count = self.a.completions(&mut entries).map_err(Verdict::Refused)?;
            match entries[..count].iter().find(|entry| entry.context == context) {
                Some(Entry { end: End::Done(_), .. }) => return Ok(()),
                Some(Entry { end: End::Again, .. }) => posted = false,
                Some(Entry { end: End::Refused { code, .. } | End::Gone { code, .. }, .. }) => {
                    return Err(Verdict::Refused(*code));
                }
                Some(Entry { end: End::Rang(_), .. }) | None => {}
            }
            if polled {
                let count = self.b.completions(&mut entries).map_err(Verdict::Refused)?;
                self.rang = entries[..count].iter().find_map(rang).or(self.rang);
            }
        }
        Err(Verdict::Silent)
    }

    fn put(&mut self, limit: Duration, polled: bool) -> Verdict {
        let value = 0x1122_3344_5566_7700 + self.trials as u64;
        self.set(self.near.at, value);
        let (near, far) = (self.near, self.far(64));
        // SAFETY: both ends are the bench's own.
        let done = self
            .run(limit, polled, |a, context| unsafe { a.put(near, 8, far, context, false, false) });
        judge(done, self.word_at(64) == value)
    }

    /// Tries a put that notifies its target with a number.
    fn rings(&mut self) -> Verdict {
        let desc =
            self.mrs[1].as_ref().expect("the memory is registered until the bench is dropped").desc;
        let buffer = Near { at: self.there.wrapping_add(512), desc };
        // SAFETY: the buffer is the bench's own; no other request uses the last
        // context.
        let given = unsafe { self.b.receive(buffer, 64, TRIALS_MAX - 1) };
        if given != 0 {
            return Verdict::Refused(-given as c_int);
        }
        self.set(self.near.at, 0x77);
        let (near, far, number) = (self.near, self.far(192), 0x1234_5678);
        // SAFETY: both ends are the bench's own.
        let done = self
            .run(LIMIT, true, |a, context| unsafe { a.put_ringing(near, 8, far, context, number) });
        let start = Instant::now();
        let mut entries = [Entry::EMPTY; ENTRIES_MAX];
        while self.rang.is_none() && start.elapsed() < LIMIT {
            let Ok(count) = self.b.completions(&mut entries) else { break };
            self.rang = entries[..count].iter().find_map(rang);
        }
        judge(done, self.word_at(192) == 0x77 && self.rang == Some(number))
    }

    fn get(&mut self) -> Verdict {
        self.set(self.there.wrapping_add(128), 0x99);
        let (near, far) = (self.near, self.far(128));
        // SAFETY: both ends are the bench's own.
        let done =
            self.run(LIMIT, true, |a, context| unsafe { a.get(near, 8, far, context, false) });
        judge(done, self.read(near.at) == 0x99)
    }

    /// Tries whether the bytes of a put are in memory when it completes, and not
    /// later.
    fn landed(&mut self) -> Verdict {
        (0..ROUNDS)
            .map(|_| self.put(LIMIT, true))
            .find(|&verdict| verdict != Verdict::Works)
            .unwrap_or(Verdict::Works)
    }

    /// Tries an atomic on a word with the value 40.
    fn word(&mut self, kind: Kind, operand: u64, compare: u64, then: u64) -> Verdict {
        self.set(self.there.wrapping_add(256), 40);
        let far = self.far(256);
        let remote = RemoteAddr { rank: Rank(1), key: RegionKey::from_bits(0), offset: 256 };
        let op = match kind {
            Kind::CompareSwap => Op::compare_swap(remote, compare, operand),
            _ => Op::atomic(kind, remote, operand),
        };
        debug_assert_eq!(op.width(), Some(Width::W8));
        let near = |at: usize| Near { at: self.near.at.wrapping_add(at), ..self.near };
        let nears = Nears { operand: near(0), compare: near(32), result: near(64) };
        // SAFETY: all ends are the bench's own.
        let done =
            self.run(LIMIT, true, |a, context| unsafe { a.word(&op, nears, far, context, false) });
        judge(done, self.word_at(256) == then && self.read(nears.result.at) == 40)
    }

    /// Tries a get under a key that names nothing, and whether the next get works
    /// again.
    fn stale(&mut self) -> Verdict {
        let (near, far) = (self.near, Far { key: self.far.key ^ 0x55, ..self.far });
        // SAFETY: the near end is the bench's own.
        let done =
            self.run(LIMIT, true, |a, context| unsafe { a.get(near, 8, far, context, false) });
        match done {
            Ok(()) => Verdict::Wrong,
            Err(Verdict::Refused(_)) => self.get(),
            Err(verdict) => verdict,
        }
    }

    fn far(&self, offset: u64) -> Far {
        Far { addr: self.far.addr + offset, ..self.far }
    }

    fn word_at(&self, offset: usize) -> u64 {
        self.read(self.there.wrapping_add(offset))
    }

    fn read(&self, at: *const u8) -> u64 {
        // SAFETY: inside the bench's own pages; a device may write to it.
        unsafe { at.cast::<u64>().read_volatile() }
    }

    fn set(&mut self, at: *mut u8, value: u64) {
        // SAFETY: as above.
        unsafe { at.cast::<u64>().write_volatile(value) };
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let [near, far] = &mut self.mrs;
        self.a.shut(near.take().into_iter());
        self.b.shut(far.take().into_iter());
    }
}

fn rang(entry: &Entry) -> Option<u32> {
    if let End::Rang(number) = entry.end { Some(number) } else { None }
}

fn judge(done: Result<(), Verdict>, is_right: bool) -> Verdict {
    match done {
        Ok(()) if is_right => Verdict::Works,
        Ok(()) => Verdict::Wrong,
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
