//! Everything at once, at random, for as long as is asked, with the books
//! balanced after each round.
//!
//! `cargo run --release -p tsumugi-ult --example soak -- <seconds> [seed]`
//!
//! A round starts ULTs and OS threads that spawn, join, park, sleep, cancel,
//! panic, lock and send to each other, each drawing from its own stream of the
//! seed. The seed fixes what they do, not in which order. A round that does
//! not end says who waits for what.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tsumugi_core::random::SplitMix64;
use tsumugi_ult::sync::channel::{self, Receiver, Sender};
use tsumugi_ult::sync::{Barrier, Condvar, Latch, Mutex, OnceCell, RwLock, Semaphore, WaitGroup};
use tsumugi_ult::{
    Builder, Config, Limit, Scheduler, Spawner, StackArea, Unparker, block_on, is_cancelled, park,
    park_within, scope, sleep, sleep_within, spawn, spawn_future, ult_local, unparker, yield_now,
};

/// A stream of pseudo-random numbers.
#[derive(Clone)]
struct Draw(SplitMix64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// A stream for somebody else.
    fn fork(&mut self) -> Self {
        Self(SplitMix64::new(self.0.next()))
    }

    fn micros(&mut self, limit: u64) -> Duration {
        Duration::from_micros(self.below(limit))
    }

    fn limit(&mut self) -> Limit {
        let limit = Limit::after(self.micros(300));
        if self.below(2) == 0 { limit } else { limit.or_cancelled() }
    }
}

/// What all of a round share, and what must hold of it in the end.
struct Round {
    started: AtomicU64,
    ended: AtomicU64,
    panics: AtomicU64,
    caught: AtomicU64,
    count: Mutex<u64>,
    counted: AtomicU64,
    pair: RwLock<(u64, u64)>,
    permits: Semaphore,
    sender: Sender<u64>,
    receiver: Receiver<u64>,
    sent: AtomicU64,
    received: AtomicU64,
    turn: (Mutex<u64>, Condvar),
    made: OnceCell<u64>,
    makings: AtomicU64,
    parked: Mutex<Vec<Unparker>>,
    locals: AtomicU64,
}

/// Balances `started`, whatever happens.
struct Life(Arc<Round>);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

ult_local! {
    static LOCAL: std::cell::RefCell<Option<Life>> = std::cell::RefCell::new(None);
}

impl Round {
    fn new(draw: &mut Draw) -> Self {
        let (sender, receiver) = match draw.below(4) {
            0 => channel::unbounded(),
            capacity => channel::bounded(capacity as usize - 1),
        };
        Self {
            started: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            caught: AtomicU64::new(0),
            count: Mutex::new(0),
            counted: AtomicU64::new(0),
            pair: RwLock::new((0, 0)),
            permits: Semaphore::new(PERMITS),
            sender,
            receiver,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            turn: (Mutex::new(0), Condvar::new()),
            made: OnceCell::new(),
            makings: AtomicU64::new(0),
            parked: Mutex::new(Vec::new()),
            locals: AtomicU64::new(0),
        }
    }

    fn life(self: &Arc<Self>) -> Life {
        self.started.fetch_add(1, Ordering::Relaxed);
        Life(self.clone())
    }
}

/// One life: a few steps, each drawn.
fn live(round: Arc<Round>, mut draw: Draw, depth: u64) {
    let _life = round.life();
    for _ in 0..1 + draw.below(6) {
        step(&round, &mut draw, depth);
    }
    if draw.below(16) == 0 && depth < DEPTH {
        round.panics.fetch_add(1, Ordering::Relaxed);
        // Without the hook, which would print it.
        std::panic::resume_unwind(Box::new(depth));
    }
}

fn step(round: &Arc<Round>, draw: &mut Draw, depth: u64) {
    let on_ult = tsumugi_ult::id().is_some();
    match draw.below(18) {
        0..=2 if depth > 0 && on_ult => children(round, draw, depth),
        3 if depth > 0 && on_ult => borrowers(round, draw),
        4 => yield_now(),
        5 => sleep(draw.micros(200)),
        6 => {
            if let Ok(mut count) = round.count.lock_within(draw.limit()) {
                let before = *count;
                if draw.below(4) == 0 {
                    yield_now();
                }
                *count = before + 1;
                round.counted.fetch_add(1, Ordering::Relaxed);
            }
        }
        7 => {
            let pair = *round.pair.read();
            assert_eq!(pair.0, pair.1, "a reader saw half of a write");
        }
        8 => {
            if let Ok(mut pair) = round.pair.write_within(draw.limit()) {
                pair.0 += 1;
                yield_now();
                pair.1 += 1;
            }
        }
        9 => {
            let wanted = 1 + draw.below(PERMITS as u64) as usize;
            if round.permits.acquire_within(wanted, draw.limit()).is_ok() {
                yield_now();
                round.permits.release(wanted);
            }
        }
        10 | 11 => {
            let sent = round.sender.send_within(1, draw.limit()).is_ok();
            round.sent.fetch_add(sent as u64, Ordering::Relaxed);
        }
        12 => {
            if let Ok(value) = round.receiver.recv_within(draw.limit()) {
                round.received.fetch_add(value, Ordering::Relaxed);
            }
        }
        13 => receive_for_a_while(round, draw),
        14 => {
            round.parked.lock().push(unparker());
            // The token may be for another park of ours: no more than a hint.
            let _ = park_within(draw.limit());
            for other in round.parked.lock().drain(..) {
                other.unpark();
            }
        }
        15 => {
            let mut turn = round.turn.0.lock();
            *turn += 1;
            round.turn.1.notify_one();
            let _ = round.turn.1.wait_within(&mut turn, draw.limit());
        }
        16 => {
            let made = *round.made.get_or_init(|| {
                round.makings.fetch_add(1, Ordering::Relaxed);
                yield_now();
                7
            });
            assert_eq!(made, 7);
        }
        _ if on_ult => LOCAL.with(|local| {
            round.locals.fetch_add(1, Ordering::Relaxed);
            local.replace(Some(round.life()));
        }),
        _ => {}
    }
}

/// Starts some, asks some to give up, joins some, lets some go.
fn children(round: &Arc<Round>, draw: &mut Draw, depth: u64) {
    let children: Vec<_> = (0..1 + draw.below(4))
        .map(|_| {
            let (round, theirs) = (round.clone(), draw.fork());
            let mut builder = Builder::new().urgent(draw.below(8) == 0);
            if draw.below(8) == 0 {
                builder = builder.pin(draw.below(2) as usize);
            }
            builder
                .keep_fp_control(draw.below(8) == 0)
                .spawn(move || live(round, theirs, depth - 1))
        })
        .collect();
    for mut child in children {
        if draw.below(4) == 0 {
            child.cancel();
        }
        if draw.below(4) == 0 {
            match child.join_within(draw.limit()) {
                Ok(outcome) => {
                    round.caught.fetch_add(outcome.is_err() as u64, Ordering::Relaxed);
                    continue;
                }
                Err((back, _)) => child = back,
            }
        }
        let outcome = child.join();
        round.caught.fetch_add(outcome.is_err() as u64, Ordering::Relaxed);
    }
    let sleeper = spawn(|| {
        let _ = sleep_within(Limit::CANCELLABLE);
        assert!(is_cancelled());
    });
    if draw.below(2) == 0 {
        yield_now();
    }
    sleeper.cancel();
    sleeper.join().expect("it gave up");
}

/// ULTs that borrow, meet, and are waited for in three ways.
fn borrowers(round: &Arc<Round>, draw: &mut Draw) {
    let (barrier, latch, group) = (Barrier::new(2), Latch::new(2), WaitGroup::new());
    let leaders = AtomicU64::new(0);
    scope(|scope| {
        for _ in 0..2 {
            let (group, mut theirs) = (group.clone(), draw.fork());
            let (barrier, latch, leaders) = (&barrier, &latch, &leaders);
            scope.spawn(move || {
                leaders.fetch_add(barrier.wait() as u64, Ordering::Relaxed);
                // Without children.
                step(round, &mut theirs, 0);
                latch.count_down(1);
                drop(group);
            });
        }
        latch.wait();
        group.wait();
    });
    assert_eq!(leaders.load(Ordering::Relaxed), 1);
}

/// A future that receives, and may be dropped half-way.
fn receive_for_a_while(round: &Arc<Round>, draw: &mut Draw) {
    let (patience, mine) = (draw.below(3), round.clone());
    let receive = async move {
        let mut polls = 0;
        let mut receive = Box::pin(mine.receiver.recv_async());
        let received = std::future::poll_fn(|context| {
            polls += 1;
            match receive.as_mut().poll(context) {
                std::task::Poll::Pending if polls > patience => std::task::Poll::Ready(None),
                std::task::Poll::Pending => {
                    context.waker().wake_by_ref();
                    std::task::Poll::Pending
                }
                ready => ready.map(Result::ok),
            }
        })
        .await;
        drop(receive);
        mine.received.fetch_add(received.unwrap_or(0), Ordering::Relaxed);
    };
    if tsumugi_ult::id().is_some() && draw.below(2) == 0 {
        spawn_future(receive).join().expect("it does not panic");
    } else {
        block_on(receive);
    }
}

fn play(spawner: &Spawner, draw: &mut Draw) -> u64 {
    let round = Arc::new(Round::new(draw));
    let threads: Vec<_> = (0..draw.below(3))
        .map(|_| {
            let (round, theirs) = (round.clone(), draw.fork());
            std::thread::spawn(move || live(round, theirs, DEPTH))
        })
        .collect();
    let ults: Vec<_> = (0..1 + draw.below(12))
        .map(|_| {
            let (round, theirs) = (round.clone(), draw.fork());
            spawner.spawn(move || live(round, theirs, DEPTH))
        })
        .collect();
    // One who waits to the end.
    let (done, last) = (Arc::new(Latch::new(1)), round.clone());
    let opened = done.clone();
    let idler = spawner.spawn(move || {
        let _life = last.life();
        while !opened.is_open() {
            last.parked.lock().push(unparker());
            park_within(Duration::from_micros(500)).unwrap_or_default();
        }
    });
    ults.into_iter().for_each(|ult| ult.join().expect("those of the first depth do not panic"));
    threads.into_iter().for_each(|thread| thread.join().expect("nor do threads"));
    done.count_down(1);
    idler.join().expect("it does not panic");
    // The books.
    let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let left = round.receiver.try_iter().sum::<u64>();
    assert_eq!(read(&round.sent), read(&round.received) + left, "values were lost, or doubled");
    assert_eq!(read(&round.started), read(&round.ended), "somebody did not end, or twice");
    assert_eq!(read(&round.panics), read(&round.caught), "panics do not go astray");
    assert_eq!(*round.count.try_lock().expect("nobody holds it"), read(&round.counted));
    assert!(round.pair.try_write().is_some(), "nobody reads or writes");
    assert_eq!(round.permits.available(), PERMITS, "permits were lost, or made");
    assert!(read(&round.makings) <= 1, "made twice");
    assert!(!round.turn.1.notify_one(), "nobody waits any more");
    assert_eq!(spawner.timers(), 0, "a timer was left behind");
    let mut alive = 0;
    spawner.dump(&mut |_| alive += 1);
    assert_eq!(alive, 0, "a ULT was left behind");
    read(&round.started)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(10, |text| text.parse().expect("seconds"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = arguments.next().map_or(now.as_nanos() as u64, |text| text.parse().expect("a seed"));
    println!("seed {seed}");
    let stacks = StackArea::map(1 << 30).expect("room for stacks");
    let mut scheduler = Scheduler::new(Config::new(stacks).workers(2)).expect("starts");
    scheduler.start().expect("starts");
    let spawner = scheduler.spawner();
    let rounds = Arc::new(AtomicU64::new(0));
    // Says what is the matter if a round does not end.
    let (watched, watcher) = (rounds.clone(), spawner.clone());
    std::thread::spawn(move || {
        let mut before = u64::MAX;
        loop {
            std::thread::sleep(ROUND_LIMIT);
            let now = watched.load(Ordering::Relaxed);
            if now == before {
                eprintln!("seed {seed}: round {now} does not end");
                eprintln!("{}", watcher.report(Duration::from_secs(1)));
                std::process::abort();
            }
            before = now;
        }
    });
    let (mut draw, start, mut lives) = (Draw(SplitMix64::new(seed)), Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        lives += play(&spawner, &mut draw);
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    // The last of all: somebody parked for ever must not keep the end.
    drop(spawner.spawn(park));
    drop(scheduler);
    println!("{} rounds, {lives} lives, the books balance", rounds.load(Ordering::Relaxed));
}

const DEPTH: u64 = 3;
const PERMITS: usize = 3;
const ROUND_LIMIT: Duration = Duration::from_secs(20);
