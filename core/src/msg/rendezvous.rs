//! Rendezvous: bytes that move after their message was announced.
//!
//! ```text
//!   sender                        receiver
//!   Told    ──Rts, address──►     Fetching: copies         ──Fin──►  Ended
//!   Told    ──Rts, place──►       Fetching: from another node, or by the
//!     │                             │       kernel          ──Fin──►  Ended
//!     │                             │ it failed
//!     └──────◄──Cts────────────── Coming
//!   Told    ──Rts──►              Coming ◄─ buffer in reach, and the bytes are
//!                                           not, or the sender should push them
//!   Pushing: copies   ◄──Cts, address──
//!           ──Copied──►           Ended
//!   Told    ──Rts──►              Coming ◄─ no buffer in reach
//!   Streaming ◄──Cts──
//!           ──Data, Data, ..──►   Ended
//!   Pushing ──Direct──►           Coming     (the receive was offered)
//!           ──Copied──►           Ended
//! ```
//!
//! Copies of some length are jobs, done outside the machine. So are all bytes
//! that are fetched from another node, or by the kernel from one buffer out of
//! reach to another: if that fails, the bytes come through slots. The copy by a
//! sender is one job for each part: the sender reports a finished part (`Part`),
//! and the receiver fetches it into its cache while the next part is copied.
//!
//! | file | contents |
//! |---|---|
//! | `handshake` | which side moves the bytes, and the packets by which the sides agree |
//! | `job` | copies that are done outside the machine, and their parts |
//! | `due` | packets that wait for room, and bytes through slots |

mod handshake;
mod due;
mod job;
