//! Messages of a collective in which each member knows with whom it has to do: they begin
//! together, and the collective has ended when all of them have. Collectives of neighbours in a
//! topology and those between two groups are made of them.
//!
//! The messages have the context of agreements, and their tags name the communicator, so that
//! no receive of the program takes one.

use crate::fault::Answer;
use tsumugi_core::mem::Rank;
use tsumugi_core::msg::Label;
use tsumugi_runtime::service::messages::{Messages, Source, Tags, Under, pattern};

/// An edge to another rank, or from it. Several between the same two ranks have slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Edge {
    pub(crate) rank: Rank,
    pub(crate) slot: u16,
}

/// Edges to other ranks, in the order of their blocks. `None` is a place where no rank is.
pub(crate) type Edges = Vec<Option<Edge>>;

/// Messages that have not begun yet.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    sends: Vec<Letter>,
    receives: Vec<Letter>,
}

#[derive(Debug)]
struct Letter {
    edge: Edge,
    at: *mut u8,
    bytes: usize,
}

/// Messages that have begun.
#[derive(Debug, Default)]
pub(crate) struct Exchanging(Vec<Under>);

impl Exchange {
    /// Adds a message to another rank. Its bytes stay until the end.
    pub(crate) fn send(&mut self, edge: Edge, at: *mut u8, bytes: usize) {
        self.sends.push(Letter { edge, at, bytes });
    }

    /// Adds a message of another rank. Its memory stays until the end.
    pub(crate) fn receive(&mut self, edge: Edge, at: *mut u8, bytes: usize) {
        self.receives.push(Letter { edge, at, bytes });
    }

    /// Begins all of them, in the context of agreements, for a communicator of this context.
    pub(crate) fn begin(
        self,
        agreements: u16,
        context: u16,
        messages: &Messages,
    ) -> Answer<Exchanging> {
        let mut all = Exchanging(Vec::with_capacity(self.sends.len() + self.receives.len()));
        let begun = self.begin_each(agreements, context, messages, &mut all.0);
        if begun.is_err() {
            // Before the memory goes.
            all.0.iter().for_each(|under| messages.cancel(*under));
            let _ = all.finish(messages);
            begun?;
            return Ok(Exchanging::default());
        }
        Ok(all)
    }

    fn begin_each(
        self,
        agreements: u16,
        context: u16,
        messages: &Messages,
        all: &mut Vec<Under>,
    ) -> Answer {
        for Letter { edge, at, bytes } in self.receives {
            let tag = Tags::Is(tag(context, edge.slot));
            let from = pattern(agreements, Source::Is(edge.rank), tag);
            // SAFETY: the contract of the collective, whose caller keeps the memory.
            all.push(unsafe { messages.begin_receive(from, at, bytes) }?);
        }
        for Letter { edge, at, bytes } in self.sends {
            let label = Label { context: agreements, tag: tag(context, edge.slot) };
            // SAFETY: the same.
            all.push(unsafe { messages.begin_send(edge.rank, label, at, bytes) }?);
        }
        Ok(())
    }
}

impl Exchanging {
    pub(crate) fn of(messages: Vec<Under>) -> Self {
        Self(messages)
    }

    /// Whether all have ended; moves them on. Never waits.
    pub(crate) fn is_done(&self, messages: &Messages) -> bool {
        self.0.iter().all(|under| messages.is_done(*under))
    }

    /// Waits until all have ended.
    pub(crate) fn finish(self, messages: &Messages) -> Answer {
        messages.wait_all(self.0.iter().copied());
        let mut result = Ok(());
        for under in self.0 {
            let ended = messages.finish(under);
            if result.is_ok() {
                result = ended.map(drop);
            }
        }
        Ok(result?)
    }
}

// SAFETY: the program leaves the memory alone until the collective has ended.
unsafe impl Send for Exchange {}

/// The tag of messages within a communicator, of which the program's tags have none.
pub(crate) fn tag(context: u16, slot: u16) -> u32 {
    1 << 31 | u32::from(slot & SLOTS) << 16 | u32::from(context)
}

/// The number of slots, less one.
pub(crate) const SLOTS: u16 = 0x7fff;
