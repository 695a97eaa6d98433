//! Misuse that the compiler refuses.

#[test]
fn buffers_in_flight_are_owned() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
