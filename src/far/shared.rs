//! What the links, the watch and callers have in common: the device, and what
//! parcels, bells and losses do to this rank.

use super::bad::Bad;
use super::beat::{self, Beats, Word};
use super::device::{Device, Queue};
use super::joined::Joined;
use super::network::Cards;
use super::parcel::{self, Handler, Parcel, ParcelError};
use super::pin::Pins;
use super::silence::Verdict;
use super::suspect::Suspects;
use super::window::Windows;
use crate::{AddrError, Rank};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tsumugi_backends::ofi::{Failure, SendError};
use tsumugi_core::mem::LocalAddr;
use tsumugi_core::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tsumugi_pvas::partition::Gone;
use tsumugi_pvas::{Direct, Member};
use tsumugi_ult::callback;

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
    /// Lost, it seems, while the launcher is to say who has died.
    pub(super) suspects: Suspects,
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
            // While it is not known who has died there is no room for it.
            Err(SendError::Addr(error)) => {
                Err(self.note(error, None).map_or(ParcelError::Full, ParcelError::Addr))
            }
        }
    }

    /// Whether that was sent, or need not be.
    pub(super) fn tell(&self, to: Rank, word: Word<'_>) -> bool {
        match word {
            Word::Beat(bytes) => {
                self.try_send(0, to, Parcel::Beat, bytes) != Err(ParcelError::Full)
            }
            Word::GivenUp(bytes) => {
                // The device is to know that it is lost.
                self.see_losses();
                let packet = [&[Parcel::GivenUp as u8], bytes].concat();
                self.device.tell_lost(to, &packet) != Err(SendError::Full)
            }
        }
    }

    /// Whether a rank was declared lost here: nothing of it is let in any more.
    #[cold]
    pub(super) fn is_shut_out(&self, from: Rank, kind: Parcel, bytes: &[u8]) -> bool {
        if self.member.is_alive(from) {
            return false;
        }
        self.beats.saw_late(&self.member, from);
        if kind == Parcel::GivenUp {
            self.given_up(from, bytes);
        }
        self.strays.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Another node has given this one up, it says: whether that makes sense.
    fn given_up(&self, by: Rank, bytes: &[u8]) -> bool {
        let Some(verdict) = self.beats.told(&self.member, by, bytes) else { return false };
        let after = beat::parse_told(bytes);
        if let (Verdict::Ends, Some(after)) = (verdict, after) {
            let (own, seconds) = (self.member.rank(), f64::from(after) / 1000.0);
            // The others of this node end with it.
            self.member.declare_lost(own);
            let line = format!(
                "tsumugi: {own}: this rank was given up by {by} after {seconds} s of silence\n"
            );
            eprint!("{line}");
            // SAFETY: a plain call. Nothing is torn down: whatever this rank does
            // next would be done for a job that goes on without it.
            unsafe { libc::_exit(GIVEN_UP_CODE) };
        }
        true
    }

    /// Names ranks that were lost by silence.
    pub(super) fn say_silent(&self, ranks: &[Rank]) {
        let limit = self.beats.given_up_after().as_secs_f64();
        self.say(ranks, Some(format!("after {limit} s of silence")));
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
                callback(|| handle(from, bytes));
                true
            }
            (None, Parcel::Beat) => {
                let news = self.beats.heard(&self.member, from, bytes);
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

    /// A word of this rank was changed from elsewhere by a notifying
    /// operation.
    pub(super) fn rang(&self, word: LocalAddr) {
        if let Some(handle) = self.bell.get() {
            handle(word);
        }
    }

    /// An operation has failed: if its peer is lost, all are told. What its caller
    /// gets: a connection that closes may be that of a rank which ends because of
    /// another one, and then the error names that one. `None`: the launcher is still
    /// to say which; whoever asks holds locks, and asks again later. That peer is
    /// lost all the same, see [`settle`](Self::settle).
    #[cold]
    pub(super) fn note(&self, error: AddrError, failure: Option<Failure>) -> Option<AddrError> {
        let AddrError::PeerLost { rank } = error else { return Some(error) };
        let culprit = self.member.culprit();
        if culprit.is_awaited() {
            self.suspects.add(rank, failure);
            return None;
        }
        let culprit = culprit.rank();
        let is_news = !self.member.is_near(rank) && self.member.declare_lost(rank);
        if is_news && culprit.is_none() {
            let untold = || self.cards.why(rank).map(|why| why.to_string());
            let why = failure.map(|failure| failure.to_string()).or_else(untold);
            self.say(&[rank], why);
        }
        Some(culprit.map_or(error, |rank| AddrError::PeerLost { rank }))
    }

    /// Declares peers lost whose loss was noted while the launcher was to say who has
    /// died, if it has, or its time is over.
    #[inline]
    pub(super) fn settle(&self) {
        if self.suspects.has_some() && !self.member.culprit().is_awaited() {
            for (rank, failure) in self.suspects.take() {
                self.note(AddrError::PeerLost { rank }, failure);
            }
        }
    }

    /// Names ranks of a node that are lost.
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

/// As the system calls it.
fn own_host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned())
}

/// What a rank ends with that others have given up.
const GIVEN_UP_CODE: i32 = 1;
/// Of ranks, in one line.
const NAMES_MAX: usize = 8;
