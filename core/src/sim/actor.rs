//! A state machine that runs as one node, and the runs of many of them.

use super::event::SimEvent;
use super::net::Net;
use super::node::SimNode;
use crate::mem::Rank;
use crate::time::{Clock, Instant};
use core::time::Duration;

/// A state machine that runs as one node.
///
/// A closure `FnMut(&SimNode, SimEvent)` is an actor, too.
pub trait Actor {
    /// Handles an event at `node`, to which the actor also posts its operations.
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent);
}

impl<F: FnMut(&SimNode<'_>, SimEvent)> Actor for F {
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent) {
        self(node, event);
    }
}

impl Net {
    /// Starts an actor on each node and runs until no operation is in flight and no
    /// timer is set. Returns the number of steps.
    ///
    /// # Panics
    ///
    /// If there are more actors than nodes.
    pub fn run(&self, actors: &mut [impl Actor]) -> u64 {
        self.start(actors);
        self.run_until(Instant::from_ns(u64::MAX), actors)
    }

    /// Gives each actor the event [`Start`](SimEvent::Start).
    ///
    /// # Panics
    ///
    /// If there are more actors than nodes.
    pub fn start(&self, actors: &mut [impl Actor]) {
        for (rank, actor) in actors.iter_mut().enumerate() {
            actor.on_event(&self.node(Rank(rank as u32)), SimEvent::Start);
        }
    }

    /// Runs until nothing is due any more, or the next event is later than `until`.
    /// Nodes without an actor are passive memory. Returns the number of steps.
    pub fn run_until(&self, until: Instant, actors: &mut [impl Actor]) -> u64 {
        let mut steps = 0;
        while self.next_due().is_some_and(|at| at <= until)
            && let Some((rank, event)) = self.step()
        {
            steps += 1;
            if event != SimEvent::Nothing
                && let Some(actor) = actors.get_mut(rank.0 as usize)
            {
                actor.on_event(&self.node(rank), event);
            }
        }
        if until.as_ns() != u64::MAX {
            self.state.with(|state| state.calendar.advance(until));
        }
        steps
    }

    /// Runs until nothing is due any more, or until `progress` has not changed for
    /// `patience`: this stops actors that retry in vain, but not actors that are
    /// only slow.
    pub fn settle<A: Actor>(
        &self,
        patience: Duration,
        actors: &mut [A],
        progress: impl Fn(&[A]) -> u64,
    ) {
        let mut was = None;
        while self.next_due().is_some() && was.replace(progress(actors)) != Some(progress(actors)) {
            let until = self.now() + patience;
            self.run_until(until, actors);
        }
    }
}
