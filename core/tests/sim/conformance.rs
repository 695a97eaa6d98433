//! The promises of every endpoint, on nodes of a network with all faults.

use super::SEEDS;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use tsumugi_conformance::once::Once;
use tsumugi_core::mem::{Access, Rank, Region};
use tsumugi_core::sim::{Net, SimConfig, SimNode, check};
use tsumugi_core::tag::Tag;

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

struct Simulated {
    net: &'static Net,
    domain: Once<SimNode<'static>>,
    tags: AtomicU64,
}

impl tsumugi_conformance::endpoint::Fixture for Simulated {
    type Domain = Once<SimNode<'static>>;

    const ROUNDS: usize = 2;

    fn new(ranks: u32) -> Self {
        let net: &Net = Box::leak(Box::new(Net::new(SimConfig::drawn(ranks, SEED.get()))));
        // The network moves only in steps.
        let pump = || {
            net.step();
        };
        Self { net, domain: Once::new(net.node(Rank(0)), pump), tags: AtomicU64::new(0) }
    }

    fn domain(&self) -> &Self::Domain {
        &self.domain
    }

    fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region {
        self.net.node(rank).allocate(bytes, access).unwrap()
    }

    fn tag(&self) -> Tag {
        Tag::from_bits(self.tags.fetch_add(1, Ordering::Relaxed))
    }
}

macro_rules! with_each_seed {
    ($($promise:ident),* $(,)?) => {$(
        #[test]
        fn $promise() {
            check(SEEDS, |seed| {
                SEED.set(seed);
                tsumugi_conformance::endpoint::$promise::<Simulated>();
            });
        }
    )*};
}

with_each_seed!(
    every_post_completes_once,
    a_full_queue_takes_fewer,
    errors_are_completions,
    transfers_arrive,
    capabilities_are_kept,
);
