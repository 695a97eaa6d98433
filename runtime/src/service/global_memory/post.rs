//! Carries out the machine's operations: those on this node by the driving thread,
//! those on other nodes through the network.

use super::driver::GlobalDriver;
use crate::net::JOINED_BYTES;
use tsumugi_core::backend::{LoadStore, execute, load_bytes};
use tsumugi_core::mem::AddrError;
use tsumugi_core::mem::{Need, RemoteAddr};
use tsumugi_core::op::Op;
use tsumugi_gas::machine::{MachineEvent, OutgoingOp};
use tsumugi_gas::table::Agent;

impl GlobalDriver {
    /// Carries an operation out and returns its event, or begins it on the network
    /// and returns none yet.
    pub(super) fn post(&self, out: &OutgoingOp) -> Option<MachineEvent> {
        let OutgoingOp { op, source, agent, then } = out;
        let tag = op.tag;
        if let Some(source) = source {
            if let Some(remote) =
                self.remote.as_ref().filter(|remote| !remote.is_near(op.remote.rank))
            {
                remote.begin_between(*source, op);
                return None;
            }
            return Some(MachineEvent::Completed { tag, result: self.carry_over(*source, op) });
        }
        let is_control = self.control.is_in(op.remote.key);
        let op = self.control.real(op);
        match &self.remote {
            // Memory of a device is accessed by the device on this node, too.
            Some(remote) if *agent == Agent::Device || !remote.is_near(op.remote.rank) => {
                let Some(then) = then.as_ref().map(|then| self.control.real(then)) else {
                    remote.begin(&op);
                    return None;
                };
                if *agent == Agent::Cpu && op.bytes() <= JOINED_BYTES {
                    return (!remote.begin_joined(&op, &then))
                        .then_some(MachineEvent::NotPosted(then.tag));
                }
                if remote.begin(&op) && self.keeps_order {
                    remote.begin(&then);
                    return None;
                }
                Some(MachineEvent::NotPosted(then.tag))
            }
            _ => Some(MachineEvent::Completed { tag, result: self.carry_out(&op, is_control) }),
        }
    }

    /// Copies between two ranks of this node.
    fn carry_over(&self, source: RemoteAddr, op: &Op) -> Result<u64, AddrError> {
        let bytes = op.bytes();
        let to = self.direct.resolve(op.remote, bytes, Need::Write)?;
        // SAFETY: `bytes` bytes were resolved; memory of regions is only accessed
        // as plain bytes and atomics.
        unsafe { load_bytes(&self.direct, source, to.as_ptr(), bytes as usize) }.map(|()| 0)
    }

    fn carry_out(&self, op: &Op, is_control: bool) -> Result<u64, AddrError> {
        if !(is_control && op.notify) {
            return execute(&self.direct, op);
        }
        let mut quietly = *op;
        quietly.notify = false;
        let result = execute(&self.direct, &quietly)?;
        // After the change of the word, and before the check for sleeping workers.
        execute(&self.direct, &self.control.bell_of(op.remote))?;
        self.ring(op.remote.rank);
        Ok(result)
    }
}
