//! The switch by corosensei, on every system that corosensei supports. To pass to
//! another context, a context tells its resumer to resume the other.

use super::{Left, Lives};
use crate::stack::{Stack, StackHead};
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

/// The place to which contexts leave: corosensei keeps it.
pub(crate) struct ResumeLink;

/// The place where a context left off: corosensei keeps it too.
pub(crate) struct Saved;

impl Saved {
    pub(crate) fn new() -> Self {
        Self
    }

    /// Takes over a stack that no ULT has: nothing to do.
    #[inline(always)]
    pub(in crate::stack) fn begin(&self, _switch: &Switch) {}

    /// Prefetches a context that is resumed soon: nothing to do.
    #[inline(always)]
    pub(crate) fn fetch(&self) {}
}

impl ResumeLink {
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

    /// Gives the stack its context, which never ends: when a life is over, the
    /// context waits for the next one.
    ///
    /// # Safety
    ///
    /// The stack below `top`, which is its head, belongs to the caller and is new;
    /// the switch stays in place.
    pub(in crate::stack) unsafe fn begin(&self, top: *mut u8, lives: Lives) {
        // No life is entered here, see `ENTERS`.
        let Lives { run, run_entered: _ } = lives;
        let this = self as *const Self;
        let stack = Stack(NonNull::new(top.cast::<StackHead>()).expect("no stack ends at 0"));
        let context =
            Context::with_stack(stack, move |yielder: &Yielder<*const (), Left>, mut life| {
                // SAFETY: a switch stays as long as its stack, and we run on this
                // stack.
                unsafe { (*this).yielder.with_mut(|slot| *slot = yielder) };
                loop {
                    // SAFETY: each resume of an ended life brings the argument of the
                    // next.
                    unsafe { run(life) };
                    life = yielder.suspend(Left::ENDED);
                }
            });
        // SAFETY: the stack is new, so no other thread uses its switch.
        self.context.with_mut(|slot| unsafe { (*slot).write(context) });
    }

    /// Resumes the context, until a context leaves to its resumer. If the life on
    /// this stack has ended, the next one begins, with `life` as its argument.
    ///
    /// # Safety
    ///
    /// The context has begun, is suspended, and belongs to the caller.
    #[inline(always)]
    pub(in crate::stack) unsafe fn resume(
        &self,
        _saved: &Saved,
        _link: &ResumeLink,
        life: *const (),
    ) -> Left {
        let mut this = self;
        loop {
            let left = this.context.with_mut(|context| {
                // SAFETY: the context belongs to the caller; `begin` has written it.
                match unsafe { (*context).assume_init_mut() }.resume(life) {
                    CoroutineResult::Yield(left) => left,
                    CoroutineResult::Return(never) => match never {},
                }
            });
            // SAFETY: `pass` made the message, with a switch that stays.
            match unsafe { left.passes_to() } {
                Some(next) => this = next,
                None => return left,
            }
        }
    }

    /// Does nothing: each resume sets the place to leave to.
    ///
    /// # Safety
    ///
    /// The context is suspended, and belongs to the caller.
    #[inline(always)]
    pub(in crate::stack) unsafe fn relink(&self, _link: &ResumeLink) {}

    /// Leaves to the resumer; returns when the context is resumed, perhaps by another
    /// thread.
    ///
    /// # Safety
    ///
    /// The caller runs on this context.
    #[inline(always)]
    pub(in crate::stack) unsafe fn suspend(&self, _saved: &Saved, left: Left) {
        // SAFETY: the yielder is set before the first instruction of a life, and
        // valid until the last.
        let yielder = self.yielder.with(|yielder| unsafe { *yielder });
        // SAFETY: as above.
        unsafe { (*yielder).suspend(left) };
    }

    /// Not called here, see [`ENTERS`].
    ///
    /// # Safety
    ///
    /// None: the call panics.
    pub(in crate::stack) unsafe fn enter(
        &self,
        _from: &Saved,
        _to: &Saved,
        _life: *const (),
        _after: unsafe extern "C" fn(*const ()),
        _arg: *const (),
    ) {
        unreachable!("the resumer begins each life")
    }

    /// Leaves the first context for the second, which takes over its resumer. Returns
    /// when the first is resumed, perhaps by another resumer.
    ///
    /// # Safety
    ///
    /// The caller runs on the first context. The second is in the middle of a life,
    /// suspended, and belongs to the caller; or it is the first, and then this
    /// returns.
    #[inline(always)]
    pub(in crate::stack) unsafe fn pass<'a>(
        from: &Saved,
        _to: &Saved,
        both: impl FnOnce() -> [&'a Self; 2],
    ) {
        let [this, next] = both();
        // SAFETY: the caller runs on the first context.
        unsafe { this.suspend(from, Left(ptr::from_ref(next).cast_mut().cast()).with_pass()) };
    }
}

impl Left {
    fn with_pass(self) -> Self {
        Self(self.0.map_addr(|addr| addr | PASS))
    }

    /// The context that is to be resumed next, if the message is a pass.
    ///
    /// # Safety
    ///
    /// The switch of that context is still there.
    unsafe fn passes_to<'a>(self) -> Option<&'a Switch> {
        let next = self.0.map_addr(|addr| addr & !PASS).cast::<Switch>();
        // SAFETY: the caller promises that the switch is there.
        (self.0.addr() & PASS != 0).then(|| unsafe { &*next })
    }
}

// SAFETY: from `floor` to the head the memory belongs to the stack alone, and it has
// at least 8 KiB. An overflow hits the guard page, or the canary shows it at the next
// switch, and either ends the process; unless the user chose neither.
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

/// Whether a context can begin a life on another stack: here its resumer does.
pub(crate) const ENTERS: bool = false;

/// A flag beside the address of a switch, which is a multiple of 8.
const PASS: usize = 4;
