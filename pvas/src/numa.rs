//! The memory node (NUMA) on which the pages of a partition lie.
//!
//! ```text
//!   owner  mbind(partition, prefer node 1) ──► policy of the memory file
//!   owner, peer, launcher  first touch of a page ──► a page of node 1
//! ```
//!
//! Without a policy a page lies on the node of the thread that touches it first: this is a
//! peer where a put comes before the owner's first access. The policy belongs to the file,
//! so it holds for all processes. A node without free memory is no error: the page comes
//! from another one.

use crate::space::Space;
use crate::sys;
use std::fs;
use std::io;
use tsumugi_core::mem::LocalRank;

/// The only memory node of these processors; `None` if they are of several nodes, or the
/// system does not say.
pub fn node_of(cpus: &[usize]) -> Option<usize> {
    let mut nodes = cpus.iter().map(|cpu| {
        let entries = fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.strip_prefix("node")?.parse::<usize>().ok()).next()
    });
    let first = nodes.next()??;
    nodes.all(|node| node == Some(first)).then_some(first)
}

/// Whether this system has several memory nodes.
pub fn has_several() -> bool {
    let online = fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
    // A range, such as `0-1`, or a list.
    online.contains(['-', ','])
}

impl Space {
    /// Makes all pages of `rank`'s partition come from this memory node while it has free
    /// memory, whichever process touches them first. Pages that only this process has
    /// touched move there.
    ///
    /// # Errors
    ///
    /// The error of the system: there is no such node (`EINVAL`), or a sandbox does not
    /// permit `mbind` (`EPERM`); then each page lies on the node of its first touch.
    ///
    /// # Panics
    ///
    /// If there is no such rank.
    pub fn prefer_node(&self, rank: LocalRank, node: usize) -> io::Result<()> {
        assert!(rank.0 < self.size(), "{rank} does not exist: the node has {} ranks", self.size());
        let shape = self.shape();
        // SAFETY: the partition is mapped, as long as `self` lives.
        unsafe { sys::prefer_node(shape.start(rank), shape.bytes(), node) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SpaceConfig;

    #[test]
    fn processors_of_one_node_have_it() {
        let Some(node) = node_of(&[0]) else { return };
        assert_eq!(node_of(&[0, 0]), Some(node));
        assert_eq!(node_of(&[]), None);
        assert_eq!(node_of(&[0, 1 << 20]), None);
    }

    #[test]
    fn the_policy_is_that_of_one_partition() {
        let space = Space::create(2, &SpaceConfig::small()).unwrap();
        let Some(node) = node_of(&[0]) else { return };
        match space.prefer_node(LocalRank(1), node) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => return,
            preferred => preferred.unwrap(),
        }
        let policy = |rank| sys::memory_policy(space.shape().start(LocalRank(rank))).unwrap();
        assert_eq!([policy(0), policy(1)], [libc::MPOL_DEFAULT, libc::MPOL_PREFERRED]);
        let error = space.prefer_node(LocalRank(1), 1000).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
