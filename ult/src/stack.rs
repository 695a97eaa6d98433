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
//! Data that belong to a stack, not to a ULT, lie in its [`StackHead`]: its context while
//! no ULT has the stack, the link to its resumer, and the reason of a sleep. The
//! place where a ULT left off lies in its descriptor, so that a switch to the ULT
//! reads no head. Heads of neighbouring stacks have different offsets in their pages,
//! because these address bits choose the cache set: a thousand heads at one offset
//! would share eight lines.
//!
//! Stacks are carved on first use and then pooled, each size by itself.

mod class;
mod guards;
mod head;
mod layout;
mod owned;
mod supply;
mod switch;

pub(crate) use class::Class;
pub use guards::{Guards, Unguarded};
pub(crate) use head::{StackHead, stack_pointer};
pub(crate) use owned::Stack;
pub(crate) use supply::Stacks;
pub(crate) use switch::{ENTERS, Left, Lives, ResumeLink, Saved};

#[cfg(all(test, not(tsumugi_loom)))]
mod tests;
