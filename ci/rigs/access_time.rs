//! Accesses of 8 bytes through the Rust interface, beside those of `access_time.c`
//! through the C interface: for counting instructions, and for times.
//!
//! ```text
//! cargo build --release --example access_time
//! tsumugi run -n 2 target/release/examples/access_time put            times
//! valgrind --tool=callgrind --toggle-collect='*measured*' \
//!     target/release/examples/access_time put 10000                   a count
//! ```
//!
//! The kinds are `put`, `get`, `fetch_add` (of `Runtime`), `global_put`, `global_get`,
//! `global_fetch_add` and `global_copy` (of `Global`). The word is one of the last rank.

use std::time::Instant;
use std::{env, hint};
use tsumugi::{Error, Global, GlobalPtr, Rank, Remote, Runtime};

fn main() -> Result<(), Error> {
    let mut args = env::args().skip(1);
    let kind = args.next().unwrap_or_else(|| "put".to_owned());
    let count: Option<u32> = args.next().and_then(|count| count.parse().ok());
    tsumugi::run(|rt| {
        let last = Rank(rt.size() - 1);
        let shared = rt.share::<u64>(1)?;
        let global = rt.global()?;
        let block = global.expose::<u64>(16)?;
        let addrs = rt.allgather(block.at(0).addr().to_bits())?;
        let place = Place {
            rt: rt.clone(),
            word: shared.at(last, 0),
            to: global.pointer(addrs[last.0 as usize]),
            own: block.at(8),
            global,
        };
        rt.barrier()?;
        if rt.rank() == Rank(0) {
            measured(&place, &kind, 1)?;
            match count {
                Some(count) => measured(&place, &kind, count)?,
                None => time(&place, &kind)?,
            }
        }
        rt.barrier()
    })
}

struct Place {
    rt: Runtime,
    global: Global,
    word: Remote<u64>,
    to: GlobalPtr<u64>,
    own: GlobalPtr<u64>,
}

/// Callgrind counts between the entry of this function and its return.
#[inline(never)]
fn measured(place: &Place, kind: &str, count: u32) -> Result<(), Error> {
    let Place { rt, global, .. } = place;
    // The compiler does not know that the address is the same in all rounds; in the loops of
    // programs it seldom is. So no part of an access is done before the loop.
    let word = || hint::black_box(place.word);
    let to = || hint::black_box(place.to);
    let keep = |value: u64| _ = hint::black_box(value);
    let mut rounds = 0..count;
    match kind {
        "put" => rounds.try_for_each(|value| rt.put(word(), u64::from(value)))?,
        "get" => rounds.try_for_each(|_| rt.get(word()).map(keep))?,
        "fetch_add" => rounds.try_for_each(|_| rt.fetch_add(word(), 1).map(keep))?,
        "global_put" => rounds.try_for_each(|value| global.put(to(), u64::from(value)))?,
        "global_get" => rounds.try_for_each(|_| global.get(to()).map(keep))?,
        "global_fetch_add" => rounds.try_for_each(|_| global.fetch_add(to(), 1).map(keep))?,
        "global_copy" => rounds.try_for_each(|_| global.copy(to(), place.own, 1))?,
        kind => return Err(Error::program(format!("'{kind}' is none of the kinds"))),
    }
    Ok(())
}

fn time(place: &Place, kind: &str) -> Result<(), Error> {
    let mut samples = Vec::new();
    for _ in 0..101 {
        let start = Instant::now();
        measured(place, kind, 10_000)?;
        samples.push(start.elapsed().as_nanos() as f64 / 1e4);
    }
    samples.sort_by(f64::total_cmp);
    println!("rust {kind} {:.1} {:.1}", samples[0], samples[50]);
    Ok(())
}
