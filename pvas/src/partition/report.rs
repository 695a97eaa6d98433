//! What a rank says of itself when it is asked: who waits for what.
//!
//! ```text
//!  launcher: wanted += 1, rings ──► rank: text, len, then answered = wanted ──► launcher: reads
//! ```

use tsumugi_core::sync::{AtomicU8, AtomicU32, Ordering};

/// The launcher counts `wanted` up; the rank writes the text and then stores
/// the count that it answers in `answered`.
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
        // SeqCst: before the caller looks who sleeps.
        self.wanted.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The request that has not been answered, if there is one. Wait-free.
    #[inline]
    pub fn wanted(&self) -> Option<u32> {
        let wanted = self.wanted.load(Ordering::SeqCst);
        (wanted != self.answered.load(Ordering::Relaxed)).then_some(wanted)
    }

    /// Answers request `number`; what does not fit is cut off. One thread of
    /// the rank at a time.
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

/// Stores a text that others load, and returns how much of it fits.
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

/// Longest report of who waits for what.
pub const REPORT_BYTES_MAX: usize = 16 << 10;
