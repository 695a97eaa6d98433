//! Uncontended locks, compared with one fetch-and-add, for counting instructions: a
//! given number of operations of one kind.
//!
//! ```text
//! cargo build --release --example lock_count
//! valgrind --tool=callgrind target/release/examples/lock_count shared 10000
//! ```
//!
//! The kinds are `fetch_add`, `add` (without the old value), `shared` and
//! `exclusive` (a `SharedLock`), `window_shared` and `window_exclusive`.

use std::env;
use tsumugi::lock::Kind;
use tsumugi::{Config, Error, Rank};

fn main() -> Result<(), Error> {
    let mut args = env::args().skip(1);
    let what = args.next().unwrap_or_else(|| "fetch_add".to_owned());
    let count: u32 = args.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    // With one worker, because the instructions of a second one, which searches for work,
    // would be counted, too.
    let done = Config::default().workers(1).run_ranks(1, |rt| -> Result<(), Error> {
        let shared = rt.share::<u64>(1)?;
        let word = shared.at(Rank(0), 0);
        let lock = rt.share_lock(Rank(0), Kind::Readers)?;
        let window = rt.window::<u64>(1)?;
        let mut rounds = 0..count;
        match &*what {
            "fetch_add" => rounds.try_for_each(|_| Ok(rt.fetch_add(word, 1).map(drop)?)),
            "add" => rounds.try_for_each(|_| Ok(rt.add(word, 1)?)),
            "shared" => rounds.try_for_each(|_| Ok(lock.read()?.release()?)),
            "exclusive" => rounds.try_for_each(|_| Ok(lock.write()?.release()?)),
            "window_shared" => rounds.try_for_each(|_| Ok(window.shared(Rank(0))?.release()?)),
            "window_exclusive" => {
                rounds.try_for_each(|_| Ok(window.exclusive(Rank(0))?.release()?))
            }
            what => Err(Error::program(format!("'{what}' is none of the kinds"))),
        }
    });
    done.map(drop)
}
