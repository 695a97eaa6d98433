//! A program whose allocator is the partition's heap. All tests share one heap, that of
//! the first rank of this process; a test that needs a process of its own starts this
//! binary again.

use std::alloc::{GlobalAlloc, Layout, System, alloc, dealloc};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::ptr;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use tsumugi::pvas::Launch;
use tsumugi::{Config, Error, GlobalHeap, Rank, Runtime};
use tsumugi_core::mem::LocalRank;
use tsumugi_core::msg::MessagePath;
use tsumugi_core::random::SplitMix64;
use tsumugi_core::sync::mapped::{AtomicU32, Ordering};

#[global_allocator]
static HEAP: GlobalHeap = GlobalHeap;

/// Runs `main` as the only rank of a job, one job at a time, so that all jobs have the
/// same partition.
fn rank<T: Send>(main: impl FnOnce(&Runtime) -> T + Send) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    Config::default().workers(2).run(|rt| Ok::<_, Error>(main(rt))).unwrap()
}

fn is_in_partition<T: ?Sized>(value: &T) -> bool {
    let (start, bytes) = (ptr::from_ref(value).addr(), size_of_val(value));
    let partition = PARTITION.take();
    PARTITION.set(partition.clone());
    partition.contains(&start) && start + bytes <= partition.end
}

thread_local! {
    /// The addresses of the partition of the test that runs on this thread. The space
    /// itself is not kept: a thread that ends after the next test has begun would keep the
    /// partition in use, and the next test would get another one.
    static PARTITION: Cell<Range<usize>> = const { Cell::new(0..0) };
}

fn look_into(rt: &Runtime) {
    let shape = rt.space().shape();
    let start = shape.start(LocalRank(0));
    PARTITION.set(start + shape.starter_offset()..start + shape.bytes());
}

#[test]
fn allocations_of_a_rank_lie_in_its_partition() {
    let (before, mut grown) = (Box::new(5_u64), vec![1_u8; 100]);
    rank(move |rt| {
        look_into(rt);
        let first = grown.as_ptr();
        grown.extend([2; 100_000]);
        assert_ne!(first, grown.as_ptr());
        assert!(is_in_partition(&grown[..]), "a block that grows moves into the heap");
        assert!(grown[..100].iter().all(|byte| *byte == 1));
        let (boxed, text) = (Box::new([7_u64; 50]), "silk".repeat(1000));
        assert!(is_in_partition(&*boxed) && is_in_partition(&*text));
        let local = 3_u32;
        assert!(is_in_partition(&local), "a ULT's stack");
        drop((before, boxed));
        let from_ult = rt.spawn(|rt| {
            look_into(rt);
            let words: Vec<String> = (0..100).map(|n| n.to_string()).collect();
            let inside = is_in_partition(&words[..]) && words.iter().all(|w| is_in_partition(&**w));
            (words, inside)
        });
        let (words, inside) = from_ult.join().unwrap();
        assert!(inside && words[99] == "99");
        let from_thread = thread::spawn(move || words.iter().map(String::len).sum::<usize>());
        assert_eq!(from_thread.join().unwrap(), 190);
    });
}

#[test]
fn zeroed_memory_is_zero_after_use() {
    rank(|_| {
        for bytes in [10, 1000, 100_000, 10 << 20] {
            for _ in 0..3 {
                let mut zeroed = vec![0_u8; bytes];
                assert!(zeroed.iter().all(|byte| *byte == 0));
                zeroed.fill(0xff);
            }
        }
    });
}

#[test]
fn more_alignment_than_the_heap_has_comes_from_the_system() {
    rank(|rt| {
        look_into(rt);
        let layout = Layout::from_size_align(4096, 1 << 20).unwrap();
        let before = GlobalHeap::spilled().0;
        // SAFETY: not empty; released with the same layout.
        unsafe {
            let block = alloc(layout);
            assert!(block.addr().is_multiple_of(1 << 20) && !is_in_partition(&*block));
            dealloc(block, layout);
        }
        assert!(GlobalHeap::spilled().0 > before);
    });
}

static DROPPED: AtomicU32 = AtomicU32::new(0);

/// A value whose destructor allocates.
struct Last(Vec<String>);

impl Drop for Last {
    fn drop(&mut self) {
        let joined = self.0.join(",");
        assert_eq!(joined.split(',').count(), self.0.len());
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn thread_locals_are_dropped_with_their_threads() {
    thread_local! {
        static KEPT: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    rank(|_| {
        let (send, receive) = mpsc::channel();
        for number in 0..20 {
            let send = send.clone();
            let thread = thread::spawn(move || {
                KEPT.set(Some(Last((0..50).map(|n| format!("{number} {n}")).collect())));
                send.send(vec![number; 100]).unwrap();
            });
            thread.join().unwrap();
        }
        drop(send);
        // This thread frees the blocks of threads that are gone.
        assert_eq!(receive.iter().map(|block| block.len()).sum::<usize>(), 2000);
        assert_eq!(DROPPED.load(Ordering::SeqCst), 20);
    });
}

#[test]
fn programs_are_started_from_ults_and_threads() {
    rank(|rt| {
        let kept: Vec<String> = (0..1000).map(|n| format!("kept {n}")).collect();
        let echo = || {
            let output = Command::new("/bin/echo").args(["a", "b"]).env("X", "y").output();
            assert_eq!(output.unwrap().stdout, b"a b\n");
        };
        for _ in 0..5 {
            rt.spawn(move |_| echo()).join().unwrap();
            thread::spawn(echo).join().unwrap();
        }
        // With `pre_exec` the child is forked. It may allocate before `exec`, which does
        // not change the parent's heap.
        let forked = || {
            let mut command = Command::new("/bin/echo");
            let prepare = || {
                let mut held = vec![vec![1_u8; 100_000], vec![2; 100]];
                held[1].extend(vec![3; 50_000]);
                drop((held, vec![9_u8; 1 << 20]));
                Ok(())
            };
            // SAFETY: the closure only allocates, and glibc's allocator works in a forked
            // child.
            unsafe { command.arg("c").pre_exec(prepare) };
            assert_eq!(command.output().unwrap().stdout, b"c\n");
        };
        for _ in 0..5 {
            thread::spawn(forked).join().unwrap();
        }
        assert!(kept.iter().enumerate().all(|(n, text)| *text == format!("kept {n}")));
        churn(1, 20_000);
    });
}

#[test]
fn a_forked_child_leaves_the_heap_alone() {
    rank(|rt| {
        look_into(rt);
        let held: Vec<Vec<u8>> = (0..200).map(|n| vec![n as u8; n * 7 + 1]).collect();
        assert!(is_in_partition(&held[3][..]));
        let start = held[0].as_ptr().addr();
        let child = move || {
            // SAFETY: the child ends with `_exit`, and only allocates before.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                let fresh = vec![7_u8; 300];
                let is_far = fresh.as_ptr().addr().abs_diff(start) > 1 << 40;
                // The parent would see a change of a block in its heap, so the child changes
                // copies of the vectors' headers only.
                for block in &held {
                    // SAFETY: the original header is not used any more in the child.
                    let mut block = unsafe { std::ptr::read(block) };
                    block.reserve(block.len() % 3 * 1000);
                }
                // SAFETY: the child of the fork above.
                unsafe { libc::_exit(if is_far { 0 } else { 1 }) };
            }
            let mut status = 0;
            // SAFETY: the call writes to a local variable.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            assert_eq!(status, 0, "a forked child allocates from the system");
            held
        };
        let held = thread::spawn(child).join().unwrap();
        churn(3, 20_000);
        for (n, block) in held.iter().enumerate() {
            assert!(block.iter().all(|byte| *byte == n as u8), "block {n}");
        }
    });
}

#[test]
fn a_million_blocks_of_four_threads_never_overlap() {
    rank(|_| {
        thread::scope(|scope| {
            let (sends, receives): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel()).unzip();
            for (number, receive) in receives.into_iter().enumerate() {
                let next = sends[(number + 1) % 4].clone();
                scope.spawn(move || {
                    let mut checker = Checker::new(number as u64 + 1);
                    for step in 0..250_000 {
                        checker.step();
                        if step % 64 == 0 {
                            if let Some(block) = checker.blocks.pop_front() {
                                let _ = next.send(block); // the receiver may have ended
                            }
                            checker.blocks.extend(receive.try_iter());
                        }
                    }
                });
            }
        });
    });
}

/// Random allocations and releases of one thread.
fn churn(seed: u64, steps: u32) {
    let mut checker = Checker::new(seed);
    (0..steps).for_each(|_| checker.step());
}

/// Blocks, each filled with a byte of its own. Two blocks that overlap are found when the
/// damaged one is used next.
struct Checker {
    random: SplitMix64,
    blocks: VecDeque<(Vec<u8>, u8)>,
}

impl Checker {
    fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed), blocks: VecDeque::new() }
    }

    fn random(&mut self) -> usize {
        self.random.next() as usize
    }

    fn step(&mut self) {
        let (choice, shift, fill) = (self.random() % 8, self.random() % 14, self.random() as u8);
        let bytes = self.random() % (1 << shift) + 1;
        if choice < 3 || self.blocks.is_empty() {
            self.blocks.push_back((vec![fill; bytes], fill));
            return;
        }
        let nth = self.random() % self.blocks.len();
        let (mut block, old) = self.blocks.swap_remove_back(nth).unwrap();
        let is_whole = |block: &[u8]| [0, block.len() / 2, block.len() - 1].map(|at| block[at]);
        assert_eq!(is_whole(&block), [old; 3], "a block of {} bytes", block.len());
        if choice < 6 && self.blocks.len() < 500 {
            block.resize(bytes, old);
            block.shrink_to_fit();
            assert_eq!(is_whole(&block), [old; 3], "moved to {bytes} bytes");
            self.blocks.push_back((block, old));
        }
    }
}

/// Starts this binary again with a heap of 64 MiB, to run test `name` in a process of its
/// own.
fn again(name: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env("TSUMUGI_HEAP_BYTES", "0x4000000");
    let output = command.env("TSUMUGI_TEST_AGAIN", name).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn is_again(name: &str) -> bool {
    std::env::var("TSUMUGI_TEST_AGAIN").is_ok_and(|again| again == name)
}

#[test]
fn a_full_heap_spills_to_the_system() {
    const NAME: &str = "a_full_heap_spills_to_the_system";
    if !is_again(NAME) {
        again(NAME);
        return;
    }
    let config = Config::from_env().unwrap().workers(1);
    let main = |rt: &Runtime| {
        look_into(rt);
        let blocks: Vec<Vec<u8>> = (0..200).map(|n| vec![n; 1 << 20]).collect();
        let inside = blocks.iter().filter(|block| is_in_partition(&block[..])).count();
        assert!((20..64).contains(&inside), "{inside} of 200 MiB in a heap of 64");
        assert!(GlobalHeap::spilled().1 >= (200 - inside as u64) << 20);
        let mut blocks = blocks;
        blocks.iter_mut().for_each(|block| block.resize((1 << 20) + 5, 1));
        assert!(blocks.iter().enumerate().all(|(n, block)| block[5] == n as u8));
        drop(blocks);
        let whole = vec![1_u8; 16 << 20];
        assert!(is_in_partition(&whole[..]), "released memory can be allocated again");
        Ok::<_, Error>(())
    };
    config.run(main).unwrap();
}

/// Boxes, vectors and arrays on a ULT's stack go from rank to rank by one copy each,
/// whether the receive or the message comes first. The counters of copies would show a
/// message between two buffers outside of the heaps.
#[test]
fn allocations_of_a_rank_are_sent_with_one_copy() {
    const NAME: &str = "allocations_of_a_rank_are_sent_with_one_copy";
    if !is_again(NAME) {
        let job = Launch::new(2)
            .program(std::env::current_exe().unwrap(), ["--exact", NAME, "--nocapture"])
            .env("TSUMUGI_TEST_AGAIN", NAME)
            // Without eager messages, a message that has no receive yet is not copied into
            // a slot.
            .env("TSUMUGI_EAGER_MAX_BYTES", "0")
            .env("TSUMUGI_KERNEL_FROM_BYTES", "4294967295")
            .start()
            .unwrap();
        assert_eq!(job.wait().unwrap().code(), 0);
        return;
    }
    let main = |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        let before = rt.comm().counts();
        assert!(before.total() == 0 && before.through_slots == 0);
        for round in 0..ROUNDS {
            let fill = |rank: Rank| (round * 2 + rank.0) as u8;
            let [mine, theirs] = [fill(rt.rank()), fill(peer)];
            exchange(rt, round, vec![mine; 5_000], vec![0; 5_000], theirs)?;
            exchange(rt, round, vec![mine; 3 << 20], vec![0; 3 << 20], theirs)?;
            let boxed = |fill| Box::<[u8]>::from([fill; 700]);
            exchange(rt, round, boxed(mine), boxed(0), theirs)?;
            // On the stack of this ULT, and on that of another ULT.
            exchange(rt, round, [mine; 10_000], [0; 10_000], theirs)?;
            rt.spawn(move |rt| exchange(rt, round, [mine; 2_000], [0; 2_000], theirs))
                .join()
                .unwrap()?;
        }
        let counts = rt.comm().counts();
        let by = |path| counts.messages(path).iter().sum::<u64>();
        assert_eq!(
            by(MessagePath::Direct) + by(MessagePath::Rendezvous),
            counts.total(),
            "{counts:?}"
        );
        assert_eq!(counts.total(), u64::from(ROUNDS) * 5);
        assert_eq!([counts.through_slots, counts.by_kernel], [0, 0]);
        // One buffer of the two in a heap is enough for a single copy.
        let (from, mut inside) = (outside(5_000), vec![0_u8; 5_000]);
        from.fill(9);
        rt.comm().send_recv(peer, 0, from, peer, 0, &mut inside)?;
        assert_eq!((inside[4_999], rt.comm().counts().through_slots), (9, 0));
        let into = outside(5_000);
        rt.comm().send_recv(peer, 0, from, peer, 0, into)?;
        assert_eq!((into[4_999], rt.comm().counts().through_slots), (9, 1));
        rt.barrier()
    };
    Config::from_env().unwrap().run(main).unwrap();
}

const ROUNDS: u32 = 20;

/// Memory from the system's allocator, which no other rank can access.
fn outside(bytes: usize) -> &'static mut [u8] {
    let layout = Layout::array::<u8>(bytes).unwrap();
    // SAFETY: not empty, zeroed, and never released.
    unsafe { std::slice::from_raw_parts_mut(System.alloc_zeroed(layout), bytes) }
}

/// Sends one buffer and receives into another. The two ranks alternate in sending before
/// the receive and after it.
fn exchange(
    rt: &Runtime,
    round: u32,
    mine: impl AsRef<[u8]>,
    mut into: impl AsMut<[u8]>,
    theirs: u8,
) -> Result<(), Error> {
    let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
    let (mine, into) = (mine.as_ref(), into.as_mut());
    let is_first = (round + rt.rank().0).is_multiple_of(2);
    if is_first {
        comm.send(peer, round, mine)?;
    }
    let received = comm.recv(peer, round, into)?;
    if !is_first {
        comm.send(peer, round, mine)?;
    }
    assert_eq!((received.bytes, into.len()), (mine.len(), mine.len()));
    assert!(into.iter().all(|byte| *byte == theirs), "round {round}");
    Ok(())
}

#[test]
fn threads_may_allocate_while_the_process_exits() {
    const NAME: &str = "threads_may_allocate_while_the_process_exits";
    if !is_again(NAME) {
        (0..5).for_each(|_| drop(again(NAME)));
        return;
    }
    rank(|_| {
        for seed in 1..4 {
            thread::spawn(move || churn(seed, u32::MAX));
        }
        churn(9, 5000);
    });
    std::process::exit(0);
}
