//! Roles that use the ranks' own partitions and those of their peers.

use super::roles::say;
use std::alloc::Layout;
use std::fs;
use std::process::ExitCode;
use std::ptr::NonNull;
use std::time::Duration;
use tsumugi_core::backend::execute;
use tsumugi_core::boot::{Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::{
    Access, AddrError, LocalRank, MemorySource, Rank, RegionKey, RemoteAddr, Width,
};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::mapped::{AtomicU64, Ordering};
use tsumugi_pvas::cma::{self, CmaError};
use tsumugi_pvas::{HugePages, Meeting, Member, NodeId, Peers, Populate, SpaceConfig};

/// Plays a role.
pub fn play(role: &str, member: &mut Member) {
    match role {
        "base" => base(member),
        "populate" => populate(member),
        "huge" => huge(member),
        "exact" => exact(member),
        "guarded" => guarded(member),
        "store" => store(member),
        "cma" => outside(member),
        _ => panic!("no role {role}"),
    }
}

/// Maps the place that a case wants taken, before the rank attaches.
pub fn squat() {
    let Ok(text) = std::env::var("TSUMUGI_TEST_SQUAT") else { return };
    let at = usize::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: nothing that is mapped is replaced.
    let got = unsafe { libc::mmap(at as *mut _, 4096, libc::PROT_READ, flags, -1, 0) };
    assert_eq!(got as usize, at);
}

/// Waits for the other ranks for a short time.
pub fn impatient() -> ExitCode {
    let text = |name| std::env::var(name).unwrap();
    let meeting = Meeting {
        job: &text("TSUMUGI_JOB"),
        node: NodeId::here(),
        local: LocalRank(text("TSUMUGI_RANK").parse().unwrap()),
        size: 2,
        limit: Duration::from_millis(50),
    };
    say(&Member::meet(&meeting, &SpaceConfig::default()).unwrap_err().to_string());
    ExitCode::SUCCESS
}

/// Reports the place of the partitions, and accesses a peer's there.
fn base(member: &mut Member) {
    let (rank, size) = (member.rank().0, member.size());
    member.barrier().unwrap();
    say(&format!("{rank} of {size} at {:#x}", member.space().shape().base));
    let next = RemoteAddr {
        rank: Rank((rank + 1) % size),
        key: tsumugi_pvas::partition::STARTER_KEY,
        offset: 8,
    };
    execute(&member.direct(), &Op::atomic(Kind::FetchAdd, next, 7u64)).unwrap();
    member.barrier().unwrap();
    let own = RemoteAddr { rank: member.rank(), ..next };
    assert_eq!(execute(&member.direct(), &Op::get_word(own, Width::W8)), Ok(7));
    say("a word came across");
}

/// Counts the pages that are in memory before their first use.
fn populate(member: &mut Member) {
    let (space, peer) = (member.space().clone(), Rank(1 - member.rank().0));
    let resident = |rank: LocalRank| space.pages(rank).unwrap().resident_bytes;
    let before = (resident(member.local()), space.populated(member.local()));
    let layout = Layout::from_size_align(1 << 20, 4096).unwrap();
    let held = member.heap().allocate(layout).unwrap();
    let array = member.exposed().allocate_zeroed(layout).unwrap();
    let came = resident(member.local()) - before.0;
    // The tables of the allocator are touched as well.
    let (tables, both) = (64 << 10, 2 << 20);
    match space.populated(member.local()) {
        None => assert!(came <= tables, "{came} bytes of unused pages are in memory"),
        Some(done) => {
            assert!((both..both + 4 * tables).contains(&came), "{came} bytes of pages");
            assert!(done.bytes >= both && done.ns > 0, "{done:?}");
        }
    }
    member.publish(&[held, array].map(|at| (at.as_ptr() as u64).to_le_bytes()).concat()).unwrap();
    member.barrier().unwrap();
    let mut card = [0; CARD_BYTES_MAX];
    assert_eq!(member.card(peer, &mut card), Ok(16));
    let head = resident(LocalRank(peer.0));
    assert!(head <= 512 << 10, "{head} bytes of a peer are mapped before their use");
    let at = u64::from_le_bytes(card[..8].try_into().unwrap());
    let at = NonNull::new(at as *mut u8).unwrap();
    for _ in 0..2 {
        space.reach(LocalRank(peer.0), at, 256 << 10); // one window or two, the second time none
    }
    let (of_peers, policy) = (space.populated_of_peers().bytes, space.policy().populate);
    assert_eq!(resident(LocalRank(peer.0)) - head, of_peers);
    assert_eq!(of_peers > 0, policy == Populate::Peers);
    assert!(of_peers <= 512 << 10, "{of_peers}");
    assert_eq!(space.populated(member.local()).is_none(), policy == Populate::None);
    member.barrier().unwrap();
    say(&format!("populated as {policy:?} says"));
}

/// Compares the requested pages with those that the system gave.
fn huge(member: &mut Member) {
    let (space, rank) = (member.space().clone(), member.rank());
    let layout = Layout::from_size_align(8 << 20, 4096).unwrap();
    let block = member.heap().allocate(layout).unwrap();
    // SAFETY: the block is ours.
    unsafe { block.write_bytes(1, layout.size()) };
    let pages = space.pages(LocalRank(rank.0)).unwrap();
    let setting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let setting = fs::read_to_string(setting).unwrap_or_default();
    match space.policy().huge_pages {
        HugePages::Reserved => {
            assert!(pages.huge_bytes >= 8 << 20, "{pages:?}");
            say("its heap is of huge pages");
        }
        HugePages::None => say("not asked for"),
        HugePages::Advise => {
            let start = space.shape().start(LocalRank(rank.0)) + space.shape().exposed_offset();
            assert!(flags_at(start).contains(" hg "), "the advice is taken");
            say("asked for");
            let allowed = !setting.contains("[never]") && !setting.contains("[deny]");
            assert!(allowed || pages.huge_bytes == 0, "{setting} {pages:?}");
            say("as the system allows");
        }
        other => panic!("{other:?} has no test"),
    }
    member.barrier().unwrap();
}

fn flags_at(at: usize) -> String {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let from = maps.find(&format!("{at:x}-")).unwrap_or_else(|| panic!("no map at {at:x}"));
    let flags = maps[from..].lines().find(|line| line.starts_with("VmFlags:")).unwrap();
    format!("{flags} ")
}

fn exact(member: &mut Member) {
    let shape = member.space().shape();
    let sizes = (shape.exposed_bytes, shape.heap_bytes, shape.stack_bytes);
    assert_eq!(sizes, (64 << 20, 64 << 20, 64 << 20));
    let blocks = std::iter::from_fn(|| {
        member.heap().allocate(Layout::from_size_align(1 << 20, 4096).unwrap())
    });
    assert!(blocks.count() >= 32, "most of the heap can be allocated");
    member.barrier().unwrap();
    say("sizes are exact");
}

/// Puts to a peer's exposed memory and rings, compared with `is_writable`.
fn guarded(member: &mut Member) {
    let direct = member.direct();
    let layout = Layout::from_size_align(64, 64).unwrap();
    let array = member.exposed().allocate_zeroed(layout).unwrap();
    let ring = member.rings().allocate_zeroed(layout).unwrap();
    let held = member.heap().allocate(layout).unwrap();
    // SAFETY: plain bytes; what is exposed or for rings never becomes
    // anything else, and the heap's block is kept.
    let keys = unsafe {
        held.write_bytes(3, 64);
        [
            direct.register(array, 64, Access::ReadWrite).unwrap().key,
            direct.register(ring, 64, Access::ReadWrite).unwrap().key,
            direct.register(held, 64, Access::Read).unwrap().key,
        ]
    };
    let mut text: Vec<u8> = keys.iter().flat_map(|key| key.to_bits().to_le_bytes()).collect();
    for block in [array, ring, held] {
        text.extend((block.as_ptr() as u64).to_le_bytes());
    }
    member.publish(&text).unwrap();
    member.barrier().unwrap();
    let (mut card, peer) = ([0; CARD_BYTES_MAX], Rank(1 - member.rank().0));
    assert_eq!(member.card(peer, &mut card), Ok(36));
    let key = |at: usize| {
        let bits = u32::from_le_bytes(card[4 * at..4 * at + 4].try_into().unwrap());
        RemoteAddr { rank: peer, key: RegionKey::from_bits(bits), offset: 0 }
    };
    let at = |at: usize| {
        let from = 12 + 8 * at;
        u64::from_le_bytes(card[from..from + 8].try_into().unwrap()) as usize
    };
    let put = |addr| execute(&direct, &Op::put_word(addr, Width::W8, 5));
    let space = member.space().clone();
    let peers = space.policy().peers;
    // The heap is registered for reading alone, in every job.
    assert_eq!(put(key(2)), Err(AddrError::ReadOnly { addr: key(2) }));
    assert_eq!(execute(&direct, &Op::get_word(key(2), Width::W1)), Ok(3));
    let array_put = put(key(0));
    match peers {
        Peers::Read => assert_eq!(array_put, Err(AddrError::ReadOnly { addr: key(0) })),
        _ => assert!(array_put.is_ok(), "{array_put:?}"),
    }
    assert!(put(key(1)).is_ok(), "rings are written to in every job");
    assert!(execute(&direct, &Op::get_word(key(0), Width::W8)).is_ok());
    let own = RemoteAddr { rank: member.rank(), key: keys[0], offset: 8 };
    assert!(put(own).is_ok(), "the own array is the owner's to change");
    let writable = [0, 1, 2].map(|index| {
        let block = NonNull::new(at(index) as *mut u8).unwrap();
        assert_eq!(space.place_of(block, 64).unwrap().0, LocalRank(peer.0));
        space.is_writable(block, 64)
    });
    let wanted = match peers {
        Peers::Write => ([true, true, true], "all"),
        Peers::ReadHeap => ([true, true, false], "exposed"),
        Peers::Read => ([false, true, false], "rings"),
        other => panic!("{other:?} has no test"),
    };
    assert_eq!(writable, wanted.0);
    assert!(space.is_writable(held, 64), "the own heap is writable");
    say(&format!("peers write: {}", wanted.1));
    member.barrier().unwrap();
}

/// Loads from a peer's heap, and then stores there.
fn store(member: &mut Member) {
    member.barrier().unwrap();
    if member.rank() == Rank(0) {
        let shape = member.space().shape();
        // Far from the memory that the peer's allocator uses.
        let at = shape.start(LocalRank(1)) + shape.stacks_offset() - 4096;
        // SAFETY: mapped, and used by no other code.
        let word = unsafe { &*(at as *const AtomicU64) };
        assert_eq!(word.load(Ordering::Relaxed), 0);
        say("read before");
        word.store(1, Ordering::Relaxed);
        say("stored");
    }
    member.barrier().unwrap();
}

/// Copies between memory that lies in no partition.
fn outside(member: &mut Member) {
    let (space, peer) = (member.space().clone(), Rank(1 - member.rank().0));
    let mut bytes = vec![member.rank().0 as u8 + 1; 100_000];
    let place = NonNull::from(&mut bytes[0]);
    assert_eq!(space.place_of(place, 1), None, "a Vec lies outside");
    member.publish(&(place.as_ptr() as u64).to_le_bytes()).unwrap();
    member.barrier().unwrap();
    let mut card = [0; CARD_BYTES_MAX];
    assert_eq!(member.card(peer, &mut card), Ok(8));
    let at = u64::from_le_bytes(card[..8].try_into().unwrap()) as usize;
    let pid = member.control_of(peer).pid();
    match space.cma(LocalRank(peer.0)) {
        Ok(()) => {
            let mut copy = vec![0; bytes.len()];
            // SAFETY: the peer leaves its bytes alone until the barrier.
            unsafe { cma::read_from(pid, at, &mut copy) }.unwrap();
            assert!(copy.iter().all(|byte| u32::from(*byte) == peer.0 + 1));
            member.barrier().unwrap();
            // SAFETY: the peer lends the first half.
            unsafe { cma::write_to(pid, at, &[9; 50_000]) }.unwrap();
            member.barrier().unwrap();
            let first = std::hint::black_box(&bytes)[..50_000].iter().all(|byte| *byte == 9);
            let rest = bytes[50_000..].iter().all(|byte| u32::from(*byte) == member.rank().0 + 1);
            assert!(first && rest, "half of it was written");
        }
        Err(CmaError::Refused { pid: refused }) => {
            assert_eq!(refused, pid);
            (0..2).for_each(|_| member.barrier().unwrap());
        }
        Err(other) => panic!("{other}"),
    }
    assert_eq!(space.cma(member.local()), Ok(()), "no copy is needed");
    say("all that is allowed works");
    member.barrier().unwrap();
}
