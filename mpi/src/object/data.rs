//! The memory of a call: elements of a datatype, as bytes without holes.

use crate::abi::{self, MPI_Datatype};
use crate::arguments::count;
use crate::fault::{Answer, need};
use crate::object::basic;
use crate::object::datatype::{Datatype, DatatypeRef};
use std::ffi::c_void;

/// Checks that elements can lie at an address of the program. NULL is MPI_BOTTOM, from which the
/// datatype may have addresses.
pub(crate) fn check_memory(buffer: *const u8, number: usize, datatype: &Datatype) -> Answer {
    if number == 0 || datatype.size == 0 {
        return Ok(());
    }
    need!(buffer.addr() != abi::IN_PLACE.addr(), abi::ERR_BUFFER, "the buffer is MPI_IN_PLACE");
    need!(
        !buffer.is_null() || datatype.bounds.true_lb != 0,
        abi::ERR_BUFFER,
        "the buffer of {number} elements is NULL"
    );
    Ok(())
}

/// Bytes of data: where they lie in the program's memory, if they have no holes there, and
/// else a copy.
pub(crate) struct Data {
    at: *mut u8,
    pub(crate) bytes: usize,
    copy: Option<Box<Copied>>,
}

/// A copy, and the elements of which it is; none if the program does not get the bytes.
struct Copied {
    bytes: Vec<u8>,
    elements: *mut u8,
    datatype: Option<DatatypeRef>,
}

impl Copied {
    fn alone(bytes: Vec<u8>) -> Box<Self> {
        Box::new(Self { bytes, elements: std::ptr::null_mut(), datatype: None })
    }
}

// SAFETY: the program leaves the memory alone until the call that has it has ended.
unsafe impl Send for Data {}
// SAFETY: the same.
unsafe impl Sync for Data {}

impl Data {
    /// No data.
    pub(crate) const NOTHING: Self = Self { at: std::ptr::null_mut(), bytes: 0, copy: None };

    /// The data of elements that are whole where they lie, of a datatype of the standard. `None`:
    /// any other case, and errors.
    #[inline(always)]
    pub(crate) fn plain(buffer: *mut c_void, number: i64, datatype: MPI_Datatype) -> Option<Self> {
        let bytes = basic::dense_bytes(datatype)?.checked_mul(usize::try_from(number).ok()?)?;
        let is_buffer = buffer.addr() > abi::IN_PLACE.addr() || bytes == 0;
        (is_buffer && bytes <= isize::MAX as usize).then(|| Self {
            at: buffer.cast(),
            bytes,
            copy: None,
        })
    }

    /// The data of elements of a datatype, before it is known how it is used.
    fn of(buffer: *mut c_void, number: i64, datatype: DatatypeRef) -> Answer<Self> {
        datatype.committed()?;
        let number = count(number, "elements")?;
        let bytes = datatype.bytes(number)?;
        let buffer = buffer.cast::<u8>();
        let (at, is_whole) = match datatype.runs[..] {
            _ if bytes == 0 => (buffer, true),
            _ if datatype.is_dense => (buffer, true),
            [run] if number == 1 => (buffer.wrapping_offset(run.at), true),
            _ => (buffer, false),
        };
        check_memory(buffer, number, &datatype)?;
        if is_whole {
            return Ok(Self { at, bytes, copy: None });
        }
        let copy = Copied { bytes: vec![0; bytes], elements: buffer, datatype: Some(datatype) };
        Ok(Self { at, bytes, copy: Some(Box::new(copy)) })
    }

    /// Data that is sent.
    ///
    /// # Safety
    ///
    /// The elements are valid for reads.
    pub(crate) unsafe fn outgoing(
        buffer: *const c_void,
        number: i64,
        datatype: DatatypeRef,
    ) -> Answer<Self> {
        let mut data = Self::of(buffer.cast_mut(), number, datatype)?;
        if let Some(copy) = &mut data.copy
            && let Copied { bytes, elements, datatype: Some(datatype) } = &mut **copy
        {
            // SAFETY: the caller's; the copy has the bytes of so many elements.
            unsafe { datatype.pack(*elements, number as usize, bytes.as_mut_ptr()) };
        }
        Ok(data)
    }

    /// Memory for data that is received: [`arrived`](Self::arrived) is to be called then.
    pub(crate) fn incoming(
        buffer: *mut c_void,
        number: i64,
        datatype: DatatypeRef,
    ) -> Answer<Self> {
        Self::of(buffer, number, datatype)
    }

    /// Bytes of the library.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { at: std::ptr::null_mut(), bytes: bytes.len(), copy: Some(Copied::alone(bytes)) }
    }

    /// A copy of data that is sent, for a call that writes to where it lies.
    pub(crate) fn copied(mut self) -> Self {
        Self::of_bytes(self.kept())
    }

    /// Whether the bytes lie where the elements are.
    #[inline]
    pub(crate) fn is_in_place(&self) -> bool {
        self.copy.is_none()
    }

    /// Where the bytes lie.
    #[inline]
    pub(crate) fn at(&mut self) -> *mut u8 {
        match &mut self.copy {
            None => self.at,
            Some(copy) => copy.bytes.as_mut_ptr(),
        }
    }

    /// So many bytes have come: they go to the elements.
    #[inline]
    pub(crate) fn arrived(&mut self, bytes: usize) {
        if let Some(copy) = &self.copy
            && let Copied { bytes: copy, elements, datatype: Some(datatype) } = &**copy
        {
            // SAFETY: the contract of the receive: its elements are valid for writes.
            unsafe { datatype.unpack(copy.as_ptr(), bytes.min(self.bytes), *elements) };
        }
    }

    /// The bytes as a value that keeps them, for a send whose buffer is free at once.
    pub(crate) fn kept(&mut self) -> Vec<u8> {
        if let Some(copy) = &mut self.copy {
            return std::mem::take(&mut copy.bytes);
        }
        let mut bytes = vec![0; self.bytes];
        if self.bytes > 0 {
            // SAFETY: the contract of the send: the bytes are valid for reads.
            unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(self.at, self.bytes) };
        }
        bytes
    }
}
