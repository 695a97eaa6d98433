//! Packing in the format external32, which is the same on all machines: the higher bytes come first,
//! integers of C have 32 bits also where `long` has more, wide characters have 16, and a
//! `long double` is an IEEE number of 128 bits.
//!
//! The data of elements is packed as it is in memory, and its values are converted one after
//! another; what is unpacked goes the other way. A value that does not fit loses its higher bits.

use crate::abi::{self, MPI_Datatype};
use crate::arguments::{count, text};
use crate::call::call;
use crate::fault::{Answer, Fault, need};
use crate::job::Job;
use crate::object::basic::{Value, basic};
use crate::object::datatype::Datatype;
use crate::object::extended;
use crate::sized::sized;
use std::ffi::{c_char, c_void};

/// A value of memory, as the format has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// So many bytes, the last of which comes first.
    Turned(usize),
    /// A signed or an unsigned integer of 64 bits, as one of 32.
    Long,
    UnsignedLong,
    /// A wide character of 32 bits, as one of 16.
    Wide,
    /// A `long double`.
    Extended,
}

impl Part {
    const fn memory_bytes(self) -> usize {
        match self {
            Self::Turned(bytes) => bytes,
            Self::Long | Self::UnsignedLong => 8,
            Self::Wide => 4,
            Self::Extended => 16,
        }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::Turned(bytes) => bytes,
            Self::Long | Self::UnsignedLong => 4,
            Self::Wide => 2,
            Self::Extended => 16,
        }
    }

    /// Adds the value of memory to what is packed.
    fn pack(self, memory: &[u8], packed: &mut Vec<u8>) {
        let extended;
        let kept = match self {
            Self::Extended => {
                extended = extended::to_quad(word(memory)).to_le_bytes();
                &extended[..]
            }
            part => &memory[..part.bytes()],
        };
        packed.extend(kept.iter().rev());
    }

    /// Adds the packed value to what goes to memory.
    fn unpack(self, packed: &[u8], memory: &mut Vec<u8>) {
        let first = packed.first().copied().unwrap_or(0);
        let start = memory.len();
        memory.extend(packed.iter().rev());
        match self {
            Self::Turned(_) => {}
            Self::Extended => {
                let extended = extended::from_quad(word(&memory[start..])).to_le_bytes();
                memory[start..].copy_from_slice(&extended);
            }
            part => {
                let is_negative = part == Self::Long && first >= 0x80;
                memory.resize(start + part.memory_bytes(), if is_negative { 0xff } else { 0 });
            }
        }
    }
}

/// The first 16 bytes, as a number.
fn word(bytes: &[u8]) -> u128 {
    bytes.first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
}

/// The parts of an element of a datatype of the standard; `None`: there is none.
fn parts(leaf: MPI_Datatype) -> [Option<Part>; 2] {
    use Part::{Extended, Long, Turned, UnsignedLong, Wide};
    let value = basic(leaf).map_or(Value::None, |basic| basic.value);
    let (first, second) = match (leaf, value) {
        (MPI_Datatype::LONG, _) => (Long, None),
        (MPI_Datatype::UNSIGNED_LONG, _) => (UnsignedLong, None),
        (_, Value::None) => return [None; 2],
        (_, Value::Wide) => (Wide, None),
        (_, Value::F80) => (Extended, None),
        (_, Value::C80) => (Extended, Some(Extended)),
        (_, Value::C16) => (Turned(2), Some(Turned(2))),
        (_, Value::C32 | Value::F32I32 | Value::I32I32 | Value::F32F32) => {
            (Turned(4), Some(Turned(4)))
        }
        (_, Value::C64 | Value::F64F64) => (Turned(8), Some(Turned(8))),
        (_, Value::C128) => (Turned(16), Some(Turned(16))),
        (_, Value::F64I32) => (Turned(8), Some(Turned(4))),
        (_, Value::I64I32) => (Long, Some(Turned(4))),
        (_, Value::I16I32) => (Turned(2), Some(Turned(4))),
        (_, Value::F80I32) => (Extended, Some(Turned(4))),
        (_, value) => (Turned(value.layout().0), None),
    };
    [Some(first), second]
}

/// The bytes of so many elements in the format.
fn packed_bytes(of: &Datatype, number: usize) -> Answer<usize> {
    let bytes = |leaf: MPI_Datatype| parts(leaf).iter().flatten().map(|part| part.bytes()).sum();
    let each: Option<usize> = of.leaves.iter().try_fold(0usize, |all, &(leaf, times)| {
        usize::try_from(times).ok()?.checked_mul(bytes(leaf))?.checked_add(all)
    });
    each.and_then(|each| each.checked_mul(number)).ok_or_else(|| {
        let text = format_args!("{number} elements have more bytes than there are");
        Fault::new(abi::ERR_COUNT, text)
    })
}

/// The values of so many elements, one after another.
fn each_part(of: &Datatype, number: usize, mut then: impl FnMut(Part)) {
    for _ in 0..number {
        for &(leaf, times) in &of.leaves {
            let parts = parts(leaf);
            for _ in 0..times {
                parts.into_iter().flatten().for_each(&mut then);
            }
        }
    }
}

/// Checks the name of the format: the standard has one.
///
/// # Safety
///
/// `name` is NULL or a string.
unsafe fn check_name(name: *const c_char) -> Answer {
    // SAFETY: the caller's.
    let name = unsafe { text(name, "data representation") }?;
    need!(name == "external32", abi::ERR_ARG, "the data representation {name:?} is not known");
    Ok(())
}

/// Checks that so many bytes at a position lie in a buffer.
fn check_room(bytes: usize, at: isize, room: isize) -> Answer {
    need!(
        at >= 0 && isize::try_from(bytes).is_ok_and(|bytes| bytes <= room - at),
        abi::ERR_TRUNCATE,
        "{bytes} bytes at {at} of a buffer of {room} bytes"
    );
    Ok(())
}

/// Packs elements at a position of a buffer; returns the next position.
///
/// # Safety
///
/// The elements are valid for reads, and `room` bytes of `into` for writes.
unsafe fn pack(
    job: &Job,
    (from, number, datatype): (*const c_void, i64, MPI_Datatype),
    (into, room, at): (*mut c_void, isize, isize),
) -> Answer<isize> {
    let of = job.datatype(datatype)?;
    of.committed()?;
    let number = count(number, "elements")?;
    let bytes = packed_bytes(&of, number)?;
    check_room(bytes, at, room)?;
    let mut memory = vec![0; of.bytes(number)?];
    // SAFETY: the caller's; the copy has the bytes of all elements.
    unsafe { of.pack(from.cast(), number, memory.as_mut_ptr()) };
    let (mut packed, mut rest) = (Vec::with_capacity(bytes), &memory[..]);
    each_part(&of, number, |part| {
        let (value, more) = rest.split_at(part.memory_bytes());
        part.pack(value, &mut packed);
        rest = more;
    });
    // SAFETY: the caller's; there is room for as many.
    unsafe { into.byte_offset(at).cast::<u8>().copy_from_nonoverlapping(packed.as_ptr(), bytes) };
    Ok(at + bytes as isize)
}

/// Unpacks elements at a position of a buffer; returns the next position.
///
/// # Safety
///
/// The elements are valid for writes, and `there` bytes of `from` for reads.
unsafe fn unpack(
    job: &Job,
    (from, there, at): (*const c_void, isize, isize),
    (into, number, datatype): (*mut c_void, i64, MPI_Datatype),
) -> Answer<isize> {
    let of = job.datatype(datatype)?;
    of.committed()?;
    let number = count(number, "elements")?;
    let bytes = packed_bytes(&of, number)?;
    check_room(bytes, at, there)?;
    if bytes == 0 {
        return Ok(at);
    }
    // SAFETY: the caller's.
    let mut rest = unsafe { std::slice::from_raw_parts(from.byte_offset(at).cast::<u8>(), bytes) };
    let mut memory = Vec::with_capacity(of.bytes(number)?);
    each_part(&of, number, |part| {
        let (value, more) = rest.split_at(part.bytes());
        part.unpack(value, &mut memory);
        rest = more;
    });
    // SAFETY: the caller's; the copy has the bytes of all elements.
    unsafe { of.unpack(memory.as_ptr(), memory.len(), into.cast()) };
    Ok(at + bytes as isize)
}

sized! {
    /// MPI_Pack_external.
    PMPI_Pack_external, PMPI_Pack_external_c, (
        name: *const c_char, from: *const c_void, number: N, datatype: MPI_Datatype,
        into: *mut c_void, room: isize, position: *mut isize,
    ) {
        call(NAME, |job| {
            // SAFETY: the caller's.
            unsafe {
                check_name(name)?;
                let into = (into, room, position.read());
                position.write(pack(job, (from, number.into(), datatype), into)?);
            }
            Ok(())
        })
    }

    /// MPI_Unpack_external.
    PMPI_Unpack_external, PMPI_Unpack_external_c, (
        name: *const c_char, from: *const c_void, there: isize, position: *mut isize,
        into: *mut c_void, number: N, datatype: MPI_Datatype,
    ) {
        call(NAME, |job| {
            // SAFETY: the caller's.
            unsafe {
                check_name(name)?;
                let from = (from, there, position.read());
                position.write(unpack(job, from, (into, number.into(), datatype))?);
            }
            Ok(())
        })
    }

    /// MPI_Pack_external_size.
    PMPI_Pack_external_size, PMPI_Pack_external_size_c, (
        name: *const c_char, number: N, datatype: MPI_Datatype, size: *mut isize,
    ) {
        call(NAME, |job| {
            let bytes = packed_bytes(&*job.datatype(datatype)?, count(number.into(), "elements")?)?;
            // SAFETY: the caller's.
            unsafe {
                check_name(name)?;
                size.write(bytes as isize);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::basic;

    #[test]
    fn parts_have_the_bytes_of_their_datatype() {
        for (handle, basic) in basic::all() {
            let bytes: usize = parts(handle).iter().flatten().map(|part| part.memory_bytes()).sum();
            assert_eq!(bytes, basic.value.layout().0, "{}", basic.name);
        }
    }

    #[test]
    fn values_come_back() {
        let memory = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        for (part, wanted) in [
            (Part::Long, memory),
            (Part::UnsignedLong, [0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
            (Part::Turned(8), memory),
        ] {
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            part.pack(&memory, &mut packed);
            assert_eq!((packed.len(), packed.last()), (part.bytes(), Some(&0xfe)), "{part:?}");
            part.unpack(&packed, &mut back);
            assert_eq!(back, wanted, "{part:?}");
        }
    }
}
