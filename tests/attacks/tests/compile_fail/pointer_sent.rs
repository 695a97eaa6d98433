//! A value with a pointer, which means nothing at another rank, cannot be shared.

fn main() -> Result<(), tsumugi::Error> {
    tsumugi::run(|rt| {
        let _names = rt.share::<&'static str>(8)?;
        Ok(())
    })
}
