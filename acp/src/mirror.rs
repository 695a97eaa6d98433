//! Makes the program's own memory reachable for other ranks: its pages become pages
//! of the rank's exposed memory.
//!
//! ```text
//!  program   ..│ page │ page │ page │..      heap, data, a stack
//!                 ╲      ╲               the same page of memory, at both
//!  exposed   ..│ hole │ page │ page │..  a window, as far from its start
//! ```
//!
//! A page that holds bytes to be registered is copied to its place in a window of
//! the exposed memory, and that place is mapped over the page. From then on both
//! addresses lead to the same bytes, for this process and for all peers. The
//! program's addresses stay as they are. Windows are as wide as the exposed memory
//! allows, and use memory only where pages were copied. Pages that are neighbours
//! in the program are neighbours in the window, so any range within a window can be
//! registered as one region. Windows may overlap, but a page is in at most one of
//! them.
//!
//! A page stays shared until the program unmaps it, or until the job ends and the
//! page becomes private memory again. The kernel's list of mappings shows which
//! pages are shared. A child process that the program forks shares them.
//!
//! While a page is exchanged, no thread may write to it; apart from the registered
//! bytes, it may hold data of any thread. So all other threads are stopped
//! meanwhile ([`Still`]). The calling thread's own stack is safe, because that
//! thread writes nothing between the copy and the exchange.

use super::still::Still;
use std::alloc::Layout;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use tsumugi::Runtime;

/// All windows of this process.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    windows: Vec<Window>,
}

/// A range of the program's addresses, and the address at which it is exposed.
#[derive(Debug)]
struct Window {
    addrs: Range<usize>,
    base: NonNull<u8>,
}

/// The mappings of the process, in the order of addresses: address range, file, offset in
/// the file, and whether the program may read and write.
struct Mappings(Vec<(Range<usize>, String, usize, bool)>);

// SAFETY: it holds addresses of the process's memory, which are the same on all
// threads; which threads may use the memory is the program's responsibility.
unsafe impl Send for Mirror {}

/// The address in exposed memory at which memory of the program can be reached.
///
/// # Safety
///
/// As for `acp_register_memory`.
pub unsafe fn mirrored(
    runtime: &Runtime,
    at: NonNull<u8>,
    bytes: usize,
) -> Result<NonNull<u8>, &'static str> {
    if runtime.handle().heap().contains(at) {
        return Err("the memory is a block of the rank's own heap, which other ranks see at \
                    another place");
    }
    let mut mirror = MIRROR.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's.
    unsafe { mirror.get_or_insert_default().reach(runtime, at.as_ptr() as usize, bytes) }
}

/// Makes mirrored pages private again, before the exposed memory is unmapped.
///
/// # Safety
///
/// No other rank writes to registered memory during the call.
pub unsafe fn end_mirror() -> Result<(), &'static str> {
    let mirror = MIRROR.lock().unwrap_or_else(PoisonError::into_inner).take();
    // SAFETY: the caller's.
    mirror.map_or(Ok(()), |mut mirror| unsafe { mirror.end() })
}

impl Mirror {
    /// Returns the address at which the `bytes` bytes at `addr` are exposed; shares
    /// their pages first where necessary.
    ///
    /// # Errors
    ///
    /// The reason why the pages cannot be shared.
    ///
    /// # Safety
    ///
    /// The memory belongs to the program and is readable and writable.
    /// The memory belongs to the program, and is readable and writable.
    pub(super) unsafe fn reach(
        &mut self,
        runtime: &Runtime,
        addr: usize,
        bytes: usize,
    ) -> Result<NonNull<u8>, &'static str> {
        let end = addr.checked_add(bytes.max(1)).ok_or("the range exceeds the address space")?;
        let mappings = Mappings::read().ok_or(NO_LIST)?;
        if !mappings.are_open(&(addr..end)) {
            return Err("the memory is not mapped readable and writable");
        }
        let at = match self.holder(&mappings, addr..end)? {
            Some(at) => at,
            None => self
                .open(runtime, addr..end)
                .ok_or("the exposed memory (TSUMUGI_EXPOSED_BYTES) is full")?,
        };
        let window = &self.windows[at];
        let offset = addr - window.addrs.start;
        let is_out = |page: &usize| !window.holds(&mappings, window.addrs.start + page * PAGE);
        let (mut page, last) = (offset / PAGE, (end - window.addrs.start).div_ceil(PAGE));
        if !(page..last).any(|page| is_out(&page)) {
            // SAFETY: the address is inside the window's block.
            return Ok(unsafe { window.base.add(offset) });
        }
        // SAFETY: the process has one mirror, so `&mut self` excludes a second
        // `Still`; until `_still` is dropped, this function allocates nothing.
        let _still = unsafe { Still::begin()? };
        while let Some(first) = (page..last).find(is_out) {
            let count = (first..last).take_while(is_out).count();
            // SAFETY: the caller's; the pages of the window belong to the mirror,
            // and no code uses them as long as the program's own pages lie
            // elsewhere.
            let is_in = unsafe {
                let own = window.base.add(first * PAGE);
                exchange(window.addrs.start + first * PAGE, own, count * PAGE, 0)
            };
            if !is_in {
                return Err("the system refused to replace the pages by shared memory");
            }
            page = first + count;
        }
        // SAFETY: the address is inside the window's block.
        Ok(unsafe { window.base.add(offset) })
    }

    /// Makes all pages private memory of the program again, with their present
    /// contents, because the exposed memory is about to be unmapped.
    ///
    /// # Safety
    ///
    /// No other rank writes to the pages during the call.
    pub(super) unsafe fn end(&mut self) -> Result<(), &'static str> {
        let mappings = Mappings::read().ok_or(NO_LIST)?;
        // The windows are kept until the end of the function: nothing may be freed
        // while the threads are stopped.
        let windows = std::mem::take(&mut self.windows);
        if windows.is_empty() {
            return Ok(());
        }
        // SAFETY: the process has one mirror, so `&mut self` excludes a second
        // `Still`; until `_still` is dropped, this function allocates nothing, and
        // `windows` and `mappings` are freed after it.
        let _still = unsafe { Still::begin()? };
        for window in &windows {
            let addrs = &window.addrs;
            let is_in = |at: &usize| window.holds(&mappings, *at);
            // Only one mapping at a time can lead to one place of the window.
            for (mapped, ..) in mappings.0.iter().filter(|(mapped, ..)| overlap(mapped, addrs)) {
                let at = mapped.start.max(addrs.start);
                let pages = (at..mapped.end.min(addrs.end)).step_by(PAGE);
                let bytes = pages.take_while(is_in).count() * PAGE;
                // SAFETY: the caller's; the pages are replaced by copies of
                // themselves.
                if bytes > 0 && !unsafe { take_back(at, bytes) } {
                    return Err("the system gave no memory for private copies of the pages");
                }
            }
        }
        Ok(())
    }

    /// The window for a range: the window that holds pages of it already, else any
    /// window that contains it.
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
            _ => Err("the pages of the range lie in different windows of shared memory"),
        }
    }

    /// Opens a window around a range, as wide as the exposed memory allows.
    fn open(&mut self, runtime: &Runtime, range: Range<usize>) -> Option<usize> {
        let mut margin = MARGIN;
        loop {
            let start = range.start.saturating_sub(margin) / PAGE * PAGE;
            let end = range.end.checked_add(margin)?.next_multiple_of(PAGE);
            let layout = Layout::from_size_align(end - start, PAGE).ok()?;
            if let Some(base) = runtime.handle().exposed().allocate_zeroed(layout) {
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
    /// Whether a page of the program is already a page of this window.
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
            let is_open = words.next()?.starts_with("rw");
            let offset = hex(words.next()?)?;
            let file = format!("{} {}", words.next()?, words.next()?);
            Some((hex(start)?..hex(end)?, file, offset, is_open))
        });
        Some(Self(mappings.collect()))
    }

    /// Whether the program may read and write each byte of a range.
    fn are_open(&self, range: &Range<usize>) -> bool {
        let mut at = range.start;
        let first = self.0.partition_point(|(addrs, ..)| addrs.end <= at);
        for (addrs, _, _, is_open) in &self.0[first..] {
            if addrs.start > at || !is_open {
                return false;
            }
            at = addrs.end;
            if at >= range.end {
                return true;
            }
        }
        false
    }

    /// Whether two addresses lead to the same byte of the same file.
    fn are_same(&self, one: usize, other: usize) -> bool {
        let place = |at: usize| {
            let index = self.0.partition_point(|(addrs, ..)| addrs.end <= at);
            let (addrs, file, offset, _) = self.0.get(index)?;
            addrs.contains(&at).then(|| (file, offset + at - addrs.start))
        };
        place(other).is_some() && place(one) == place(other)
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Copies `bytes` bytes of pages to `own` and moves the mapping of the copies over
/// the pages. The mapping of `old` bytes is removed at `own`; with 0 it stays there
/// too. Returns whether that succeeded.
///
/// # Safety
///
/// As for [`Mirror::reach`]; with `old` 0, the pages at `own` are of a shared
/// mapping.
#[cfg(target_arch = "x86_64")]
unsafe fn exchange(page: usize, own: NonNull<u8>, bytes: usize, old: usize) -> bool {
    let result: isize;
    // SAFETY: a copy between pages, and a system call that replaces the first pages
    // by a second mapping of the copies. Nothing is written between the two, so the
    // pages may hold the stack on which this function runs.
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

/// The same operation for other architectures, where the pages must not hold the
/// stack on which this function runs.
///
/// # Safety
///
/// As for [`Mirror::reach`]; with `old` 0, the pages at `own` are of a shared
/// mapping; the stack of the caller is not in the pages.
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

/// Replaces pages by private memory of the process with the same contents. Returns
/// whether that succeeded.
///
/// # Safety
///
/// As for [`Mirror::end`].
unsafe fn take_back(page: usize, bytes: usize) -> bool {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
    let flags = flags | libc::MAP_ANONYMOUS;
    // SAFETY: the memory is fresh, and its mapping then moves to the place of the
    // pages.
    unsafe {
        let fresh = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        match NonNull::new(fresh.cast::<u8>()) {
            Some(own) if fresh != libc::MAP_FAILED => exchange(page, own, bytes, bytes),
            _ => false,
        }
    }
}

// One per process, because it describes the memory of the process.
static MIRROR: Mutex<Option<Mirror>> = Mutex::new(None);

const NO_LIST: &str = "the mappings of this process cannot be read from /proc/self/maps";
/// The unit of mapping. The kernel's pages are of this size or larger; if they are
/// larger, the kernel refuses the mapping.
const PAGE: usize = 4096;
/// Bytes of a window before and behind the range for which it is opened, if there
/// is room.
const MARGIN: usize = 1 << 30;
