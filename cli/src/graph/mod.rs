//! Graphs: read from a file, searched serially.
//!
//! ```text
//!  file ─ lines ─► market ─► edges ─► csr ─► levels, the reference answer
//!        (plain, gzip)   names ─► vertex
//! ```
//!
//! The package graph of Debian 12 is part of the program, so that the demo
//! needs no file and runs from any folder.

mod broken;
mod csr;
mod limit;
mod lines;
mod market;
mod names;

pub use self::broken::BrokenFile;
pub use self::csr::{Csr, UNREACHED};
pub use self::names::{Names, NoVertex};

use self::limit::MemoryLimit;
use self::lines::Lines;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// An undirected graph and the names of its vertices.
#[derive(Debug)]
pub struct Graph {
    /// The graph's origin, for people.
    pub title: String,
    /// The neighbours of each vertex.
    pub csr: Csr,
    /// The names of the vertices, if they are known.
    pub names: Option<Names>,
}

impl Graph {
    /// Reads the graph from the file `graph` with the names from the file `names`;
    /// without a file, the graph that is part of the program.
    pub fn open(graph: Option<&Path>, names: Option<&Path>) -> Result<Self, BrokenFile> {
        let limit = MemoryLimit::of_this_machine();
        let csr = match graph {
            Some(path) => csr_from(lines_of(path)?, limit)?,
            None => csr_from(Lines::new(PACKAGES, "debian12-depends.mtx.gz"), limit)?,
        };
        let names = match (graph, names) {
            (_, Some(path)) => Some(Names::read(lines_of(path)?, csr.vertices())?),
            (None, None) => {
                let lines = Lines::new(PACKAGE_NAMES, "debian12-depends.names.gz");
                Some(Names::read(lines, csr.vertices())?)
            }
            (Some(_), None) => None,
        };
        let title = match graph {
            Some(path) => path.display().to_string(),
            None => "packages of Debian 12".to_owned(),
        };
        Ok(Self { title, csr, names })
    }

    /// The vertex with the name `from`; if there is none, the vertex with that
    /// number, counted from 1.
    pub fn vertex(&self, from: &str) -> Result<u32, NoVertex> {
        if let Some(vertex) = self.names.as_ref().and_then(|names| names.vertex(from)) {
            return Ok(vertex);
        }
        match (from.parse::<u64>(), &self.names) {
            (Ok(number), _) if number >= 1 && number <= self.csr.vertices().into() => {
                Ok((number - 1) as u32)
            }
            (Err(_), Some(names)) => {
                Err(NoVertex::Name { from: from.to_owned(), near: names.near(from) })
            }
            (_, names) => Err(NoVertex::Number {
                from: from.to_owned(),
                vertices: self.csr.vertices(),
                named: names.is_some(),
            }),
        }
    }

    /// The name of `vertex`; if it has none, its number, counted from 1.
    pub fn name(&self, vertex: u32) -> String {
        match &self.names {
            Some(names) => names.name(vertex).to_owned(),
            None => format!("vertex {}", u64::from(vertex) + 1),
        }
    }
}

fn csr_from(lines: Lines<impl Read>, limit: MemoryLimit) -> Result<Csr, BrokenFile> {
    market::read(lines, limit).map(|edges| Csr::new(edges.vertices, edges.pairs))
}

fn lines_of(path: &Path) -> Result<Lines<File>, BrokenFile> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => Ok(Lines::new(file, name)),
        Err(error) => Err(BrokenFile::unreadable(name, &error)),
    }
}

static PACKAGES: &[u8] = include_bytes!("../../data/debian12-depends.mtx.gz");
static PACKAGE_NAMES: &[u8] = include_bytes!("../../data/debian12-depends.names.gz");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_are_part_of_the_program() {
        let graph = Graph::open(None, None).unwrap();
        assert_eq!(graph.csr.vertices(), 63_666);
        let libc = graph.vertex("libc6").unwrap();
        assert_eq!(graph.name(libc), "libc6");
        assert!(graph.csr.row(libc).len() > 10_000, "most packages depend on the C library");
        assert_eq!(graph.csr.levels(libc)[libc as usize], 0);
    }

    #[test]
    fn a_name_takes_precedence_over_a_number() {
        let graph = Graph::open(None, None).unwrap();
        let game = graph.vertex("2048").unwrap();
        assert_eq!(graph.name(game), "2048");
        assert_eq!(graph.vertex("63666"), Ok(63_665));
    }

    #[test]
    fn an_unknown_package_is_refused_with_the_nearest_names() {
        let graph = Graph::open(None, None).unwrap();
        let said = graph.vertex("pyhton3").unwrap_err().to_string();
        assert!(said.contains("'pyhton3'") && said.contains("python3"), "{said}");
        for number in ["0", "63667", "99999999999999999999999"] {
            let said = graph.vertex(number).unwrap_err().to_string();
            assert!(said.contains(number), "{said}");
        }
    }

    #[test]
    fn a_missing_file_and_a_folder_are_named() {
        for path in ["/nonexistent/graph.mtx", "/"] {
            let said = Graph::open(Some(Path::new(path)), None).unwrap_err().to_string();
            assert!(said.starts_with(path), "{said}");
        }
    }
}
