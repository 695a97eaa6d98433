//! Time of an 8-byte get, put and fetch-add through `Direct`, all checks
//! included, beside a bare loop over the same random places, in turns.
//!
//! `cargo run --release -p tsumugi-pvas --example direct`

use std::alloc::Layout;
use std::hint::black_box;
use std::time::Instant;
use tsumugi_core::backend::{LoadStore, execute};
use tsumugi_core::mem::{Access, Need, RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::random::SplitMix64;
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};
use tsumugi_pvas::{Direct, Member, SpaceConfig};

fn main() {
    let members = Member::threads(4, &SpaceConfig::default()).unwrap();
    let direct = members[0].direct();
    let addrs = places(&members);
    let bare: Vec<usize> = addrs
        .iter()
        .map(|addr| direct.resolve(*addr, 8, Need::Write).unwrap().as_ptr() as usize)
        .collect();
    let (addrs, bare) = (black_box(&addrs[..]), black_box(&bare[..]));
    println!("{:>6} {:>9} {:>10} {:>9}", "", "bare ns", "direct ns", "more ns");
    compare("get8", || bare_get(bare), || direct_get(&direct, addrs));
    compare("put8", || bare_put(bare), || direct_put(&direct, addrs));
    compare("fadd8", || bare_fadd(bare), || direct_fadd(&direct, addrs));
    members.iter().for_each(Member::finish);
}

/// 4,096 random words of four regions of 64 KiB of each rank.
fn places(members: &[Member]) -> Vec<RemoteAddr> {
    let layout = Layout::from_size_align(REGION_BYTES, 64).unwrap();
    let mut regions = Vec::new();
    for member in members {
        for _ in 0..4 {
            let memory = member.exposed().allocate_zeroed(layout).unwrap();
            // SAFETY: fresh exposed bytes of the rank, kept until the end.
            let region = unsafe {
                member.direct().register(memory, REGION_BYTES as u64, Access::ReadWrite).unwrap()
            };
            regions.push((member.rank(), region.key));
        }
    }
    let mut numbers = SplitMix64::new(1);
    let mut random = |bound: usize| numbers.below(bound as u64) as usize;
    let place = |_| {
        let (rank, key) = regions[random(regions.len())];
        RemoteAddr { rank, key, offset: random(REGION_BYTES / 8) as u64 * 8 }
    };
    (0..PLACES).map(place).collect()
}

fn compare(name: &str, mut bare: impl FnMut(), mut direct: impl FnMut()) {
    let time = |body: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..PASSES).for_each(|_| body());
        start.elapsed().as_secs_f64() * 1e9 / (PASSES * PLACES) as f64
    };
    let mut rounds: Vec<(f64, f64)> =
        (0..ROUNDS).map(|_| (time(&mut bare), time(&mut direct))).collect();
    rounds.sort_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    let (bare, direct) = rounds[ROUNDS / 2];
    println!("{name:>6} {bare:>9.2} {direct:>10.2} {:>9.2}", direct - bare);
}

#[inline(never)]
fn bare_get(places: &[usize]) {
    let mut sum = 0u64;
    for at in places {
        // SAFETY: a word of a registered region.
        sum = sum.wrapping_add(unsafe { word(*at) }.load(Ordering::Acquire));
    }
    black_box(sum);
}

#[inline(never)]
fn direct_get(direct: &Direct, places: &[RemoteAddr]) {
    let mut sum = 0u64;
    for addr in places {
        sum = sum.wrapping_add(execute(direct, &Op::get_word(*addr, Width::W8)).unwrap());
    }
    black_box(sum);
}

#[inline(never)]
fn bare_put(places: &[usize]) {
    for at in places {
        // SAFETY: a word of a registered region.
        unsafe { word(*at) }.store(7, Ordering::Release);
    }
}

#[inline(never)]
fn direct_put(direct: &Direct, places: &[RemoteAddr]) {
    for addr in places {
        execute(direct, &Op::put_word(*addr, Width::W8, 7)).unwrap();
    }
}

#[inline(never)]
fn bare_fadd(places: &[usize]) {
    for at in places {
        // SAFETY: a word of a registered region.
        unsafe { word(*at) }.fetch_add(1, Ordering::SeqCst);
    }
}

#[inline(never)]
fn direct_fadd(direct: &Direct, places: &[RemoteAddr]) {
    for addr in places {
        execute(direct, &Op::atomic(Kind::FetchAdd, *addr, 1u64)).unwrap();
    }
}

/// # Safety
///
/// `at` is the address of a word that is only accessed as an atomic.
#[inline(always)]
unsafe fn word<'a>(at: usize) -> &'a AtomicU64 {
    // SAFETY: the caller's.
    unsafe { AtomicU64::from_ptr(at as *mut u64) }
}

const PLACES: usize = 4096;
const REGION_BYTES: usize = 64 << 10;
const PASSES: usize = 256;
const ROUNDS: usize = 21;
