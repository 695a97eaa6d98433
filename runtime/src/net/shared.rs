//! The state that links, poller and callers share: the device, and the handling of
//! parcels, doorbells and losses at this rank.

use super::device::NetDevice;
use super::device_queue::DeviceQueue;
use super::fault::FaultInjector;
use super::fetch_window::FetchWindows;
use super::heartbeat::{self, HeartbeatPacket, Heartbeats};
use super::joined::Joined;
use super::network::Cards;
use super::packet::PACKET_BYTES;
use super::parcel::{Parcel, ParcelError, ParcelHandler};
use super::registrar::Registrar;
use super::registration::RegistrationCache;
use super::silence::SilenceVerdict;
use super::suspect::Suspects;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tsumugi_backends::net::ShutOut;
use tsumugi_backends::ofi::{DeviceFailure, PacketError};
use tsumugi_core::mem::LocalAddr;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tsumugi_pvas::partition::Gone;
use tsumugi_pvas::{Direct, Member};
use tsumugi_ult::callback;

/// The state that links, poller and callers share.
pub(super) struct NetShared {
    pub(super) device: NetDevice,
    /// The fault injection, if there is one.
    pub(super) bad: Option<FaultInjector>,
    pub(super) member: Member,
    pub(super) direct: Direct,
    pub(super) handlers: [OnceLock<ParcelHandler>; Parcel::KINDS],
    /// Called for each word of this rank that a notifying operation of another node
    /// has changed.
    pub(super) bell: OnceLock<Box<dyn Fn(LocalAddr) + Send + Sync>>,
    /// Called after a poll in which a packet arrived.
    pub(super) serve: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Deaths of which the device was notified.
    pub(super) gone_seen: Mutex<usize>,
    pub(super) gone_count: AtomicU32,
    /// Polls of workers so far.
    pub(super) polls: AtomicU64,
    /// Workers that sleep.
    pub(super) asleep: AtomicU64,
    /// The word on which the poller naps; odd while it does.
    pub(super) nap: AtomicU32,
    /// Parcels and bells that have arrived so far.
    pub(super) arrivals: AtomicU64,
    /// Packets that were malformed or refused.
    pub(super) strays: AtomicU64,
    /// Emulated operations of other ranks that were carried out here.
    pub(super) served: AtomicU64,
    /// Bytes that were copied through bounce chunks.
    pub(super) bounced: AtomicU64,
    /// Emulated operations and answers that wait for room, of all links.
    pub(super) unsent: AtomicU64,
    /// A packet of another kind than emulated operations has found no room: the next
    /// room is for it.
    pub(super) turned_away: AtomicBool,
    /// Whether a thread that waits for an operation polls all the time.
    pub(super) spins: bool,
    /// How often a caller polls for the end of its operation before it sleeps.
    pub(super) rounds: u32,
    /// A caller polls for the end of its operation.
    pub(super) is_looked_for: AtomicBool,
    pub(super) heartbeats: Heartbeats,
    /// Ranks that seem lost, until the launcher reports which rank died first.
    pub(super) suspects: Suspects,
    /// The source of the other ranks' cards.
    pub(super) cards: Arc<dyn Cards>,
    /// Present if the device carries out puts and gets.
    pub(super) windows: Option<FetchWindows>,
    /// Present if the device also releases memory when a peer is lost.
    pub(super) pins: Option<RegistrationCache>,
    pub(super) joined: Joined,
}

impl NetShared {
    pub(super) fn try_send(
        &self,
        link: usize,
        to: Rank,
        kind: Parcel,
        bytes: &[u8],
    ) -> Result<(), ParcelError> {
        let mut packet = heapless::Vec::<u8, PACKET_BYTES>::new();
        let pushed = packet.push(kind as u8).is_ok() && packet.extend_from_slice(bytes).is_ok();
        if !pushed {
            return Err(ParcelError::TooLong);
        }
        let sent = match &self.bad {
            None => self.device.try_send(link, to, &packet),
            Some(bad) => bad.try_send(&self.device, link, to, &packet),
        };
        match sent {
            Ok(()) => Ok(()),
            Err(PacketError::Full) => {
                if kind != Parcel::Emulated {
                    // Relaxed: a hint to the link that sends emulated operations next.
                    self.turned_away.store(true, Ordering::Relaxed);
                }
                Err(ParcelError::Full)
            }
            Err(PacketError::TooLong { .. }) => Err(ParcelError::TooLong),
            // Until it is known which rank died first, this is as if there were no
            // room.
            Err(PacketError::Addr(error)) => {
                Err(self.note(error, None).map_or(ParcelError::Full, ParcelError::Addr))
            }
        }
    }

    /// Sends a heartbeat or a notice. Returns whether it was sent, or cannot be sent
    /// ever.
    pub(super) fn tell(&self, to: Rank, word: HeartbeatPacket<'_>) -> bool {
        match word {
            HeartbeatPacket::Heartbeat(bytes) => {
                self.try_send(0, to, Parcel::Heartbeat, bytes) != Err(ParcelError::Full)
            }
            HeartbeatPacket::GivenUp(bytes) => {
                // The device must have marked the rank as dead.
                self.see_losses();
                let packet = [&[Parcel::GivenUp as u8], bytes].concat();
                self.device.notify_dead(to, &packet) != Err(PacketError::Full)
            }
        }
    }

    /// Whether a rank was declared lost here: its packets are refused from then on.
    #[cold]
    pub(super) fn is_shut_out(&self, from: Rank, kind: Parcel, bytes: &[u8]) -> bool {
        if self.member.is_alive(from) {
            return false;
        }
        self.heartbeats.saw_late(&self.member, from);
        if kind == Parcel::GivenUp {
            self.given_up(from, bytes);
        }
        self.strays.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Takes notices that come by another way than packets do.
    pub(super) fn take_notices(&self) {
        let mut notice = [0; PACKET_BYTES];
        for _ in 0..NOTICES {
            let Some((from, length)) = self.device.take_notice(&mut notice) else { return };
            match Parcel::of(&notice[..length]) {
                Some((Parcel::GivenUp, bytes)) => {
                    if !self.is_shut_out(from, Parcel::GivenUp, bytes) {
                        self.arrived(from, Parcel::GivenUp, bytes);
                    }
                }
                _ => _ = self.strays.fetch_add(1, Ordering::Relaxed),
            }
        }
    }

    /// Handles a notice that another node has given this one up. Returns whether it
    /// is well formed.
    fn given_up(&self, by: Rank, bytes: &[u8]) -> bool {
        let Some(verdict) = self.heartbeats.told(&self.member, by, bytes) else { return false };
        let after = heartbeat::parse_told(bytes);
        if let (SilenceVerdict::Ends, Some(after)) = (verdict, after) {
            let (own, seconds) = (self.member.rank(), f64::from(after) / 1000.0);
            // The other ranks of this node end with this one.
            self.member.declare_lost(own);
            let line = format!(
                "tsumugi: {own}: this rank was given up by {by} after {seconds} s of silence, \
                 and ends (TSUMUGI_SILENCE_TIMEOUT sets the limit)\n"
            );
            eprint!("{line}");
            // SAFETY: a plain call. Destructors are skipped on purpose: the job goes
            // on without this rank, so nothing that it does from here on may take
            // effect.
            unsafe { libc::_exit(GIVEN_UP_CODE) };
        }
        true
    }

    /// Prints the names of ranks that were lost by silence.
    pub(super) fn say_silent(&self, ranks: &[Rank]) {
        let limit = self.heartbeats.given_up_after().as_secs_f64();
        self.say(ranks, Some(format!("after {limit} s of silence")));
    }

    /// Opens the next endpoint.
    pub(super) fn try_endpoint(&'static self) -> Option<DeviceQueue<'static>> {
        match &self.bad {
            None => self.device.try_endpoint(),
            Some(bad) => {
                bad.try_endpoint(&self.device).map(|queue| DeviceQueue::Faulty(Box::new(queue)))
            }
        }
    }

    /// The part that registers memory with the device.
    pub(super) fn registrar(&self) -> Registrar<'_> {
        Registrar { direct: &self.direct, device: &self.device }
    }

    /// Arms the event of the device. Whether a thread may sleep until it comes.
    pub(super) fn arm(&self, link: usize) -> bool {
        self.bad.as_ref().is_none_or(|bad| !bad.holds(link)) && self.device.arm(link)
    }

    /// Handles a parcel that has come.
    pub(super) fn arrived(&self, from: Rank, kind: Parcel, bytes: &[u8]) {
        let is_known = match (&self.handlers[kind as usize].get(), kind) {
            (Some(handle), _) => {
                callback(|| handle(from, bytes));
                true
            }
            (None, Parcel::Heartbeat) => {
                let news = self.heartbeats.heard(&self.member, from, bytes);
                if let Some(news) = &news {
                    self.say(news, None);
                }
                news.is_some()
            }
            (None, Parcel::GivenUp) => self.given_up(from, bytes),
            (None, _) => false,
        };
        if !is_known {
            self.strays.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls the handler of bells for a word of this rank that a notifying operation
    /// of another node has changed.
    pub(super) fn rang(&self, word: LocalAddr) {
        if let Some(handle) = self.bell.get() {
            handle(word);
        }
    }

    /// Handles an operation that has failed: if its peer is lost, declares that, and
    /// prints it. Returns the error for the caller. A connection that closes may
    /// belong to a rank that ends because of another rank's death, and then the
    /// error names that other rank. `None`: the launcher has not reported yet which
    /// rank died first; the caller holds locks, so it asks again later. Even if it
    /// does not, the peer is declared lost, see [`settle`](Self::settle).
    #[cold]
    pub(super) fn note(
        &self,
        error: AddrError,
        failure: Option<DeviceFailure>,
    ) -> Option<AddrError> {
        let AddrError::PeerLost { rank } = error else { return Some(error) };
        let first_failure = self.member.first_failure();
        if first_failure.is_awaited() {
            self.suspects.add(rank, failure);
            return None;
        }
        let first_failure = first_failure.rank();
        let is_news = !self.member.is_near(rank) && self.member.declare_lost(rank);
        if is_news && first_failure.is_none() {
            let untold = || self.cards.why(rank).map(|why| why.to_string());
            let why = failure.map(|failure| failure.to_string()).or_else(untold);
            self.say(&[rank], why);
        }
        Some(first_failure.map_or(error, |rank| AddrError::PeerLost { rank }))
    }

    /// Declares peers lost that were suspected while the launcher's report was
    /// awaited, if that has come, or its time is over.
    #[inline]
    pub(super) fn settle(&self) {
        if self.suspects.has_some() && !self.member.first_failure().is_awaited() {
            for (rank, failure) in self.suspects.take() {
                self.note(AddrError::PeerLost { rank }, failure);
            }
        }
    }

    /// Prints the names of ranks of one node that are lost.
    pub(super) fn say(&self, ranks: &[Rank], why: Option<String>) {
        let Some(first) = ranks.first() else { return };
        let names: Vec<String> = ranks.iter().take(NAMES_MAX).map(Rank::to_string).collect();
        let more = if ranks.len() > NAMES_MAX { ", ..." } else { "" };
        let node = self.member.nodes().place(*first).map(|place| place.node);
        let host = node.and_then(|node| match node == self.member.node() {
            true => own_host(),
            false => self.cards.host_of(node),
        });
        let host = host.map_or(String::new(), |host| format!(" on {host}"));
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        // One write, so that the line does not mix with the output of ranks.
        let line = format!("tsumugi: {}{more}{host}: no answer, lost{why}\n", names.join(", "));
        eprint!("{line}");
    }

    /// Notifies the device of deaths that it does not have yet.
    #[inline]
    pub(super) fn see_losses(&self) {
        let count = self.member.gone_count();
        if count != self.gone_count.load(Ordering::Relaxed) {
            self.strike(count);
        }
    }

    #[cold]
    fn strike(&self, count: u32) {
        let mut seen = self.gone_seen.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in self.member.gone().skip(*seen) {
            *seen += 1;
            match gone {
                Gone::Rank(rank) => self.device.mark_dead(rank),
                Gone::Node(node) => {
                    for rank in self.member.nodes().ranks_of(node) {
                        self.device.give_up(rank, ShutOut::Host);
                    }
                }
            }
        }
        self.gone_count.store(count, Ordering::Relaxed);
    }
}

/// The name of this host, from the kernel.
fn own_host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned())
}

/// The exit code of a rank that was given up by another node.
const GIVEN_UP_CODE: i32 = 1;
/// Notices that are taken at once.
const NOTICES: usize = 16;
/// Names of ranks in one line.
const NAMES_MAX: usize = 8;
