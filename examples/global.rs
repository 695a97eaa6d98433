//! A list with nodes on all ranks. Each rank inserts a node of its own at the
//! front, by a compare-and-swap of one global address, and then every rank reads
//! the whole list.
//!
//! `cargo run --release -- run -n 4 target/release/examples/global`

use tsumugi::{Error, GlobalAddr, GlobalPtr, Rank};

fn main() -> Result<(), Error> {
    tsumugi::run(|rt| {
        let global = rt.global()?;
        // The head of the list: starter memory, which every rank can address from
        // the start.
        let head = global.starter(Rank(0))?;
        // A node: its value, and the address of the next node.
        let node = global.expose::<u64>(2)?;
        global.put(node.at(0), u64::from(rt.rank().0) * 100)?;
        let mut next = global.get(head)?;
        loop {
            global.put(node.at(1), next)?;
            // An address is a word, so one atomic makes the node the first one.
            match global.compare_swap(head, next, node.at(0).addr().to_bits())? {
                before if before == next => break,
                before => next = before,
            }
        }
        rt.barrier()?;

        let (mut at, mut said) = (global.pointer::<u64>(global.get(head)?), Vec::new());
        while !at.is_null() {
            said.push(global.get(at)?);
            at = GlobalPtr::new(GlobalAddr::from_bits(global.get(global.index(at, 1)?)?));
        }
        said.sort_unstable();
        println!("{} reads {said:?}", rt.rank());
        // No rank may free its node before all ranks have read the list.
        rt.barrier()
    })
}
