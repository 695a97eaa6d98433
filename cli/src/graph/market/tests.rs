//! Valid inputs, and a corpus of hostile ones.

use super::*;

fn parse(bytes: &[u8]) -> Result<Edges, BrokenFile> {
    read(Lines::new(bytes, "g.mtx"), MemoryLimit::bytes(1 << 20))
}

const PATTERN: &str = "%%MatrixMarket matrix coordinate pattern general\n";
const INTEGER: &str = "%%MatrixMarket matrix coordinate integer general\n";
const REAL: &str = "%%MatrixMarket matrix coordinate real symmetric\n";

#[test]
fn the_smallest_files_are_read() {
    let edges = parse(format!("{PATTERN}1 1 0").as_bytes()).unwrap();
    assert_eq!(edges, Edges { vertices: 1, pairs: vec![] });
    let edges = parse(format!("{PATTERN}3 3 2\n1 2\n3 1\n").as_bytes()).unwrap();
    assert_eq!(edges, Edges { vertices: 3, pairs: vec![(0, 1), (2, 0)] });
}

#[test]
fn comments_blank_lines_and_spaces_do_not_matter() {
    let text = "%%matrixmarket MATRIX  Coordinate\tpattern GENERAL\r\n\
                % one\n%\n\n  3 \t3  2  \r\n\n 1  2\r\n% between\n\t3 1 \n\n\n";
    assert_eq!(parse(text.as_bytes()).unwrap().pairs, [(0, 1), (2, 0)]);
}

#[test]
fn a_comment_may_be_in_any_encoding() {
    let bytes = [PATTERN.as_bytes(), b"% caf\xe9\n1 1 1\n1 1\n"].concat();
    assert_eq!(parse(&bytes).unwrap().pairs, [(0, 0)]);
}

#[test]
fn values_are_checked_and_dropped() {
    let edges = parse(format!("{INTEGER}2 2 2\n1 2 -7\n2 1 +12\n").as_bytes()).unwrap();
    assert_eq!(edges.pairs, [(0, 1), (1, 0)]);
    let edges = parse(format!("{REAL}2 2 3\n1 1 1\n2 1 -1.5e-3\n2 2 .5\n").as_bytes()).unwrap();
    assert_eq!(edges.pairs.len(), 3);
}

/// (the text after the banner, the line that is wrong, words of the message)
const HOSTILE: &[(&str, u64, &str)] = &[
    ("", 2, "ends before the size line"),
    ("% only\n% comments\n", 4, "ends before the size line"),
    ("3 3\n", 2, "entries are missing"),
    ("3\n", 2, "columns are missing"),
    ("3 3 2 1\n", 2, "end of the size line, found '1'"),
    ("x 3 2\n", 2, "number of rows, found 'x'"),
    ("3 -3 2\n", 2, "number of columns, found '-3'"),
    ("3 3 +2\n", 2, "number of entries, found '+2'"),
    ("3 3 1.0\n", 2, "number of entries, found '1.0'"),
    ("3 3 0x2\n", 2, "found '0x2'"),
    ("3 4 1\n1 1\n", 2, "3 x 4"),
    ("0 0 0\n", 2, "0 vertices"),
    ("3 3 18446744073709551616\n", 2, "'18446744073709551616'"),
    ("4294967295 4294967295 1\n1 1\n", 2, "4294967295 vertices; at most"),
    ("99999999999 99999999999 1\n1 1\n", 2, "99999999999 vertices; at most"),
    ("4000000000 4000000000 1\n1 1\n", 2, "104 GiB of memory; 1.00 MiB may be used"),
    ("3 3 18446744073709551615\n1 1\n", 2, "of memory"),
    ("3 3 2\n1 2\n", 4, "ends after 1 entries, the size line announces 2"),
    ("3 3 2\n", 3, "ends after 0 entries"),
    ("3 3 1\n1 2\n2 3\n", 4, "an entry more than the 1"),
    ("3 3 0\n1 2\n", 3, "an entry more than the 0"),
    ("3 3 1\n0 2\n", 3, "row 0: rows are counted from 1"),
    ("3 3 1\n1 0\n", 3, "column 0"),
    ("3 3 1\n4 1\n", 3, "row 4 is out of range: the matrix has 3"),
    ("3 3 1\n1 4294967297\n", 3, "column 4294967297 is out of range"),
    ("3 3 1\n1 18446744073709551617\n", 3, "expected a column, found '18446744073709551617'"),
    ("3 3 1\n1\n", 3, "column is missing"),
    ("3 3 1\n1 two\n", 3, "expected a column, found 'two'"),
    ("3 3 1\n-1 2\n", 3, "expected a row, found '-1'"),
    ("3 3 1\n1 2 3\n", 3, "end of the line, found '3'"),
    ("3 3 1\n1,2\n", 3, "'1,2'"),
    ("3 3 1\n\u{0}\u{0}\n", 3, r"'\0\0'"),
    ("3 3 1\n\u{1b}[31m 1\n", 3, r"'\u{1b}[31m'"),
    ("3 3 1\n1 \u{664}\n", 3, "expected a column"),
];

#[test]
fn hostile_bodies_are_refused_at_their_line() {
    for &(body, line, words) in HOSTILE {
        let broken = parse(format!("{PATTERN}{body}").as_bytes()).expect_err(body);
        assert!(
            broken.line == Some(line) && broken.what.contains(words),
            "{body:?}: expected line {line}, {words:?}; got {broken}"
        );
        assert_eq!(broken.file, "g.mtx");
    }
}

#[test]
fn hostile_banners_are_refused() {
    for (text, words) in [
        ("", "the file is empty"),
        ("\n", "expected '%%MatrixMarket', found ''"),
        ("1 2\n", "expected '%%MatrixMarket', found '1'"),
        ("%MatrixMarket matrix coordinate pattern general\n", "found '%MatrixMarket'"),
        ("\u{feff}%%MatrixMarket matrix coordinate pattern general\n", "'%%MatrixMarket'"),
        ("%%MatrixMarket\n", "expected 'matrix', found ''"),
        ("%%MatrixMarket vector coordinate pattern general\n", "found 'vector'"),
        ("%%MatrixMarket matrix array real general\n", "expected 'coordinate', found 'array'"),
        (
            "%%MatrixMarket matrix coordinate complex general\n",
            "expected 'pattern' or 'integer' or 'real', found 'complex'",
        ),
        ("%%MatrixMarket matrix coordinate real hermitian\n", "found 'hermitian'"),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n", "found 'skew-symmetric'"),
        ("%%MatrixMarket matrix coordinate real\n", "'general' or 'symmetric', found ''"),
        ("%%MatrixMarket matrix coordinate real general 3\n", "end of the banner, found '3'"),
    ] {
        let broken = parse(text.as_bytes()).expect_err(text);
        assert!(broken.line == Some(1) && broken.what.contains(words), "{text:?}: {broken}");
    }
}

#[test]
fn hostile_values_are_refused() {
    for (banner, body, words) in [
        (INTEGER, "1 1", "value is missing; expected an integer"),
        (INTEGER, "1 1 1.5", "expected an integer, found '1.5'"),
        (REAL, "1 1", "value is missing; expected a number"),
        (REAL, "1 1 one", "expected a number, found 'one'"),
        (REAL, "1 1 nan", "found 'nan'"),
        (REAL, "1 1 inf", "found 'inf'"),
        (REAL, "1 1 1 1", "end of the line"),
    ] {
        let broken = parse(format!("{banner}1 1 1\n{body}\n").as_bytes()).expect_err(body);
        assert!(broken.line == Some(3) && broken.what.contains(words), "{body:?}: {broken}");
    }
}

#[test]
fn a_sound_file_that_is_cut_anywhere_is_refused() {
    let text = format!("{PATTERN}11 11 3\n1 11\n10 2\n3 11\n");
    let whole = parse(text.as_bytes()).unwrap();
    // The end of the last line may be missing; if a digit is missing too, the line
    // is another edge.
    let needed = text.len() - "1\n".len();
    for kept in 0..needed {
        assert!(parse(&text.as_bytes()[..kept]).is_err(), "{:?}", &text[..kept]);
    }
    assert_eq!(parse(&text.as_bytes()[..text.len() - 1]).unwrap(), whole);
}

#[test]
fn a_changed_byte_never_panics() {
    let text = format!("{REAL}3 3 3\n1 2 1.5\n2 3 -2\n3 1 7e2\n");
    for at in 0..text.len() {
        for byte in 0..=u8::MAX {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            if let Ok(edges) = parse(&bytes) {
                let n = edges.vertices;
                assert!(edges.pairs.iter().all(|&(a, b)| a < n && b < n), "{at} {byte}");
            }
        }
    }
}
