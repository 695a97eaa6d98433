//! Receives into memory that is given by address and length, and waits for messages that
//! are given one by one, for the C interface.

use super::Message;
use crate::{Comm, MessageError, Plain, Rank, Received, Source, Tags};
use tsumugi_runtime::service::messages::pattern;

impl Comm {
    /// Receives as [`recv`](Self::recv) does, into `room` bytes at `at`, which need not
    /// be initialized.
    ///
    /// # Safety
    ///
    /// The bytes are valid for writes, and no other code uses them until this returns.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn recv_at(
        &self,
        source: Source,
        tags: Tags,
        (at, room): (*mut u8, usize),
    ) -> Result<Received, MessageError> {
        // SAFETY: the caller's.
        unsafe { self.messages().receive(pattern(self.context, source, tags), at, room) }
    }

    /// Receives a message of any length into memory that `room_for` provides. The
    /// last memory that it has provided has the message; if there is none, the message
    /// stays.
    ///
    /// # Safety
    ///
    /// `room_for` returns memory of at least as many bytes as its argument, which no
    /// other code uses until this returns; before it provides more, it may free what it
    /// provided before.
    #[doc(hidden)]
    pub unsafe fn recv_whole<E: From<MessageError>>(
        &self,
        source: Source,
        tags: Tags,
        room_for: impl FnMut(usize) -> Result<*mut u8, E>,
    ) -> Result<Received, E> {
        // SAFETY: the caller's.
        unsafe { self.messages().receive_whole(pattern(self.context, source, tags), room_for) }
    }

    /// Sends and receives as [`send_recv`](Self::send_recv) does, into `room` bytes at
    /// `at`, which need not be initialized.
    ///
    /// # Safety
    ///
    /// As for [`recv_at`](Self::recv_at).
    #[doc(hidden)]
    pub unsafe fn send_recv_at<T: Plain>(
        &self,
        (to, tag, values): (Rank, u32, &[T]),
        (source, tags): (Source, Tags),
        (at, room): (*mut u8, usize),
    ) -> Result<Received, MessageError> {
        // Checked before a message can refer to the buffer of this call.
        tsumugi_ult::assert_may_block("message");
        let pattern = pattern(self.context, source, tags);
        // SAFETY: the caller's; the receive has ended when this returns.
        let receiving = unsafe { self.messages().begin_receive(pattern, at, room) }?;
        let sent = self.send(to, tag, values);
        if sent.is_err() {
            self.messages().cancel(receiving);
        }
        let received = self.messages().finish(receiving);
        sent.and(received)
    }

    /// Waits as [`wait_any`](Self::wait_any) does, for messages of this rank; there is at
    /// least one.
    #[doc(hidden)]
    pub fn wait_any_of<'a>(
        &self,
        messages: impl Iterator<Item = &'a dyn Message> + Clone,
    ) -> usize {
        self.messages().wait_any(messages.map(|message| message.under()))
    }

    /// Waits as [`wait_all`](Self::wait_all) does, for messages of this rank.
    #[doc(hidden)]
    pub fn wait_all_of<'a>(&self, messages: impl Iterator<Item = &'a dyn Message> + Clone) {
        self.messages().wait_all(messages.map(|message| message.under()));
    }
}
