//! The hash that determines a key's place: CRC-64/XZ, as in ACP 3, so that the same
//! keys are in the same slots, in the same order.
//!
//! Eight bytes are added at a time, by eight tables: table `n` has the effect of a
//! byte that is followed by `n` bytes.

/// The hash of the bytes so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash(u64);

impl Hash {
    /// The hash of no bytes.
    pub(super) const fn new() -> Self {
        Self(u64::MAX)
    }

    /// Adds these bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let low = (self.0 ^ u64::from_le_bytes(*word)).to_le_bytes();
            self.0 = (0..8).fold(0, |crc, at| crc ^ TABLES[7 - at][usize::from(low[at])]);
        }
        for byte in rest {
            self.0 = TABLES[0][usize::from(self.0 as u8 ^ byte)] ^ self.0 >> 8;
        }
    }

    /// The checksum of all bytes.
    const fn crc(self) -> u64 {
        !self.0
    }

    /// The part from which places are computed: the upper 48 bits.
    pub(super) const fn place(self) -> u64 {
        self.crc() >> 16
    }
}

static TABLES: [[u64; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut after = 1;
    while after < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[after - 1][byte];
            tables[after][byte] = tables[0][crc as usize & 0xff] ^ crc >> 8;
            byte += 1;
        }
        after += 1;
    }
    tables
};

/// The polynomial of ECMA-182, from the lowest bit on.
const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;

#[cfg(test)]
mod tests {
    use super::*;

    fn crc(bytes: &[u8], parts: usize) -> u64 {
        let mut hash = Hash::new();
        bytes.chunks(parts).for_each(|part| hash.add(part));
        hash.crc()
    }

    /// The check value of the catalogue of CRC algorithms.
    #[test]
    fn the_crc_equals_the_check_value_of_the_catalogue() {
        assert_eq!(crc(b"123456789", 9), 0x995d_c9bb_df19_39fa);
        assert_eq!(crc(&[], 1), 0);
    }

    #[test]
    fn eight_bytes_at_a_time_give_the_same_crc() {
        let bytes: [u8; 100] = core::array::from_fn(|n| (n * 37) as u8);
        for end in 0..=bytes.len() {
            assert_eq!(crc(&bytes[..end], 100), crc(&bytes[..end], 1), "{end} bytes");
        }
    }
}
