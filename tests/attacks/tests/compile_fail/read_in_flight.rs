//! A buffer cannot be read while its operation may still write it.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi::run(|rt| {
        let words = rt.share::<u64>(8)?;
        let buf = rt.buffer::<u64>(8)?;
        let status = rt.ops().get_buffer(words.at(rt.rank(), 0), buf).try_begin();
        println!("{}", buf[0]);
        drop(status);
        Ok(())
    })
}
