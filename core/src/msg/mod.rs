//! Messages: send and receive by source and tag, in MPI's order, with one copy
//! where the receiver's buffer is known and can be reached.
//!
//! (module text below is completed with the machine)

#![deny(unsafe_code)]

mod arrive;
mod count;
#[allow(unsafe_code)]
mod lanes;
#[allow(unsafe_code)]
mod line;
mod list;
mod lost;
mod machine;
mod mirror;
mod outcome;
mod packet;
mod receive;
mod rendezvous;
mod send;
mod setup;
mod tables;
mod threshold;
mod wire;

pub use count::{Counts, Path};
pub use lanes::{LaneEnd, Lanes};
pub use line::{Lane, LaneReceiver, LaneSender, Line, NeedLine, ReturnLine};
pub use machine::{Job, Machine};
pub use outcome::{Begun, Bytes, CallError, Cancel, Ended, Label, Pattern, Received, Request};
pub use packet::{INLINE_BYTES_MAX, INLINE_WORDS, Kind, Load, Offer, Packet};
pub use receive::Message;
pub use send::COPY_BYTES_MAX;
pub use setup::{Design, SetupError, Shape};
pub use tables::{Entry, Logged, Mirrored, Peer, Tables, Unexpected};
pub use threshold::Thresholds;
pub use wire::{Copy, Returned, Wire};
