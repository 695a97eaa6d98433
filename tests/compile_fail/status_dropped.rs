//! The status of an operation must be used.

#![deny(unused_must_use)]

fn main() -> Result<(), tsumugi::Error> {
    tsumugi::run(|rt| {
        let words = rt.share::<u64>(8)?;
        let buf = rt.buffer::<u64>(8)?;
        rt.try_get(words.at(rt.rank(), 0), buf);
        Ok(())
    })
}
