//! The bootstrap of a job: open, so that it can be used later, or closed after the
//! start.

use super::lazy_bootstrap::LazyBootstrap;
use super::packed_cards::Packing;
use crate::error::Error;
use crate::net::Cards;
use std::fmt;
use std::sync::Arc;
use tsumugi_backends::boot::RankCard;
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::Nodes;

/// The bootstrap of a job; see the module.
pub(super) enum Exchange {
    /// It stays open, and cards can be fetched later.
    Open(Arc<LazyBootstrap>),
    /// All cards are fetched at the start, and then it is closed.
    Closed(Box<dyn Bootstrap>),
}

impl Exchange {
    /// Calls `ask` with the bootstrap, before the job runs, when no other thread
    /// uses it.
    pub(super) fn with<R>(&mut self, ask: impl FnOnce(&mut dyn Bootstrap) -> R) -> R {
        match self {
            Self::Open(lazy) => lazy.with(|bootstrap| ask(bootstrap)),
            Self::Closed(bootstrap) => ask(&mut **bootstrap),
        }
    }

    /// The source of cards from now on.
    pub(super) fn cards(&mut self, nodes: &Arc<Nodes>) -> Result<Arc<dyn Cards>, Error> {
        match self {
            Self::Open(lazy) => {
                lazy.open(nodes);
                Ok(Arc::new(lazy.clone()))
            }
            Self::Closed(bootstrap) => {
                let mut packing = Packing::default();
                for rank in (0..nodes.ranks()).map(Rank) {
                    let card = card_of(&mut **bootstrap, rank)?;
                    packing.push(nodes, &card.network, &card.host);
                }
                bootstrap.forget();
                Ok(Arc::new(packing.pack()))
            }
        }
    }

    pub(super) fn meet(&mut self) -> Result<(), BootError> {
        match self {
            Self::Open(lazy) => lazy.meet(),
            Self::Closed(bootstrap) => bootstrap.barrier(),
        }
    }

    pub(super) fn leave(&mut self) -> Result<(), BootError> {
        match self {
            Self::Open(lazy) => lazy.leave(),
            Self::Closed(bootstrap) => bootstrap.leave(),
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(lazy) => lazy.fmt(f),
            Self::Closed(_) => f.write_str("Closed"),
        }
    }
}

/// Fetches and parses a rank's card.
pub(super) fn card_of(boot: &mut dyn Bootstrap, rank: Rank) -> Result<RankCard, Error> {
    let mut bytes = [0; CARD_BYTES_MAX];
    let len = boot.card(rank, &mut bytes)?;
    RankCard::parse(&bytes[..len]).map_err(|error| Error::Card { rank, error })
}
