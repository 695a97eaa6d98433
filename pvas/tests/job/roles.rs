//! The roles of the ranks in the cases.

use super::launcher::Ask;
use super::partitions;
use std::alloc::Layout;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;
use tsumugi_core::backend::{LoadStore, execute};
use tsumugi_core::boot::{BootError, Bootstrap, CARD_BYTES_MAX};
use tsumugi_core::mem::{
    Access, AddrError, LocalAddr, LocalRank, MemorySource, Need, Rank, RegionKey, RemoteAddr, Width,
};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::signal::{Until, Waiters};
use tsumugi_core::sync::{AtomicU32, AtomicU64, Ordering};
use tsumugi_core::wait::{Reason, Wait, Waker};
use tsumugi_pvas::detector::Launcher;
use tsumugi_pvas::partition::STARTER_KEY;
use tsumugi_pvas::{Detector, Member, Rest, SharedFutex, attach};

/// Runs a rank.
pub fn run(role: &str) -> ExitCode {
    partitions::squat();
    if role == "impatient" {
        return partitions::impatient();
    }
    let mut member = match attach() {
        Some(Ok(member)) => member,
        Some(Err(error)) => {
            let line = format!("attach: {error}\n");
            eprint!("{line}");
            return ExitCode::from(91);
        }
        None => {
            eprintln!("started by nobody");
            return ExitCode::from(92);
        }
    };
    let rank = Member::rank(&member).0;
    say(&format!("rank {rank} pid {}", std::process::id()));
    match role {
        "hello" => hello(&mut member),
        "ring" => ring(&mut member),
        "token" => token(&mut member),
        "bereaved" => return bereaved(&mut member),
        "stdin" => stdin(&mut member),
        "direct" => direct(&mut member),
        "advice" => advice(&mut member),
        "deaf" => deaf(&mut member),
        "listening" => return listening(&mut member),
        "barrier" => return barrier(&mut member),
        "early" if rank == 1 => return ExitCode::SUCCESS,
        "panic" if rank == 1 => panic!("rank 1 has had enough"),
        "code" if rank == 1 => return ExitCode::from(3),
        "early" | "panic" | "code" => deaf(&mut member),
        "late-code" => return late_code(&mut member),
        "mourners" => mourners(&mut member),
        "signals" => signals(&mut member),
        "grandchild" => grandchild(&mut member),
        "nested" => nested(&mut member),
        "stray" => stray(),
        "twice" => twice(),
        "quiet" => quiet(&mut member),
        _ => partitions::play(role, &mut member),
    }
    member.finish();
    ExitCode::SUCCESS
}

pub fn say(line: &str) {
    // One write, so that lines of several ranks do not mix.
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn hello(member: &mut Member) {
    member.barrier().unwrap();
    let greeting = std::env::var("TSUMUGI_TEST_GREETING").unwrap();
    say(&format!("{greeting} from {} of {}", member.rank().0, member.size()));
    let line = format!("err {}\n", member.rank().0);
    std::io::stderr().lock().write_all(line.as_bytes()).unwrap();
}

fn starter(rank: u32, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank(rank), key: STARTER_KEY, offset }
}

/// A rank of one thread, which sleeps on its bells until it is woken.
struct Solo<'a> {
    member: &'a Member,
    waiters: Waiters,
    woken: AtomicU32,
}

// SAFETY: `commit` runs once, before the thread sleeps; a wake before the
// sleep is seen in `woken`, and `sleep` returns only after it.
unsafe impl Wait for Solo<'_> {
    unsafe fn sleep(&self, _: Reason, commit: &mut dyn FnMut(Waker) -> bool) {
        let (parking_lot, bells) =
            (self.member.control().parking_lot(), self.member.control().bells());
        // SAFETY: `woken` outlives the sleep.
        let waker = unsafe {
            Waker::new((&raw const self.woken).cast(), |woken| {
                (*woken.cast::<AtomicU32>()).store(1, Ordering::SeqCst);
            })
        };
        if !commit(waker) {
            return;
        }
        loop {
            self.waiters.drain(parking_lot);
            if self.woken.swap(0, Ordering::SeqCst) != 0 {
                return;
            }
            let ticket = bells.prepare(0);
            if parking_lot.has_fired() {
                bells.stay(0);
            } else {
                bells.sleep(0, ticket, &SharedFutex, None);
            }
        }
    }

    fn yield_now(&self) {
        thread::yield_now();
    }
}

/// Sleeps until the word at `offset` of the own starter memory is `value`.
fn await_word(member: &Member, offset: usize, value: u64) -> Result<u64, AddrError> {
    let at = member.starter().base.as_ptr() as usize + offset;
    // SAFETY: a word of the starter memory.
    let word = unsafe { AtomicU64::from_ptr(at as *mut u64) };
    let solo = Solo { member, waiters: Waiters::new(), woken: AtomicU32::new(0) };
    solo.waiters.wait(member.control().parking_lot(), word, Until::Equal(value), &solo)
}

/// A token goes round a thousand times; ranks without it sleep.
fn token(member: &mut Member) {
    let (rank, size, direct) = (member.rank().0, member.size(), member.direct());
    member.barrier().unwrap();
    for round in 1..=1000 {
        if rank > 0 || round > 1 {
            let wanted = if rank > 0 { round } else { round - 1 };
            assert_eq!(await_word(member, 16, wanted), Ok(wanted));
        }
        let next = Op::put_word(starter((rank + 1) % size, 16), Width::W8, round).notifying();
        execute(&direct, &next).unwrap();
    }
    member.barrier().unwrap();
    say("the token came");
}

/// Rank 1 dies; rank 0 sleeps for a word that never arrives.
fn bereaved(member: &mut Member) -> ExitCode {
    member.barrier().unwrap();
    if member.rank().0 == 1 {
        thread::sleep(Duration::from_millis(20));
        std::process::abort();
    }
    let lost = Err(AddrError::PeerLost { rank: Rank(1) });
    assert_eq!(await_word(member, 16, 1), lost);
    say("woken by a death");
    ExitCode::from(42)
}

/// Each rank adds to the next rank's word and to rank 0's, and checks the sum.
fn ring(member: &mut Member) {
    let (rank, size, direct) = (member.rank().0, member.size(), member.direct());
    member.barrier().unwrap();
    let next = starter((rank + 1) % size, 0);
    execute(&direct, &Op::put_word(next, Width::W8, u64::from(rank) + 100)).unwrap();
    execute(&direct, &Op::atomic(Kind::FetchAdd, starter(0, 8), u64::from(rank))).unwrap();
    member.barrier().unwrap();
    let before = u64::from((rank + size - 1) % size);
    assert_eq!(execute(&direct, &Op::get_word(starter(rank, 0), Width::W8)), Ok(before + 100));
    let sum = u64::from(size) * u64::from(size - 1) / 2;
    assert_eq!(execute(&direct, &Op::get_word(starter(0, 8), Width::W8)), Ok(sum));
    say("sum agrees");
}

fn stdin(member: &mut Member) {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    say(&format!("{} read {:?}", member.rank().0, text));
    member.barrier().unwrap();
}

/// Rank 0 makes allowed and forbidden accesses to rank 1's memory.
fn direct(member: &mut Member) {
    let rank = member.rank().0;
    let layout = Layout::from_size_align(4096, 64).unwrap();
    let memory = member.exposed().allocate(layout).unwrap();
    let direct = member.direct();
    // SAFETY: fresh exposed bytes of ours, kept until the end.
    let (open, read_only) = unsafe {
        memory.as_ptr().write_bytes(rank as u8 + 1, 4096);
        let open = direct.register(memory, 4096, Access::ReadWrite).unwrap();
        (open, direct.register(memory, 64, Access::Read).unwrap())
    };
    let card = [open.key.to_bits().to_le_bytes(), read_only.key.to_bits().to_le_bytes()].concat();
    member.publish(&card).unwrap();
    member.barrier().unwrap();
    let mut card = [0; CARD_BYTES_MAX];
    assert_eq!(member.card(Rank(1), &mut card), Ok(8));
    let key =
        |at: usize| RegionKey::from_bits(u32::from_le_bytes(card[at..at + 4].try_into().unwrap()));
    let at = |rank, key, offset| RemoteAddr { rank: Rank(rank), key, offset };
    let load = |addr| execute(&direct, &Op::get_word(addr, Width::W8));
    if rank == 0 {
        let (word, open_key, read_key) = (0x0202_0202_0202_0202, key(0), key(4));
        assert_eq!(load(at(1, open_key, 64)), Ok(word));
        let here = LocalAddr { key: open.key, offset: 0 };
        execute(&direct, &Op::get(at(1, open_key, 0), here, 4096)).unwrap();
        // SAFETY: this rank's own bytes, which no other rank writes.
        assert_eq!(unsafe { memory.as_ptr().add(4095).read() }, 2, "all bytes arrived");
        let addr = at(1, open_key, 4089);
        let outside = AddrError::OutOfRange { addr, bytes: 8, region_bytes: Some(4096) };
        assert_eq!(load(addr), Err(outside));
        let addr = at(1, open_key, 4);
        assert_eq!(load(addr), Err(AddrError::Unaligned { addr, align: 8 }));
        let addr = at(2, open_key, 0);
        assert_eq!(load(addr), Err(AddrError::NoSuchRank { rank: Rank(2), size: 2 }));
        let addr = at(1, read_key, 0);
        assert_eq!(load(addr), Ok(word));
        let store = execute(&direct, &Op::put_word(addr, Width::W8, 1));
        assert_eq!(store, Err(AddrError::ReadOnly { addr }));
        assert!(direct.resolve(at(1, open_key, 4096), 0, Need::Read).is_ok(), "zero length");
    }
    member.barrier().unwrap();
    if rank == 1 {
        assert!(direct.unregister(open.key));
    }
    member.barrier().unwrap();
    if rank == 0 {
        let addr = at(1, key(0), 0);
        assert_eq!(load(addr), Err(AddrError::StaleKey { addr }));
        say("all as it should be");
    }
    member.barrier().unwrap();
}

/// Checks which memory is kept from core dumps and from forked children.
fn advice(member: &mut Member) {
    let shape = member.space().shape();
    let flags_at = |at: usize| {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let from = maps.find(&format!("{at:x}-")).unwrap_or_else(|| panic!("no map at {at:x}"));
        let flags = maps[from..].lines().find(|line| line.starts_with("VmFlags:")).unwrap();
        format!("{flags} ")
    };
    let (own, peer) = (shape.start(member.local()), shape.start(LocalRank(1 - member.local().0)));
    assert!(
        flags_at(own + shape.stacks_offset()).contains(" dc "),
        "stacks are not copied to forked children"
    );
    assert!(!flags_at(own).contains(" dc "), "the heap is copied to forked children");
    assert!(flags_at(peer).contains(" dd "), "a peer is not in the core dump");
    assert!(!flags_at(own).contains(" dd "), "the own partition is in the core dump");
    say("advice is taken");
}

/// Sleeps in any case, even on SIGTERM.
fn deaf(member: &mut Member) {
    // SAFETY: ignoring a signal.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    let _ = member.barrier();
    loop {
        thread::sleep(Duration::from_secs(1000));
    }
}

/// Communicates with all peers until one is lost, and reports it.
fn listening(member: &mut Member) -> ExitCode {
    if let Err(error) = member.barrier() {
        say(&format!("heard in the barrier: {error}"));
        return ExitCode::from(40);
    }
    let direct = member.direct();
    say("talking");
    loop {
        for rank in 0..member.size() {
            let op = Op::atomic(Kind::FetchAdd, starter(rank, 0), 1u64);
            match execute(&direct, &op) {
                Ok(_) => {}
                Err(AddrError::PeerLost { rank }) => {
                    // Waits end as well, though not at the same moment.
                    while member.control().parking_lot().lost().is_none() {
                        thread::yield_now();
                    }
                    say(&format!("heard that {rank} is lost"));
                    return ExitCode::from(40);
                }
                Err(other) => panic!("{other}"),
            }
        }
        thread::yield_now();
    }
}

/// Waits in the barrier of the start for a rank that never arrives.
fn barrier(member: &mut Member) -> ExitCode {
    if member.rank().0 == 1 {
        return ExitCode::from(5);
    }
    // Or a rank that has ended because of that.
    match member.barrier() {
        Err(BootError::PeerLost { rank }) => say(&format!("barrier ended: {rank} is lost")),
        other => panic!("{other:?}"),
    }
    ExitCode::from(41)
}

/// Rank 1 ends on a signal, and the other ranks when they learn of it.
fn mourners(member: &mut Member) {
    let launcher = Launcher::of_this_process();
    let _detector = Detector::start(member, Rest::Leave, launcher).unwrap();
    // SAFETY: the handler makes one call, which is async-signal-safe.
    unsafe { libc::signal(libc::SIGUSR2, leave as *const () as libc::sighandler_t) };
    member.barrier().unwrap();
    say("ready");
    while member.is_alive(Rank(1)) {
        thread::sleep(Duration::from_millis(1));
    }
    std::process::exit(7);
}

extern "C" fn leave(_: i32) {
    // SAFETY: it ends the process, whatever holds.
    unsafe { libc::_exit(3) }
}

/// Rank 1 fails after the end of the job: the other ranks end normally.
fn late_code(member: &mut Member) -> ExitCode {
    member.barrier().unwrap();
    member.finish();
    if member.rank().0 == 1 {
        return ExitCode::from(6);
    }
    thread::sleep(Duration::from_millis(600));
    say("ended in peace");
    ExitCode::SUCCESS
}

static CAUGHT: AtomicU32 = AtomicU32::new(0);

extern "C" fn note(signal: i32) {
    CAUGHT.fetch_or(1 << signal, Ordering::SeqCst);
}

/// Ends after SIGUSR1 and SIGTERM; ignores SIGINT.
fn signals(member: &mut Member) {
    // SAFETY: ignoring a signal.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    for signal in [libc::SIGUSR1, libc::SIGTERM] {
        // SAFETY: the handler touches an atomic alone.
        unsafe { libc::signal(signal, note as *const () as libc::sighandler_t) };
    }
    member.barrier().unwrap();
    say("ready");
    while CAUGHT.load(Ordering::SeqCst) != 1 << libc::SIGUSR1 | 1 << libc::SIGTERM {
        thread::sleep(Duration::from_millis(1));
    }
    say(&format!("{} caught both", member.rank().0));
}

/// Leaves a process running.
fn grandchild(member: &mut Member) {
    let mut sleep = Command::new("/bin/sleep");
    let mut child = sleep.arg("1000").stdout(Stdio::null()).spawn().unwrap();
    say(&format!("grandchild pid {}", child.id()));
    assert!(child.try_wait().unwrap().is_none(), "the child still sleeps");
    member.barrier().unwrap();
}

/// Rank 0 has a process in another session, rank 1 a job there whose rank has one as well.
fn nested(member: &mut Member) {
    if member.rank().0 == 0 {
        stray();
    }
    let mut inner = Ask::new(1, "stray").command();
    inner.stdout(Stdio::inherit()).stderr(Stdio::null());
    let mut inner = in_session_of_its_own(&mut inner).spawn().unwrap();
    say(&format!("inner launcher pid {}", inner.id()));
    inner.wait().unwrap();
}

fn stray() {
    let mut sleep = Command::new("/bin/sleep");
    let mut sleep = in_session_of_its_own(sleep.arg("1000")).spawn().unwrap();
    say(&format!("stray pid {}", sleep.id()));
    sleep.wait().unwrap();
}

fn in_session_of_its_own(command: &mut Command) -> &mut Command {
    // SAFETY: what runs between fork and exec is a system call alone.
    unsafe {
        command.pre_exec(|| match libc::setsid() {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        })
    }
}

/// A process can be a rank once.
fn twice() {
    say(&attach().unwrap().unwrap_err().to_string());
}

/// One worker that waits for an event that never comes, until a report is requested.
fn quiet(member: &mut Member) {
    member.barrier().unwrap();
    let control = member.control();
    control.workers().store(1, Ordering::SeqCst);
    loop {
        let ticket = control.bells().prepare(0);
        control.bells().sleep(0, ticket, &SharedFutex, None);
        control.activity().fetch_add(1, Ordering::SeqCst);
        if let Some(number) = control.wanted_report() {
            control.answer_report(number, "ULT 17: signal at 0x10, wanted 5");
            break;
        }
    }
    control.outside().store(1, Ordering::SeqCst);
    thread::sleep(Duration::from_millis(400));
}
