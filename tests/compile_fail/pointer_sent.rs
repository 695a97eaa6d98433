//! What means something else at the other rank is not sent there.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi::run(|rt| {
        let _names = rt.share::<&'static str>(8)?;
        Ok(())
    })
}
