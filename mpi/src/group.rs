//! Groups of MPI: lists of ranks, without communication.

use crate::abi::{self, MPI_Comm, MPI_Group};
use crate::arguments::list;
use crate::call::{call, call_on};
use crate::fault::Fault;
use crate::object::group::RankGroup;
use std::ffi::c_int;

/// MPI_Comm_group.
///
/// # Safety
///
/// `group` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) -> c_int {
    call_on("MPI_Comm_group", comm, |job, comm| {
        let made = job.add_group(RankGroup { ranks: comm.ranks() })?;
        // SAFETY: the caller's.
        unsafe { group.write(made) };
        Ok(())
    })
}

/// MPI_Group_size.
///
/// # Safety
///
/// `size` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Group_size(group: MPI_Group, size: *mut c_int) -> c_int {
    call("MPI_Group_size", |job| {
        // SAFETY: the caller's.
        unsafe { size.write(job.group(group)?.ranks.len() as c_int) };
        Ok(())
    })
}

/// MPI_Group_rank.
///
/// # Safety
///
/// `rank` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Group_rank(group: MPI_Group, rank: *mut c_int) -> c_int {
    call("MPI_Group_rank", |job| {
        // SAFETY: the caller's.
        unsafe { rank.write(job.group(group)?.me(job.runtime.rank().0)) };
        Ok(())
    })
}

/// MPI_Group_translate_ranks.
///
/// # Safety
///
/// `ranks1` has `n` numbers, and `ranks2` is valid for a write of as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Group_translate_ranks(
    group1: MPI_Group,
    n: c_int,
    ranks1: *const c_int,
    group2: MPI_Group,
    ranks2: *mut c_int,
) -> c_int {
    call("MPI_Group_translate_ranks", |job| {
        let (from, to) = (job.group(group1)?, job.group(group2)?);
        let places = to.places();
        // SAFETY: the caller's.
        for (at, &place) in unsafe { list(ranks1, n, "ranks") }?.iter().enumerate() {
            let translated = if place == abi::PROC_NULL {
                abi::PROC_NULL
            } else {
                let [at] = from.chosen(&[place])?[..] else { unreachable!("one place") };
                places.get(&from.ranks[at]).map_or(abi::UNDEFINED, |at| *at as c_int)
            };
            // SAFETY: the caller's.
            unsafe { ranks2.add(at).write(translated) };
        }
        Ok(())
    })
}

/// MPI_Group_compare.
///
/// # Safety
///
/// `result` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Group_compare(
    group1: MPI_Group,
    group2: MPI_Group,
    result: *mut c_int,
) -> c_int {
    call("MPI_Group_compare", |job| {
        let found = job.group(group1)?.compare(&*job.group(group2)?);
        // SAFETY: the caller's.
        unsafe { result.write(found) };
        Ok(())
    })
}

/// A function of two groups that makes a third one.
macro_rules! of_two {
    ($($function:ident, $name:literal, |$one:ident, $other:ident| $ranks:expr;)*) => { $(
        #[doc = concat!($name, ".")]
        ///
        /// # Safety
        ///
        /// `newgroup` is valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            group1: MPI_Group,
            group2: MPI_Group,
            newgroup: *mut MPI_Group,
        ) -> c_int {
            call($name, |job| {
                let ($one, $other) = (&job.group(group1)?.ranks, &job.group(group2)?.ranks);
                let made = job.add_group(RankGroup { ranks: $ranks })?;
                // SAFETY: the caller's.
                unsafe { newgroup.write(made) };
                Ok(())
            })
        }
    )* };
}

of_two! {
    PMPI_Group_union, "MPI_Group_union", |one, other|
        one.iter().chain(other.iter().filter(|rank| !one.contains(rank))).copied().collect();
    PMPI_Group_intersection, "MPI_Group_intersection", |one, other|
        one.iter().filter(|rank| other.contains(rank)).copied().collect();
    PMPI_Group_difference, "MPI_Group_difference", |one, other|
        one.iter().filter(|rank| !other.contains(rank)).copied().collect();
}

/// A function that makes a group of some ranks of another one.
macro_rules! of_places {
    ($($function:ident, $name:literal, $element:ty, |$group:ident, $given:ident| $ranks:expr;)*) => { $(
        #[doc = concat!($name, ".")]
        ///
        /// # Safety
        ///
        /// `ranks` has `n` elements; `newgroup` is valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $function(
            group: MPI_Group,
            n: c_int,
            ranks: *const $element,
            newgroup: *mut MPI_Group,
        ) -> c_int {
            call($name, |job| {
                let $group = job.group(group)?;
                // SAFETY: the caller's.
                let $given = unsafe { list(ranks, n, "ranks") }?;
                let made = job.add_group($ranks)?;
                // SAFETY: the caller's.
                unsafe { newgroup.write(made) };
                Ok(())
            })
        }
    )* };
}

of_places! {
    PMPI_Group_incl, "MPI_Group_incl", c_int, |group, places| {
        let places = group.chosen(places)?;
        RankGroup { ranks: places.iter().map(|at| group.ranks[*at]).collect() }
    };
    PMPI_Group_excl, "MPI_Group_excl", c_int, |group, places| {
        group.without(&group.chosen(places)?)
    };
    PMPI_Group_range_incl, "MPI_Group_range_incl", [c_int; 3], |group, ranges| {
        let places = group.chosen(&RankGroup::ranged(ranges)?)?;
        RankGroup { ranks: places.iter().map(|at| group.ranks[*at]).collect() }
    };
    PMPI_Group_range_excl, "MPI_Group_range_excl", [c_int; 3], |group, ranges| {
        group.without(&group.chosen(&RankGroup::ranged(ranges)?)?)
    };
}

/// MPI_Group_free.
///
/// # Safety
///
/// `group` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Group_free(group: *mut MPI_Group) -> c_int {
    call("MPI_Group_free", |job| {
        // SAFETY: the caller's.
        let handle = unsafe { group.read() };
        if handle != MPI_Group::EMPTY && job.groups.remove(handle.0).is_none() {
            let text = format_args!("no group has the handle {:#x}", handle.0);
            return Err(Fault::new(abi::ERR_GROUP, text));
        }
        // SAFETY: the caller's.
        unsafe { group.write(MPI_Group::NULL) };
        Ok(())
    })
}
