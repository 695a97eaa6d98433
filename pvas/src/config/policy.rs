//! How the pages of partitions come, and who may write to them.

use super::{ConfigError, HUGE_PAGES, PEERS, POPULATE};
use tsumugi_core::excerpt::Excerpt;

/// When the pages of a partition come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Populate {
    /// Each with its first touch.
    #[default]
    None,
    /// A rank's own when its allocators lend them for the first time.
    Own,
    /// These, and a peer's in pieces, before their first use.
    Peers,
}

/// Pages of 2 MiB for heaps and exposed memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePages {
    /// None are asked for.
    None,
    /// Wherever the system gives them for memory files that ask.
    #[default]
    Advise,
    /// From the pool that the administrator has reserved, all of them.
    Reserved,
}

/// What a rank may do to the partitions of its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peers {
    /// Write everywhere.
    #[default]
    Write,
    /// Read their heaps and stacks; write to the rest.
    ReadHeap,
    /// Read, but for their heads, starter memory and rings.
    Read,
}

/// The part of a [`Config`](super::Config) that every rank of a job must have
/// the same of, beside the sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// When pages come.
    pub populate: Populate,
    /// Pages of 2 MiB.
    pub huge_pages: HugePages,
    /// What a rank may do to its peers' partitions.
    pub peers: Peers,
}

impl Policy {
    /// As the variables of the environment that say this again.
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
            /// As the user writes it.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$choice => $word,)*
                }
            }

            /// From [`word`](Self::word); `None` stands for the default.
            pub(super) fn from_word(
                name: &'static str,
                word: Option<&str>,
            ) -> Result<Self, ConfigError> {
                match word {
                    None => Ok(Self::default()),
                    $(Some($word) => Ok(Self::$choice),)*
                    Some(other) => {
                        Err(ConfigError::NoSuchChoice { name, value: Excerpt::new(other) })
                    }
                }
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
    use super::super::Config;
    use super::*;

    #[test]
    fn a_policy_survives_the_environment() {
        let policy = Policy {
            populate: Populate::Peers,
            huge_pages: HugePages::Reserved,
            peers: Peers::ReadHeap,
        };
        let variables = policy.variables();
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        };
        assert_eq!(Config::from_lookup(lookup).unwrap().policy, policy);
    }

    #[test]
    fn a_word_that_is_none_of_the_choices_is_named() {
        let lookup = |name: &str| (name == PEERS).then(|| "readonly".to_owned());
        let error = Config::from_lookup(lookup).unwrap_err().to_string();
        assert!(error.contains("TSUMUGI_PEERS=\"readonly\""), "{error}");
    }
}
