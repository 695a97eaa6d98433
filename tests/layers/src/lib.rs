//! Arrows between the files of a crate, read from its code: each path, `use` or `pub use`
//! that names an item of another file, also through re-exports. `mod child;` is not an
//! arrow, and code that is compiled for tests only has none.

pub mod modules;

pub mod arrows;
