//! Both lanes between this rank and a remote rank, as this rank keeps them.

use super::chunk::ChunkPlace;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::ring::{Ring, Slots, chunks_of};
use crate::msg::list::{Linked, ListLink};
use crate::msg::shape::{MessageShape, SetupError};

/// Both lanes between this rank and a remote rank.
#[derive(Debug)]
pub struct NetworkLaneEnd<'t> {
    pub(super) lane: Option<&'t mut NetworkLane<'t>>,
    pub(super) links: [ListLink; 2],
    pub(super) is_ready: bool,
    pub(super) has_arrived: bool,
    pub(super) is_lost: bool,
}

/// The lanes between two ranks, as one of the ranks keeps them.
#[derive(Debug)]
pub struct NetworkLane<'t> {
    pub(super) out: Outbox<'t>,
    pub(super) inbox: Inbox<'t>,
}

impl<'t> NetworkLane<'t> {
    /// Returns how many places for chunks a lane has.
    pub const fn places(shape: &MessageShape) -> usize {
        let (lines, slots) = chunks_of(shape);
        2 * (lines + slots) + 1
    }

    /// Makes a lane that was never used: all of its places are empty.
    ///
    /// # Errors
    ///
    /// [`SetupError::Shape`] if the shape is not valid; [`SetupError::Tables`] if there are
    /// fewer places than [`places`](Self::places).
    pub fn new(shape: &MessageShape, places: &'t mut [ChunkPlace<'t>]) -> Result<Self, SetupError> {
        if !shape.is_valid() {
            return Err(SetupError::Shape(*shape));
        }
        let (entries, needed) = (places.len(), Self::places(shape));
        if entries < needed {
            return Err(SetupError::Tables { entries, needed });
        }
        let (lines, slots) = chunks_of(shape);
        let (out_lines, rest) = places.split_at_mut(lines);
        let (out_slots, rest) = rest.split_at_mut(slots);
        let (in_lines, rest) = rest.split_at_mut(lines);
        let (in_slots, held) = rest.split_at_mut(slots);
        let ring = |places| Ring::new(shape.lines, places);
        let out = Outbox::new(ring(out_lines), Slots::new(shape, out_slots));
        let inbox = Inbox::new(ring(in_lines), Slots::new(shape, in_slots), held);
        Ok(Self { out, inbox })
    }
}

impl NetworkLaneEnd<'_> {
    /// An end that is not connected.
    pub const EMPTY: Self = Self {
        lane: None,
        links: [ListLink::NONE; 2],
        is_ready: false,
        has_arrived: false,
        is_lost: false,
    };
}

impl Linked<0> for NetworkLaneEnd<'_> {
    fn link(&mut self) -> &mut ListLink {
        &mut self.links[0]
    }
    fn next(&self) -> u32 {
        self.links[0].next()
    }
}

impl Linked<1> for NetworkLaneEnd<'_> {
    fn link(&mut self) -> &mut ListLink {
        &mut self.links[1]
    }
    fn next(&self) -> u32 {
        self.links[1].next()
    }
}
