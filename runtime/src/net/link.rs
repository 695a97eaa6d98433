//! One endpoint of the device, and the emulated operations that use it.
//!
//! ```text
//!  post ── transfer? ─► device
//!       └─ else ──────► emulated operations ─► packets
//!  poll ◄─ completions of both
//!     └── arrivals: bells and emulated operations done here, parcels handed over
//! ```
//!
//! Arrivals are first copied out of the device's packets, because their handlers may
//! send.

use super::device::Moves;
use super::device_queue::DeviceQueue;
use super::emulation::{self, EmulatedRequest, Emulation, Sent};
use super::packet::{ARRIVALS, PACKET_BYTES};
use super::parcel::{Parcel, ParcelError};
use super::shared::NetShared;
use std::collections::VecDeque;
use std::fmt;
use tsumugi_backends::PACKETS_AT_ONCE;
use tsumugi_backends::ofi::{Arrival, DeviceFailure};
use tsumugi_core::backend::{Completion, Endpoint, LoadStore, execute, store_bytes};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::mem::{LocalAddr, Need, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_core::sync::{Ordering, fence};

/// An endpoint and its emulated operations. See the module.
pub(super) struct NetLink {
    shared: &'static NetShared,
    endpoint: DeviceQueue<'static>,
    /// Whether heartbeats use this link.
    heartbeats: bool,
    moves: Moves,
    emulation: Emulation,
    unsent: usize,
    gone_seen: u32,
    bells: Vec<LocalAddr>,
    /// Parcels that have arrived: the sender, the kind, and the end of their bytes.
    parcels: Vec<(Rank, Parcel, usize)>,
    bytes: Vec<u8>,
    /// Failed operations on lost peers, until the launcher reports which rank died
    /// first.
    undecided: VecDeque<(Completion, Option<DeviceFailure>)>,
}

impl NetLink {
    /// Opens the next endpoint of the device.
    pub(super) fn new(shared: &'static NetShared) -> Self {
        let endpoint = shared.try_endpoint().expect("the device has an endpoint for each link");
        Self {
            shared,
            heartbeats: endpoint.index() == 0,
            endpoint,
            moves: shared.device.moves(),
            emulation: Emulation::new(shared.member.rank()),
            unsent: 0,
            gone_seen: 0,
            bells: Vec::with_capacity(ARRIVALS),
            parcels: Vec::with_capacity(PACKETS_AT_ONCE),
            bytes: Vec::with_capacity(PACKETS_AT_ONCE * PACKET_BYTES),
            undecided: VecDeque::new(),
        }
    }

    /// Takes all arrivals, a batch at a time; returns whether there were any. The
    /// loop ends, because the device takes in no packets between two polls.
    #[inline]
    fn receive(&mut self) -> bool {
        let mut count = self.receive_some();
        let has_come = count > 0;
        while count >= PACKETS_AT_ONCE {
            count = self.receive_some();
        }
        has_come
    }

    /// Takes one batch of arrivals, and returns how many there were.
    fn receive_some(&mut self) -> usize {
        let Self { shared, endpoint, bells, parcels, bytes, .. } = self;
        // A panic in a handler may have left bytes of the last batch.
        bytes.clear();
        let handed = endpoint.receive(&mut |arrival| match arrival {
            Arrival::Notified(word) => bells.push(word),
            Arrival::Packet { from, bytes: packet } => match Parcel::of(packet) {
                Some((kind, rest)) => {
                    bytes.extend_from_slice(rest);
                    parcels.push((from, kind, bytes.len()));
                }
                None => {
                    shared.strays.fetch_add(1, Ordering::Relaxed);
                }
            },
        });
        let count = bells.len() + parcels.len();
        if count == 0 {
            return handed;
        }
        shared.arrivals.fetch_add(count as u64, Ordering::Relaxed);
        for word in bells.drain(..) {
            let addr =
                RemoteAddr { offset: word.offset, rank: shared.member.rank(), key: word.key };
            if let Ok(at) = shared.direct.local(word, 1) {
                shared.direct.notify(addr, at);
                shared.rang(word);
            }
        }
        let mut start = 0;
        for (from, kind, end) in parcels.drain(..) {
            let parcel = &bytes[start..end];
            start = end;
            // An earlier parcel of this batch may have declared its sender lost.
            if shared.member.gone_count() > 0 && shared.is_shut_out(from, kind, parcel) {
                continue;
            }
            shared.heartbeats.saw(&shared.member, from);
            match kind {
                Parcel::Emulated => {
                    let serve = |asked: EmulatedRequest<'_>| serve(shared, asked);
                    if !self.emulation.handle(from, parcel, &shared.direct, serve) {
                        shared.strays.fetch_add(1, Ordering::Relaxed);
                    }
                }
                kind => shared.arrived(from, kind, parcel),
            }
        }
        handed
    }

    fn send(&mut self, just_come: bool) {
        let Self { shared, endpoint, emulation, .. } = self;
        // On a device that takes one packet at a time, emulated operations would take
        // each place as it comes free; all other parcels go by the link of the
        // heartbeats. The waiting emulated operations are counted in `unsent`, so a
        // thread polls again at once.
        if self.heartbeats && self.unsent > 0 && shared.turned_away.swap(false, Ordering::Relaxed) {
            return;
        }
        let link = endpoint.index();
        // Requests to suspects wait, and do not delay requests to other ranks.
        let holds = |to| endpoint.holds(to) || shared.suspects.has(to);
        emulation.send(&shared.direct, holds, just_come, |to, bytes| {
            // This is an answer: a rank that is lost needs none.
            if shared.suspects.has(to) {
                return Sent::Lost(to);
            }
            match shared.try_send(link, to, Parcel::Emulated, bytes) {
                Ok(()) => Sent::Yes,
                Err(ParcelError::Full) => Sent::Full,
                Err(ParcelError::Addr(AddrError::PeerLost { rank })) => Sent::Lost(rank),
                Err(ParcelError::TooLong | ParcelError::Addr(_)) => Sent::Lost(to),
            }
        });
        let unsent = emulation.unsent();
        if unsent != self.unsent {
            // Wraps where the count shrinks: `unsent` is a sum over the links.
            shared.unsent.fetch_add(unsent.wrapping_sub(self.unsent) as u64, Ordering::Relaxed);
            self.unsent = unsent;
        }
    }

    /// Sends heartbeats that found no room before.
    #[inline]
    fn help(&self) {
        let shared = self.shared;
        if self.heartbeats {
            shared.heartbeats.help(&shared.member, |to, word| shared.tell(to, word));
        }
    }

    fn see_losses(&mut self) {
        let count = self.shared.member.gone_count();
        if count != self.gone_seen {
            self.gone_seen = count;
            // The device ends the connections at its next poll, before an emulated
            // operation ends with an error: from then on the lost rank writes nothing.
            self.shared.see_losses();
            let member = &self.shared.member;
            let first_failure = member.first_failure().rank();
            let lost = |rank| (!member.is_alive(rank)).then_some(first_failure.unwrap_or(rank));
            self.emulation.lose(lost);
        }
    }
}

impl Endpoint for NetLink {
    fn post(&mut self, ops: &[Op]) -> usize {
        let mut taken = 0;
        while let Some(next) = ops.get(taken) {
            if self.moves.carries(next) {
                let rest = &ops[taken..];
                let count = rest.iter().take_while(|op| self.moves.carries(op)).count();
                let posted = self.endpoint.post(&rest[..count]);
                taken += posted;
                if posted < count {
                    break;
                }
            } else if self.emulation.begin(next, || self.shared.joined.take(next.along)) {
                taken += 1;
            } else {
                break;
            }
        }
        if !self.emulation.is_idle() || self.unsent > 0 {
            self.send(false);
        }
        taken
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        self.see_losses();
        let count = self.endpoint.poll(completions);
        self.polled(count, completions)
    }

    fn turn(&mut self, ops: &[Op], completions: &mut [Completion]) -> (usize, usize) {
        let is_quiet = self.emulation.is_idle() && self.unsent == 0;
        if !is_quiet || !ops.iter().all(|op| self.moves.carries(op)) {
            return (self.post(ops), self.poll(completions));
        }
        self.see_losses();
        let (taken, count) = self.endpoint.turn(ops, completions);
        (taken, self.polled(count, completions))
    }

    fn arm(&mut self) -> bool {
        self.unsent == 0 && self.undecided.is_empty() && self.endpoint.arm()
    }
}

impl NetLink {
    /// Handles what came with `count` completions of the device; returns how many
    /// completions there are with those of emulated operations.
    #[inline]
    fn polled(&mut self, count: usize, completions: &mut [Completion]) -> usize {
        self.shared.settle();
        let has_failed = completions[..count].iter().any(|completion| completion.result.is_err());
        let is_sound = !has_failed && self.undecided.is_empty();
        let count = if is_sound { count } else { self.decide(count, completions) };
        let just_come = self.receive();
        self.help();
        // Usually no operation is emulated, and the device is all.
        if self.emulation.is_idle() && self.unsent == 0 {
            return count;
        }
        self.send(just_come);
        count + self.emulation.poll(&mut completions[count..])
    }
}

impl NetLink {
    /// Sorts failed completions out: keeps those on lost peers until it is known
    /// which rank their errors name. Returns how many completions are left,
    /// including kept ones that can be handed over now.
    #[cold]
    fn decide(&mut self, count: usize, completions: &mut [Completion]) -> usize {
        let before = self.undecided.len();
        let failure = self.endpoint.last_failure();
        let mut ready = 0;
        for at in 0..count {
            let completion = completions[at];
            if let Err(AddrError::PeerLost { .. }) = completion.result {
                self.undecided.push_back((completion, failure));
            } else {
                completions[ready] = completion;
                ready += 1;
            }
        }
        while let Some(room) = completions.get_mut(ready)
            && let Some((completion, failure)) = self.undecided.front()
            && let Err(error) = completion.result
            && let Some(error) = self.shared.note(error, *failure)
        {
            *room = Completion { result: Err(error), ..*completion };
            self.undecided.pop_front();
            ready += 1;
        }
        // A thread polls again at once. Wraps where the count shrinks, as in `send`.
        let more = self.undecided.len().wrapping_sub(before);
        self.shared.unsent.fetch_add(more as u64, Ordering::Relaxed);
        ready
    }
}

/// Carries out a request of another node's rank on this rank's memory.
fn serve(shared: &NetShared, asked: EmulatedRequest<'_>) -> Result<u64, AddrError> {
    shared.served.fetch_add(1, Ordering::Relaxed);
    // With the rights of a peer, not of the owner.
    let check = |at: RemoteAddr, bytes: u64, need| {
        shared.member.control().regions().resolve(at, bytes, need)
    };
    let (old, rang) = match asked {
        EmulatedRequest::Word(op) => {
            let need = if op.writes() { Need::Write } else { Need::Read };
            check(op.remote, op.bytes(), need)?;
            (execute(&shared.direct, &op)?, op.notify.then_some(op.remote))
        }
        EmulatedRequest::Put(to, bytes, notify) => {
            let at = check(to, bytes.len() as u64, Need::Write)?;
            store_bytes(&shared.direct, to, bytes)?;
            if notify {
                // SeqCst: after the bytes, and before the check of the waiters.
                fence(Ordering::SeqCst);
                shared.direct.notify(to, at);
            }
            (0, notify.then_some(to))
        }
        EmulatedRequest::Joined(to, bytes, op) => {
            check(op.remote, op.bytes(), Need::Write)?;
            check(to, bytes.len() as u64, Need::Write)?;
            store_bytes(&shared.direct, to, bytes)?;
            // Release: the bytes land before the word changes; pairs with the
            // Acquire of the thread that reads the word.
            fence(Ordering::Release);
            (execute(&shared.direct, &op)?, op.notify.then_some(op.remote))
        }
        EmulatedRequest::Get(from, bytes) => (check(from, bytes, Need::Read).map(|_| 0)?, None),
    };
    if let Some(RemoteAddr { offset, key, .. }) = rang {
        shared.rang(LocalAddr { offset, key });
    }
    Ok(old)
}

impl fmt::Debug for NetLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NetLink({:?}, {} unsent)", self.endpoint, self.unsent)
    }
}

/// Bytes that a link keeps in memory besides itself.
pub fn footprint() -> usize {
    let parcels = PACKET_BYTES + size_of::<(Rank, Parcel, usize)>();
    let arrivals = ARRIVALS * size_of::<LocalAddr>() + PACKETS_AT_ONCE * parcels;
    arrivals + emulation::footprint()
}
