//! Ranks that agree by messages, because they are in no communicator together yet; and the
//! communicators that they make so.

use crate::abi::{self, MPI_Comm};
use crate::fault::{Answer, fail};
use crate::job::Job;
use crate::object::communicator::{CommRef, Communicator};
use crate::object::group::RankGroup;
use tsumugi::{Group, MessageError, Rank};
use tsumugi_core::msg::Label;
use tsumugi_runtime::service::collectives::MessageContext;
use tsumugi_runtime::service::messages::{Source, Tags, pattern};

/// Ranks that agree on a context number, by messages to the first one and back.
pub(crate) struct Talk<'a> {
    pub(crate) job: &'a Job,
    pub(crate) ranks: &'a [u32],
    pub(crate) me: usize,
    pub(crate) tag: u32,
}

impl Talk<'_> {
    /// Claims a number that is free at all of them.
    pub(crate) fn claim(&self) -> Answer<MessageContext> {
        let world = self.job.world.group.handle();
        let mut from = 0;
        loop {
            let free = world.free_context(from).map_or(u64::MAX, u64::from);
            let number = self.agree(free, u64::max)?;
            let Ok(number) = u16::try_from(number) else {
                fail!(abi::ERR_OTHER, "the job has no context left for a communicator")
            };
            let claim = world.take_context(number);
            let is_free = self.agree(claim.is_some().into(), u64::min)?;
            if let (1, Some(claim)) = (is_free, claim) {
                return Ok(claim);
            }
            from = number.saturating_add(1);
        }
    }

    /// Combines a word of each.
    pub(crate) fn agree(&self, own: u64, combine: fn(u64, u64) -> u64) -> Answer<u64> {
        if self.me > 0 {
            self.send(self.ranks[0], own)?;
            return self.receive(self.ranks[0]);
        }
        let mut all = own;
        for rank in &self.ranks[1..] {
            all = combine(all, self.receive(*rank)?);
        }
        for rank in &self.ranks[1..] {
            self.send(*rank, all)?;
        }
        Ok(all)
    }

    fn send(&self, to: u32, word: u64) -> Answer {
        let label = Label { context: self.job.agreements, tag: self.tag };
        let (at, bytes) = ((&raw const word).cast(), size_of::<u64>());
        // SAFETY: the word stays until the call returns.
        Ok(unsafe { self.job.messages.send(Rank(to), label, at, bytes) }?)
    }

    fn receive(&self, from: u32) -> Answer<u64> {
        let mut word = 0u64;
        let of = pattern(self.job.agreements, Source::Is(Rank(from)), Tags::Is(self.tag));
        let (at, room) = ((&raw mut word).cast(), size_of::<u64>());
        // SAFETY: the word stays until the call returns.
        unsafe { self.job.messages.receive(of, at, room) }?;
        Ok(word)
    }
}

/// The communicator of a group, whose members agree by messages with this tag. `None`: this
/// rank is not one of them.
pub(crate) fn of_group(job: &Job, group: &RankGroup, tag: u32) -> Answer<Option<Communicator>> {
    let own = job.runtime.rank().0;
    let Some(me) = group.ranks.iter().position(|rank| *rank == own) else { return Ok(None) };
    let talk = Talk { job, ranks: &group.ranks, me, tag };
    let (contexts, messages) = (talk.claim()?, talk.claim()?);
    let ranks = group.ranks.iter().map(|rank| Rank(*rank)).collect();
    let handle = job.world.group.handle().of_ranks(contexts, ranks, me as u32);
    Ok(Some(Communicator::of(Group::of_handle(&job.runtime, handle), messages)))
}

/// Adds a communicator that was made of another one, and writes its handle.
///
/// # Safety
///
/// `out` is valid for a write.
pub(crate) unsafe fn give(
    job: &Job,
    from: &CommRef,
    made: Option<Communicator>,
    out: *mut MPI_Comm,
) -> Answer {
    let handle = match made {
        Some(made) => {
            made.errhandler.set(from.errhandler.get());
            job.add_comm(made)?
        }
        None => MPI_Comm::NULL,
    };
    // SAFETY: the caller's.
    unsafe { out.write(handle) };
    Ok(())
}

/// Two groups that exchange lists by their leaders: `peer` is that of the other group. Collective
/// over both. Each member gets the list of the other group.
pub(crate) fn swap(
    job: &Job,
    group: &Group,
    leader: u32,
    peer: Rank,
    tag: u32,
    own: &[i64],
) -> Answer<Vec<i64>> {
    let mut other = Vec::new();
    let mut result = Ok(());
    if group.rank() == leader {
        result = swap_with(job, peer, tag, own).map(|list| other = list);
    }
    // The members wait for their leader, also if it has failed.
    let mut head = [other.len() as i64, i64::from(result.is_ok())];
    group.broadcast(&mut head, leader)?;
    result?;
    if head[1] == 0 {
        fail!(abi::ERR_OTHER, "the leader has not reached that of the other group");
    }
    other.resize(head[0] as usize, 0);
    group.broadcast(&mut other, leader)?;
    Ok(other)
}

fn swap_with(job: &Job, peer: Rank, tag: u32, own: &[i64]) -> Answer<Vec<i64>> {
    let context = job.agreements;
    let bytes = size_of_val(own);
    // SAFETY: the list stays until the send has finished.
    let sent = unsafe {
        job.messages.begin_send(peer, Label { context, tag }, own.as_ptr().cast(), bytes)
    }?;
    let mut list = Vec::<i64>::new();
    let room_for = |needed: usize| {
        list.resize(needed / size_of::<i64>(), 0);
        Ok::<_, MessageError>(list.as_mut_ptr().cast())
    };
    let from = pattern(context, Source::Is(peer), Tags::Is(tag));
    // SAFETY: the list has the bytes that were requested, up to a part of a word, of which the
    // peer sends none.
    let received = unsafe { job.messages.receive_whole(from, room_for) };
    job.messages.finish(sent)?;
    received?;
    Ok(list)
}
