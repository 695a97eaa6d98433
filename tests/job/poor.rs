//! A rank that has no memory left for the lanes of its callers.

// The crate `tsumugi`, under a name that the crate's own tests can use, too.
use super::api;
use api::{Error, Rank, Runtime};
use std::time::Duration;

/// The memory of the last rank is used up while the other ranks call it. It answers as
/// soon as memory is free again, although nothing else wakes it.
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
        // During this sleep, the other ranks call.
        api::ult::sleep(Duration::from_millis(50));
        drop(full);
    } else {
        assert_eq!(rt.call(last, 1, b"late")?, b"late");
    }
    rt.barrier()
}
