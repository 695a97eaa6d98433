//! The agent's reports to the launcher: how its ranks end, at once.
//!
//! A thread connects to the launcher when the ranks start, as the ranks themselves
//! do. Ends that the launcher does not receive are printed on standard error, unless
//! the launcher is gone.

use super::order::AgentOrder;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;
use tsumugi::boot::env;
use tsumugi::boot::tcp::{Agent, ENDS_MAX, HEARD, ProcessEnd, SIGNAL, Secret};
use tsumugi::pvas::launch::{EndReport, RankEnd};
use tsumugi_core::sync::{AtomicBool, Ordering};

/// The thread that reports.
pub struct Reporter {
    done: Receiver<()>,
    alone: Alone,
}

/// Whether the launcher has gone.
#[derive(Clone, Debug)]
pub struct Alone(Arc<AtomicBool>);

impl Reporter {
    /// Starts reporting what comes from `ends`, until it ends.
    pub fn start(order: &AgentOrder, ends: Receiver<EndReport>) -> Self {
        let alone = Alone(Arc::new(AtomicBool::new(false)));
        let (finished, done) = mpsc::channel();
        let (agent, told) = (agent_of(order), alone.clone());
        thread::spawn(move || {
            tell(agent, &ends, &told);
            // Sending fails if the agent no longer waits.
            let _ = finished.send(());
        });
        Self { done, alone }
    }

    /// A flag that the agent sets when the launcher has gone.
    pub fn alone(&self) -> Alone {
        self.alone.clone()
    }

    /// Waits until everything is reported.
    pub fn finish(self) {
        let limit = if self.alone.is_set() { TOLD_ALONE_WITHIN } else { TOLD_WITHIN };
        // What takes longer than this is not reported.
        let _ = self.done.recv_timeout(limit);
    }
}

impl Alone {
    pub fn set(&self) {
        // Relaxed: the flag publishes no other data.
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn agent_of(order: &AgentOrder) -> Option<Agent> {
    let addresses = order.variable(env::SERVER)?.split(',').map(str::to_owned).collect();
    let secret = Secret::new(&order.variable(env::SECRET)?)?;
    Agent::new(order.size, addresses, secret, ASK_WITHIN).ok()
}

fn tell(mut agent: Option<Agent>, ends: &Receiver<EndReport>, alone: &Alone) {
    if let Some(agent) = &mut agent {
        agent.prepare();
    }
    while let Ok(first) = ends.recv() {
        let all: Vec<EndReport> =
            std::iter::once(first).chain(ends.try_iter().take(ENDS_MAX - 1)).collect();
        let told = all.iter().map(ended).collect();
        let is_told = agent.as_mut().is_some_and(|agent| agent.tell(told).is_ok());
        if !is_told && !alone.is_set() {
            let failures = all.iter().map(|told| told.failure);
            for failure in failures.filter(|failure| failure.end != RankEnd::Early) {
                // One write, so that the line does not mix with the output of ranks.
                let line = format!("tsumugi: {failure}\n");
                eprint!("{line}");
            }
        }
    }
}

fn ended(told: &EndReport) -> ProcessEnd {
    let failure = &told.failure;
    let how = match failure.end {
        RankEnd::Exited { code } => code as u32 & 0xff,
        RankEnd::Killed { signal } => SIGNAL | signal as u32,
        RankEnd::Early => 0,
    };
    let heard = if told.may_have_heard { HEARD } else { 0 };
    ProcessEnd { rank: failure.rank.0, pid: failure.pid, how: how | heard }
}

/// The attempt to connect lasts a little longer than this.
const ASK_WITHIN: Duration = Duration::from_secs(1);
const TOLD_WITHIN: Duration = Duration::from_secs(4);
const TOLD_ALONE_WITHIN: Duration = Duration::from_millis(100);
