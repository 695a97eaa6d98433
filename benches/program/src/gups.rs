//! Random updates of one table, an array over all ranks, with the check of HPC
//! Challenge's RandomAccess, except that not a single update may be lost.
//!
//! The stream of updates is that of the benchmark. Each number is the previous one,
//! shifted, with a polynomial added if a one is shifted out. Its low bits choose a
//! word, which is changed by exclusive or with the number. There are four times as
//! many updates as words, made by several ULTs of every rank at once.
//!
//! # References
//!
//! - Luszczek et al.: The HPC Challenge (HPCC) Benchmark Suite. SC 2006.

use crate::{Words, main};
use std::time::{Duration, Instant};
use tsumugi::array::ArrayOptions;
use tsumugi::{Error, GlobalArray, Rank, Runtime};

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The binary logarithm of the table's number of words.
    pub log_words: u32,
    /// ULTs of each rank that update.
    pub ults: u64,
}

/// `gups [LOG_WORDS [ULTS]]`
pub fn command() -> Result<(), Error> {
    main(
        |words: &mut Words| {
            let log_words = words.number("LOG_WORDS", 1..=30, 20)?;
            Ok(Plan { log_words, ults: words.number("ULTS", 1..=4096, 16)? })
        },
        |rt, plan| {
            let time = play(rt, plan)?;
            if rt.rank() == Rank(0) {
                let updates = plan.updates();
                let gups = updates as f64 / time.as_nanos() as f64;
                println!("{updates} updates, all found: {gups:.4} GUPS");
            }
            rt.barrier()
        },
    )
}

impl Plan {
    /// The number of updates.
    pub fn updates(&self) -> u64 {
        UPDATES_A_WORD << self.log_words
    }
}

/// Runs the updates, checks that none is lost, and returns the time of the updates.
/// Collective.
///
/// # Errors
///
/// An [`Error`] if a rank dies, if the array cannot be made, or if an update is
/// missing.
pub fn play(rt: &Runtime, plan: Plan) -> Result<Duration, Error> {
    let words = 1usize << plan.log_words;
    // A rank accesses all pages, so its location cache has room for all of them.
    let known = words.div_ceil(PAGE_LEN) as u32;
    let table = ArrayOptions::new().page_len(PAGE_LEN).known(known).create::<u64>(rt, words)?;
    let (size, rank) = (u64::from(rt.size()), u64::from(rt.rank().0));
    let own = part(words as u64, size, rank);
    let first: Vec<u64> = (own.start..own.end).collect();
    table.put_slice(own.start as usize, &first)?;
    rt.barrier()?;
    let start = Instant::now();
    let streams = size * plan.ults;
    let ults: Vec<_> = (0..plan.ults)
        .map(|ult| {
            let table = table.clone();
            let stream = part(plan.updates(), streams, rank * plan.ults + ult);
            rt.spawn(move |_| update(&table, stream))
        })
        .collect();
    for ult in ults {
        ult.join().expect("no update panics")?;
    }
    rt.barrier()?;
    let time = start.elapsed();
    check(&table, plan, own)?;
    rt.barrier()?;
    Ok(time)
}

fn update(table: &GlobalArray<u64>, stream: std::ops::Range<u64>) -> Result<(), Error> {
    let mask = table.len() as u64 - 1;
    let mut random = nth(stream.start);
    for _ in stream {
        random = after(random);
        table.fetch_xor((random & mask) as usize, random)?;
    }
    Ok(())
}

/// Checks that this rank's part is what one thread that does all updates would leave.
fn check(table: &GlobalArray<u64>, plan: Plan, own: std::ops::Range<u64>) -> Result<(), Error> {
    let mask = table.len() as u64 - 1;
    let mut expected: Vec<u64> = (own.start..own.end).collect();
    let mut random = nth(0);
    for _ in 0..plan.updates() {
        random = after(random);
        if own.contains(&(random & mask)) {
            expected[((random & mask) - own.start) as usize] ^= random;
        }
    }
    let mut found = vec![0; expected.len()];
    table.get_slice(own.start as usize, &mut found)?;
    let wrong = found.iter().zip(&expected).filter(|(found, expected)| found != expected).count();
    match wrong {
        0 => Ok(()),
        _ => Err(Error::program(format!(
            "{wrong} of the {} words of this rank differ from those of a serial run",
            expected.len()
        ))),
    }
}

/// The part of `0 .. all` of number `one` among `of`.
fn part(all: u64, of: u64, one: u64) -> std::ops::Range<u64> {
    let at = |one: u64| (u128::from(all) * u128::from(one) / u128::from(of)) as u64;
    at(one)..at(one + 1)
}

/// The number after `random` in the stream.
fn after(random: u64) -> u64 {
    random << 1 ^ if random >> 63 == 1 { POLYNOMIAL } else { 0 }
}

/// The stream's number `n`, computed directly: a step is linear over bits, so the
/// matrix of twice as many steps is the square of its matrix.
fn nth(n: u64) -> u64 {
    let mut powers: [u64; 64] = std::array::from_fn(|bit| after(1 << bit));
    let apply = |powers: &[u64; 64], value: u64| {
        (0..64).filter(|bit| value >> bit & 1 == 1).fold(0, |sum, bit| sum ^ powers[bit])
    };
    let (mut random, mut n) = (1, n);
    while n > 0 {
        if n & 1 == 1 {
            random = apply(&powers, random);
        }
        powers = powers.map(|column| apply(&powers, column));
        n >>= 1;
    }
    random
}

const POLYNOMIAL: u64 = 7;
const UPDATES_A_WORD: u64 = 4;
const PAGE_LEN: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_may_be_entered_anywhere() {
        let mut random = 1;
        for n in 0..300 {
            assert_eq!(nth(n), random, "{n}");
            random = after(random);
        }
        // After one period the stream begins again.
        assert_eq!(nth(1_317_624_576_693_539_401), 1);
    }

    #[test]
    fn all_updates_are_there() {
        for ranks in [1, 3] {
            let plan = Plan { log_words: 10, ults: 3 };
            tsumugi::run_ranks(ranks, |rt| play(rt, plan)).unwrap();
        }
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        for of in 1..20 {
            let sum: u64 =
                (0..of).map(|one| part(1000, of, one)).map(|part| part.end - part.start).sum();
            assert_eq!(sum, 1000);
        }
    }
}
