//! Every allocation of a program in memory that its peers can read: each rank lets
//! the next rank of its node read a `Vec`, without a copy and without registering
//! it.
//!
//! `cargo run --release -- run -n 3 target/release/examples/boxes`

use std::ptr::NonNull;
use tsumugi::{Error, GlobalHeap, Rank};

#[global_allocator]
static HEAP: GlobalHeap = GlobalHeap;

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let words: Vec<u64> = (0..1000).map(|n| n * u64::from(rt.rank().0 + 1)).collect();
        let places = rt.allgather(words.as_ptr() as u64)?;
        // Loads reach only the ranks of this node.
        let near: Vec<Rank> = rt.neighbours().collect();
        let own = near.iter().position(|rank| *rank == rt.rank()).expect("its own neighbour");
        let peer = near[(own + 1) % near.len()];
        let place = NonNull::new(places[peer.0 as usize] as *mut u64).expect("a Vec has a place");
        let found = rt.place_of(place.cast(), 8000);
        let Some((owner, offset)) = found.filter(|(owner, _)| *owner == peer) else {
            return Err(Error::program("that Vec does not lie in its owner's partition"));
        };
        // SAFETY: the owner keeps these 1,000 words, and does not change them,
        // until the barrier.
        let theirs = unsafe { std::slice::from_raw_parts(place.as_ptr(), 1000) };
        let sum: u64 = theirs.iter().sum();
        println!("{} reads a Vec of {owner} at {offset:#x}: its sum is {sum}", rt.rank());
        rt.barrier()
    })
}
