//! libmpi_abi.so.1: MPI with the standard ABI of MPI 5.0, on tsumugi.
//!
//! `include/mpi.h` declares the functions; a program that was compiled with it, or with
//! another header of the standard ABI, runs with this library. It exports the functions of
//! `tsumugi-capi` and `tsumugi-acp`, too, so that such a program has ULTs that call MPI.
//!
//! | | |
//! |---|---|
//! | `abi` | handles, constants and the status: all that another ABI would have otherwise |
//! | `object` | what handles name: communicators, groups, datatypes, operations, requests |
//! | `job`, `call`, `fault` | the job of the process, a call of the program, why a call fails |
//! | `copies` | another copy of tsumugi in the process |
//! | `tables`, `requests` | the objects of the job by their handles |
//! | `names` | the weak names `MPI_X`, and functions that are not built yet |
//! | `function_rule` | that functions of operations do not wait |
//! | `left` | what the checking mode says at the end |
//! | `types` | datatypes: how they are made, extents, packing |
//! | `removed` | functions that MPI 3.0 has removed |
//! | `message` | sends and receives, waits, probes |
//! | `collective` | collectives, and the operations of reductions |
//! | `comm`, `intercommunicator`, `agreement`, `group` | communicators, and how ranks agree on them |
//! | `topology`, `attribute`, `info` | what communicators have |
//! | `session` | sessions: the job without the world |
//! | `environment`, `errors`, `error_codes` | start and end, clocks, memory; error handlers, error codes |
//! | `backoff` | how threads that look in vain leave cores to others |
//! | `malloc` | the program's heap, in the partition if the program wants |
//! | `counts` | what the messages of the job were |

#![allow(non_camel_case_types, reason = "handles have the names of the standard")]
#![allow(non_snake_case, reason = "functions have the names of the standard")]
#![allow(clippy::too_many_arguments, reason = "functions have the arguments of the standard")]

mod abi;
mod sized;
mod fault;
mod arguments;
mod malloc;
mod backoff;
mod object;
mod copies;
mod job;
mod tables;
mod requests;
mod call;
mod function_rule;
mod left;
mod names;
mod counts;
mod errors;
mod error_codes;
mod environment;
mod info;
mod attribute;
mod group;
mod types;
mod removed;
mod message;
mod agreement;
mod intercommunicator;
mod comm;
mod topology;
mod session;
mod collective;
mod handles;
