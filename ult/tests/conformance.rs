//! ULTs and OS threads keep the promises of `Wait`.
#![cfg(not(tsumugi_loom))]

mod common;

use tsumugi_ult::Here;

/// A ULT beside another worker.
struct Ult;

/// A ULT that is the only one of its scheduler.
struct LoneUlt;

/// A thread of the operating system.
struct OsThread;

impl tsumugi_conformance::sleep::Fixture for Ult {
    type Wait = Here;

    fn run(body: impl FnOnce(&Here) + Send + 'static) {
        common::scheduler(2, 4).run(|| tsumugi_ult::spawn(|| body(&Here)).join().unwrap());
    }
}

impl tsumugi_conformance::sleep::Fixture for LoneUlt {
    type Wait = Here;

    fn run(body: impl FnOnce(&Here) + Send + 'static) {
        common::scheduler(1, 4).run(|| body(&Here));
    }
}

impl tsumugi_conformance::sleep::Fixture for OsThread {
    type Wait = Here;

    fn run(body: impl FnOnce(&Here) + Send + 'static) {
        body(&Here);
    }
}

mod ult {
    tsumugi_conformance::sleep!(super::Ult);
}

mod lone_ult {
    tsumugi_conformance::sleep!(super::LoneUlt);
}

mod os_thread {
    tsumugi_conformance::sleep!(super::OsThread);
}
