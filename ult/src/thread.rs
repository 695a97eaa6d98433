//! OS threads, the system's or the model's.

#[cfg(not(tsumugi_loom))]
pub(crate) use std::thread::JoinHandle;

#[cfg(tsumugi_loom)]
pub(crate) use tsumugi_core::sync::model::thread::JoinHandle;

/// Starts a thread.
#[cfg(not(tsumugi_loom))]
pub(crate) fn start(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(body)
}

/// Starts a thread.
#[cfg(tsumugi_loom)]
pub(crate) fn start(
    _name: String,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    Ok(tsumugi_core::sync::model::thread::spawn(body))
}
