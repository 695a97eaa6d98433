//! Trials of the provider: every capability is tried within this process before
//! anything relies on it.
//!
//! ```text
//!  endpoint a ── put, get, atomics, packets ──► endpoint b, in the same process
//!         ── a put, b is not polled ──────► b: is a sleeping target served?
//! ```
//!
//! The reports of `fi_getinfo` are no proof: providers advertise atomics that
//! return "not implemented", and progress that never happens. Each trial has a time
//! limit; a trial without an answer within it counts as silent.

mod atomic;
mod packet;

use super::choice::Choice;
use super::config::OpenError;
use super::endpoint::RdmEndpoint;
use super::fabric::Fabric;
use super::sys::*;
use crate::net::{
    LocalBuffer, Mr, PostResult, ProbeReport, RemoteBuffer, TrialResult, TrialRow, ZeroedPages,
};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether every atomic of `core` works, with 4 and with 8 bytes.
pub(super) fn all_atomics(probed: &ProbeReport) -> bool {
    FETCHING.iter().all(|(name, ..)| probed.works(name)) && probed.works(COMPARE_SWAP)
}

/// Two endpoints, and memory at both.
struct OfiTestbed {
    a: RdmEndpoint,
    b: RdmEndpoint,
    local: LocalBuffer,
    remote: RemoteBuffer,
    there: *mut u8,
    mrs: [Option<Mr>; 2],
    contexts: ZeroedPages,
    trials: usize,
    _memory: [ZeroedPages; 2],
}

/// Makes all trials.
pub(super) fn probe(fabric: &Arc<Fabric>, choice: &Choice) -> Result<ProbeReport, OpenError> {
    let mut testbed = OfiTestbed::open(fabric, choice)?;
    let mut rows = Vec::new();
    let mut row = |name, width, verdict| {
        rows.push(TrialRow { name, width, verdict });
        verdict == TrialResult::Works
    };
    // The first trial connects the two endpoints.
    for (name, verdict) in [(PUT, testbed.put(0, FIRST)), (GET, testbed.get())] {
        if !row(name, 0, verdict) {
            return Err(OpenError::Probe { name });
        }
    }
    row(ProbeReport::LANDED, 0, testbed.landed());
    row(INJECT, 0, testbed.put(FI_INJECT, LIMIT));
    row(BATCH, 0, testbed.batch());
    for width in [4, 8] {
        for (name, op, function) in FETCHING {
            row(name, width, testbed.fetching(choice, width, op, function));
        }
        row(COMPARE_SWAP, width, testbed.compare_swap(choice, width));
        row(ADD, width, testbed.storing(choice, width, FI_SUM, |old, with| old.wrapping_add(with)));
        row(WORD_PUT, width, testbed.storing(choice, width, FI_ATOMIC_WRITE, |_, with| with));
    }
    row(PACKET, 0, testbed.packet(false));
    row(GIVEN, 0, testbed.given());
    row(WAKES, 0, testbed.packet(true));
    row(ProbeReport::SLEEPER, 0, testbed.sleeper());
    row(ProbeReport::STALE, 0, testbed.stale());
    Ok(ProbeReport { rows })
}

impl OfiTestbed {
    fn open(fabric: &Arc<Fabric>, choice: &Choice) -> Result<Self, OpenError> {
        let mut a = RdmEndpoint::open(fabric, choice, 64, false)?;
        let mut b = RdmEndpoint::open(fabric, choice, 64, true)?;
        let memory = [ZeroedPages::new(BYTES), ZeroedPages::new(BYTES)];
        let failed = |name| move |code: c_int| OpenError::Call { name, code };
        let (bytes, key) = (BYTES as u64, 1);
        let (here, there) = (memory[0].base.as_ptr(), memory[1].base.as_ptr());
        let own = FI_READ | FI_WRITE | FI_TRANSMIT | FI_RECV;
        // SAFETY: both are pages of the testbed, which stay until the endpoints are
        // closed.
        let (local, remote) = unsafe {
            (a.register(here, bytes, own, key), b.register(there, bytes, own | FAR, key))
        };
        let local = local.map_err(failed("fi_mr_reg"))?;
        let remote = match remote {
            Ok(remote) => remote,
            Err(code) => {
                a.close_mr(&local);
                return Err(OpenError::Call { name: "fi_mr_reg", code });
            }
        };
        let peer = b.address().and_then(|address| a.insert(&address));
        let device_key = a.map_key(&remote.key, remote.origin);
        let testbed = Self {
            local: LocalBuffer { at: here, desc: local.desc },
            remote: RemoteBuffer {
                peer: *peer.as_ref().unwrap_or(&0),
                addr: remote.origin,
                key: *device_key.as_ref().unwrap_or(&0),
            },
            there,
            a,
            b,
            mrs: [Some(local), Some(remote)],
            contexts: ZeroedPages::new(TRIALS_MAX * 64),
            trials: 0,
            _memory: memory,
        };
        peer.map_err(failed("fi_av_insert"))?;
        device_key.map_err(failed("fi_mr_map_raw"))?;
        Ok(testbed)
    }

    fn here(&self, offset: usize) -> LocalBuffer {
        LocalBuffer { at: self.local.at.wrapping_add(offset), ..self.local }
    }

    fn remote(&self, offset: u64) -> RemoteBuffer {
        RemoteBuffer { addr: self.remote.addr + offset, ..self.remote }
    }

    /// A context that was not used before, so that a late completion of another
    /// trial is recognized.
    fn context(&mut self) -> *mut c_void {
        self.trials += 1;
        self.contexts.base.as_ptr().wrapping_add(self.trials % TRIALS_MAX * 64).cast()
    }

    /// A word of the target, as the target's processor sees it.
    fn word(&self, offset: usize, width: usize) -> u64 {
        let at = self.there.wrapping_add(offset);
        // SAFETY: inside the target's page; a device may write to it.
        unsafe {
            if width == 4 {
                u64::from(at.cast::<u32>().read_volatile())
            } else {
                at.cast::<u64>().read_volatile()
            }
        }
    }

    fn set_word(at: *mut u8, width: usize, value: u64) {
        // SAFETY: as above.
        unsafe {
            if width == 4 {
                at.cast::<u32>().write_volatile(value as u32);
            } else {
                at.cast::<u64>().write_volatile(value);
            }
        }
    }

    /// Posts, and waits for the completion; `polled` says whether the target is
    /// polled meanwhile.
    fn run(
        &mut self,
        limit: Duration,
        polled: bool,
        post: &mut dyn FnMut(&mut RdmEndpoint, *mut c_void) -> PostResult,
    ) -> Result<(), TrialResult> {
        let context = self.context();
        let start = Instant::now();
        loop {
            match post(&mut self.a, context) as c_int {
                0 => break,
                code if code != -EAGAIN => return Err(TrialResult::Refused(-code)),
                _ => {}
            }
            self.turn(context, polled)?;
            if start.elapsed() > limit {
                return Err(TrialResult::Silent);
            }
        }
        while !self.turn(context, polled)? {
            if start.elapsed() > limit {
                return Err(TrialResult::Silent);
            }
        }
        Ok(())
    }

    /// Polls both queues once; returns whether `context` has completed.
    fn turn(&mut self, context: *mut c_void, polled: bool) -> Result<bool, TrialResult> {
        let mut entry: MaybeUninit<fi_cq_msg_entry> = MaybeUninit::uninit();
        // SAFETY: the queue only writes to the entry.
        let place = unsafe { core::slice::from_raw_parts_mut(entry.as_mut_ptr(), 1) };
        match self.a.completions(place) {
            1 if place[0].op_context == context => return Ok(true),
            answer if answer as c_int == -FI_EAVAIL => {
                if let Some(error) = self.a.failure()
                    && error.context == context as usize
                {
                    return Err(TrialResult::Refused(error.code));
                }
            }
            _ => {}
        }
        if polled && self.b.completions(place) as c_int == -FI_EAVAIL {
            self.b.failure();
        }
        Ok(false)
    }

    fn put(&mut self, flags: u64, limit: Duration) -> TrialResult {
        let (local, remote) = (self.here(0), self.remote(64));
        let value = 0x1122_3344_5566_7700 + self.trials as u64;
        Self::set_word(local.at, 8, value);
        let spoil = flags & FI_INJECT != 0;
        let done = self.run(limit, true, &mut |a, context| {
            // SAFETY: both ends are the testbed's own.
            let answer = unsafe { a.write(local, 8, remote, context, flags) };
            if answer == 0 && spoil {
                // The bytes were injected, so the provider must not read them any
                // more.
                Self::set_word(local.at, 8, 0);
            }
            answer
        });
        self.judge(done, |testbed| testbed.settles(64, 8, value))
    }

    fn get(&mut self) -> TrialResult {
        Self::set_word(self.there.wrapping_add(128), 8, 0x99);
        let (local, remote) = (self.here(8), self.remote(128));
        // SAFETY: both ends are the testbed's own.
        let done = self
            .run(LIMIT, true, &mut |a, context| unsafe { a.read(local, 8, remote, context, 0) });
        // SAFETY: the get is over.
        self.judge(done, |_| unsafe { local.at.cast::<u64>().read_volatile() } == 0x99)
    }

    /// Tries whether the bytes of a put are in memory when it completes, and not
    /// later.
    fn landed(&mut self) -> TrialResult {
        for round in 1..=ROUNDS {
            let (local, remote) = (self.here(0), self.remote(64));
            Self::set_word(local.at, 8, round);
            let done = self.run(LIMIT, true, &mut |a, context| {
                // SAFETY: both ends are the testbed's own.
                unsafe { a.write(local, 8, remote, context, 0) }
            });
            let verdict = self.judge(done, |testbed| testbed.word(64, 8) == round);
            if verdict != TrialResult::Works {
                return verdict;
            }
        }
        TrialResult::Works
    }

    /// Tries two puts with one doorbell.
    fn batch(&mut self) -> TrialResult {
        let first = self.context();
        let (local, remote) = (self.here(0), self.remote(192));
        Self::set_word(local.at, 8, 0x77);
        // SAFETY: both ends are the testbed's own.
        let answer = unsafe { self.a.write(local, 8, remote, first, FI_MORE) };
        if answer != 0 {
            return TrialResult::Refused(-answer as i32);
        }
        let start = Instant::now();
        let (mut one, mut two) = (false, false);
        let second = self.context();
        let remote = self.remote(200);
        let mut posted = false;
        while !(one && two) {
            if !posted {
                // SAFETY: as above.
                posted = unsafe { self.a.write(local, 8, remote, second, 0) } == 0;
            }
            // Both contexts must be found in one stream of completions, so this
            // loop reads the completions itself.
            let mut entry: MaybeUninit<fi_cq_msg_entry> = MaybeUninit::uninit();
            // SAFETY: the queue only writes to the entry.
            let place = unsafe { core::slice::from_raw_parts_mut(entry.as_mut_ptr(), 1) };
            if self.a.completions(place) == 1 {
                one |= place[0].op_context == first;
                two |= place[0].op_context == second;
            }
            self.b.completions(place);
            if start.elapsed() > LIMIT {
                return TrialResult::Silent;
            }
        }
        self.judge(Ok(()), |testbed| testbed.settles(192, 8, 0x77) && testbed.settles(200, 8, 0x77))
    }

    /// Tries a get under a key that names nothing.
    fn stale(&mut self) -> TrialResult {
        let local = self.here(8);
        let remote = RemoteBuffer { key: self.remote.key ^ 0x55, ..self.remote };
        let done = self.run(LIMIT, true, &mut |a, context| {
            // SAFETY: the local end is the testbed's own.
            unsafe { a.read(local, 8, remote, context, 0) }
        });
        match done {
            Ok(()) => TrialResult::Wrong,
            Err(TrialResult::Refused(_)) => TrialResult::Works,
            Err(verdict) => verdict,
        }
    }

    fn judge(
        &mut self,
        done: Result<(), TrialResult>,
        is_right: impl FnOnce(&mut Self) -> bool,
    ) -> TrialResult {
        match done {
            Ok(()) if is_right(self) => TrialResult::Works,
            Ok(()) => TrialResult::Wrong,
            Err(verdict) => verdict,
        }
    }

    /// Whether a word of the target becomes `value`: a completion may come before
    /// the effect of its operation.
    fn settles(&mut self, offset: usize, width: usize, value: u64) -> bool {
        let start = Instant::now();
        while self.word(offset, width) != value {
            let _ = self.turn(core::ptr::null_mut(), true);
            if start.elapsed() > LIMIT {
                return false;
            }
        }
        true
    }

    fn read(at: *const u8, width: usize) -> u64 {
        // SAFETY: inside the testbed's own page.
        unsafe {
            if width == 4 {
                u64::from(at.cast::<u32>().read_volatile())
            } else {
                at.cast::<u64>().read_volatile()
            }
        }
    }
}

impl Drop for OfiTestbed {
    fn drop(&mut self) {
        let [local, remote] = &mut self.mrs;
        self.a.shut(local.take().into_iter());
        self.b.shut(remote.take().into_iter());
    }
}

/// The three families of atomics.
#[derive(Clone, Copy)]
pub(super) enum Atomic {
    Store,
    Fetch,
    Compare,
}

const fn datatype(width: usize) -> c_int {
    if width == 4 { FI_UINT32 } else { FI_UINT64 }
}

type Function = fn(u64, u64) -> u64;

/// The atomics that return the old value.
const FETCHING: [(&str, c_int, Function); 6] = [
    ("fetch-add", FI_SUM, |old, with| old.wrapping_add(with)),
    ("swap", FI_ATOMIC_WRITE, |_, with| with),
    ("fetch-and", FI_BAND, |old, with| old & with),
    ("fetch-or", FI_BOR, |old, with| old | with),
    ("fetch-xor", FI_BXOR, |old, with| old ^ with),
    (WORD_GET, FI_ATOMIC_READ, |old, _| old),
];
const COMPARE_SWAP: &str = "compare-swap";
const ADD: &str = "add";
const PUT: &str = "put";
const GET: &str = "get";
const WAKES: &str = "a packet wakes a sleeping target";
const PACKET: &str = "packet";

/// Names of trials that other modules use.
pub(super) const INJECT: &str = "an injected put";
pub(super) const GIVEN: &str = "an injected packet";
pub(super) const WORD_GET: &str = "atomic get";
pub(super) const WORD_PUT: &str = "atomic put";
pub(super) const BATCH: &str = "two puts with one doorbell";

const FAR: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;
const BYTES: usize = 4096;
const TRIALS_MAX: usize = 256;
const ROUNDS: u64 = 16;
const FIRST: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(1);
const SLEEPER_LIMIT: Duration = Duration::from_millis(20);
