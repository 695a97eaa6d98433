//! Which way a packet goes: to a rank of this node by its lane, to others by
//! post.

use super::neighbours::Neighbours;
use super::parcels::Parcels;
use super::post::{Bag, Exposed, Post};
use super::wire::NodeWire;
use crate::Rank;
use std::sync::Arc;
use tsumugi_core::msg::{Copy, INLINE_WORDS, Load, Offer, Packet, Returned, Shape, Wire};

/// The wire of a rank's machine, whose ranks are those of the job.
#[derive(Debug)]
pub(crate) struct JobWire {
    neighbours: Neighbours,
    near: NodeWire,
    /// If the job has other nodes.
    post: Option<Box<Post>>,
}

impl JobWire {
    pub(crate) fn new(
        neighbours: Neighbours,
        near: NodeWire,
        shape: Shape,
        parcels: Option<Arc<dyn Parcels>>,
    ) -> Self {
        let post = parcels.map(|parcels| Box::new(Post::new(shape, parcels)));
        Self { neighbours, near, post }
    }

    /// What comes from other nodes.
    pub(crate) fn bag(&self) -> Option<Arc<Bag>> {
        self.post.as_ref().map(|post| post.bag().clone())
    }

    /// The next far rank of which something has come.
    #[inline]
    pub(crate) fn poll_arrived(&mut self) -> Option<Rank> {
        self.post.as_mut()?.mail().poll_arrived()
    }

    /// Sends what waits for other nodes.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if let Some(post) = &mut self.post {
            post.flush();
        }
    }

    /// Whether something waits for the network.
    pub(crate) fn has_unsent(&self) -> bool {
        self.post.as_ref().is_some_and(|post| post.has_unsent())
    }

    /// A rank has died, and the machine was told.
    pub(crate) fn lose(&mut self, rank: Rank) {
        if let Some(post) = &mut self.post
            && self.neighbours.local(rank).is_none()
        {
            post.lose(rank);
        }
    }

    #[cold]
    fn post(&mut self) -> &mut Post {
        self.post.as_mut().expect("ranks of other nodes are reached by post")
    }
}

impl Wire for JobWire {
    #[inline(always)]
    fn has_room(&mut self, to: Rank, lines: u32) -> bool {
        match self.neighbours.local(to) {
            Some(near) => self.near.has_room(near, lines),
            None => self.post().mail_to(to).has_room(to, lines),
        }
    }

    #[inline(always)]
    fn push(&mut self, to: Rank, packet: &Packet, load: Load) {
        match self.neighbours.local(to) {
            Some(near) => self.near.push(near, packet, load),
            None => self.post().mail().push(to, packet, load, &mut Exposed),
        }
    }

    #[inline(always)]
    fn peek(&mut self, from: Rank) -> Option<Packet> {
        match self.neighbours.local(from) {
            Some(near) => self.near.peek(near),
            None => self.post().mail().peek(from),
        }
    }

    #[inline(always)]
    fn deliver(&mut self, from: Rank, at: u64, len: u64) {
        match self.neighbours.local(from) {
            Some(near) => self.near.deliver(near, at, len),
            None => self.post().mail().deliver(from, at, len, &mut Exposed),
        }
    }

    #[inline]
    fn keep(&mut self, from: Rank, into: &mut [u64; INLINE_WORDS]) {
        match self.neighbours.local(from) {
            Some(near) => self.near.keep(near, into),
            None => self.post().mail().keep(from, into),
        }
    }

    #[inline]
    fn deliver_kept(&mut self, kept: &[u64; INLINE_WORDS], at: u64, len: u64) {
        self.near.deliver_kept(kept, at, len);
    }

    #[inline]
    fn offer(&mut self, from: Rank) -> Offer {
        match self.neighbours.local(from) {
            Some(near) => self.near.offer(near),
            None => self.post().mail().offer(from),
        }
    }

    #[inline(always)]
    fn pop(&mut self, from: Rank) {
        match self.neighbours.local(from) {
            Some(near) => self.near.pop(near),
            None => self.post().mail().pop(from),
        }
    }

    fn returned(&mut self, to: Rank) -> Returned {
        match self.neighbours.local(to) {
            Some(near) => self.near.returned(near),
            None => self.post().mail().returned(to),
        }
    }

    fn give_back(&mut self, from: Rank, returned: Returned) -> bool {
        match self.neighbours.local(from) {
            Some(near) => self.near.give_back(near, returned),
            None => self.post().mail().give_back(from, returned),
        }
    }

    #[inline(always)]
    fn untold(&mut self, from: Rank) -> u32 {
        match self.neighbours.local(from) {
            Some(near) => self.near.untold(near),
            None => self.post().mail().untold(from),
        }
    }

    fn set_starved(&mut self, to: Rank) {
        match self.neighbours.local(to) {
            Some(near) => self.near.set_starved(near),
            None => self.post().mail().set_starved(to),
        }
    }

    #[inline(always)]
    fn is_starved(&mut self, from: Rank) -> bool {
        match self.neighbours.local(from) {
            Some(near) => self.near.is_starved(near),
            None => self.post().mail().is_starved(from),
        }
    }

    fn fence(&mut self) {
        self.near.fence();
    }

    fn ring(&mut self, from: Rank) {
        // A far rank sees the parcel that comes.
        if let Some(near) = self.neighbours.local(from) {
            self.near.ring(near);
        }
    }

    fn write_slots(&mut self, to: Rank, slots: u32, at: u64, len: u64) {
        match self.neighbours.local(to) {
            Some(near) => self.near.write_slots(near, slots, at, len),
            None => self.post().mail().write_slots(to, slots, at, len, &mut Exposed),
        }
    }

    fn read_slots(&mut self, from: Rank, slots: u32, at: u64, len: u64) {
        match self.neighbours.local(from) {
            Some(near) => self.near.read_slots(near, slots, at, len),
            None => self.post().mail().read_slots(from, slots, at, len, &mut Exposed),
        }
    }

    #[inline]
    fn copy(&mut self, copy: &Copy) {
        self.near.copy(copy);
    }
}
