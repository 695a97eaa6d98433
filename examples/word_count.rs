//! Counts words in a map of all ranks. Each rank counts some lines of its own, all of them
//! into one map, and then every rank looks through the words that lie in its memory.
//!
//! `cargo run --release -- run -n 3 target/release/examples/word_count [FILE]`
//!
//! Rank `r` of `n` counts the lines `r`, `r + n` and so on of the file; without a file there
//! is a text of four lines.

use std::fs;
use tsumugi::{Error, Rank, Runtime};

#[tsumugi::main]
fn main(rt: &Runtime) -> Result<(), Error> {
    let text = match std::env::args().nth(1) {
        Some(file) => fs::read_to_string(file).map_err(Error::other)?,
        None => TEXT.to_owned(),
    };
    let counts = rt.map::<str, u64>()?;
    let own = text.lines().skip(rt.rank().0 as usize).step_by(rt.size() as usize);
    for word in own.flat_map(|line| line.split(|c: char| !c.is_alphanumeric())) {
        if !word.is_empty() {
            // Adds one under the lock of the word's bucket, on the rank where the word lies.
            counts.update(&word.to_lowercase(), |count| Some(count.unwrap_or(0) + 1))?;
        }
    }
    rt.barrier()?;

    // Each rank finds the most frequent of its words; a vector on rank 0 has them all.
    let tops = rt.vector::<u64>()?;
    let mut top = (0, String::new());
    for entry in counts.iter_local() {
        let (word, count) = entry?;
        top = top.max((count, word));
    }
    println!("{}: {} words, most often {:?}", rt.rank(), counts.len_local()?, top);
    tops.push(top.0)?;
    rt.barrier()?;
    if rt.rank() == Rank(0) {
        let most = tops.iter().collect::<Result<Vec<_>, _>>()?.into_iter().max();
        println!("{} words in all; one comes {} times", counts.len()?, most.unwrap_or(0));
    }
    // Collective: no rank uses the map any more.
    counts.free()
}

const TEXT: &str = "\
The rank that has a word counts it
and any rank may count any word
the words of a rank lie in its memory
the map of the words is one for all";
