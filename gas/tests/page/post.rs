//! The same ULTs by the paper's directory: homes, requesters, and messages between them that
//! arrive in any order.

use crate::desk::{Desk, PAGES};
use crate::ult::{Does, ELEMENTS, Part, Task};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::{AddrError, LocalAddr, Rank};
use tsumugi_core::op::Op;
use tsumugi_core::sim::SimNode;
use tsumugi_core::sync::mutant;
use tsumugi_core::time::Instant;
use tsumugi_gas::page::message_directory::{DirectoryMessage, Enter, Home, PageAccess, Requester};
use tsumugi_gas::page::{DirectoryEntry, Distribution, PageId, PageLayout};

/// The pages that a rank has cached, and the homes of its pages.
pub struct Post {
    requesters: HashMap<PageId, Requester>,
    homes: BTreeMap<PageId, Home>,
    mail: Rc<RefCell<Mail>>,
}

/// The messages of all ranks.
pub struct Mail {
    letters: HashMap<u64, Letter>,
    sent: u64,
    draw: Seeded,
}

struct Letter {
    from: Rank,
    page: PageId,
    message: DirectoryMessage,
}

/// The request that a ULT waits for.
#[derive(Clone, Copy)]
pub enum Asked {
    Enter,
    Told,
    Using(DirectoryEntry),
    Own,
    Permit,
    Copying(DirectoryEntry, u32),
}

impl Mail {
    pub fn new(seed: u64) -> Rc<RefCell<Self>> {
        let draw = Seeded(seed ^ 0x6c65_7474);
        Rc::new(RefCell::new(Self { letters: HashMap::new(), sent: LETTERS, draw }))
    }

    fn send(&mut self, node: &SimNode<'_>, to: Rank, page: PageId, message: DirectoryMessage) {
        self.sent += 1;
        self.letters.insert(self.sent, Letter { from: node.rank(), page, message });
        let slow = if self.draw.below(20) == 0 { 100_000 } else { 5_000 };
        let at = node.now().as_ns() + 100 + self.draw.below(slow);
        node.net().node(to).wake_at(Instant::from_ns(at), self.sent);
    }
}

impl Post {
    pub fn new(
        rank: Rank,
        layout: &PageLayout,
        dealt: Distribution,
        mail: &Rc<RefCell<Mail>>,
    ) -> Self {
        let shape = layout.shape();
        let mut homes = BTreeMap::new();
        for owner in (0..shape.homes.ranks()).map(Rank) {
            for (frame, page) in shape.homes.first_of(owner, dealt).enumerate() {
                if layout.home(page) == rank {
                    homes.insert(
                        page,
                        Home::new(DirectoryEntry { owner, frame: frame as u32, epoch: 0 }),
                    );
                }
            }
        }
        Self { requesters: HashMap::new(), homes, mail: Rc::clone(mail) }
    }

    /// The requester of a page; some unused requesters of other pages are dropped.
    fn requester(&mut self, page: PageId, slots: u32) -> &mut Requester {
        if self.requesters.len() > slots as usize {
            let idle = self.requesters.iter().find(|(of, known)| **of != page && known.is_idle());
            if let Some((idle, _)) = idle.map(|(of, known)| (*of, known)) {
                self.requesters.remove(&idle);
            }
        }
        self.requesters.entry(page).or_default()
    }
}

impl Desk {
    /// Continues a request; false if it waits.
    pub fn ask(&mut self, node: &SimNode<'_>, number: usize, asked: Asked) -> bool {
        let (layout, does) = (self.layout, self.ults[number].does);
        let page = does.page();
        let home = layout.home(page);
        let lost = self.lost.contains(&home).then_some(AddrError::PeerLost { rank: home });
        let slots = layout.shape().slots;
        let next = match asked {
            Asked::Enter => match self.by_mail().requester(page, slots).enter(does.want()) {
                Enter::Go(entry) => {
                    self.access(node, number, entry);
                    Asked::Using(entry)
                }
                Enter::Ask(_) | Enter::Wait if lost.is_some() => {
                    self.end(node, number, lost);
                    return true;
                }
                Enter::Ask(query) => {
                    self.send(node, home, page, query);
                    Asked::Told
                }
                Enter::Wait => Asked::Told,
            },
            Asked::Own if lost.is_some() => {
                self.end(node, number, lost);
                return true;
            }
            Asked::Own => {
                let others = self.ults.iter().filter(|ult| {
                    let is_at_it = Asked::is_owning as fn(&Asked) -> bool;
                    matches!(&ult.task, Task::Asked(asked) if is_at_it(asked))
                        && ult.does.page() == page
                });
                if others.count() > 0 {
                    self.pause(node, number, None);
                    return false;
                }
                self.send(node, home, page, DirectoryMessage::Own);
                Asked::Permit
            }
            Asked::Told | Asked::Permit if lost.is_some() => {
                self.end(node, number, lost);
                return true;
            }
            Asked::Told | Asked::Permit | Asked::Using(_) | Asked::Copying(..) => return false,
        };
        self.ults[number].task = Task::Asked(next);
        true
    }

    /// Handles a message.
    pub fn receive(&mut self, node: &SimNode<'_>, number: u64) {
        let letter = self.by_mail().mail.borrow_mut().letters.remove(&number);
        let Letter { from, page, message } = letter.expect("each message arrives once");
        if self.lost.contains(&from) {
            return;
        }
        let slots = self.layout.shape().slots;
        match message {
            DirectoryMessage::Told(_) | DirectoryMessage::Stop(_) => {
                let answer = self.by_mail().requester(page, slots).handle(message);
                answer.into_iter().for_each(|answer| self.send(node, from, page, answer));
                for ult in &mut self.ults {
                    if matches!(ult.task, Task::Asked(Asked::Told)) && ult.does.page() == page {
                        ult.task = Task::Asked(Asked::Enter);
                    }
                }
            }
            DirectoryMessage::Yours | DirectoryMessage::Permit(_) => {
                let number = self.ults.iter().position(|ult| {
                    matches!(ult.task, Task::Asked(Asked::Permit)) && ult.does.page() == page
                });
                let number = number.expect("the ULT that asked to own the page");
                match message {
                    DirectoryMessage::Permit(entry) => self.permitted(node, number, entry),
                    _ => self.end(node, number, None),
                }
            }
            DirectoryMessage::Free(frame) => {
                self.set_taken(node, frame, false);
                // A rank that still reads the frame detects the change.
                let entry = DirectoryEntry { owner: node.rank(), frame, epoch: 0 };
                for element in 0..ELEMENTS {
                    let at = self.layout.bytes(entry).add(element * 8);
                    node.store(at.key, at.offset, u64::MAX).unwrap();
                }
            }
            _ => {
                let home = self.by_mail().homes.get_mut(&page).expect("its home");
                home.handle(from, message);
                self.home_sends(node, page);
            }
        }
    }

    /// Handles the death of a rank.
    pub fn mourn(&mut self, node: &SimNode<'_>, rank: Rank) {
        let pages: Vec<_> = self.by_mail().homes.keys().copied().collect();
        for page in pages {
            self.by_mail().homes.get_mut(&page).expect("the home exists").handle_lost(rank);
            self.home_sends(node, page);
        }
    }

    /// Handles the end of an access of a ULT, or of a copy.
    pub fn used(&mut self, node: &SimNode<'_>, number: usize, asked: Asked, ok: bool) {
        let does = self.ults[number].does;
        let (page, slots) = (does.page(), self.layout.shape().slots);
        let home = self.layout.home(page);
        match asked {
            Asked::Using(entry) => {
                let requester = self.by_mail().requester(page, slots);
                let answer = requester.leave(does.want(), entry.epoch);
                answer.into_iter().for_each(|answer| self.send(node, home, page, answer));
            }
            Asked::Copying(entry, frame) if ok => {
                let requester = self.by_mail().requester(page, slots);
                requester.expect();
                if mutant("page_used_unheard") {
                    requester.expect();
                    requester.handle(DirectoryMessage::Told(entry.moved(node.rank(), frame)));
                }
                self.send(node, home, page, DirectoryMessage::Moved(frame));
                self.log.borrow_mut().moves += 1;
            }
            Asked::Copying(_, frame) => {
                self.set_taken(node, frame, false);
                self.send(node, home, page, DirectoryMessage::Abort);
            }
            Asked::Enter | Asked::Told | Asked::Own | Asked::Permit => unreachable!(),
        }
    }

    fn permitted(&mut self, node: &SimNode<'_>, number: usize, entry: DirectoryEntry) {
        let rank = node.rank();
        let free = (0..self.layout.shape().frames).find(|frame| {
            let (at, bit) = self.layout.bit(rank, *frame);
            node.load(at.key, at.offset).unwrap() & bit == 0
        });
        let Some(frame) = free else {
            let page = self.ults[number].does.page();
            self.send(node, self.layout.home(page), page, DirectoryMessage::Abort);
            return self.end(node, number, None);
        };
        self.set_taken(node, frame, true);
        self.ults[number].task = Task::Asked(Asked::Copying(entry, frame));
        let to = self.layout.bytes(DirectoryEntry { owner: rank, frame, epoch: 0 });
        let local = LocalAddr { key: PAGES, offset: to.offset };
        let op = Op::get(self.layout.bytes(entry), local, self.layout.shape().page_bytes);
        self.post(number, Part::Bytes, op);
    }

    fn set_taken(&self, node: &SimNode<'_>, frame: u32, is_taken: bool) {
        let (at, bit) = self.layout.bit(node.rank(), frame);
        let bits = node.load(at.key, at.offset).unwrap();
        assert_ne!(bits & bit != 0, is_taken, "frame {frame} of {}", node.rank());
        node.store(at.key, at.offset, bits ^ bit).unwrap();
    }

    fn home_sends(&mut self, node: &SimNode<'_>, page: PageId) {
        let post = self.by_mail();
        let home = post.homes.get_mut(&page).expect("its home");
        while let Some((to, message)) = home.poll() {
            post.mail.borrow_mut().send(node, to, page, message);
        }
    }

    fn send(&mut self, node: &SimNode<'_>, to: Rank, page: PageId, message: DirectoryMessage) {
        self.by_mail().mail.borrow_mut().send(node, to, page, message);
    }

    fn by_mail(&mut self) -> &mut Post {
        self.mail.as_mut().expect("the directory uses messages")
    }
}

impl Asked {
    fn is_owning(&self) -> bool {
        matches!(self, Self::Permit | Self::Copying(..))
    }
}

impl Does {
    fn want(&self) -> PageAccess {
        if let Self::Get { .. } = self { PageAccess::Read } else { PageAccess::Write }
    }
}

/// Timer tokens from here on are messages.
pub const LETTERS: u64 = 1 << 32;
