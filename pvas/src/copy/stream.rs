//! Copies by streaming stores.
//!
//! ```text
//!  to      ├ head ┤├─ 256 bytes ─┼─ 256 bytes ─┼ ... ┤├─ rest ─┤  sfence
//!            plain   streaming, aligned, the source      plain
//!                    fetched AHEAD bytes before
//! ```
//!
//! The fence at the end is needed so that a later release store publishes the
//! bytes: nothing else orders streaming stores.

pub use arch::{Width, copy};

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::is_x86_feature_detected;
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence,
        _mm_stream_si128, _mm256_loadu_si256, _mm256_stream_si256, _mm512_loadu_si512,
        _mm512_stream_si512,
    };

    /// The widths of streaming stores that a processor can have.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Width {
        /// SSE2, which all processors of this architecture have.
        Sse2,
        /// AVX2.
        Avx2,
        /// AVX-512F.
        Avx512,
    }

    impl Width {
        /// The widest stores of this processor.
        #[inline]
        pub fn best() -> Option<Self> {
            if is_x86_feature_detected!("avx512f") {
                Some(Self::Avx512)
            } else if is_x86_feature_detected!("avx2") {
                Some(Self::Avx2)
            } else {
                Some(Self::Sse2)
            }
        }

        /// The bytes of one store.
        pub fn bytes(self) -> usize {
            match self {
                Self::Sse2 => 16,
                Self::Avx2 => 32,
                Self::Avx512 => 64,
            }
        }
    }

    /// Copies by the widest stores of this processor.
    ///
    /// # Safety
    ///
    /// That of [`copy_by`].
    #[inline]
    pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
        match Width::best() {
            // SAFETY: the caller's contract is the same, and the processor has the
            // width.
            Some(width) => unsafe { copy_by(width, from, to, bytes) },
            // SAFETY: the caller's.
            None => unsafe { to.copy_from_nonoverlapping(from, bytes) },
        }
    }

    /// # Safety
    ///
    /// That of [`copy`](super::super::copy), and the processor has `width`.
    pub unsafe fn copy_by(width: Width, from: *const u8, to: *mut u8, bytes: usize) {
        let head = to.align_offset(LINE).min(bytes);
        let blocks = (bytes - head) / BLOCK;
        let rest = head + blocks * BLOCK;
        // SAFETY: the head, whole blocks and the rest are the caller's range;
        // the blocks start at a line of the destination.
        unsafe {
            to.copy_from_nonoverlapping(from, head);
            let (from, to) = (from.add(head), to.add(head));
            match width {
                Width::Sse2 => blocks_sse2(from, to, blocks),
                Width::Avx2 => blocks_avx2(from, to, blocks),
                Width::Avx512 => blocks_avx512(from, to, blocks),
            }
        }
        // SAFETY: within the caller's range.
        unsafe { to.add(rest).copy_from_nonoverlapping(from.add(rest), bytes - rest) };
        if blocks > 0 {
            // SAFETY: SSE is part of the architecture.
            unsafe { _mm_sfence() };
        }
    }

    /// One function for each width: loads of any alignment, aligned streaming
    /// stores.
    macro_rules! blocks {
        ($name:ident, $feature:literal, $vector:ty, $load:ident, $store:ident) => {
            /// # Safety
            ///
            /// `blocks` blocks can be read at `from` and written at `to`,
            /// which is aligned to a line; the processor has the feature. Ends
            /// without a fence.
            #[target_feature(enable = $feature)]
            unsafe fn $name(from: *const u8, to: *mut u8, blocks: usize) {
                const VECTORS: usize = BLOCK / size_of::<$vector>();
                for block in 0..blocks {
                    // SAFETY: a block of the caller's ranges; a prefetch may have
                    // any address, because it changes nothing that the program
                    // sees.
                    unsafe {
                        let from = from.add(block * BLOCK);
                        let to = to.add(block * BLOCK).cast::<$vector>();
                        for line in 0..BLOCK / LINE {
                            let ahead = from.wrapping_add(AHEAD + line * LINE);
                            _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                        }
                        let from = from.cast::<$vector>();
                        let vectors: [$vector; VECTORS] =
                            std::array::from_fn(|index| $load(from.add(index)));
                        for (index, vector) in vectors.into_iter().enumerate() {
                            $store(to.add(index), vector);
                        }
                    }
                }
            }
        };
    }

    blocks!(blocks_sse2, "sse2", __m128i, _mm_loadu_si128, _mm_stream_si128);
    blocks!(blocks_avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_stream_si256);
    blocks!(blocks_avx512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_stream_si512);

    const LINE: usize = 64;
    const BLOCK: usize = 256;
    /// Two blocks: the time in which a line comes from a far cache.
    const AHEAD: usize = 2 * BLOCK;
}

#[cfg(not(target_arch = "x86_64"))]
mod arch {
    /// An empty type: no streaming stores are known for this architecture.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Width {}

    impl Width {
        /// Always `None`.
        pub fn best() -> Option<Self> {
            None
        }

        /// The bytes of one store.
        pub fn bytes(self) -> usize {
            match self {}
        }
    }

    /// Copies with plain stores.
    ///
    /// # Safety
    ///
    /// That of [`copy`](super::super::copy).
    pub unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
pub mod tests {
    pub use super::arch::copy_by;
}
