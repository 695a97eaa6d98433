//! The paper's directory, by calls between the ranks' processors: drives what
//! [`tsumugi_gas::page::message`] says.
//!
//! ```text
//!  access ─► requester: enter ─► go ─► the access ─► leave ─► to the home, if it waits
//!              │ ask ─► Query ─► (told) ─┘
//!  own ─► Own ─► (permit) ─► frame, copy ─► Moved
//!  a letter ─► a ULT: requester or home ─► letters
//! ```
//!
//! A letter is an active message whose answer nobody wants; each is handled by a
//! ULT of its own, so that one that finds no room to answer keeps none from
//! being read. When a rank dies, who waits for a letter is told.

use super::ArrayError;
use crate::lock::Words;
use crate::{AddrError, Error, Rank, Runtime};
use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::{Kind, Op};
use tsumugi_gas::lock::drive::Means;
use tsumugi_gas::page::message::{Enter, Home, Message, Requester, Want};
use tsumugi_gas::page::{Book, Distribution, Entry, PageId};
use tsumugi_ult::sync::{Condvar, Mutex, MutexGuard};

/// The directory of one array at one rank.
pub(super) struct Post {
    book: Book,
    /// What letters are sent to.
    service: u32,
    state: Mutex<State>,
    /// A letter has come.
    changed: Condvar,
    words: OnceLock<Weak<Words>>,
}

#[derive(Default)]
struct State {
    requesters: HashMap<PageId, Requester>,
    homes: HashMap<PageId, Home>,
    granted: HashMap<PageId, Message>,
    /// Pages that a ULT of this rank waits for, or copies.
    owning: HashSet<PageId>,
    mourned: Option<Rank>,
    sent: u64,
}

struct Letter {
    from: Rank,
    to: Rank,
    page: PageId,
    message: Message,
}

impl Post {
    /// Collective, as the array is.
    pub(super) fn open(
        runtime: &Runtime,
        words: &Arc<Words>,
        book: Book,
        first: Distribution,
    ) -> Result<Arc<Self>, Error> {
        let mut state = State::default();
        let homes = book.shape().homes;
        for owner in runtime.ranks() {
            for (frame, page) in homes.first_of(owner, first).enumerate() {
                if book.home(page) == runtime.rank() {
                    let entry = Entry { owner, frame: frame as u32, epoch: 0 };
                    state.homes.insert(page, Home::new(entry));
                }
            }
        }
        // Of all arrays that there are it is this one's.
        let key = runtime.gather(u64::from(words.key().to_bits()))?[0];
        let post = Arc::new(Self {
            book,
            service: SERVICES | key as u32,
            state: Mutex::new(state),
            changed: Condvar::new(),
            words: OnceLock::new(),
        });
        post.words.get_or_init(|| Arc::downgrade(words));
        let weak = Arc::downgrade(&post);
        runtime.service(post.service, move |runtime, from, bytes| {
            if let (Some(post), Some((page, message))) = (weak.upgrade(), decode(bytes)) {
                post.deliver(runtime, Letter { from, to: runtime.rank(), page, message });
            }
            [0u8; 0]
        });
        Ok(post)
    }

    /// Letters that this rank has sent to others.
    pub(super) fn sent(&self) -> u64 {
        self.state.lock().sent
    }

    /// Uses a page by `call`, where it is.
    pub(super) fn with<R>(
        &self,
        runtime: &Runtime,
        page: PageId,
        want: Want,
        call: impl FnOnce(Entry) -> Result<R, AddrError>,
    ) -> Result<R, AddrError> {
        let entry = self.enter(runtime, page, want)?;
        let result = call(entry);
        let note = {
            let mut state = self.state.lock();
            self.requester(&mut state, page).leave(want, entry.epoch)
        };
        if let Some(message) = note {
            self.send(runtime, page, message);
        }
        result
    }

    fn enter(&self, runtime: &Runtime, page: PageId, want: Want) -> Result<Entry, AddrError> {
        let mut state = self.state.lock();
        loop {
            match self.requester(&mut state, page).enter(want) {
                Enter::Go(entry) => return Ok(entry),
                Enter::Ask(query) => {
                    drop(state);
                    self.send(runtime, page, query);
                    state = self.state.lock();
                }
                Enter::Wait => state = self.wait(runtime, state)?,
            }
        }
    }

    /// Brings a page here, by `copy`; whether it was elsewhere.
    pub(super) fn own(
        &self,
        runtime: &Runtime,
        page: PageId,
        copy: impl FnOnce(RemoteAddr, RemoteAddr) -> Result<(), AddrError>,
    ) -> Result<bool, ArrayError> {
        let mut state = self.state.lock();
        while !state.owning.insert(page) {
            state = self.wait(runtime, state)?;
        }
        drop(state);
        self.send(runtime, page, Message::Own);
        let granted = self.granted(runtime, page);
        let moved = match granted {
            Ok(Message::Permit(entry)) => self.bring(runtime, page, entry, copy).map(|()| true),
            Ok(_) => Ok(false),
            Err(error) => Err(error.into()),
        };
        self.state.lock().owning.remove(&page);
        self.changed.notify_all();
        moved
    }

    fn granted(&self, runtime: &Runtime, page: PageId) -> Result<Message, AddrError> {
        let mut state = self.state.lock();
        loop {
            if let Some(granted) = state.granted.remove(&page) {
                return Ok(granted);
            }
            state = self.wait(runtime, state)?;
        }
    }

    fn bring(
        &self,
        runtime: &Runtime,
        page: PageId,
        from: Entry,
        copy: impl FnOnce(RemoteAddr, RemoteAddr) -> Result<(), AddrError>,
    ) -> Result<(), ArrayError> {
        let Some(frame) = self.take_frame(runtime)? else {
            self.send(runtime, page, Message::Abort);
            return Err(ArrayError::Full { room: self.book.shape().frames });
        };
        let here = from.moved(runtime.rank(), frame);
        if let Err(error) = copy(self.book.bytes(from), self.book.bytes(here)) {
            self.free_frame(runtime, frame)?;
            self.send(runtime, page, Message::Abort);
            return Err(error.into());
        }
        {
            let mut state = self.state.lock();
            self.requester(&mut state, page).expect();
        }
        self.send(runtime, page, Message::Moved(frame));
        Ok(())
    }

    fn take_frame(&self, runtime: &Runtime) -> Result<Option<u32>, AddrError> {
        let frames = self.book.shape().frames;
        for frame in 0..frames {
            let (at, bit) = self.book.bit(runtime.rank(), frame);
            if self.carry(&Op::atomic(Kind::FetchOr, at, bit))? & bit == 0 {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    fn free_frame(&self, runtime: &Runtime, frame: u32) -> Result<(), AddrError> {
        let (at, bit) = self.book.bit(runtime.rank(), frame);
        self.carry(&Op::atomic(Kind::FetchAnd, at, !bit)).map(drop)
    }

    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let words = self.words.get().and_then(Weak::upgrade);
        words.expect("the array has them as long as it has this").carry(op)
    }

    fn send(&self, runtime: &Runtime, page: PageId, message: Message) {
        let (from, to) = (runtime.rank(), self.book.home(page));
        self.deliver(runtime, Letter { from, to, page, message });
    }

    /// Sends a letter, or handles it if it is this rank's, with all that come of
    /// it.
    fn deliver(&self, runtime: &Runtime, letter: Letter) {
        let mut letters = VecDeque::from([letter]);
        while let Some(letter) = letters.pop_front() {
            if letter.to == runtime.rank() {
                self.handle(runtime, letter, &mut letters);
                continue;
            }
            let bytes = encode(letter.page, letter.message);
            self.state.lock().sent += 1;
            // Of one to a rank that has died nobody learns but by its death.
            let _ = runtime.cast(letter.to, self.service, &bytes);
        }
    }

    fn handle(&self, runtime: &Runtime, letter: Letter, letters: &mut VecDeque<Letter>) {
        let (Letter { from, page, message, .. }, own) = (letter, runtime.rank());
        let mut answer = |to, message| letters.push_back(Letter { from: own, to, page, message });
        let mut state = self.state.lock();
        match message {
            Message::Told(_) | Message::Stop(_) => {
                let note = self.requester(&mut state, page).handle(message);
                note.into_iter().for_each(|note| answer(from, note));
            }
            Message::Yours | Message::Permit(_) => {
                state.granted.insert(page, message);
            }
            Message::Free(frame) => {
                drop(state);
                // This rank's own words are there as long as it is.
                let _ = self.free_frame(runtime, frame);
            }
            _ => {
                if let Some(home) = state.homes.get_mut(&page) {
                    home.handle(from, message);
                    while let Some((to, message)) = home.poll() {
                        answer(to, message);
                    }
                }
            }
        }
        self.changed.notify_all();
    }

    /// What is known of a page; of others that nobody uses some are forgotten.
    fn requester<'s>(&self, state: &'s mut State, page: PageId) -> &'s mut Requester {
        let slots = self.book.shape().slots as usize;
        let known = &mut state.requesters;
        if known.len() >= slots && !known.contains_key(&page) {
            let idle = known.iter().find(|(_, known)| known.is_idle()).map(|(page, _)| *page);
            idle.and_then(|idle| known.remove(&idle));
        }
        match known.entry(page) {
            Place::Occupied(known) => known.into_mut(),
            Place::Vacant(new) => new.insert(Requester::default()),
        }
    }

    fn wait<'s>(
        &'s self,
        runtime: &Runtime,
        mut state: MutexGuard<'s, State>,
    ) -> Result<MutexGuard<'s, State>, AddrError> {
        self.changed.wait_timeout(&mut state, LOOK);
        match runtime.lost() {
            Some(rank) => {
                if state.mourned.replace(rank) != Some(rank) {
                    state.homes.values_mut().for_each(|home| home.handle_lost(rank));
                }
                Err(AddrError::PeerLost { rank })
            }
            None => Ok(state),
        }
    }
}

fn encode(page: PageId, message: Message) -> [u8; LETTER_BYTES] {
    let (kind, value) = match message {
        Message::Query(Want::Read) => (0, 0),
        Message::Query(Want::Write) => (1, 0),
        Message::Told(entry) => (2, entry.to_bits()),
        Message::Stop(epoch) => (3, epoch.into()),
        Message::Stopped { epoch, has_ended: false } => (4, epoch.into()),
        Message::Stopped { epoch, has_ended: true } => (5, epoch.into()),
        Message::Ended(epoch) => (6, epoch.into()),
        Message::Own => (7, 0),
        Message::Yours => (8, 0),
        Message::Permit(entry) => (9, entry.to_bits()),
        Message::Moved(frame) => (10, frame.into()),
        Message::Abort => (11, 0),
        Message::Free(frame) => (12, frame.into()),
    };
    let mut bytes = [kind; LETTER_BYTES];
    bytes[..8].copy_from_slice(&page.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// `None`: it is no letter.
fn decode(bytes: &[u8]) -> Option<(PageId, Message)> {
    let (page, rest) = bytes.split_first_chunk()?;
    let (value, kind) = rest.split_first_chunk()?;
    let value = u64::from_le_bytes(*value);
    let (number, entry) = (u32::try_from(value), Entry::from_bits(value));
    let message = match kind {
        [0] => Message::Query(Want::Read),
        [1] => Message::Query(Want::Write),
        [2] => Message::Told(entry?),
        [3] => Message::Stop(number.ok()?),
        [4] => Message::Stopped { epoch: number.ok()?, has_ended: false },
        [5] => Message::Stopped { epoch: number.ok()?, has_ended: true },
        [6] => Message::Ended(number.ok()?),
        [7] => Message::Own,
        [8] => Message::Yours,
        [9] => Message::Permit(entry?),
        [10] => Message::Moved(number.ok()?),
        [11] => Message::Abort,
        [12] => Message::Free(number.ok()?),
        _ => return None,
    };
    Some((PageId(u64::from_le_bytes(*page)), message))
}

/// Page, what it says, which of the messages.
const LETTER_BYTES: usize = 17;
/// Services that are arrays'.
const SERVICES: u32 = 1 << 31;
/// How often who waits looks whether a rank has died.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_say_what_was_written() {
        let entry = Entry { owner: Rank(3), frame: 77, epoch: 5 };
        for message in [
            Message::Query(Want::Read),
            Message::Query(Want::Write),
            Message::Told(entry),
            Message::Stop(5),
            Message::Stopped { epoch: 6, has_ended: false },
            Message::Stopped { epoch: 7, has_ended: true },
            Message::Ended(8),
            Message::Own,
            Message::Yours,
            Message::Permit(entry),
            Message::Moved(9),
            Message::Abort,
            Message::Free(10),
        ] {
            let bytes = encode(PageId(1 << 39), message);
            assert_eq!(decode(&bytes), Some((PageId(1 << 39), message)));
            assert_eq!(decode(&bytes[..16]), None);
        }
        let mut none = encode(PageId(0), Message::Stop(1));
        none[12] = 1;
        assert_eq!(decode(&none), None, "an epoch has 32 bits");
        none[16] = 13;
        assert_eq!(decode(&none), None);
    }
}
