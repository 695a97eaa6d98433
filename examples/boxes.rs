//! Everything that a program allocates where its peers can read it: each rank
//! shows the next one a `Vec`, without a copy and without registering it.
//!
//! `cargo run --release -- run -n 3 target/release/examples/boxes`

use std::ptr::NonNull;
use tsumugi::{Error, GlobalHeap, Rank};

#[global_allocator]
static HEAP: GlobalHeap = GlobalHeap;

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let words: Vec<u64> = (0..1000).map(|n| n * u64::from(rt.rank().0 + 1)).collect();
        let places = rt.gather(words.as_ptr() as u64)?;
        let peer = Rank((rt.rank().0 + 1) % rt.size());
        let place = NonNull::new(places[peer.0 as usize] as *mut u64).expect("a Vec has a place");
        let space = rt.load_store().space();
        let Some((owner, offset)) = space.place_of(place.cast(), 8000) else {
            return Err(Error::program("that Vec lies in no partition"));
        };
        // SAFETY: 1,000 words that their owner keeps, and leaves as they are,
        // until the barrier.
        let theirs = unsafe { std::slice::from_raw_parts(place.as_ptr(), 1000) };
        let sum: u64 = theirs.iter().sum();
        println!("{} reads a Vec of {owner} at {offset:#x}: its sum is {sum}", rt.rank());
        rt.barrier()
    })
}
