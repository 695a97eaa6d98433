//! What means something else at the other rank is not sent there.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi::run(|rt| {
        let words = rt.share::<&'static str>(8)?;
        rt.put(words.at(rt.rank(), 0), "here")?;
        Ok(())
    })
}
