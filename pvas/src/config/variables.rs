//! The names of the environment variables.

/// The user's variable for where the space starts.
pub const BASE: &str = "TSUMUGI_PVAS_BASE";
/// The user's variable for [`SpaceConfig::starter_bytes`](super::SpaceConfig::starter_bytes).
pub const STARTER: &str = "TSUMUGI_STARTER_BYTES";
/// The user's variable for [`SpaceConfig::exposed_bytes`](super::SpaceConfig::exposed_bytes).
pub const EXPOSED: &str = "TSUMUGI_EXPOSED_BYTES";
/// The user's variable for [`SpaceConfig::heap_bytes`](super::SpaceConfig::heap_bytes).
pub const HEAP: &str = "TSUMUGI_HEAP_BYTES";
/// The user's variable for [`SpaceConfig::stack_bytes`](super::SpaceConfig::stack_bytes).
pub const STACKS: &str = "TSUMUGI_STACK_BYTES";
/// The user's variable for [`Policy::populate`](super::Policy::populate).
pub const POPULATE: &str = "TSUMUGI_POPULATE";
/// The user's variable for [`Policy::huge_pages`](super::Policy::huge_pages).
pub const HUGE_PAGES: &str = "TSUMUGI_HUGE_PAGES";
/// The user's variable for [`Policy::peers`](super::Policy::peers).
pub const PEERS: &str = "TSUMUGI_PEERS";
/// The user's variable for [`SpaceConfig::grace`](super::SpaceConfig::grace).
pub const GRACE: &str = "TSUMUGI_GRACE_TIMEOUT";
/// The user's variable for the identity of this node.
pub const NODE: &str = "TSUMUGI_NODE";
/// This rank's number.
pub const RANK: &str = "TSUMUGI_RANK";
/// Ranks of the job.
pub const SIZE: &str = "TSUMUGI_SIZE";
/// Descriptors of the memory files, in the order of the ranks.
pub const FDS: &str = "TSUMUGI_PVAS_FDS";
/// Where and how large the partitions are.
pub const SHAPE: &str = "TSUMUGI_PVAS_SHAPE";
/// The descriptor from which a rank of several nodes reads the ranks that have
/// died.
pub const DEATHS: &str = "TSUMUGI_DEATHS_FD";
/// The descriptor to which such a rank writes the ranks that it declares lost.
pub const LOSSES: &str = "TSUMUGI_LOSSES_FD";
/// The mark of a job's processes.
pub const JOB: &str = "TSUMUGI_JOB";
