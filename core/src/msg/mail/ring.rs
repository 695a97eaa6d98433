//! Lines and slots in plain memory: where a record or a message's bytes lie.

use crate::msg::setup::Shape;

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;

/// Writes a record at a line; it may go on at the start.
pub(super) fn write(lines: &mut [u8], line: u32, record: &[u8]) {
    let start = start_of(lines, line);
    let (first, rest) = record.split_at(record.len().min(lines.len() - start));
    lines[start..start + first.len()].copy_from_slice(first);
    lines[..rest.len()].copy_from_slice(rest);
}

/// Reads as many bytes as there is room for.
pub(super) fn read(lines: &[u8], line: u32, into: &mut [u8]) {
    let start = start_of(lines, line);
    let count = into.len().min(lines.len() - start);
    let (first, rest) = into.split_at_mut(count);
    first.copy_from_slice(&lines[start..start + count]);
    rest.copy_from_slice(&lines[..rest.len()]);
}

/// The slots of a set, the lowest first.
pub(super) fn slots_of(shape: &Shape, slots: u32) -> impl Iterator<Item = u32> + use<> {
    let slots = slots & shape.slot_mask();
    (0..u32::BITS).filter(move |slot| slots >> slot & 1 == 1)
}

/// Where each of them is, what comes there of a message of `len` bytes, and
/// how much.
pub(super) fn each_slot(
    shape: &Shape,
    slots: u32,
    len: u64,
) -> impl Iterator<Item = (usize, u64, usize)> + use<> {
    let size = u64::from(shape.slot_bytes);
    slots_of(shape, slots)
        .enumerate()
        .map(move |(number, slot)| (u64::from(slot) * size, number as u64 * size))
        .take_while(move |(_, at)| *at < len)
        .map(move |(slot, at)| (slot as usize, at, size.min(len - at) as usize))
}

fn start_of(lines: &[u8], line: u32) -> usize {
    line as usize % (lines.len() / LINE_BYTES) * LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_goes_on_at_the_start() {
        let mut lines = [0; 8 * LINE_BYTES];
        let record: [u8; 200] = core::array::from_fn(|at| at as u8);
        write(&mut lines, 8 * 1000 + 6, &record);
        let mut read_back = [0; 200];
        read(&lines, 6, &mut read_back);
        assert_eq!(read_back, record);
        assert_eq!((lines[6 * LINE_BYTES], lines[0]), (0, 128));
    }

    #[test]
    fn slots_are_filled_from_the_lowest() {
        let shape = Shape { slots: 4, slot_bytes: 64, ..Shape::of(1) };
        let mut each = each_slot(&shape, 0b1_1010, 100);
        assert_eq!((each.next(), each.next()), (Some((64, 0, 64)), Some((192, 64, 36))));
        assert_eq!(each.next(), None);
    }
}
