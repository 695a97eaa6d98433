//! Type maps: datatypes are laid down one after another, and make a new one.

use crate::abi::MPI_Datatype;
use crate::fault::{Answer, Fault};
use crate::object::datatype::{Bounds, Datatype, Recipe, Run, add_leaf, add_run};

/// The map of a datatype that is being made.
#[derive(Default)]
pub(crate) struct TypeMap {
    runs: Vec<Run>,
    leaves: Vec<(MPI_Datatype, u64)>,
    size: usize,
    /// The bounds of elements whose bounds the program has set, and of others.
    set: Option<(isize, isize)>,
    natural: Option<(isize, isize)>,
    data: Option<(isize, isize)>,
    align: usize,
}

impl TypeMap {
    /// Lays down `count` elements that follow each other, the first at `at`.
    pub(crate) fn lay(&mut self, of: &Datatype, count: usize, at: isize) -> Answer {
        if count == 0 {
            return Ok(());
        }
        let bounds = of.bounds;
        let far =
            isize::try_from(count - 1).ok().and_then(|last| bounds.extent().checked_mul(last));
        let end = far.and_then(|far| at.checked_add(far)).ok_or_else(too_large)?;
        let grown = of.size.checked_mul(count).and_then(|size| size.checked_add(self.size));
        self.size = grown.ok_or_else(too_large)?;
        let over = |lb: isize, ub: isize| (at.min(end) + lb, at.max(end) + ub);
        let place = if bounds.is_set { &mut self.set } else { &mut self.natural };
        widen(place, over(bounds.lb, bounds.ub));
        if of.size > 0 {
            widen(&mut self.data, over(bounds.true_lb, bounds.true_ub));
        }
        self.align = self.align.max(bounds.align);
        if of.is_dense {
            add_run(&mut self.runs, Run { at, len: of.size * count });
        } else {
            for element in 0..count {
                let base = at + bounds.extent() * element as isize;
                of.runs.iter().for_each(|run| {
                    add_run(&mut self.runs, Run { at: base + run.at, ..*run });
                });
            }
        }
        match of.leaves[..] {
            [(leaf, each)] => add_leaf(&mut self.leaves, (leaf, each * count as u64)),
            _ => {
                for _ in 0..count {
                    of.leaves.iter().for_each(|leaf| add_leaf(&mut self.leaves, *leaf));
                }
            }
        }
        Ok(())
    }

    /// Has the bounds reach a place at which no data lies.
    pub(crate) fn reach(&mut self, at: isize) {
        widen(&mut self.natural, (at, at));
    }

    /// Makes the datatype.
    pub(crate) fn finish(self, recipe: Recipe) -> Datatype {
        let (is_set, (lb, ub)) = (self.set.is_some(), self.bounds());
        self.finish_with(lb, ub, is_set, recipe)
    }

    /// Makes the datatype, with the padding of a struct of C.
    pub(crate) fn finish_padded(self, recipe: Recipe) -> Datatype {
        let (is_set, (lb, ub)) = (self.set.is_some(), self.bounds());
        let extent = match self.set {
            None if self.align > 0 => (ub - lb).cast_unsigned().next_multiple_of(self.align),
            _ => (ub - lb).cast_unsigned(),
        };
        self.finish_with(lb, lb + extent.cast_signed(), is_set, recipe)
    }

    fn bounds(&self) -> (isize, isize) {
        self.set.or(self.natural).unwrap_or_default()
    }

    /// Makes the datatype with these bounds.
    pub(crate) fn finish_with(
        self,
        lb: isize,
        ub: isize,
        is_set: bool,
        recipe: Recipe,
    ) -> Datatype {
        let (true_lb, true_ub) = self.data.unwrap_or_default();
        let bounds = Bounds { lb, ub, true_lb, true_ub, is_set, align: self.align.max(1) };
        Datatype::new(self.size, bounds, self.runs, self.leaves, recipe)
    }
}

fn widen(place: &mut Option<(isize, isize)>, (lb, ub): (isize, isize)) {
    let (low, high) = place.unwrap_or((lb, ub));
    *place = Some((low.min(lb), high.max(ub)));
}

#[cold]
fn too_large() -> Fault {
    Fault::new(crate::abi::ERR_COUNT, "the datatype is larger than memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::datatype::DatatypeRef;

    #[test]
    fn maps_are_flattened_and_data_comes_back() {
        let int = DatatypeRef::given(MPI_Datatype::INT).unwrap();
        let mut map = TypeMap::default();
        for block in 0..3 {
            map.lay(&int, 2, block * 16).unwrap();
        }
        let vector = map.finish(Recipe::default());
        assert_eq!((vector.size, vector.bounds.extent(), vector.runs.len()), (24, 40, 3));
        assert_eq!(vector.leaves, [(MPI_Datatype::INT, 6)]);
        let mut map = TypeMap::default();
        map.lay(&vector, 2, 8).unwrap();
        let two = map.finish(Recipe::default());
        // The last block of the first element and the first one of the second touch.
        assert_eq!((two.size, two.runs.len(), two.bounds.lb, two.bounds.ub), (48, 5, 8, 88));
        let from: Vec<u8> = (0..200).collect();
        let (mut packed, mut back) = (vec![0; 48], vec![0; 200]);
        // SAFETY: buffers of the extents.
        unsafe {
            two.pack(from.as_ptr(), 1, packed.as_mut_ptr());
            two.unpack(packed.as_ptr(), 48, back.as_mut_ptr());
        }
        for (at, (&was, &is)) in from.iter().zip(&back).enumerate() {
            let is_data = two
                .runs
                .iter()
                .any(|run| (run.at..run.at + run.len as isize).contains(&(at as isize)));
            assert_eq!(is, if is_data { was } else { 0 }, "byte {at}");
        }
    }

    #[test]
    fn a_struct_has_the_padding_of_c() {
        let (double, char) = (MPI_Datatype::DOUBLE, MPI_Datatype::CHAR);
        let of = |handle| DatatypeRef::given(handle).unwrap();
        let mut map = TypeMap::default();
        map.lay(&of(double), 1, 0).unwrap();
        map.lay(&of(char), 1, 8).unwrap();
        let made = map.finish_padded(Recipe::default());
        assert_eq!((made.size, made.bounds.extent(), made.is_dense), (9, 16, false));
    }
}
