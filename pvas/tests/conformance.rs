//! `Direct` keeps every promise of the load/store seam.

use std::alloc::Layout;
use std::thread;
use tsumugi_conformance::load_store::Fixture;
use tsumugi_core::mem::{Access, Rank, Region, RegionKey};
use tsumugi_core::signal::{Until, Waiters};
use tsumugi_core::sync::AtomicU64;
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_pvas::partition::declare_lost;
use tsumugi_pvas::{Direct, Member, SpaceConfig};

/// Ranks that are threads of this process.
struct Threads {
    members: Vec<Member>,
    direct: Vec<Direct>,
}

impl Fixture for Threads {
    type Memory = Direct;

    fn new(ranks: u32) -> Self {
        let config = SpaceConfig::default()
            .exposed_bytes(16 << 20)
            .heap_bytes(64 << 20)
            .stack_bytes(16 << 20);
        let members = Member::threads(ranks, &config).unwrap();
        let direct = members.iter().map(Member::direct).collect();
        Self { members, direct }
    }

    fn memory(&self, rank: Rank) -> &Direct {
        &self.direct[rank.0 as usize]
    }

    fn register(&self, rank: Rank, bytes: u64, access: Access) -> Region {
        let layout = Layout::from_size_align(bytes as usize, 64).unwrap();
        let memory = self.members[rank.0 as usize].exposed().allocate_zeroed(layout).unwrap();
        // SAFETY: fresh exposed bytes, which are never released.
        unsafe { self.memory(rank).register(memory, bytes, access).unwrap() }
    }

    fn unregister(&self, rank: Rank, key: RegionKey) -> bool {
        self.memory(rank).unregister(key)
    }

    fn kill(&self, rank: Rank) {
        declare_lost(rank, self.members[0].space().controls());
    }

    fn expect_notice(&self, rank: Rank, region: &Region, offset: u64) {
        let member = self.members[rank.0 as usize].clone();
        let at = region.base.as_ptr() as usize + offset as usize;
        let parked = thread::spawn(move || {
            // SAFETY: registered memory of the fixture, aligned.
            let word = unsafe { AtomicU64::from_ptr(at as *mut u64) };
            let waiters = Box::leak(Box::new(Waiters::new()));
            let until = Until::Equal(u64::MAX);
            let _ = waiters.wait(member.control().parking_lot(), word, until, &Parks);
        });
        while !format!("{:?}", self.members[rank.0 as usize].control().parking_lot())
            .contains("(1 ")
        {
            assert!(!parked.is_finished(), "the waiter returned without a wait");
            thread::yield_now();
        }
    }

    fn has_notice(&self, rank: Rank) -> bool {
        self.members[rank.0 as usize].control().parking_lot().has_fired()
    }
}

/// Puts a thread to sleep for ever after it has announced what it waits for.
struct Parks;

// SAFETY: `commit` runs once; the sleep never returns.
unsafe impl Wait for Parks {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        // SAFETY: waking does nothing.
        commit(unsafe { Waker::new(std::ptr::null(), |_| ()) });
        loop {
            thread::park();
        }
    }

    fn yield_now(&self) {
        thread::yield_now();
    }
}

tsumugi_conformance::load_store!(Threads);
