//! Arrays that one rank makes: the arguments that are refused.

use super::run_ranks;
use tsumugi::Rank;
use tsumugi::array::{ArrayError, ArrayHandle, ArrayOptions, Directory, Distribution};

#[test]
fn arrays_that_one_rank_cannot_make_are_refused() {
    run_ranks(2, |rt| {
        let arrays = rt.arrays(1 << 16)?;
        if rt.rank().0 == 1 {
            let by = ArrayOptions::new().distribution(Distribution::By(|_| Rank(0)));
            let mail = ArrayOptions::new().directory(Directory::Messages);
            for options in [by, mail] {
                let error = arrays.make::<u64>(10, options).unwrap_err();
                assert_eq!(error.to_string(), ArrayError::NotAlone.to_string());
            }
            let error = arrays.make::<u64>(1 << 20, ArrayOptions::new()).unwrap_err();
            assert!(error.to_string().starts_with("no room for another array of "), "{error}");
            let error = arrays.make::<u64>(0, ArrayOptions::new()).unwrap_err();
            assert!(error.to_string().starts_with("0 pages"), "{error}");
            assert!(arrays.open::<u64>(ArrayHandle::from_bits(7)).is_err());
        }
        rt.barrier()
    });
}
