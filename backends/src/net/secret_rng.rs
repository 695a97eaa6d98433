//! Random numbers that other programs cannot guess: the keys of a rank's memory at
//! its devices.
//!
//! The numbers come from one seed of the system and then from [`SplitMix64`]: a program
//! that has seen none of the numbers guesses one with a probability of 2^-64. A
//! program that has seen one number can compute the others; such a program is a
//! rank of the job, or has read its traffic.

use crate::boot::random_u64;
use core::ffi::c_int;
use tsumugi_core::random::SplitMix64;

/// A generator of such numbers; see the module.
#[derive(Clone, Debug)]
pub struct SecretRng(SplitMix64);

impl SecretRng {
    /// A generator that gives the same numbers for the same seed.
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A generator with a random seed.
    ///
    /// # Errors
    ///
    /// The system's error, if it has no random numbers.
    pub fn of_system() -> Result<Self, c_int> {
        match random_u64() {
            Ok(seed) => Ok(Self::new(seed)),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// A generator of other numbers, for another user.
    pub fn split(&mut self) -> Self {
        Self::new(self.draw())
    }

    /// The next one, never 0.
    pub fn draw(&mut self) -> u64 {
        // The sequence of a seed contains 0 once.
        match self.0.next() {
            0 => self.0.next(),
            number => number,
        }
    }
}

/// The keys of memory at a device, where the caller chooses them.
#[derive(Clone, Debug)]
pub(super) struct DeviceKeys {
    rng: SecretRng,
    bytes: usize,
    mask: u32,
}

impl DeviceKeys {
    /// A generator of keys of `bytes` bytes.
    pub(super) fn new(mut rng: SecretRng, bytes: usize) -> Self {
        let mask = rng.draw() as u32;
        Self { rng, bytes, mask }
    }

    /// A key for an object that this rank identifies by a unique number of 32 bits.
    /// Where keys are short, two random keys might be equal: there the key is the
    /// number, combined with a random mask.
    pub(super) fn draw(&mut self, number: u64) -> u64 {
        match self.bytes {
            8.. => self.rng.draw(),
            4.. => number ^ u64::from(self.mask),
            _ => number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_numbers() {
        let (mut one, mut same, mut other) =
            (SecretRng::new(1), SecretRng::new(1), SecretRng::new(2));
        let drawn: Vec<u64> = (0..1000).map(|_| one.draw()).collect();
        assert!(drawn.iter().all(|number| *number == same.draw()));
        assert!(drawn.iter().all(|number| *number != other.draw()));
        let mut sorted = drawn.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), drawn.len());
    }

    #[test]
    fn a_key_fits_in_its_bytes_and_is_unique() {
        let draw = |bytes: usize| {
            let mut keys = DeviceKeys::new(SecretRng::new(3), bytes);
            let mut drawn: Vec<u64> = (0..1000).map(|number| keys.draw(number)).collect();
            drawn.sort_unstable();
            drawn.dedup();
            drawn
        };
        assert!([2, 4, 8].iter().all(|bytes| draw(*bytes).len() == 1000));
        assert!(draw(2)[999] < 1000 && draw(4)[999] <= u64::from(u32::MAX));
        assert!(draw(4)[0] > 1000 && draw(8)[0] > 1000, "small numbers are easily guessed");
    }
}
