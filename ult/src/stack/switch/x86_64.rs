//! The switch on x86-64.
//!
//! A suspended context is three words at the end of its frames, and a [`Saved`]
//! points to them: the ULT's, or between two of them the stack's own. While it
//! runs, its link says where as many of whoever resumed it are:
//!
//! ```text
//!   Saved ───────► rip │ rbx │ rbp │ frames of the ULT ...
//!   link ► words ► rip │ rbx │ rbp │ frames of the hub, or of a joiner ...
//! ```
//!
//! The link is the hub's, so it stays the same when contexts pass their place on
//! to each other, and is not written then.
//!
//! All other registers are said to be lost, so the compiler keeps what it needs,
//! which mostly is nothing. MXCSR and the x87 control word stay as they are, see
//! `fp`.
//!
//! Each context is entered with `rdx` at its own words and, if it is resumed,
//! `rdi` what it is given. A resume is a `call` of the address there, and a
//! suspension the `ret` to it: so the processor, which keeps a stack of such
//! pairs, predicts where a suspension goes. `pass` comes between the two and
//! leaves that pair alone.
//!
//! All of it is inlined: a call that switches and then returns would return to
//! where somebody else was called from, as far as that stack knows.

#[cfg(tsumugi_tsan)]
use super::fiber::Fiber;
use super::{Left, Life};
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::arch::{asm, naked_asm};
use core::cell::Cell;
use core::ptr;

/// One stack's context. The assembly reads and writes the cells, also where a
/// model would look at each access.
#[repr(C)]
pub(crate) struct Switch {
    /// While no ULT has the stack.
    idle: Saved,
    link: Cell<*const Link>,
    #[cfg(tsumugi_tsan)]
    fiber: Fiber,
}

/// Where a suspended context's words are.
#[repr(transparent)]
pub(crate) struct Saved(Cell<usize>);

impl Saved {
    pub(crate) fn new() -> Self {
        Self(Cell::new(0))
    }

    /// Takes over a stack that no ULT has.
    #[inline(always)]
    pub(in crate::stack) fn begin(&self, switch: &Switch) {
        #[cfg(tsumugi_tsan)]
        switch.fiber.begin();
        self.0.set(switch.idle.0.get());
    }

    /// Has the words brought near, of a context that is resumed soon.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        let words = ptr::without_provenance(self.0.get());
        // SAFETY: a hint, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(words) };
    }

    /// Where the words are.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn words(&self) -> usize {
        self.0.get()
    }
}

/// Where whoever resumes contexts goes on when one is suspended.
#[repr(C)]
pub(crate) struct Link {
    words: Cell<usize>,
    #[cfg(tsumugi_tsan)]
    fiber: Fiber,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            words: Cell::new(0),
            #[cfg(tsumugi_tsan)]
            fiber: Fiber::none(),
        }
    }
}

impl Switch {
    pub(in crate::stack) fn new() -> Self {
        Self {
            idle: Saved::new(),
            link: Cell::new(ptr::null()),
            #[cfg(tsumugi_tsan)]
            fiber: Fiber::none(),
        }
    }

    /// The life on it is over, and another stack's runs.
    #[cfg(tsumugi_tsan)]
    pub(in crate::stack) fn end(&self) {
        self.fiber.end();
    }

    /// Gives the stack its context, which never ends: when a life is over, it
    /// waits for the next.
    ///
    /// # Safety
    ///
    /// The stack below `top`, a multiple of 16, is the caller's, and new; the
    /// switch stays where it is.
    pub(in crate::stack) unsafe fn begin(&self, top: *mut u8, run: Life) {
        // SAFETY: the caller's.
        unsafe {
            let words = top.cast::<usize>().sub(4);
            words.write((start as unsafe extern "C" fn()) as usize);
            words.add(2).cast::<Life>().write(run);
            self.idle.0.set(words.expose_provenance());
        }
    }

    /// Goes on with the context, until somebody leaves who has its place. Where
    /// one life ended, the next begins, with `life` as its argument.
    ///
    /// # Safety
    ///
    /// The context has begun, is suspended with its words there, and is the
    /// caller's. The link is for no other resume until it has left, and stays
    /// until it is linked anew.
    #[inline(always)]
    pub(in crate::stack) unsafe fn resume(
        &self,
        saved: &Saved,
        link: &Link,
        life: *const (),
    ) -> Left {
        let left;
        // SAFETY: the words are the context's, see the module's documentation; the
        // registers that it may change are named, but for two that are kept.
        unsafe {
            self.relink(link);
            #[cfg(tsumugi_tsan)]
            link.fiber.note();
            #[cfg(tsumugi_tsan)]
            self.fiber.go();
            asm!(
                "push rbp",
                "push rbx",
                "lea rax, [rsp - 8]",
                "mov [rcx], rax",
                "call [rdx]",
                "pop rbx",
                "pop rbp",
                inout("rdi") life => left,
                inout("rsi") self => _,
                inout("rdx") saved.0.get() => _,
                inout("rcx") link.words.as_ptr() => _,
                lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
                clobber_abi("sysv64"),
            );
        }
        Left(left)
    }

    /// Has it leave for another one than the one who resumed it.
    ///
    /// # Safety
    ///
    /// It is suspended, and the caller's; the link stays until it is linked anew.
    #[inline(always)]
    pub(in crate::stack) unsafe fn relink(&self, link: &Link) {
        self.link.set(link);
    }

    /// Leaves for whoever resumed it, and has it written down where its words
    /// are; returns what it is given when it is resumed, perhaps by somebody else.
    ///
    /// # Safety
    ///
    /// The caller runs on this context.
    #[inline(always)]
    pub(in crate::stack) unsafe fn suspend(&self, saved: &Saved, left: Left) -> *const () {
        let life;
        #[cfg(tsumugi_tsan)]
        // SAFETY: whoever resumed it has linked it.
        unsafe { &(*self.link.get()).fiber }.go();
        // SAFETY: as in `resume`; the link was written there, and its words
        // before this was entered.
        unsafe {
            asm!(
                "push rbp",
                "push rbx",
                "lea rax, [rip + 2f]",
                "push rax",
                "mov [rsi], rsp",
                "mov rsp, [rcx]",
                "ret",
                "2:",
                "lea rsp, [rdx + 8]",
                "pop rbx",
                "pop rbp",
                inout("rdi") left.0 => life,
                inout("rsi") saved => _,
                inout("rcx") self.link.get() => _,
                lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
                clobber_abi("sysv64"),
            );
        }
        life
    }

    /// Leaves the first context for the second, which has its place from then on;
    /// returns when it is resumed, perhaps in the place of somebody else. Which
    /// two they are, their words say.
    ///
    /// # Safety
    ///
    /// The caller runs on the first context. The second is in the middle of a
    /// life, suspended with its words in `to`, the caller's, and has the same
    /// link; or it is the first, and then this returns.
    #[inline(always)]
    pub(in crate::stack) unsafe fn pass<'a>(
        from: &Saved,
        to: &Saved,
        _both: impl FnOnce() -> [&'a Self; 2],
    ) {
        #[cfg(tsumugi_tsan)]
        _both()[1].fiber.go();
        // SAFETY: as in `suspend` and `resume`.
        unsafe {
            asm!(
                "push rbp",
                "push rbx",
                "lea rax, [rip + 2f]",
                "push rax",
                "mov [rdi], rsp",
                "mov rdx, [rsi]",
                "jmp [rdx]",
                "2:",
                "lea rsp, [rdx + 8]",
                "pop rbx",
                "pop rbp",
                inout("rdi") from => _,
                inout("rsi") to => _,
                out("rdx") _,
                lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
                clobber_abi("sysv64"),
            );
        }
    }
}

/// The first instructions of a context. An unwinder stops here; the debugger
/// too. `lives` never returns, so a jump keeps calls and returns in pairs.
#[unsafe(naked)]
unsafe extern "C" fn start() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "add rdx, 16",
        "mov rsp, rdx",
        "xor ebp, ebp",
        "lea rcx, [rip + 2f]",
        "push rcx",
        "jmp {lives}",
        "2:",
        "ud2",
        ".cfi_endproc",
        lives = sym lives,
    )
}

unsafe extern "C" fn lives(mut life: *const (), switch: &Switch, run: *const Life) -> ! {
    loop {
        // SAFETY: whoever resumes an ended life gives the next; `run` lies above
        // all frames; we run on this context.
        unsafe {
            (*run)(life);
            life = switch.suspend(&switch.idle, Left::ENDED);
        }
    }
}
