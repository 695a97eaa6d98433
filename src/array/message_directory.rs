//! The message directory: the directory of paper 5 of docs/papers.md, by messages
//! between the ranks' processors. `Directory::Messages` selects it; it is not the
//! default. This module drives the state machines of
//! [`tsumugi_gas::page::message_directory`], whose documentation names the tests and
//! the benchmark.
//!
//! ```text
//!  access ─► requester: enter ─► go ─► the access ─► leave ─► to the home, if it waits
//!              │ ask ─► Query ─► (told) ─┘
//!  own ─► Own ─► (permit) ─► frame, copy ─► Moved
//!  a letter ─► a ULT: requester or home ─► letters
//! ```
//!
//! A letter is a message of this protocol: an active message without an answer.
//! Each letter is handled by a ULT of its own, so a handler that waits for room to
//! answer does not keep other letters from being received. When a rank has died, each
//! caller that waits for a letter, then or later, gets an error.

use super::ArrayError;
use crate::lock::Words;
use crate::{AddrError, Error, Rank, Runtime};
use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_core::op::{Kind, Op};
use tsumugi_gas::lock::drive::LockDriver;
use tsumugi_gas::page::message_directory::{DirectoryMessage, Enter, Home, PageAccess, Requester};
use tsumugi_gas::page::{DirectoryEntry, Distribution, PageId, PageLayout};
use tsumugi_ult::sync::{Condvar, Mutex, MutexGuard};

/// The directory of one array at one rank.
pub(super) struct MessageDirectory {
    layout: PageLayout,
    /// The active-message service to which the letters of this array are sent.
    service: u32,
    state: Mutex<DirectoryState>,
    /// Signalled when a letter has come.
    changed: Condvar,
    words: OnceLock<Weak<Words>>,
}

#[derive(Default)]
struct DirectoryState {
    requesters: HashMap<PageId, Requester>,
    homes: HashMap<PageId, Home>,
    granted: HashMap<PageId, DirectoryMessage>,
    /// Pages that a ULT of this rank is bringing here.
    owning: HashSet<PageId>,
    mourned: Option<Rank>,
    sent: u64,
}

struct Letter {
    from: Rank,
    to: Rank,
    page: PageId,
    message: DirectoryMessage,
}

impl MessageDirectory {
    /// Opens the directory. Collective, as making the array is.
    pub(super) fn open(
        runtime: &Runtime,
        words: &Arc<Words>,
        layout: PageLayout,
        first: Distribution,
    ) -> Result<Arc<Self>, Error> {
        let mut state = DirectoryState::default();
        let homes = layout.shape().homes;
        for owner in runtime.ranks() {
            for (frame, page) in homes.first_of(owner, first).enumerate() {
                if layout.home(page) == runtime.rank() {
                    let entry = DirectoryEntry { owner, frame: frame as u32, epoch: 0 };
                    state.homes.insert(page, Home::new(entry));
                }
            }
        }
        // Rank 0's key is unique among all arrays that exist.
        let key = runtime.allgather(u64::from(words.key().to_bits()))?[0];
        let post = Arc::new(Self {
            layout,
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

    /// The number of letters that this rank has sent to others.
    pub(super) fn sent(&self) -> u64 {
        self.state.lock().sent
    }

    /// Calls `call` with the place of a page, which stays valid during the call.
    pub(super) fn with<R>(
        &self,
        runtime: &Runtime,
        page: PageId,
        want: PageAccess,
        call: impl FnOnce(DirectoryEntry) -> Result<R, AddrError>,
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

    fn enter(
        &self,
        runtime: &Runtime,
        page: PageId,
        want: PageAccess,
    ) -> Result<DirectoryEntry, AddrError> {
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

    /// Brings a page to this rank, by `copy`. Returns whether it was elsewhere.
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
        self.send(runtime, page, DirectoryMessage::Own);
        let granted = self.granted(runtime, page);
        let moved = match granted {
            Ok(DirectoryMessage::Permit(entry)) => {
                self.bring(runtime, page, entry, copy).map(|()| true)
            }
            Ok(_) => Ok(false),
            Err(error) => Err(error.into()),
        };
        self.state.lock().owning.remove(&page);
        self.changed.notify_all();
        moved
    }

    fn granted(&self, runtime: &Runtime, page: PageId) -> Result<DirectoryMessage, AddrError> {
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
        from: DirectoryEntry,
        copy: impl FnOnce(RemoteAddr, RemoteAddr) -> Result<(), AddrError>,
    ) -> Result<(), ArrayError> {
        let Some(frame) = self.take_frame(runtime)? else {
            self.send(runtime, page, DirectoryMessage::Abort);
            return Err(ArrayError::Full { room: self.layout.shape().frames });
        };
        let here = from.moved(runtime.rank(), frame);
        if let Err(error) = copy(self.layout.bytes(from), self.layout.bytes(here)) {
            self.free_frame(runtime, frame)?;
            self.send(runtime, page, DirectoryMessage::Abort);
            return Err(error.into());
        }
        {
            let mut state = self.state.lock();
            self.requester(&mut state, page).expect();
        }
        self.send(runtime, page, DirectoryMessage::Moved(frame));
        Ok(())
    }

    fn take_frame(&self, runtime: &Runtime) -> Result<Option<u32>, AddrError> {
        let frames = self.layout.shape().frames;
        for frame in 0..frames {
            let (at, bit) = self.layout.bit(runtime.rank(), frame);
            if self.carry(&Op::atomic(Kind::FetchOr, at, bit))? & bit == 0 {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    fn free_frame(&self, runtime: &Runtime, frame: u32) -> Result<(), AddrError> {
        let (at, bit) = self.layout.bit(runtime.rank(), frame);
        self.carry(&Op::atomic(Kind::FetchAnd, at, !bit)).map(drop)
    }

    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        let words = self.words.get().and_then(Weak::upgrade);
        words.expect("the words live as long as the array").carry(op)
    }

    fn send(&self, runtime: &Runtime, page: PageId, message: DirectoryMessage) {
        let (from, to) = (runtime.rank(), self.layout.home(page));
        self.deliver(runtime, Letter { from, to, page, message });
    }

    /// Sends a letter, or handles it if it is for this rank; then does the same
    /// with all letters that result from it.
    fn deliver(&self, runtime: &Runtime, letter: Letter) {
        let mut letters = VecDeque::from([letter]);
        while let Some(letter) = letters.pop_front() {
            if letter.to == runtime.rank() {
                self.handle(runtime, letter, &mut letters);
                continue;
            }
            let bytes = encode(letter.page, letter.message);
            self.state.lock().sent += 1;
            // A send to a dead rank needs no error here: its callers detect the
            // death themselves.
            let _ = runtime.cast(letter.to, self.service, &bytes);
        }
    }

    fn handle(&self, runtime: &Runtime, letter: Letter, letters: &mut VecDeque<Letter>) {
        let (Letter { from, page, message, .. }, own) = (letter, runtime.rank());
        let mut answer = |to, message| letters.push_back(Letter { from: own, to, page, message });
        let mut state = self.state.lock();
        match message {
            DirectoryMessage::Told(_) | DirectoryMessage::Stop(_) => {
                let note = self.requester(&mut state, page).handle(message);
                note.into_iter().for_each(|note| answer(from, note));
            }
            DirectoryMessage::Yours | DirectoryMessage::Permit(_) => {
                state.granted.insert(page, message);
            }
            DirectoryMessage::Free(frame) => {
                drop(state);
                // This cannot fail: the words are in this rank's own memory.
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

    /// The state of a page at this rank. If the table is full, another page that is
    /// not in use is removed.
    fn requester<'s>(&self, state: &'s mut DirectoryState, page: PageId) -> &'s mut Requester {
        let slots = self.layout.shape().slots as usize;
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
        mut state: MutexGuard<'s, DirectoryState>,
    ) -> Result<MutexGuard<'s, DirectoryState>, AddrError> {
        self.changed.wait_timeout(&mut state, LOOK);
        match runtime.handle().lost() {
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

fn encode(page: PageId, message: DirectoryMessage) -> [u8; LETTER_BYTES] {
    let (kind, value) = match message {
        DirectoryMessage::Query(PageAccess::Read) => (0, 0),
        DirectoryMessage::Query(PageAccess::Write) => (1, 0),
        DirectoryMessage::Told(entry) => (2, entry.to_bits()),
        DirectoryMessage::Stop(epoch) => (3, epoch.into()),
        DirectoryMessage::Stopped { epoch, has_ended: false } => (4, epoch.into()),
        DirectoryMessage::Stopped { epoch, has_ended: true } => (5, epoch.into()),
        DirectoryMessage::Ended(epoch) => (6, epoch.into()),
        DirectoryMessage::Own => (7, 0),
        DirectoryMessage::Yours => (8, 0),
        DirectoryMessage::Permit(entry) => (9, entry.to_bits()),
        DirectoryMessage::Moved(frame) => (10, frame.into()),
        DirectoryMessage::Abort => (11, 0),
        DirectoryMessage::Free(frame) => (12, frame.into()),
    };
    let mut bytes = [kind; LETTER_BYTES];
    bytes[..8].copy_from_slice(&page.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// Returns `None` if the bytes are not a letter.
fn decode(bytes: &[u8]) -> Option<(PageId, DirectoryMessage)> {
    let (page, rest) = bytes.split_first_chunk()?;
    let (value, kind) = rest.split_first_chunk()?;
    let value = u64::from_le_bytes(*value);
    let (number, entry) = (u32::try_from(value), DirectoryEntry::from_bits(value));
    let message = match kind {
        [0] => DirectoryMessage::Query(PageAccess::Read),
        [1] => DirectoryMessage::Query(PageAccess::Write),
        [2] => DirectoryMessage::Told(entry?),
        [3] => DirectoryMessage::Stop(number.ok()?),
        [4] => DirectoryMessage::Stopped { epoch: number.ok()?, has_ended: false },
        [5] => DirectoryMessage::Stopped { epoch: number.ok()?, has_ended: true },
        [6] => DirectoryMessage::Ended(number.ok()?),
        [7] => DirectoryMessage::Own,
        [8] => DirectoryMessage::Yours,
        [9] => DirectoryMessage::Permit(entry?),
        [10] => DirectoryMessage::Moved(number.ok()?),
        [11] => DirectoryMessage::Abort,
        [12] => DirectoryMessage::Free(number.ok()?),
        _ => return None,
    };
    Some((PageId(u64::from_le_bytes(*page)), message))
}

/// The bytes of a letter: page, value, kind of message.
const LETTER_BYTES: usize = 17;
/// The range of service numbers that arrays use.
const SERVICES: u32 = 1 << 31;
/// How often a waiting caller checks whether a rank has died.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_the_same_after_encoding() {
        let entry = DirectoryEntry { owner: Rank(3), frame: 77, epoch: 5 };
        for message in [
            DirectoryMessage::Query(PageAccess::Read),
            DirectoryMessage::Query(PageAccess::Write),
            DirectoryMessage::Told(entry),
            DirectoryMessage::Stop(5),
            DirectoryMessage::Stopped { epoch: 6, has_ended: false },
            DirectoryMessage::Stopped { epoch: 7, has_ended: true },
            DirectoryMessage::Ended(8),
            DirectoryMessage::Own,
            DirectoryMessage::Yours,
            DirectoryMessage::Permit(entry),
            DirectoryMessage::Moved(9),
            DirectoryMessage::Abort,
            DirectoryMessage::Free(10),
        ] {
            let bytes = encode(PageId(1 << 39), message);
            assert_eq!(decode(&bytes), Some((PageId(1 << 39), message)));
            assert_eq!(decode(&bytes[..16]), None);
        }
        let mut none = encode(PageId(0), DirectoryMessage::Stop(1));
        none[12] = 1;
        assert_eq!(decode(&none), None, "an epoch has 32 bits");
        none[16] = 13;
        assert_eq!(decode(&none), None);
    }
}
