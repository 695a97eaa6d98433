//! The domain of a rank: its NIC endpoints, opened.

use super::ENDPOINTS_MAX;
use super::assemble_error::AssembleError;
use super::card::{CardEndpoint, CardError, EndpointCard};
use super::failure::DeviceFailure;
use super::nic_endpoint::{DomainShared, Limits, LostRank, NicEndpoint};
use super::packet::PacketError;
use super::probe_report::ProbeReport;
use super::wire::{NetWire, ShutOut};
use core::fmt;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tsumugi_core::backend::{Capabilities, Domain};
use tsumugi_core::boot::{BootError, CARD_BYTES_MAX};
use tsumugi_core::excerpt::Excerpt;
use tsumugi_core::mem::{Access, Rank, Region, RegionKey, RegionTable, RegisterError};
use tsumugi_core::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A rank's device, opened and probed.
///
/// At start the caller opens it, publishes [`card`](Self::card), waits for all
/// ranks, and passes a source of the peers' cards to [`find`](Self::find).
pub struct NetDomain<W: NetWire> {
    pub(super) nics: Vec<Mutex<NicEndpoint<W>>>,
    /// The NIC endpoints that no endpoint uses.
    pub(super) idle: Mutex<Vec<usize>>,
    pub(super) shared: DomainShared,
    pub(crate) description: W::Description,
    probed: ProbeReport,
    pub(super) capabilities: Capabilities,
    pub(super) limits: Limits,
    is_device: bool,
    card: Vec<u8>,
}

/// The properties that all NIC endpoints of a rank share.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// The rank.
    pub rank: Rank,
    /// The number of ranks of the job.
    pub size: u32,
    /// A number that all ranks of the job have and no other job has.
    pub job: u64,
    /// A number of the address form: ranks can communicate if they have the same.
    pub kind: u64,
    /// Whether the device's atomics and the processor's exclude each other.
    pub device_atomics: bool,
    /// Whether aligned words are written and read whole.
    pub is_device: bool,
    /// Whether a put that has completed has landed.
    pub remote_completion: bool,
}

impl<W: NetWire> NetDomain<W> {
    /// Makes a domain of opened NIC endpoints, of which there is at least one.
    ///
    /// # Errors
    ///
    /// [`AssembleError::Address`] if a wire does not report its address;
    /// [`AssembleError::CardTooLong`] if the addresses do not fit in a card.
    pub fn assemble(
        nics: Vec<NicEndpoint<W>>,
        description: W::Description,
        probed: ProbeReport,
        traits: Traits,
    ) -> Result<Self, AssembleError> {
        debug_assert!((1..=ENDPOINTS_MAX).contains(&nics.len()));
        let Traits { rank, size, job, kind, device_atomics, is_device, remote_completion } = traits;
        let places = nics.iter().map(place).collect::<Result<_, AssembleError>>()?;
        let name = Excerpt::new(&format!("{} {description}", W::NAME));
        let card = EndpointCard { job, kind, name, endpoints: places };
        let bytes = card.to_bytes();
        if bytes.len() > CARD_BYTES_MAX {
            return Err(AssembleError::CardTooLong { bytes: bytes.len() });
        }
        let capabilities = Capabilities {
            name: W::NAME,
            load_store: false,
            device_atomics,
            inline_bytes_max: 0,
            in_flight_max: nics[0].flights.len(),
            in_order: false,
            remote_completion,
        };
        let shared = DomainShared {
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
        let idle = Mutex::new((0..nics.len()).rev().collect());
        let limits = nics[0].limits;
        let nics = nics.into_iter().map(Mutex::new).collect();
        Ok(Self {
            nics,
            idle,
            shared,
            description,
            probed,
            capabilities,
            limits,
            is_device,
            card: bytes,
        })
    }

    /// The data that peers need of this rank: at most [`CARD_BYTES_MAX`] bytes, for
    /// [`Bootstrap::publish`].
    ///
    /// [`Bootstrap::publish`]: tsumugi_core::boot::Bootstrap::publish
    pub fn card(&self) -> &[u8] {
        &self.card
    }

    /// Sets the function that gets the peers' cards. A card is requested at the
    /// first operation or packet to its rank; that rank is lost if there is no
    /// card, or a bad one. Only the first call has an effect.
    pub fn find(
        &self,
        cards: impl Fn(Rank, &mut [u8; CARD_BYTES_MAX]) -> Option<usize> + Send + Sync + 'static,
    ) {
        self.find_later(move |rank, card| {
            cards(rank, card).map(Some).ok_or(BootError::NoCard { rank })
        });
    }

    /// As [`find`](Self::find), where a card may take a while: `Ok(None)` means
    /// that the card has been requested, and each poll calls the function again.
    /// Only operations to that rank wait meanwhile. The thread that polls calls the
    /// function, which must return at once.
    pub fn find_later(
        &self,
        cards: impl Fn(Rank, &mut [u8; CARD_BYTES_MAX]) -> Result<Option<usize>, BootError>
        + Send
        + Sync
        + 'static,
    ) {
        let _ = self.shared.cards.set(Box::new(cards));
    }

    /// A number that is equal on ranks that can communicate; it can be compared
    /// before the ranks' cards are known.
    pub fn mark(&self) -> u32 {
        self.shared.own.get().map_or(0, EndpointCard::mark)
    }

    /// Checks from a rank's card that the rank is on the same network.
    ///
    /// # Errors
    ///
    /// A [`CardError`] if the two ranks could not communicate:
    ///
    /// - [`CardError::Length`]: the card ends within a field, has bytes after the last
    ///   field, or is longer than any card.
    /// - [`CardError::Form`]: the bytes are not a card, or a card of another version.
    /// - [`CardError::Job`]: the card belongs to another job.
    /// - [`CardError::Kind`]: the rank has another network, provider or form of
    ///   addresses.
    /// - [`CardError::Number`]: a number in the card is out of its range.
    pub fn check(&self, card: &[u8]) -> Result<(), CardError> {
        let own = self.shared.own.get().expect("a domain is opened with its own card");
        EndpointCard::parse(card, own).map(drop)
    }

    /// Sets the job number that packets carry, if it was not known when the cards
    /// were made (the number in the configuration must then be the same on all
    /// ranks). Must be called before the first packet is sent or received.
    pub fn join(&self, job: u64) {
        // Relaxed: a thread that uses the number got the domain after this.
        self.shared.job.store(job, Ordering::Relaxed);
        for index in 0..self.nics.len() {
            self.nic(index).wire.join(job);
        }
    }

    /// Registers memory under a key that another table of this rank has assigned;
    /// [`register`](Domain::register) assigns a key of its own. A domain must be
    /// used with only one of the two.
    ///
    /// # Errors
    ///
    /// [`RegisterError::TableFull`] if another region has the key's slot, if there is
    /// no such slot, or if the key's generation is 0; [`RegisterError::OutOfReach`] if
    /// a device refuses the memory.
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
        // SAFETY: the caller keeps the contract of `register`.
        let region = unsafe { self.shared.table.register_as(key, base, bytes, access)? };
        // SAFETY: as above.
        unsafe { self.show(region) }
    }

    /// Sends a packet from endpoint `index`, as [`NetEndpoint::try_send`](super::NetEndpoint::try_send) does; the
    /// caller need not own the endpoint.
    ///
    /// # Errors
    ///
    /// A [`PacketError`], and nothing was sent:
    ///
    /// - [`PacketError::Full`]: no buffer is free, the provider accepts nothing now, the
    ///   rank's card has not come yet, or another thread uses the endpoint. The caller
    ///   must try again later.
    /// - [`PacketError::TooLong`]: `bytes` is longer than a packet.
    /// - [`PacketError::Addr`]: the rank does not exist, has died, or cannot be reached.
    pub fn try_send(&self, index: usize, to: Rank, bytes: &[u8]) -> Result<(), PacketError> {
        let Some(mut nic) = self.try_rail(index) else { return Err(PacketError::Full) };
        nic.try_send(&self.shared, to, bytes)
    }

    /// Sends a packet from endpoint `index` to a rank that was declared dead with
    /// [`mark_dead`](Self::mark_dead), so that the rank learns of that, if the wire can
    /// still reach it: everything else to that rank is refused.
    ///
    /// # Errors
    ///
    /// A [`PacketError`], and nothing was sent:
    ///
    /// - [`PacketError::Full`]: no buffer is free, the provider accepts nothing now, or
    ///   another thread uses the endpoint. The caller must try again later.
    /// - [`PacketError::TooLong`]: `bytes` is longer than a packet.
    /// - [`PacketError::Addr`]: the rank was not declared dead, no operation or packet
    ///   had gone to it before, or the connection to it is closed.
    pub fn notify_dead(&self, index: usize, to: Rank, bytes: &[u8]) -> Result<(), PacketError> {
        let Some(mut nic) = self.try_rail(index) else { return Err(PacketError::Full) };
        if bytes.len() > nic.packet_bytes_max() {
            return Err(PacketError::TooLong { bytes: bytes.len(), max: nic.packet_bytes_max() });
        }
        nic.notify_dead(&self.shared, to, bytes)
    }

    /// Takes a notice that a rank has sent with [`notify_dead`](Self::notify_dead) to
    /// endpoint `index`, if the wire carries notices beside packets: copies its first
    /// bytes, and returns the sender and their number. `None` if there is none, or
    /// another thread uses the endpoint.
    pub fn take_notice(&self, index: usize, into: &mut [u8]) -> Option<(Rank, usize)> {
        self.try_rail(index)?.take_notice(&self.shared, into)
    }

    /// Prepares endpoint `index` for a sleep on its
    /// [`event`](Self::event), as [`Endpoint::arm`] does.
    ///
    /// [`Endpoint::arm`]: tsumugi_core::backend::Endpoint::arm
    pub fn arm(&self, index: usize) -> bool {
        self.try_rail(index).is_some_and(|mut nic| nic.arm())
    }

    /// The descriptor of endpoint `index`; see
    /// [`NetEndpoint::event`](super::NetEndpoint::event).
    pub fn event(&self, index: usize) -> Option<std::os::fd::RawFd> {
        self.nic(index).wire.event()
    }

    /// The bytes of the longest packet.
    pub fn packet_bytes_max(&self) -> usize {
        self.nic(0).packet_bytes_max()
    }

    /// The results of the trials.
    pub fn probed(&self) -> &ProbeReport {
        &self.probed
    }

    /// The description of the opened device.
    pub fn description(&self) -> &W::Description {
        &self.description
    }

    /// The number of endpoints.
    pub fn endpoints(&self) -> usize {
        self.nics.len()
    }

    /// Whether puts and gets may be in flight together with packets. If not, a job
    /// should use packets alone.
    pub fn moves_memory(&self) -> bool {
        !self.limits.one_by_one
    }

    /// The longest put or get that is one request.
    pub fn piece_bytes_max(&self) -> u64 {
        self.limits.piece_bytes_max
    }

    /// Whether a put that notifies its target is one request.
    pub fn rings(&self) -> bool {
        self.limits.rings
    }

    /// Whether registered memory must stay at its place, because the device reads
    /// and writes it by itself.
    pub fn pins(&self) -> bool {
        self.limits.local_mr
    }

    /// Whether an operation on a word of `bytes` bytes never tears.
    pub fn moves_words(&self, bytes: u64) -> bool {
        bytes == 1 || self.is_device || (bytes >= 4 && self.limits.word_atomics)
    }

    /// Whether a put or get of an aligned word never tears, and writes the word
    /// once: such puts and gets are no atomics, whatever the device supports.
    pub fn copies_words(&self) -> bool {
        self.is_device
    }

    /// Sets the region that gets may still write to after they have ended because
    /// their peer is lost: its owner keeps it as long as the domain, and does not
    /// use the buffers of such gets again.
    pub fn keep(&self, region: RegionKey) {
        // Relaxed: the operations that use the region come after this call.
        self.shared.kept.store(region.to_bits(), Ordering::Relaxed);
    }

    /// Declares a rank dead. Operations on it end with
    /// [`PeerLost`](tsumugi_core::mem::AddrError::PeerLost): new operations at
    /// once; operations in flight at the next poll, except for gets, which end when
    /// the device releases their buffers, unless the buffers lie in the region of
    /// [`keep`](Self::keep).
    pub fn mark_dead(&self, rank: Rank) {
        self.give_up(rank, ShutOut::Rank);
    }

    /// Does the same for a rank of a node that is given up as a whole, and may still be
    /// alive: nothing that the rank sends lands here any more, as far as the wire can
    /// prevent that.
    pub fn give_up(&self, rank: Rank, shut_out: ShutOut) {
        let new = LostRank { rank, shut_out };
        let mut lost = self.shared.lost.lock().expect("no thread panics while it holds this lock");
        if !lost.iter().any(|old| old.rank == new.rank) {
            lost.push(new);
            // Release: pairs with the Acquire in `NicEndpoint::end_lost_ops`.
            self.shared.lost_count.store(lost.len(), Ordering::Release);
        }
    }

    /// Registers a region of this rank's table with the devices.
    ///
    /// # Safety
    ///
    /// The memory must fulfil the contract of `register`.
    pub(super) unsafe fn show(&self, region: Region) -> Result<Region, RegisterError> {
        let Region { key, base, bytes, access } = region;
        if access == Access::Local && !self.limits.local_mr {
            return Ok(region);
        }
        for index in 0..self.nics.len() {
            // SAFETY: the caller keeps the same contract.
            let registered = unsafe { self.nic(index).register(key, base, bytes, access) };
            if let Err(code) = registered {
                self.nic(index).failures.add(DeviceFailure::new(
                    Some(self.shared.rank),
                    None,
                    code,
                    0,
                ));
                self.unregister(key);
                return Err(RegisterError::OutOfReach { base: base.as_ptr() as usize, bytes });
            }
        }
        Ok(region)
    }

    #[inline]
    pub(super) fn try_rail(&self, index: usize) -> Option<MutexGuard<'_, NicEndpoint<W>>> {
        self.nics[index].try_lock().ok()
    }

    pub(super) fn nic(&self, index: usize) -> MutexGuard<'_, NicEndpoint<W>> {
        self.nics[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: NetWire> fmt::Debug for NetDomain<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} domain ({}, {} endpoints)", W::NAME, self.description, self.nics.len())
    }
}

fn place<W: NetWire>(nic: &NicEndpoint<W>) -> Result<CardEndpoint, AssembleError> {
    let address = nic.wire.address().map_err(AssembleError::Address)?;
    let (origin, key) = nic.directory_place();
    Ok(CardEndpoint { address, origin, key })
}
