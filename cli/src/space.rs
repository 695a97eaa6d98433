//! `tsumugi info --space`: the resources that a job of two ranks gets from this
//! system.
//!
//! This command starts two ranks, which attach, write a block of their heaps and
//! read each other's block. Rank 0 reports the settings, their effect, and the
//! times.

use crate::failure::Failure;
use crate::{job, text};
use std::alloc::Layout;
use std::fs;
use std::hint::black_box;
use std::ptr::NonNull;
use std::time::Instant;
use tsumugi::Rank;
use tsumugi::pvas::populate::{PopulateMethod, Populated};
use tsumugi::pvas::space::Pages;
use tsumugi::pvas::{HugePages, Member, Populate, Space, attach};
use tsumugi_core::boot::{Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::{LocalRank, MemorySource};

/// Returns the description at rank 0; an empty text at rank 1 and in the process
/// that starts the ranks.
pub fn describe() -> Result<String, Failure> {
    if !attach::is_rank() {
        return job::run_self(2);
    }
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let mut member = attach().expect("this process is a rank").map_err(|error| failed(&error))?;
    let text = as_rank(&mut member).map_err(|error| failed(&error))?;
    member.finish();
    Ok(if Member::rank(&member) == Rank(0) { text } else { String::new() })
}

fn as_rank(member: &mut Member) -> Result<String, tsumugi::Error> {
    let space = member.space().clone();
    let layout = Layout::from_size_align(BLOCK_BYTES, PAGE_BYTES).expect("a valid layout");
    let out =
        tsumugi::Error::OutOfMemory { bytes: BLOCK_BYTES, variable: tsumugi::pvas::config::HEAP };
    let block = member.heap().allocate(layout).ok_or(out)?;
    let start = Instant::now();
    for page in (0..BLOCK_BYTES).step_by(PAGE_BYTES) {
        // SAFETY: the block is this rank's own, and `page` lies in it.
        unsafe { block.add(page).write_volatile(1) };
    }
    let touch_ns = start.elapsed().as_nanos() as f64;
    member.publish(&(block.as_ptr() as u64).to_ne_bytes())?;
    member.barrier()?;
    let own = member.local();
    // On one node the rank of a member is its place.
    let (peer, mut card) = (LocalRank((own.0 + 1) % space.size()), [0; CARD_BYTES_MAX]);
    member.card(Rank(peer.0), &mut card)?;
    let at = u64::from_ne_bytes(card[..8].try_into().expect("the slice has 8 bytes")) as *mut u8;
    let at = NonNull::new(at).expect("a block has an address");
    space.reach(peer, at, BLOCK_BYTES as u64);
    let start = Instant::now();
    for page in (0..BLOCK_BYTES).step_by(PAGE_BYTES) {
        // SAFETY: the block is mapped as long as the space is, and the peer writes
        // no more.
        black_box(unsafe { at.add(page).read_volatile() });
    }
    let read_ns = start.elapsed().as_nanos() as f64;
    let facts = facts(&space, own, peer, (touch_ns, read_ns));
    member.barrier()?;
    Ok(facts)
}

fn facts(
    space: &Space,
    own: LocalRank,
    peer: LocalRank,
    (touch_ns, read_ns): (f64, f64),
) -> String {
    let (shape, policy) = (space.shape(), space.policy());
    let populated = |done: Populated| {
        let by = match done.by {
            PopulateMethod::Kernel => "by the kernel",
            PopulateMethod::Touch => "a page at a time",
        };
        format!("{} in {} {by}", text::bytes(done.bytes), text::time(done.ns as f64))
    };
    let of_peers = space.populated_of_peers();
    let per_page = |ns: f64| text::time(ns / (BLOCK_BYTES / PAGE_BYTES) as f64);
    let none = || "no".to_owned();
    let cma = match space.cma(peer) {
        Ok(()) => "works".to_owned(),
        Err(error) => error.to_string(),
    };
    let rows = [
        ("partitions", format!("at {:#x}, 1 << {} apart", shape.base, shape.shift)),
        ("size of each (virtual)", text::bytes(shape.bytes() as u64)),
        ("populate", policy.populate.word().to_owned()),
        ("populated by the owner", space.populated(own).map_or_else(none, populated)),
        (
            "populated by a peer",
            if policy.populate == Populate::Peers { populated(of_peers) } else { none() },
        ),
        ("first use of a page by the owner", per_page(touch_ns)),
        ("first use of a page by a peer", per_page(read_ns)),
        ("huge pages, requested", policy.huge_pages.word().to_owned()),
        ("huge pages, allowed", allowed(policy.huge_pages)),
        ("huge pages, owner", got(space.pages(own))),
        ("huge pages, peer", got(space.pages(peer))),
        ("peers may", policy.peers.word().to_owned()),
        ("cross-memory copy", cma),
    ];
    format!("what a job of {} gets here\n{}", space.size(), text::facts(&rows))
}

/// The administrator's setting of huge pages for memory files.
pub fn allowed(asked: HugePages) -> String {
    if asked == HugePages::Reserved {
        let free = tsumugi::pvas::space::limits().huge_page_bytes;
        return format!("{} left in the pool", text::bytes(free));
    }
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    let setting = setting.ok().and_then(|text| chosen(&text).map(str::to_owned));
    setting.map_or_else(|| "unknown".to_owned(), |word| format!("shmem_enabled is {word}"))
}

/// The word in brackets.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

fn got(pages: Option<Pages>) -> String {
    pages.map_or_else(
        || "unknown".to_owned(),
        |Pages { huge_bytes, resident_bytes }| {
            format!("{} of {}", text::bytes(huge_bytes), text::bytes(resident_bytes))
        },
    )
}

const BLOCK_BYTES: usize = 8 << 20;
const PAGE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_the_choice() {
        assert_eq!(chosen("always within_size [advise] never\n"), Some("advise"));
        assert_eq!(chosen("nothing"), None);
    }

    #[test]
    fn huge_pages_are_shown_of_all_pages() {
        let pages = Pages { resident_bytes: 8 << 20, huge_bytes: 2 << 20 };
        assert_eq!(got(Some(pages)), "2.00 MiB of 8.00 MiB");
        assert_eq!(got(None), "unknown");
    }
}
