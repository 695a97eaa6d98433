//! Context numbers for the messages between some ranks, and groups of ranks that found their
//! number in another way than by a collective.

use super::group::GroupHandle;
use super::service::Collectives;
use crate::error::Error;
use std::fmt;
use std::sync::Arc;
use tsumugi_core::mem::Rank;

/// A context number that this rank has claimed; it is free again when this is dropped. All
/// ranks that use it for messages between them have claimed it.
pub struct MessageContext {
    /// `None`: a group has taken the number over.
    service: Option<Arc<Collectives>>,
    number: u16,
}

impl MessageContext {
    /// The number.
    #[inline]
    pub const fn number(&self) -> u16 {
        self.number
    }
}

impl Drop for MessageContext {
    fn drop(&mut self) {
        if let Some(service) = &self.service {
            service.contexts().free(self.number.into());
        }
    }
}

impl GroupHandle {
    /// Claims a number that is free at all members, for messages between them. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`claim_context`](Self::claim_context).
    pub fn message_context(&self) -> Result<MessageContext, Error> {
        let number = self.claim_context()?;
        Ok(MessageContext { service: Some(self.service().clone()), number })
    }

    /// The first number from `from` on that is free at this rank. `None`: there is none.
    /// Never waits.
    pub fn free_context(&self, from: u16) -> Option<u16> {
        let free = self.service().contexts().first_free(from.into());
        free.and_then(|number| u16::try_from(number).ok())
    }

    /// Claims this number, if it is free at this rank. Never waits.
    pub fn take_context(&self, number: u16) -> Option<MessageContext> {
        let is_mine = self.service().contexts().claim(number.into());
        is_mine.then(|| MessageContext { service: Some(self.service().clone()), number })
    }

    /// A group of ranks of the job, of which this one is the member `me`. All of them have
    /// claimed the number, for this group alone.
    pub fn of_ranks(&self, mut context: MessageContext, ranks: Box<[Rank]>, me: u32) -> Self {
        context.service = None;
        self.part(context.number, ranks, me, None)
    }
}

impl fmt::Debug for MessageContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageContext({})", self.number)
    }
}
