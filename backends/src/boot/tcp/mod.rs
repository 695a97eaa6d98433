//! Our own exchange over TCP, where nobody else offers one.
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
//!    ◄── done, or who is missing or lost ───┤
//!    ├── get rank ──────────────────────────►
//!    ◄── card ──────────────────────────────┤
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `secret` | a word that the ranks of a job share, and what proves that one has it |
//! | `frame` | messages as bytes |
//! | `board` | cards, the barrier, and who is lost: no socket, no clock |
//! | `server` | sockets around a board |
//! | `client` | the [`Bootstrap`](tsumugi_core::boot::Bootstrap) |
//!
//! Both ends prove that they know the secret (HMAC-SHA-256 over both nonces);
//! what follows is neither secret nor signed. All requests may be repeated: a
//! rank whose connection breaks connects again and goes on. One that does not
//! come back within a grace is lost, and whoever waits for it is told.

mod secret;
mod frame;
mod board;
mod server;
mod client;

pub use board::Board;
pub use client::Client;
pub use frame::{BODY_BYTES_MAX, FrameError, Inbox, Message, Refusal};
pub use secret::{Nonce, Secret};
pub use server::Server;
