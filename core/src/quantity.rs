//! Numbers, sizes and times as users write them, in variables of the environment and on
//! command lines.
//!
//! | kind | examples | |
//! |---|---|---|
//! | number | `4096`, `0x1000`, `1_000_000` | |
//! | size | `64K`, `64KiB`, `8M`, `1.5G`, `4096` | powers of 1024; without a unit bytes |
//! | time | `300ms`, `5s`, `1.5s`, `2m`, `1h` | a unit is required |
//!
//! `KB`, `MB` and `GB` are refused, because they mean powers of 1000 to some and powers
//! of 1024 to others.

use core::fmt;
use core::time::Duration;

/// A size that is shown in the unit that divides it: `64KiB`, `4097`. It is read back as
/// the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// Parses a number: decimal, or hexadecimal after `0x`, with underscores.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((text, 10), |hex| (hex, 16));
    let mut value = None::<u64>;
    for c in digits.chars().filter(|c| *c != '_') {
        let digit = u64::from(c.to_digit(radix)?);
        value = Some(value.unwrap_or(0).checked_mul(radix.into())?.checked_add(digit)?);
    }
    value
}

/// Parses a size in bytes: a number, or a decimal fraction with one of the units `K`, `M`,
/// `G`, `T`, to which `i` and `iB` may be added, in any case.
pub fn bytes(text: &str) -> Option<u64> {
    if let Some(bytes) = number(text) {
        return Some(bytes);
    }
    let (value, unit) = split(text)?;
    let mut letters = unit.chars().map(|c| c.to_ascii_lowercase());
    let shift = 10 * (1 + "kmgt".find(letters.next()?)?);
    let rest = (letters.next(), letters.next(), letters.next());
    let is_unit = matches!(rest, (None | Some('i'), None, _) | (Some('i'), Some('b'), None));
    is_unit.then(|| value.scaled(1 << shift)).flatten()
}

/// Parses a time with its unit: `ns`, `us`, `ms`, `s`, `m` or `min`, `h`; a lone `0` needs
/// none.
pub fn time(text: &str) -> Option<Duration> {
    if number(text) == Some(0) {
        return Some(Duration::ZERO);
    }
    let (value, unit) = split(text)?;
    let nanoseconds = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    value.scaled(nanoseconds).map(Duration::from_nanos)
}

/// The word of `choices` that a misspelt word most likely means: at most a third of its
/// letters differ, counting a missing, a wrong, an additional and two swapped letters as
/// one each (Damerau 1964). Else the only word that has the same beginning, up to the last
/// underscore. Words are ASCII; of long ones only the first letters count.
pub fn nearest<'a, I>(word: &str, choices: I) -> Option<&'a str>
where
    I: IntoIterator<Item = &'a str, IntoIter: Clone>,
{
    let choices = choices.into_iter();
    let limit = word.len().div_ceil(3).min(4);
    let scored = choices.clone().map(|choice| (distance(word, choice), choice));
    let best = scored.filter(|(distance, _)| *distance <= limit).min_by_key(|it| it.0);
    let begins = word.rfind('_').map_or(word, |end| &word[..end]);
    let mut alike = choices.filter(|choice| begins.len() > 3 && choice.starts_with(begins));
    let only = alike.next().filter(|_| alike.next().is_none());
    best.map(|(_, choice)| choice).or(only)
}

/// The number of single changes that make one word the other.
fn distance(one: &str, other: &str) -> usize {
    let short = |word| &str::as_bytes(word)[..str::len(word).min(LETTERS_MAX)];
    let (one, other) = (short(one), short(other));
    // The rows of the table before the last, the last, and the next one.
    let mut rows = [[0; LETTERS_MAX + 1]; 3];
    rows[1] = core::array::from_fn(|at| at);
    for (i, a) in one.iter().enumerate() {
        rows[2][0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let change = rows[1][j] + usize::from(a != b);
            rows[2][j + 1] = change.min(rows[1][j + 1] + 1).min(rows[2][j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                rows[2][j + 1] = rows[2][j + 1].min(rows[0][j - 1] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][other.len()]
}

/// A decimal fraction.
struct Decimal {
    digits: u64,
    /// The power of ten by which the digits are divided.
    divisor: u64,
}

impl Decimal {
    /// The product with a unit, if it is a whole number.
    fn scaled(&self, unit: u64) -> Option<u64> {
        let product = u128::from(self.digits) * u128::from(unit);
        let is_whole = product.is_multiple_of(self.divisor.into());
        is_whole.then(|| (product / u128::from(self.divisor)).try_into().ok()).flatten()
    }
}

/// Splits `1.5GiB` into the number and its unit.
fn split(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?;
    let (value, unit) = text.split_at(end);
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let mut digits = number(whole)?;
    let mut divisor = 1_u64;
    for c in fraction.chars().filter(|c| *c != '_') {
        digits = digits.checked_mul(10)?.checked_add(c.to_digit(10)?.into())?;
        divisor = divisor.checked_mul(10)?;
    }
    Some((Decimal { digits, divisor }, unit.trim_start()))
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let fits = |&(shift, _): &(u32, _)| self.0 > 0 && self.0.trailing_zeros() >= shift;
        match units.into_iter().find(fits) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The number of letters of a word that are compared.
const LETTERS_MAX: usize = 48;

#[cfg(all(test, not(tsumugi_loom)))]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_size_has_a_unit_of_1024() {
        for (text, size) in [
            ("4096", 4096),
            ("0x1000", 4096),
            ("1_000", 1000),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("64Ki", 64 << 10),
            ("8MiB", 8 << 20),
            ("8 MiB", 8 << 20),
            ("1.5G", 3 << 29),
            ("2t", 2 << 40),
            ("0", 0),
        ] {
            assert_eq!(bytes(text), Some(size), "{text}");
        }
        for text in ["", "K", "64KB", "64KBs", "64X", "-1", "1.0001K", "20000000T", "x4", "1.2.3K"]
        {
            assert_eq!(bytes(text), None, "{text}");
        }
        for size in [0, 1, 1024, 96 << 10, 3 << 29, 4097, 1 << 40] {
            assert_eq!(bytes(&Size(size).to_string()), Some(size));
        }
        assert_eq!(Size(64 << 10).to_string(), "64KiB");
    }

    #[test]
    fn a_time_has_its_unit() {
        for (text, ms) in [
            ("300ms", 300),
            ("5s", 5000),
            ("1.5s", 1500),
            ("2m", 120_000),
            ("2 min", 120_000),
            ("1h", 3_600_000),
            ("2_000us", 2),
            ("0", 0),
        ] {
            assert_eq!(time(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "s", "5 fortnights", "-5s", "99999999999h", "1.5", "0x5s"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn a_misspelt_word_has_a_neighbour() {
        let known = ["TSUMUGI_WORKERS", "TSUMUGI_BIND", "TSUMUGI_HEAP_BYTES"];
        for (word, neighbour) in [
            ("TSUMUGI_WORKRES", Some("TSUMUGI_WORKERS")),
            ("TSUMUGI_WORKER", Some("TSUMUGI_WORKERS")),
            ("TSUMUGI_HEEP_BYTS", Some("TSUMUGI_HEAP_BYTES")),
            ("TSUMUGI_BOUND", Some("TSUMUGI_BIND")),
            ("TSUMUGI_HEAP_KILOBYTES_AND_MORE", None),
            ("TSUMUGI_QWERTZ_UIOP", None),
        ] {
            assert_eq!(nearest(word, known), neighbour, "{word}");
        }
        assert_eq!(nearest("GRACE_MS", ["GRACE_TIMEOUT", "WORKERS"]), Some("GRACE_TIMEOUT"));
        assert_eq!(nearest("STACK_KB", ["STACK_BYTES_A", "STACK_BYTES_B"]), None);
        assert_eq!(nearest("drect", ["direct", "delegate", "offload"]), Some("direct"));
        assert_eq!(
            (distance("", "abc"), distance("abc", "abc"), distance("abc", "acb")),
            (3, 0, 1)
        );
    }
}
