//! A buffer with a borrow cannot be given to an operation.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi::run(|rt| {
        let words = rt.share::<u64>(8)?;
        let buf = rt.buffer::<u64>(8)?;
        let first = &buf[0];
        let status = rt.ops().get_buffer(words.at(rt.rank(), 0), buf).try_begin();
        println!("{first}");
        drop(status);
        Ok(())
    })
}
