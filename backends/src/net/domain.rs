//! The rails of a rank, opened.

use super::ENDPOINTS_MAX;
use super::card::{Card, Place};
use super::endpoint::NetEndpoint;
use super::rail::{Failure, Rail, Shared};
use super::wire::Wire;
use core::ffi::c_int;
use core::fmt;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tsumugi_core::backend::{Capabilities, Domain};
use tsumugi_core::boot::CARD_BYTES_MAX;
use tsumugi_core::mem::{
    Access, Need, Rank, Region, RegionKey, RegionTable, RegisterError, RemoteAddr,
};
use tsumugi_core::sync::{AtomicUsize, Ordering};

/// A rank's device, opened and probed.
///
/// At start: open it, publish [`card`](Self::card), wait for all,
/// [`find`](Self::find) the others' cards.
pub struct NetDomain<W: Wire> {
    pub(super) rails: Vec<Mutex<Rail<W>>>,
    /// The rails that no endpoint has.
    idle: Mutex<Vec<usize>>,
    pub(super) shared: Shared,
    pub(crate) about: W::About,
    capabilities: Capabilities,
    card: Vec<u8>,
}

/// What is so of all rails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub rank: Rank,
    pub size: u32,
    pub job: u64,
    /// Of the form of addresses: ranks understand each other if it is the same.
    pub kind: u64,
    pub device_atomics: bool,
    pub remote_completion: bool,
}

/// Why rails make no domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// A wire does not say where it is.
    Address(c_int),
    /// The addresses do not fit in a card.
    CardTooLong { bytes: usize },
}

impl<W: Wire> NetDomain<W> {
    pub(crate) fn assemble(
        rails: Vec<Rail<W>>,
        about: W::About,
        traits: Traits,
    ) -> Result<Self, Unfit> {
        debug_assert!((1..=ENDPOINTS_MAX).contains(&rails.len()));
        let Traits { rank, size, job, kind, device_atomics, remote_completion } = traits;
        let places = rails.iter().map(place).collect::<Result<_, Unfit>>()?;
        let card = Card { job, kind, endpoints: places };
        let bytes = card.to_bytes();
        if bytes.len() > CARD_BYTES_MAX {
            return Err(Unfit::CardTooLong { bytes: bytes.len() });
        }
        let capabilities = Capabilities {
            name: W::NAME,
            load_store: false,
            device_atomics,
            inline_bytes_max: 0,
            in_flight_max: rails[0].flights.len(),
            in_order: false,
            remote_completion,
        };
        let shared = Shared {
            rank,
            size,
            job,
            table: Box::new(RegionTable::new()),
            own: OnceLock::from(card),
            cards: OnceLock::new(),
            lost: Mutex::default(),
            lost_count: AtomicUsize::new(0),
        };
        let idle = Mutex::new((0..rails.len()).rev().collect());
        let rails = rails.into_iter().map(Mutex::new).collect();
        Ok(Self { rails, idle, shared, about, capabilities, card: bytes })
    }

    /// What peers have to know of this rank: at most
    /// [`CARD_BYTES_MAX`] bytes, for [`Bootstrap::publish`].
    ///
    /// [`Bootstrap::publish`]: tsumugi_core::boot::Bootstrap::publish
    pub fn card(&self) -> &[u8] {
        &self.card
    }

    /// Says where the others' cards are. Each is asked for when its rank is
    /// first spoken to; that rank is lost if there is no card, or a bad one.
    /// Only the first call counts.
    pub fn find(
        &self,
        cards: impl Fn(Rank, &mut [u8; CARD_BYTES_MAX]) -> Option<usize> + Send + Sync + 'static,
    ) {
        let _ = self.shared.cards.set(Box::new(cards));
    }

    /// Makes a rank dead. Operations on it end with
    /// [`PeerLost`](tsumugi_core::mem::AddrError::PeerLost): those that come,
    /// at once; those under way, at the next poll, but for gets, which end
    /// when the device gives their buffers up.
    pub fn strike(&self, rank: Rank) {
        let mut lost = self.shared.lost.lock().expect("nothing panics under it");
        if !lost.contains(&rank) {
            lost.push(rank);
            // Release: pairs with the Acquire in `Rail::see_losses`.
            self.shared.lost_count.store(lost.len(), Ordering::Release);
        }
    }

    /// An endpoint, if one is left.
    pub fn try_endpoint(&self) -> Option<NetEndpoint<'_, W>> {
        let index = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(NetEndpoint::new(self, index))
    }

    pub(super) fn give_back(&self, index: usize) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(index);
    }

    fn rail(&self, index: usize) -> MutexGuard<'_, Rail<W>> {
        self.rails[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Wire> Domain for NetDomain<W> {
    type Endpoint<'d>
        = NetEndpoint<'d, W>
    where
        W: 'd;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn rank(&self) -> Rank {
        self.shared.rank
    }

    fn size(&self) -> u32 {
        self.shared.size
    }

    unsafe fn register(
        &self,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        let region = unsafe { self.shared.table.register(base, bytes, access)? };
        for index in 0..self.rails.len() {
            // SAFETY: the caller's.
            let registered = unsafe { self.rail(index).register(region.key, base, bytes, access) };
            if let Err(code) = registered {
                self.rail(index).failures.add(Failure::new(Some(self.shared.rank), None, code, 0));
                self.unregister(region.key);
                return Err(RegisterError::OutOfReach { base: base.as_ptr() as usize, bytes });
            }
        }
        Ok(region)
    }

    fn unregister(&self, key: RegionKey) -> bool {
        // The devices first: the slot must not be somebody else's meanwhile.
        let place = RemoteAddr { rank: self.shared.rank, key, offset: 0 };
        if self.shared.table.resolve(place, 0, Need::Local).is_err() {
            return false;
        }
        for index in 0..self.rails.len() {
            self.rail(index).unregister(key);
        }
        self.shared.table.unregister(key)
    }

    /// # Panics
    ///
    /// If all are in use: [`try_endpoint`](Self::try_endpoint) asks.
    fn endpoint(&self) -> NetEndpoint<'_, W> {
        self.try_endpoint().expect("an endpoint that is not in use")
    }
}

impl<W: Wire> fmt::Debug for NetDomain<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} domain ({}, {} endpoints)", W::NAME, self.about, self.rails.len())
    }
}

fn place<W: Wire>(rail: &Rail<W>) -> Result<Place, Unfit> {
    let address = rail.wire.address().map_err(Unfit::Address)?;
    let (origin, key) = rail.directory_place();
    Ok(Place { address, origin, key })
}
