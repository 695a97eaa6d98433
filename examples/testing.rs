//! A program and its tests. `run_ranks` runs ranks as threads of one process, so a test of
//! several ranks is an ordinary `#[test]`.
//!
//! ```sh
//! cargo test --example testing
//! TSUMUGI_RANKS=4 target/release/examples/testing
//! ```

use tsumugi::{Error, Rank, Runtime, Source, Tags};

#[tsumugi::main]
fn main(rt: &Runtime) -> Result<(), Error> {
    let sum = sum_before(rt, rt.rank().0.into())?;
    println!("{}: the ranks up to here have the sum {sum}", rt.rank());
    Ok(())
}

/// The sum of the values of this rank and all ranks before it, which goes from rank to rank.
fn sum_before(rt: &Runtime, value: u64) -> Result<u64, Error> {
    let (comm, own, mut before) = (rt.comm(), rt.rank().0, [0]);
    if own > 0 {
        comm.recv(Source::Is(Rank(own - 1)), Tags::Is(SUM), &mut before)?;
    }
    let sum = before[0] + value;
    if own + 1 < rt.size() {
        comm.send(Rank(own + 1), SUM, &[sum])?;
    }
    Ok(sum)
}

const SUM: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tsumugi::{MessageError, run_ranks};

    #[test]
    fn each_rank_has_the_sum_of_those_before_it() {
        for size in [1, 2, 7] {
            let sums = run_ranks(size, |rt| sum_before(rt, 10)).unwrap();
            let wanted: Vec<u64> = (1..=u64::from(size)).map(|ranks| 10 * ranks).collect();
            assert_eq!(sums, wanted);
        }
    }

    #[test]
    fn a_rank_that_fails_is_lost_to_the_others() {
        let seen = Mutex::new(Vec::new());
        let result = run_ranks(3, |rt| {
            if rt.rank() == Rank(1) {
                return Err(Error::program("the disk is full"));
            }
            let sum = sum_before(rt, 10);
            seen.lock().unwrap().push((rt.rank(), sum.is_ok()));
            sum
        });
        // The call returns the cause, and not what follows from it.
        assert_eq!(result.unwrap_err().to_string(), "the disk is full");
        assert!(seen.into_inner().unwrap().contains(&(Rank(2), false)));
    }

    #[test]
    fn a_death_can_be_handled() {
        let result = run_ranks(2, |rt| {
            if rt.rank() == Rank(1) {
                return Err(Error::program("rank 1 gives up"));
            }
            let got = rt.comm().recv(Source::Is(Rank(1)), Tags::Any, &mut [0_u64]);
            assert!(matches!(got, Err(MessageError::PeerLost { rank: Rank(1) })), "{got:?}");
            // It goes on alone: what needs no other rank still works.
            Ok(rt.spawn(|_| 6 * 7).join().unwrap())
        });
        assert_eq!(result.unwrap_err().to_string(), "rank 1 gives up");
    }

    #[test]
    #[should_panic(expected = "the answer is wrong")]
    fn a_panic_of_a_rank_is_a_panic_of_the_test() {
        let ranks = run_ranks(2, |rt| {
            assert!(rt.rank() == Rank(0), "the answer is wrong");
            rt.barrier()
        });
        unreachable!("{ranks:?}");
    }
}
