//! Blocks of elements in the memory of a call, of which each goes to another member or comes
//! from one; and the lists of numbers that say where they lie.

use crate::abi::MPI_Datatype;
use crate::arguments::count;
use crate::arguments::is_in_place;
use crate::arguments::list;
use crate::fault::Answer;
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::data::check_memory;
use crate::object::datatype::DatatypeRef;
use crate::object::overlap::{Region, check_disjoint};
use crate::tables::Elements;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;

/// Blocks of elements at places of a buffer, one for each member, as bytes.
pub(crate) struct Spread {
    datatype: Vec<DatatypeRef>,
    pub(crate) buffer: *mut u8,
    counts: Vec<usize>,
    /// Where each block begins, in bytes from the buffer's begin.
    pub(crate) places: Vec<isize>,
    pub(crate) lens: Vec<usize>,
    /// The data of all blocks, one after another.
    pub(crate) copy: Vec<u8>,
}

// SAFETY: the program leaves the memory alone until the collective has ended.
unsafe impl Send for Spread {}

impl Spread {
    /// Blocks of one datatype, at places that are counted in its extents.
    pub(crate) fn of(
        job: &Job,
        buffer: *mut c_void,
        counts: Vec<i64>,
        places: Vec<i64>,
        datatype: MPI_Datatype,
    ) -> Answer<Self> {
        let datatype = job.datatype(datatype)?;
        let extent = datatype.bounds.extent();
        let places = places.iter().map(|place| *place as isize * extent).collect();
        let datatypes = vec![datatype.clone(); counts.len()];
        let spread = Self::with(buffer, counts, places, datatypes)?;
        check_memory(spread.buffer, spread.counts.iter().copied().max().unwrap_or(0), &datatype)?;
        Ok(spread)
    }

    fn with(
        buffer: *mut c_void,
        counts: Vec<i64>,
        places: Vec<isize>,
        datatype: Vec<DatatypeRef>,
    ) -> Answer<Self> {
        let counts: Answer<Vec<usize>> =
            counts.iter().map(|number| count(*number, "elements of a block")).collect();
        let counts = counts?;
        let mut lens = Vec::new();
        for (of, count) in datatype.iter().zip(&counts) {
            of.committed()?;
            lens.push(of.bytes(*count)?);
        }
        let buffer = buffer.cast();
        Ok(Self { datatype, buffer, counts, places, lens, copy: Vec::new() })
    }

    /// The memory of all blocks.
    fn region(&self) -> Region {
        let mut region = Region::default();
        for (member, of) in self.datatype.iter().enumerate() {
            let at = self.buffer.wrapping_offset(self.places[member]);
            region.add(at, self.counts[member], of.clone());
        }
        region
    }

    /// A buffer for all blocks, one after another.
    pub(crate) fn room(&mut self) -> *mut u8 {
        self.copy = vec![0; self.lens.iter().sum()];
        self.copy.as_mut_ptr()
    }

    /// The blocks, packed one after another.
    pub(crate) fn packed(&mut self) -> *const u8 {
        let mut at = self.room();
        for member in 0..self.counts.len() {
            let from = self.buffer.wrapping_offset(self.places[member]);
            // SAFETY: the contract of the call; the copy has the bytes of all blocks.
            unsafe {
                self.datatype[member].pack(from, self.counts[member], at);
                at = at.add(self.lens[member]);
            }
        }
        self.copy.as_ptr()
    }

    /// Takes blocks that have come to their places.
    pub(crate) fn unpack(&self) {
        let mut at = self.copy.as_ptr();
        for member in 0..self.counts.len() {
            let into = self.buffer.wrapping_offset(self.places[member]);
            // SAFETY: as in `packed`.
            unsafe {
                self.datatype[member].unpack(at, self.lens[member], into);
                at = at.add(self.lens[member]);
            }
        }
    }

    /// The bytes of one block, packed.
    pub(crate) fn block(&self, member: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.lens[member]];
        let from = self.buffer.wrapping_offset(self.places[member]);
        // SAFETY: as in `packed`.
        unsafe { self.datatype[member].pack(from, self.counts[member], bytes.as_mut_ptr()) };
        bytes
    }

    /// Whether the blocks lie in the buffer without holes, and none before its begin.
    pub(crate) fn is_direct(&self) -> bool {
        self.datatype.iter().all(|of| of.is_dense) && self.places.iter().all(|place| *place >= 0)
    }

    /// Where the blocks begin, if they are used where they lie.
    pub(crate) fn offsets(&self) -> Vec<usize> {
        self.places.iter().map(|place| place.cast_unsigned()).collect()
    }

    /// `each` elements of a datatype for each of so many members, one after another.
    pub(crate) fn even(
        job: &Job,
        buffer: *mut c_void,
        each: i64,
        members: usize,
        datatype: MPI_Datatype,
    ) -> Answer<Self> {
        let places = (0..members as i64).map(|member| member.wrapping_mul(each)).collect();
        Self::of(job, buffer, vec![each; members], places, datatype)
    }

    /// Blocks of a datatype each, at places in bytes.
    pub(crate) fn of_types(
        job: &Job,
        buffer: *mut c_void,
        counts: Vec<i64>,
        places: Vec<i64>,
        types: *const MPI_Datatype,
        lists: &Lists,
    ) -> Answer<Self> {
        let handles = lists.read(types, counts.len() as u32, "datatypes", |of| of.0 as i64)?;
        let types: Answer<Vec<DatatypeRef>> =
            handles.iter().map(|of| job.datatype(MPI_Datatype(*of as usize))).collect();
        let places = places.iter().map(|place| *place as isize).collect();
        let spread = Self::with(buffer, counts, places, types?)?;
        for (member, of) in spread.datatype.iter().enumerate() {
            // The buffer may be MPI_BOTTOM, and the place an address.
            let is_address = spread.buffer.is_null() && spread.places[member] != 0;
            if !is_address {
                check_memory(spread.buffer, spread.counts[member], of)?;
            }
        }
        Ok(spread)
    }

    /// No blocks.
    pub(crate) fn none() -> Self {
        let (datatype, places) = (Vec::new(), Vec::new());
        let (buffer, counts, lens) = (std::ptr::null_mut(), Vec::new(), Vec::new());
        Self { datatype, buffer, counts, places, lens, copy: Vec::new() }
    }

    /// Leaves the memory of a block alone: nothing comes to it.
    pub(crate) fn clear(&mut self, member: usize) {
        (self.counts[member], self.lens[member]) = (0, 0);
    }

    /// Where each block is sent from, without holes: where it lies, or in a copy.
    pub(crate) fn sent(&mut self) -> Vec<*mut u8> {
        if !self.has_holes() {
            return self.at();
        }
        self.packed();
        self.in_copy()
    }

    /// Where each block comes to, without holes: [`arrived`](Self::arrived) is to be called
    /// then.
    pub(crate) fn received(&mut self) -> Vec<*mut u8> {
        if !self.has_holes() {
            return self.at();
        }
        self.room();
        self.in_copy()
    }

    /// All blocks have come.
    pub(crate) fn arrived(&self) {
        if self.has_holes() {
            self.unpack();
        }
    }

    fn has_holes(&self) -> bool {
        !self.datatype.iter().all(|of| of.is_dense)
    }

    fn at(&self) -> Vec<*mut u8> {
        self.places.iter().map(|place| self.buffer.wrapping_offset(*place)).collect()
    }

    fn in_copy(&mut self) -> Vec<*mut u8> {
        let mut next = self.copy.as_mut_ptr();
        let follow = |len: &usize| {
            let at = next;
            next = next.wrapping_add(*len);
            at
        };
        self.lens.iter().map(follow).collect()
    }
}

impl Job {
    /// In the checking mode checks that blocks that are sent and others that are received are
    /// disjoint.
    pub(crate) fn check_spreads_apart(&self, sent: &Spread, received: &Spread) -> Answer {
        if !self.checks {
            return Ok(());
        }
        check_disjoint(&sent.region(), &received.region())
    }

    /// Does the same for elements beside blocks.
    pub(crate) fn check_apart_from(
        &self,
        elements: Elements<*const c_void>,
        blocks: &Spread,
    ) -> Answer {
        if !self.checks {
            return Ok(());
        }
        check_disjoint(&self.region(elements)?, &blocks.region())
    }

    /// Does the same for values that are combined, `counts` of them, and the results.
    pub(crate) fn check_values_apart(
        &self,
        from: *const c_void,
        into: *mut c_void,
        (values, results): (i64, i64),
        datatype: MPI_Datatype,
    ) -> Answer {
        if is_in_place(from) {
            return Ok(());
        }
        self.check_apart((from, values, datatype), (into, results, datatype))
    }
}

/// The lists of a call, in the order in which it reads them. Those of a persistent request
/// are kept when it is made, because the program may free them then.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    is_kept: bool,
    lists: RefCell<Vec<Vec<i64>>>,
    /// The next one that is read again.
    next: Cell<usize>,
}

impl Lists {
    /// Lists that are kept: after [`again`](Self::again) a call reads them from here.
    pub(crate) fn kept() -> Self {
        Self { is_kept: true, ..Self::default() }
    }

    /// From now on, or again, the kept lists are read.
    pub(crate) fn again(&self) -> &Self {
        self.next.set(0);
        self
    }

    /// The numbers of a list.
    pub(crate) fn numbers<N: Copy + Into<i64>>(
        &self,
        at: *const N,
        len: u32,
        what: &str,
    ) -> Answer<Vec<i64>> {
        self.read(at, len, what, Into::into)
    }

    /// The counts and the places of a block for each peer.
    pub(crate) fn blocks<N: Copy + Into<i64>>(
        &self,
        comm: &CommRef,
        counts: *const N,
        places: *const N,
    ) -> Answer<(Vec<i64>, Vec<i64>)> {
        let peers = comm.peers() as u32;
        Ok((self.numbers(counts, peers, "counts")?, self.numbers(places, peers, "displacements")?))
    }

    /// Blocks of a datatype, one for each peer.
    pub(crate) fn spread<N: Copy + Into<i64>>(
        &self,
        job: &Job,
        comm: &CommRef,
        buffer: *mut c_void,
        (counts, places): (*const N, *const N),
        datatype: MPI_Datatype,
    ) -> Answer<Spread> {
        let (counts, places) = self.blocks(comm, counts, places)?;
        Spread::of(job, buffer, counts, places, datatype)
    }

    /// The elements of a list, as numbers.
    pub(crate) fn read<T: Copy>(
        &self,
        at: *const T,
        len: u32,
        what: &str,
        number: impl Fn(T) -> i64,
    ) -> Answer<Vec<i64>> {
        let next = self.next.get();
        if let Some(kept) = self.lists.borrow().get(next) {
            self.next.set(next + 1);
            return Ok(kept.clone());
        }
        // SAFETY: the contract of the call: the list has so many elements.
        let read: Vec<i64> = unsafe { list(at, len, what) }?.iter().map(|of| number(*of)).collect();
        if self.is_kept {
            self.lists.borrow_mut().push(read.clone());
            self.next.set(next + 1);
        }
        Ok(read)
    }
}
