//! Arrows between the files of a crate, as its code says: any path, `use` or `pub use`
//! that names an item of another file, wherever a re-export leads. `mod child;` is no
//! arrow, and neither is what is compiled for tests alone.

pub mod modules;

pub mod arrows;
