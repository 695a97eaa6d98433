//! The switch on x86-64.
//!
//! A suspended context is three words at the end of its frames, and a [`Saved`]
//! points to them: the ULT's own, or, between two ULTs, the stack's. While the
//! context runs, its link points to the three words of its resumer:
//!
//! ```text
//!   Saved ───────► rip │ rbx │ rbp │ frames of the ULT ...
//!   link ► words ► rip │ rbx │ rbp │ frames of the hub, or of a joiner ...
//! ```
//!
//! The link belongs to the hub, so it stays the same when contexts pass to each
//! other, and is not written then.
//!
//! All other registers are declared as clobbered, so the compiler saves those that it
//! needs, which are mostly none. MXCSR and the x87 control word are left as they are,
//! see `fp`.
//!
//! When a context is entered, `rdx` points to its own words and, if it is resumed,
//! `rdi` has the argument. A resume is a `call` of the address in the words, and a
//! suspension is a `ret` to the resumer. So the processor, which keeps a stack of
//! such pairs, predicts the target of a suspension. `pass` comes between the two and
//! leaves the pair alone.
//!
//! All of it is inlined. After a call that switches and then returns, the processor's
//! return stack would predict a return to the caller of another ULT.

#[cfg(tsumugi_tsan)]
use super::fiber::Fiber;
use super::{Left, Lives};
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::arch::{asm, naked_asm};
use core::cell::Cell;
use core::ptr;

/// The context of one stack. The assembly accesses the cells too, also where a model
/// checker would have to see each access.
#[repr(C)]
pub(crate) struct Switch {
    /// The context's place while no ULT has the stack.
    idle: Saved,
    link: Cell<*const ResumeLink>,
    #[cfg(tsumugi_tsan)]
    fiber: Fiber,
}

/// The address of a suspended context's words.
#[repr(transparent)]
pub(crate) struct Saved(Cell<usize>);

impl Saved {
    pub(crate) fn new() -> Self {
        Self(Cell::new(0))
    }

    /// Takes over a stack that no ULT has: copies the place of its idle context.
    #[inline(always)]
    pub(in crate::stack) fn begin(&self, switch: &Switch) {
        #[cfg(tsumugi_tsan)]
        switch.fiber.begin();
        self.0.set(switch.idle.0.get());
    }

    /// Prefetches the words of a context that is resumed soon.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        let words = ptr::without_provenance(self.0.get());
        // SAFETY: a prefetch is a hint, and any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(words) };
    }

    /// The address of the words.
    #[cfg(all(feature = "std", not(tsumugi_loom)))]
    pub(crate) fn words(&self) -> usize {
        self.0.get()
    }
}

/// The place to which contexts leave when they are suspended: the words of the
/// resumer.
#[repr(C)]
pub(crate) struct ResumeLink {
    words: Cell<usize>,
    #[cfg(tsumugi_tsan)]
    fiber: Fiber,
}

impl ResumeLink {
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

    /// Tells the sanitizer that the life is over; another stack's context runs.
    #[cfg(tsumugi_tsan)]
    pub(in crate::stack) fn end(&self) {
        self.fiber.end();
    }

    /// Gives the stack its context, which never ends: when a life is over, the
    /// context waits for the next one.
    ///
    /// # Safety
    ///
    /// The stack below `top`, a multiple of 16, belongs to the caller and is new; the
    /// switch stays in place.
    pub(in crate::stack) unsafe fn begin(&self, top: *mut u8, lives: Lives) {
        // SAFETY: the four words below `top` lie in the caller's new stack.
        unsafe {
            let words = top.cast::<usize>().sub(4);
            words.write((start as unsafe extern "C" fn()) as usize);
            words.add(2).cast::<Lives>().write(lives);
            self.idle.0.set(words.expose_provenance());
        }
    }

    /// Resumes the context, until a context leaves to the link. If the life on this
    /// stack has ended, the next one begins, with `life` as its argument.
    ///
    /// # Safety
    ///
    /// The context has begun, is suspended with its words at `saved`, and belongs to
    /// the caller. The link is used by no other resume until the context has left to
    /// it, and stays until the context is linked anew.
    #[inline(always)]
    pub(in crate::stack) unsafe fn resume(
        &self,
        saved: &Saved,
        link: &ResumeLink,
        life: *const (),
    ) -> Left {
        let left;
        // SAFETY: the words at `saved` are the context's, see the module's
        // documentation. All registers that it may change are declared, except rbx
        // and rbp, which are saved.
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

    /// Sets another link, to which the context leaves in place of its resumer.
    ///
    /// # Safety
    ///
    /// The context is suspended, and belongs to the caller; the link stays until the
    /// context is linked anew.
    #[inline(always)]
    pub(in crate::stack) unsafe fn relink(&self, link: &ResumeLink) {
        self.link.set(link);
    }

    /// Leaves to the resumer, and stores the address of its own words in `saved`.
    /// Returns the argument of the next resume, which may be by another thread.
    ///
    /// # Safety
    ///
    /// The caller runs on this context.
    #[inline(always)]
    pub(in crate::stack) unsafe fn suspend(&self, saved: &Saved, left: Left) -> *const () {
        let life;
        #[cfg(tsumugi_tsan)]
        // SAFETY: the resumer has set the link.
        unsafe { &(*self.link.get()).fiber }.go();
        // SAFETY: as in `resume`; the resumer has set the link, and stored its own
        // words there before this context was entered.
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

    /// Leaves the first context for the second, which takes over its link. Returns
    /// when the first is resumed, perhaps through another link. The words at `from`
    /// and `to` identify the two contexts.
    ///
    /// # Safety
    ///
    /// The caller runs on the first context. The second is in the middle of a life,
    /// suspended with its words in `to`, belongs to the caller, and has the same
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

impl Switch {
    /// Leaves the context at `from` and begins a life on this stack, where `after(arg)`
    /// is called first: the context at `from` may be resumed from then on. Returns when
    /// it is resumed. `to` is the place where this stack's idle context left off.
    ///
    /// # Safety
    ///
    /// The caller runs on the context at `from`. This stack is idle, belongs to the
    /// caller, and is linked to the same resumer. `life` is even; `after` may be called
    /// on any stack of this thread.
    #[inline(always)]
    pub(in crate::stack) unsafe fn enter(
        &self,
        from: &Saved,
        to: &Saved,
        life: *const (),
        after: unsafe extern "C" fn(*const ()),
        arg: *const (),
    ) {
        #[cfg(tsumugi_tsan)]
        self.fiber.go();
        // SAFETY: as in `suspend` and `resume`. The words of an idle context are at the
        // end of its frames, so the call uses free memory below.
        unsafe {
            asm!(
                "push rbp",
                "push rbx",
                "lea rax, [rip + 2f]",
                "push rax",
                "mov [rsi], rsp",
                "mov rbx, rdx",
                "mov rsp, rdx",
                "and rsp, -16",
                "call rcx",
                "mov rdi, r12",
                "mov rsi, r13",
                "mov rdx, rbx",
                "jmp [rdx]",
                "2:",
                "lea rsp, [rdx + 8]",
                "pop rbx",
                "pop rbp",
                inout("rdi") arg => _,
                inout("rsi") from => _,
                inout("rdx") to.0.get() => _,
                inout("rcx") after => _,
                inout("r12") life.map_addr(|addr| addr + ENTERED) => _,
                inout("r13") self => _,
                lateout("r14") _, lateout("r15") _,
                clobber_abi("sysv64"),
            );
        }
    }

    /// Leaves this stack, whose life is over, for the context at `to`. Returns the
    /// argument of the next life.
    ///
    /// # Safety
    ///
    /// The caller runs on this stack, outside of a life. The other context is suspended
    /// in the middle of a life, belongs to the caller, and is linked to the same resumer.
    #[inline(always)]
    unsafe fn end_into(&self, to: *const Saved) -> *const () {
        let life;
        // SAFETY: as in `pass`.
        unsafe {
            asm!(
                "push rbp",
                "push rbx",
                "lea rax, [rip + 2f]",
                "push rax",
                "mov [rsi], rsp",
                "jmp [rdx]",
                "2:",
                "lea rsp, [rdx + 8]",
                "pop rbx",
                "pop rbp",
                out("rdi") life,
                inout("rsi") &self.idle => _,
                inout("rdx") (*to).0.get() => _,
                lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
                clobber_abi("sysv64"),
            );
        }
        life
    }
}

/// The first instructions of a context. An unwinder stops here, and so does a
/// debugger. `lives` never returns, so it is entered by a jump, which keeps calls and
/// returns in pairs.
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

unsafe extern "C" fn lives(mut life: *const (), switch: &Switch, lives: *const Lives) -> ! {
    loop {
        // SAFETY: each resume of an ended life brings the argument of the next; `lives`
        // lies above all frames; we run on this context.
        unsafe {
            let mut next = ptr::null();
            if life.addr() & ENTERED == 0 {
                ((*lives).run)(life);
            } else {
                next = ((*lives).run_entered)(life.map_addr(|addr| addr - ENTERED));
            }
            life = if next.is_null() {
                switch.suspend(&switch.idle, Left::ENDED)
            } else {
                switch.end_into(next)
            };
        }
    }
}

/// Set in the argument of a life that was entered.
const ENTERED: usize = 1;

/// Whether a context can begin a life on another stack.
pub(crate) const ENTERS: bool = true;
