//! tsumugi's own exchange over TCP, for launchers that offer none.
//!
//! ```text
//!  rank                                   server: rank 0's, or the launcher's
//!    ├──────────────── connect ─────────────►
//!    ◄── challenge: version, nonce ─────────┤
//!    ├── hello: rank, size, nonce, mac ─────►  knows the secret? else refused
//!    ◄── welcome: mac ──────────────────────┤  does the server know it?
//!    ├── put card ──────────────────────────►
//!    ◄── done ──────────────────────────────┤
//!    ├── barrier ───────────────────────────►  all there? else it waits, or
//!    ◄── done, or a missing or lost rank ───┤
//!    ├── get heads ─────────────────────────►
//!    ◄── the heads of all cards ────────────┤
//!    ├── get rank ──────────────────────────►  whenever it is first needed
//!    ◄── card ──────────────────────────────┤
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `secret` | a secret that the ranks of a job share, and the proof that a rank has it |
//! | `heads` | the heads of all cards, as runs |
//! | `frame` | messages as bytes |
//! | `inbox` | splits a stream into messages |
//! | `rank_table` | cards, the barrier, and lost ranks: no socket, no clock |
//! | `server` | sockets around a table of ranks |
//! | `link` | a rank's connection |
//! | `connect` | connects to the first of several addresses that answers |
//! | `client` | the [`Bootstrap`](tsumugi_core::boot::Bootstrap) |
//!
//! Both ends prove that they know the secret (HMAC-SHA-256 over both nonces); the
//! messages after that are neither secret nor signed. All requests may be repeated:
//! a rank that loses its connection connects again and goes on. A rank that does
//! not come back within a grace time is lost, and the ranks that wait for it get an
//! error.
//!
//! A program that has started ranks on a host (an *agent*) may connect, too, in the
//! same way: it reports how the ranks have ended.

mod secret;
mod heads;
mod frame;
mod inbox;
mod rank_table;
mod server;
mod link;
mod connect;
mod client;

pub use client::{Agent, Client};
pub use frame::{
    BODY_BYTES_MAX, BootMessage, ENDS_MAX, FrameError, HEARD, ProcessEnd, Refusal, SIGNAL,
};
pub use heads::HeadRun;
pub use inbox::Inbox;
pub use rank_table::RankTable;
pub use secret::{Nonce, Secret};
pub use server::{EndsHandler, Server};
