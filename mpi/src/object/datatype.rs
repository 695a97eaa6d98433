//! Datatypes: where the data of an element lies. A datatype of the program is flattened when
//! it is made, to runs of bytes in the order of its type map.

use crate::abi::{self, MPI_Datatype};
use crate::fault::{Answer, fail};
use crate::object::attribute::Attributes;
use crate::object::basic::{self, Basic};
use crate::object::table::lock;
use std::ffi::c_int;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex};
use tsumugi_core::sync::{AtomicBool, AtomicUsize, Ordering};

/// A datatype.
pub(crate) struct Datatype {
    /// The bytes of data of an element.
    pub(crate) size: usize,
    pub(crate) bounds: Bounds,
    /// The data of an element, in the order of the type map.
    pub(crate) runs: Vec<Run>,
    /// The datatypes of the standard in that order, each with its number of elements.
    pub(crate) leaves: Vec<(MPI_Datatype, u64)>,
    /// Whether elements that follow each other are one run of bytes.
    pub(crate) is_dense: bool,
    pub(crate) basic: Option<&'static Basic>,
    pub(crate) recipe: Recipe,
    is_committed: AtomicBool,
    handle: AtomicUsize,
    pub(crate) attributes: Attributes,
    name: Mutex<Option<String>>,
}

/// Bytes of data that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) at: isize,
    pub(crate) len: usize,
}

/// Where an element begins and ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) lb: isize,
    pub(crate) ub: isize,
    /// Of the data alone.
    pub(crate) true_lb: isize,
    pub(crate) true_ub: isize,
    /// Whether the program has set the bounds.
    pub(crate) is_set: bool,
    pub(crate) align: usize,
}

/// By which call a datatype was made, and with which arguments.
#[derive(Clone, Default)]
pub(crate) struct Recipe {
    pub(crate) combiner: c_int,
    pub(crate) integers: Vec<i64>,
    pub(crate) addresses: Vec<i64>,
    /// Those of the functions with wide counts.
    pub(crate) counts: Vec<i64>,
    pub(crate) types: Vec<DatatypeRef>,
}

/// A datatype that a call uses.
#[derive(Clone)]
pub(crate) enum DatatypeRef {
    Given(&'static Datatype),
    Made(Arc<Datatype>),
}

impl Deref for DatatypeRef {
    type Target = Datatype;

    #[inline]
    fn deref(&self) -> &Datatype {
        match self {
            Self::Given(datatype) => datatype,
            Self::Made(datatype) => datatype,
        }
    }
}

impl DatatypeRef {
    /// A datatype of the standard.
    #[inline]
    pub(crate) fn given(handle: MPI_Datatype) -> Option<Self> {
        let at = handle.0.wrapping_sub(MPI_Datatype::NULL.0);
        GIVEN.get(at)?.as_ref().map(Self::Given)
    }
}

impl Bounds {
    pub(crate) fn extent(&self) -> isize {
        self.ub - self.lb
    }
}

impl Datatype {
    fn of_basic(handle: MPI_Datatype, basic: &'static Basic) -> Self {
        let (size, extent, align) = basic.value.layout();
        let mut runs = Vec::new();
        match basic.value.index_at() {
            // The value, a hole, and the index.
            Some(at) if extent != size => {
                let index = 4;
                add_run(&mut runs, Run { at: 0, len: size - index });
                add_run(&mut runs, Run { at: at as isize, len: index });
            }
            _ => add_run(&mut runs, Run { at: 0, len: size }),
        }
        let true_ub = runs.last().map_or(0, |run| run.at + run.len as isize);
        let bounds =
            Bounds { lb: 0, ub: extent as isize, true_lb: 0, true_ub, is_set: false, align };
        let recipe = Recipe { combiner: abi::COMBINER_NAMED, ..Recipe::default() };
        let made = Self::new(size, bounds, runs, vec![(handle, 1)], recipe);
        made.is_committed.store(true, Ordering::Relaxed);
        made.set_handle(handle);
        Self { basic: Some(basic), ..made }
    }

    /// A datatype with this data.
    pub(crate) fn new(
        size: usize,
        bounds: Bounds,
        runs: Vec<Run>,
        leaves: Vec<(MPI_Datatype, u64)>,
        recipe: Recipe,
    ) -> Self {
        let is_whole = match runs[..] {
            [] => true,
            [run] => run.at == 0,
            _ => false,
        };
        let is_dense = is_whole && bounds.lb == 0 && bounds.extent() == size as isize;
        Self {
            size,
            bounds,
            runs,
            leaves,
            is_dense,
            basic: None,
            recipe,
            is_committed: AtomicBool::new(false),
            handle: AtomicUsize::new(MPI_Datatype::NULL.0),
            attributes: Attributes::default(),
            name: Mutex::default(),
        }
    }

    /// Checks that the datatype may be used in communication.
    #[inline]
    pub(crate) fn committed(&self) -> Answer {
        // Relaxed: the program synchronizes the commit with the use.
        if self.is_committed.load(Ordering::Relaxed) { Ok(()) } else { self.uncommitted() }
    }

    #[cold]
    fn uncommitted(&self) -> Answer {
        fail!(abi::ERR_TYPE, "the datatype {} was not committed", self.description())
    }

    pub(crate) fn commit(&self) {
        self.is_committed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.is_committed.load(Ordering::Relaxed)
    }

    /// The bytes of data of so many elements.
    #[inline]
    pub(crate) fn bytes(&self, count: usize) -> Answer<usize> {
        match self.size.checked_mul(count) {
            Some(bytes) => Ok(bytes),
            None => fail!(abi::ERR_COUNT, "{count} elements have more bytes than there are"),
        }
    }

    /// The elements of the standard in an element.
    pub(crate) fn elements(&self) -> u64 {
        self.leaves.iter().map(|(_, count)| count).sum()
    }

    // Relaxed: handles are words of the program, which synchronizes their use.
    pub(crate) fn handle(&self) -> MPI_Datatype {
        MPI_Datatype(self.handle.load(Ordering::Relaxed))
    }

    pub(crate) fn set_handle(&self, handle: MPI_Datatype) {
        self.handle.store(handle.0, Ordering::Relaxed);
    }

    pub(crate) fn name(&self) -> String {
        let given = || self.basic.map_or(String::new(), |basic| basic.name.into());
        lock(&self.name).clone().unwrap_or_else(given)
    }

    pub(crate) fn set_name(&self, name: String) {
        *lock(&self.name) = Some(name);
    }

    pub(crate) fn description(&self) -> String {
        match self.name() {
            name if name.is_empty() => format!("{:#x}", self.handle().0),
            name => name,
        }
    }

    /// Copies the data of `count` elements at `from` to `into`, where it has no holes.
    ///
    /// # Safety
    ///
    /// The elements are valid for reads, and `into` for a write of their bytes of data.
    pub(crate) unsafe fn pack(&self, from: *const u8, count: usize, into: *mut u8) {
        let mut at = into;
        if self.is_dense {
            // SAFETY: the caller's.
            return unsafe { at.copy_from_nonoverlapping(from, self.size * count) };
        }
        for element in 0..count {
            let base = from.wrapping_offset(self.bounds.extent() * element as isize);
            for run in &self.runs {
                // SAFETY: the caller's; the runs of all elements have as many bytes.
                unsafe {
                    at.copy_from_nonoverlapping(base.wrapping_offset(run.at), run.len);
                    at = at.add(run.len);
                }
            }
        }
    }

    /// Copies `bytes` bytes of data to elements at `into`, as far as they go.
    ///
    /// # Safety
    ///
    /// `from` is valid for a read of `bytes` bytes, which are no more than those of the
    /// elements at `into`; these are valid for writes.
    pub(crate) unsafe fn unpack(&self, from: *const u8, mut bytes: usize, into: *mut u8) {
        let mut at = from;
        if self.is_dense {
            // SAFETY: the caller's.
            return unsafe { into.copy_from_nonoverlapping(at, bytes) };
        }
        let mut base = into;
        while bytes > 0 {
            for run in &self.runs {
                let len = run.len.min(bytes);
                // SAFETY: the caller's.
                unsafe {
                    base.wrapping_offset(run.at).copy_from_nonoverlapping(at, len);
                    at = at.add(len);
                }
                bytes -= len;
            }
            base = base.wrapping_offset(self.bounds.extent());
        }
    }
}

/// Adds a run; it may continue the last one.
pub(crate) fn add_run(runs: &mut Vec<Run>, run: Run) {
    if run.len == 0 {
        return;
    }
    match runs.last_mut() {
        Some(last) if last.at + last.len as isize == run.at => last.len += run.len,
        _ => runs.push(run),
    }
}

/// Adds elements of a datatype of the standard.
pub(crate) fn add_leaf(leaves: &mut Vec<(MPI_Datatype, u64)>, (leaf, count): (MPI_Datatype, u64)) {
    match leaves.last_mut() {
        Some((last, had)) if *last == leaf => *had += count,
        _ if count > 0 => leaves.push((leaf, count)),
        _ => {}
    }
}

// On the heap, because the first caller may be a ULT, whose stack is short.
static GIVEN: LazyLock<Box<[Option<Datatype>]>> = LazyLock::new(|| {
    let mut all: Vec<Option<Datatype>> = (0..0x100).map(|_| None).collect();
    for (handle, basic) in basic::all() {
        all[handle.0 - MPI_Datatype::NULL.0] = Some(Datatype::of_basic(handle, basic));
    }
    all.into_boxed_slice()
});
