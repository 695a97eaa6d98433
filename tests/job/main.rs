//! Jobs whose ranks are processes: what they do, and what happens when a rank fails,
//! stalls or idles.
//!
//! ```text
//!  job [FILTER]               the cases, one after the other
//!  job --launch RANKS ROLE    a launcher; its exit code is the job's
//!  job --role ROLE            a rank
//! ```

mod adopted;
#[path = "../allocations/mod.rs"]
mod allocations;
mod apart;
mod cases;
mod collectors;
mod containers;
mod ending;
mod foreign;
#[path = "../collectives/mod.rs"]
mod collectives;
mod churn;
mod global;
mod homes;
mod inside;
mod launched;
mod locks;
mod memory_nodes;
mod mixture;
mod mourn;
#[path = "../moving/mod.rs"]
mod moving;
mod outside;
mod pages;
mod poor;
mod programs;
mod reach;
mod roles;
mod tally;

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use tsumugi as api;
use tsumugi::pvas::{Launch, Peers, Policy, Populate, SpaceConfig};
use tsumugi_core::sync::{AtomicU64, Ordering};

/// An allocator that counts the allocated bytes of the process.
struct Counting;

static HELD: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as u64, Ordering::Relaxed);
        allocations::note();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// The bytes that this process has allocated, without the tables in the partition.
pub fn held_bytes() -> u64 {
    HELD.load(Ordering::Relaxed)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["--launch", ranks, role] => launch(ranks, role),
        ["--role", role] => match roles::run(role) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let line = format!("rank: {error}\n");
                eprint!("{line}");
                ExitCode::from(7)
            }
        },
        _ => tsumugi_conformance::cases::run(cases::ALL, &args),
    }
}

fn launch(ranks: &str, role: &str) -> ExitCode {
    let own = std::env::current_exe().expect("a test knows its own path");
    let policy = match role {
        "readers" => Policy::default().peers(Peers::Read).populate(Populate::Peers),
        _ => Policy::default(),
    };
    let grace = SpaceConfig::from_env().expect("a case gives good variables").grace;
    let sizes = SpaceConfig::default().heap_bytes(1 << 30).stack_bytes(2 << 30);
    let job = Launch::new(ranks.parse().expect("a number of ranks"))
        .program(own, ["--role", role])
        .config(sizes.policy(policy).grace(grace))
        .forward_signals(true)
        .start()
        .expect("a job that starts");
    ExitCode::from(job.wait().expect("a job that ends").code() as u8)
}
