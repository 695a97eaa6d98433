//! Where ULTs run: stacks carved from one range of memory.
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
//! A stack grows down. What [`Guards`] decides is what lies below its floor: a
//! page without access, whose touch the signal handler of `overflow` turns
//! into the ULT's name; or the line at the top of the stack below, a canary
//! that is checked whenever the ULT leaves its worker. Guards cost two of the
//! 65,530 mappings that a process may have, canaries lie in a page that is in
//! use already.
//!
//! What belongs to a stack and not to a ULT lies in its [`Head`]: its context
//! while no ULT has it, whom it leaves to, and what a sleeper waits for. Where a
//! ULT left off lies in its descriptor, so that a switch to it looks at no head.
//! Heads of neighbours have different offsets in their pages, because cache
//! sets go by those bits: a thousand heads at one offset share eight lines.
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

/// What is below a stack's floor. A guard page stops an overflow; a canary only
/// shows it, when its ULT is suspended or ends, and the process is aborted: by
/// then the stack below has been written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guards {
    /// Whatever comes: an overflow corrupts the stack below, unnoticed.
    None(Unguarded),
    /// A canary each.
    Canaries,
    /// A guard page for every so many stacks, canaries for the others.
    Groups(u32),
    /// A guard page each for the first so many stacks, canaries beyond: each page
    /// costs the kernel a mapping, of which a process has 65,530 as a rule.
    Pages(usize),
}

/// The promise that nothing overflows its stack; see [`Guards::None`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unguarded(());

impl Unguarded {
    /// Makes the promise.
    ///
    /// # Safety
    ///
    /// No ULT of the scheduler, nor its main, ever needs more than the bytes of
    /// its stack: what it writes below is another one's memory.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// One stack. Whoever has it may run on it.
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Stack(NonNull<Head>);

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
