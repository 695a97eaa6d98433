//! Where ULTs run: stacks carved from one range of memory.
//!
//! ```text
//!  base                                                    base + bytes
//!  ┌─────┬───────────┬────┬─────┬─────────┬────┬─────────┬────┬────────
//!  │guard│ main      │head│guard│ stack 0 │head│ stack 1 │head│ ...
//!  └─────┴───────────┴────┴─────┴─────────┴────┴─────────┴────┴────────
//!
//!  one stack          ◄── grows down │ colour, 0 to 960
//!  ┌────────────────────────────────┬▼──────────────────────┬───────────┐
//!  │ frames          │ parent link  │ Head: switch │ reason │ canary of │
//!  │                 │ 16           │ 48           │ 64     │ the next  │
//!  └─────────────────┴──────────────┴──────────────┴────────┴───────────┘
//!                    └─ one cache line ───────────┘          64, at the top
//! ```
//!
//! A stack grows down. What [`Guards`] decides is what lies below its floor: a
//! page without access, whose touch the signal handler of `overflow` turns
//! into the ULT's name; or the line at the top of the stack below, a canary
//! that is checked whenever the ULT leaves its worker. Guards cost two of the
//! 65,530 mappings that a process may have, canaries lie in a page that is in
//! use already.
//!
//! What belongs to a stack and not to a ULT lies in its [`Head`]: the saved
//! context, so that a switch touches few lines, and what a sleeper waits for.
//! Heads of neighbours have different offsets in their pages, because cache
//! sets go by those bits: a thousand heads at one offset share eight lines.
//!
//! Stacks are carved on first use and then pooled, each size by itself.

use crate::area::{STACK_BYTES_MIN, StackArea, StackError, page_bytes};
use crate::lock::Lock;
use crate::pool::{Cache, Depot};
use core::convert::Infallible;
use core::mem::MaybeUninit;
use core::num::NonZeroUsize;
use core::ptr::{self, NonNull};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use tsumugi_core::sync::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, UnsafeCell, fence,
};
use tsumugi_core::wait::Reason;

/// What is below a stack's floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guards {
    /// Whatever comes: an overflow corrupts the stack below, unnoticed.
    None,
    /// A canary each.
    Canaries,
    /// A guard page for every so many stacks, canaries for the others.
    Groups(u32),
    /// A guard page each for the first so many stacks, canaries beyond.
    Pages(usize),
}

/// What a context that leaves says to whoever resumed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left(*mut ());

/// What a stack runs, again and again: one life at a time.
pub(crate) type Life = unsafe fn(*const ());

/// A context on a stack.
type Switch = Coroutine<*const (), Left, Infallible, Stack>;

impl Left {
    /// It lets others run.
    pub(crate) const YIELD: Self = Self(ptr::null_mut());
    /// Its life is over, the next can begin.
    const ENDED: Self = Self(ptr::without_provenance_mut(1));

    /// It asks for something; the request lies on its stack.
    pub(crate) fn request<T>(request: *mut T) -> Self {
        Self(request.cast())
    }

    #[inline(always)]
    pub(crate) fn is_yield(self) -> bool {
        self == Self::YIELD
    }

    #[inline(always)]
    pub(crate) fn is_end(self) -> bool {
        self == Self::ENDED
    }

    /// The request, if it is one.
    pub(crate) fn into_request<T>(self) -> *mut T {
        self.0.cast()
    }
}

/// One stack. Whoever has it may run on it.
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Stack(NonNull<Head>);

/// The top of a stack: what belongs to it, whoever runs on it.
#[repr(C, align(16))]
pub(crate) struct Head {
    switch: UnsafeCell<MaybeUninit<Switch>>,
    yielder: UnsafeCell<*const Yielder<*const (), Left>>,
    /// The lowest byte; a multiple of the page, so its low bits are flags.
    floor: usize,
    /// What the sleeper on this stack waits for.
    pub(crate) reason: ReasonCells,
    bytes: usize,
    class: Class,
}

/// A reason that others may read while it changes.
#[derive(Default)]
pub(crate) struct ReasonCells {
    pub(crate) what: AtomicPtr<u8>,
    pub(crate) what_bytes: AtomicUsize,
    pub(crate) at: AtomicU64,
    pub(crate) wanted: AtomicU64,
    pub(crate) since: AtomicU64,
}

/// A size of stacks: how many times the ordinary one is doubled, or halved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class(u8);

// SAFETY: who may touch what is said on each function.
unsafe impl Send for Stack {}

impl Stack {
    pub(crate) fn head(&self) -> NonNull<Head> {
        self.0
    }

    /// The stack that has this head.
    ///
    /// # Safety
    ///
    /// Nobody else has it.
    pub(crate) unsafe fn from_head(head: NonNull<Head>) -> Self {
        Self(head)
    }
}

impl Head {
    /// Goes on with the context, until it leaves. Where one life ended, the
    /// next begins, with `life` as its argument.
    ///
    /// # Safety
    ///
    /// The caller has the stack, or the ULT that is on it.
    #[inline(always)]
    pub(crate) unsafe fn resume(&self, life: *const ()) -> Left {
        // SAFETY: the caller's; each stack was given its context by `make`.
        self.switch.with_mut(|switch| match unsafe { (*switch).assume_init_mut() }.resume(life) {
            CoroutineResult::Yield(left) => left,
            CoroutineResult::Return(never) => match never {},
        })
    }

    /// Gives the stack its context, which never ends: when a life is over, it
    /// waits for the next.
    ///
    /// # Safety
    ///
    /// The stack is the caller's, and new.
    unsafe fn begin(&self, run: Life) {
        let this = self as *const Self;
        let switch = Coroutine::with_stack(
            Stack(NonNull::from(self)),
            move |yielder: &Yielder<*const (), Left>, mut life| {
                // SAFETY: heads stay as long as their stacks; we run on this one.
                unsafe { (*this).yielder.with_mut(|slot| *slot = yielder) };
                loop {
                    // SAFETY: whoever resumes an ended life gives the next.
                    unsafe { run(life) };
                    life = yielder.suspend(Left::ENDED);
                }
            },
        );
        // SAFETY: the caller's.
        self.switch.with_mut(|slot| unsafe { (*slot).write(switch) });
    }

    /// Leaves the worker; returns when it is resumed, perhaps by another one.
    ///
    /// # Safety
    ///
    /// The caller runs on this stack.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, left: Left) {
        // SAFETY: set before the first instruction, valid until the last.
        let yielder = self.yielder.with(|yielder| unsafe { *yielder });
        // SAFETY: as above.
        unsafe { (*yielder).suspend(left) };
    }

    /// Says what the sleep that follows is for. By the ULT on the stack.
    #[inline]
    pub(crate) fn set_reason(&self, reason: &Reason) {
        // The stores stay behind the state that says "running".
        fence(Ordering::Release);
        self.reason.what.store(reason.what.as_ptr().cast_mut(), Ordering::Relaxed);
        self.reason.what_bytes.store(reason.what.len(), Ordering::Relaxed);
        self.reason.at.store(reason.at, Ordering::Relaxed);
        self.reason.wanted.store(reason.wanted, Ordering::Relaxed);
    }

    /// The usable bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How much of the stack is left below `at`.
    #[inline]
    pub(crate) fn room_below(&self, at: usize) -> usize {
        at.saturating_sub(self.floor())
    }

    /// Whether `at` is an address that a stack pointer on it may have.
    #[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) fn holds(&self, at: usize) -> bool {
        // The context has the address of the head too, which is no such one.
        at > self.floor() && at < self.top()
    }

    /// Where the first frame begins.
    #[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) fn top(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// The words that its context is made of: addresses, all of them.
    ///
    /// # Safety
    ///
    /// Nobody runs on the stack meanwhile.
    #[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
    pub(crate) unsafe fn switch_words(&self) -> [usize; SWITCH_WORDS] {
        // SAFETY: the caller's; `make` gave it a context, which has no padding:
        // the assertion below.
        self.switch.with(|switch| unsafe { switch.cast::<[usize; SWITCH_WORDS]>().read() })
    }

    /// Whether `at` is in the page whose touch is this stack's overflow.
    #[cfg(not(tsumugi_loom))]
    pub(crate) fn is_guard(&self, at: usize) -> bool {
        self.floor & GUARDED != 0 && (self.floor() - page_bytes()..self.floor()).contains(&at)
    }

    /// Whether the canary below is alive, or there is none.
    #[inline(always)]
    pub(crate) fn is_intact(&self) -> bool {
        self.floor & WATCHED == 0 || self.has_canary()
    }

    #[inline]
    fn has_canary(&self) -> bool {
        let line = ptr::with_exposed_provenance::<u64>(self.floor() - CANARY_LINE);
        // SAFETY: the line below a stack is of the area and is written only
        // when the stack is carved, or by an overflow, which is what we are
        // looking for.
        unsafe { line.read_volatile() == CANARY && line.add(7).read_volatile() == CANARY }
    }

    fn floor(&self) -> usize {
        self.floor & !FLAGS
    }
}

// SAFETY: from `floor` to the head the memory is the stack's alone and at least
// 8 KiB. An overflow hits the guard page, or is noticed at the next switch by
// the canary and ends the process; unless the user asked for neither.
unsafe impl corosensei::stack::Stack for Stack {
    #[inline(always)]
    fn base(&self) -> NonZeroUsize {
        self.0.addr()
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        // SAFETY: heads stay as long as their stacks.
        let head = unsafe { self.0.as_ref() };
        let guard = if head.floor & GUARDED != 0 { page_bytes() } else { 0 };
        NonZeroUsize::new(head.floor() - guard).expect("no stack begins at 0")
    }
}

impl Class {
    /// The smallest class that has `bytes`; `None`: there is none so large.
    pub(crate) fn of(bytes: usize, ordinary_bytes: usize) -> Option<Self> {
        let halved = CLASSES - HALVINGS..CLASSES;
        halved
            .chain(0..CLASSES - HALVINGS)
            .map(|class| Self(class as u8))
            .find(|class| class.bytes(ordinary_bytes).is_some_and(|has| has >= bytes))
    }

    /// Its number; 0 for the ordinary one.
    #[inline]
    pub(crate) fn index(self) -> u8 {
        self.0
    }

    /// The class that has this number.
    #[inline]
    pub(crate) fn from_index(index: u8) -> Self {
        Self(index)
    }

    #[inline]
    fn is_ordinary(self) -> bool {
        self.0 == 0
    }

    /// Its usable bytes, if such a stack can be.
    fn bytes(self, ordinary_bytes: usize) -> Option<usize> {
        let class = usize::from(self.0);
        let bytes = if class < CLASSES - HALVINGS {
            ordinary_bytes.checked_mul(1 << class)?
        } else {
            ordinary_bytes >> (CLASSES - class)
        };
        (bytes >= STACK_BYTES_MIN && bytes % page_bytes() == 0).then_some(bytes)
    }
}

/// All stacks of a scheduler.
pub(crate) struct Stacks {
    end: usize,
    stack_bytes: usize,
    guards: Guards,
    run: Life,
    /// Where the next stack, or its guard, begins.
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
        run: Life,
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
        let room = area.bytes() - page - main_stack_bytes;
        let max = match guards {
            Guards::None | Guards::Canaries => room / stack_bytes,
            Guards::Groups(each) => {
                let each = each.max(1) as usize;
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
            run,
            next: AtomicUsize::new(start + page + main_stack_bytes),
            carved: AtomicU32::new(0),
            guards_refused: AtomicBool::new(false),
            max,
            depots: core::array::from_fn(|_| Depot::new()),
            main: Depot::new(),
            area: Lock::new(Some(area)),
        };
        let below = this.guard_or_canary(start + page, !matches!(guards, Guards::None));
        this.main.put(this.make(start + page, main_stack_bytes, below, Class::default()));
        Ok(this)
    }

    /// How many of the ordinary size there can be, beside main's.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// The class for so many bytes.
    pub(crate) fn class(&self, bytes: usize) -> Option<Class> {
        Class::of(bytes, self.stack_bytes)
    }

    /// A stack from the cache, the depot, or a new one. `None`: all in use.
    #[inline]
    pub(crate) fn take(&self, class: Class, cache: &mut Cache<Stack>) -> Option<Stack> {
        let depot = &self.depots[usize::from(class.0)];
        let pooled = if class.is_ordinary() { cache.take(depot) } else { depot.take() };
        pooled.or_else(|| self.carve(class))
    }

    /// Main's stack, once.
    pub(crate) fn take_main(&self) -> Option<Stack> {
        self.main.take()
    }

    #[inline]
    pub(crate) fn put(&self, stack: Stack, cache: &mut Cache<Stack>) {
        // SAFETY: the stack is ours.
        let head = unsafe { stack.0.as_ref() };
        if head.floor & MAIN != 0 {
            // Main's is as good as any other, but is not needed again.
        } else if head.class.is_ordinary() {
            cache.put(stack, &self.depots[0]);
        } else {
            self.depots[usize::from(head.class.0)].put(stack);
        }
    }

    /// Takes a worker's cache back.
    pub(crate) fn drain(&self, cache: &mut Cache<Stack>) {
        cache.drain(&self.depots[0]);
    }

    /// Whether `take` would find one.
    pub(crate) fn has_spare(&self, class: Class, cache: &Cache<Stack>) -> bool {
        class.is_ordinary() && !cache.is_empty()
            || !self.depots[usize::from(class.0)].is_empty()
            || self.place(class, self.next.load(Ordering::Relaxed), 0).is_some()
    }

    /// Gives the area back to where it came from.
    ///
    /// # Safety
    ///
    /// Nobody runs on a stack, or is suspended on one, or takes one again.
    pub(crate) unsafe fn release(&self) {
        drop(self.area.with(Option::take));
    }

    /// Floor and end of a stack that begins at `next`.
    fn place(&self, class: Class, next: usize, guard_bytes: usize) -> Option<(usize, usize)> {
        let floor = next + guard_bytes;
        let end = floor.checked_add(class.bytes(self.stack_bytes)?)?;
        (end <= self.end).then_some((floor, end))
    }

    #[cold]
    fn carve(&self, class: Class) -> Option<Stack> {
        let index = self.carved.load(Ordering::Relaxed) as usize;
        let wants_guard = match self.guards {
            Guards::None | Guards::Canaries => false,
            Guards::Groups(each) => index.is_multiple_of(each.max(1) as usize),
            Guards::Pages(max) => index < max,
        };
        let guard_bytes = if wants_guard { page_bytes() } else { 0 };
        let mut next = self.next.load(Ordering::Relaxed);
        let (floor, end) = loop {
            let place = self.place(class, next, guard_bytes)?;
            // Relaxed: the word alone hands out each place once.
            match self.next.compare_exchange(next, place.1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break place,
                Err(changed) => next = changed,
            }
        };
        // Relaxed: two that carve at once may agree on the guard, no more.
        self.carved.fetch_add(1, Ordering::Relaxed);
        let below = self.guard_or_canary(floor, wants_guard);
        Some(self.make(floor, end - floor, below, class))
    }

    fn make(&self, floor: usize, bytes: usize, below: usize, class: Class) -> Stack {
        let page = floor / page_bytes();
        let colour = (page / (self.stack_bytes / page_bytes())) % COLOURS * COLOUR_BYTES;
        let head = floor + bytes - CANARY_LINE - HEAD_BYTES - colour;
        let main = bytes != self.stack_bytes && class.is_ordinary();
        let head = ptr::with_exposed_provenance_mut::<Head>(head);
        // SAFETY: the place is the stack's own.
        unsafe {
            head.write(Head {
                switch: UnsafeCell::new(MaybeUninit::uninit()),
                yielder: UnsafeCell::new(ptr::null()),
                floor: floor | below | if main { MAIN } else { 0 },
                reason: ReasonCells::default(),
                bytes,
                class,
            });
            (*head).begin(self.run);
        }
        Stack(NonNull::new(head).expect("no stack ends at 0"))
    }

    /// Sees to what is below `floor`; its flag.
    fn guard_or_canary(&self, floor: usize, wants_guard: bool) -> usize {
        if wants_guard && self.guard(floor) {
            return GUARDED;
        }
        if self.guards == Guards::None {
            return 0;
        }
        let line = ptr::with_exposed_provenance_mut::<[u64; 8]>(floor - CANARY_LINE);
        // SAFETY: the line below each stack is no stack's, see the drawing.
        unsafe { line.write([CANARY; 8]) };
        WATCHED
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
const WATCHED: usize = 2;
const MAIN: usize = 4;
const FLAGS: usize = 7;
const CANARY_LINE: usize = 64;
const CANARY: u64 = 0x7473_756d_7567_6921;
const COLOURS: usize = 16;
const COLOUR_BYTES: usize = 64;
/// The head without the parent link, so that the two fill two lines.
const HEAD_BYTES: usize = if cfg!(tsumugi_loom) { size_of::<Head>() } else { 112 };
/// Ordinary, doubled once to eleven times, halved four times to once.
const CLASSES: usize = 16;
const HALVINGS: usize = 4;

#[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
const SWITCH_WORDS: usize = size_of::<Switch>() / size_of::<usize>();
// The stack's, two stack pointers, one function: no room for padding.
#[cfg(all(target_arch = "x86_64", not(tsumugi_loom)))]
const _: () = assert!(SWITCH_WORDS == 4, "a switch is not made of four words");

#[cfg(not(tsumugi_loom))]
const _: () = assert!(size_of::<Head>() == HEAD_BYTES, "the parent link and the head: two lines");

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    use super::*;

    const STACK: usize = 16384;

    fn stacks(stacks: usize, guards: Guards) -> Stacks {
        let area = StackArea::map(StackArea::bytes_for(stacks, STACK, 65536)).unwrap();
        Stacks::new(area, STACK, 65536, guards, |_| ()).unwrap()
    }

    fn head(stack: &Stack) -> &Head {
        // SAFETY: the stack is the test's.
        unsafe { stack.0.as_ref() }
    }

    fn all(stacks: &Stacks) -> Vec<Stack> {
        let mut cache = Cache::new();
        std::iter::from_fn(|| stacks.take(Class::default(), &mut cache)).collect()
    }

    #[test]
    fn stacks_are_apart_and_run_out() {
        for guards in [Guards::None, Guards::Canaries, Guards::Groups(2), Guards::Pages(2)] {
            let stacks = stacks(5, guards);
            let main = stacks.take_main().unwrap();
            let taken = all(&stacks);
            assert_eq!(taken.len(), stacks.max(), "{guards:?}");
            for pair in [&main].into_iter().chain(&taken).collect::<Vec<_>>().windows(2) {
                let top = pair[0].0.addr().get() + HEAD_BYTES + CANARY_LINE;
                assert!(top <= head(pair[1]).floor(), "{guards:?}");
            }
            let guarded = taken.iter().filter(|stack| head(stack).floor & GUARDED != 0).count();
            let expected = match guards {
                Guards::Groups(2) => taken.len().div_ceil(2),
                Guards::Pages(max) => max,
                _ => 0,
            };
            assert_eq!(guarded, expected, "{guards:?}");
        }
    }

    #[test]
    fn a_guard_is_the_page_below() {
        let stacks = stacks(2, Guards::Pages(1));
        let taken = all(&stacks);
        let guarded = head(&taken[0]);
        assert!(guarded.is_guard(guarded.floor() - 1) && !guarded.is_guard(guarded.floor()));
        assert!(!head(&taken[1]).is_guard(head(&taken[1]).floor() - 1));
    }

    #[test]
    fn each_size_is_pooled_by_itself() {
        let (stacks, mut cache) = (stacks(20, Guards::None), Cache::new());
        let [small, large] = [1, 4 * STACK].map(|bytes| stacks.class(bytes).unwrap());
        assert_eq!(stacks.class(STACK), Some(Class::default()));
        assert_eq!(stacks.class(usize::MAX), None);
        let first = stacks.take(large, &mut cache).unwrap();
        assert_eq!(head(&first).bytes(), 4 * STACK);
        assert_eq!(head(&stacks.take(small, &mut cache).unwrap()).bytes(), STACK_BYTES_MIN);
        let place = first.0;
        stacks.put(first, &mut cache);
        assert!(cache.is_empty() && stacks.has_spare(large, &cache));
        assert_eq!(stacks.take(large, &mut cache).map(|stack| stack.0), Some(place));
    }

    #[test]
    fn a_canary_dies_of_an_overflow() {
        let stacks = stacks(3, Guards::Canaries);
        let stack = all(&stacks).remove(0);
        assert!(head(&stack).is_intact());
        let below = ptr::with_exposed_provenance_mut::<u64>(head(&stack).floor() - 8);
        // SAFETY: the canary's line; this is the overflow.
        unsafe { below.write(0) };
        assert!(!head(&stack).is_intact());
    }

    #[test]
    fn bad_areas_are_refused() {
        let area = StackArea::map(1 << 20).unwrap();
        let refused = Stacks::new(area, 10_000, 65536, Guards::None, |_| ()).err();
        assert_eq!(refused, Some(StackError::Size { stack_bytes: 10_000 }));
        let refused = {
            let area = StackArea::map(65536).unwrap();
            Stacks::new(area, STACK, 65536, Guards::None, |_| ()).err()
        };
        assert!(matches!(refused, Some(StackError::Small { bytes: 65536, .. })), "{refused:?}");
        assert!(matches!(StackArea::map(100), Err(StackError::Unaligned { bytes: 100, .. })));
    }
}
