//! The initiators (DCI) of a wire: lent to a connection while it has requests under way.

use super::super::connection::ConnectionState;
use super::super::dct::DctTarget;
use super::super::sys::*;
use super::VerbsWire;
use core::ffi::c_int;

impl VerbsWire {
    /// The number by which any peer reaches this wire; 0: none can.
    pub(in crate::verbs) fn target(&self) -> u32 {
        self.target.as_ref().map_or(0, DctTarget::number)
    }

    /// Opens a connection with a spare initiator, or with a new one.
    pub(in crate::verbs) fn take_dci(&mut self, at: u32) -> Result<(), c_int> {
        let qp = match self.spare_dcis.pop() {
            Some(qp) => qp,
            None => {
                let qp = self.device.create_dci(&self.qp_params)?;
                self.qps += 1;
                self.counters.pairs_made += 1;
                qp
            }
        };
        let connection = &mut self.connections[at as usize];
        (connection.qp, connection.is_dci, connection.state) = (qp, true, ConnectionState::Open);
        Ok(())
    }

    /// Ends an initiator that no connection has.
    pub(in crate::verbs) fn destroy_dci(&mut self, qp: *mut ibv_qp) {
        self.device.destroy_qp(qp);
        self.qps -= 1;
        self.counters.pairs_closed += 1;
    }
}
