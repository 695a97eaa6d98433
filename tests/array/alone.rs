//! Arrays that one rank makes: the arguments that are refused.

use super::run_ranks;
use tsumugi::Rank;
use tsumugi::array::{ArrayError, ArrayHandle, Dealt, Directory, Distribution};

#[test]
fn arrays_that_one_rank_cannot_make_are_refused() {
    run_ranks(2, |rt| {
        let arrays = rt.arrays(1 << 16)?;
        if rt.rank().0 == 1 {
            let by = Dealt { first: Distribution::By(|_| Rank(0)), ..Dealt::default() };
            let mail = Dealt { directory: Directory::Messages, ..Dealt::default() };
            for dealt in [by, mail] {
                let error = arrays.make::<u64>(10, dealt).unwrap_err();
                assert_eq!(error.to_string(), ArrayError::NotAlone.to_string());
            }
            let error = arrays.make::<u64>(1 << 20, Dealt::default()).unwrap_err();
            assert!(error.to_string().starts_with("no room for another array of "), "{error}");
            let error = arrays.make::<u64>(0, Dealt::default()).unwrap_err();
            assert!(error.to_string().starts_with("0 pages"), "{error}");
            assert!(arrays.open::<u64>(ArrayHandle::from_bits(7)).is_err());
        }
        rt.barrier()
    });
}
