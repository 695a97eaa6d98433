//! Bytes in global memory, as the data library names them.

use super::acp_ga_t;
use super::job::{Life, Reason};
use crate::Rank;
use crate::global::GlobalAddr;
use crate::global::container::{Data, Element};
use std::ffi::c_int;

/// Bytes in global memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_element_t {
    /// Where they begin.
    pub ga: acp_ga_t,
    /// How many they are.
    pub size: usize,
}

/// Two of them: a key and a value, or two pieces of a deque.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_pair_t {
    /// The key, or the first piece.
    pub first: acp_element_t,
    /// The value, or the second piece.
    pub second: acp_element_t,
}

impl acp_element_t {
    /// No bytes.
    pub(super) const NONE: Self = Self { ga: 0, size: 0 };

    /// As what goes into a container.
    pub(super) fn data(self) -> Data<'static> {
        if self.size == 0 { Data::Here(&[]) } else { data(self.ga, self.size) }
    }
}

impl From<Element> for acp_element_t {
    fn from(element: Element) -> Self {
        Self { ga: element.addr.to_bits(), size: element.bytes as usize }
    }
}

/// The ranks of a list of numbers.
///
/// # Safety
///
/// There are so many.
pub(super) unsafe fn ranks(
    life: &Life,
    count: c_int,
    numbers: *const c_int,
) -> Result<Vec<Rank>, Reason> {
    // SAFETY: the caller's.
    let number = |at| unsafe { *numbers.add(at) };
    (0..usize::try_from(count)?).map(|at| life.rank_of(number(at))).collect()
}

/// So many bytes of global memory.
pub(super) fn data(ga: acp_ga_t, size: usize) -> Data<'static> {
    Data::There(Element { addr: GlobalAddr::from_bits(ga), bytes: size as u64 })
}
