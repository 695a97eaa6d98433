//! Stacks without guards need an `unsafe` promise that none of them overflows.

use tsumugi_ult::{Guards, Unguarded};

fn main() {
    let _ = Guards::None;
    let _: Guards = Guards::None(Unguarded::new());
}
