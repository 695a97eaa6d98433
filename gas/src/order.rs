//! The order of operations: an operation can begin when others have ended.
//!
//! An operation is issued with a condition ([`After`]): at once, after one other
//! operation, after a set of others, after another one *and all before it*, or after
//! all so far. An operation waits for the operations that its condition names and
//! for no others.
//!
//! ```text
//!   issued order:  3 ─ 5 ─ 6 ─ 9        (ended operations are taken out)
//!                      │   └ upto: [9]      9 waits for 3, 5 and 6
//!                      └ exact: [6]         6 waits for 5 alone
//!
//!   6 ends first:  3 ─ 5 ─ 9            9 waited for "6 and all before it"
//!                      └ upto: [9]      now waits for "5 and all before it"
//!   5 ends:        3 ─ 9
//!                  └ upto: [9]
//!   3 ends:        9 begins
//! ```
//!
//! "Has ended" means remote completion: an operation that begins afterwards finds
//! the effects, on whatever rank they are. The machine ends an operation only then.
//!
//! Handles are numbers in the order of issue, from 1 on, and never 0; the two
//! largest numbers are ACP's ALL and CONT. They are compared as unsigned numbers
//! (hazard A9).
//!
//! Progress: wait-free, on one thread. Issuing after a handle and all before it
//! visits the operations that were issued after that handle and have not ended;
//! issuing after a set visits all operations that have not ended.

use core::fmt;
use tsumugi_core::mutate;

/// An operation that was issued.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Handle(u64);

/// The condition under which an operation begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum After<'h> {
    /// At once.
    #[default]
    Nothing,
    /// When this operation has ended.
    One(Handle),
    /// When each of these operations has ended.
    Each(&'h [Handle]),
    /// When this operation and all that were issued before it have ended. The order
    /// of a handle in ACP.
    UpTo(Handle),
    /// When all operations that were issued so far have ended. ACP's `ALL`.
    All,
    /// When the operation that was issued just before has ended, if it was between
    /// the same two ranks; otherwise as [`All`](Self::All). ACP's `CONT`.
    Cont,
}

/// Why an operation was not issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Full {
    /// All places for operations are taken, by operations that are under way or
    /// wait.
    Operations,
    /// All places for conditions are taken.
    Conditions,
}

/// Memory for one operation.
#[derive(Clone, Copy, Debug)]
pub struct Issued {
    /// The handle of the operation; 0: none.
    handle: u64,
    /// Conditions that do not hold yet.
    pending: u32,
    /// The conditions that wait for this operation.
    exact: u32,
    /// The conditions that wait for this operation and all before it: first and
    /// last.
    upto: (u32, u32),
    previous: u32,
    next: u32,
    link: u32,
}

/// Memory for one condition of a waiter.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    waiter: u32,
    next: u32,
}

/// Operations under way, and the conditions that wait for them.
pub struct OpOrder<'m> {
    issued: &'m mut [Issued],
    edges: &'m mut [Edge],
    free: u32,
    free_edges: u32,
    edges_left: usize,
    oldest: u32,
    youngest: u32,
    /// Operations that may begin, first and last.
    ready: (u32, u32),
    sequence: u64,
    /// The operation that was issued last.
    last: Handle,
    live: usize,
}

impl Handle {
    /// No operation. It counts as ended.
    pub const NULL: Self = Self(0);
    /// All operations so far, in the place of a handle to wait for.
    pub const ALL: Self = Self(u64::MAX);
    /// The operation before, in the place of a handle to wait for.
    pub const CONT: Self = Self(u64::MAX - 1);

    /// The handle as a word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The handle in such a word. A handle that was never issued counts as ended.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The meaning of this handle as an order in ACP.
    pub const fn as_order(self) -> After<'static> {
        match self {
            Self::NULL => After::Nothing,
            Self::ALL => After::All,
            Self::CONT => After::Cont,
            handle => After::UpTo(handle),
        }
    }

    /// The slot of the operation.
    pub(crate) const fn index(self) -> usize {
        (self.0 & INDEX_MASK) as usize
    }
}

impl Issued {
    /// An operation that is not in use.
    pub const FREE: Self = Self {
        handle: 0,
        pending: 0,
        exact: NONE,
        upto: (NONE, NONE),
        previous: NONE,
        next: NONE,
        link: NONE,
    };
}

impl Edge {
    /// A condition that is not in use.
    pub const FREE: Self = Self { waiter: NONE, next: NONE };
}

impl<'m> OpOrder<'m> {
    /// An order without operations.
    ///
    /// # Panics
    ///
    /// If there is no room for an operation, or for more than 65,536.
    pub fn new(issued: &'m mut [Issued], edges: &'m mut [Edge]) -> Self {
        assert!(
            (1..=1 << INDEX_BITS).contains(&issued.len()),
            "an order of {} operations: it has 1 to 65,536",
            issued.len()
        );
        for (index, slot) in issued.iter_mut().enumerate() {
            *slot = Issued { link: index as u32 + 1, ..Issued::FREE };
        }
        for (index, edge) in edges.iter_mut().enumerate() {
            *edge = Edge { next: index as u32 + 1, ..Edge::FREE };
        }
        let edges_left = edges.len();
        if let Some(last) = edges.last_mut() {
            last.next = NONE;
        }
        issued[issued.len() - 1].link = NONE;
        let free_edges = if edges_left == 0 { NONE } else { 0 };
        Self {
            issued,
            edges,
            free: 0,
            free_edges,
            edges_left,
            oldest: NONE,
            youngest: NONE,
            ready: (NONE, NONE),
            sequence: 0,
            last: Handle::NULL,
            live: 0,
        }
    }

    /// Issues an operation. `is_same` must be true if the operation that was issued
    /// just before is between the same ranks: for [`After::Cont`].
    ///
    /// # Errors
    ///
    /// A [`Full`], and nothing was issued: [`Full::Operations`] if all places for
    /// operations are taken; [`Full::Conditions`] if the places for conditions do not
    /// suffice for the operations that this one has to wait for.
    pub fn try_issue(&mut self, after: After<'_>, is_same: bool) -> Result<Handle, Full> {
        match after {
            After::Nothing => self.issue(|_, _| {}, 0),
            After::One(handle) => self.issue_after(self.find(handle)),
            After::Each(handles) => self.try_issue_each(|live| handles.contains(&live)),
            After::UpTo(handle) => self.issue_upto(self.youngest_until(handle)),
            // If the operation before has ended, the operations that it waited for
            // have ended, too.
            After::Cont if is_same => self.issue_after(self.find(self.last)),
            After::All | After::Cont => self.issue_upto(self.youngest),
        }
    }

    /// Issues an operation that begins when all operations have ended for which
    /// `is_awaited` returns true.
    ///
    /// # Errors
    ///
    /// A [`Full`], and nothing was issued: [`Full::Operations`] if all places for
    /// operations are taken; [`Full::Conditions`] if the places for conditions do not
    /// suffice for the operations that this one has to wait for.
    pub fn try_issue_each(&mut self, is_awaited: impl Fn(Handle) -> bool) -> Result<Handle, Full> {
        let awaited = self.live().filter(|&handle| is_awaited(handle)).count();
        let attach = |this: &mut Self, waiter: u32| {
            let mut at = this.oldest;
            while at != NONE {
                let Issued { handle, next, .. } = this.issued[at as usize];
                if is_awaited(Handle(handle)) {
                    this.attach(waiter, at as usize);
                }
                at = next;
            }
        };
        self.issue(attach, awaited)
    }

    /// The slot of the next operation that may begin.
    pub fn poll_ready(&mut self) -> Option<usize> {
        let (first, last) = self.ready;
        if first == NONE {
            return None;
        }
        let next = self.issued[first as usize].link;
        self.ready = if first == last { (NONE, NONE) } else { (next, last) };
        Some(first as usize)
    }

    /// Ends an operation, which must have ended at all ranks: its waiters may begin.
    pub fn end(&mut self, slot: usize) {
        let Issued { exact, upto, previous, next, .. } = self.issued[slot];
        debug_assert!(self.issued[slot].handle != 0, "the operation of slot {slot} ends twice");
        match previous {
            NONE => self.oldest = next,
            at => self.issued[at as usize].next = next,
        }
        match next {
            NONE => self.youngest = previous,
            at => self.issued[at as usize].previous = previous,
        }
        self.issued[slot] = Issued { link: self.free, ..Issued::FREE };
        self.free = slot as u32;
        self.live -= 1;
        self.release(exact);
        if mutate!("gas_order_one_for_all": previous == NONE => true) {
            self.release(upto.0);
        } else if upto.0 != NONE {
            // Operations that were issued before it have not ended.
            let at = previous as usize;
            let (head, tail) = self.issued[at].upto;
            self.edges[upto.1 as usize].next = head;
            let tail = if tail == NONE { upto.1 } else { tail };
            self.issued[at].upto = (upto.0, tail);
        }
    }

    /// Whether this operation has ended: ACP's `inquire`, of that operation alone.
    pub fn has_ended(&self, handle: Handle) -> bool {
        match handle {
            Handle::ALL | Handle::CONT => self.live == 0,
            _ => self.find(handle).is_none(),
        }
    }

    /// Whether this operation and all before it have ended: the condition for which
    /// ACP's `complete` waits.
    pub fn has_ended_up_to(&self, handle: Handle) -> bool {
        self.oldest == NONE || self.issued[self.oldest as usize].handle > handle.0
    }

    /// The handle of the operation in a slot.
    pub fn handle(&self, slot: usize) -> Handle {
        Handle(self.issued[slot].handle)
    }

    /// The number of operations that have not ended.
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether all operations have ended.
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    fn live(&self) -> impl Iterator<Item = Handle> {
        let mut at = self.oldest;
        core::iter::from_fn(move || {
            let slot = self.issued.get(at as usize)?;
            at = slot.next;
            Some(Handle(slot.handle))
        })
    }

    /// The slot of an operation that has not ended.
    fn find(&self, handle: Handle) -> Option<usize> {
        let is_it = |slot: &Issued| slot.handle == handle.0 && handle != Handle::NULL;
        self.issued.get(handle.index()).is_some_and(is_it).then_some(handle.index())
    }

    fn issue_after(&mut self, awaited: Option<usize>) -> Result<Handle, Full> {
        match awaited {
            Some(slot) => self.issue(|this, waiter| this.attach(waiter, slot), 1),
            None => self.issue(|_, _| {}, 0),
        }
    }

    /// Adds a condition to `waiter`: the end of that operation alone.
    fn attach(&mut self, waiter: u32, awaited: usize) {
        self.issued[awaited].exact = self.take_edge(waiter, self.issued[awaited].exact);
        self.issued[waiter as usize].pending += 1;
    }

    fn issue_upto(&mut self, until: u32) -> Result<Handle, Full> {
        if until == NONE {
            return self.issue(|_, _| {}, 0);
        }
        let attach = |this: &mut Self, waiter: u32| {
            let (head, tail) = this.issued[until as usize].upto;
            let edge = this.take_edge(waiter, head);
            let tail = if tail == NONE { edge } else { tail };
            this.issued[until as usize].upto = (edge, tail);
            this.issued[waiter as usize].pending += 1;
        };
        self.issue(attach, 1)
    }

    /// The youngest operation that was issued no later than `handle` and has not
    /// ended.
    fn youngest_until(&self, handle: Handle) -> u32 {
        let mut at = self.youngest;
        while at != NONE && self.issued[at as usize].handle > handle.0 {
            at = self.issued[at as usize].previous;
        }
        at
    }

    fn issue(&mut self, attach: impl FnOnce(&mut Self, u32), edges: usize) -> Result<Handle, Full> {
        if self.free == NONE {
            return Err(Full::Operations);
        }
        if edges > self.edges_left {
            return Err(Full::Conditions);
        }
        let slot = self.free;
        self.free = self.issued[slot as usize].link;
        attach(self, slot);
        self.sequence += 1;
        let handle = self.sequence << INDEX_BITS | u64::from(slot);
        self.last = Handle(handle);
        let previous = self.youngest;
        let issued = &mut self.issued[slot as usize];
        (issued.handle, issued.previous) = (handle, previous);
        let is_ready = issued.pending == 0;
        match previous {
            NONE => self.oldest = slot,
            at => self.issued[at as usize].next = slot,
        }
        self.youngest = slot;
        self.live += 1;
        if is_ready {
            self.push_ready(slot);
        }
        Ok(Handle(handle))
    }

    fn take_edge(&mut self, waiter: u32, next: u32) -> u32 {
        let edge = self.free_edges;
        self.free_edges = self.edges[edge as usize].next;
        self.edges_left -= 1;
        self.edges[edge as usize] = Edge { waiter, next };
        edge
    }

    /// Removes a condition from the waiter of each of these edges.
    fn release(&mut self, mut edge: u32) {
        while edge != NONE {
            let Edge { waiter, next } = self.edges[edge as usize];
            self.edges[edge as usize] = Edge { waiter: NONE, next: self.free_edges };
            self.free_edges = edge;
            self.edges_left += 1;
            let issued = &mut self.issued[waiter as usize];
            issued.pending -= 1;
            if issued.pending == 0 {
                self.push_ready(waiter);
            }
            edge = next;
        }
    }

    fn push_ready(&mut self, slot: u32) {
        self.issued[slot as usize].link = NONE;
        match self.ready {
            (NONE, _) => self.ready = (slot, slot),
            (first, last) => {
                self.issued[last as usize].link = slot;
                self.ready = (first, slot);
            }
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NULL => f.write_str("no operation"),
            Self::ALL => f.write_str("all operations"),
            Self::CONT => f.write_str("the previous operation"),
            Self(bits) => write!(f, "operation {}", bits >> INDEX_BITS),
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({self})")
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operations => "too many operations are under way: try again when one has ended",
            Self::Conditions => "too many operations wait for others: try again when one has ended",
        })
    }
}

impl core::error::Error for Full {}

impl fmt::Debug for OpOrder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpOrder({} of {} operations)", self.live, self.issued.len())
    }
}

const NONE: u32 = u32::MAX;
const INDEX_BITS: u32 = 16;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

#[cfg(test)]
mod tests;
