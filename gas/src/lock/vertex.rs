//! A vertex of a group lock's tree, run by one rank: it takes words of that rank's
//! own memory and completions, and returns operations.
//!
//! ```text
//!   from above ─► Down: number, side, revoked?        to above: released, wants
//!
//!            granted                 revoked, or (root) the other side is
//!   Shut ──► Opening ──► Open(side) ── wanted ──► Closing ──► Draining ──► Shut
//!            leaf: +OPEN    │ lets in all that    leaf: -OPEN  │ until the
//!                           ▼ want this side                   ▼ last left
//!   to below: Down of a vertex, or the word of a rank     released, upwards
//! ```
//!
//! A grant stays until it is revoked, however often ranks below enter and leave; so
//! a side that is in use costs nothing above the leaf. A vertex that has a new grant
//! lets in all that wait for that side before it obeys a revocation, and the root
//! takes the sides in turn while both are wanted: no rank waits for more than one
//! turn of each side.
//!
//! Each word has one writer, and its value is a state, not an event; a word is
//! written again only when the last write has ended. Each write wakes the thread
//! that runs the vertex or that waits at the rank.

use super::side::GroupSide;
use super::tree::{BlockWord, FAN_MAX, SIDE_WORDS, Tree, VertexId};
use core::hash::{Hash, Hasher};
use tsumugi_core::mem::{AddrError, RemoteAddr, Width};
use tsumugi_core::mutate;
use tsumugi_core::op::{Kind as OpKind, Op};

/// The state of a vertex at the rank that runs it. Two vertices are equal if they
/// will do the same.
#[derive(Clone, Debug)]
pub struct Vertex {
    tree: Tree,
    id: VertexId,
    stage: VertexStage,
    /// The number of the last grant from above that was seen, and of the last one
    /// that was given back.
    seen: u64,
    released: u64,
    /// The vertex has not yet been opened for the last grant.
    is_fresh: bool,
    /// The sides that were last reported above as wanted.
    said: u8,
    /// The state of each child.
    below: [Below; FAN_MAX as usize],
    /// Leaves: for each side, the number of arrivals when it was shut last.
    shut_at: [u64; 2],
    /// Leaves: the last value seen of the count of leavers that were last.
    quiet: u64,
    /// Root: the side that was open last.
    turn: GroupSide,
    /// The targets of writes that are due, one bit each: children, and [`ABOVE`].
    dirty: u32,
    posted: u32,
    is_own_posted: bool,
    step: u16,
    steps: [u16; TARGETS],
    failed: Option<AddrError>,
}

/// The state of a child at its parent vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Below {
    /// Vertices: the word that the child was sent last, or is to be sent. Ranks: the
    /// last word that was answered.
    to_say: u64,
}

/// The number of an operation of a vertex, until the operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VertexStep(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum VertexStage {
    Shut,
    /// Leaves: the side is being opened.
    Opening(GroupSide),
    Open(GroupSide),
    /// Leaves: the side is being shut.
    Closing(GroupSide),
    /// Leaves: the ranks that are still inside are being counted.
    Counting(GroupSide, u64),
    /// Waits until no rank is inside.
    Draining(GroupSide),
}

impl Vertex {
    /// A vertex that has not been used yet.
    pub fn new(tree: Tree, id: VertexId) -> Self {
        Self {
            tree,
            id,
            stage: VertexStage::Shut,
            seen: 0,
            released: 0,
            is_fresh: false,
            said: 0,
            below: [Below::default(); FAN_MAX as usize],
            shut_at: [0; 2],
            quiet: 0,
            turn: GroupSide::Exclusive,
            dirty: 0,
            posted: 0,
            is_own_posted: false,
            step: 0,
            steps: [0; TARGETS],
            failed: None,
        }
    }

    /// The name of the vertex.
    pub const fn id(&self) -> VertexId {
        self.id
    }

    /// Goes on by the vertex's own words, which it reads through `load`. The caller
    /// must call it at the start and whenever a word may have changed.
    ///
    /// # Errors
    ///
    /// The first error that `load` returns; the vertex has not changed then.
    pub fn handle_words<E>(
        &mut self,
        load: impl Fn(RemoteAddr) -> Result<u64, E>,
    ) -> Result<(), E> {
        let mut words = [0; FAN_MAX as usize];
        for (index, word) in (0..self.tree.below(self.id)).zip(&mut words) {
            *word = load(self.word(BlockWord::Below, index))?;
        }
        let down = if self.is_root() { 0 } else { load(self.word(BlockWord::Down, 0))? };
        let quiet = if self.id.level == 0 { load(self.word(BlockWord::Quiet, 0))? } else { 0 };
        if down >> NUMBER_SHIFT != self.seen {
            (self.seen, self.is_fresh) = (down >> NUMBER_SHIFT, true);
        }
        while self.moves(down, quiet, &words) {}
        Ok(())
    }

    /// The next operation to post, with remote completion. A caller that cannot post
    /// it at once must keep it.
    pub fn poll_op(&mut self) -> Option<(VertexStep, Op)> {
        if let Some(op) = self.own_op() {
            self.is_own_posted = true;
            return Some((self.number(OWN), op));
        }
        let ready = self.dirty & !self.posted;
        if ready == 0 {
            return None;
        }
        let target = ready.trailing_zeros();
        self.dirty &= !(1 << target);
        self.posted |= 1 << target;
        let (at, value) = if target == ABOVE {
            let (above, index) = self.tree.above(self.id);
            let at = self.tree.word(above, BlockWord::Below, index);
            (at, self.released << NUMBER_SHIFT | u64::from(self.said))
        } else {
            let below = &self.below[target as usize];
            let at = if self.id.level == 0 {
                self.tree.granted(self.tree.rank_of(self.id, target))
            } else {
                self.tree.word(self.tree.child(self.id, target), BlockWord::Down, 0)
            };
            (at, below.to_say)
        };
        Some((self.number(target as usize), Op::put_word(at, Width::W8, value).notifying()))
    }

    /// Handles the end of an operation; the caller must call
    /// [`handle_words`](Self::handle_words) after it. A second end of the same
    /// operation is ignored.
    pub fn handle_completed(&mut self, id: VertexStep, result: Result<u64, AddrError>) {
        let target = (id.0 >> 16) as usize;
        if self.steps.get(target) != Some(&(id.0 as u16)) {
            return;
        }
        let old = match result {
            Ok(old) => old,
            Err(error) => {
                self.failed = Some(error);
                return;
            }
        };
        if target != OWN {
            self.posted &= !(1 << target);
        } else if self.is_own_posted {
            self.is_own_posted = false;
            self.stage = match self.stage {
                VertexStage::Opening(side) => VertexStage::Open(side),
                VertexStage::Closing(side) => {
                    let come = old >> COME_SHIFT;
                    let before = core::mem::replace(&mut self.shut_at[side as usize], come);
                    VertexStage::Counting(side, come - before)
                }
                VertexStage::Counting(_, come) if old == come => VertexStage::Shut,
                VertexStage::Counting(side, _) => VertexStage::Draining(side),
                stage => stage,
            };
        }
        // A second end of this operation does not match any more.
        self.steps[target] = 0;
    }

    /// The error of an operation that failed, after which the vertex does nothing
    /// any more.
    pub const fn failed(&self) -> Option<AddrError> {
        self.failed
    }

    /// Makes one transition, if one is possible.
    fn moves(&mut self, down: u64, quiet: u64, words: &[u64; FAN_MAX as usize]) -> bool {
        let wants = self.wants(words);
        let is_revoked = down & REVOKED != 0;
        match self.stage {
            VertexStage::Shut => {
                let side = if self.is_root() {
                    let last = self.turn;
                    let first = mutate!("group_turn_kept": last.other() => last);
                    first.of(wants).or(first.other().of(wants))
                } else if self.seen == self.released {
                    None
                } else if !is_revoked || mutate!("group_revoked_unserved": self.is_fresh => false) {
                    Some(GroupSide::from_bit(down))
                } else {
                    (self.released, self.said) = (self.seen, wants);
                    self.dirty |= 1 << ABOVE;
                    return true;
                };
                let Some(side) = side else {
                    self.says(wants);
                    return false;
                };
                self.is_fresh = false;
                self.turn = side;
                self.stage = if self.id.level == 0 {
                    VertexStage::Opening(side)
                } else {
                    VertexStage::Open(side)
                };
                self.id.level > 0
            }
            VertexStage::Open(side) => {
                self.lets_in(side, words);
                let wants = self.wants(words);
                self.says(wants);
                let other = side.other().of(wants).is_some();
                if if self.is_root() { other } else { is_revoked } {
                    self.stage = if self.id.level == 0 {
                        VertexStage::Closing(side)
                    } else {
                        VertexStage::Draining(side)
                    };
                    return self.id.level > 0;
                }
                false
            }
            VertexStage::Draining(_) if self.id.level == 0 => {
                self.answers(words);
                if quiet == self.quiet {
                    return false;
                }
                self.quiet = quiet;
                self.stage = VertexStage::Shut;
                true
            }
            VertexStage::Draining(_) => {
                let mut is_empty = true;
                for index in 0..self.tree.below(self.id) {
                    if self.holds(index, words) {
                        is_empty = mutate!("group_grant_undrained": false => true);
                        let said = self.below[index as usize].to_say;
                        self.tells(index, said | REVOKED);
                    }
                }
                if is_empty {
                    self.stage = VertexStage::Shut;
                }
                is_empty
            }
            VertexStage::Opening(_) | VertexStage::Closing(_) | VertexStage::Counting(..) => {
                self.answers(words);
                false
            }
        }
    }

    /// The sides for which children wait, and which they will not get from the side
    /// that is open here.
    fn wants(&self, words: &[u64; FAN_MAX as usize]) -> u8 {
        let mut wants = 0;
        for index in 0..self.tree.below(self.id) {
            let word = words[index as usize];
            if self.id.level == 0 {
                if word != self.below[index as usize].to_say && !self.is_in(word) {
                    wants |= GroupSide::from_bit(word).bit();
                }
            } else if self.holds(index, words) {
                let side = GroupSide::from_bit(self.below[index as usize].to_say);
                wants |= word as u8 & WANTS & !side.bit();
            } else {
                wants |= word as u8 & WANTS;
            }
        }
        wants
    }

    /// Vertices: whether a child has a grant that it has not given back.
    fn holds(&self, index: u32, words: &[u64; FAN_MAX as usize]) -> bool {
        let granted = self.below[index as usize].to_say >> NUMBER_SHIFT;
        granted != words[index as usize] >> NUMBER_SHIFT
    }

    /// Leaves: whether the rank with this word is inside, though it may not have
    /// seen that yet.
    fn is_in(&self, word: u64) -> bool {
        let side = GroupSide::from_bit(word);
        self.stage == VertexStage::Open(side)
            || mutate!("group_late_forgotten":
                (word >> COME_SHIFT) <= self.shut_at[side as usize] => false)
    }

    /// Leaves: informs the ranks that are inside and wait.
    fn answers(&mut self, words: &[u64; FAN_MAX as usize]) {
        for index in 0..self.tree.below(self.id) {
            let word = words[index as usize];
            if word != self.below[index as usize].to_say && self.is_in(word) {
                self.tells(index, word);
            }
        }
    }

    fn lets_in(&mut self, side: GroupSide, words: &[u64; FAN_MAX as usize]) {
        if self.id.level == 0 {
            return self.answers(words);
        }
        for index in 0..self.tree.below(self.id) {
            let wants = side.of(words[index as usize] as u8).is_some();
            if wants && !self.holds(index, words) {
                let number = (self.below[index as usize].to_say >> NUMBER_SHIFT) + 1;
                self.tells(index, number << NUMBER_SHIFT | side as u64);
            }
        }
    }

    fn tells(&mut self, index: u32, word: u64) {
        let below = &mut self.below[index as usize];
        if below.to_say != word {
            below.to_say = word;
            self.dirty |= 1 << index;
        }
    }

    /// Reports the wanted sides to the vertex above, unless they were reported
    /// before.
    fn says(&mut self, wants: u8) {
        let held = match self.stage {
            VertexStage::Open(side) => side.bit(),
            _ => 0,
        };
        let news = wants & !(self.said & !held) & !held;
        if mutate!("group_want_unsaid": news != 0 => false) && !self.is_root() {
            self.said = self.said & !held | wants;
            self.dirty |= 1 << ABOVE;
        }
    }

    /// Leaves: the operation on the own words that the stage needs.
    fn own_op(&self) -> Option<Op> {
        if self.is_own_posted {
            return None;
        }
        let add = |word, side: GroupSide, delta: u64| {
            let at = self.word(word, side as u32 * SIDE_WORDS);
            Some(Op::atomic(OpKind::FetchAdd, at, delta))
        };
        match self.stage {
            VertexStage::Opening(side) => add(BlockWord::Come, side, OPEN),
            VertexStage::Closing(side) => add(BlockWord::Come, side, OPEN.wrapping_neg()),
            VertexStage::Counting(side, come) => add(BlockWord::Gone, side, come.wrapping_neg()),
            _ => None,
        }
    }

    fn number(&mut self, target: usize) -> VertexStep {
        // Never 0, which means none.
        self.step = self.step.checked_add(1).unwrap_or(1);
        self.steps[target] = self.step;
        VertexStep((target as u32) << 16 | u32::from(self.step))
    }

    const fn is_root(&self) -> bool {
        self.tree.is_root(self.id)
    }

    const fn word(&self, word: BlockWord, index: u32) -> RemoteAddr {
        self.tree.word(self.id, word, index)
    }

    fn future(&self) -> impl Eq + Hash + use<> {
        let Self { tree, id, stage, seen, released, is_fresh, said, .. } = *self;
        let Self { below, shut_at, quiet, turn, dirty, posted, is_own_posted, .. } = *self;
        let turn = if self.is_root() { turn } else { GroupSide::All };
        (
            (tree, id, stage, seen, released, is_fresh, said),
            (below, shut_at, quiet, turn, dirty, posted, is_own_posted),
        )
    }
}

impl PartialEq for Vertex {
    fn eq(&self, other: &Self) -> bool {
        self.future() == other.future()
    }
}

impl Eq for Vertex {}

impl Hash for Vertex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.future().hash(state);
    }
}

impl VertexStep {
    /// The number as a word, which a tag may contain.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The number in such a word.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// The bit of a leaf's count of arrivals that says that the side is open.
pub(super) const OPEN: u64 = 1;
/// Leaves: the position of the count of arrivals above that bit.
pub(super) const COME_SHIFT: u32 = 1;

const REVOKED: u64 = 2;
const NUMBER_SHIFT: u32 = 8;
const WANTS: u8 = 3;
const ABOVE: u32 = FAN_MAX;
const OWN: usize = FAN_MAX as usize + 1;
const TARGETS: usize = OWN + 1;

#[cfg(test)]
mod tests;
