//! `tsumugi bench far`: one-sided operations on the memory of another node.
//!
//! | group | what is measured |
//! |---|---|
//! | `latency` | blocking calls of one ULT, one after the other, 8 bytes each |
//! | `many` | the same calls of 64 ULTs at once; time per call |
//!
//! Rank 0 works on the first rank of another node, which waits. A put or get of bytes
//! may take effect in parts, a put or get of a word never does. `ci/far_latency.sh`
//! measures the same operations beside C programs on libfabric and on UCX.

use super::catalogue::Group;
use super::measured::{self, Measured, budget};
use super::row::Row;
use super::row_writer::RowWriter;
use super::sample::Contender;
use crate::args::MeasureArgs;
use crate::failure::Failure;
use tsumugi::{AddrError, Error, Rank, Remote, Runtime};

/// The rows of this figure.
pub const CATALOGUE: &[Group] = &[
    Group {
        name: "latency",
        rows: &["put_bytes", "get_bytes", "put_word", "get_word", "fetch_add"],
    },
    Group {
        name: "many",
        rows: &[
            "many_put_bytes",
            "many_get_bytes",
            "many_put_word",
            "many_get_word",
            "many_fetch_add",
        ],
    },
];

/// How to start this benchmark, for a process that is no rank.
pub const USAGE: &str = "bench far runs on the ranks of several nodes: \
    tsumugi run --hosts a,b -n 2 tsumugi bench far";

/// The work of each rank; rank 0 measures the rows `names`, and returns them.
pub fn rank(
    rt: &Runtime,
    names: &[&'static str],
    measure: &MeasureArgs,
) -> Result<Vec<Row>, Failure> {
    let is_remote = |rank: &Rank| rt.neighbours().all(|near| near != *rank);
    // The result is the same at all ranks: if all are near one rank, no rank has
    // another node.
    if rt.neighbours().count() == rt.size() as usize {
        return Err(Failure::Usage(format!("all {} ranks are on this node; {USAGE}", rt.size())));
    }
    let (words, bytes) = (rt.share::<u64>(ULTS)?, rt.share::<[u8; 8]>(ULTS)?);
    rt.barrier()?;
    let mut rows = Vec::new();
    if rt.rank() == Rank(0) {
        let peer = rt.ranks().find(is_remote).expect("the job has a rank on another node");
        let (words, bytes) = (words.at(peer, 0), bytes.at(peer, 0));
        let writer = RowWriter::new(measure.json.as_deref(), measure.csv.as_deref())?;
        for name in names {
            writer.write_measured(one(rt, name, words, bytes, measure)?)?;
        }
        rows = writer.end()?;
    }
    rt.barrier()?;
    Ok(rows)
}

fn one(
    rt: &Runtime,
    name: &'static str,
    words: Remote<u64>,
    bytes: Remote<[u8; 8]>,
    measure: &MeasureArgs,
) -> Result<Measured, Failure> {
    let is_many = name.starts_with("many_");
    let once = move |rt: &Runtime, ult: usize| -> Result<u64, AddrError> {
        let (word, bytes) = (words.add(ult as u64), bytes.add(ult as u64));
        match name.trim_start_matches("many_") {
            "put_bytes" => rt.put(bytes, [7; 8]).map(|()| 0),
            "get_bytes" => rt.get(bytes).map(|bytes| bytes[0].into()),
            "put_word" => rt.put(word, 7).map(|()| 0),
            "get_word" => rt.get(word),
            _ => rt.fetch_add(word, 1),
        }
    };
    let many = || {
        let each = |ult| {
            rt.spawn(move |rt| {
                (0..EACH).try_fold(0, |sum, _| once(rt, ult).map(|value| value.wrapping_add(sum)))
            })
        };
        let ults: Vec<_> = (0..ULTS).map(each).collect();
        let ended = ults.into_iter().map(|ult| ult.join().expect("no operation panics"));
        let sum: Result<u64, AddrError> = ended.sum();
        Ok(sum.map_err(Error::from)?)
    };
    let alone = || Ok(once(rt, 0).map_err(Error::from)?);
    let ops = if is_many { (ULTS * EACH) as u64 } else { 1 };
    let params = format!("bytes=8 ults={}", if is_many { ULTS } else { 1 });
    let batch = if is_many { Box::new(many) as super::sample::Batch<'_> } else { Box::new(alone) };
    let mut contenders = [Contender { system: "tsumugi", name, batch }];
    measured::measure("far", &params, budget(measure), ops, &mut contenders)
}

/// The number of ULTs at once, and the operations of each in a batch.
const ULTS: usize = 64;
const EACH: usize = 8;
