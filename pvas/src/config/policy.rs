//! When the pages of partitions are allocated, and which ranks may write to them.

use super::choices::Choices;
use super::variables::{HUGE_PAGES, PEERS, POPULATE};

/// When the pages of a partition are allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Populate {
    /// Each page at its first touch.
    #[default]
    None,
    /// A rank's own pages when its allocators use them for the first time.
    Own,
    /// The own pages, and a peer's in pieces, before their first use.
    Peers,
}

/// Pages of 2 MiB for heaps and exposed memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HugePages {
    /// No huge pages are requested.
    None,
    /// Huge pages wherever the system gives them on advice (`MADV_HUGEPAGE`).
    #[default]
    Advise,
    /// All pages come from the pool that the administrator has reserved.
    Reserved,
}

/// What a rank may do to the partitions of its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Peers {
    /// Write everywhere.
    #[default]
    Write,
    /// Read their heaps and stacks; write to the rest.
    ReadHeap,
    /// Only read, except for their heads, starter memory and rings.
    Read,
}

/// The part of a [`SpaceConfig`](super::SpaceConfig), beside the sizes, that must be the same
/// on every rank of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// When pages are allocated.
    pub populate: Populate,
    /// Pages of 2 MiB.
    pub huge_pages: HugePages,
    /// What a rank may do to its peers' partitions.
    pub peers: Peers,
}

tsumugi_core::setters! { Policy:
    populate: Populate, "when pages are allocated";
    huge_pages: HugePages, "the pages of 2 MiB";
    peers: Peers, "what a rank may do to its peers' partitions";
}

impl Policy {
    /// The policy as variables of the environment.
    pub fn variables(&self) -> [(&'static str, String); 3] {
        [
            (POPULATE, self.populate.word().to_owned()),
            (HUGE_PAGES, self.huge_pages.word().to_owned()),
            (PEERS, self.peers.word().to_owned()),
        ]
    }
}

macro_rules! words {
    ($($type:ident: $($word:literal => $choice:ident),*;)*) => {$(
        impl $type {
            /// The words of the user.
            pub const CHOICES: Choices<Self> = Choices::new(&[$($word),*], &[$(Self::$choice),*]);

            /// The choice as the user writes it.
            pub fn word(self) -> &'static str {
                Self::CHOICES.word(self)
            }
        }
    )*};
}

words! {
    Populate: "none" => None, "own" => Own, "peers" => Peers;
    HugePages: "none" => None, "advise" => Advise, "reserved" => Reserved;
    Peers: "write" => Write, "read-heap" => ReadHeap, "read" => Read;
}

#[cfg(test)]
mod tests {
    use super::super::SpaceConfig;
    use super::*;

    #[test]
    fn a_policy_is_read_from_the_environment_as_it_was_written() {
        let policy = Policy {
            populate: Populate::Peers,
            huge_pages: HugePages::Reserved,
            peers: Peers::ReadHeap,
        };
        let variables = policy.variables();
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        };
        assert_eq!(SpaceConfig::from_lookup(lookup).unwrap().policy, policy);
    }

    #[test]
    fn a_value_that_is_not_a_choice_is_named() {
        let lookup = |name: &str| (name == PEERS).then(|| "readonly".to_owned());
        let error = SpaceConfig::from_lookup(lookup).unwrap_err().to_string();
        assert!(error.contains("TSUMUGI_PEERS=\"readonly\""), "{error}");
    }
}
