//! The rails of a rank, opened.

use super::ENDPOINTS_MAX;
use super::card::{Card, CardError, Place};
use super::endpoint::NetEndpoint;
use super::failure::Failure;
use super::packet::SendError;
use super::rail::{Limits, Rail, Shared};
use super::unfit::Unfit;
use super::wire::Wire;
use core::fmt;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tsumugi_core::backend::{Capabilities, Domain};
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::mem::{
    Access, Need, Rank, Region, RegionKey, RegionTable, RegisterError, RemoteAddr,
};
use tsumugi_core::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

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
    limits: Limits,
    is_device: bool,
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
    /// Whether aligned words are written and read whole.
    pub is_device: bool,
    pub remote_completion: bool,
}

impl<W: Wire> NetDomain<W> {
    pub(crate) fn assemble(
        rails: Vec<Rail<W>>,
        about: W::About,
        traits: Traits,
    ) -> Result<Self, Unfit> {
        debug_assert!((1..=ENDPOINTS_MAX).contains(&rails.len()));
        let Traits { rank, size, job, kind, device_atomics, is_device, remote_completion } = traits;
        let places = rails.iter().map(place).collect::<Result<_, Unfit>>()?;
        let name = Excerpt::new(&format!("{} {about}", W::NAME));
        let card = Card { job, kind, name, endpoints: places };
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
            job: AtomicU64::new(job),
            table: Box::new(RegionTable::new()),
            own: OnceLock::from(card),
            cards: OnceLock::new(),
            lost: Mutex::default(),
            lost_count: AtomicUsize::new(0),
            kept: AtomicU32::new(0),
        };
        let idle = Mutex::new((0..rails.len()).rev().collect());
        let limits = rails[0].limits;
        let rails = rails.into_iter().map(Mutex::new).collect();
        Ok(Self { rails, idle, shared, about, capabilities, limits, is_device, card: bytes })
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
        self.find_later(move |rank, card| {
            cards(rank, card).map(Some).ok_or(BootError::NoCard { rank })
        });
    }

    /// The same where a card may take a while: `Ok(None)` says that it has been
    /// asked for, and each poll asks again. Nothing else waits meanwhile. It is
    /// called by whoever polls, and is to answer at once.
    pub fn find_later(
        &self,
        cards: impl Fn(Rank, &mut [u8; CARD_BYTES_MAX]) -> Result<Option<usize>, BootError>
        + Send
        + Sync
        + 'static,
    ) {
        let _ = self.shared.cards.set(Box::new(cards));
    }

    /// A number that only ranks have alike that understand each other: what is
    /// worth to be known of all of them before their cards are.
    pub fn mark(&self) -> u32 {
        self.shared.own.get().map_or(0, Card::mark)
    }

    /// Whether a rank of this card is on the same network, as far as its card
    /// says.
    ///
    /// # Errors
    ///
    /// [`CardError`]: the ranks could not speak to each other.
    pub fn check(&self, card: &[u8]) -> Result<(), CardError> {
        let own = self.shared.own.get().expect("it was opened with one");
        Card::parse(card, own).map(drop)
    }

    /// Says the number that packets of the job bear, where it was not known
    /// when the cards were made: the configuration's is then the same for
    /// all. Before the first packet is sent or received.
    pub fn join(&self, job: u64) {
        // Relaxed: who uses it was told of the domain afterwards.
        self.shared.job.store(job, Ordering::Relaxed);
        for index in 0..self.rails.len() {
            self.rail(index).wire.join(job);
        }
    }

    /// Registers memory under a key that another table of this rank has given,
    /// as [`register`](Domain::register) does under one of its own. A domain
    /// does the one or the other.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    ///
    /// # Safety
    ///
    /// That of [`register`](Domain::register).
    pub unsafe fn register_as(
        &self,
        key: RegionKey,
        base: NonNull<u8>,
        bytes: u64,
        access: Access,
    ) -> Result<Region, RegisterError> {
        // SAFETY: the caller's.
        let region = unsafe { self.shared.table.register_as(key, base, bytes, access)? };
        // SAFETY: the same.
        unsafe { self.show(region) }
    }

    /// Sends a packet of endpoint `index`, as
    /// [`NetEndpoint::try_send`] does, whoever has the endpoint.
    ///
    /// # Errors
    ///
    /// [`SendError`]: nothing was sent.
    pub fn try_send(&self, index: usize, to: Rank, bytes: &[u8]) -> Result<(), SendError> {
        let Some(mut rail) = self.try_rail(index) else { return Err(SendError::Full) };
        rail.try_send(&self.shared, to, bytes)
    }

    /// Sends a packet of endpoint `index` to a rank that was
    /// [struck](Self::strike), so that it hears of that, if the wire can: all else
    /// to it is refused.
    ///
    /// # Errors
    ///
    /// [`SendError`]: nothing was sent.
    pub fn tell_lost(&self, index: usize, to: Rank, bytes: &[u8]) -> Result<(), SendError> {
        let Some(mut rail) = self.try_rail(index) else { return Err(SendError::Full) };
        if bytes.len() > rail.packet_bytes_max() {
            return Err(SendError::TooLong { bytes: bytes.len(), max: rail.packet_bytes_max() });
        }
        rail.tell_lost(&self.shared, to, bytes)
    }

    /// Prepares endpoint `index` for a sleep on its
    /// [`event`](Self::event), as [`Endpoint::arm`] does.
    ///
    /// [`Endpoint::arm`]: tsumugi_core::backend::Endpoint::arm
    pub fn arm(&self, index: usize) -> bool {
        self.try_rail(index).is_some_and(|mut rail| rail.arm())
    }

    /// The descriptor of endpoint `index`; see [`NetEndpoint::event`].
    pub fn event(&self, index: usize) -> Option<std::os::fd::RawFd> {
        self.rail(index).wire.event()
    }

    /// Bytes of the longest packet.
    pub fn packet_bytes_max(&self) -> usize {
        self.rail(0).packet_bytes_max()
    }

    /// Endpoints that there are.
    pub fn endpoints(&self) -> usize {
        self.rails.len()
    }

    /// Whether puts and gets may be under way while packets are. If not, a job
    /// is better off with packets alone.
    pub fn moves_memory(&self) -> bool {
        !self.limits.one_by_one
    }

    /// Longest put or get that is one request.
    pub fn piece_bytes_max(&self) -> u64 {
        self.limits.piece_bytes_max
    }

    /// Whether a put that tells its target is one request.
    pub fn rings(&self) -> bool {
        self.limits.rings
    }

    /// Whether memory that is registered must stay where it is: a device's own
    /// hands read it.
    pub fn pins(&self) -> bool {
        self.limits.local_mr
    }

    /// Whether an operation on a word, of so many bytes, never tears.
    pub fn moves_words(&self, bytes: u64) -> bool {
        bytes == 1 || self.is_device || (bytes >= 4 && self.limits.word_atomics)
    }

    /// Whether a put or get of bytes that are an aligned word never tears, and
    /// writes it once: these are no atomics, whatever the device has.
    pub fn copies_words(&self) -> bool {
        self.is_device
    }

    /// Says which region gets may still write to when they have ended because
    /// their peer is lost: its owner keeps it as long as the domain, and does
    /// not use what such a get was given again.
    pub fn keep(&self, region: RegionKey) {
        // Relaxed: the operations that use the region come after this.
        self.shared.kept.store(region.to_bits(), Ordering::Relaxed);
    }

    /// Makes a rank dead. Operations on it end with
    /// [`PeerLost`](tsumugi_core::mem::AddrError::PeerLost): those that come,
    /// at once; those under way, at the next poll, but for gets, which end
    /// when the device gives their buffers up, unless these are
    /// [kept](Self::keep).
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

    /// Shows a region of the own table to the devices.
    ///
    /// # Safety
    ///
    /// The memory is as `register` demands.
    unsafe fn show(&self, region: Region) -> Result<Region, RegisterError> {
        let Region { key, base, bytes, access } = region;
        if access == Access::Local && !self.limits.local_mr {
            return Ok(region);
        }
        for index in 0..self.rails.len() {
            // SAFETY: the caller's.
            let registered = unsafe { self.rail(index).register(key, base, bytes, access) };
            if let Err(code) = registered {
                self.rail(index).failures.add(Failure::new(Some(self.shared.rank), None, code, 0));
                self.unregister(key);
                return Err(RegisterError::OutOfReach { base: base.as_ptr() as usize, bytes });
            }
        }
        Ok(region)
    }

    #[inline]
    pub(super) fn try_rail(&self, index: usize) -> Option<MutexGuard<'_, Rail<W>>> {
        self.rails[index].try_lock().ok()
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
        // SAFETY: the same.
        unsafe { self.show(region) }
    }

    fn unregister(&self, key: RegionKey) -> bool {
        // The devices first: the slot must not be somebody else's meanwhile.
        let place = RemoteAddr { rank: self.shared.rank, key, offset: 0 };
        let is_for = |need| self.shared.table.resolve(place, 0, need).is_ok();
        if !is_for(Need::Local) {
            return false;
        }
        let is_shown = self.limits.local_mr || is_for(Need::Read);
        for index in (0..self.rails.len()).filter(|_| is_shown) {
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
