//! Published values: all ranks may read them and none may change them, also if the peers
//! of a rank have read access only.

#![forbid(unsafe_code)]

use std::sync::Arc;
use tsumugi::pvas::config::Peers;
use tsumugi::{AddrError, Config, Error, GlobalHeap, Remote, RemoteAddr, Until};
use tsumugi_core::mem::RegionKey;

#[global_allocator]
static HEAP: GlobalHeap = GlobalHeap;

/// This test is alone in its process, because a process allocates in the heap of its
/// first job.
#[test]
fn published_values_cannot_be_changed() {
    let mut config = Config::from_env().unwrap();
    config.space.policy.peers = Peers::Read;
    let ran = config.run_ranks(1, |rt| {
        let global = rt.global()?;
        let values: Arc<[u64]> = (0..64).map(|n| 0x5eed_0000 + n).collect();
        let region = global.publish(values.clone())?;
        assert!(global.put(region.first(), 1).is_err());
        let mut found = 0;
        for index in 0..256 {
            for generation in 1..6 {
                let (rank, key) = (rt.rank(), RegionKey::new(index, generation));
                let at = Remote::<u64>::new(RemoteAddr { rank, key, offset: 0 });
                if rt.get(at) != Ok(0x5eed_0000) {
                    continue;
                }
                found += 1;
                let addr = at.addr();
                assert_eq!(rt.put(at, 1), Err(AddrError::ReadOnly { addr }));
                assert_eq!(rt.put_slice(at, &[1; 3]), Err(AddrError::ReadOnly { addr }));
                assert_eq!(rt.fetch_add(at, 1), Err(AddrError::ReadOnly { addr }));
                let waited = rt.wait_until(at, Until::NotEqual(0));
                assert_eq!(waited, Err(AddrError::ReadOnly { addr }));
            }
        }
        assert_eq!(found, 1, "the region has one key");
        assert!((0..).zip(&*values).all(|(n, value)| *value == 0x5eed_0000 + n));
        // The owner may change an exposed region and wait on its words.
        let own = rt.expose::<u64>(8)?;
        rt.put(own.at(3), 4)?;
        assert_eq!(rt.wait_until(own.at(3), Until::Equal(4))?, 4);
        rt.barrier()
    });
    ran.unwrap_or_else(|error: Error| panic!("{error}"));
}
