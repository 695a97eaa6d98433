//! Messages from one rank to another.

mod status;
mod start;
mod buffer;
mod point_to_point;
mod request_list;
mod wait;
mod request_status;
mod lifecycle;
mod generalized;
mod partitioned;
mod probe;
