//! Gather and scatter: accesses by lists of indices.

use tsumugi::array::{ArrayError, ArrayOptions};
use tsumugi::{Error, Runtime};

/// Each rank writes elements all over the array by a list of indices in no order, and
/// reads elements that other ranks have written.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    let array = ArrayOptions::new().page_len(3).known(5).create::<u32>(rt, LEN)?;
    let (rank, size) = (rt.rank().0 as usize, rt.size() as usize);
    // The stride is prime to the length, so each element comes once.
    let all = (0..LEN).map(|at| at * 37 % LEN);
    let mine: Vec<usize> = all.skip(rank).step_by(size).collect();
    let values: Vec<u32> = mine.iter().map(|index| *index as u32 + 5).collect();
    array.scatter(&mine, &values)?;
    rt.barrier()?;
    let theirs: Vec<usize> = (0..LEN).rev().step_by(2).chain([0, 7, 7]).collect();
    let mut found = vec![0; theirs.len()];
    array.gather(&theirs, &mut found)?;
    assert!(theirs.iter().zip(&found).all(|(index, value)| *value == *index as u32 + 5));
    let lists = ArrayError::Lists { indices: 1, values: found.len() };
    assert_eq!(array.gather(&[1], &mut found), Err(lists));
    let beyond = ArrayError::OutOfRange { index: LEN, count: 1, len: LEN };
    assert_eq!(array.scatter(&[1, LEN], &[1, 1]), Err(beyond));
    rt.barrier()
}

const LEN: usize = 100;
