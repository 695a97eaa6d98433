//! Workspaces: bytes that lie in parts on several ranks, and that any rank reads
//! and writes by offset.
//!
//! ```text
//!  offset   0        part_bytes        2 part_bytes
//!           ├── rank ──┼── rank + 1 ─────┼── ... ──┤  size
//! ```
//!
//! A workspace has no locks: when two ranks write at once, each byte is from one of
//! the two.

use super::{Copy, Global, GlobalAddr, GlobalBlock, Operation};
use crate::{AddrError, Error, Rank};

/// A workspace, with this rank's parts of it.
#[derive(Debug)]
pub struct Workspace {
    global: Global,
    parts: Vec<GlobalAddr>,
    part_bytes: u64,
    size: u64,
    _own: Vec<GlobalBlock<u64>>,
}

impl Global {
    /// Makes a workspace of `size` zero bytes, in parts of `part_bytes` bytes: the
    /// first part is on `first`, the next parts on the following ranks, and after
    /// the last rank on rank 0 again. Collective, with the same arguments on all
    /// ranks.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfMemory`]: the exposed memory of this rank has no free block
    ///   of this size (`TSUMUGI_EXPOSED_BYTES`).
    /// - [`Error::Register`]: the table of regions of this rank is full, or the
    ///   network device refuses the memory.
    /// - [`Error::Name`]: all 255 names of this rank are in use, or not free again
    ///   yet; or an address cannot name so many bytes.
    /// - [`Error::Coll`], [`Error::Addr`]: a rank has died; [`Error::Coll`] also if
    ///   another thread of this rank is in a collective.
    ///
    /// # Panics
    ///
    /// If `part_bytes` is 0.
    pub fn workspace(&self, size: u64, first: Rank, part_bytes: u64) -> Result<Workspace, Error> {
        assert!(part_bytes > 0, "part_bytes is 0: a part of a workspace has at least 1 byte");
        let ranks = u64::from(self.runtime.size());
        let (mut parts, mut _own) = (Vec::new(), Vec::new());
        for part in 0..size.div_ceil(part_bytes) {
            let owner = (u64::from(first.0) + part) % ranks;
            let bytes = part_bytes.min(size - part * part_bytes);
            let mut addr = GlobalAddr::NULL;
            if owner == u64::from(self.runtime.rank().0) {
                let array = self.expose::<u64>(bytes.div_ceil(8) as usize)?;
                addr = array.at(0).addr();
                _own.push(array);
            }
            parts.push(self.tell(addr)?[owner as usize]);
        }
        self.runtime.barrier()?;
        Ok(Workspace { global: self.clone(), parts, part_bytes, size, _own })
    }
}

impl Workspace {
    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Copies `bytes` bytes from `offset` on to `into`, memory of any rank.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// [`AddrError::OutOfRange`] if the workspace does not have all of the bytes;
    /// those of [`Global::put`] for `into`; [`AddrError::PeerLost`] if a rank
    /// with a part has died. After an error, some of the bytes may have been
    /// copied.
    pub fn read(
        &self,
        into: GlobalAddr,
        bytes: u64,
        offset: u64,
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.each_part(into, bytes, offset, |own, other, bytes| Copy::new(other, own, bytes))
    }

    /// Copies `bytes` bytes from `from`, memory of any rank, to `offset`. Blocking.
    ///
    /// # Errors
    ///
    /// [`AddrError::OutOfRange`] if the workspace does not have all of the bytes;
    /// those of [`Global::get`] for `from`; [`AddrError::PeerLost`] if a rank
    /// with a part has died. After an error, some of the bytes may have been
    /// copied.
    pub fn write(
        &self,
        from: GlobalAddr,
        bytes: u64,
        offset: u64,
    ) -> Result<(), AddrError<GlobalAddr>> {
        self.each_part(from, bytes, offset, Copy::new)
    }

    /// Begins a copy for each part, and then waits for all of them.
    fn each_part(
        &self,
        other: GlobalAddr,
        bytes: u64,
        offset: u64,
        copy: impl Fn(GlobalAddr, GlobalAddr, u64) -> Copy,
    ) -> Result<(), AddrError<GlobalAddr>> {
        let beyond = AddrError::OutOfRange { addr: other, bytes, region_bytes: Some(self.size) };
        if bytes > self.size || offset > self.size - bytes {
            return Err(beyond);
        }
        let split = self.global.split();
        let (mut done, mut begun) = (0, Vec::new());
        while done < bytes {
            let at = (offset + done) % self.part_bytes;
            let part = self.parts[((offset + done) / self.part_bytes) as usize];
            let some = (self.part_bytes - at).min(bytes - done);
            let own = split.add(part, at as i64).map_err(|_| beyond)?;
            let other = split.add(other, done as i64).map_err(|_| beyond)?;
            begun.push(self.global.begin(copy(own, other, some)));
            done += some;
        }
        let ends: Vec<_> = begun.into_iter().map(Operation::wait).collect();
        ends.into_iter().try_for_each(|end| end.map(drop))
    }
}
