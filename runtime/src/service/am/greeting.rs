//! The greeting of a rank of another node: the place of lanes for it.

use std::sync::{Mutex, PoisonError};
use tsumugi_core::mem::{PeerIndex, Rank, RegionKey};
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_pvas::Member;
use tsumugi_ult::SystemFutex;

/// The place of lanes: the key of their memory, and the index of the receiver's
/// lanes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) key: RegionKey,
    pub(super) own: PeerIndex,
}

/// Greetings that have arrived and were not handled.
#[derive(Debug, Default)]
pub(super) struct Greetings {
    pub(super) has_any: AtomicBool,
    came: Mutex<Vec<(Rank, Greeting)>>,
}

impl Greeting {
    pub(super) fn to_bytes(self) -> [u8; 8] {
        let (key, own) = (self.key.to_bits().to_le_bytes(), self.own.0.to_le_bytes());
        std::array::from_fn(|at| if at < 4 { key[at] } else { own[at - 4] })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (key, own) = bytes.split_at_checked(4)?;
        let word = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
        Some(Self { key: RegionKey::from_bits(word(key)?), own: PeerIndex(word(own)?) })
    }
}

impl Greetings {
    /// Takes a greeting that has arrived, on any thread; a malformed one is dropped.
    pub(super) fn put(&self, from: Rank, bytes: &[u8], member: &Member) {
        let Some(greeting) = Greeting::parse(bytes) else { return };
        self.came.lock().unwrap_or_else(PoisonError::into_inner).push((from, greeting));
        // SeqCst: before the check of the sleepers; pairs with `has_any` of a
        // sleeper.
        self.has_any.store(true, Ordering::SeqCst);
        member.control().bells().ring_helped(&SystemFutex, || {});
    }

    /// Whether a greeting is to be handled or to be sent.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        // SeqCst: a sleeper looks here after it has announced that it will sleep.
        self.has_any.load(Ordering::SeqCst)
    }

    pub(super) fn take(&self) -> Vec<(Rank, Greeting)> {
        if !self.has_any() {
            return Vec::new();
        }
        // SeqCst: the flag is cleared before the list is taken, so that a greeting
        // that comes later is seen at the next look.
        self.has_any.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.came.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_the_same_after_encoding() {
        let greeting = Greeting { key: RegionKey::from_bits(0x8123_4567), own: PeerIndex(63) };
        assert_eq!(Greeting::parse(&greeting.to_bytes()), Some(greeting));
        for len in [0, 3, 4, 7, 9] {
            assert_eq!(Greeting::parse(&[1; 9][..len]), None, "{len} bytes");
        }
    }
}
