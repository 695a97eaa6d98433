//! How bytes leave the node, and how ranks on many nodes find each other.
//!
//! Each backend is a folder, and each has the same four files: `endpoint`
//! (operations down), `poll` (completions up), `memory` (what peers reach) and
//! `sys` (the foreign functions). Its library is loaded when a job asks for
//! it: the build needs none.
//!
//! | backend | what it drives |
//! |---|---|
//! | [`ofi`] | libfabric: tcp, udp, verbs, EFA, Slingshot, ... |

//!
//! [`boot`] is how ranks that some launcher started find each other.

pub mod boot;
pub mod ofi;
