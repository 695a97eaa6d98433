//! Topologies: the ranks of a communicator as a grid or a graph, and who is next to whom.

mod arrange;
mod dims;
mod grid;
mod graph;
mod distributed;
mod neighbours;

pub(crate) use neighbours::neighbours;
