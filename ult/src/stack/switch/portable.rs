//! The switch by corosensei, wherever that goes. To pass on to another context,
//! one tells its resumer to.

use super::{Left, Life};
use crate::stack::{Head, Stack};
use core::convert::Infallible;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use tsumugi_core::sync::UnsafeCell;

type Context = Coroutine<*const (), Left, Infallible, Stack>;

/// One stack's context.
pub(crate) struct Switch {
    context: UnsafeCell<MaybeUninit<Context>>,
    yielder: UnsafeCell<*const Yielder<*const (), Left>>,
}

/// Where whoever resumes contexts goes on: corosensei's affair.
pub(crate) struct Link;

/// Where a context left off: corosensei's affair too.
pub(crate) struct Saved;

impl Saved {
    pub(crate) fn new() -> Self {
        Self
    }

    /// Takes over a stack that no ULT has.
    #[inline(always)]
    pub(in crate::stack) fn begin(&self, _switch: &Switch) {}

    /// Has a context brought near that is resumed soon: nothing here.
    #[inline(always)]
    pub(crate) fn fetch(&self) {}
}

impl Link {
    pub(crate) fn new() -> Self {
        Self
    }
}

impl Switch {
    pub(in crate::stack) fn new() -> Self {
        Self {
            context: UnsafeCell::new(MaybeUninit::uninit()),
            yielder: UnsafeCell::new(ptr::null()),
        }
    }

    /// Gives the stack its context, which never ends: when a life is over, it
    /// waits for the next.
    ///
    /// # Safety
    ///
    /// The stack below `top`, which is its head, is the caller's, and new; the
    /// switch stays where it is.
    pub(in crate::stack) unsafe fn begin(&self, top: *mut u8, run: Life) {
        let this = self as *const Self;
        let stack = Stack(NonNull::new(top.cast::<Head>()).expect("no stack ends at 0"));
        let context =
            Context::with_stack(stack, move |yielder: &Yielder<*const (), Left>, mut life| {
                // SAFETY: switches stay as long as their stacks; we run on this
                // one.
                unsafe { (*this).yielder.with_mut(|slot| *slot = yielder) };
                loop {
                    // SAFETY: whoever resumes an ended life gives the next.
                    unsafe { run(life) };
                    life = yielder.suspend(Left::ENDED);
                }
            });
        // SAFETY: the caller's.
        self.context.with_mut(|slot| unsafe { (*slot).write(context) });
    }

    /// Goes on with the context, until somebody leaves who has its place. Where
    /// one life ended, the next begins, with `life` as its argument.
    ///
    /// # Safety
    ///
    /// The context has begun, is suspended, and is the caller's.
    #[inline(always)]
    pub(in crate::stack) unsafe fn resume(
        &self,
        _saved: &Saved,
        _link: &Link,
        life: *const (),
    ) -> Left {
        let mut this = self;
        loop {
            let left = this.context.with_mut(|context| {
                // SAFETY: the caller's; `begin` has given it a context.
                match unsafe { (*context).assume_init_mut() }.resume(life) {
                    CoroutineResult::Yield(left) => left,
                    CoroutineResult::Return(never) => match never {},
                }
            });
            // SAFETY: made by `pass`, of a switch that stays.
            match unsafe { left.passes_to() } {
                Some(next) => this = next,
                None => return left,
            }
        }
    }

    /// Nothing: each resume says to whom it leaves.
    ///
    /// # Safety
    ///
    /// It is suspended, and the caller's.
    #[inline(always)]
    pub(in crate::stack) unsafe fn relink(&self, _link: &Link) {}

    /// Leaves for whoever resumed it; returns when it is resumed, perhaps by
    /// somebody else.
    ///
    /// # Safety
    ///
    /// The caller runs on this context.
    #[inline(always)]
    pub(in crate::stack) unsafe fn suspend(&self, _saved: &Saved, left: Left) {
        // SAFETY: set before the first instruction, valid until the last.
        let yielder = self.yielder.with(|yielder| unsafe { *yielder });
        // SAFETY: as above.
        unsafe { (*yielder).suspend(left) };
    }

    /// Leaves the first context for the second, which has its place from then on;
    /// returns when it is resumed, perhaps in the place of somebody else.
    ///
    /// # Safety
    ///
    /// The caller runs on the first context. The second is in the middle of a
    /// life, suspended, and the caller's; or the first, and then this returns.
    #[inline(always)]
    pub(in crate::stack) unsafe fn pass<'a>(
        from: &Saved,
        _to: &Saved,
        both: impl FnOnce() -> [&'a Self; 2],
    ) {
        let [this, next] = both();
        // SAFETY: the caller's.
        unsafe { this.suspend(from, Left(ptr::from_ref(next).cast_mut().cast()).with_pass()) };
    }
}

impl Left {
    fn with_pass(self) -> Self {
        Self(self.0.map_addr(|addr| addr | PASS))
    }

    /// Whom it leaves for, if not for its resumer.
    ///
    /// # Safety
    ///
    /// That one is there.
    unsafe fn passes_to<'a>(self) -> Option<&'a Switch> {
        let next = self.0.map_addr(|addr| addr & !PASS).cast::<Switch>();
        // SAFETY: the caller's.
        (self.0.addr() & PASS != 0).then(|| unsafe { &*next })
    }
}

// SAFETY: from `floor` to the head the memory is the stack's alone and at least
// 8 KiB. An overflow hits the guard page, or is noticed at the next switch by
// the canary and ends the process; unless the user asked for neither.
unsafe impl corosensei::stack::Stack for Stack {
    #[inline(always)]
    fn base(&self) -> core::num::NonZeroUsize {
        self.0.addr()
    }

    #[inline]
    fn limit(&self) -> core::num::NonZeroUsize {
        // SAFETY: heads stay as long as their stacks.
        let limit = unsafe { self.0.as_ref() }.limit();
        core::num::NonZeroUsize::new(limit).expect("no stack begins at 0")
    }
}

/// Set beside the address of a switch, which is a multiple of 8.
const PASS: usize = 4;
