//! The control regions: each rank has one, and the machine names all of them by one
//! key.
//!
//! The machine uses a key that no region has, [`KEY`]; this module replaces it by
//! the key that the region has at its rank. If all ranks have registered the same
//! regions before, all keys are equal, and no rank stores the keys of the others.
//!
//! ```text
//!  words of the machine │ bell
//! ```

use crate::error::Error;
use crate::leaked_slice::zeroes;
use crate::net::NetLayer;
use std::slice;
use std::sync::Arc;
use tsumugi_core::mem::{Access, LocalAddr, Region, RegionKey, RemoteAddr};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::AtomicU64;
use tsumugi_gas::control::ControlShape;
use tsumugi_pvas::Member;

/// The key by which the machine names the control region of every rank.
pub(super) const KEY: RegionKey = RegionKey::from_bits(u32::MAX);

/// The control region of this rank, and the keys of the others.
pub(super) struct ControlRegions {
    region: Region,
    /// The machine's words, and the bell.
    words: &'static [AtomicU64],
    /// The key of each rank; `None` if all keys are the same.
    keys: Option<Box<[RegionKey]>>,
}

impl ControlRegions {
    /// Makes this rank's control region, zeroed and registered.
    pub(super) fn new(
        member: &Member,
        net: Option<&Arc<NetLayer>>,
        shape: ControlShape,
    ) -> Result<Self, Error> {
        let count = shape.words() + 1;
        let start = zeroes(member, count * 8)?;
        // SAFETY: the block consists of words in the partition, which stays mapped,
        // and the block is never freed.
        let region = unsafe {
            member.direct().register_runtime(start, count as u64 * 8, Access::ReadWrite)?
        };
        if let Some(net) = net {
            net.register(&region)?;
        }
        // SAFETY: the block is zeroed and aligned and lives for the rest of the
        // job; it is only accessed as words and by operations.
        let words = unsafe { slice::from_raw_parts(start.as_ptr().cast::<AtomicU64>(), count) };
        Ok(Self { region, words, keys: None })
    }

    /// The key of this rank's region.
    pub(super) fn key(&self) -> RegionKey {
        self.region.key
    }

    /// Sets the keys of the other ranks' regions.
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

    /// The operation that sets the bell of the region in which `at` lies.
    pub(super) fn bell_of(&self, at: RemoteAddr) -> Op {
        let offset = (self.words.len() as u64 - 1) * 8;
        Op::atomic(Kind::Swap, RemoteAddr { offset, ..at }, 1u64)
    }

    /// Whether a key of the machine names a control region.
    pub(super) fn is_in(&self, key: RegionKey) -> bool {
        key == KEY
    }

    /// The operation with the keys that the regions really have.
    pub(super) fn real(&self, op: &Op) -> Op {
        let mut remote = op.remote;
        if remote.key == KEY {
            let keys = self.keys.as_deref();
            let known = keys.and_then(|keys| keys.get(remote.rank.0 as usize));
            // With any key, the operation is refused if the rank does not exist.
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
