//! The helper: a progress thread of each rank that handles messages when all workers
//! compute.
//!
//! ```text
//!  asleep ──rung: all workers run ULTs──► on watch ─► 50 us later, is it still
//!    ▲                                       │        there? take it
//!    │                                       │ every 100 us from then on
//!    └─── nothing left, or not for 1 ms ─────┘
//! ```
//!
//! The helper stands behind the workers: a sender rings it only if no worker sleeps
//! or looks for work, and the helper first gives the workers time, because they also
//! poll between ULTs. While it finds messages that no worker has taken it stays on
//! watch, so that senders need no system call to reach it. It also ends calls after
//! their time limits. Asleep it costs nothing; awake it counts as an outside event,
//! so the rank is not quiet.
//!
//! While more workers of the node are awake than it has cores, most workers that seem to run ULTs
//! have no core. A helper that took one for their messages would take it from another rank, and
//! helpers of all ranks at 100 us would have most of the cores' time. So messages wait for 250 us
//! for each worker of a core, in which their own worker mostly gets it again. A call of a function
//! waits for 50 us, or with the messages if the helper waits for these already.

use crate::affinity;
use crate::config::Chosen;
use crate::error::Error;
use crate::node::RankNode;
use crate::service::am::Outside;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tsumugi_core::sync::{AtomicBool, Ordering};
use tsumugi_core::wait::Futex;
use tsumugi_ult::{StartError, SystemFutex};

/// The thread of the helper; it ends when this is dropped.
pub(crate) struct ProgressThread {
    node: Arc<RankNode>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressThread {
    pub(crate) fn start(node: &Arc<RankNode>, chosen: &Chosen) -> Result<Self, Error> {
        let Chosen { workers, workers_per_core, .. } = *chosen;
        let has_ended = Arc::new(AtomicBool::new(false));
        let (own, ended) = (node.clone(), has_ended.clone());
        let run = move || help(&own, &ended, workers_per_core);
        let thread = tsumugi_pvas::thread::start("tsumugi-helper", run)
            .map_err(|error| StartError::Thread(workers, error))?;
        Ok(Self { node: node.clone(), has_ended, thread: Some(thread) })
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.node.bells().ring_helper(&SystemFutex);
        if let Some(thread) = self.thread.take() {
            // The thread ends by a panic only if a lock was broken, which shows
            // there.
            let _ = thread.join();
        }
    }
}

fn help(node: &RankNode, has_ended: &AtomicBool, workers_per_core: u32) {
    affinity::sleep_exactly();
    let word = node.bells().helper();
    while !has_ended.load(Ordering::SeqCst) {
        let ticket = word.prepare();
        if !node.is_neglected() && !has_ended.load(Ordering::SeqCst) {
            SystemFutex.wait(word.word(), ticket.expected(), node.until_deadline());
        }
        word.cancel();
        if node.is_neglected() {
            let _awake = Outside::new(node.member());
            watch(node, has_ended, workers_per_core);
        }
    }
}

/// Does work that the workers have not taken, until there is none for some rounds.
fn watch(node: &RankNode, has_ended: &AtomicBool, workers_per_core: u32) {
    let (mut rounds_left, mut round) = (1, FIRST_ROUND);
    while rounds_left > 0 && !has_ended.load(Ordering::SeqCst) {
        let crowd = crowd(node, workers_per_core);
        thread::sleep(crowd.filter(|_| !node.is_called()).unwrap_or(round));
        round = ROUND;
        let was_left = node.is_neglected() && node.help();
        let stays = was_left && crowd.is_none();
        rounds_left = if stays { QUIET_ROUNDS } else { rounds_left - 1 };
    }
}

/// How long messages wait, if more workers of the node are awake than it has cores.
fn crowd(node: &RankNode, workers_per_core: u32) -> Option<Duration> {
    if workers_per_core <= 1 {
        return None;
    }
    let controls = node.member().space().controls();
    // Relaxed: an estimate.
    let workers = controls.clone().map(|control| control.workers().load(Ordering::Relaxed));
    let workers: u32 = workers.sum();
    let asleep: usize = controls.map(|control| control.bells().asleep()).sum();
    let cores = workers.div_ceil(workers_per_core).max(1);
    let awake_per_core = workers.saturating_sub(asleep as u32).div_ceil(cores);
    (awake_per_core > 1).then_some(CROWDED_ROUND * awake_per_core)
}

const FIRST_ROUND: Duration = Duration::from_micros(50);
const ROUND: Duration = Duration::from_micros(100);
/// For each worker of a core.
const CROWDED_ROUND: Duration = Duration::from_micros(250);
const QUIET_ROUNDS: u32 = 10;
