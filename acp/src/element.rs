//! Ranges of global memory, as the data library names them.

use super::acp_ga_t;
use super::life::{Life, Reason};
use std::ffi::c_int;
use tsumugi::Rank;
use tsumugi::global::GlobalAddr;
use tsumugi::global::container::{Data, Element};

/// A range of bytes in global memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct acp_element_t {
    /// The address of the first byte.
    pub ga: acp_ga_t,
    /// The number of bytes.
    pub size: usize,
}

/// Two ranges: a key and a value, or two pieces of a deque.
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

    /// The range as data to be put into a container.
    pub(super) fn data(self) -> Data<'static> {
        if self.size == 0 { Data::Here(&[]) } else { data(self.ga, self.size) }
    }
}

impl From<Element> for acp_element_t {
    fn from(element: Element) -> Self {
        Self { ga: element.addr.to_bits(), size: element.bytes as usize }
    }
}

/// The ranks for a list of ACP's rank numbers.
///
/// # Safety
///
/// `numbers` is valid for a read of `count` numbers.
pub(super) unsafe fn ranks(
    life: &Life,
    count: c_int,
    numbers: *const c_int,
) -> Result<Vec<Rank>, Reason> {
    // SAFETY: the caller's.
    let number = |at| unsafe { *numbers.add(at) };
    (0..usize::try_from(count)?).map(|at| life.rank_of(number(at))).collect()
}

/// The `size` bytes of global memory at `ga`, as data for a container.
pub(super) fn data(ga: acp_ga_t, size: usize) -> Data<'static> {
    Data::There(Element { addr: GlobalAddr::from_bits(ga), bytes: size as u64 })
}
