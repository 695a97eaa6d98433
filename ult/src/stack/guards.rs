//! What protects the memory below a stack.

/// The protection below a stack's floor. A guard page stops an overflow. A canary
/// only shows it, when its ULT is suspended or ends, and the process is aborted: by
/// then the stack below has been written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
