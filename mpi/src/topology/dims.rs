//! The dimensions of a grid for a number of ranks.

use crate::abi;
use crate::arguments::list;
use crate::call::call;
use crate::fault::{fail, need};
use crate::topology::arrange::write;
use std::ffi::c_int;

/// MPI_Dims_create. The dimensions are as close to each other as possible, the greater ones
/// first.
///
/// # Safety
///
/// `dims` is valid for reads and writes of `ndims` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> c_int {
    call("MPI_Dims_create", |_| {
        need!(nnodes > 0, abi::ERR_ARG, "a grid of {nnodes} ranks");
        // SAFETY: the caller's.
        let mut all = unsafe { list(dims, ndims, "dimensions") }?.to_vec();
        if let Some(dim) = all.iter().find(|dim| **dim < 0) {
            fail!(abi::ERR_DIMS, "a dimension of {dim}");
        }
        let fixed: i64 = all.iter().filter(|dim| **dim > 0).map(|dim| i64::from(*dim)).product();
        let free = all.iter().filter(|dim| **dim == 0).count();
        need!(
            i64::from(nnodes) % fixed == 0 && (free > 0 || fixed == i64::from(nnodes)),
            abi::ERR_DIMS,
            "{nnodes} ranks on a grid whose given dimensions have {fixed} places"
        );
        let mut parts = even((i64::from(nnodes) / fixed) as c_int, free).into_iter();
        for dim in all.iter_mut().filter(|dim| **dim == 0) {
            *dim = parts.next().unwrap_or(1);
        }
        // SAFETY: the caller's.
        unsafe { write(&all, dims, ndims) }
    })
}

/// `count` factors of a number, the greater ones first: of all choices one in which the greatest
/// and the smallest differ least, and of those one with the greatest smallest factor.
fn even(number: c_int, count: usize) -> Vec<c_int> {
    let mut best = None;
    find(i64::from(number), count, &mut Vec::new(), &mut best);
    let (_, mut factors) = best.unwrap_or_default();
    factors.reverse();
    factors.into_iter().map(|factor| factor as c_int).collect()
}

/// Adds `count` factors of `rest` to rising ones, and keeps those with the least difference.
fn find(rest: i64, count: usize, chosen: &mut Vec<i64>, best: &mut Option<(i64, Vec<i64>)>) {
    let (least, lowest) = (chosen.first().copied(), chosen.last().copied().unwrap_or(1));
    if count <= 1 {
        let difference = rest - least.unwrap_or(rest);
        let is_better = best.as_ref().is_none_or(|(of_best, _)| difference < *of_best);
        if count == 1 && rest >= lowest && is_better {
            chosen.push(rest);
            *best = Some((difference, chosen.clone()));
            chosen.pop();
        }
        return;
    }
    // The next factor is the smallest of those that are left.
    let fits = |factor: &i64| factor.checked_pow(count as u32).is_some_and(|all| all <= rest);
    let root = (lowest..=rest).take_while(fits).last().unwrap_or(0);
    for factor in (lowest..=root).rev().filter(|factor| rest % factor == 0) {
        let smallest = least.unwrap_or(factor);
        // None of the others may be so great that the difference is no better.
        let is_hopeless = best.as_ref().is_some_and(|(difference, _)| {
            let others = (smallest + difference - 1).checked_pow(count as u32 - 1);
            others.is_some_and(|others| others < rest / factor)
        });
        if is_hopeless {
            continue;
        }
        chosen.push(factor);
        find(rest / factor, count - 1, chosen, best);
        chosen.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_close_to_each_other() {
        for (number, count, dims) in [
            (6, 2, vec![3, 2]),
            (7, 2, vec![7, 1]),
            (8, 3, vec![2, 2, 2]),
            (12, 2, vec![4, 3]),
            (16, 2, vec![4, 4]),
            (60, 3, vec![5, 4, 3]),
            (1, 2, vec![1, 1]),
            (360, 3, vec![10, 6, 6]),
            (3600, 4, vec![10, 10, 6, 6]),
            (c_int::MAX, 3, vec![c_int::MAX, 1, 1]),
            (1 << 30, 10, vec![8; 10]),
        ] {
            assert_eq!(even(number, count), dims, "{number} in {count}");
        }
    }
}
