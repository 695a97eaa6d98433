//! A waker that is reported as withdrawn could be used later.

use std::time::Duration;
use tsumugi_core::wait::{Reason, WaitFor};
use tsumugi_ult::{Here, Limit};

fn main() {
    let reason = Reason::new("attack");
    let mut kept = None;
    let _ = Here.sleep_for(
        reason,
        Duration::from_millis(1),
        &mut |waker| {
            kept = Some(waker);
            true
        },
        &mut || true,
    );
    let _ = Here.sleep_within(reason, Limit::NONE, &mut |_| true, &mut || true);
}
