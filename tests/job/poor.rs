//! A rank that has no memory left for whoever calls it.

// The crate, under a name that its own tests can give it, too.
use super::api;
use api::{Error, Rank, Runtime};
use std::time::Duration;

/// The last one's memory is used up while the others call it; it answers as
/// soon as some is given back, although nothing else wakes it.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    rt.handler(1, |message| message.bytes.to_vec());
    let last = Rank(rt.size() - 1);
    let full = (rt.rank() == last).then(|| {
        let blocks = (6..40).rev().map(|bits| rt.expose::<u8>(1 << bits));
        blocks.filter_map(Result::ok).collect::<Vec<_>>()
    });
    rt.barrier()?;
    if let Some(full) = full {
        let refused = rt.call(Rank(0), 1, b"").expect_err("there is no memory for its lanes");
        assert!(refused.to_string().contains("TSUMUGI_EXPOSED_BYTES"), "{refused}");
        // By now the others have called, and this one is asleep.
        api::ult::sleep(Duration::from_millis(50));
        drop(full);
    } else {
        assert_eq!(rt.call(last, 1, b"late")?, b"late");
    }
    rt.barrier()
}
