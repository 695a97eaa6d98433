//! Datatypes of blocks: contiguous, at equal distances, at any places, and of several datatypes.

use crate::abi::{self, MPI_Datatype};
use crate::arguments::count;
use crate::arguments::list;
use crate::fault::Answer;
use crate::job::Job;
use crate::object::datatype::Datatype;
use crate::object::type_map::TypeMap;
use crate::sized::sized;
use crate::types::recipe::{distance, make, recipe, wide};

/// Blocks of a datatype at distances from each other.
fn vector(of: &Datatype, blocks: usize, len: usize, stride: isize) -> Answer<TypeMap> {
    let mut map = TypeMap::default();
    for block in 0..blocks {
        let at = distance(block as i64, stride)?;
        map.lay(of, len, at)?;
        if len == 0 {
            map.reach(at);
        }
    }
    Ok(map)
}

/// Blocks of a datatype, of these numbers of elements, at places in bytes.
fn indexed(
    of: &Datatype,
    lens: &[i64],
    places: impl Iterator<Item = Answer<isize>>,
) -> Answer<TypeMap> {
    let mut map = TypeMap::default();
    for (len, at) in lens.iter().zip(places) {
        map.lay(of, count(*len, "elements of a block")?, at?)?;
    }
    Ok(map)
}

/// Places in bytes, of those in extents.
fn steps(of: &Datatype, places: &[i64]) -> impl Iterator<Item = Answer<isize>> {
    places.iter().map(|place| distance(*place, of.bounds.extent()))
}

sized! {
    /// MPI_Type_contiguous.
    PMPI_Type_contiguous, PMPI_Type_contiguous_c, (
        count: N, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            let mut map = TypeMap::default();
            map.lay(&of, super::count(count.into(), "elements")?, 0)?;
            let integers = vec![count.into()];
            Ok(map.finish(recipe::<N>(abi::COMBINER_CONTIGUOUS, integers, vec![], vec![of])))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }

    /// MPI_Type_vector.
    PMPI_Type_vector, PMPI_Type_vector_c, (
        count: N, blocklength: N, stride: N, oldtype: MPI_Datatype, newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            let (blocks, len) = (super::count(count.into(), "blocks")?,
                super::count(blocklength.into(), "elements of a block")?);
            let map = vector(&of, blocks, len, distance(stride.into(), of.bounds.extent())?)?;
            let integers = vec![count.into(), blocklength.into(), stride.into()];
            Ok(map.finish(recipe::<N>(abi::COMBINER_VECTOR, integers, vec![], vec![of])))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }

    /// MPI_Type_create_hvector.
    PMPI_Type_create_hvector, PMPI_Type_create_hvector_c, (
        count: N, blocklength: N, stride: isize, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            let (blocks, len) = (super::count(count.into(), "blocks")?,
                super::count(blocklength.into(), "elements of a block")?);
            let map = vector(&of, blocks, len, stride)?;
            let integers = vec![count.into(), blocklength.into()];
            let addresses = vec![stride as i64];
            Ok(map.finish(recipe::<N>(abi::COMBINER_HVECTOR, integers, addresses, vec![of])))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }

    /// MPI_Type_indexed.
    PMPI_Type_indexed, PMPI_Type_indexed_c, (
        count: N, blocklengths: *const N, displacements: *const N, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            // SAFETY: the caller's.
            let (lens, places) = unsafe { (list(blocklengths, count, "blocks")?,
                list(displacements, count, "blocks")?) };
            let (lens, places) = (wide(lens), wide(places));
            let map = indexed(&of, &lens, steps(&of, &places))?;
            let integers = [vec![i64::from(count)], lens, places].concat();
            Ok(map.finish(recipe::<N>(abi::COMBINER_INDEXED, integers, vec![], vec![of])))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }

    /// MPI_Type_create_hindexed.
    PMPI_Type_create_hindexed, PMPI_Type_create_hindexed_c, (
        count: N, blocklengths: *const N, displacements: *const isize, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            // SAFETY: the caller's.
            let (lens, places) = unsafe { (list(blocklengths, count, "blocks")?,
                list(displacements, count, "blocks")?) };
            let lens = wide(lens);
            let map = indexed(&of, &lens, places.iter().map(|at| Ok(*at)))?;
            let integers = [vec![i64::from(count)], lens].concat();
            let addresses = places.iter().map(|at| *at as i64).collect();
            Ok(map.finish(recipe::<N>(abi::COMBINER_HINDEXED, integers, addresses, vec![of])))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }

    /// MPI_Type_create_indexed_block.
    PMPI_Type_create_indexed_block, PMPI_Type_create_indexed_block_c, (
        count: N, blocklength: N, displacements: *const N, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            // SAFETY: the caller's.
            let places = wide(unsafe { list(displacements, count, "blocks") }?);
            let lens = vec![blocklength.into(); places.len()];
            let map = indexed(&of, &lens, steps(&of, &places))?;
            let integers = [vec![i64::from(count), i64::from(blocklength)], places].concat();
            Ok(map.finish(recipe::<N>(abi::COMBINER_INDEXED_BLOCK, integers, vec![], vec![of])))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }

    /// MPI_Type_create_hindexed_block.
    PMPI_Type_create_hindexed_block, PMPI_Type_create_hindexed_block_c, (
        count: N, blocklength: N, displacements: *const isize, oldtype: MPI_Datatype,
        newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            let of = job.datatype(oldtype)?;
            // SAFETY: the caller's.
            let places = unsafe { list(displacements, count, "blocks") }?;
            let lens = vec![blocklength.into(); places.len()];
            let map = indexed(&of, &lens, places.iter().map(|at| Ok(*at)))?;
            let integers = vec![i64::from(count), i64::from(blocklength)];
            let addresses = places.iter().map(|at| *at as i64).collect();
            Ok(map.finish(recipe::<N>(abi::COMBINER_HINDEXED_BLOCK, integers, addresses, vec![of])))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }

    /// MPI_Type_create_struct.
    PMPI_Type_create_struct, PMPI_Type_create_struct_c, (
        count: N, blocklengths: *const N, displacements: *const isize,
        types: *const MPI_Datatype, newtype: *mut MPI_Datatype,
    ) {
        let body = |job: &Job| {
            // SAFETY: the caller's.
            let (lens, places, handles) = unsafe { (list(blocklengths, count, "blocks")?,
                list(displacements, count, "blocks")?, list(types, count, "blocks")?) };
            let lens = wide(lens);
            let mut map = TypeMap::default();
            let mut types = Vec::new();
            for ((&len, &at), &handle) in lens.iter().zip(places).zip(handles) {
                let of = job.datatype(handle)?;
                map.lay(&of, super::count(len, "elements of a block")?, at)?;
                types.push(of);
            }
            let integers = [vec![i64::from(count)], lens].concat();
            let addresses = places.iter().map(|at| *at as i64).collect();
            Ok(map.finish_padded(recipe::<N>(abi::COMBINER_STRUCT, integers, addresses, types)))
        };
        // SAFETY: the caller's.
        unsafe { make(NAME, newtype, body) }
    }
}
