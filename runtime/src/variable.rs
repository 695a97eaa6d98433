//! Names of environment variables that this crate's messages contain.

/// The variable of [`NetworkConfig::kind`](crate::config::NetworkConfig::kind).
pub const NETWORK: &str = "TSUMUGI_NETWORK";
/// The variable of [`Inside::report`](crate::inside::Inside::report).
pub const REPORT: &str = "TSUMUGI_REPORT";
/// The variable of [`Inside::trace`](crate::inside::Inside::trace).
pub const TRACE: &str = "TSUMUGI_TRACE";
/// The variable of [`Chosen::stack_bytes`](crate::config::Chosen::stack_bytes).
pub const ULT_STACK: &str = "TSUMUGI_ULT_STACK_BYTES";
/// The variable of [`Chosen::pool_bytes`](crate::config::Chosen::pool_bytes).
pub const POOL: &str = "TSUMUGI_POOL_BYTES";
/// The variable of [`Chosen::main_stack_bytes`](crate::config::Chosen::main_stack_bytes).
pub const MAIN_STACK: &str = "TSUMUGI_MAIN_STACK_BYTES";
