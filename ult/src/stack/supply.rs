//! The supply of a scheduler's stacks: each is carved on first use and then pooled,
//! each size by itself.

use super::class::{CLASSES, Class};
use super::guards::Guards;
use super::head::{HEAD_BYTES, StackHead};
use super::layout::{CANARY, CANARY_LINE, COLOUR_BYTES, COLOURS, GUARDED, MAIN, WATCHED};
use super::owned::Stack;
use super::switch::{Lives, Switch};
use crate::area::{STACK_BYTES_MIN, StackArea, StackError};
use crate::host::{self, page_bytes};
use crate::lock::Lock;
use crate::pool::{Depot, WorkerCache};
use core::ptr::{self, NonNull};
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// All stacks of a scheduler.
pub(crate) struct Stacks {
    end: usize,
    stack_bytes: usize,
    guards: Guards,
    lives: Lives,
    /// The place where the next stack, or its guard page, begins.
    next: AtomicUsize,
    carved: AtomicU32,
    guards_refused: AtomicBool,
    max: usize,
    depots: [Depot<Stack>; CLASSES],
    main: Depot<Stack>,
    area: Lock<Option<StackArea>>,
}

impl Stacks {
    pub(crate) fn new(
        area: StackArea,
        stack_bytes: usize,
        main_stack_bytes: usize,
        guards: Guards,
        lives: Lives,
    ) -> Result<Self, StackError> {
        let page = page_bytes();
        for stack_bytes in [stack_bytes, main_stack_bytes] {
            if stack_bytes % page != 0 || stack_bytes < STACK_BYTES_MIN {
                return Err(StackError::Size { stack_bytes });
            }
            // A head counts the pages in 32 bits.
            if stack_bytes > area.bytes() || u32::try_from(stack_bytes / page).is_err() {
                return Err(StackError::Large { stack_bytes, bytes: area.bytes() });
            }
        }
        let needed = StackArea::bytes_for(1, stack_bytes, main_stack_bytes);
        if area.bytes() < needed {
            return Err(StackError::Small { bytes: area.bytes(), needed });
        }
        let start = area.base().as_ptr().expose_provenance();
        // From here on no sum of sizes exceeds the area.
        let room = area.bytes() - page - main_stack_bytes;
        let max = match guards {
            Guards::None(_) | Guards::Canaries => room / stack_bytes,
            Guards::Groups(each) => {
                // A group larger than the area has the same effect as one as large as
                // the area.
                let each = (each.max(1) as usize).min(room / stack_bytes + 1);
                let group = each * stack_bytes + page;
                let rest = (room % group).saturating_sub(page) / stack_bytes;
                room / group * each + rest
            }
            Guards::Pages(guarded) => {
                let guarded = guarded.min(room / (stack_bytes + page));
                guarded + (room - guarded * (stack_bytes + page)) / stack_bytes
            }
        };
        let this = Self {
            end: start + area.bytes(),
            stack_bytes,
            guards,
            lives,
            next: AtomicUsize::new(start + page + main_stack_bytes),
            carved: AtomicU32::new(0),
            guards_refused: AtomicBool::new(false),
            max,
            depots: core::array::from_fn(|_| Depot::new()),
            main: Depot::new(),
            area: Lock::new(Some(area)),
        };
        let below = this.guard_or_canary(start + page, !matches!(guards, Guards::None(_)));
        this.main.put(this.make(start + page, main_stack_bytes, below, Class::default()));
        Ok(this)
    }

    /// How many stacks of the ordinary size are possible, beside main's.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// The size class for so many bytes.
    pub(crate) fn class(&self, bytes: usize) -> Option<Class> {
        Class::of(bytes, self.stack_bytes)
    }

    /// A stack from the cache, from the depot, or a new one. `None` if all are in
    /// use.
    #[inline]
    pub(crate) fn take(&self, class: Class, cache: &mut WorkerCache<Stack>) -> Option<Stack> {
        let depot = &self.depots[usize::from(class.0)];
        let pooled = if class.is_ordinary() { cache.take(depot) } else { depot.take() };
        pooled.or_else(|| self.carve(class))
    }

    /// Main's stack, the first time.
    pub(crate) fn take_main(&self) -> Option<Stack> {
        self.main.take()
    }

    #[inline]
    pub(crate) fn put(&self, stack: Stack, cache: &mut WorkerCache<Stack>) {
        // SAFETY: the caller gives up the stack, so it is ours.
        let head = unsafe { stack.0.as_ref() };
        if head.floor & MAIN != 0 {
            // Main's stack is as good as any other, but is not needed again.
        } else if head.class.is_ordinary() {
            cache.put(stack, &self.depots[0]);
        } else {
            self.depots[usize::from(head.class.0)].put(stack);
        }
    }

    /// Moves a worker's cache to the depot.
    pub(crate) fn drain(&self, cache: &mut WorkerCache<Stack>) {
        cache.drain(&self.depots[0]);
    }

    /// Whether `take` would find a stack.
    pub(crate) fn has_spare(&self, class: Class, cache: &WorkerCache<Stack>) -> bool {
        class.is_ordinary() && !cache.is_empty()
            || !self.depots[usize::from(class.0)].is_empty()
            || self.place(class, self.next.load(Ordering::Relaxed), 0).is_some()
    }

    /// Gives the area back to its owner.
    ///
    /// # Safety
    ///
    /// No ULT runs on a stack or is suspended on one, and no thread takes a stack
    /// again.
    pub(crate) unsafe fn release(&self) {
        drop(self.area.with(Option::take));
    }

    /// The floor and the end of a stack that begins at `next`.
    fn place(&self, class: Class, next: usize, guard_bytes: usize) -> Option<(usize, usize)> {
        let floor = next.checked_add(guard_bytes)?;
        let end = floor.checked_add(class.bytes(self.stack_bytes)?)?;
        (end <= self.end).then_some((floor, end))
    }

    #[cold]
    fn carve(&self, class: Class) -> Option<Stack> {
        let index = self.carved.load(Ordering::Relaxed) as usize;
        let wants_guard = match self.guards {
            Guards::None(_) | Guards::Canaries => false,
            Guards::Groups(each) => index.is_multiple_of(each.max(1) as usize),
            Guards::Pages(max) => index < max,
        };
        let guard_bytes = if wants_guard { page_bytes() } else { 0 };
        let mut next = self.next.load(Ordering::Relaxed);
        let (floor, end) = loop {
            let place = self.place(class, next, guard_bytes)?;
            // Relaxed: the exchange of this word alone gives out each place once.
            match self.next.compare_exchange(next, place.1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break place,
                Err(changed) => next = changed,
            }
        };
        // Relaxed: two threads that carve at once may make the same choice of a
        // guard, no more.
        self.carved.fetch_add(1, Ordering::Relaxed);
        let below = self.guard_or_canary(floor, wants_guard);
        Some(self.make(floor, end - floor, below, class))
    }

    fn make(&self, floor: usize, bytes: usize, below: usize, class: Class) -> Stack {
        let page = floor / page_bytes();
        let colour = (page / (self.stack_bytes / page_bytes())) % COLOURS * COLOUR_BYTES;
        let head = floor + bytes - CANARY_LINE - HEAD_BYTES - colour;
        let main = bytes != self.stack_bytes && class.is_ordinary();
        let head = ptr::with_exposed_provenance_mut::<StackHead>(head);
        // SAFETY: the place lies in the stack, which is new.
        unsafe {
            let (floor, pages) =
                (floor | below | if main { MAIN } else { 0 }, bytes / page_bytes());
            head.write(StackHead::new(Switch::new(), floor, pages as u32, class));
            (*head).switch.begin(head.cast(), self.lives);
        }
        Stack(NonNull::new(head).expect("no stack ends at 0"))
    }

    /// Sets up the protection below `floor`; returns its flag.
    fn guard_or_canary(&self, floor: usize, wants_guard: bool) -> usize {
        if wants_guard && self.guard(floor) {
            return GUARDED;
        }
        if matches!(self.guards, Guards::None(_)) {
            return 0;
        }
        let line = ptr::with_exposed_provenance_mut::<[u64; 8]>(floor - CANARY_LINE);
        // SAFETY: the line below each stack belongs to no stack, see the drawing in
        // `stack`.
        unsafe { line.write([CANARY; 8]) };
        WATCHED
    }

    /// Takes all access from the page below `floor`. False: the process has as many
    /// mappings as it may have, and all further stacks have canaries.
    fn guard(&self, floor: usize) -> bool {
        if self.guards_refused.load(Ordering::Relaxed) {
            return false;
        }
        let page = ptr::with_exposed_provenance_mut(floor - page_bytes());
        // SAFETY: the page belongs to the area and to no stack.
        let done = unsafe { host::guard(page) };
        if !done {
            self.guards_refused.store(true, Ordering::Relaxed);
        }
        done
    }
}
