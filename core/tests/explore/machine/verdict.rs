//! The conditions after each step, and at the end, when no step is left.

use super::world::{Work, World};
use crate::program::{End as Ending, PeerIndex, sender};
use crate::wire::End;

impl World<'_, '_> {
    pub fn check(&self) -> Result<(), String> {
        let net = self.net.borrow();
        if let Some(what) = &net.broken {
            return Err(what.clone());
        }
        for (index, work) in self.works.iter().enumerate() {
            let Some(copy) = work.copy() else { continue };
            let rank = work.rank;
            let is_alive = |address: u64| {
                let owner =
                    if address >> 40 == 1 { address >> 24 & 15 } else { address >> 32 & 15 };
                !self.nodes[owner as usize].is_dead
            };
            let buffers = [work.job.copy.from, work.job.copy.to];
            for address in buffers {
                if net.closed.contains(&address)
                    && is_alive(address)
                    && is_alive(u64::from(rank) << 32)
                {
                    return Err(format!(
                        "rank {rank} copies, and {address:#x} is not in use any more"
                    ));
                }
            }
            if self.works[..index].iter().filter_map(Work::copy).any(|other| other.to == copy.to) {
                return Err(format!("two copies to {:#x}", copy.to));
            }
        }
        Ok(())
    }

    /// Runs the steps that ranks take before they sleep, when no other step is left.
    pub fn come_to_rest(&mut self) -> Result<(), String> {
        for _ in 0..12 {
            for rank in 0..self.size() {
                if self.nodes[usize::from(rank)].is_dead {
                    continue;
                }
                for from in 0..self.size() {
                    self.see_all(rank, from);
                }
                let mut end = End { net: self.net, rank };
                self.nodes[usize::from(rank)].machine.rest(&mut end);
                self.collect(rank)?;
                while let Some(index) = self.works.iter().position(|work| work.rank == rank) {
                    self.copied(index);
                    self.collect(rank)?;
                }
                self.check()?;
            }
        }
        self.judge()
    }

    fn judge(&self) -> Result<(), String> {
        let dead = self.nodes.iter().filter(|node| node.is_dead).count();
        for (rank, node) in self.nodes.iter().enumerate() {
            if node.is_dead {
                continue;
            }
            let outcome: Vec<Ending> = node.posts.iter().map(|post| post.0).collect();
            self.real.judged.judge(rank as PeerIndex, dead, &outcome)?;
            for end in outcome {
                if let Ending::Got(message) = end {
                    let from = &self.nodes[usize::from(sender(message))];
                    if !from.is_dead && !from.ended.contains(&message) {
                        return Err(format!(
                            "message {message:#x} was received, its send is not over"
                        ));
                    }
                }
            }
            if node.machine.counts().dropped > 0 {
                return Err(format!("rank {rank} has dropped packets"));
            }
        }
        Ok(())
    }
}
