//! The arguments of the command line: numbers in a fixed order, each with a name, a
//! range and a default.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use tsumugi::{Error, Rank, Runtime};

/// The arguments behind a program's name.
#[derive(Debug)]
pub struct Words(std::vec::IntoIter<String>);

/// Runs one rank of a program that takes numbers. Rank 0 alone reports a wrong
/// argument.
///
/// # Errors
///
/// An [`Error`] if an argument is wrong, if the rank cannot start, or if the program
/// fails.
pub fn main<A: Send>(
    take: impl FnOnce(&mut Words) -> Result<A, Error>,
    play: impl FnOnce(&Runtime, A) -> Result<(), Error> + Send,
) -> Result<(), Error> {
    let mut words = Words::new(std::env::args().skip(1).collect());
    let taken = take(&mut words).and_then(|taken| words.end().map(|()| taken));
    tsumugi::run(move |rt| match taken {
        Ok(taken) => play(rt, taken),
        Err(error) => {
            if rt.rank() != Rank(0) {
                // Rank 0's error ends the job, and with it this barrier.
                rt.barrier()?;
            }
            Err(error)
        }
    })
}

impl Words {
    fn new(words: Vec<String>) -> Self {
        Self(words.into_iter())
    }

    /// The next number, or `default` if there is no argument left.
    ///
    /// # Errors
    ///
    /// An error if the argument is not a number in this range; its text names the
    /// argument and the range.
    pub fn number<T>(
        &mut self,
        name: &str,
        range: RangeInclusive<T>,
        default: T,
    ) -> Result<T, Error>
    where
        T: FromStr + PartialOrd + Display,
    {
        let Some(word) = self.0.next() else { return Ok(default) };
        match word.parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => {
                let (from, to) = range.into_inner();
                let what = format!("{name}: '{word}' must be a number from {from} to {to}");
                Err(Error::program(what))
            }
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        match self.0.next() {
            None => Ok(()),
            Some(word) => Err(Error::program(format!("'{word}' is one argument too many"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Words {
        Words::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn arguments_are_taken_in_their_order() {
        let mut words = words("7 9");
        assert_eq!(words.number("DEPTH", 0..=10u32, 1).unwrap(), 7);
        assert_eq!(words.number("GRAIN", 0..=10u64, 1).unwrap(), 9);
        assert_eq!(words.number("SIDE", 0..=10usize, 3).unwrap(), 3);
        words.end().unwrap();
    }

    #[test]
    fn a_bad_argument_is_named_with_the_valid_range() {
        let said = |line| words(line).number("DEPTH", 1..=10u32, 1).unwrap_err().to_string();
        assert_eq!(said("11"), "DEPTH: '11' must be a number from 1 to 10");
        assert_eq!(said("0"), "DEPTH: '0' must be a number from 1 to 10");
        assert_eq!(said("deep"), "DEPTH: 'deep' must be a number from 1 to 10");
        assert_eq!(said("-1"), "DEPTH: '-1' must be a number from 1 to 10");
        let too_many = words("x").end().unwrap_err();
        assert_eq!(too_many.to_string(), "'x' is one argument too many");
    }
}
