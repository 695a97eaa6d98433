//! What the links, the watch and callers have in common: the device, and what
//! parcels, bells and losses do to this rank.

use super::bad::Bad;
use super::beat::Beats;
use super::device::{Device, Queue};
use super::joined::Joined;
use super::network::Cards;
use super::parcel::{self, Handler, Parcel, ParcelError};
use super::pin::Pins;
use super::window::Windows;
use crate::{AddrError, Rank};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tsumugi_backends::ofi::{Failure, SendError};
use tsumugi_core::mem::LocalAddr;
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tsumugi_pvas::partition::Gone;
use tsumugi_pvas::{Direct, Member};
use tsumugi_ult::enter_callback;

/// What links, watch and callers have in common.
pub(super) struct Shared {
    pub(super) device: Device,
    /// What makes the network bad on purpose.
    pub(super) bad: Option<Bad>,
    pub(super) member: Member,
    pub(super) direct: Direct,
    pub(super) handlers: [OnceLock<Handler>; Parcel::KINDS],
    /// Called for each word of this rank that a notifying operation from
    /// elsewhere has changed.
    pub(super) bell: OnceLock<Box<dyn Fn(LocalAddr) + Send + Sync>>,
    /// Called after a poll in which something arrived.
    pub(super) serve: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Deaths that the device was told of.
    pub(super) gone_seen: Mutex<usize>,
    pub(super) gone_count: AtomicU32,
    /// Polls of workers so far.
    pub(super) polls: AtomicU64,
    /// Workers that sleep.
    pub(super) asleep: AtomicU64,
    /// Where the watch naps; odd: it does.
    pub(super) nap: AtomicU32,
    /// Parcels and bells so far.
    pub(super) arrivals: AtomicU64,
    /// What has come and makes no sense.
    pub(super) strays: AtomicU64,
    /// Errands of others that were carried out here.
    pub(super) served: AtomicU64,
    /// Bytes that were copied once more through chunks.
    pub(super) bounced: AtomicU64,
    /// Errands and answers that wait for room, of all links.
    pub(super) unsent: AtomicU64,
    /// A packet that is no errand's has found no room: the next is left to it.
    pub(super) turned_away: AtomicBool,
    /// Whether whoever waits for an operation looks for its end all the time.
    pub(super) spins: bool,
    /// How often a caller looks for the end of its own before it sleeps.
    pub(super) rounds: u32,
    /// One does.
    pub(super) is_looked_for: AtomicBool,
    pub(super) beats: Beats,
    /// Where the others' cards are.
    pub(super) cards: Arc<dyn Cards>,
    /// If puts and gets are the device's.
    pub(super) windows: Option<Windows>,
    /// If it also lets go of memory when a peer is lost.
    pub(super) pins: Option<Pins>,
    pub(super) joined: Joined,
}

impl Shared {
    pub(super) fn try_send(
        &self,
        link: usize,
        to: Rank,
        kind: Parcel,
        bytes: &[u8],
    ) -> Result<(), ParcelError> {
        let mut packet = heapless::Vec::<u8, { parcel::PACKET_BYTES }>::new();
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
            Err(SendError::Full) => {
                if kind != Parcel::Errand {
                    // Relaxed: a hint to whoever sends errands next.
                    self.turned_away.store(true, Ordering::Relaxed);
                }
                Err(ParcelError::Full)
            }
            Err(SendError::TooLong { .. }) => Err(ParcelError::TooLong),
            Err(SendError::Addr(error)) => {
                self.note(error, None);
                Err(ParcelError::Addr(error))
            }
        }
    }

    /// Whether a beat was sent, or need not be.
    pub(super) fn beat(&self, to: Rank, bytes: &[u8]) -> bool {
        self.try_send(0, to, Parcel::Beat, bytes) != Err(ParcelError::Full)
    }

    /// The next endpoint.
    pub(super) fn try_endpoint(&'static self) -> Option<Queue<'static>> {
        match &self.bad {
            None => self.device.try_endpoint(),
            Some(bad) => bad.try_endpoint(&self.device).map(|queue| Queue::Bad(Box::new(queue))),
        }
    }

    /// Whether it is all right to sleep until the device calls.
    pub(super) fn arm(&self, link: usize) -> bool {
        self.bad.as_ref().is_none_or(|bad| !bad.holds(link)) && self.device.arm(link)
    }

    /// A parcel has come.
    pub(super) fn arrived(&self, from: Rank, kind: Parcel, bytes: &[u8]) {
        let is_known = match (&self.handlers[kind as usize].get(), kind) {
            (Some(handle), _) => {
                let _callback = enter_callback();
                handle(from, bytes);
                true
            }
            (None, Parcel::Beat) => {
                let news = self.beats.heard(&self.member, from, bytes);
                if let Some(news) = &news {
                    self.say(news, None);
                }
                news.is_some()
            }
            (None, _) => false,
        };
        if !is_known {
            self.strays.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A word of this rank was changed from elsewhere by a notifying
    /// operation.
    pub(super) fn rang(&self, word: LocalAddr) {
        if let Some(handle) = self.bell.get() {
            handle(word);
        }
    }

    /// An operation has failed: if its peer is lost, all are told.
    #[cold]
    pub(super) fn note(&self, error: AddrError, failure: Option<Failure>) {
        if let AddrError::PeerLost { rank } = error
            && !self.member.is_near(rank)
            && self.member.declare_lost(rank)
        {
            let untold = || self.cards.why(rank).map(|why| why.to_string());
            let why = failure.map(|failure| failure.to_string()).or_else(untold);
            self.say(&[rank], why);
        }
    }

    /// Names ranks of another node that are lost.
    pub(super) fn say(&self, ranks: &[Rank], why: Option<String>) {
        let Some(first) = ranks.first() else { return };
        let names: Vec<String> = ranks.iter().take(NAMES_MAX).map(Rank::to_string).collect();
        let more = if ranks.len() > NAMES_MAX { ", ..." } else { "" };
        let node = self.member.nodes().place(*first).map(|place| place.node);
        let host = node.and_then(|node| self.cards.host_of(node));
        let host = host.map_or(String::new(), |host| format!(" on {host}"));
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        // One write, so that it does not mix with what ranks print.
        let line = format!("tsumugi: {}{more}{host}: no answer, lost{why}\n", names.join(", "));
        eprint!("{line}");
    }

    /// Tells the device of the dead that it does not know.
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
                Gone::Rank(rank) => self.device.strike(rank),
                Gone::Node(node) => {
                    self.member.nodes().ranks_of(node).for_each(|rank| self.device.strike(rank));
                }
            }
        }
        self.gone_count.store(count, Ordering::Relaxed);
    }
}

/// Of ranks, in one line.
const NAMES_MAX: usize = 8;
