//! The system that ULTs run on: its services, in two implementations.
//!
//! | feature | file | the host |
//! |---|---|---|
//! | `std`, the default | `os` | Linux and the standard library |
//! | without it | `bare` | the embedding program: [`Host`](crate::Host) |
//!
//! Both files have the same names: `Instant`, `PanicPayload`, `catch`, `resume`,
//! `JoinHandle`, `ThreadError`, `start_thread`, `cores`, `wait`, `wake`,
//! `yield_thread`, `page_bytes`, `keep_from_children`, `unmap`, `hand_back`,
//! `guard`, `membarrier`, `say`, `abort`.

#[cfg(feature = "std")]
#[cfg_attr(tsumugi_loom, allow(dead_code, reason = "the model has its own"))]
mod os;
#[cfg(not(feature = "std"))]
mod bare;

#[cfg(not(feature = "std"))]
pub(crate) use bare::*;
#[cfg(not(feature = "std"))]
pub use bare::{Host, NoThreads, set_host};
#[cfg(feature = "std")]
pub(crate) use os::*;

/// Runs `f`. A panic of it ends here: the panic hook has reported it. The panic's
/// payload may panic when it is dropped, and so may the payload of that panic, which
/// is leaked.
pub(crate) fn contain(f: impl FnOnce()) {
    if let Err(panic) = catch(f)
        && let Err(again) = catch(|| drop(panic))
    {
        core::mem::forget(again);
    }
}

#[cfg(all(test, feature = "std", not(tsumugi_loom)))]
mod tests {
    use super::*;
    use std::panic::panic_any;

    #[test]
    fn a_panic_with_any_payload_is_contained() {
        struct Bomb(u32);
        impl Drop for Bomb {
            fn drop(&mut self) {
                if self.0 > 0 {
                    panic_any(Bomb(self.0 - 1));
                }
            }
        }
        let mut ran = false;
        contain(|| ran = true);
        assert!(ran);
        contain(|| panic!("text"));
        for depth in 0..5 {
            contain(|| drop(Bomb(depth)));
            contain(|| panic_any(Bomb(depth)));
        }
    }
}
