//! `long double` of x86-64: eighty bits, on the x87.

/// A value in the memory of a `long double`.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct F80([u8; 16]);

/// Runs an instruction on two values, the first in `st(1)` and the second in `st(0)`.
#[cfg(target_arch = "x86_64")]
macro_rules! with_both {
    ($instruction:literal, $a:expr, $b:expr) => {{
        let (a, mut b) = ($a, $b);
        // SAFETY: reads both values, and writes the result over the second one; the stack of
        // the x87 is as empty after it as before.
        unsafe {
            std::arch::asm!(
                "fld tbyte ptr [{a}]",
                "fld tbyte ptr [{b}]",
                $instruction,
                "fstp tbyte ptr [{b}]",
                a = in(reg) &raw const a,
                b = in(reg) &raw mut b,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        b
    }};
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn add(a: F80, b: F80) -> F80 {
    with_both!("faddp st(1), st", a, b)
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn multiply(a: F80, b: F80) -> F80 {
    with_both!("fmulp st(1), st", a, b)
}

/// `a - b`.
pub(crate) fn subtract(a: F80, mut b: F80) -> F80 {
    // The sign is the highest of the eighty bits.
    b.0[9] ^= 0x80;
    add(a, b)
}

/// Whether `a < b`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn less(a: F80, b: F80) -> bool {
    let is_less: u8;
    // SAFETY: reads both values; the stack of the x87 is as empty after it as before.
    unsafe {
        std::arch::asm!(
            "fld tbyte ptr [{a}]",
            "fld tbyte ptr [{b}]",
            "fucomip st, st(1)",
            "fstp st(0)",
            "seta {is_less}",
            a = in(reg) &raw const a,
            b = in(reg) &raw const b,
            is_less = out(reg_byte) is_less,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack, readonly),
        );
    }
    is_less != 0
}

/// The IEEE number of 128 bits with the value of these eighty.
pub(crate) const fn to_quad(extended: u128) -> u128 {
    let (sign, mut exponent) = (extended >> 79 & 1, extended >> 64 & EXPONENT);
    let (has_one, mut fraction) = (extended >> 63 & 1 == 1, extended & ((1 << 63) - 1));
    match exponent {
        // A number that is written as a subnormal one, and is none.
        0 if has_one => exponent = 1,
        0 => {}
        // The processor takes it for no number.
        _ if !has_one => (exponent, fraction) = (EXPONENT, 1 << 62),
        _ => {}
    }
    sign << 127 | exponent << 112 | fraction << FRACTION_MORE
}

/// The eighty bits with the value of an IEEE number of 128 bits, to the nearest, of two equally
/// near ones the even.
pub(crate) const fn from_quad(quad: u128) -> u128 {
    let (sign, mut exponent) = (quad >> 127, quad >> 112 & EXPONENT);
    let rest = quad & ((1 << FRACTION_MORE) - 1);
    let mut mantissa = (quad >> FRACTION_MORE) & ((1 << 63) - 1);
    if exponent > 0 {
        mantissa |= 1 << 63;
    }
    if exponent == EXPONENT {
        if quad & ((1 << 112) - 1) != 0 {
            // No number stays none.
            mantissa |= 1 << 62;
        }
    } else if rest > HALF || rest == HALF && mantissa & 1 == 1 {
        mantissa += 1;
        if mantissa >> 64 == 1 {
            (exponent, mantissa) = (exponent + 1, 1 << 63);
        } else if mantissa >> 63 == 1 && exponent == 0 {
            exponent = 1;
        }
    }
    sign << 79 | exponent << 64 | mantissa
}

const EXPONENT: u128 = 0x7fff;
/// So many bits of a fraction are in an IEEE number of 128 bits alone.
const FRACTION_MORE: u32 = 112 - 63;
const HALF: u128 = 1 << (FRACTION_MORE - 1);

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// The value of a number.
    fn of(number: f64) -> F80 {
        let mut value = F80([0; 16]);
        // SAFETY: writes ten bytes of the value.
        unsafe {
            std::arch::asm!(
                "fld qword ptr [{number}]",
                "fstp tbyte ptr [{value}]",
                number = in(reg) &raw const number,
                value = in(reg) &raw mut value,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        value
    }

    #[test]
    fn values_are_combined_and_compared() {
        for (a, b) in [(1.5, 2.25), (-3.0, 0.125), (1024.5, -7.0), (0.0, 0.0)] {
            assert_eq!(add(of(a), of(b)).0[..10], of(a + b).0[..10]);
            assert_eq!(subtract(of(a), of(b)).0[..10], of(a - b).0[..10]);
            assert_eq!(multiply(of(a), of(b)).0[..10], of(a * b).0[..10]);
            assert_eq!((less(of(a), of(b)), less(of(b), of(a))), (a < b, b < a));
        }
        assert!(!less(of(f64::NAN), of(1.0)) && !less(of(1.0), of(f64::NAN)));
    }

    #[test]
    fn values_come_back_from_128_bits() {
        // (Eighty bits, 128 bits.)
        let equal = [
            (0, 0),
            (0x3fff << 64 | 1 << 63, 0x3fff << 112),
            (0xc000 << 64 | 9 << 60, 0xc000 << 112 | 1 << 109),
            (0x7fff << 64 | 1 << 63, 0x7fff << 112),
            (0x7fff << 64 | 3 << 62, 0x7fff << 112 | 1 << 111),
            // The least one, and the greatest subnormal one.
            (1, 1 << FRACTION_MORE),
            ((1 << 63) - 1, ((1 << 63) - 1) << FRACTION_MORE),
        ];
        for (extended, quad) in equal {
            assert_eq!((to_quad(extended), from_quad(quad)), (quad, extended), "{extended:x}");
        }
        // 1 and a half of the last bit, and a little more; the number below 2; the greatest.
        let one = 0x3fff << 112;
        assert_eq!(from_quad(one | HALF), 0x3fff << 64 | 1 << 63);
        assert_eq!(from_quad(one | (HALF + 1)), 0x3fff << 64 | 1 << 63 | 1);
        assert_eq!(from_quad(one | (3 * HALF)), 0x3fff << 64 | 1 << 63 | 2);
        assert_eq!(from_quad((0x4000 << 112) - 1), 0x4000 << 64 | 1 << 63);
        assert_eq!(from_quad((0x7fff << 112) - 1), 0x7fff << 64 | 1 << 63);
        assert_eq!(from_quad((1 << 112) - 1), 1 << 64 | 1 << 63);
        // What the processor does not write.
        assert_eq!(to_quad(1 << 63), 1 << 112);
        assert_eq!(to_quad(0x3fff << 64 | 1), 0x7fff << 112 | 1 << 111);
    }
}
