//! Accesses to memory of this node by the lookaside buffers: no lookup, no lock, no
//! clock. See `tsumugi_runtime::service::global_memory::Lookaside`.

use super::{Global, GlobalAddr};
use crate::AddrError;
use std::ptr::NonNull;
use tsumugi_core::backend::{LoadStore, execute};
use tsumugi_core::mem::{Agent, LocalAddr, Need, RegionKey, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_gas::cache::LightFence;
use tsumugi_pvas::Direct;
use tsumugi_runtime::guest::{guest, number_so_far};
use tsumugi_runtime::service::global_memory::{NearMemory, seat_of_guest, seat_of_worker};

impl Global {
    /// The seat of the calling thread: the place of its hazard pointers and of its
    /// lookaside buffer. `None`: the thread is no worker of this rank, and guests have
    /// all other seats. It holds until the ULT is suspended.
    #[inline(always)]
    pub(super) fn seat(&self) -> Option<usize> {
        match self.runtime.ults().worker() {
            Some(worker) => Some(seat_of_worker(worker)),
            None => guest().map(seat_of_guest),
        }
    }

    /// The place of `bytes` bytes in memory, if the lookaside buffer of this thread has
    /// it and the access is allowed. The table stays held until
    /// [`end_at_hand`](Self::end_at_hand); before that the caller must not suspend.
    ///
    /// There is no call in it, so that a small function that uses it needs no frame. A
    /// miss is to be followed by a lookup, which also lets the machine poll if that
    /// waited for this one.
    #[inline(always)]
    pub(super) fn at_hand<const HAZARD: usize>(
        &self,
        addr: GlobalAddr,
        bytes: u64,
        need: Need,
    ) -> Option<AtHand<HAZARD>> {
        AtHand::hold(self.look_aside(addr, bytes, need)?, self.cache.light())
    }

    /// The place of memory, if the thread's lookaside buffer has it and the access is
    /// allowed.
    #[inline(always)]
    fn look_aside(&self, addr: GlobalAddr, bytes: u64, need: Need) -> Option<NearMemory> {
        let seat = match self.runtime.ults().worker() {
            Some(worker) => seat_of_worker(worker),
            // A thread without a number has none of the seats.
            None => seat_of_guest(number_so_far()),
        };
        self.lookaside.find(seat, addr, bytes, need)
    }

    /// Ends an access. True: the machine waits for that, and the caller must call
    /// [`tick`](Self::tick).
    #[inline(always)]
    pub(super) fn end_at_hand<const HAZARD: usize>(&self, at_hand: AtHand<HAZARD>) -> bool {
        at_hand.end(self.cache.light())
    }

    /// Carries out an operation on a word that is at hand; `None` if nothing was done.
    /// Never waits. For the C interfaces.
    ///
    /// It does nothing on a machine that needs fences of the processor, for which there is
    /// [`try_word_fenced`](Self::try_word_fenced): without fences it takes few registers.
    #[inline(always)]
    #[doc(hidden)]
    pub fn try_word(&self, addr: GlobalAddr, op: &Op) -> Option<DoneWord> {
        match self.cache.light() {
            LightFence::Compiler => self.try_word_with(LightFence::Compiler, addr, op),
            LightFence::Processor => None,
        }
    }

    /// Does what [`try_word`](Self::try_word) does, on any machine.
    #[cold]
    #[inline(never)]
    pub(super) fn try_word_fenced(&self, addr: GlobalAddr, op: &Op) -> Option<DoneWord> {
        self.try_word_with(self.cache.light(), addr, op)
    }

    #[inline(always)]
    fn try_word_with(&self, light: LightFence, addr: GlobalAddr, op: &Op) -> Option<DoneWord> {
        let need = if op.writes() { Need::Write } else { Need::Read };
        let memory = self.look_aside(addr, op.bytes(), need)?;
        // What is wrong is found again, and told, by the lookup that follows. With this
        // check `execute` has no error to make, so the caller needs no frame for one.
        if memory.at.as_ptr() as usize & (op.bytes() as usize - 1) != 0 {
            return None;
        }
        let memory = AtHand::<0>::hold(memory, light)?;
        let direct = self.runtime.handle().direct();
        let result = execute(&FoundMemory { at: memory.at(), direct }, op);
        let must_tick = memory.end(light);
        Some(DoneWord { old: result.ok()?, must_tick })
    }

    /// Lets the machine poll after an operation that it waited for.
    #[cold]
    #[inline(never)]
    #[doc(hidden)]
    pub fn tick(&self) {
        self.driver.tick();
    }

    /// Puts the region of an address into the lookaside buffer of this thread, if it is
    /// memory of this node for which the buffer may be used and its table is in the
    /// cache.
    pub(super) fn note(&self, addr: GlobalAddr, bytes: u64, need: Need) -> bool {
        if self.flies && self.may_fly(addr) {
            return false;
        }
        let Some(seat) = self.seat() else { return false };
        let held = self.cache.hold_keeping::<0>(seat, addr, bytes, need);
        let Some((held, kept)) = held else { return false };
        let view = self.runtime.handle().direct().view(&held.target.remote);
        let view = view.filter(|_| held.target.agent == Agent::Cpu);
        if let Some(view) = view {
            self.lookaside.note(seat, addr, kept, view);
        }
        if self.cache.release::<0>(seat, held.slot) {
            self.tick();
        }
        view.is_some()
    }
}

/// A word operation that was carried out at hand.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct DoneWord {
    /// The old value; 0 for a put.
    pub old: u64,
    /// Whether [`Global::tick`] must be called.
    pub must_tick: bool,
}

/// Memory of this node, whose table is held.
#[must_use = "a hold that does not end keeps its table"]
pub(super) struct AtHand<const HAZARD: usize>(NearMemory);

impl<const HAZARD: usize> AtHand<HAZARD> {
    /// Holds the table of memory that the thread's lookaside buffer has.
    #[inline(always)]
    fn hold(memory: NearMemory, light: LightFence) -> Option<Self> {
        if !memory.kept().hold::<HAZARD>(light) {
            return None;
        }
        if memory.is_live() {
            return Some(Self(memory));
        }
        // The lookup that follows lets the machine poll.
        let _ = memory.kept().end::<HAZARD>(light);
        None
    }

    #[inline(always)]
    pub(super) fn at(&self) -> NonNull<u8> {
        self.0.at
    }

    #[inline(always)]
    fn end(self, light: LightFence) -> bool {
        self.0.kept().end::<HAZARD>(light)
    }
}

/// Memory that was found already, for an operation on it.
#[derive(Debug)]
pub(super) struct FoundMemory<'r> {
    /// The place of the operation's remote end.
    pub(super) at: NonNull<u8>,
    pub(super) direct: &'r Direct,
}

// SAFETY: `at` was found for the one operation that is carried out, in memory that
// `direct` keeps mapped; the rest is of `direct`.
unsafe impl LoadStore for FoundMemory<'_> {
    #[inline(always)]
    fn size(&self) -> u32 {
        self.direct.size()
    }

    #[inline(always)]
    fn resolve(&self, _: RemoteAddr, _: u64, _: Need) -> Result<NonNull<u8>, AddrError> {
        Ok(self.at)
    }

    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError> {
        self.direct.local(addr, bytes)
    }

    fn notify(&self, addr: RemoteAddr, at: NonNull<u8>) {
        self.direct.notify(addr, at);
    }
}

// SAFETY: the pointer is only one of `resolve`, to memory that all threads may access.
unsafe impl Sync for FoundMemory<'_> {}

/// The remote end of an operation before its place is known.
#[doc(hidden)]
pub const UNKNOWN: RemoteAddr =
    RemoteAddr { offset: 0, rank: crate::Rank(0), key: RegionKey::from_bits(0) };
