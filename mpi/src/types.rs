//! The calls on datatypes.

mod recipe;
mod blocks;
mod arrays;
mod whole;
mod contents;
mod extent;
mod external;
mod fortran;
mod pack;
