//! Numbers that a stranger does not guess: the keys of a
//! rank's memory at its devices.
//!
//! One seed of the system's, and [`Draw`] from there: a program that has seen none
//! of the numbers guesses any with 2^-64. One that has seen one can reckon the
//! others, and is a rank of the job, or has read its traffic.

use crate::boot::random_u64;
use core::ffi::c_int;
use tsumugi_core::backend::Draw;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Noise(Draw);

impl Noise {
    /// The same numbers for the same seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Draw::new(seed))
    }

    /// Numbers that nobody knows.
    ///
    /// # Errors
    ///
    /// The system's error, if it has no random numbers.
    pub(crate) fn of_system() -> Result<Self, c_int> {
        match random_u64() {
            Ok(seed) => Ok(Self::new(seed)),
            Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// Others, for somebody else.
    pub(crate) fn split(&mut self) -> Self {
        Self::new(self.draw())
    }

    /// The next one, never 0.
    pub(crate) fn draw(&mut self) -> u64 {
        // Of one seed one number is 0, once.
        match self.0.next() {
            0 => self.0.next(),
            number => number,
        }
    }
}

/// The keys under which a device knows memory, where a caller chooses them.
#[derive(Clone, Debug)]
pub(super) struct DeviceKeys {
    noise: Noise,
    bytes: usize,
    mask: u32,
}

impl DeviceKeys {
    /// Keys of so many bytes.
    pub(super) fn new(mut noise: Noise, bytes: usize) -> Self {
        let mask = noise.draw() as u32;
        Self { noise, bytes, mask }
    }

    /// A key for what is known here by a number of 32 bits that nothing else
    /// has. Where keys are short, two that are drawn might be the same: there a
    /// key is the number, veiled.
    pub(super) fn draw(&mut self, number: u64) -> u64 {
        match self.bytes {
            8.. => self.noise.draw(),
            4.. => number ^ u64::from(self.mask),
            _ => number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_seeds() {
        let (mut one, mut same, mut other) = (Noise::new(1), Noise::new(1), Noise::new(2));
        let drawn: Vec<u64> = (0..1000).map(|_| one.draw()).collect();
        assert!(drawn.iter().all(|number| *number == same.draw()));
        assert!(drawn.iter().all(|number| *number != other.draw()));
        let mut sorted = drawn.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), drawn.len());
    }

    #[test]
    fn a_key_fits_in_its_bytes_and_is_no_others() {
        let draw = |bytes: usize| {
            let mut keys = DeviceKeys::new(Noise::new(3), bytes);
            let mut drawn: Vec<u64> = (0..1000).map(|number| keys.draw(number)).collect();
            drawn.sort_unstable();
            drawn.dedup();
            drawn
        };
        assert!([2, 4, 8].iter().all(|bytes| draw(*bytes).len() == 1000));
        assert!(draw(2)[999] < 1000 && draw(4)[999] <= u64::from(u32::MAX));
        assert!(draw(4)[0] > 1000 && draw(8)[0] > 1000, "small numbers are guessed first");
    }
}
