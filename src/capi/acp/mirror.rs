//! Memory of the program's where other ranks can reach it: its pages become
//! pages of the rank's exposed memory.
//!
//! ```text
//!  program   ..│ page │ page │ page │..      heap, data, a stack
//!                 ╲      ╲               the same page of memory, at both
//!  exposed   ..│ hole │ page │ page │..  a window, as far from its start
//! ```
//!
//! A page that holds something to be registered is copied to its place in a
//! window of the exposed memory, and that place is mapped over the page: from
//! then on both addresses lead to the same bytes, and so do all peers. The
//! program's addresses stay as they are. Windows are as wide as the exposed
//! memory can spare, and take memory where pages come; neighbours in a window
//! stay neighbours, so that any part of it can be registered as one. Windows may
//! overlap, but a page is in one of them.
//!
//! A page stays what it has become, until the program unmaps it or the job
//! ends, when it becomes the program's own again: which pages are, the system's
//! list of mappings says. A child that the program forks shares them.
//!
//! While a page changes, nobody may write to it: what else lies on it is
//! anybody's. So all other threads stand still meanwhile ([`Still`]), and the
//! calling thread's stack is safe, since nothing is written between the copy and
//! the change.

use super::still::Still;
use crate::Runtime;
use std::alloc::Layout;
use std::ops::Range;
use std::ptr::NonNull;

/// All windows of this process.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    windows: Vec<Window>,
}

/// Addresses of the program's, and where they are exposed.
#[derive(Debug)]
struct Window {
    addrs: Range<usize>,
    base: NonNull<u8>,
}

/// What is mapped where: addresses, and the file and the place in it that they
/// lead to.
struct Mappings(Vec<(Range<usize>, String, usize)>);

// SAFETY: memory of the process; who may use it where is the program's
// business.
unsafe impl Send for Mirror {}

impl Mirror {
    /// Where the `bytes` bytes at `addr` are exposed. An error says why they
    /// are not.
    ///
    /// # Safety
    ///
    /// The memory is the program's, readable and writable.
    pub(super) unsafe fn reach(
        &mut self,
        runtime: &Runtime,
        addr: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, &'static str> {
        let end = addr.checked_add(bytes.max(1)).ok_or("there is no so much memory")?;
        let mappings = Mappings::read().ok_or(NO_LIST)?;
        let at = match self.holder(&mappings, addr..end)? {
            Some(at) => at,
            None => self.open(runtime, addr..end).ok_or("the exposed memory is full")?,
        };
        let window = &self.windows[at];
        let offset = addr - window.addrs.start;
        let is_out = |page: &usize| !window.holds(&mappings, window.addrs.start + page * PAGE);
        let (mut page, last) = (offset / PAGE, (end - window.addrs.start).div_ceil(PAGE));
        if !(page..last).any(|page| is_out(&page)) {
            // SAFETY: inside the window's block.
            return Ok(unsafe { window.base.add(offset) });
        }
        // SAFETY: whoever has the mirror is alone; what follows allocates
        // nothing.
        let _still = unsafe { Still::begin()? };
        while let Some(first) = (page..last).find(is_out) {
            let count = (first..last).take_while(is_out).count();
            // SAFETY: the caller's; the window's pages are ours, and of no use
            // to anybody where the program's are others.
            let is_in = unsafe {
                let own = window.base.add(first * PAGE);
                exchange(window.addrs.start + first * PAGE, own, count * PAGE, 0)
            };
            if !is_in {
                return Err("the system does not let these pages be shared");
            }
            page = first + count;
        }
        // SAFETY: inside the window's block.
        Ok(unsafe { window.base.add(offset) })
    }

    /// Makes all pages the program's own again, as they are now: the exposed
    /// memory goes.
    ///
    /// # Safety
    ///
    /// No other rank writes to them meanwhile.
    pub(super) unsafe fn end(&mut self) -> Result<(), &'static str> {
        let mappings = Mappings::read().ok_or(NO_LIST)?;
        // What was in them is kept: nothing is given back while threads stand
        // still.
        let windows = std::mem::take(&mut self.windows);
        if windows.is_empty() {
            return Ok(());
        }
        // SAFETY: whoever has the mirror is alone; what follows allocates
        // nothing, and what it has goes after it.
        let _still = unsafe { Still::begin()? };
        for window in &windows {
            let addrs = &window.addrs;
            let is_in = |at: &usize| window.holds(&mappings, *at);
            // Only what is mapped as one leads to the window.
            for (mapped, ..) in mappings.0.iter().filter(|(mapped, ..)| overlap(mapped, addrs)) {
                let at = mapped.start.max(addrs.start);
                let pages = (at..mapped.end.min(addrs.end)).step_by(PAGE);
                let bytes = pages.take_while(is_in).count() * PAGE;
                // SAFETY: the caller's; the pages are replaced by their copies.
                if bytes > 0 && !unsafe { take_back(at, bytes) } {
                    return Err("the system gave no memory");
                }
            }
        }
        Ok(())
    }

    /// The window that a range can be in: that which holds pages of it, or any.
    fn holder(
        &self,
        mappings: &Mappings,
        range: Range<usize>,
    ) -> Result<Option<usize>, &'static str> {
        let pages = (range.start / PAGE * PAGE..range.end).step_by(PAGE);
        let holds = |window: &Window| pages.clone().any(|page| window.holds(mappings, page));
        let mut holders = self.windows.iter().enumerate().filter(|(_, window)| holds(window));
        let contains =
            |window: &Window| window.addrs.start <= range.start && range.end <= window.addrs.end;
        match (holders.next(), holders.next()) {
            (None, _) => Ok(self.windows.iter().position(contains)),
            (Some((at, window)), None) if contains(window) => Ok(Some(at)),
            _ => Err("its pages are in different windows of shared memory"),
        }
    }

    /// A window round a range, as wide as it may be.
    fn open(&mut self, runtime: &Runtime, range: Range<usize>) -> Option<usize> {
        let mut margin = MARGIN;
        loop {
            let start = range.start.saturating_sub(margin) / PAGE * PAGE;
            let end = range.end.checked_add(margin)?.next_multiple_of(PAGE);
            let layout = Layout::from_size_align(end - start, PAGE).ok()?;
            if let Some(base) = runtime.exposed().allocate_zeroed(layout) {
                self.windows.push(Window { addrs: start..end, base });
                return Some(self.windows.len() - 1);
            }
            if margin == 0 {
                return None;
            }
            margin = if margin > PAGE { margin / 4 } else { 0 };
        }
    }
}

impl Window {
    /// Whether a page of the program's is one of its own.
    fn holds(&self, mappings: &Mappings, page: usize) -> bool {
        let own = || self.base.as_ptr() as usize + (page - self.addrs.start);
        self.addrs.contains(&page) && mappings.are_same(page, own())
    }
}

impl Mappings {
    fn read() -> Option<Self> {
        let list = std::fs::read_to_string("/proc/self/maps").ok()?;
        let mappings = list.lines().filter_map(|line| {
            // start-end, protection, offset, device, number, name
            let mut words = line.split_ascii_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let hex = |word| usize::from_str_radix(word, 16).ok();
            let offset = hex(words.nth(1)?)?;
            let file = format!("{} {}", words.next()?, words.next()?);
            Some((hex(start)?..hex(end)?, file, offset))
        });
        Some(Self(mappings.collect()))
    }

    /// Whether two addresses lead to the same byte of the same file.
    fn are_same(&self, one: usize, other: usize) -> bool {
        let place = |at: usize| {
            let index = self.0.partition_point(|(addrs, ..)| addrs.end <= at);
            let (addrs, file, offset) = self.0.get(index)?;
            addrs.contains(&at).then(|| (file, offset + at - addrs.start))
        };
        place(other).is_some() && place(one) == place(other)
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Copies pages to `own` and maps the copies over them: `old` bytes of them are
/// not at `own` any more. Whether it could.
///
/// # Safety
///
/// As of [`Mirror::reach`]; the pages at `own` are of a shared mapping.
#[cfg(target_arch = "x86_64")]
unsafe fn exchange(page: usize, own: NonNull<u8>, bytes: usize, old: usize) -> bool {
    let result: isize;
    // SAFETY: a copy between pages, and a system call that replaces the first
    // by another view of the second. Nothing is written in between, so the
    // first may be of the stack that this runs on.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            "mov rdi, r12",
            "mov rsi, r15",
            "mov rdx, r14",
            "mov r10d, {flags}",
            "mov r8, r13",
            "syscall",
            flags = const libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
            in("r12") own.as_ptr(),
            in("r13") page,
            in("r14") bytes,
            in("r15") old,
            inout("rsi") page => _,
            inout("rdi") own.as_ptr() => _,
            inout("rcx") bytes => _,
            inout("rax") libc::SYS_mremap as isize => result,
            out("rdx") _,
            out("r8") _,
            out("r10") _,
            out("r11") _,
        );
    }
    result == page as isize
}

/// The same where the stack that this runs on must not be in the pages.
///
/// # Safety
///
/// As of [`Mirror::reach`], and that; the pages at `own` are of a shared
/// mapping.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn exchange(page: usize, own: NonNull<u8>, bytes: usize, old: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let at = page as *mut libc::c_void;
    // SAFETY: the caller's.
    let got = unsafe {
        own.as_ptr().copy_from_nonoverlapping(page as *const u8, bytes);
        libc::mremap(own.as_ptr().cast(), old, bytes, flags, at)
    };
    got == at
}

/// Gives pages memory of the process's own. Whether it could.
///
/// # Safety
///
/// As of [`Mirror::end`].
unsafe fn take_back(page: usize, bytes: usize) -> bool {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
    let flags = flags | libc::MAP_ANONYMOUS;
    // SAFETY: fresh memory, which then goes to the pages' place.
    unsafe {
        let fresh = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        match NonNull::new(fresh.cast::<u8>()) {
            Some(own) if fresh != libc::MAP_FAILED => exchange(page, own, bytes, bytes),
            _ => false,
        }
    }
}

const NO_LIST: &str = "the system does not say what is mapped";
/// What is mapped at a time; the kernel's pages are as large or larger, and
/// then it refuses.
const PAGE: usize = 4096;
/// What a window has before and behind what it was opened for, if it can.
const MARGIN: usize = 1 << 30;
