//! The stacks of ULTs, carved from one range of memory.
//!
//! ```text
//!  base                                                    base + bytes
//!  ┌─────┬───────────┬────┬─────┬─────────┬────┬─────────┬────┬────────
//!  │guard│ main      │head│guard│ stack 0 │head│ stack 1 │head│ ...
//!  └─────┴───────────┴────┴─────┴─────────┴────┴─────────┴────┴────────
//!
//!  one stack ◄── grows down │ colour, 0 to 960
//!  ┌─────────────────────────┬▼─────────────────────────────┬───────────┐
//!  │ frames             start │ Head: switch since │ reason │ canary of │
//!  │                       32 │                 32 │     64 │ the next  │
//!  └──────────────────────────┴────────────────────┴────────┴───────────┘
//!                       └─ one cache line ─────────┘          64, at the top
//! ```
//!
//! A stack grows down. [`Guards`] decides what lies below its floor. It is a page
//! without access: when the stack runs into it, the signal handler of `overflow`
//! names the ULT. Or it is a canary in the line at the top of the stack below, which
//! is checked whenever the ULT leaves its worker. A guard page costs two of the
//! 65,530 mappings that a process may have. A canary lies in a page that is in use
//! already.
//!
//! Data that belong to a stack, not to a ULT, lie in its [`Head`]: its context while
//! no ULT has the stack, the link to its resumer, and the reason of a sleep. The
//! place where a ULT left off lies in its descriptor, so that a switch to the ULT
//! reads no head. Heads of neighbouring stacks have different offsets in their pages,
//! because these address bits choose the cache set: a thousand heads at one offset
//! would share eight lines.
//!
//! Stacks are carved on first use and then pooled, each size by itself.

mod class;
mod head;
mod supply;
mod switch;

pub(crate) use class::Class;
pub(crate) use head::{Head, stack_pointer};
pub(crate) use supply::Stacks;
pub(crate) use switch::{Left, Link, Saved};

use core::ptr::NonNull;

/// The protection below a stack's floor. A guard page stops an overflow. A canary
/// only shows it, when its ULT is suspended or ends, and the process is aborted: by
/// then the stack below has been written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guards {
    /// No protection: an overflow corrupts the stack below, unnoticed.
    None(Unguarded),
    /// A canary below each stack.
    Canaries,
    /// A guard page for the first of every so many stacks, canaries for the others.
    Groups(u32),
    /// A guard page below each of the first so many stacks, canaries below the
    /// others. Each page costs the kernel mappings, of which a process has 65,530 as
    /// a rule.
    Pages(usize),
}

/// The promise that no ULT overflows its stack; see [`Guards::None`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unguarded(());

impl Unguarded {
    /// Makes the promise.
    ///
    /// # Safety
    ///
    /// No ULT of the scheduler, nor its main, ever needs more than the bytes of its
    /// stack: writes below it go to the memory of another stack.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// One stack. Its holder may run on it.
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Stack(NonNull<Head>);

// SAFETY: a stack is memory that is not tied to a thread; each function says which
// thread may touch it.
unsafe impl Send for Stack {}

impl Stack {
    pub(crate) fn head(&self) -> NonNull<Head> {
        self.0
    }

    /// The stack that has this head.
    ///
    /// # Safety
    ///
    /// No other code has the stack.
    pub(crate) unsafe fn from_head(head: NonNull<Head>) -> Self {
        Self(head)
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
const HEAD_BYTES: usize = size_of::<Head>();

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    not(any(tsumugi_loom, tsumugi_asan, tsumugi_tsan))
))]
const _: () = assert!(HEAD_BYTES == 96, "half a cache line, and one");

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
