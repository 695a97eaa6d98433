//! Where ULTs run: stacks of one size, carved from one range of memory.
//!
//! ```text
//!  base                                                       base + bytes
//!  ┌─────┬───────────┬─┬─────┬────────┬─┬─────┬────────┬─┬────────┬─┬────────┬─┐
//!  │guard│ main      │c│guard│ stack 0│c│guard│ stack 1│c│ stack 2│c│ stack 3│c│
//!  └─────┴───────────┴─┴─────┴────────┴─┴─────┴────────┴─┴────────┴─┴────────┴─┘
//!                          guarded: up to `guards_max`     beyond: canaries
//! ```
//!
//! A stack grows down. A guarded one runs into a page without access; the
//! signal handler of `overflow` names the ULT. A guard
//! costs two of the 65,530 mappings that a process may have, so further
//! stacks have a canary: the line `c` at the top of the stack below, which is
//! checked whenever the ULT leaves its worker. The line lies in a page that is
//! in use already, so that a sleeping ULT still costs one page.
//!
//! Stacks are carved on first use and then pooled.

use crate::area::{STACK_BYTES_MIN, StackArea, StackError, page_bytes};
use crate::lock::Lock;
use crate::pool::{Cache, Depot};
use core::num::NonZeroUsize;
use core::ptr;
use tsumugi_core::sync::{AtomicBool, AtomicUsize, Ordering};

/// One stack. Whoever has it may run on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stack(Bounds);

/// Where a stack is, for whoever has to judge an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    top: NonZeroUsize,
    /// The lowest byte; a multiple of the page, so its low bits are flags.
    floor: NonZeroUsize,
}

impl Stack {
    pub(crate) fn bounds(&self) -> Bounds {
        self.0
    }
}

impl Bounds {
    /// The usable bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.top.get() + CANARY_LINE - self.floor()
    }

    /// Whether `at` is an address that a stack pointer on it may have.
    #[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) fn holds(&self, at: usize) -> bool {
        // The floor with its flag is no such address, nor is the top.
        at > (self.floor.get() | FLAGS) && at < self.top.get()
    }

    /// Where the first frame begins.
    #[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) fn top(&self) -> usize {
        self.top.get()
    }

    /// Whether `at` is in the page whose touch is this stack's overflow.
    #[cfg(not(tsumugi_loom))]
    pub(crate) fn is_guard(&self, at: usize) -> bool {
        self.is(GUARDED) && (self.floor() - page_bytes()..self.floor()).contains(&at)
    }

    /// Whether the canary below is alive, or there is a guard instead.
    #[inline]
    pub(crate) fn is_intact(&self) -> bool {
        if self.is(GUARDED) {
            return true;
        }
        let line = ptr::with_exposed_provenance::<u64>(self.floor() - CANARY_LINE);
        // SAFETY: the line below an unguarded stack is of the area and is
        // written only when the stack is carved, or by an overflow, which is
        // what we are looking for.
        unsafe { line.read_volatile() == CANARY && line.add(7).read_volatile() == CANARY }
    }

    fn floor(&self) -> usize {
        self.floor.get() & !FLAGS
    }

    fn is(&self, flag: usize) -> bool {
        self.floor.get() & flag != 0
    }
}

// SAFETY: from `floor` to `top` the memory is the stack's alone and at least
// 8 KiB. An overflow hits the guard page, or is noticed at the next switch by
// the canary and ends the process.
unsafe impl corosensei::stack::Stack for Stack {
    #[inline]
    fn base(&self) -> NonZeroUsize {
        self.0.top
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        let guard = if self.0.is(GUARDED) { page_bytes() } else { 0 };
        NonZeroUsize::new(self.0.floor() - guard).expect("no stack begins at 0")
    }
}

/// All stacks of a scheduler.
pub(crate) struct Stacks {
    first: usize,
    stack_bytes: usize,
    guarded: usize,
    count: usize,
    carved: AtomicUsize,
    guards_refused: AtomicBool,
    depot: Depot<Stack>,
    main: Depot<Stack>,
    area: Lock<Option<StackArea>>,
}

impl Stacks {
    pub(crate) fn new(
        area: StackArea,
        stack_bytes: usize,
        main_stack_bytes: usize,
        guards_max: usize,
    ) -> Result<Self, StackError> {
        let page = page_bytes();
        for stack_bytes in [stack_bytes, main_stack_bytes] {
            if stack_bytes % page != 0 || stack_bytes < STACK_BYTES_MIN {
                return Err(StackError::Size { stack_bytes });
            }
        }
        let needed = StackArea::bytes_for(1, stack_bytes, main_stack_bytes);
        if area.bytes() < needed {
            return Err(StackError::Small { bytes: area.bytes(), needed });
        }
        let start = area.base().as_ptr().expose_provenance();
        let first = start + page + main_stack_bytes;
        let room = area.bytes() - page - main_stack_bytes;
        let guarded = guards_max.min(room / (stack_bytes + page));
        let plain = (room - guarded * (stack_bytes + page)) / stack_bytes;
        let this = Self {
            first,
            stack_bytes,
            guarded,
            count: guarded + if guarded == guards_max { plain } else { 0 },
            carved: AtomicUsize::new(0),
            guards_refused: AtomicBool::new(false),
            depot: Depot::new(),
            main: Depot::new(),
            area: Lock::new(Some(area)),
        };
        this.main.put(this.make(start + page, main_stack_bytes, true));
        Ok(this)
    }

    /// A stack from the cache, the depot, or a new one. `None`: all in use.
    #[inline]
    pub(crate) fn take(&self, cache: &mut Cache<Stack>) -> Option<Stack> {
        cache.take(&self.depot).or_else(|| self.carve())
    }

    /// How many there can be, beside main's.
    pub(crate) fn max(&self) -> usize {
        self.count
    }

    /// Main's stack, once.
    pub(crate) fn take_main(&self) -> Option<Stack> {
        self.main.take()
    }

    #[inline]
    pub(crate) fn put(&self, stack: Stack, cache: &mut Cache<Stack>) {
        // Main's is as good as any other, but is not needed again.
        if stack.0.bytes() == self.stack_bytes {
            cache.put(stack, &self.depot);
        }
    }

    /// Takes a worker's cache back.
    pub(crate) fn drain(&self, cache: &mut Cache<Stack>) {
        cache.drain(&self.depot);
    }

    /// Whether `take` would find one.
    pub(crate) fn has_spare(&self, cache: &Cache<Stack>) -> bool {
        !cache.is_empty()
            || !self.depot.is_empty()
            || self.carved.load(Ordering::Relaxed) < self.count
    }

    /// Gives the area back to where it came from.
    ///
    /// # Safety
    ///
    /// Nobody runs on a stack, or is suspended on one, or takes one again.
    pub(crate) unsafe fn release(&self) {
        drop(self.area.with(Option::take));
    }

    #[cold]
    fn carve(&self) -> Option<Stack> {
        let mut index = self.carved.load(Ordering::Relaxed);
        loop {
            if index == self.count {
                return None;
            }
            // Relaxed: the count alone hands out each stack once.
            let next = self.carved.compare_exchange(
                index,
                index + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match next {
                Ok(_) => break,
                Err(changed) => index = changed,
            }
        }
        let (size, page) = (self.stack_bytes, page_bytes());
        let guards = index.min(self.guarded) * page;
        let guard = index < self.guarded;
        let floor = self.first + index * size + guards + if guard { page } else { 0 };
        Some(self.make(floor, size, guard))
    }

    fn make(&self, floor: usize, bytes: usize, wants_guard: bool) -> Stack {
        let guarded = wants_guard && self.guard(floor);
        if !guarded {
            let line = ptr::with_exposed_provenance_mut::<[u64; 8]>(floor - CANARY_LINE);
            // SAFETY: the line below each stack is no stack's, see the drawing.
            unsafe { line.write([CANARY; 8]) };
        }
        Stack(Bounds {
            top: NonZeroUsize::new(floor + bytes - CANARY_LINE).expect("no stack ends at 0"),
            floor: NonZeroUsize::new(floor | if guarded { GUARDED } else { 0 })
                .expect("no stack begins at 0"),
        })
    }

    /// Takes all access from the page below `floor`. False: the process has
    /// as many mappings as it may have; all further stacks have canaries.
    fn guard(&self, floor: usize) -> bool {
        if self.guards_refused.load(Ordering::Relaxed) {
            return false;
        }
        let page = ptr::with_exposed_provenance_mut(floor - page_bytes());
        // SAFETY: the page is the area's and no stack's.
        let done = unsafe { libc::mprotect(page, page_bytes(), libc::PROT_NONE) } == 0;
        if !done {
            self.guards_refused.store(true, Ordering::Relaxed);
        }
        done
    }
}

const GUARDED: usize = 1;
const FLAGS: usize = 1;
const CANARY_LINE: usize = 64;
const CANARY: u64 = 0x7473_756d_7567_6921;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;
    use corosensei::stack::Stack as _;

    fn stacks(stacks: usize, guards_max: usize) -> Stacks {
        let area = StackArea::map(StackArea::bytes_for(stacks, 16384, 65536)).unwrap();
        Stacks::new(area, 16384, 65536, guards_max).unwrap()
    }

    #[test]
    fn stacks_are_apart_and_run_out() {
        let (stacks, mut cache) = (stacks(5, 2), Cache::new());
        let mut taken = vec![stacks.take_main().unwrap()];
        while let Some(stack) = stacks.take(&mut cache) {
            taken.push(stack);
        }
        assert!(taken.len() > 5, "canaries take less room than guards");
        for pair in taken.windows(2) {
            assert!(pair[0].base().get() + CANARY_LINE <= pair[1].limit().get());
        }
        let guarded = taken.iter().filter(|stack| stack.0.is(GUARDED)).count();
        assert_eq!(guarded, 3, "main and two");
        assert_eq!(taken[1].0.bytes(), 16384);
        let last = taken.pop().unwrap();
        let floor = last.0.floor();
        stacks.put(last, &mut cache);
        assert_eq!(stacks.take(&mut cache).map(|stack| stack.0.floor()), Some(floor));
        assert!(taken[1].0.is_guard(taken[1].0.floor() - 1));
        assert!(!taken[1].0.is_guard(taken[1].0.floor()));
    }

    #[test]
    fn a_canary_dies_of_an_overflow() {
        let stacks = stacks(3, 0);
        let stack = stacks.take(&mut Cache::new()).unwrap();
        assert!(stack.0.is_intact());
        let below = ptr::with_exposed_provenance_mut::<u64>(stack.0.floor() - 8);
        // SAFETY: the canary's line; this is the overflow.
        unsafe { below.write(0) };
        assert!(!stack.0.is_intact());
    }

    #[test]
    fn bad_areas_are_refused() {
        let area = StackArea::map(1 << 20).unwrap();
        let refused = Stacks::new(area, 10_000, 65536, 1).err();
        assert_eq!(refused, Some(StackError::Size { stack_bytes: 10_000 }));
        let refused = Stacks::new(StackArea::map(65536).unwrap(), 16384, 65536, 1).err();
        assert!(matches!(refused, Some(StackError::Small { bytes: 65536, .. })), "{refused:?}");
        assert!(matches!(StackArea::map(100), Err(StackError::Unaligned { bytes: 100, .. })));
    }
}
