//! Trials of packets: sent, injected, and sent to a target that sleeps; and a put
//! to a target that sleeps.

use super::super::sys::*;
use super::{LIMIT, OfiTestbed, SLEEPER_LIMIT};
use crate::net::{LocalBuffer, TrialResult};
use core::ffi::c_int;
use std::time::Instant;

impl OfiTestbed {
    /// Tries a packet from one endpoint to the other; or, with `woken`, that its
    /// arrival makes the descriptor of the queue readable.
    pub(super) fn packet(&mut self, woken: bool) -> TrialResult {
        let event = self.b.event();
        if woken && event.is_none() {
            return TrialResult::Refused(EOPNOTSUPP);
        }
        if let Err(verdict) = self.await_packet() {
            return verdict;
        }
        let asleep = woken && self.b.try_wait();
        if woken && !asleep {
            return TrialResult::Refused(EAGAIN);
        }
        let (local, peer) = (self.here(0), self.remote.peer);
        Self::set_word(local.at, 8, 0x5151);
        // SAFETY: the local end is the testbed's own.
        let sent =
            self.run(LIMIT, !woken, &mut |a, context| unsafe { a.send(local, 8, peer, context) });
        if let Err(verdict) = sent {
            return verdict;
        }
        if let (true, Some(fd)) = (asleep, event) {
            let mut fd = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one descriptor, which the endpoint keeps open.
            if unsafe { libc::poll(&mut fd, 1, LIMIT.as_millis() as c_int) } != 1 {
                return TrialResult::Silent;
            }
        }
        self.judge(Ok(()), |testbed| testbed.settles(512, 8, 0x5151))
    }

    /// Tries a packet of which the bytes are overwritten as soon as it was sent.
    pub(super) fn given(&mut self) -> TrialResult {
        if let Err(verdict) = self.await_packet() {
            return verdict;
        }
        let (peer, start) = (self.remote.peer, Instant::now());
        loop {
            let mut bytes = 0x6262u64.to_ne_bytes();
            let answer = self.a.inject_packet(&bytes, peer) as c_int;
            bytes.fill(0);
            core::hint::black_box(&bytes);
            match answer {
                0 => break,
                code if code != -EAGAIN => return TrialResult::Refused(-code),
                _ if start.elapsed() > LIMIT => return TrialResult::Silent,
                _ => {}
            }
            if let Err(verdict) = self.turn(core::ptr::null_mut(), true) {
                return verdict;
            }
        }
        self.judge(Ok(()), |testbed| testbed.settles(512, 8, 0x6262))
    }

    /// Posts a receive buffer at the target.
    fn await_packet(&mut self) -> Result<(), TrialResult> {
        let into = LocalBuffer {
            at: self.there.wrapping_add(512),
            desc: self.mrs[1].as_ref().map_or(core::ptr::null_mut(), |mr| mr.desc),
        };
        let awaited = self.context();
        // SAFETY: the testbed's own memory.
        match unsafe { self.b.receive(into, 64, awaited) } {
            0 => Ok(()),
            answer => Err(TrialResult::Refused(-answer as i32)),
        }
    }

    /// Tries a put to a target that does not poll.
    pub(super) fn sleeper(&mut self) -> TrialResult {
        let (local, remote) = (self.here(0), self.remote(64));
        Self::set_word(local.at, 8, 0xabcd);
        let done = self.run(SLEEPER_LIMIT, false, &mut |a, context| {
            // SAFETY: both ends are the testbed's own.
            unsafe { a.write(local, 8, remote, context, 0) }
        });
        match done {
            Ok(()) if self.word(64, 8) == 0xabcd => TrialResult::Works,
            Ok(()) => TrialResult::Wrong,
            Err(verdict) => verdict,
        }
    }
}
