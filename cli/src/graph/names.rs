//! The names of the vertices: one name a line, in the order of the vertices.

use super::broken::{BrokenFile, quoted};
use super::lines::Lines;
use std::collections::HashMap;
use std::fmt;
use std::io::Read;

/// The names of all vertices.
#[derive(Debug)]
pub struct Names {
    /// The names, by vertex.
    names: Vec<String>,
    vertices: HashMap<String, u32>,
}

impl Names {
    /// Reads exactly one name for each of `vertices` vertices; no name may be empty
    /// or occur twice.
    pub fn read(mut lines: Lines<impl Read>, vertices: u32) -> Result<Self, BrokenFile> {
        let mut names: Vec<String> = Vec::new();
        let mut by_name = HashMap::new();
        while let Some(line) = lines.next_line()? {
            let vertex = names.len() as u32;
            let name = str::from_utf8(line).map(str::to_owned).map_err(|_| quoted(line));
            match name {
                Ok(name) if name.is_empty() => return Err(lines.broken("the name is empty")),
                Err(shown) => return Err(lines.broken(format!("{shown} is not UTF-8"))),
                Ok(_) if vertex == vertices => {
                    let what = format!("one name more than the graph's {vertices} vertices");
                    return Err(lines.broken(what));
                }
                Ok(name) => {
                    if let Some(first) = by_name.insert(name.clone(), vertex) {
                        let first = first + 1;
                        let what = format!("{} is also at line {first}", quoted(name.as_bytes()));
                        return Err(lines.broken(what));
                    }
                    names.push(name);
                }
            }
        }
        if names.len() < vertices as usize {
            let what = format!("{} names for the graph's {vertices} vertices", names.len());
            return Err(lines.broken(what));
        }
        Ok(Self { names, vertices: by_name })
    }

    /// The vertex of this name.
    pub fn vertex(&self, name: &str) -> Option<u32> {
        self.vertices.get(name).copied()
    }

    /// The name of `vertex`.
    pub fn name(&self, vertex: u32) -> &str {
        &self.names[vertex as usize]
    }

    /// The names with a spelling most similar to `name`, nearest first.
    pub fn near(&self, name: &str) -> Vec<String> {
        let wanted: String = name.chars().take(NAME_CHARS_MAX).collect();
        let far = wanted.chars().count() / 3 + 1;
        let mut near: Vec<(usize, &str)> = self
            .names
            .iter()
            .filter(|known| known.len().abs_diff(wanted.len()) <= far)
            .map(|known| (strsim::osa_distance(&wanted, known), known.as_str()))
            .filter(|(distance, _)| *distance <= far)
            .collect();
        near.sort_unstable();
        near.into_iter().take(NEAR_MAX).map(|(_, known)| known.to_owned()).collect()
    }
}

/// No vertex matches what the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoVertex {
    /// No vertex has the name.
    Name {
        /// The word that the user gave.
        from: String,
        /// Names with a similar spelling.
        near: Vec<String>,
    },
    /// Neither a name nor a number in range.
    Number {
        /// The word that the user gave.
        from: String,
        /// The number of vertices.
        vertices: u32,
        /// Whether the graph has names.
        named: bool,
    },
}

impl fmt::Display for NoVertex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { from, near } => {
                write!(f, "'{}' is not in the graph", from.escape_debug())?;
                match near.as_slice() {
                    [] => write!(f, ", and no name is similar"),
                    near => write!(f, "; did you mean {}?", near.join(", ")),
                }
            }
            Self::Number { from, vertices, named } => {
                let from = from.escape_debug();
                let what = if *named { "a name, nor a number" } else { "a number" };
                write!(f, "'{from}' is not {what} from 1 to {vertices}")
            }
        }
    }
}

impl std::error::Error for NoVertex {}

const NEAR_MAX: usize = 3;
/// The comparison takes time in proportion to the product of both lengths.
const NAME_CHARS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], vertices: u32) -> Result<Names, BrokenFile> {
        Names::read(Lines::new(text, "n"), vertices)
    }

    #[test]
    fn names_and_vertices_find_each_other() {
        let names = read(b"ada\nbob\r\ncyd", 3).unwrap();
        assert_eq!((names.vertex("bob"), names.name(2)), (Some(1), "cyd"));
        assert_eq!(names.vertex("dan"), None);
    }

    #[test]
    fn broken_lists_are_refused_at_their_line() {
        for (text, line, words) in [
            (&b"ada\nbob\n"[..], 3, "2 names for the graph's 3"),
            (b"", 1, "0 names"),
            (b"ada\nbob\ncyd\ndan\n", 4, "more than the graph's 3"),
            (b"ada\n\ncyd\n", 2, "the name is empty"),
            (b"ada\nbob\nada\n", 3, "'ada' is also at line 1"),
            (b"ada\nb\xffb\ncyd\n", 2, "is not UTF-8"),
        ] {
            let broken = read(text, 3).expect_err("broken");
            assert!(broken.line == Some(line) && broken.what.contains(words), "{broken}");
        }
    }

    #[test]
    fn the_nearest_names_come_first() {
        let names = read(b"vim\nvim-tiny\nvlc\nemacs", 4).unwrap();
        assert_eq!(names.near("vin"), ["vim", "vlc"]);
        assert_eq!(names.near("emasc"), ["emacs"]);
        assert!(names.near("something else").is_empty());
        assert!(names.near(&"x".repeat(1 << 20)).is_empty());
    }
}
