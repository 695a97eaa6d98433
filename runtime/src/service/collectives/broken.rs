//! What a rank does for its groups after a death.

use crate::service::messages::{Messages, Source, Tags, Under, pattern};
use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;

/// The receives of collectives under way, and the contexts of all groups.
#[derive(Default)]
pub(super) struct BrokenGroups {
    /// The receives under way; each is cancelled at a death.
    receives: Vec<Under>,
    /// The groups of this rank, each with the receive that takes what comes after a
    /// death.
    groups: BTreeMap<u16, Option<Under>>,
    is_broken: bool,
}

impl BrokenGroups {
    pub(super) fn add_group(&mut self, context: u16) {
        self.groups.insert(context, None);
    }

    /// Removes a group. After a death it stays: a member may still send to it.
    pub(super) fn remove_group(&mut self, context: u16) {
        if !self.is_broken {
            self.groups.remove(&context);
        }
    }

    /// Notes a receive that has begun. `false`: a rank has died, and the caller cancels
    /// it.
    pub(super) fn add_receive(&mut self, under: Under) -> bool {
        if !self.is_broken {
            if self.receives.capacity() == 0 {
                self.receives.reserve(RECEIVES_FIRST);
            }
            self.receives.push(under);
        }
        !self.is_broken
    }

    pub(super) fn remove_receive(&mut self, under: Under) {
        if let Some(at) = self.receives.iter().position(|other| other.is_same(under)) {
            self.receives.swap_remove(at);
        }
    }

    /// Begins to take all that comes; returns the receives to be cancelled.
    pub(super) fn break_all(&mut self) -> Vec<Under> {
        self.is_broken = true;
        std::mem::take(&mut self.receives)
    }

    /// Takes what has come to the groups after a death. Returns whether anything has.
    pub(super) fn take_rest(&mut self, messages: &Messages) -> bool {
        let mut any = false;
        for (context, under) in &mut self.groups {
            loop {
                match *under {
                    Some(under) if !messages.has_ended(under) => break,
                    Some(under) => {
                        any = true;
                        // Its length is of no matter.
                        _ = messages.finish(under);
                    }
                    None => {}
                }
                let any_message = pattern(*context, Source::Any, Tags::Any);
                let nowhere = NonNull::<u8>::dangling().as_ptr();
                // SAFETY: a buffer without bytes.
                *under = unsafe { messages.begin_receive(any_message, nowhere, 0) }.ok();
                if under.is_none() {
                    break;
                }
            }
        }
        any
    }

    pub(super) const fn is_broken(&self) -> bool {
        self.is_broken
    }
}

/// Room for so many receives is made at the first one, so that few ranks need more later.
const RECEIVES_FIRST: usize = 64;

impl fmt::Debug for BrokenGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokenGroups({} groups, {} receives)", self.groups.len(), self.receives.len())
    }
}
