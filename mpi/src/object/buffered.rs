//! Buffered sends: the library copies the data, as far as the program has given it room.

use crate::abi;
use crate::fault::{Answer, need};
use crate::object::backlog::Backlog;
use crate::object::table::lock;
use std::ffi::c_void;
use std::sync::Mutex;
use tsumugi::MessageError;
use tsumugi_runtime::service::messages::{Messages, Under};

/// The buffer that the program has attached, and the sends that use it. The library keeps
/// the copies elsewhere, so the buffer only says how many bytes they may have.
#[derive(Default)]
pub(crate) struct Buffered(Mutex<BufferState>);

#[derive(Default)]
struct BufferState {
    attached: Option<Attached>,
    sends: Backlog<Sent>,
    /// The bytes of the buffer that are in use.
    used: usize,
}

/// A send, and the copy that it sends.
type Sent = (Under, Vec<u8>);

#[derive(Clone, Copy)]
struct Attached {
    at: usize,
    bytes: usize,
    is_endless: bool,
}

impl Buffered {
    /// Attaches a buffer; there may be one.
    pub(crate) fn attach(&self, at: *mut c_void, bytes: usize) -> Answer {
        let mut state = lock(&self.0);
        need!(state.attached.is_none(), abi::ERR_BUFFER, "a buffer is attached already");
        let is_endless = at.addr() == abi::BUFFER_AUTOMATIC.addr();
        state.attached = Some(Attached { at: at.expose_provenance(), bytes, is_endless });
        Ok(())
    }

    /// Takes the buffer back, and returns its address and length. Blocks until its sends have
    /// ended.
    pub(crate) fn detach(&self, messages: &Messages) -> (usize, usize) {
        self.drain(messages);
        lock(&self.0).attached.take().map_or((0, 0), |attached| (attached.at, attached.bytes))
    }

    /// Whether the program has attached a buffer.
    pub(crate) fn is_attached(&self) -> bool {
        lock(&self.0).attached.is_some()
    }

    /// All sends that have not ended, with their bytes, which are to be kept until then.
    pub(crate) fn take(&self) -> (Vec<Under>, Vec<Vec<u8>>) {
        lock(&self.0).let_go(Backlog::take).into_iter().unzip()
    }

    /// Sends a copy: `begin` begins the send of the bytes at an address, which stay there until it
    /// has ended.
    pub(crate) fn send(
        &self,
        messages: &Messages,
        bytes: Vec<u8>,
        begin: impl FnOnce(*const u8, usize) -> Result<Under, MessageError>,
    ) -> Answer {
        let (needed, len) = (cost(&bytes), bytes.len());
        self.reserve(messages, needed, len)?;
        let begun = begin(bytes.as_ptr(), len);
        let mut state = lock(&self.0);
        match begun {
            Ok(under @ Under::Way(..)) => state.sends.add((under, bytes)),
            _ => state.used -= needed,
        }
        begun?;
        Ok(())
    }

    /// Takes so many bytes of the buffer, for a message of `len` bytes. Lets go of some sends that
    /// have ended, and of all of them if there is no room otherwise.
    fn reserve(&self, messages: &Messages, needed: usize, len: usize) -> Answer {
        let (ended, room) = {
            let mut state = lock(&self.0);
            let mut ended = state.let_go(|sends| sends.look(ended_by(messages)));
            if state.room() < needed {
                ended.append(&mut state.let_go(|sends| sends.look_at_all(ended_by(messages))));
            }
            let room = state.room();
            if needed <= room {
                state.used += needed;
            }
            (ended, room)
        };
        finish(messages, ended);
        need!(
            needed <= room,
            abi::ERR_BUFFER,
            "a message of {len} bytes needs {needed} bytes of the attached buffer, which has {room}"
        );
        Ok(())
    }

    /// Lets go of all sends that have ended.
    pub(crate) fn reap(&self, messages: &Messages) {
        let ended = lock(&self.0).let_go(|sends| sends.look_at_all(ended_by(messages)));
        finish(messages, ended);
    }

    /// Waits until all sends have ended.
    pub(crate) fn drain(&self, messages: &Messages) {
        let sends = lock(&self.0).let_go(Backlog::take);
        finish(messages, sends);
    }
}

impl BufferState {
    /// The bytes of the buffer that are free.
    fn room(&self) -> usize {
        match self.attached {
            Some(attached) if attached.is_endless => usize::MAX,
            Some(attached) => attached.bytes.saturating_sub(self.used),
            None => 0,
        }
    }

    /// Takes sends out, which give their room back.
    fn let_go(&mut self, choose: impl FnOnce(&mut Backlog<Sent>) -> Vec<Sent>) -> Vec<Sent> {
        let sends = choose(&mut self.sends);
        self.used -= sends.iter().map(|(_, bytes)| cost(bytes)).sum::<usize>();
        sends
    }
}

/// Whether a send has ended.
fn ended_by(messages: &Messages) -> impl Fn(&Sent) -> bool {
    |(under, _)| messages.is_done(*under)
}

/// Waits for the end of sends. An error of one has no caller to hear of it.
fn finish(messages: &Messages, sends: Vec<Sent>) {
    for (under, bytes) in sends {
        let _ = messages.finish(under);
        drop(bytes);
    }
}

fn cost(bytes: &[u8]) -> usize {
    bytes.len() + abi::BSEND_OVERHEAD as usize
}
