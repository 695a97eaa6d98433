//! The network layer: operations on ranks of other nodes (*remote* ranks), and the
//! services that run between nodes.
//!
//! ```text
//!  run, post ─► engine ─► link ─┬─ puts, gets ─────────► the device
//!               (delegate)      └─ atomics: emulated ─┐
//!  try_send ──────────────────────────────────────────┴► packets
//!                                                           │
//!  poll ◄─ completions, parcels, bells ◄────────────────────┘
//!    ▲ workers between ULTs and when idle; the poller when no worker polls
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `layer` | the rank's endpoint of the network layer, which the other parts of a rank call |
//! | `transport` | the trait by which the services reach the network |
//! | `device`, `device_queue` | the network libraries that are supported, and their endpoints |
//! | `facts` | the kind of network, and its counters, for programs |
//! | `fault` | fault injection over an endpoint, if it is configured |
//! | `begin`, `begin_fetch` | how callers begin operations and wait for them |
//! | `network` | the part that is opened before the other ranks are known |
//! | `descriptors` | file descriptors for connections of strangers |
//! | `emulation` | RMA emulation: operations that the target's processor carries out |
//! | `parcel` | payload of packets |
//! | `shared` | the device, and its arrivals, shared by all of these modules |
//! | `link` | one endpoint of the device, and the emulated operations on it |
//! | `pieces` | puts and gets of memory that is not registered |
//! | `registration`, `registrar` | registration cache, of heap memory and of adopted memory |
//! | `bounce` | pool of bounce buffers, which may outlive the caller of an operation |
//! | `fetch_window` | parts of this rank's heap from which other ranks fetch messages |
//! | `fetch` | gets of long messages from such windows |
//! | `heartbeat` | heartbeats between nodes |
//! | `silence` | failure detector: a node that is silent for too long is given up |
//! | `pulse` | detector of ranks of this node that were stopped for too long |
//! | `suspect` | suspected ranks, until the launcher has reported the first death |
//! | `poller` | progress thread, which polls when no other thread does |
//! | `pause` | how long the poller sleeps where the device has no event descriptor |
//! | `seen` | counters for tests |
//! | `joined` | a put, and the operation that goes in the same parcel |
//! | `hostile` | the inputs of fuzzing and of tests for emulated operations and heartbeats |
//!
//! The provider carries out puts and gets. Atomics are emulated: the origin sends a
//! parcel to the target, and the thread that polls there carries out the operation
//! with the processor's own instructions, so it is atomic with the accesses of the
//! target's node. Words that this provider may tear are emulated, too. If the device
//! is the agent of a region, it carries out all operations on the region.
//!
//! Progress: blocking calls sleep; `post`, `try_send` and `poll` are lock-free
//! except for a short lock of the device.

mod fault;
mod heartbeat;
mod begin;
mod begin_fetch;
mod bounce;
mod descriptors;
mod device;
mod device_queue;
mod emulation;
mod facts;
mod fetch;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod hostile;
mod joined;
mod layer;
mod link;
mod network;
mod packet;
mod parcel;
mod pause;
mod pieces;
mod registrar;
mod registration;
mod pulse;
#[cfg(any(test, feature = "testing"))]
pub mod seen;
mod shared;
mod silence;
mod suspect;
mod transport;
mod poller;
mod fetch_window;

pub(crate) use bounce::CHUNKS;
pub(crate) use device::NetDevice;
pub(crate) use emulation::JOINED_BYTES;
pub use facts::{NetworkCounts, NetworkFacts};
pub(crate) use fault::{FaultClock, Faults};
pub use fetch::FetchHandler;
pub use layer::{HEARTBEAT_BYTES, NetLayer, PEER_BYTES, footprint};
pub(crate) use network::{Cards, Network, open};
pub use network::{HOSTS_MAX, probe};
pub use parcel::{Parcel, ParcelError, ParcelHandler};
pub(crate) use poller::Poller;
pub use transport::Transport;
