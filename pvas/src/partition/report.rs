//! The report of a rank for the launcher: which ULTs wait for what.
//!
//! ```text
//!  launcher: wanted += 1, rings ──► rank: text, len, then answered = wanted ──► launcher: reads
//! ```

use tsumugi_core::sync::{AtomicU8, AtomicU32, Ordering};

/// The memory of a report. The launcher increments `wanted`; the rank writes the
/// text and then stores in `answered` the count that it answers.
#[repr(C)]
pub(super) struct Report {
    wanted: AtomicU32,
    answered: AtomicU32,
    len: AtomicU32,
    text: [AtomicU8; REPORT_BYTES_MAX],
}

impl Report {
    /// Counts a request and returns its number.
    pub fn ask(&self) -> u32 {
        // SeqCst: before the caller checks which workers sleep.
        self.wanted.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The request that has not been answered, if there is one. Wait-free.
    #[inline]
    pub fn wanted(&self) -> Option<u32> {
        let wanted = self.wanted.load(Ordering::SeqCst);
        (wanted != self.answered.load(Ordering::Relaxed)).then_some(wanted)
    }

    /// Answers request `number`; the text is cut off if it is too long. Only one
    /// thread of the rank may call this at a time.
    pub fn answer(&self, number: u32, text: &str) {
        let len = store_bytes(&self.text, text.as_bytes());
        self.len.store(len as u32, Ordering::Relaxed);
        // Release: pairs with the Acquire in `answered`.
        self.answered.store(number, Ordering::Release);
    }

    /// The answer to request `number`, if it has come.
    pub fn answered(&self, number: u32) -> Option<String> {
        // Acquire: pairs with the Release in `answer`.
        if self.answered.load(Ordering::Acquire) != number {
            return None;
        }
        let len = self.len.load(Ordering::Relaxed) as usize;
        Some(String::from_utf8_lossy(&load_bytes(&self.text, len)).into_owned())
    }
}

/// Stores a text that other threads load, and returns how many bytes of it fit.
pub(super) fn store_bytes(to: &[AtomicU8], from: &[u8]) -> usize {
    for (to, from) in to.iter().zip(from) {
        to.store(*from, Ordering::Relaxed);
    }
    from.len().min(to.len())
}

/// Loads the first `len` bytes of such a text.
pub(super) fn load_bytes(from: &[AtomicU8], len: usize) -> Vec<u8> {
    from.iter().take(len).map(|byte| byte.load(Ordering::Relaxed)).collect()
}

/// The longest report.
pub const REPORT_BYTES_MAX: usize = 16 << 10;
