//! The processor's control words for rounding and traps, kept per ULT on request.
//!
//! They belong to a processor, so a ULT that changes them changes them for the next
//! ULT that its worker runs. Saving them costs more than the switch itself (two slow
//! instructions each way), so only ULTs that request it have words of their own.

/// The floating-point control words at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FpControl {
    words: [u32; 2],
}

impl FpControl {
    /// The control words of this processor now.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn read() -> Self {
        let (mut sse, mut x87) = (0u32, 0u16);
        // SAFETY: the two instructions write the two words, nothing else.
        unsafe {
            core::arch::asm!(
                "stmxcsr [{sse}]", "fnstcw [{x87}]",
                sse = in(reg) &raw mut sse, x87 = in(reg) &raw mut x87,
                options(nostack, preserves_flags)
            );
        }
        // Without the status flags, which record what happened so far.
        Self { words: [sse & !0x3f, x87.into()] }
    }

    /// Sets the control words of this processor.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn write(self) {
        let (sse, x87) = (self.words[0], self.words[1] as u16);
        // SAFETY: the two instructions read two words that `read` made.
        unsafe {
            core::arch::asm!(
                "ldmxcsr [{sse}]", "fldcw [{x87}]",
                sse = in(reg) &raw const sse, x87 = in(reg) &raw const x87,
                options(nostack, preserves_flags, readonly)
            );
        }
    }

    /// The control words of this processor now.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn read() -> Self {
        let word: u64;
        // SAFETY: the instruction reads a register.
        unsafe { core::arch::asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack)) };
        Self { words: [word as u32, 0] }
    }

    /// Sets the control words of this processor.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn write(self) {
        // SAFETY: the instruction writes a register with a value that `read` found
        // there.
        unsafe { core::arch::asm!("msr fpcr, {}", in(reg) u64::from(self.words[0])) };
    }

    /// No words: on other processors they are not known, and not kept.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn read() -> Self {
        Self { words: [0; 2] }
    }

    /// Does nothing, see `read`.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn write(self) {}
}
