//! The objects of MPI, as data: what handles name, without the job in which they are.

pub(crate) mod table;
pub(crate) mod attribute;
pub(crate) mod errhandler;
pub(crate) mod info;
pub(crate) mod group;
pub(crate) mod topology;
pub(crate) mod communicator;
pub(crate) mod basic;
pub(crate) mod extended;
pub(crate) mod datatype;
pub(crate) mod type_map;
pub(crate) mod operation;
pub(crate) mod overlap;
pub(crate) mod data;
pub(crate) mod shape;
pub(crate) mod verification;
pub(crate) mod backlog;
pub(crate) mod buffered;
pub(crate) mod session;
pub(crate) mod exchange;
pub(crate) mod generalized;
pub(crate) mod receipt;
pub(crate) mod partitioned;
pub(crate) mod task;
pub(crate) mod request;
pub(crate) mod held_request;
