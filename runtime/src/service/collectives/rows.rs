//! The rows of a group on one node: each member publishes short values in its own,
//! and reads them in those of others.

use super::row_table::RowPlace;
use super::service::Collectives;
use std::fmt;
use std::sync::Arc;
use tsumugi_core::coll::row::{CellRow, RowMemory, RowSeat, RowWait};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::AtomicU64;
use tsumugi_core::wait::Reason;
use tsumugi_ult::SystemFutex;

/// The rows of one group, as one member uses them.
pub(super) struct GroupRows {
    service: Arc<Collectives>,
    seat: RowSeat,
    members: Box<[RowPlace]>,
    /// Which of this rank's rows it is.
    index: usize,
}

impl GroupRows {
    /// The rows `index` of the members, if all of them are on this node.
    pub(super) fn new(
        service: &Arc<Collectives>,
        members: impl ExactSizeIterator<Item = Rank>,
        me: u32,
        (index, base): (usize, u64),
    ) -> Option<Self> {
        let size = members.len() as u32;
        if !(2..=CellRow::MEMBERS_MAX).contains(&size) {
            return None;
        }
        let nodes = service.member().nodes();
        let here = nodes.place(service.member().rank())?.node;
        let place = |rank| {
            let at = nodes.place(rank).filter(|at| at.node == here)?.local;
            Some(RowPlace::new(service.member(), at, index))
        };
        let members: Box<[RowPlace]> = members.map(place).collect::<Option<_>>()?;
        let service = service.clone();
        let seat = RowSeat::new(me, size, base, &Members { service: &service, places: &members });
        Some(Self { service, seat, members, index })
    }

    /// The member's seat.
    pub(super) fn seat(&self) -> &RowSeat {
        &self.seat
    }

    /// The memory of all members.
    pub(super) fn memory(&self) -> impl RowMemory {
        Members { service: &self.service, places: &self.members }
    }

    /// Waits, or finds that a rank has died. `reason` is for reports.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died.
    pub(super) fn wait(&self, wait: RowWait, reason: Reason) -> Result<(), AddrError> {
        let memory = self.memory();
        let (word, until) = self.seat.word(&memory, wait);
        let words = self.service.word_wait();
        if words.look(word, until) {
            return Ok(());
        }
        self.service.rows().note_wait(self.index, reason);
        self.seat.watch(&memory, wait);
        let slept = words.sleep(word, until);
        self.seat.unwatch(&memory, wait);
        slept
    }
}

impl Drop for GroupRows {
    fn drop(&mut self) {
        let (members, number) = (self.members.clone(), self.seat.last_number());
        self.service.rows().leave(self.index, members, number);
    }
}

struct Members<'g> {
    service: &'g Collectives,
    places: &'g [RowPlace],
}

impl RowMemory for Members<'_> {
    #[inline]
    fn row(&self, member: u32) -> &CellRow {
        self.places[member as usize].row()
    }

    #[cold]
    fn wake(&self, member: u32, at: &AtomicU64) {
        let place = self.places[member as usize].place();
        self.service.word_wait().wake(place, at);
        // For a collective that was begun no thread sleeps: a worker or the helper looks
        // after it.
        self.service.member().space().control(place).bells().ring_helped(&SystemFutex, || ());
    }
}

impl fmt::Debug for GroupRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupRows({} of {} members)", self.index, self.members.len())
    }
}
