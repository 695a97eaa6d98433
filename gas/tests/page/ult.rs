//! A ULT of a rank: its program, its progress, and its log.

use crate::desk::Log;
use crate::post::Asked;
use std::collections::VecDeque;
use tsumugi_conformance::Seeded;
use tsumugi_conformance::history::{Event as Access, NEVER, What};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_gas::page::{
    GracePeriod, OptimisticRead, PageId, PageLayout, PagePin, Relocation, RetiredFrame,
};

pub struct Ult {
    pub draw: Seeded,
    pub left: u32,
    pub plan: Plan,
    /// The pages that are to be owned next, in this order.
    pub to_own: VecDeque<PageId>,
    pub does: Does,
    pub task: Task,
    /// The number of the operation that was posted last; completions of others are late.
    pub sequence: u64,
    pub parts: Vec<(u64, Part)>,
    pub header: u64,
    pub value: u64,
    pub error: Option<AddrError>,
    pub pauses_for: Option<Rank>,
    pub start: u64,
    pub scratch: u64,
    pub paused: bool,
}

/// The program of a ULT.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    /// Percentages of the operations; the rest are owns.
    Mix { gets: u64, puts: u64, adds: u64 },
    /// Reads all pages.
    Read,
    /// Owns and reads each page.
    Collect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Get { page: PageId, first: u64, count: u64 },
    Put { page: PageId, first: u64, count: u64 },
    Add { page: PageId },
    Own(PageId),
}

pub enum Task {
    None,
    Read(OptimisticRead),
    Pin(PagePin),
    Own(Relocation),
    Grace(GracePeriod, RetiredFrame),
    Free,
    Asked(Asked),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Word,
    Header,
    Bytes,
    /// The bytes of a page that moves to another rank.
    Fetched,
    Access,
}

impl Ult {
    /// A ULT that does `steps` operations and has its buffer at `scratch`.
    pub fn new(seed: u64, steps: u32, plan: Plan, scratch: u64) -> Self {
        let is_collecting = matches!(plan, Plan::Collect);
        let to_own = (0..u64::from(steps)).filter(|_| is_collecting).map(PageId).collect();
        Self {
            draw: Seeded(seed),
            left: steps,
            plan,
            to_own,
            does: Does::Own(PageId(0)),
            task: Task::None,
            sequence: 0,
            parts: vec![],
            header: 0,
            value: 0,
            error: None,
            pauses_for: None,
            start: 0,
            scratch,
            paused: false,
        }
    }

    pub fn begin(&mut self, layout: PageLayout, rank: Rank, by_mail: bool, log: &mut Log) {
        let pages = layout.shape().homes.pages();
        if let Some(page) = self.to_own.pop_front() {
            self.does = Does::Own(page);
            // Now and then to another rank, which takes no part.
            let to = match self.plan {
                Plan::Mix { .. } if !by_mail && self.draw.below(3) == 0 => {
                    Rank(self.draw.below(layout.shape().homes.ranks().into()) as u32)
                }
                _ => rank,
            };
            self.task = match by_mail {
                true => Task::Asked(Asked::Own),
                false => Task::Own(Relocation::to(layout, to, rank, page)),
            };
            return;
        }
        self.left -= 1;
        self.start = log.tick();
        let all = ELEMENTS - 1;
        let (first, page) = (1 + self.draw.below(all), PageId(self.draw.below(pages)));
        let count = 1 + self.draw.below(ELEMENTS - first);
        let (gets, puts, adds) = match self.plan {
            Plan::Mix { gets, puts, adds } => (gets, puts, adds),
            Plan::Read | Plan::Collect => (100, 0, 0),
        };
        self.does = match self.draw.below(100) {
            _ if !matches!(self.plan, Plan::Mix { .. }) => {
                let page = PageId(u64::from(self.left));
                Does::Get { page, first: 0, count: ELEMENTS }
            }
            dice if dice < gets => Does::Get { page, first, count },
            dice if dice < gets + puts => Does::Put { page, first, count },
            dice if dice < gets + puts + adds => Does::Add { page },
            _ => {
                let count = 1 + self.draw.below(3);
                let last = (page.0 + count).min(pages);
                self.to_own.extend((page.0..last).map(PageId));
                return;
            }
        };
        self.task = match self.does {
            _ if by_mail => Task::Asked(Asked::Enter),
            Does::Get { page, .. } => Task::Read(OptimisticRead::new(layout, rank, page)),
            Does::Put { page, .. } | Does::Add { page } => {
                Task::Pin(PagePin::new(layout, rank, page))
            }
            Does::Own(_) => unreachable!("an own is not a single step"),
        };
    }

    pub fn log_writes(&self, log: &mut Log, result: Result<u64, AddrError>) {
        let end = if result.is_ok() { log.tick() } else { NEVER };
        let mut note = |page: PageId, element: u64, what| {
            let event = Access { start: self.start, end, what };
            log.elements[(page.0 * ELEMENTS + element) as usize].push(event);
        };
        match self.does {
            Does::Put { page, first, count } => {
                for element in first..first + count {
                    let value = unique(self.start, element);
                    note(page, element, What::Write(value));
                }
            }
            Does::Add { page } => {
                if let Ok(old) = result {
                    note(page, 0, What::Add(old));
                }
            }
            Does::Get { .. } | Does::Own(_) => unreachable!("the operation writes nothing"),
        }
    }
}

impl Does {
    pub const fn writes(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Add { .. })
    }

    pub const fn page(&self) -> PageId {
        let (Self::Get { page, .. }
        | Self::Put { page, .. }
        | Self::Add { page }
        | Self::Own(page)) = *self;
        page
    }
}

/// The first value of an element.
pub const fn first(page: PageId, element: u64) -> u64 {
    1 << 40 | unique(page.0, element)
}

pub const fn unique(start: u64, element: u64) -> u64 {
    start * ELEMENTS + element
}

/// The elements of a page: a counter, and registers.
pub const ELEMENTS: u64 = 5;
