//! The initiators (DCI) of a line: lent to a link while it has requests under way.

use super::super::dynamic::Target;
use super::super::link::State;
use super::super::sys::*;
use super::Line;
use core::ffi::c_int;

impl Line {
    /// The number by which any peer reaches this line; 0: none can.
    pub(in crate::verbs) fn target(&self) -> u32 {
        self.target.as_ref().map_or(0, Target::number)
    }

    /// Opens a link with a spare asker, or with a new one.
    pub(in crate::verbs) fn borrow(&mut self, at: u32) -> Result<(), c_int> {
        let qp = match self.spare.pop() {
            Some(qp) => qp,
            None => {
                let qp = self.device.make_asker(&self.terms)?;
                self.alive += 1;
                self.counts.pairs_made += 1;
                qp
            }
        };
        let link = &mut self.links[at as usize];
        (link.qp, link.lent, link.state) = (qp, true, State::Open);
        Ok(())
    }

    /// Ends an asker that no link has.
    pub(in crate::verbs) fn end_spare(&mut self, qp: *mut ibv_qp) {
        self.device.end_pair(qp);
        self.alive -= 1;
        self.counts.pairs_closed += 1;
    }
}
