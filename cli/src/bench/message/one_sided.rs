//! Puts, gets, and copies between two other ranks by global addresses, beside the
//! peers' ping-pong.
//!
//! The payload is touched as in the ping-pong: the origin of a put writes to every
//! line of the bytes before, and the origin of a get reads every line of them after.

use super::command::BenchCommand;
use super::payload::{dirty, look};
use crate::failure::Failure;
use std::time::Instant;
use tsumugi::global::GlobalBlock;
use tsumugi::{Error, Global, GlobalAddr, GlobalPtr, Rank, Runtime};

/// Memory of all ranks, as long as the longest transfer up to now.
#[derive(Debug)]
pub struct Field {
    global: Global,
    own: GlobalBlock<u8>,
    all: Vec<GlobalPtr<u8>>,
}

impl Field {
    /// Collective.
    fn new(rt: &Runtime, bytes: usize) -> Result<Self, Error> {
        let global = rt.global()?;
        let own = global.expose::<u8>(bytes)?;
        let all = rt.allgather(own.at(0).addr().to_bits())?.into_iter();
        let all = all.map(|bits| GlobalPtr::new(GlobalAddr::from_bits(bits))).collect();
        Ok(Self { global, own, all })
    }

    /// Carries out a command; returns nanoseconds per operation, at rank 0.
    /// Collective.
    pub fn work(
        field: &mut Option<Self>,
        rt: &Runtime,
        command: BenchCommand<'_>,
    ) -> Result<Vec<f64>, Failure> {
        let number = |name, absent| command.number(name).unwrap_or(absent) as usize;
        let (bytes, rounds) = (number("bytes", 8), number("rounds", 64));
        if field.as_ref().is_none_or(|field| field.own.len() < bytes) {
            // The old memory is released first, because there may be room for only
            // one.
            *field = None;
            rt.barrier()?;
            *field = Some(Self::new(rt, bytes)?);
        }
        let Some(Self { global, all, .. }) = field else { return Ok(Vec::new()) };
        let mut measured = Vec::new();
        if rt.rank() == Rank(0) {
            let mut values = vec![1; bytes];
            for _ in 0..number("repeat", 1) {
                let warm = rounds / 4 + 1;
                let mut start = Instant::now();
                for round in 0..rounds + warm {
                    if round == warm {
                        start = Instant::now();
                    }
                    match command.name() {
                        "put" => {
                            dirty(&mut values, round);
                            global.put_slice(all[1], &values)
                        }
                        "get" => {
                            let got = global.get_slice(all[1], &mut values);
                            look(&values);
                            got
                        }
                        _ => global.copy(all[all.len() - 1], all[1], bytes),
                    }
                    .map_err(Error::from)?;
                }
                measured.push(start.elapsed().as_nanos() as f64 / rounds as f64);
            }
        }
        rt.barrier()?;
        Ok(measured)
    }
}
