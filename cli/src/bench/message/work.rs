//! The workloads on our messages, line by line the same as those of the peers in
//! `benches/compare/peers/message.c`.
//!
//! Both sides touch the payload: the sender writes to every cache line before each
//! message, and the receiver reads every line after it.

use super::case::WINDOW;
use super::collective;
use super::command::BenchCommand;
use super::one_sided::Field;
use super::payload::{dirty, look};
use super::team::TeamAnswer;
use crate::failure::Failure;
use std::hint::black_box;
use std::time::Instant;
use tsumugi::comm::{Receiving, Sending};
use tsumugi::{Buffer, Comm, MessageError, Rank, Runtime};
use tsumugi_core::msg::{MessageCounts, MessagePath};

/// The state with which a rank works.
#[derive(Debug)]
pub struct RankWork {
    comm: Comm,
    field: Option<Field>,
}

impl RankWork {
    pub fn new(rt: &Runtime) -> Self {
        Self { comm: rt.comm(), field: None }
    }

    /// Carries out a command.
    pub fn work(&mut self, rt: &Runtime, command: BenchCommand<'_>) -> Result<TeamAnswer, Failure> {
        let is_one_of_two = rt.rank() < Rank(2);
        let mut answer = TeamAnswer::default();
        if ["put", "get", "third"].contains(&command.name()) {
            answer.ns = Field::work(&mut self.field, rt, command)?;
            return Ok(answer);
        }
        for _ in 0..command.number("repeat").unwrap_or(1) {
            let ns = match command.name() {
                "latency" if is_one_of_two && command.number("pre") == Some(1) => {
                    self.latency_pre(rt, command)?
                }
                "latency" if is_one_of_two => {
                    let (bytes, ..) = sizes(command);
                    if command.number("outside") == Some(1) {
                        self.latency(rt, command, [&mut vec![0; bytes], &mut vec![0; bytes]])?
                    } else {
                        let mut both = buffers(rt, [bytes; 2])?;
                        let [sent, received] = both.as_mut_slice() else { unreachable!() };
                        self.latency(rt, command, [sent, received])?
                    }
                }
                "rate" if is_one_of_two => self.rate(rt, command)?,
                "halo" if rt.size() == 8 => self.halo(rt, command)?,
                "crowd" => self.crowd(rt, command)?,
                "alone" => alone(rt, command)?,
                name if collective::has(name) => collective::work(rt, command)?,
                "counts" => return self.counts(rt),
                _ => None,
            };
            answer.ns.extend(ns);
        }
        Ok(answer)
    }

    /// Half of a round trip; the next receive is always posted before the other side
    /// can send.
    fn latency_pre(&self, rt: &Runtime, command: BenchCommand<'_>) -> Result<Option<f64>, Failure> {
        let (bytes, rounds, warm) = sizes(command);
        let (mut sent, received) = (rt.buffer::<u8>(bytes)?, rt.buffer::<u8>(bytes)?);
        let comm = &self.comm;
        let other = Rank(1 - rt.rank().0);
        if rt.rank() == Rank(0) {
            let mut room = Some(received);
            return self.half_of_rounds(other, [rounds, warm], |round| {
                let received = room.take().expect("the buffer came back in the previous round");
                let next = comm.irecv(other, TAG, received)?;
                dirty(&mut sent, round);
                comm.send(other, TAG, &sent)?;
                look(room.insert(next.wait()?.1));
                Ok(())
            });
        }
        let mut next = Some(comm.irecv(other, TAG, received)?);
        comm.send::<u8>(other, TAG_READY, &[])?;
        for round in 0..rounds + warm {
            let (_, received) =
                next.take().expect("the receive was posted in the previous round").wait()?;
            look(&received);
            if round + 1 < rounds + warm {
                next = Some(comm.irecv(other, TAG, received)?);
            }
            dirty(&mut sent, round);
            comm.send(other, TAG, &sent)?;
        }
        Ok(None)
    }

    /// Half of a round trip; each side receives after it has sent.
    fn latency(
        &self,
        rt: &Runtime,
        command: BenchCommand<'_>,
        [sent, received]: [&mut [u8]; 2],
    ) -> Result<Option<f64>, Failure> {
        let (_, rounds, warm) = sizes(command);
        let comm = &self.comm;
        let other = Rank(1 - rt.rank().0);
        if rt.rank() == Rank(0) {
            return self.half_of_rounds(other, [rounds, warm], |round| {
                dirty(sent, round);
                comm.send(other, TAG, sent)?;
                comm.recv(other, TAG, received)?;
                look(received);
                Ok(())
            });
        }
        comm.send::<u8>(other, TAG_READY, &[])?;
        for round in 0..rounds + warm {
            comm.recv(other, TAG, received)?;
            look(received);
            dirty(sent, round);
            comm.send(other, TAG, sent)?;
        }
        Ok(None)
    }

    /// Nanoseconds of half a round on average, measured once the other side is
    /// ready.
    #[inline(always)]
    fn half_of_rounds(
        &self,
        other: Rank,
        [rounds, warm]: [usize; 2],
        mut each: impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<Option<f64>, Failure> {
        self.comm.recv::<u8>(other, TAG_READY, &mut [])?;
        let mut start = Instant::now();
        for round in 0..rounds + warm {
            if round == warm {
                start = Instant::now();
            }
            each(round)?;
        }
        Ok(Some(start.elapsed().as_nanos() as f64 / (2 * rounds) as f64))
    }

    /// Nanoseconds per message, with [`WINDOW`] messages in flight, and one answer
    /// for each window.
    fn rate(&self, rt: &Runtime, command: BenchCommand<'_>) -> Result<Option<f64>, Failure> {
        let (bytes, rounds, warm) = sizes(command);
        let mut buffers = buffers(rt, [bytes; WINDOW])?;
        let comm = &self.comm;
        let mut start = Instant::now();
        let mut sending: Vec<Sending<Buffer<u8>>> = Vec::with_capacity(WINDOW);
        let mut receiving: Vec<Receiving<Buffer<u8>>> = Vec::with_capacity(WINDOW);
        for round in 0..rounds + warm {
            if round == warm {
                start = Instant::now();
            }
            if rt.rank() == Rank(0) {
                for mut buffer in buffers.drain(..) {
                    dirty(&mut buffer, round);
                    sending.push(comm.isend(Rank(1), TAG, buffer)?);
                }
                let ended = sending.drain(..).map(Sending::wait);
                buffers.extend(ended.collect::<Result<Vec<_>, _>>()?);
                comm.recv::<u8>(Rank(1), TAG_READY, &mut [])?;
            } else {
                for buffer in buffers.drain(..) {
                    receiving.push(comm.irecv(Rank(0), TAG, buffer)?);
                }
                for one in receiving.drain(..) {
                    let (_, buffer) = one.wait()?;
                    look(&buffer);
                    buffers.push(buffer);
                }
                comm.send::<u8>(Rank(0), TAG_READY, &[])?;
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / (rounds * WINDOW) as f64;
        Ok((rt.rank() == Rank(0)).then_some(ns))
    }

    /// A cycle of eight ranks in a periodic cube: compute, exchange with all 26
    /// neighbours, agree on one number.
    fn halo(&self, rt: &Runtime, command: BenchCommand<'_>) -> Result<Option<f64>, Failure> {
        let number = |name, absent| command.number(name).unwrap_or(absent) as usize;
        let kinds = [number("faces", 2652), number("edges", 264), number("corners", 24)];
        let (rounds, steps) = (number("rounds", 10), number("steps", 0));
        let comm = &self.comm;
        let neighbours = neighbours(rt.rank());
        let bytes = neighbours.map(|(_, away)| kinds[away - 1]);
        let mut sent = buffers(rt, bytes)?;
        let mut received = buffers(rt, bytes)?;
        let mut receiving: Vec<Receiving<Buffer<u8>>> = Vec::with_capacity(NEIGHBOURS);
        let mut sending: Vec<Sending<Buffer<u8>>> = Vec::with_capacity(NEIGHBOURS);
        let mut start = Instant::now();
        for round in 0..=rounds {
            if round == 1 {
                start = Instant::now();
            }
            for ((tag, (from, _)), buffer) in (0..).zip(neighbours).zip(received.drain(..)) {
                receiving.push(comm.irecv(from, NEIGHBOURS as u32 - 1 - tag, buffer)?);
            }
            let own = compute(steps, rt.rank());
            for ((tag, (to, _)), mut buffer) in (0..).zip(neighbours).zip(sent.drain(..)) {
                dirty(&mut buffer, round);
                sending.push(comm.isend(to, tag, buffer)?);
            }
            for one in receiving.drain(..) {
                let (_, buffer) = one.wait()?;
                look(&buffer);
                received.push(buffer);
            }
            let ended: Result<Vec<_>, MessageError> =
                sending.drain(..).map(Sending::wait).collect();
            sent.extend(ended?);
            black_box(rt.sum(own.to_bits() & 0xff)?);
        }
        let ns = start.elapsed().as_nanos() as f64 / rounds as f64;
        Ok((rt.rank() == Rank(0)).then_some(ns))
    }

    /// A cycle of ranks in a ring, many on a core: receive from both sides, compute,
    /// send to both sides, wait for all.
    fn crowd(&self, rt: &Runtime, command: BenchCommand<'_>) -> Result<Option<f64>, Failure> {
        let number = |name, absent| command.number(name).unwrap_or(absent) as usize;
        let (bytes, rounds) = (number("bytes", 1 << 10), number("rounds", 10));
        let (comm, size) = (&self.comm, rt.size());
        let sides = [size - 1, 1].map(|away| Rank((rt.rank().0 + away) % size));
        let (mut sent, mut received) = (buffers(rt, [bytes; 2])?, buffers(rt, [bytes; 2])?);
        let mut receiving: Vec<Receiving<Buffer<u8>>> = Vec::with_capacity(2);
        let mut sending: Vec<Sending<Buffer<u8>>> = Vec::with_capacity(2);
        let mut start = Instant::now();
        for round in 0..=rounds {
            if round == 1 {
                start = Instant::now();
            }
            for ((tag, from), buffer) in [1, 0].into_iter().zip(sides).zip(received.drain(..)) {
                receiving.push(comm.irecv(from, tag, buffer)?);
            }
            compute(number("steps", 0), rt.rank());
            for ((tag, to), mut buffer) in (0..).zip(sides).zip(sent.drain(..)) {
                dirty(&mut buffer, round);
                sending.push(comm.isend(to, tag, buffer)?);
            }
            for one in receiving.drain(..) {
                let (_, buffer) = one.wait()?;
                look(&buffer);
                received.push(buffer);
            }
            for one in sending.drain(..) {
                sent.push(one.wait()?);
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / rounds as f64;
        Ok((rt.rank() == Rank(0)).then_some(ns))
    }

    /// The counts of messages by path, and of their lengths.
    fn counts(&self, rt: &Runtime) -> Result<TeamAnswer, Failure> {
        let counts = self.comm.counts();
        let mut answer = TeamAnswer::default();
        for path in MessagePath::ALL {
            let messages = rt.sum(counts.messages(path).iter().sum::<u64>())?;
            answer.counts.push((path.name().to_owned(), messages));
        }
        for (bin, max) in MessageCounts::BINS.into_iter().enumerate() {
            let messages: u64 =
                MessagePath::ALL.iter().map(|path| counts.messages(*path)[bin]).sum();
            answer.counts.push((format!("to_{max}"), rt.sum(messages)?));
        }
        Ok(answer)
    }
}

/// The computation of a halo cycle, without messages.
fn alone(rt: &Runtime, command: BenchCommand<'_>) -> Result<Option<f64>, Failure> {
    let number = |name, absent| command.number(name).unwrap_or(absent) as usize;
    let (rounds, steps) = (number("rounds", 10), number("steps", 0));
    rt.barrier()?;
    // No rank begins before rank 0 has reached the second barrier.
    let start = Instant::now();
    rt.barrier()?;
    for _ in 0..rounds {
        compute(steps, rt.rank());
    }
    rt.barrier()?;
    let ns = start.elapsed().as_nanos() as f64 / rounds as f64;
    Ok((rt.rank() == Rank(0)).then_some(ns))
}

/// `steps` dependent steps of arithmetic.
pub fn compute(steps: usize, rank: Rank) -> f64 {
    let mut x = 1.0 + f64::from(black_box(rank.0));
    for _ in 0..steps {
        x = x * 0.999_999 + 1e-6;
    }
    black_box(x)
}

/// Bytes, rounds, and rounds for warming up.
fn sizes(command: BenchCommand<'_>) -> (usize, usize, usize) {
    let number = |name, absent| command.number(name).unwrap_or(absent) as usize;
    let rounds = number("rounds", 64);
    (number("bytes", 8), rounds, rounds / 4 + 4)
}

fn buffers<const N: usize>(rt: &Runtime, bytes: [usize; N]) -> Result<Vec<Buffer<u8>>, Failure> {
    bytes.into_iter().map(|bytes| Ok(rt.buffer::<u8>(bytes)?)).collect()
}

/// The ranks around this one, each with the number of directions in which it is
/// displaced.
fn neighbours(rank: Rank) -> [(Rank, usize); NEIGHBOURS] {
    let mut around = (0..27u32).filter(|at| *at != 13).map(|at| {
        // The displacement is -1, 0 or 1 in each direction; -1 and 1 lead to the
        // same rank, because there are two in each direction.
        let moved = [at / 9, at / 3 % 3, at % 3].map(|side| u32::from(side != 1));
        let [x, y, z] = moved;
        (Rank(rank.0 ^ (x | y << 1 | z << 2)), (x + y + z) as usize)
    });
    std::array::from_fn(|_| around.next().expect("26 of 27"))
}

const TAG: u32 = 1;
const TAG_READY: u32 = 2;
const NEIGHBOURS: usize = 26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cube_that_closes_has_26_neighbours() {
        for rank in (0..8).map(Rank) {
            let all = neighbours(rank);
            let count = |away| all.iter().filter(|(_, is)| *is == away).count();
            assert_eq!([count(1), count(2), count(3)], [6, 12, 8]);
            assert!(all.iter().all(|(other, _)| *other != rank));
            // The neighbour in the opposite direction leads back.
            for (tag, (other, _)) in all.iter().enumerate() {
                assert_eq!(neighbours(*other)[NEIGHBOURS - 1 - tag].0, rank);
            }
        }
    }
}
