//! The service: moves the collectives that have begun without a waiting caller, and
//! follows deaths.

use super::broken::BrokenGroups;
use super::contexts::ContextTable;
use super::row_table::RowTable;
use crate::death::DeathWatch;
use crate::error::Error;
use crate::service::Service;
use crate::service::messages::{Messages, Under};
use crate::word_wait::WordWait;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::schedule::CollChoice;
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::sync::{AtomicUsize, Ordering};
use tsumugi_core::wait::Reason;
use tsumugi_pvas::{Member, own_process};
use tsumugi_ult::SystemFutex;

/// The collectives of one rank.
pub struct Collectives {
    member: Member,
    messages: Arc<Messages>,
    deaths: DeathWatch,
    broken: Mutex<BrokenGroups>,
    contexts: Mutex<ContextTable>,
    rows: Mutex<RowTable>,
    word_wait: Arc<WordWait>,
    records: Mutex<Records>,
    /// The number of collectives under way.
    running_count: AtomicUsize,
    choice: CollChoice,
}

/// A collective that moves without a waiting caller.
pub(super) trait Driven: Any + Send + Sync {
    /// Moves it on; returns whether it has moved. Does nothing while another thread
    /// moves it.
    fn advance(&self) -> bool;

    /// Whether it has ended.
    fn has_ended(&self) -> bool;

    /// Ends it without the other members, at the end of the rank.
    fn abandon(&self);

    /// For what it waits, in a report.
    fn waits_for(&self) -> Option<Reason>;
}

/// The collectives that have begun and are driven from here.
#[derive(Default)]
struct Records {
    running: Vec<Arc<dyn Driven>>,
    /// Records of collectives that have ended, for the next ones.
    idle: Vec<Arc<dyn Driven>>,
    /// The rank has ended.
    is_closed: bool,
}

impl Collectives {
    pub(crate) fn new(
        member: &Member,
        messages: Arc<Messages>,
        word_wait: Arc<WordWait>,
        choice: CollChoice,
    ) -> Self {
        Self {
            member: member.clone(),
            messages,
            deaths: DeathWatch::default(),
            broken: Mutex::default(),
            contexts: Mutex::new(ContextTable::new()),
            rows: Mutex::default(),
            word_wait,
            records: Mutex::default(),
            running_count: AtomicUsize::new(0),
            choice,
        }
    }

    pub(super) fn member(&self) -> &Member {
        &self.member
    }

    /// How the groups of the job choose algorithms.
    pub(super) fn choice(&self) -> &CollChoice {
        &self.choice
    }

    pub(super) fn messages(&self) -> &Messages {
        &self.messages
    }

    pub(super) fn broken(&self) -> MutexGuard<'_, BrokenGroups> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn contexts(&self) -> MutexGuard<'_, ContextTable> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rows(&self) -> MutexGuard<'_, RowTable> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For what a caller sleeps in this rank's row `index`, for reports.
    pub(crate) fn wait_in_row(&self, index: usize) -> Option<Reason> {
        self.rows().wait_in(index)
    }

    pub(super) fn word_wait(&self) -> &WordWait {
        &self.word_wait
    }

    /// A rank of the job that has died.
    pub(super) fn lost(&self) -> Option<Rank> {
        self.member.control().parking_lot().lost()
    }

    /// # Errors
    ///
    /// A rank of the job has died, or this process is a fork of the rank.
    pub(super) fn check(&self) -> Result<(), Error> {
        own_process::check()?;
        match self.lost() {
            None => Ok(()),
            Some(rank) => Err(lost_error(rank)),
        }
    }

    /// Notes a receive of a collective, so that a death ends it.
    pub(super) fn watch(&self, under: Under) {
        if !self.broken().add_receive(under) {
            self.messages.cancel(under);
        }
    }

    pub(super) fn unwatch(&self, under: Under) {
        self.broken().remove_receive(under);
    }

    /// Drives a collective until it has ended, if it has not.
    pub(super) fn drive(&self, collective: Arc<dyn Driven>) {
        let mut records = self.records();
        if collective.has_ended() {
            records.idle.push(collective);
            return;
        }
        if records.is_closed {
            drop(records);
            collective.abandon();
            return;
        }
        records.running.push(collective);
        // SeqCst: a thread that then looks for work before it sleeps sees it.
        self.running_count.store(records.running.len(), Ordering::SeqCst);
        drop(records);
        // If all workers compute, only the helper looks after it.
        self.member.control().bells().ring_helped(&SystemFutex, || ());
    }

    /// Makes the record of a collective that has ended an idle one, if it is driven.
    pub(super) fn retire(&self, ended: &dyn Driven) {
        let mut records = self.records();
        let Records { running, idle, .. } = &mut *records;
        let is_it = |one: &Arc<dyn Driven>| std::ptr::addr_eq(Arc::as_ptr(one), ended);
        if let Some(index) = running.iter().position(is_it) {
            idle.push(running.remove(index));
            self.running_count.store(running.len(), Ordering::SeqCst);
        }
    }

    /// A record of a collective that has ended.
    pub(super) fn idle_record(&self) -> Option<Arc<dyn Driven>> {
        self.records().idle.pop()
    }

    /// Moves messages and collectives on, for a caller that looks for the end of one.
    pub(super) fn make_progress(&self) {
        self.messages.make_progress();
        if self.has_running() {
            self.advance();
        }
    }

    /// For what each collective that has begun waits.
    pub(crate) fn each_waiting(&self, mut tell: impl FnMut(Reason)) {
        let mut index = 0;
        while let Some(one) = self.running(index) {
            one.waits_for().map(&mut tell);
            index += 1;
        }
    }

    /// For what a collective waits that has begun, if it waits: its place is that of the reason of
    /// its waiter.
    pub(crate) fn waits_at(&self, at: u64) -> Option<Reason> {
        let mut found = None;
        self.each_waiting(|reason| found = found.or(Some(reason).filter(|of| of.at == at)));
        found
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self, index: usize) -> Option<Arc<dyn Driven>> {
        self.records().running.get(index).cloned()
    }

    fn has_running(&self) -> bool {
        self.running_count.load(Ordering::SeqCst) > 0
    }

    /// Moves all collectives that are driven from here.
    fn advance(&self) -> bool {
        let (mut any, mut index) = (false, 0);
        // No lock is held while one moves.
        while let Some(one) = self.running(index) {
            any |= one.advance();
            index += 1;
        }
        any
    }

    /// Handles a death, if there is one that was not handled yet.
    fn follow_deaths(&self) -> bool {
        let is_new = self.deaths.take(&self.member);
        if is_new {
            let cancelled = self.broken().break_all();
            cancelled.into_iter().for_each(|under| self.messages.cancel(under));
        }
        is_new
    }

    fn work(&self) -> bool {
        let mut any = self.deaths.has_news(&self.member) && self.follow_deaths();
        if self.has_running() {
            any |= self.advance();
        }
        if self.lost().is_some()
            && let Ok(mut broken) = self.broken.try_lock()
            && broken.is_broken()
        {
            any |= broken.take_rest(&self.messages);
        }
        any
    }
}

impl Service for Collectives {
    fn has_work(&self) -> bool {
        self.work()
    }

    fn pump(&self) -> bool {
        self.work()
    }

    fn is_neglected(&self) -> bool {
        // Their messages are short ones, for which no helper is woken.
        self.deaths.has_news(&self.member)
            || self.has_running() && (self.messages.pump() | self.advance())
    }

    fn on_busy(&self) {}

    /// A rank that ends takes part in what it has begun.
    fn is_busy(&self) -> bool {
        self.has_running()
    }

    fn until_deadline(&self) -> Option<Duration> {
        self.has_running().then_some(HELPER_LOOK)
    }

    /// Ends what has not ended, with an error.
    fn close(&self) {
        let mut records = self.records();
        records.is_closed = true;
        let left = std::mem::take(&mut records.running);
        self.running_count.store(0, Ordering::SeqCst);
        drop(records);
        left.iter().for_each(|one| one.abandon());
    }
}

/// The error of a collective after a death.
pub(super) const fn lost_error(rank: Rank) -> Error {
    Error::Coll(CollError::Addr(AddrError::PeerLost { rank }))
}

/// The error of a collective that the rank has not ended before its own end.
pub(super) const fn ended_error() -> Error {
    Error::Coll(CollError::Addr(AddrError::Ended))
}

impl fmt::Debug for Collectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collectives({})", self.member.rank())
    }
}

/// How often the helper looks after collectives while all workers compute.
const HELPER_LOOK: Duration = Duration::from_micros(100);
