//! The roles of the ranks in the cases.

use crate::churn::{self, Plan};
use crate::moving::histories;
use crate::{
    adopted, allocations, apart, collectives, collectors, containers, ending, global, homes,
    inside, locks, memory_nodes, mixture, mourn, moving, outside, pages, poor, programs, reach,
    tally,
};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tsumugi::array::Directory;
use tsumugi::boot::Given;
use tsumugi::{AddrError, Config, Error, Rank, Runtime, Signal, Until};
use tsumugi_core::boot::Bootstrap;

/// Runs one rank with this role.
pub fn run(role: &str) -> Result<(), Error> {
    if let Ok(folder) = std::env::var("TSUMUGI_TEST_ALLGATHER") {
        return Config::from_env()?.bootstrap(by_files(folder)?).run(|rt| play(rt, role));
    }
    tsumugi::run(|rt| play(rt, role))
}

/// An allgather by files of a folder, as a program that embeds tsumugi may give one.
fn by_files(folder: String) -> Result<impl Bootstrap, Error> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let rank = number("TSUMUGI_RANK").ok_or(Error::program("no TSUMUGI_RANK"))?;
    let size = number("TSUMUGI_SIZE").ok_or(Error::program("no TSUMUGI_SIZE"))?;
    let mut round = 0;
    let gather = move |own: &[u8], all: &mut [u8]| {
        round += 1;
        let file = |rank| format!("{folder}/{round}-{rank}");
        let part = format!("{folder}/{round}-{rank}.part");
        std::fs::write(&part, own).and_then(|()| std::fs::rename(&part, file(rank))).unwrap();
        if own.is_empty() {
            return true;
        }
        for (rank, into) in (0..size).zip(all.chunks_mut(own.len())) {
            let begun = Instant::now();
            let bytes = loop {
                match std::fs::read(file(rank)) {
                    Ok(bytes) => break bytes,
                    Err(_) if begun.elapsed() > Duration::from_secs(30) => return false,
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            };
            into.copy_from_slice(&bytes);
        }
        true
    };
    Ok(Given::new(Rank(rank), size, gather)?)
}

fn play(rt: &Runtime, role: &str) -> Result<(), Error> {
    say(&format!("{} pid {}", rt.rank(), std::process::id()));
    rt.barrier()?;
    let last = rt.rank().0 + 1 == rt.size();
    match role {
        "meet" => meet(rt),
        "updates" => updates(rt),
        "waiters" => ending::waiters(rt),
        "panic" if last => panic!("the last rank has had enough"),
        "ult-panic" if last => {
            let panic = rt.spawn(|_| panic!("one ULT has had enough")).join();
            assert!(panic.is_err());
            Ok(())
        }
        "abort" if last => std::process::abort(),
        "early" if last => std::process::exit(0),
        "error" if last => Err(Error::program("the last rank gives up")),
        "overflow" if last => ending::overflow(rt),
        "ult-panic" => Ok(()),
        "panic" | "abort" | "early" | "error" | "overflow" => ending::forever(rt),
        "shown" => inside::play(rt),
        "stall" => ending::stall(rt),
        "stall-barrier" if last => ending::stall(rt),
        "stall-barrier" => rt.barrier(),
        "stall-collectives" => ending::stall_collectives(rt),
        "idle" => idle(rt),
        "commands" => commands(rt),
        "hold" => hold(rt),
        "busy" => busy(rt),
        "callers" => ending::callers(rt),
        "unanswered" => ending::unanswered(rt),
        "exchangers" => ending::exchangers(rt),
        "collectives" => collectives::play(rt, &[1, 100, 30_000]),
        "collectives-short" => collectives::play(rt, &[1, 2000]),
        "collectors" => collectors::play(rt),
        "no-allocations" => {
            allocations::count_this_thread();
            allocations::values(rt)
        }
        "outside" => outside::play(rt),
        "outside-alone" => outside::alone(rt),
        "mixture" => mixture::play(rt, 1, if rt.size() > 2 { 150 } else { 1000 }),
        "mixture-short" => mixture::play(rt, 1, 20),
        "mixture-lossy" => mixture::play(rt, 1, 5),
        "mixture-until-told" => mixture_until_told(rt),
        "mixture-long" => mixture::play(rt, 1 << 20, 5000),
        "reach" => reach::play(rt, reach::Extent::FULL),
        "global" => global::play(rt),
        "churn" => churn::play(rt, Plan { ults: 1000, steps: 20, seed: seed(rt)? }),
        "churn-short" => churn::play(rt, Plan { ults: 50, steps: 20, seed: seed(rt)? }),
        "churn-long" => {
            let first = seed(rt)?;
            let plan = |seed| Plan { ults: 1000, steps: 300, seed };
            (first..first + 60).try_for_each(|seed| churn::play(rt, plan(seed)))
        }
        "containers" => containers::play(rt),
        "containers-crowd" => containers::crowd(rt),
        "holders" => containers::holders(rt),
        "locks" => locks::play(rt, 40),
        "locks-short" => locks::play(rt, 10),
        "locks-device" => locks::by_device(rt, 4),
        "lock-holder" => locks::die(rt),
        "pages" => pages::play(rt, 10),
        "pages-short" => pages::play(rt, 1),
        "moving" => moving::play(rt, 3),
        "moving-short" => moving::play(rt, 1),
        "histories" => check_histories(rt, 5, 200),
        "histories-short" => check_histories(rt, 1, 20),
        "histories-long" => check_histories(rt, 1000, 200),
        "poor" => poor::play(rt),
        "owners" => pages::owners(rt),
        "homes" => homes::play(rt),
        "programs" => programs::play(rt, false),
        "programs-short" => programs::play(rt, true),
        "programs-forever" => programs::forever(rt),
        "tally" => tally::play(rt, 1_000_000),
        "tally-short" => tally::play(rt, 20_000),
        "adopted" => adopted::play(rt, 8),
        "bulk" => reach::bulk(rt),
        "flooded" => reach::flooded(rt),
        "callback-panics" => reach::panics(rt),
        "crowded" => crowded(rt),
        "until-lost" => reach::until_lost(rt),
        "until-lost-beside-heartbeats" => reach::until_lost_beside_heartbeats(rt),
        "apart" => apart::apart(rt),
        "mourn" => mourn::mourn(rt),
        "until-told" => {
            let lost = reach::until_lost(rt);
            // The rank that was given up must find this rank when it runs again.
            while !apart::is_over() {
                thread::sleep(Duration::from_millis(10));
            }
            lost
        }
        "deaf" => reach::deaf(rt),
        "ring" => ring(rt),
        "late" => ending::late(rt),
        "readers" => readers(rt),
        "computes" => ending::computes(),
        "bound" => bound(rt),
        "memory-nodes" => memory_nodes::play(rt),
        _ => panic!("no role {role}"),
    }
}

/// Random messages, until the first rank sees that the test is over. Collective.
fn mixture_until_told(rt: &Runtime) -> Result<(), Error> {
    const ROUNDS: u64 = 20;
    for first in (1..).step_by(ROUNDS as usize) {
        mixture::play(rt, first, ROUNDS)?;
        let is_over = rt.rank().0 == 0 && apart::is_over();
        if rt.sum(u64::from(is_over))? > 0 {
            break;
        }
    }
    Ok(())
}

pub fn say(line: &str) {
    // One write, so that lines of several ranks do not mix.
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A seed that is another one in each run and the same on all ranks. It is printed, and
/// `TSUMUGI_TEST_SEED` repeats it. Collective.
fn seed(rt: &Runtime) -> Result<u64, Error> {
    let given = std::env::var("TSUMUGI_TEST_SEED");
    let own = match given.as_deref().map(str::parse) {
        Ok(Ok(seed)) => seed,
        Ok(Err(_)) => {
            let given = given.unwrap_or_default();
            return Err(Error::program(format!("TSUMUGI_TEST_SEED={given} is not a number")));
        }
        Err(_) => {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            u64::from(since.map_or(0, |since| since.subsec_nanos())) >> 8
        }
    };
    let seed = rt.allgather(own)?[0];
    if rt.rank() == Rank(0) {
        say(&format!("TSUMUGI_TEST_SEED={seed}"));
    }
    Ok(seed)
}

/// Runs so many random programs on pages that move, with each directory, and checks their
/// histories.
fn check_histories(rt: &Runtime, seeds: u64, steps: u64) -> Result<(), Error> {
    let (first, mut moved) = (seed(rt)?, 0);
    for seed in first..first + seeds {
        for directory in DIRECTORIES {
            moved += histories::play(rt, histories::Plan { seed, ults: 3, steps, directory })?;
        }
    }
    if rt.rank() == Rank(0) {
        say(&format!("{} histories, {moved} pages moved", DIRECTORIES.len() as u64 * seeds));
    }
    rt.barrier()
}

/// A job whose ranks read their peers' arrays and write to their own.
fn readers(rt: &Runtime) -> Result<(), Error> {
    let words = rt.share::<u64>(100_000)?;
    let (own, peer) = (rt.rank(), Rank((rt.rank().0 + 1) % rt.size()));
    rt.put(words.at(own, 77_777), u64::from(own.0) + 5)?;
    rt.handler(1, |message| message.bytes.to_vec());
    rt.barrier()?;
    assert_eq!(rt.get(words.at(peer, 77_777))?, u64::from(peer.0) + 5);
    let at = words.at(peer, 3);
    let refused = AddrError::ReadOnly { addr: at.addr() };
    assert_eq!(rt.put(at, 1), Err(refused));
    assert_eq!(rt.fetch_add(at, 1), Err(refused));
    assert_eq!(rt.signal(at, Signal::Add(1)).map(|_| ()), Err(refused));
    // Messages, sums and starter memory work all the same.
    assert_eq!(rt.call(peer, 1, b"silk")?, b"silk");
    rt.fetch_add(rt.starter(peer), 1)?;
    assert_eq!(rt.sum(1u64)?, u64::from(rt.size()));
    mixture::play(rt, 9000, 50)?;
    assert_eq!(rt.get(rt.starter(own))?, 1);
    let of_peers = rt.space().populated_of_peers().bytes;
    assert!(of_peers >= 2 * 100_000 * 8, "{of_peers} bytes of peers' arrays");
    say(&format!("{own} and others read and were answered"));
    rt.barrier()
}

/// Accesses only the two neighbours in a ring of all ranks, apart from collective calls,
/// and prints how many cards (endpoint information) it has requested.
fn ring(rt: &Runtime) -> Result<(), Error> {
    let words = rt.share::<u64>(1)?;
    let cards = || rt.network_counts().map_or(0, |counts| counts.cards);
    rt.barrier()?;
    let together = cards();
    let next = Rank((rt.rank().0 + 1) % rt.size());
    let before = Rank((rt.rank().0 + rt.size() - 1) % rt.size());
    for round in 1..=100 {
        rt.fetch_add(words.at(next, 0), 1)?;
        rt.fetch_add(words.at(before, 0), 1)?;
        assert!(rt.get(words.at(before, 0))? >= round);
    }
    let all = cards();
    rt.barrier()?;
    assert_eq!(rt.get(words.at(rt.rank(), 0))?, 200);
    say(&format!("{} cards: {together} together, {all} in all", rt.rank()));
    rt.barrier()
}

/// Each rank signals all ranks, and sums and barriers are right.
fn meet(rt: &Runtime) -> Result<(), Error> {
    let signals = rt.share::<u64>(rt.size() as usize)?;
    for round in 1..=20 {
        for rank in rt.ranks() {
            rt.signal(signals.at(rank, rt.rank().0 as usize), Signal::Add(1))?;
        }
        for rank in 0..rt.size() as usize {
            rt.wait_until(signals.own().at(rank), Until::AtLeast(round))?;
        }
        let sum = rt.sum(u64::from(rt.rank().0) + round)?;
        let size = u64::from(rt.size());
        assert_eq!(sum, size * (size - 1) / 2 + size * round);
    }
    Ok(())
}

/// More strangers connect to rank 1 than a process may usually have descriptors. All ranks
/// go on, and rank 1 can still open a file.
fn crowded(rt: &Runtime) -> Result<(), Error> {
    say("working");
    let open = || std::fs::read_dir("/proc/self/fd").map(Iterator::count);
    while rt.rank() == Rank(1) && open().map_err(Error::other)? < 1500 {
        thread::sleep(Duration::from_millis(10));
    }
    rt.barrier()?;
    meet(rt)
}

/// ULTs of all ranks add to words of all ranks.
fn updates(rt: &Runtime) -> Result<(), Error> {
    const ULTS: u64 = 200;
    let words = Arc::new(rt.share::<u64>(64)?);
    let ults: Vec<_> = (0..ULTS)
        .map(|ult| {
            let words = words.clone();
            rt.spawn(move |rt| {
                for step in 0..100 {
                    let rank = Rank(((ult + step) % u64::from(rt.size())) as u32);
                    rt.fetch_add(words.at(rank, (step % 64) as usize), 1).unwrap();
                    if step % 10 == 0 {
                        tsumugi::ult::yield_now();
                    }
                }
            })
        })
        .collect();
    ults.into_iter().for_each(|ult| ult.join().unwrap());
    rt.barrier()?;
    let mut own = [0; 64];
    rt.get_slice(words.own().at(0), &mut own)?;
    assert_eq!(rt.sum(own.iter().sum::<u64>())?, ULTS * 100 * u64::from(rt.size()));
    Ok(())
}

/// Prints the CPUs on which the rank's worker may run.
fn bound(rt: &Runtime) -> Result<(), Error> {
    let cpus = tsumugi::affinity::allowed().expect("the system's list of CPUs");
    say(&format!("rank {} keeps to {cpus:?}", rt.rank()));
    Ok(())
}

/// The main ULT of each rank sleeps for seconds, until a thread of its own wakes it. The
/// rank prints the CPU time that it has used meanwhile.
fn idle(rt: &Runtime) -> Result<(), Error> {
    let words = Arc::new(rt.share::<u64>(1)?);
    rt.barrier()?;
    let alarm = thread::spawn({
        let (rt, words) = (rt.clone(), words.clone());
        move || {
            thread::sleep(Duration::from_millis(100));
            let used_in_2_s = || {
                let before = cpu_time();
                thread::sleep(Duration::from_secs(2));
                cpu_time() - before
            };
            // On a crowded machine, a worker falls asleep later: then the time is taken
            // again.
            let mut used = used_in_2_s();
            for _ in 0..10 {
                if used.as_millis() >= 20 {
                    used = used_in_2_s();
                }
            }
            say(&format!("idle {} us", used.as_micros()));
            let asleep = Instant::now();
            rt.signal(words.own().at(0), Signal::Set(1)).unwrap();
            asleep
        }
    });
    rt.wait_until(words.own().at(0), Until::Equal(1))?;
    let woken = Instant::now();
    let asleep = alarm.join().unwrap();
    say(&format!("woken after {} us", woken.duration_since(asleep).as_micros()));
    Ok(())
}

fn cpu_time() -> Duration {
    // SAFETY: all zeroes is a valid rusage, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &mut usage), 0);
        usage
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000))
        .sum()
}

/// Prints the number of bytes and of mappings that the process has when it runs.
fn hold(rt: &Runtime) -> Result<(), Error> {
    let _words = rt.share::<u64>(8)?;
    rt.barrier()?;
    // The minimum, because short-lived allocations are not listed in the ledger.
    let held = (0..100).map(|_| {
        thread::sleep(Duration::from_millis(1));
        crate::held_bytes()
    });
    let held = held.min().expect("a hundred values");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a process sees its mappings");
    say(&format!("holds {held} mappings {}", maps.lines().count()));
    rt.barrier()
}

/// The last rank computes on its only worker and answers calls meanwhile, until rank 0
/// has 200 answers.
fn busy(rt: &Runtime) -> Result<(), Error> {
    assert_eq!(rt.workers(), 1);
    let [computes, enough] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    rt.handler(1, {
        let computes = computes.clone();
        move |_| [u8::from(computes.load(Ordering::SeqCst))]
    });
    rt.handler(2, {
        let enough = enough.clone();
        move |_| {
            enough.store(true, Ordering::SeqCst);
            []
        }
    });
    let last = Rank(rt.size() - 1);
    rt.barrier()?;
    if rt.rank() == last {
        computes.store(true, Ordering::SeqCst);
        while !enough.load(Ordering::SeqCst) {
            black_box(());
        }
        computes.store(false, Ordering::SeqCst);
    } else if rt.rank() == Rank(0) {
        let mut latencies = Vec::new();
        while latencies.len() < 200 {
            let asked = Instant::now();
            if rt.call(last, 1, b"busy?")? == [1] {
                latencies.push(asked.elapsed().as_micros());
            }
            thread::sleep(Duration::from_micros(700));
        }
        rt.call(last, 2, b"")?;
        latencies.sort_unstable();
        let middle = latencies.get(latencies.len() / 2).copied().unwrap_or(0);
        say(&format!("answered {} times while it computed", latencies.len()));
        say(&format!("half of them within {middle} us"));
    }
    rt.barrier()
}

/// Starts programs from a ULT: by `posix_spawn`, and by `fork` on an OS stack.
fn commands(rt: &Runtime) -> Result<(), Error> {
    let ults: Vec<_> = (0..8)
        .map(|_| {
            rt.spawn(|_| {
                for _ in 0..5 {
                    let output = Command::new("echo").arg("plain").output().unwrap();
                    assert_eq!(output.stdout, b"plain\n");
                    let forked = tsumugi::ult::on_os_stack(|| {
                        let mut command = Command::new("echo");
                        command.arg("forked");
                        // SAFETY: the closure does nothing.
                        unsafe { command.pre_exec(|| Ok(())) };
                        command.output()
                    });
                    assert_eq!(forked.unwrap().stdout, b"forked\n");
                }
            })
        })
        .collect();
    ults.into_iter().for_each(|ult| ult.join().unwrap());
    // A child that is forked on the ULT's own stack dies, and the parent lives.
    let mut command = Command::new("echo");
    // SAFETY: the closure does nothing.
    unsafe { command.pre_exec(|| Ok(())) };
    let _ = command.output();
    say("survived");
    Ok(())
}

const DIRECTORIES: [Directory; 3] = [Directory::Atomics, Directory::Device, Directory::Messages];
