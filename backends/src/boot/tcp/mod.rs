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
//!    ├── get heads ─────────────────────────►
//!    ◄── how everybody's card starts ───────┤
//!    ├── get rank ──────────────────────────►  whenever it is first needed
//!    ◄── card ──────────────────────────────┤
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `secret` | a word that the ranks of a job share, and what proves that one has it |
//! | `heads` | how all cards start, as runs |
//! | `frame` | messages as bytes |
//! | `inbox` | a stream, as messages |
//! | `board` | cards, the barrier, and who is lost: no socket, no clock |
//! | `server` | sockets around a board |
//! | `link` | a rank's connection |
//! | `call` | connecting to whichever of several addresses answers |
//! | `client` | the [`Bootstrap`](tsumugi_core::boot::Bootstrap) |
//!
//! Both ends prove that they know the secret (HMAC-SHA-256 over both nonces);
//! what follows is neither secret nor signed. All requests may be repeated: a
//! rank whose connection breaks connects again and goes on. One that does not
//! come back within a grace is lost, and whoever waits for it is told.
//!
//! What has started ranks on a host may call too, in the same way: it tells how
//! they have ended.

mod secret;
mod heads;
mod frame;
mod inbox;
mod board;
mod server;
mod link;
mod call;
mod client;

pub use board::Board;
pub use client::{Agent, Client};
pub use frame::{BODY_BYTES_MAX, ENDS_MAX, Ended, FrameError, HEARD, Message, Refusal, SIGNAL};
pub use heads::Run;
pub use inbox::Inbox;
pub use secret::{Nonce, Secret};
pub use server::{Server, Told};
