//! The active side of connections: connections opened on first use, closed to make room,
//! ended by errors.

use super::super::cm::CmKind;
use super::super::connection::{Connection, ConnectionState, UNUSED_MAX};
use super::super::sys::*;
use super::VerbsWire;
use crate::net::CompletionStatus;
use core::ffi::c_int;
use core::ptr::null_mut;
use libc::{EACCES, EHOSTUNREACH, EINPROGRESS, EIO, ETIMEDOUT};
use std::time::{Duration, Instant};

impl VerbsWire {
    /// Opens a connection, or returns why it is not open.
    #[cold]
    pub(in crate::verbs) fn try_open(&mut self, peer: u64) -> Result<(), c_int> {
        let at = peer as u32;
        match self.connections[at as usize].state {
            ConnectionState::Open => Ok(()),
            ConnectionState::Idle => self.start_connect(at).and_then(|()| self.is_open(at)),
            ConnectionState::Unanswered { since } if since.elapsed() > RETRY_AFTER => {
                self.connections[at as usize].state = ConnectionState::Idle;
                self.start_connect(at).and_then(|()| self.is_open(at))
            }
            ConnectionState::Unanswered { .. } | ConnectionState::PeerDead => Err(EHOSTUNREACH),
            ConnectionState::Opening { .. }
            | ConnectionState::Draining
            | ConnectionState::Failed(_) => Err(EINPROGRESS),
        }
    }

    /// Checks whether the connection is open: one that needs no message is open at once.
    fn is_open(&self, at: u32) -> Result<(), c_int> {
        match self.connections[at as usize].state {
            ConnectionState::Open => Ok(()),
            _ => Err(EINPROGRESS),
        }
    }

    fn start_connect(&mut self, at: u32) -> Result<(), c_int> {
        if self.full_since.is_some_and(|since| since.elapsed() < UNUSED_MAX) {
            return Ok(());
        }
        if self.spare_dcis.is_empty() && self.qps >= self.pairs_max && !self.close_least_used() {
            self.full_since = Some(Instant::now());
            return Ok(());
        }
        let connection = &mut self.connections[at as usize];
        if connection.ah.is_null() {
            connection.ah = self.device.create_ah(&connection.address)?;
        }
        if self.device.reaches_by_dct(&connection.address) {
            return self.take_dci(at);
        }
        if self.qps >= self.pairs_max
            && let Some(qp) = self.spare_dcis.pop()
        {
            self.destroy_dci(qp);
        }
        let connection = &mut self.connections[at as usize];
        connection.qp = self.device.create_qp(&self.qp_params, true)?;
        self.attempt += 1;
        connection.attempt = self.attempt;
        let now = Instant::now();
        connection.state = ConnectionState::Opening { since: now, sent_at: now };
        self.qps += 1;
        self.connecting += 1;
        self.counters.pairs_made += 1;
        self.send_cm(CmKind::ConnectRequest, at);
        Ok(())
    }

    /// Closes the least recently used connection; returns false if a connection must
    /// first complete its requests.
    fn close_least_used(&mut self) -> bool {
        let now = Instant::now();
        let open = |connection: &&mut Connection| {
            matches!(connection.state, ConnectionState::Open | ConnectionState::Draining)
                && !connection.is_unused(now)
        };
        let all = self.connections.iter_mut().enumerate();
        let by_use = |(_, connection): &(usize, &mut Connection)| {
            (connection.in_flight > 0, connection.used)
        };
        let Some((at, connection)) =
            all.filter(|(_, connection)| open(connection)).min_by_key(by_use)
        else {
            return false;
        };
        if connection.in_flight > 0 {
            connection.state = ConnectionState::Draining;
            return false;
        }
        self.close(at as u32);
        true
    }

    /// Closes a connection that has no requests under way.
    fn close(&mut self, at: u32) {
        let connection = &mut self.connections[at as usize];
        let was = core::mem::replace(&mut connection.state, ConnectionState::Idle);
        if !connection.is_dci {
            self.destroy_qp(at);
            self.send_cm(CmKind::Disconnect, at);
        } else if matches!(was, ConnectionState::Failed(_)) {
            self.destroy_qp(at);
        } else {
            self.spare_dcis.push(core::mem::replace(&mut connection.qp, null_mut()));
            self.full_since = None;
        }
    }

    pub(in crate::verbs) fn destroy_qp(&mut self, at: u32) {
        let connection = &mut self.connections[at as usize];
        debug_assert_eq!(connection.in_flight, 0);
        if !connection.qp.is_null() {
            self.device.destroy_qp(connection.qp);
            connection.qp = null_mut();
            self.qps -= 1;
            self.full_since = None;
            self.counters.pairs_closed += 1;
        }
    }

    /// Closes a connection that was only waiting for the last of its requests.
    #[inline]
    pub(in crate::verbs) fn finish_draining(&mut self, at: u32) {
        let Connection { state, in_flight, .. } = self.connections[at as usize];
        if in_flight == 0 {
            match state {
                ConnectionState::Draining | ConnectionState::Failed(_) => self.close(at),
                ConnectionState::PeerDead => self.destroy_qp(at),
                _ => {}
            }
        }
    }

    /// Handles a failed request: returns how it ends, and sets how the others end.
    #[cold]
    pub(in crate::verbs) fn fail_connection(
        &mut self,
        at: u32,
        status: u32,
        vendor_error: u32,
    ) -> CompletionStatus {
        let connection = &mut self.connections[at as usize];
        let provider_code = (status | vendor_error << 8) as c_int;
        let gone = CompletionStatus::Gone { code: ETIMEDOUT, provider_code };
        match connection.state {
            ConnectionState::Failed(rest) => return rest,
            ConnectionState::PeerDead => return CompletionStatus::Again,
            _ => {}
        }
        let (this, rest) = match status {
            // The peer has refused the request and has done nothing that came after
            // it.
            IBV_WC_REM_INV_REQ_ERR | IBV_WC_REM_ACCESS_ERR | IBV_WC_REM_OP_ERR => {
                (CompletionStatus::Refused { code: EACCES, provider_code }, CompletionStatus::Again)
            }
            IBV_WC_RETRY_EXC_ERR | IBV_WC_RNR_RETRY_EXC_ERR | IBV_WC_WR_FLUSH_ERR => (gone, gone),
            // The failure is local: the requests after it may have been done.
            _ => (CompletionStatus::Refused { code: EIO, provider_code }, gone),
        };
        connection.state = ConnectionState::Failed(rest);
        self.counters.pairs_broken += 1;
        self.device.stop(connection.qp);
        this
    }

    /// Gives up a connection because its rank is dead.
    pub(in crate::verbs) fn drop_dead_peer(&mut self, at: u32) {
        let connection = &mut self.connections[at as usize];
        debug_assert!(connection.last.is_null(), "all written requests have been sent");
        if matches!(connection.state, ConnectionState::Opening { .. }) {
            self.connecting -= 1;
        }
        let (rank, qp) = (connection.rank, connection.qp);
        connection.state = ConnectionState::PeerDead;
        if !qp.is_null() {
            self.device.stop(qp);
        }
        self.finish_draining(at);
        if let Some(passive) = self.passive_qps.iter().position(|passive| passive.rank == rank) {
            self.end_passive(passive);
        }
    }

    /// Repeats the connect request of connections without a connect reply, and gives them
    /// up after the limit.
    #[cold]
    pub(in crate::verbs) fn retry_connects(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.retried) < RESEND / 4 {
            return;
        }
        self.retried = now;
        for at in 0..self.connections.len() as u32 {
            let ConnectionState::Opening { since, sent_at } = self.connections[at as usize].state
            else {
                continue;
            };
            if now.duration_since(since) > self.connect_timeout {
                self.connecting -= 1;
                self.destroy_qp(at);
                self.connections[at as usize].state = ConnectionState::Unanswered { since: now };
            } else if now.duration_since(sent_at) > RESEND {
                self.connections[at as usize].state =
                    ConnectionState::Opening { since, sent_at: now };
                self.send_cm(CmKind::ConnectRequest, at);
            }
        }
    }

    /// Ends all pairs, even with requests under way.
    pub(in crate::verbs) fn end_pairs(&mut self) {
        for connection in &mut self.connections {
            if !connection.qp.is_null() {
                self.device.destroy_qp(connection.qp);
                connection.qp = null_mut();
            }
            self.device.destroy_ah(core::mem::replace(&mut connection.ah, null_mut()));
        }
        for qp in self.spare_dcis.drain(..) {
            self.device.destroy_qp(qp);
        }
        self.connections.clear();
        while !self.passive_qps.is_empty() {
            self.end_passive(0);
        }
    }
}

/// The time until a connect request is repeated.
const RESEND: Duration = Duration::from_millis(20);

/// The time for which a rank that has not answered gets no new connect request.
const RETRY_AFTER: Duration = Duration::from_secs(1);
