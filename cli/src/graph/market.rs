//! Matrix Market, coordinate format: the edges of a graph, one a line.
//!
//! ```text
//!  %%MatrixMarket matrix coordinate pattern general    the banner
//!  % anything                                          comments
//!  3 3 2                                               rows, columns, entries
//!  1 2                                                 row, column [, value]
//!  3 1
//! ```
//!
//! Values are checked and not kept. Every other input is refused with an error that
//! names the line, the word, and what was expected in its place.
//!
//! # References
//!
//! R. Boisvert, R. Pozo, K. Remington, *The Matrix Market Exchange Formats:
//! Initial Design*, NISTIR 5935, 1996.

use super::broken::{BrokenFile, quoted};
use super::limit::MemoryLimit;
use super::lines::Lines;
use crate::text;
use std::io::Read;

/// The edges as listed in the file, with vertices numbered from 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Edges {
    /// The number of vertices: they are `0 .. vertices`.
    pub vertices: u32,
    /// The edges in the order of the file.
    pub pairs: Vec<(u32, u32)>,
}

/// Reads a square matrix as a graph.
pub fn read(mut lines: Lines<impl Read>, limit: MemoryLimit) -> Result<Edges, BrokenFile> {
    let field = read_banner(&mut lines)?;
    let size = read_size(&mut lines, limit)?;
    // The announced number of entries is not trusted: the vector grows as entries
    // are read.
    let mut pairs = Vec::with_capacity(size.entries.min(RESERVED_MAX) as usize);
    while let Some(line) = lines.next_line()? {
        if is_blank(line) {
            continue;
        }
        let pair = entry(line, field, size.vertices);
        let pair = pair.map_err(|what| lines.broken(what))?;
        if pairs.len() as u64 == size.entries {
            let what =
                format!("an entry more than the {} that the size line announces", size.entries);
            return Err(lines.broken(what));
        }
        pairs.push(pair);
    }
    if (pairs.len() as u64) < size.entries {
        let what = format!(
            "the file ends after {} entries, the size line announces {}",
            pairs.len(),
            size.entries
        );
        return Err(lines.broken(what));
    }
    Ok(Edges { vertices: size.vertices, pairs })
}

/// The kind of value after row and column.
#[derive(Clone, Copy)]
enum Field {
    Pattern,
    Integer,
    Real,
}

struct Size {
    vertices: u32,
    entries: u64,
}

fn read_banner(lines: &mut Lines<impl Read>) -> Result<Field, BrokenFile> {
    let banner = lines.next_line()?.map(banner);
    match banner {
        Some(Ok(field)) => Ok(field),
        Some(Err(what)) => Err(lines.broken(what)),
        None => Err(lines.broken("the file is empty; expected '%%MatrixMarket ...'")),
    }
}

fn banner(line: &[u8]) -> Result<Field, String> {
    let mut words = words(line);
    let mut expect = |known: &[&str]| {
        let word = words.next().unwrap_or_default();
        match known.iter().find(|known| word.eq_ignore_ascii_case(known.as_bytes())) {
            Some(known) => Ok(known.to_string()),
            None => Err(format!("expected {}, found {}", either(known), quoted(word))),
        }
    };
    expect(&["%%MatrixMarket"])?;
    expect(&["matrix"])?;
    expect(&["coordinate"])?;
    let field = expect(&["pattern", "integer", "real"])?;
    expect(&["general", "symmetric"])?;
    match words.next() {
        Some(word) => Err(format!("expected the end of the banner, found {}", quoted(word))),
        None if field == "pattern" => Ok(Field::Pattern),
        None if field == "integer" => Ok(Field::Integer),
        None => Ok(Field::Real),
    }
}

fn read_size(lines: &mut Lines<impl Read>, limit: MemoryLimit) -> Result<Size, BrokenFile> {
    loop {
        let found = match lines.next_line()? {
            Some(line) if is_blank(line) => continue,
            Some(line) => size(line, limit),
            None => Err("the file ends before the size line ('rows columns entries')".to_owned()),
        };
        return found.map_err(|what| lines.broken(what));
    }
}

fn size(line: &[u8], limit: MemoryLimit) -> Result<Size, String> {
    let mut words = words(line);
    let mut number = |what: &str| {
        let word = words.next();
        word.and_then(unsigned).ok_or_else(|| match word {
            Some(word) => format!("expected the number of {what}, found {}", quoted(word)),
            None => format!("expected 'rows columns entries', {what} are missing"),
        })
    };
    let (rows, columns, entries) = (number("rows")?, number("columns")?, number("entries")?);
    if let Some(word) = words.next() {
        return Err(format!("expected the end of the size line, found {}", quoted(word)));
    }
    if rows != columns {
        return Err(format!("a graph needs a square matrix, this one is {rows} x {columns}"));
    }
    if rows == 0 {
        return Err("a graph of 0 vertices: there is nothing to search".to_owned());
    }
    if rows > VERTICES_MAX {
        return Err(format!("{rows} vertices; at most {VERTICES_MAX} can be numbered"));
    }
    limit.admit(rows, entries).map_err(|(needed, allowed)| {
        format!(
            "{rows} vertices and {entries} entries need {} of memory; {} may be used",
            text::bytes(needed),
            text::bytes(allowed)
        )
    })?;
    Ok(Size { vertices: rows as u32, entries })
}

fn entry(line: &[u8], field: Field, vertices: u32) -> Result<(u32, u32), String> {
    let mut words = words(line);
    let mut index = |what: &str| {
        let word = words.next().ok_or_else(|| format!("the {what} is missing"))?;
        match unsigned(word) {
            Some(0) => Err(format!("{what} 0: {what}s are counted from 1")),
            Some(index) if index > vertices.into() => {
                Err(format!("{what} {index} is out of range: the matrix has {vertices} {what}s"))
            }
            Some(index) => Ok(index as u32 - 1),
            None => Err(format!("expected a {what}, found {}", quoted(word))),
        }
    };
    let pair = (index("row")?, index("column")?);
    match field {
        Field::Pattern => {}
        Field::Integer => value(words.next(), "an integer", |text| text.parse::<i128>().is_ok())?,
        Field::Real => {
            value(words.next(), "a number", |text| text.parse::<f64>().is_ok_and(f64::is_finite))?
        }
    }
    match words.next() {
        Some(word) => Err(format!("expected the end of the line, found {}", quoted(word))),
        None => Ok(pair),
    }
}

fn value(word: Option<&[u8]>, what: &str, is: impl Fn(&str) -> bool) -> Result<(), String> {
    let word = word.ok_or_else(|| format!("the value is missing; expected {what}"))?;
    match str::from_utf8(word) {
        Ok(text) if is(text) => Ok(()),
        _ => Err(format!("expected {what}, found {}", quoted(word))),
    }
}

fn unsigned(word: &[u8]) -> Option<u64> {
    // `parse` would accept a plus sign.
    let digits = word.iter().all(u8::is_ascii_digit);
    str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn is_blank(line: &[u8]) -> bool {
    line.is_empty() || line[0] == b'%'
}

fn either(known: &[&str]) -> String {
    known.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" or ")
}

/// One number is reserved for "not reached".
const VERTICES_MAX: u64 = u32::MAX as u64 - 1;
const RESERVED_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests;
