//! How the processor rounds and traps: control words that belong to no ULT.
//!
//! They are a processor's, so a ULT that changes them changes them for
//! whoever its worker runs next. Saving them costs more than the switch itself
//! (two slow instructions each way), so only ULTs that ask for it get it.

/// The floating-point control words of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FpControl {
    words: [u32; 2],
}

impl FpControl {
    /// Those of this processor now.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn read() -> Self {
        let (mut sse, mut x87) = (0u32, 0u16);
        // SAFETY: they write the two words.
        unsafe {
            core::arch::asm!(
                "stmxcsr [{sse}]", "fnstcw [{x87}]",
                sse = in(reg) &raw mut sse, x87 = in(reg) &raw mut x87,
                options(nostack, preserves_flags)
            );
        }
        // Without the flags that say what happened so far.
        Self { words: [sse & !0x3f, x87.into()] }
    }

    /// Makes them those of this processor.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn write(self) {
        let (sse, x87) = (self.words[0], self.words[1] as u16);
        // SAFETY: they read two words that `read` made.
        unsafe {
            core::arch::asm!(
                "ldmxcsr [{sse}]", "fldcw [{x87}]",
                sse = in(reg) &raw const sse, x87 = in(reg) &raw const x87,
                options(nostack, preserves_flags, readonly)
            );
        }
    }

    /// Those of this processor now.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn read() -> Self {
        let word: u64;
        // SAFETY: it reads a register.
        unsafe { core::arch::asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack)) };
        Self { words: [word as u32, 0] }
    }

    /// Makes them those of this processor.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn write(self) {
        // SAFETY: it writes a register with what `read` found there.
        unsafe { core::arch::asm!("msr fpcr, {}", in(reg) u64::from(self.words[0])) };
    }

    /// On other processors nothing is known of them, and nothing is kept.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn read() -> Self {
        Self { words: [0; 2] }
    }

    /// See `read`.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn write(self) {}
}
