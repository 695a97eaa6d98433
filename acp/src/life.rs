//! The state of a rank, and how a call comes to it.

use super::options::Options;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_int};
use std::fmt::Display;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tsumugi::global::{Bases, Global, GlobalAddr, GlobalBlock, GlobalRegion, Operation, Pool};
use tsumugi::{Comm, Error, Rank, Runtime};
use tsumugi_core::sync::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use tsumugi_ult::sync;

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
    pub(super) handles: Arc<Handles>,
    pub(super) regions: Mutex<Regions>,
    /// How many channels, and how many segmented buffers, each pair of ranks has
    /// made so far.
    pub(super) made: [Mutex<HashMap<(u32, u32), u32>>; 2],
    /// The rank number where the next workspace begins, and the number of bytes
    /// that each rank has of a workspace.
    pub(super) workspaces: Mutex<(u64, u64)>,
    pub(super) options: Options,
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

/// The operations of a rank that were begun.
#[derive(Default)]
pub(super) struct Handles {
    /// The newest handle.
    pub(super) last: AtomicI64,
    /// The number of operations that may not be complete: the length of the list.
    pub(super) count: AtomicUsize,
    pub(super) table: sync::Mutex<Table>,
}

/// What [`Handles`] has under its lock.
#[derive(Default)]
pub(super) struct Table {
    /// The operations that may not be complete, in the order of their handles.
    pub(super) open: VecDeque<(i64, Operation)>,
}

/// The regions that this rank has registered, by their keys.
#[derive(Debug, Default)]
pub(super) struct Regions {
    pub(super) of: HashMap<u64, Region>,
}

/// Memory of the program that is registered.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) addr: usize,
    pub(super) bytes: usize,
    pub(super) registration: GlobalRegion<u8>,
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

/// Stores the reason of a failed call, and returns `failed`.
pub(super) fn note<T>(failed: T, reason: impl Display) -> T {
    let reason = CString::new(reason.to_string()).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = reason);
    failed
}

impl Life {
    /// Begins a life. Collective.
    pub(super) fn begin(
        runtime: &Runtime,
        options: Options,
        rank: u32,
    ) -> Result<Arc<Self>, Error> {
        // ACP has one colour, and all names of that colour belong to the program.
        let colors = 1 + u32::from(OWN_COLOR);
        let global = runtime.global_of(colors, 0)?;
        let own = runtime.global_of(colors, OWN_COLOR)?;
        let starter = own.expose::<u64>(options.starter_bytes.div_ceil(8))?;
        let starters = Bases::tell(&global, starter.at(0).addr())?;
        let pool = own.pool(options.heap_bytes)?;
        let comm = runtime.comm();
        let comms = [comm.duplicate()?, comm.duplicate()?];
        let numbered = match runtime.sum(u64::from(rank != runtime.rank().0))? {
            0 => None,
            _ => Some(numbers(&runtime.allgather(u64::from(rank))?)?),
        };
        Ok(Arc::new(Self {
            runtime: runtime.clone(),
            global,
            pool,
            comms,
            starter,
            starters,
            handles: Arc::default(),
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

/// Sets the present life, and returns the one before.
pub(super) fn set_life(life: Option<Arc<Life>>) -> Option<Arc<Life>> {
    let mut slot = life_slot().write().unwrap_or_else(PoisonError::into_inner);
    // Release: pairs with the Acquire in `quickly`. What follows a change of the life
    // finds the new number.
    GENERATION.fetch_add(1, Ordering::Release);
    mem::replace(&mut *slot, life)
}

/// What copies and atomics within a node need of a life: no lock, and no count of
/// users that threads share.
pub(super) struct Near {
    generation: u64,
    pub(super) global: Global,
    pub(super) handles: Arc<Handles>,
}

/// Runs `call` with this thread's view of the present life; `None` if there is no life,
/// or if `call` returns it. `call` must not suspend its ULT.
#[inline(always)]
pub(super) fn quickly<T>(call: impl FnOnce(&Near) -> Option<T>) -> Option<T> {
    let answer = NEAR.try_with(|near| {
        let mut near = near.borrow_mut();
        // Acquire: pairs with the Release in `set_life`.
        let generation = GENERATION.load(Ordering::Acquire);
        match &*near {
            Some(known) if known.generation == generation => call(known),
            _ => call(renew(&mut near)?),
        }
    });
    answer.ok().flatten()
}

/// Makes this thread's view of the present life.
#[cold]
#[inline(never)]
fn renew(near: &mut Option<Near>) -> Option<&Near> {
    let slot = life_slot().read().unwrap_or_else(PoisonError::into_inner);
    // The lock is held, so the number belongs to the life.
    let generation = GENERATION.load(Ordering::Acquire);
    *near = slot.as_ref().map(|life| {
        let (global, handles) = (life.global.clone(), life.handles.clone());
        Near { generation, global, handles }
    });
    near.as_ref()
}

/// Drops this thread's view of a life that has ended.
pub(super) fn forget() {
    let _ = NEAR.try_with(|near| near.borrow_mut().take());
}

fn life_slot() -> &'static RwLock<Option<Arc<Life>>> {
    &LIFE
}

/// No global address.
pub(super) const NULL: u64 = GlobalAddr::NULL.to_bits();

// Statics, because ACP's functions have no handle of their job.
static LIFE: RwLock<Option<Arc<Life>>> = RwLock::new(None);
/// The number of changes of the life.
static GENERATION: AtomicU64 = AtomicU64::new(0);
thread_local! {
    static NEAR: RefCell<Option<Near>> = const { RefCell::new(None) };
    pub(super) static LAST: RefCell<CString> = RefCell::default();
}

pub(super) const NOT_A_RANK: &str = "this process is not a rank: call acp_init first";
/// The colour of the starter memory and the heap.
const OWN_COLOR: u8 = 1;
const WORKSPACE_BYTES: u64 = 1 << 20;
