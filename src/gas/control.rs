//! Where the control regions are: one on each rank, which the machine knows by
//! one key everywhere.
//!
//! The machine is told a key that no region has, [`KEY`]; here it becomes the
//! one that the region has at its rank. Where ranks have registered the same
//! things before, all keys are the same, and nobody stores any of the others'.
//!
//! ```text
//!  words of the machine's │ bell
//! ```

use crate::Error;
use crate::far::Far;
use crate::lend::zeroes;
use std::slice;
use std::sync::Arc;
use tsumugi_core::mem::{Access, LocalAddr, Region, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_gas::control::Shape;
use tsumugi_pvas::Member;

/// What the machine calls the control region of every rank.
pub(super) const KEY: RegionKey = RegionKey::from_bits(u32::MAX);

/// The control region of this rank, and the way to the others'.
pub(super) struct Control {
    region: Region,
    /// The machine's, and the bell.
    words: &'static [AtomicU64],
    /// Of each rank; none: all the same.
    keys: Option<Box<[RegionKey]>>,
}

impl Control {
    /// This rank's, zero and registered.
    pub(super) fn new(
        member: &Member,
        far: Option<&Arc<Far>>,
        shape: Shape,
    ) -> Result<Self, Error> {
        let count = shape.words() + 1;
        let start = zeroes(member, count * 8)?;
        // SAFETY: memory of the partition, which stays mapped and is never
        // given back: words.
        let region = unsafe {
            member.direct().register_runtime(start, count as u64 * 8, Access::ReadWrite)?
        };
        if let Some(far) = far {
            far.register(&region)?;
        }
        // SAFETY: the block, zeroed and aligned, for the rest of the job; it is
        // only accessed as words and by operations.
        let words = unsafe { slice::from_raw_parts(start.as_ptr().cast::<AtomicU64>(), count) };
        Ok(Self { region, words, keys: None })
    }

    /// Its key.
    pub(super) fn key(&self) -> RegionKey {
        self.region.key
    }

    /// Learns the others' keys.
    pub(super) fn connect(&mut self, keys: Option<Box<[RegionKey]>>) {
        self.keys = keys;
    }

    /// The machine's words.
    pub(super) fn words(&self) -> &'static [AtomicU64] {
        &self.words[..self.words.len() - 1]
    }

    /// Set when a notified word has changed.
    #[inline]
    pub(super) fn bell(&self) -> &AtomicU64 {
        &self.words[self.words.len() - 1]
    }

    /// What sets the bell of the region that `at` lies in.
    pub(super) fn bell_of(&self, at: RemoteAddr) -> Op {
        let offset = (self.words.len() as u64 - 1) * 8;
        Op::atomic(Kind::Swap, RemoteAddr { offset, ..at }, 1u64)
    }

    /// Whether an operation of the machine's is on a control region.
    pub(super) fn is_in(&self, key: RegionKey) -> bool {
        key == KEY
    }

    /// The operation under the keys that the regions have.
    pub(super) fn real(&self, op: &Op) -> Op {
        let mut remote = op.remote;
        if remote.key == KEY {
            let keys = self.keys.as_deref();
            let known = keys.and_then(|keys| keys.get(remote.rank.0 as usize));
            // An unknown rank is refused, whatever the key.
            remote.key = known.copied().unwrap_or(self.region.key);
        }
        let local = op.local();
        let own = LocalAddr { key: self.region.key, ..local };
        match op.kind {
            Kind::Put if local.key == KEY => Op::put(own, remote, op.bytes()).tagged(op.tag),
            Kind::Get if local.key == KEY => Op::get(remote, own, op.bytes()).tagged(op.tag),
            _ => {
                let mut real = *op;
                real.remote = remote;
                real
            }
        }
    }
}
