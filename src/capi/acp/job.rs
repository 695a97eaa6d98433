//! Being a rank: from `acp_init` to `acp_finalize`.

use super::super::caller::Caller;
use super::access::Handles;
use super::hook::Hook;
use super::memory::Regions;
use crate::global::{Bases, Global, GlobalAddr, GlobalBlock, Pool};
use crate::{Comm, Error, Rank, Runtime};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Display;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use tsumugi_ult::sync::Latch;

/// Prepares this process as a rank of its job; returns when all ranks have called
/// it. Arguments that begin with `--acp-` are removed from `argv`: `--acp-size-smem
/// N` (bytes of starter memory, 10,240 by default), `--acp-size-smem-dl N` (bytes
/// of each rank's heap for `acp_malloc`, at least 64 MiB),
/// `--acp-malloc-hook-small`, `-large`, `-huge`, `-low` and `-high N`
/// (`include/acp_malloc.c` describes them). All other options of ACP are accepted
/// and have no effect. Returns 0, or -1 on failure.
///
/// # Safety
///
/// `argc` and `argv` are those of main, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    // SAFETY: the caller's.
    let options = unsafe { Options::take(argc, argv) };
    let mut job = job();
    if job.is_some() {
        return note(-1, "acp_init was called already");
    }
    match start(options) {
        Ok(started) => {
            *job = Some(started);
            begin_hook();
            0
        }
        Err(error) => note(-1, error),
    }
}

/// Ends the rank that `acp_init` began; returns when all ranks have called it.
/// Memory that was not freed is freed. Registered memory becomes the program's
/// private memory again; all other threads of the process are stopped while that
/// happens. Returns 0, or -1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_finalize() -> c_int {
    let Some(ended) = job().take() else { return note(-1, NOT_A_RANK) };
    Hook::end();
    let life = life_slot().write().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(life) = life {
        life.handles.complete(&life, super::ACP_HANDLE_ALL);
        // The loss of a rank is reported by the join below.
        let _ = life.runtime.barrier();
    }
    // SAFETY: after the barrier no rank reaches the memory any more, and this
    // rank's own threads do not use it.
    if let Err(error) = unsafe { super::memory::end_mirror() } {
        return note(-1, error);
    }
    ended.end.count_down(1);
    ended.caller.end();
    match ended.thread.join() {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => note(-1, error),
        Err(_) => note(-1, "the rank's thread has panicked"),
    }
}

/// Begins anew with `rank` as this process's number: memory, channels and handles
/// are gone, starter memory is zero. All ranks must call it, each with a different
/// number. Returns 0, or -1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_reset(rank: c_int) -> c_int {
    let reset = with(-1, |life| {
        let (runtime, options) = (life.runtime.clone(), life.options.clone());
        life.handles.complete(life, super::ACP_HANDLE_ALL);
        Hook::end();
        runtime.barrier()?;
        let next = Life::begin(&runtime, options, rank as u32)?;
        let before = life_slot().write().unwrap_or_else(PoisonError::into_inner).replace(next);
        runtime.barrier()?;
        drop(before);
        Ok(0)
    });
    if reset == 0 {
        begin_hook();
    }
    reset
}

/// Prints `str` and the reason of the last call that failed, and aborts the
/// process; the job ends.
///
/// # Safety
///
/// `str` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn acp_abort(str: *const c_char) {
    let said = match str.is_null() {
        true => c"",
        // SAFETY: the caller's.
        false => unsafe { CStr::from_ptr(str) },
    };
    let reason = LAST.with_borrow(|last| last.to_string_lossy().into_owned());
    // One write, so that the line does not mix with the output of other ranks.
    let line = format!("acp: rank {}: {} {reason}\n", acp_rank(), said.to_string_lossy());
    eprint!("{line}");
    std::process::abort();
}

/// Ends the process with an exit code that reports a failure; the job ends. It is
/// not a part of ACP's interface, but programs written for ACP call it.
#[unsafe(no_mangle)]
pub extern "C" fn iacp_abort_cl() {
    std::process::exit(-1);
}

/// Waits until all ranks have called it. Returns 0, or -1 on failure.
#[unsafe(no_mangle)]
pub extern "C" fn acp_sync() -> c_int {
    with(-1, |life| {
        life.runtime.barrier()?;
        Ok(0)
    })
}

/// The rank of this process, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_rank() -> c_int {
    with(-1, |life| Ok(life.rank as c_int))
}

/// The number of ranks, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn acp_procs() -> c_int {
    with(-1, |life| Ok(life.runtime.size() as c_int))
}

/// Why the last call of this thread that failed did so. The string is valid until
/// the next call of this thread that fails. It is not a part of ACP's interface.
#[unsafe(no_mangle)]
pub extern "C" fn tsumugi_acp_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// The state of a rank between `acp_init` and `acp_reset` or `acp_finalize`.
pub(super) struct Life {
    pub(super) runtime: Runtime,
    pub(super) global: Global,
    pub(super) pool: Pool,
    /// The communicator of channels, and the one by which the ends of segmented
    /// buffers connect.
    pub(super) comms: [Comm; 2],
    pub(super) starter: GlobalBlock<u64>,
    pub(super) starters: Bases,
    pub(super) handles: Handles,
    pub(super) regions: Mutex<Regions>,
    /// How many channels, and how many segmented buffers, each pair of ranks has
    /// made so far.
    pub(super) made: [Mutex<HashMap<(u32, u32), u32>>; 2],
    /// The rank number where the next workspace begins, and the number of bytes
    /// that each rank has of a workspace.
    pub(super) workspaces: Mutex<(u64, u64)>,
    options: Options,
    rank: u32,
    /// The rank for each of ACP's numbers, if `acp_reset` has renumbered the ranks.
    numbered: Option<Box<[u32]>>,
}

/// The reason of a failed call.
pub(super) struct Reason(pub(super) String);

impl<E: Display> From<E> for Reason {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Runs `call` if this process is a rank. Returns `failed` if it is none, or if
/// `call` fails.
pub(super) fn with<T>(failed: T, call: impl FnOnce(&Life) -> Result<T, Reason>) -> T {
    let life = life_slot().read().unwrap_or_else(PoisonError::into_inner).clone();
    match life {
        Some(life) => call(&life).unwrap_or_else(|reason| note(failed, reason.0)),
        None => note(failed, NOT_A_RANK),
    }
}

/// The present life, for an object that keeps it until the object is freed.
pub(super) fn current() -> Option<Arc<Life>> {
    life_slot().read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Lets the malloc hook take blocks from the heap from now on.
fn begin_hook() {
    with((), |life| {
        life.options.hook.begin(life);
        Ok(())
    });
}

/// Stores the reason of a failed call, and returns `failed`.
pub(super) fn note<T>(failed: T, reason: impl Display) -> T {
    let reason = CString::new(reason.to_string()).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = reason);
    failed
}

impl Life {
    /// Begins a life. Collective.
    fn begin(runtime: &Runtime, options: Options, rank: u32) -> Result<Arc<Self>, Error> {
        // ACP has one colour, and all names of that colour belong to the program.
        let global = runtime.global_of(1 + u32::from(OWN_COLOR))?;
        let own = global.in_color(OWN_COLOR);
        let starter = own.expose::<u64>(options.starter_bytes.div_ceil(8))?;
        let starters = Bases::tell(&global, starter.at(0).addr())?;
        let pool = own.pool(options.heap_bytes)?;
        let comm = runtime.comm();
        let comms = [comm.duplicate()?, comm.duplicate()?];
        let numbered = match runtime.agree(u64::from(rank == runtime.rank().0))? {
            Some(1) => None,
            _ => Some(numbers(&runtime.gather(u64::from(rank))?)?),
        };
        Ok(Arc::new(Self {
            runtime: runtime.clone(),
            global,
            pool,
            comms,
            starter,
            starters,
            handles: Handles::default(),
            regions: Mutex::default(),
            made: Default::default(),
            workspaces: Mutex::new((0, WORKSPACE_BYTES)),
            options,
            rank,
            numbered,
        }))
    }

    /// The rank that has this number of ACP's.
    pub(super) fn rank_of(&self, number: c_int) -> Result<Rank, Reason> {
        let size = self.runtime.size();
        let known = u32::try_from(number).ok().filter(|number| *number < size);
        let none = || format!("rank {number} does not exist: the job has {size} ranks");
        let number = known.ok_or_else(none)?;
        Ok(Rank(self.numbered.as_ref().map_or(number, |ranks| ranks[number as usize])))
    }

    /// This rank's own number.
    pub(super) const fn number(&self) -> u32 {
        self.rank
    }

    /// The number of the rank that has `addr` in its starter memory; `None` if no
    /// rank has it there.
    pub(super) fn starter_of(&self, addr: GlobalAddr) -> Option<u32> {
        let split = self.global.split();
        let rank = split.rank(addr).filter(|rank| rank.0 < self.runtime.size())?;
        let first = self.starters.of(&self.global, rank)?;
        split.distance(first, addr).map(|_| self.number_of(rank))
    }

    /// ACP's number of a rank.
    pub(super) fn number_of(&self, rank: Rank) -> u32 {
        match &self.numbered {
            None => rank.0,
            Some(ranks) => {
                let number = ranks.iter().position(|known| *known == rank.0);
                number.expect("each rank has a number") as u32
            }
        }
    }

    /// A number for an object that two ranks make together. Both ranks get the same
    /// number if they make the same objects in the same order.
    pub(super) fn make(&self, what: usize, pair: (Rank, Rank)) -> u32 {
        let mut made = self.made[what].lock().unwrap_or_else(PoisonError::into_inner);
        let count = made.entry((pair.0.0, pair.1.0)).or_insert(0);
        *count += 1;
        *count
    }
}

/// A rank that runs on threads in the background.
struct Started {
    end: Arc<Latch>,
    caller: Caller,
    thread: JoinHandle<Result<(), Error>>,
}

#[derive(Clone)]
struct Options {
    starter_bytes: usize,
    heap_bytes: u64,
    hook: Hook,
}

impl Options {
    /// Removes ACP's options from main's arguments.
    ///
    /// # Safety
    ///
    /// As for `acp_init`.
    unsafe fn take(argc: *mut c_int, argv: *mut *mut *mut c_char) -> Self {
        let hook = Hook::default();
        let mut options = Self { starter_bytes: STARTER_BYTES, heap_bytes: HEAP_BYTES, hook };
        if argc.is_null() || argv.is_null() {
            return options;
        }
        // SAFETY: the caller's: `argv` has `argc` strings and then NULL.
        let (count, list) = unsafe { (*argc as usize, *argv) };
        let (mut from, mut to) = (0, 0);
        while from < count {
            // SAFETY: `from` is below the count.
            let (at, text) = unsafe {
                let at = *list.add(from);
                (at, CStr::from_ptr(at).to_string_lossy())
            };
            from += 1;
            let Some(name) = text.strip_prefix("--acp-") else {
                // SAFETY: `to` is below `from`, which is at most the count.
                unsafe { *list.add(to) = at };
                to += 1;
                continue;
            };
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None if from < count => {
                    // SAFETY: `from` is below the count.
                    let value = unsafe { CStr::from_ptr(*list.add(from)) };
                    from += 1;
                    (name, value.to_string_lossy().into_owned())
                }
                None => (name, String::new()),
            };
            match (name, value.parse::<u64>()) {
                ("size-smem", Ok(bytes)) => options.starter_bytes = bytes as usize,
                ("size-smem-dl", Ok(bytes)) => options.heap_bytes = bytes.max(HEAP_BYTES),
                ("malloc-hook-small", Ok(flag)) => options.hook.small = flag != 0,
                ("malloc-hook-large", Ok(flag)) => options.hook.large = flag != 0,
                ("malloc-hook-huge", Ok(flag)) => options.hook.huge = flag != 0,
                ("malloc-hook-low", Ok(bytes)) => options.hook.low = bytes,
                ("malloc-hook-high", Ok(bytes)) => options.hook.high = bytes,
                _ => {}
            }
        }
        // SAFETY: the caller's; `to` is below the count, so there is room for NULL.
        unsafe {
            *argc = to as c_int;
            if to < count {
                *list.add(to) = std::ptr::null_mut();
            }
        }
        options
    }
}

/// Runs the rank on threads of its own.
fn start(options: Options) -> Result<Started, String> {
    let end = Arc::new(Latch::new(1));
    let (sender, receiver) = mpsc::channel();
    let ended = end.clone();
    let rank = move || {
        let failed = sender.clone();
        let result = crate::run(move |runtime| {
            let life = Life::begin(runtime, options, runtime.rank().0)?;
            *life_slot().write().unwrap_or_else(PoisonError::into_inner) = Some(life);
            let _ = sender.send(Ok(Caller::of(runtime)));
            drop(sender);
            ended.wait();
            Ok::<_, Error>(())
        });
        if let Err(error) = &result {
            let _ = failed.send(Err(error.to_string()));
        }
        result
    };
    let thread = thread::Builder::new().name("acp".into()).spawn(rank);
    let thread = thread.map_err(|error| error.to_string())?;
    let caller: Caller =
        receiver.recv().map_err(|_| "the rank's thread has panicked".to_owned())??;
    caller.begin();
    Ok(Started { end, caller, thread })
}

/// The rank for each number, from the number that each rank has requested.
fn numbers(wanted: &[u64]) -> Result<Box<[u32]>, Error> {
    let mut ranks = vec![None; wanted.len()];
    for (rank, number) in wanted.iter().enumerate() {
        match ranks.get_mut(*number as usize) {
            Some(place @ None) => *place = Some(rank as u32),
            _ => {
                let last = wanted.len() - 1;
                let what = format!("number {number}, for rank {rank}, is in use or above {last}");
                return Err(Error::program(what));
            }
        }
    }
    Ok(ranks.into_iter().flatten().collect())
}

fn job() -> std::sync::MutexGuard<'static, Option<Started>> {
    JOB.lock().unwrap_or_else(PoisonError::into_inner)
}

fn life_slot() -> &'static RwLock<Option<Arc<Life>>> {
    &LIFE
}

/// No global address.
pub(super) const NULL: u64 = GlobalAddr::NULL.to_bits();

// Statics, because ACP's functions have no handle of their job.
static JOB: Mutex<Option<Started>> = Mutex::new(None);
static LIFE: RwLock<Option<Arc<Life>>> = RwLock::new(None);
thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

pub(super) const NOT_A_RANK: &str = "this process is not a rank: call acp_init first";
/// The colour of the starter memory and the heap.
const OWN_COLOR: u8 = 1;
const STARTER_BYTES: usize = 10_240;
const HEAP_BYTES: u64 = 64 << 20;
const WORKSPACE_BYTES: u64 = 1 << 20;
