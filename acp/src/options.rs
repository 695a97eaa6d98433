//! What the arguments of main say of a rank.

use std::ffi::{CStr, c_char, c_int};

/// How large the memory of a rank is, and what the malloc hook takes of it.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) starter_bytes: usize,
    pub(super) heap_bytes: u64,
    pub(super) hook: Hook,
}

/// Which blocks the hook takes: `small` stands for blocks of less than `low` bytes,
/// `large` for blocks from `low` bytes on, `huge` for blocks from `high` bytes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook {
    pub(super) small: bool,
    pub(super) large: bool,
    pub(super) huge: bool,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Options {
    /// Removes ACP's options from main's arguments.
    ///
    /// # Safety
    ///
    /// As for `acp_init`.
    pub(super) unsafe fn take(argc: *mut c_int, argv: *mut *mut *mut c_char) -> Self {
        let hook = Hook::default();
        let mut options = Self { starter_bytes: STARTER_BYTES, heap_bytes: HEAP_BYTES, hook };
        if argc.is_null() || argv.is_null() {
            return options;
        }
        // SAFETY: the caller's: `argv` has `argc` strings and then NULL.
        let (count, list) = unsafe { (*argc as usize, *argv) };
        let (mut from, mut to) = (0, 0);
        while from < count {
            // SAFETY: `from` is below the count.
            let (at, text) = unsafe {
                let at = *list.add(from);
                (at, CStr::from_ptr(at).to_string_lossy())
            };
            from += 1;
            let Some(name) = text.strip_prefix("--acp-") else {
                // SAFETY: `to` is below `from`, which is at most the count.
                unsafe { *list.add(to) = at };
                to += 1;
                continue;
            };
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None if from < count => {
                    // SAFETY: `from` is below the count.
                    let value = unsafe { CStr::from_ptr(*list.add(from)) };
                    from += 1;
                    (name, value.to_string_lossy().into_owned())
                }
                None => (name, String::new()),
            };
            match (name, value.parse::<u64>()) {
                ("size-smem", Ok(bytes)) => options.starter_bytes = bytes as usize,
                ("size-smem-dl", Ok(bytes)) => options.heap_bytes = bytes.max(HEAP_BYTES),
                ("malloc-hook-small", Ok(flag)) => options.hook.small = flag != 0,
                ("malloc-hook-large", Ok(flag)) => options.hook.large = flag != 0,
                ("malloc-hook-huge", Ok(flag)) => options.hook.huge = flag != 0,
                ("malloc-hook-low", Ok(bytes)) => options.hook.low = bytes,
                ("malloc-hook-high", Ok(bytes)) => options.hook.high = bytes,
                _ => {}
            }
        }
        // SAFETY: the caller's; `to` is below the count, so there is room for NULL.
        unsafe {
            *argc = to as c_int;
            if to < count {
                *list.add(to) = std::ptr::null_mut();
            }
        }
        options
    }
}

impl Default for Hook {
    fn default() -> Self {
        Self { small: false, large: false, huge: false, low: 128, high: 128 << 10 }
    }
}

const STARTER_BYTES: usize = 10_240;
const HEAP_BYTES: u64 = 64 << 20;
