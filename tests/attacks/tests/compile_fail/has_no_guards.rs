//! Stacks that run into each other unnoticed are a promise of the program's.

use tsumugi_ult::{Guards, Unguarded};

fn main() {
    let _ = Guards::None;
    let _: Guards = Guards::None(Unguarded::new());
}
