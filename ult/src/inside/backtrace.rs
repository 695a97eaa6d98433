//! The backtrace of a ULT that does not run.
//!
//! An unwinder begins at the function that calls it. So it is called from a function
//! that claims, in its unwind tables, that its caller is the place where the ULT left
//! off:
//!
//! ```text
//!   this stack:   capture ◄── walk_from ╌╌╌╌╌╌╌╌╌╮ "my caller"
//!   ULT's stack:  [rip][rbx][rbp] suspend ◄── ... ◄── the ULT's closure ◄── start
//!                 ▲ the words of its switch
//! ```
//!
//! On other processors and systems, and under the address sanitizer, the switch is
//! another one, and the layout of its words is not known.

use crate::task::{Task, UltState};

/// Whether backtraces are possible on this machine.
pub(super) const POSSIBLE: bool =
    cfg!(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, tsumugi_asan))));

/// Whether a ULT in this state has left its worker, with all of its stack.
pub(super) fn is_still(state: UltState) -> bool {
    matches!(state, UltState::Sleeping | UltState::Ready)
}

/// The backtrace of a ULT that is still, one frame per line.
///
/// # Safety
///
/// The ULT is still, and no worker resumes it meanwhile.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, tsumugi_asan))))]
pub(super) unsafe fn of(task: &Task) -> Option<String> {
    // SAFETY: no worker resumes the ULT, so its stack does not change.
    unsafe { task.head() }?;
    let saved = task.saved().words();
    let mut text: Option<std::backtrace::Backtrace> = None;
    // SAFETY: the context at `saved` is whole.
    unsafe { walk_from(saved, capture, (&raw mut text).cast()) };
    Some(trim(&text?.to_string()))
}

/// No backtrace: the switch of this machine gives none.
///
/// # Safety
///
/// None.
#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    not(any(tsumugi_loom, tsumugi_asan))
)))]
pub(super) unsafe fn of(_task: &Task) -> Option<String> {
    None
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, tsumugi_asan))))]
extern "C" fn capture(text: *mut core::ffi::c_void) {
    // SAFETY: `text` points to a variable of `of`, which waits for this call.
    unsafe {
        *text.cast::<Option<std::backtrace::Backtrace>>() =
            Some(std::backtrace::Backtrace::force_capture());
    }
}

/// Drops the frames above the ULT's own, which belong to `capture` and `walk_from`.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, tsumugi_asan))))]
fn trim(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains(WALK)).peekable();
    lines.next();
    // A frame's line may be followed by a line with its place in the source.
    while lines.peek().is_some_and(|line| line.trim_start().starts_with("at ")) {
        lines.next();
    }
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, tsumugi_asan))))]
unsafe extern "C" {
    /// Calls `f(data)` as if from the place where `saved` left off.
    #[link_name = "tsumugi_ult_walk_from"]
    fn walk_from(
        saved: usize,
        f: extern "C" fn(*mut core::ffi::c_void),
        data: *mut core::ffi::c_void,
    );
}

// `saved` points to the three words that a suspension pushes: rip, rbx, rbp. rbx
// keeps that address during the call, because the unwind tables use it.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, tsumugi_asan))))]
core::arch::global_asm!(
    ".balign 16",
    ".globl tsumugi_ult_walk_from",
    ".hidden tsumugi_ult_walk_from",
    ".type tsumugi_ult_walk_from,@function",
    "tsumugi_ult_walk_from:",
    ".cfi_startproc",
    "push rbp",
    "push rbx",
    "push r12",
    "mov rbx, rdi",
    "mov rdi, rdx",
    ".cfi_def_cfa rbx, 24",
    ".cfi_offset rip, -24",
    ".cfi_offset rbx, -16",
    ".cfi_offset rbp, -8",
    "call rsi",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".cfi_endproc",
    ".size tsumugi_ult_walk_from, . - tsumugi_ult_walk_from",
);

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(tsumugi_loom, tsumugi_asan))))]
const WALK: &str = "tsumugi_ult_walk_from";
