//! Constants of the layout of a stack.

/// Flags beside the address of a stack's floor: there is a guard page below the stack.
pub(super) const GUARDED: usize = 1;
/// There is a canary below the stack.
pub(super) const WATCHED: usize = 2;
/// The stack is that of the main function.
pub(super) const MAIN: usize = 4;
/// All flags.
pub(super) const FLAGS: usize = 7;
/// Bytes of the line at the top of a stack that has the canary of the stack above.
pub(super) const CANARY_LINE: usize = 64;
/// The value of a canary.
pub(super) const CANARY: u64 = 0x7473_756d_7567_6921;
/// The number of different offsets of heads in their pages.
pub(super) const COLOURS: usize = 16;
/// The distance of two of these offsets.
pub(super) const COLOUR_BYTES: usize = 64;
