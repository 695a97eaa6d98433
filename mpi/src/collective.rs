//! Collectives: each blocking, begun and persistent.

mod operation;
mod prepared;
mod spread;
mod edges;
mod between;
mod barrier;
mod moving;
mod varying;
mod combining;
mod neighbours;
