//! Routing of packets: to a rank of this node by its lane in shared memory, to other
//! nodes by post. A job of one node has lanes alone, and needs no routing.

use super::post::{Exposed, ParcelPost};
use super::wire::NodeWire;
use tsumugi_core::mem::PeerIndex;
use tsumugi_core::msg::{Copy, INLINE_WORDS, LaneTransport, Offer, Packet, PacketLoad, Returned};

/// The wire of a rank's machine in a job of several nodes; it names peers by their indices.
#[derive(Debug)]
pub(crate) struct JobWire<'w> {
    pub(crate) near: &'w mut NodeWire,
    pub(crate) post: &'w mut ParcelPost,
}

/// Runs code with `$machine` on its `$wire`, and then sends the parcels for other
/// nodes.
macro_rules! on_wire {
    ($state:expr, |$machine:ident, $wire:ident| $body:expr) => {{
        let MessageState { machine: $machine, near, post, .. } = &mut *$state;
        match post {
            None => {
                let $wire = near;
                $body
            }
            Some(post) => $crate::service::messages::route::aside(|| {
                let $wire = &mut $crate::service::messages::route::JobWire { near, post };
                let result = $body;
                post.flush();
                result
            }),
        }
    }};
}
pub(crate) use on_wire;

/// Calls a function out of line, so that the code for jobs of one node has all
/// registers to itself.
#[cold]
#[inline(never)]
pub(crate) fn aside<R>(something: impl FnOnce() -> R) -> R {
    something()
}

impl LaneTransport for JobWire<'_> {
    #[inline(always)]
    fn has_room(&mut self, to: PeerIndex, lines: u32) -> bool {
        match self.post.near(to) {
            Some(near) => self.near.has_room(near, lines),
            None => self.post.mail_to(to).has_room(to, lines),
        }
    }

    #[inline(always)]
    fn push(&mut self, to: PeerIndex, packet: &Packet, load: PacketLoad) {
        match self.post.near(to) {
            Some(near) => self.near.push(near, packet, load),
            None => self.post.push(to, packet, load),
        }
    }

    #[inline(always)]
    fn peek(&mut self, from: PeerIndex) -> Option<Packet> {
        match self.post.near(from) {
            Some(near) => self.near.peek(near),
            None => self.post.mail().peek(from),
        }
    }

    #[inline(always)]
    fn deliver(&mut self, from: PeerIndex, at: u64, len: u64) {
        match self.post.near(from) {
            Some(near) => self.near.deliver(near, at, len),
            None => self.post.mail().deliver(from, at, len, &mut Exposed),
        }
    }

    #[inline]
    fn keep(&mut self, from: PeerIndex, into: &mut [u64; INLINE_WORDS]) {
        match self.post.near(from) {
            Some(near) => self.near.keep(near, into),
            None => self.post.mail().keep(from, into),
        }
    }

    #[inline]
    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        self.near.deliver_kept(kept, at, len);
    }

    #[inline]
    fn offer(&mut self, from: PeerIndex) -> Offer {
        match self.post.near(from) {
            Some(near) => self.near.offer(near),
            None => self.post.mail().offer(from),
        }
    }

    #[inline(always)]
    fn pop(&mut self, from: PeerIndex) {
        match self.post.near(from) {
            Some(near) => self.near.pop(near),
            None => self.post.mail().pop(from),
        }
    }

    fn returned(&mut self, to: PeerIndex) -> Returned {
        match self.post.near(to) {
            Some(near) => self.near.returned(near),
            None => self.post.mail().returned(to),
        }
    }

    fn give_back(&mut self, from: PeerIndex, returned: Returned) -> bool {
        match self.post.near(from) {
            Some(near) => self.near.give_back(near, returned),
            None => self.post.mail().give_back(from, returned),
        }
    }

    #[inline(always)]
    fn untold(&mut self, from: PeerIndex) -> u32 {
        match self.post.near(from) {
            Some(near) => self.near.untold(near),
            None => self.post.mail().untold(from),
        }
    }

    fn set_starved(&mut self, to: PeerIndex) {
        match self.post.near(to) {
            Some(near) => self.near.set_starved(near),
            None => self.post.mail().set_starved(to),
        }
    }

    #[inline(always)]
    fn is_starved(&mut self, from: PeerIndex) -> bool {
        match self.post.near(from) {
            Some(near) => self.near.is_starved(near),
            None => self.post.mail().is_starved(from),
        }
    }

    fn fence(&mut self) {
        self.near.fence();
    }

    fn ring(&mut self, from: PeerIndex) {
        // A remote rank sees the parcel itself.
        if let Some(near) = self.post.near(from) {
            self.near.ring(near);
        }
    }

    fn write_slots(&mut self, to: PeerIndex, slots: u32, at: u64, len: u64) {
        match self.post.near(to) {
            Some(near) => self.near.write_slots(near, slots, at, len),
            None => self.post.mail().write_slots(to, slots, at, len, &mut Exposed),
        }
    }

    fn read_slots(&mut self, from: PeerIndex, slots: u32, at: u64, len: u64) {
        match self.post.near(from) {
            Some(near) => self.near.read_slots(near, slots, at, len),
            None => self.post.mail().read_slots(from, slots, at, len, &mut Exposed),
        }
    }

    fn split_to(&mut self, to: PeerIndex, id: u32) -> bool {
        self.post.near(to).is_some_and(|near| self.near.split_to(near, id))
    }

    fn split_from(&mut self, from: PeerIndex, id: u32) -> bool {
        self.post.near(from).is_some_and(|near| self.near.split_from(near, id))
    }

    #[inline]
    fn copy(&mut self, copy: &Copy) {
        self.near.copy(copy);
    }

    fn come(&mut self, at: u64, len: u64) {
        self.near.come(at, len);
    }
}
