//! The layout of the control region.

use super::*;

#[test]
fn the_parts_add_up_to_the_whole() {
    for ranks in [1, 2, 64, 65, 1000, 1_000_000] {
        let shape = ControlShape::of(ranks, 2);
        assert_eq!(shape.fault(), None);
        let sum: u64 = shape.parts().iter().map(|part| part.bytes).sum();
        assert_eq!(sum, shape.words() as u64 * 8, "{ranks} ranks");
    }
}

#[test]
fn copies_are_bounded_by_count_and_by_bytes() {
    assert_eq!(ControlShape::within(1_000_000, 1024, 4 << 20).copies, 1024);
    assert_eq!(ControlShape::within(1_000_000, 1024, 1 << 20).copies, 256);
    assert_eq!(ControlShape::within(1_000_000, 100, 1 << 30).copies, 64);
    assert_eq!(ControlShape::within(4, 1024, 4 << 20).copies, 8);
    assert_eq!(ControlShape::within(1, 1, 1).copies, WAYS);
}
