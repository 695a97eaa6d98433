//! An operation, and its status once it has begun, must be used.

#![deny(unused_must_use)]

fn main() -> Result<(), tsumugi::Error> {
    tsumugi::run(|rt| {
        let words = rt.share::<u64>(8)?;
        let buf = rt.buffer::<u64>(8)?;
        rt.ops().put(words.at(rt.rank(), 0), 1);
        rt.ops().get_buffer(words.at(rt.rank(), 0), buf).try_begin();
        Ok(())
    })
}
