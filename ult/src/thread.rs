//! OS threads: the system's, or the model's.

#[cfg(not(tsumugi_loom))]
pub(crate) use crate::host::{JoinHandle, start_thread as start};

#[cfg(tsumugi_loom)]
pub(crate) use tsumugi_core::sync::model::thread::JoinHandle;

/// Starts a thread.
#[cfg(tsumugi_loom)]
pub(crate) fn start(
    _name: String,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, crate::host::ThreadError> {
    Ok(tsumugi_core::sync::model::thread::spawn(body))
}
