//! A network of threads between ranks of one process: operations take effect and end
//! later, in any order, on threads of the network, and now and then there is no
//! room.
//!
//! ```text
//!  post ─► refused? ─► under way ─ due: carried out, rings ─► due: ended
//! ```

use crate::{AddrError, Rank, Runtime};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tsumugi_conformance::Seeded;
use tsumugi_core::backend::execute;
use tsumugi_core::completion::Busy;
use tsumugi_core::completion::{Callback, CompletionTable, Why};
use tsumugi_core::op::Op;
use tsumugi_core::tag::Tag;
use tsumugi_pvas::Direct;
use tsumugi_runtime::net::{Parcel, ParcelError, Transport};

/// The faults and sizes of the network. Rates are per mille.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Ranks of each node.
    pub(super) per_node: u32,
    /// The longest delay, in microseconds.
    pub(super) micros_max: u64,
    /// The rate of operations that find no room.
    pub(super) refuse: u64,
    /// The maximum number of operations in progress.
    pub(super) room: usize,
    /// The rate of operations that end inside the call.
    pub(super) at_once: u64,
}

pub(super) struct Net {
    plan: Plan,
    state: Mutex<State>,
    changed: Condvar,
    calls: CompletionTable<4>,
}

struct State {
    seeded: Seeded,
    under_way: Vec<Travel>,
    ranks: Vec<Option<Runtime>>,
    dead: Vec<Rank>,
    /// Ranks on which operations do not end for now.
    held: Vec<Rank>,
    has_ended: bool,
    refused: u64,
}

struct Travel {
    op: Op,
    call: Tag,
    from: Direct,
    due: Instant,
    result: Option<Result<u64, AddrError>>,
}

/// The transport of one rank; it has no packets.
struct Link {
    net: Arc<Net>,
    rank: Rank,
    direct: Direct,
}

/// The threads of the network; they end when this is dropped, after all operations.
pub(super) struct Running {
    net: Arc<Net>,
    threads: Vec<JoinHandle<()>>,
}

impl Net {
    pub(super) fn start(ranks: u32, plan: Plan, seed: u64) -> (Arc<Self>, Running) {
        let net = Arc::new(Self {
            plan,
            state: Mutex::new(State {
                seeded: Seeded(seed),
                under_way: Vec::new(),
                ranks: (0..ranks).map(|_| None).collect(),
                dead: Vec::new(),
                held: Vec::new(),
                has_ended: false,
                refused: 0,
            }),
            changed: Condvar::new(),
            calls: CompletionTable::new(),
        });
        let serve = |_| {
            let net = net.clone();
            thread::spawn(move || while net.step() {})
        };
        let threads = (0..2).map(serve).collect();
        (net.clone(), Running { net, threads })
    }

    /// Makes `rt` use this network to the other nodes.
    pub(super) fn join(self: &Arc<Self>, rt: &Runtime) {
        self.lock().ranks[rt.rank().0 as usize] = Some(rt.clone());
        let link =
            Link { net: self.clone(), rank: rt.rank(), direct: rt.handle().direct().clone() };
        rt.handle().am().set_transport(Arc::new(link));
    }

    /// Forgets a rank that is about to end.
    pub(super) fn leave(&self, rt: &Runtime) {
        let left = self.lock().ranks[rt.rank().0 as usize].take();
        drop(left);
    }

    /// Makes the rank dead for the network; other ranks get no notice.
    pub(super) fn kill(&self, rank: Rank) {
        self.lock().dead.push(rank);
    }

    /// Holds the ends of operations on `ranks`; operations on other ranks end.
    pub(super) fn hold(&self, ranks: &[Rank]) {
        self.lock().held = ranks.to_vec();
        self.changed.notify_all();
    }

    pub(super) fn under_way(&self) -> usize {
        self.lock().under_way.len()
    }

    pub(super) fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// A step of a thread of the network; false at the end.
    fn step(&self) -> bool {
        let mut state = self.lock();
        let now = Instant::now();
        let is_over = state.has_ended && state.under_way.is_empty();
        let is_due = |travel: &Travel| {
            let is_held = travel.result.is_some() && state.held.contains(&travel.op.remote.rank);
            travel.due <= now && !is_held
        };
        let Some(at) = state.under_way.iter().position(is_due) else {
            let wait = self.changed.wait_timeout(state, Duration::from_micros(50)).unwrap();
            drop(wait);
            return !is_over;
        };
        let mut travel = state.under_way.swap_remove(at);
        match travel.result {
            Some(result) => {
                drop(state);
                assert!(self.calls.view().complete(travel.call, result), "a second end");
            }
            None => {
                let lost = state.lost(travel.from.rank(), travel.op.remote.rank);
                drop(state);
                travel.result = Some(self.execute(&travel.op, &travel.from, lost));
                let mut state = self.lock();
                travel.due = now + state.way(self.plan);
                state.under_way.push(travel);
            }
        }
        true
    }

    fn execute(&self, op: &Op, from: &Direct, lost: Option<Rank>) -> Result<u64, AddrError> {
        if let Some(rank) = lost {
            return Err(AddrError::PeerLost { rank });
        }
        let mut quietly = *op;
        quietly.notify = false;
        let result = execute(from, &quietly);
        if op.notify {
            let target = self.lock().ranks[op.remote.rank.0 as usize].clone();
            if let Some(target) = target {
                target.handle().am().stir();
            }
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    /// The dead rank that ends an operation between the two, if there is one.
    fn lost(&self, from: Rank, to: Rank) -> Option<Rank> {
        self.dead.iter().copied().find(|rank| [from, to].contains(rank))
    }

    fn way(&mut self, plan: Plan) -> Duration {
        Duration::from_micros(self.seeded.below(plan.micros_max + 1))
    }
}

impl Transport for Link {
    fn is_near(&self, rank: Rank) -> bool {
        rank.0 / self.net.plan.per_node == self.rank.0 / self.net.plan.per_node
    }

    fn is_alive(&self, rank: Rank) -> bool {
        !self.net.lock().dead.contains(&rank)
    }

    fn post(&self, op: &Op, done: Callback) -> Result<(), Busy<()>> {
        assert!(!self.is_near(op.remote.rank), "{op:?} is for a rank of this node");
        let (net, plan) = (&self.net, self.net.plan);
        let mut state = net.lock();
        let has_room = state.under_way.len() < plan.room && state.seeded.below(1000) >= plan.refuse;
        let call = has_room.then(|| net.calls.view().try_begin_callback(0, done)).flatten();
        let Some(call) = call else {
            state.refused += 1;
            return Err(Busy { op: *op, buf: (), why: Why::RingFull });
        };
        if state.seeded.below(1000) < plan.at_once {
            let lost = state.lost(self.rank, op.remote.rank);
            drop(state);
            assert!(net.calls.view().complete(call, net.execute(op, &self.direct, lost)));
            return Ok(());
        }
        let due = Instant::now() + state.way(plan);
        let from = self.direct.clone();
        state.under_way.push(Travel { op: *op, call, from, due, result: None });
        drop(state);
        net.changed.notify_one();
        Ok(())
    }

    fn post_joined(&self, put: &Op, then: &Op, _: Callback) -> Result<(), Busy<()>> {
        unreachable!("{put:?}, {then:?}")
    }

    fn try_send(&self, to: Rank, kind: Parcel, _: &[u8]) -> Result<(), ParcelError> {
        unreachable!("{kind:?} to {to}: all ranks have lanes for each other from the start")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.net.lock();
        state.has_ended = true;
        state.held.clear();
        drop(state);
        self.net.changed.notify_all();
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the network has failed");
        }
    }
}
