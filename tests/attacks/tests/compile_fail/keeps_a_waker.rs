//! A waker that is kept although its sleep was refused could resume another sleeper
//! later.

use tsumugi_core::wait::{Reason, Wait};
use tsumugi_ult::Here;

fn main() {
    let mut kept = None;
    Here.sleep(Reason::new("attack"), &mut |waker| {
        kept = Some(waker);
        false
    });
    kept.unwrap().wake();
}
