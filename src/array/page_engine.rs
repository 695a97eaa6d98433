//! The engine of the page protocols: drives their state machines, one blocking
//! operation after the other.

mod own;

use super::lease::Lease;
use super::message_directory::MessageDirectory;
use super::{ArrayError, ArrayHandle, ArrayOptions, Directory};
use crate::lock::Words;
use crate::{AddrError, Agent, Error, Plain, Rank, Runtime, Shared};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::mem::{RemoteAddr, Width};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::sync::AtomicU64;
use tsumugi_gas::lock::drive::LockDriver;
use tsumugi_gas::page::message_directory::{PageAccess, RANKS_MAX};
use tsumugi_gas::page::{
    DirectoryEntry, Distribution, HEADER_BYTES, OptimisticRead, PageDriver, PageId, PageLayout,
    PagePin, PageShape, PageState, PinFast, ReadFast, ShapeError, drive,
};
use tsumugi_runtime::route::Route;

/// The pages of an array, as one rank accesses them.
pub(crate) struct PageEngine {
    runtime: Runtime,
    words: Arc<Words>,
    layout: PageLayout,
    /// The words of the directory, if they are in memory of their own.
    directory: Option<Shared<u64>>,
    /// The directory by messages, if the array has that in place of words.
    post: Option<Arc<MessageDirectory>>,
    /// The lease of an array that one rank has made alone.
    lease: Option<Lease>,
}

/// A driver of one page protocol, by blocking operations.
struct WayDriver<'w> {
    engine: &'w PageEngine,
    patience: Patience,
}

/// A backoff while other ranks must make progress: yields at first, then sleeps.
#[derive(Default)]
struct Patience(u32);

impl PageEngine {
    /// Makes the pages of a new array. Collective.
    pub(super) fn new(
        runtime: &Runtime,
        shape: PageShape,
        options: &ArrayOptions,
    ) -> Result<Self, Error> {
        let directory = match options.directory {
            Directory::Device => {
                let words = shape.directory_bytes() / 8;
                Some(runtime.share_words(Agent::Device, words as usize)?)
            }
            Directory::Atomics | Directory::Messages => None,
        };
        let apart = directory.as_ref().map(|directory| directory.key(runtime.rank()));
        let before = if apart.is_some() { shape.directory_bytes() } else { 0 };
        let words = Arc::new(Words::share(runtime, Agent::Cpu, shape.bytes() - before)?);
        let layout = match apart {
            Some(directory) => PageLayout::apart(shape, directory, words.key()),
            None => PageLayout::new(shape, words.key(), 0),
        };
        let layout = layout?;
        let post = match options.directory {
            Directory::Atomics | Directory::Device => None,
            Directory::Messages if runtime.size() > RANKS_MAX => {
                let (what, count, most) = ("ranks", runtime.size(), RANKS_MAX);
                let (count, most) = (count.into(), most.into());
                return Err(Error::program(ShapeError::Count { what, count, most }));
            }
            Directory::Messages => {
                Some(MessageDirectory::open(runtime, &words, layout, options.distribution)?)
            }
        };
        Ok(Self { runtime: runtime.clone(), words, layout, directory, post, lease: None })
    }

    /// The pages of an array that one rank makes alone, or opens.
    pub(super) fn alone(
        runtime: &Runtime,
        words: Arc<Words>,
        layout: PageLayout,
        lease: Lease,
    ) -> Self {
        let (runtime, lease) = (runtime.clone(), Some(lease));
        Self { runtime, words, layout, directory: None, post: None, lease }
    }

    pub(super) fn handle(&self) -> Option<ArrayHandle> {
        self.lease.as_ref().map(Lease::handle)
    }

    /// The number of letters that this rank has sent, if the directory works by
    /// messages.
    pub(super) fn letters(&self) -> u64 {
        self.post.as_ref().map_or(0, |post| post.sent())
    }

    /// The agent that carries out the atomics on the directory's words.
    pub(super) fn agent(&self) -> Agent {
        self.directory.as_ref().map_or(Agent::Cpu, Shared::agent)
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(super) fn metadata_bytes(&self) -> u64 {
        self.layout.shape().metadata_bytes()
    }

    /// Whether the job has ranks on other nodes.
    pub(super) fn has_network(&self) -> bool {
        self.runtime.handle().net().is_some()
    }

    /// Puts the pages that `owner` has at first into its frames, and stores their
    /// places at their homes.
    pub(super) fn deal(&self, owner: Rank, first: Distribution) -> Result<(), Error> {
        let homes = self.layout.shape().homes;
        for (frame, page) in homes.first_of(owner, first).enumerate() {
            let room = self.layout.shape().frames;
            let frame = u32::try_from(frame).ok().filter(|frame| *frame < room);
            let frame = frame.ok_or(ArrayError::Full { room })?;
            let entry = DirectoryEntry { owner, frame, epoch: 0 };
            let (bits, bit) = self.layout.bit(owner, frame);
            self.carry(&Op::atomic(Kind::FetchOr, bits, bit))?;
            self.store(self.layout.header(owner, frame), entry.header(page))?;
            self.carry(&self.layout.deal(page, entry))?;
        }
        Ok(())
    }

    /// Sets all values to 0, because the frames held other pages before.
    pub(super) fn clear_pages(&self) -> Result<(), AddrError> {
        let PageShape { homes, page_bytes, .. } = self.layout.shape();
        let zeros = vec![0u8; (page_bytes as usize).min(1 << 16)];
        for page in (0..homes.pages()).map(PageId) {
            let start = self.words.real(self.layout.bytes(self.entry(page)?));
            for at in (0..page_bytes).step_by(zeros.len()) {
                let part = &zeros[..zeros.len().min((page_bytes - at) as usize)];
                self.runtime.put_slice(Words::remote(start.add(at)), part)?;
            }
        }
        Ok(())
    }

    /// The place of a page, from its home.
    pub(super) fn entry(&self, page: PageId) -> Result<DirectoryEntry, AddrError> {
        if let Some(post) = &self.post {
            return post.with(&self.runtime, page, PageAccess::Read, Ok);
        }
        let bits = self.carry(&self.layout.look(page))?;
        Ok(match PageState::from_bits(bits) {
            PageState::At(entry) => entry,
            PageState::Moving { owner, frame, .. } => DirectoryEntry { owner, frame, epoch: 0 },
        })
    }

    pub(super) fn home(&self, page: PageId) -> Rank {
        self.layout.home(page)
    }

    pub(super) fn first_owner(&self, page: PageId, first: Distribution) -> Rank {
        self.layout.shape().homes.first_owner(page, first)
    }

    /// The pages that this rank had at first.
    pub(super) fn first_pages(&self, first: Distribution) -> impl Iterator<Item = PageId> + use<> {
        self.layout.shape().homes.first_of(self.runtime.rank(), first)
    }

    /// Reads `bytes` bytes of a page from its byte `first` on, by `load`, which
    /// gets their address. Returns `None` if the page is not in reach or the bytes
    /// read are not valid.
    #[inline(always)]
    pub(super) fn hit<R>(
        &self,
        page: PageId,
        first: u64,
        bytes: u64,
        load: impl FnOnce(NonNull<u8>) -> R,
    ) -> Option<R> {
        let own =
            ReadFast::of(&self.layout, self.runtime.rank(), page, |at| self.words.own(at.offset));
        let find = |entry: DirectoryEntry| {
            let header = self.words.real(self.layout.header(entry.owner, entry.frame));
            let at = self.runtime.handle().bytes_at_hand(header, HEADER_BYTES + first + bytes)?;
            if !at.cast::<AtomicU64>().is_aligned() {
                return None;
            }
            // SAFETY: the header and `bytes` bytes behind it were resolved and are
            // aligned; memory of regions is only accessed by atomics and as plain
            // bytes, and stays mapped.
            let (header, bytes) =
                unsafe { (at.cast().as_ref(), at.add((HEADER_BYTES + first) as usize)) };
            Some((header, bytes))
        };
        own.hit(page, find, load)
    }

    /// Reads elements of a page from its byte `first` on, when the page is not in
    /// reach or has moved.
    ///
    /// From another node, the header and the bytes of a page of common size come by
    /// one read; a page that is not in the location cache also needs a read at its
    /// home. A longer read would need a copy from behind the header, so the page is
    /// pinned instead, and the bytes go directly to their destination.
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of `count` elements, aligned or not, and is no memory of
    /// the page, until this returns, and for ever if it does not return because its ULT is
    /// cut off.
    #[inline(never)]
    pub(super) unsafe fn read<T: Plain>(
        &self,
        page: PageId,
        first: u64,
        into: *mut T,
        count: usize,
    ) -> Result<(), AddrError> {
        let bytes = count * size_of::<T>();
        // SAFETY: the caller's.
        let load = |runtime: &Runtime, at: RemoteAddr| unsafe {
            let at = at.add(first);
            match count {
                1 => runtime.get(Words::remote(at)).map(|value: T| into.write_unaligned(value)),
                _ => runtime.handle().load(at, into.cast(), bytes),
            }
        };
        if let Some(post) = &self.post {
            let read = |entry| load(&self.runtime, self.words.real(self.layout.bytes(entry)));
            return post.with(&self.runtime, page, PageAccess::Read, read);
        }
        let net = self.runtime.handle().net();
        // At least half of the bytes that are read are needed, or the read is
        // short.
        let together = FEW.max(2 * bytes).min(TOGETHER);
        if net.is_some() && first as usize + bytes > together {
            return self.held(page, |runtime, at| load(runtime, at));
        }
        let read = |entry: DirectoryEntry| {
            let header = self.words.real(self.layout.header(entry.owner, entry.frame));
            if net.is_some_and(|net| net.leads_to(entry.owner)) {
                let first = first as usize;
                let into = into.cast();
                // SAFETY: the caller's.
                return unsafe {
                    match first + bytes <= FEW {
                        true => self.read_together::<{ 1 + FEW / 8 }>(header, first, into, bytes),
                        false => {
                            self.read_together::<{ 1 + TOGETHER / 8 }>(header, first, into, bytes)
                        }
                    }
                };
            }
            let found = self.runtime.get::<u64>(Words::remote(header))?;
            load(&self.runtime, header.add(HEADER_BYTES))?;
            Ok(found)
        };
        let optimistic = OptimisticRead::new(self.layout, self.runtime.rank(), page);
        drive(optimistic, &mut self.driver(), read)
    }

    /// Reads one element, as [`read`](Self::read) does.
    pub(super) fn read_one<T: Plain>(&self, page: PageId, first: u64) -> Result<T, AddrError> {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: `value` has room for an element; all bytes of it were written, and are a
        // valid value of a `Plain` type.
        unsafe {
            self.read(page, first, value.as_mut_ptr(), 1)?;
            Ok(value.assume_init())
        }
    }

    /// Reads the header at `at` together with the bytes behind it that are needed,
    /// at most `WORDS` words in total.
    ///
    /// # Safety
    ///
    /// `into` is valid for a write of `bytes` bytes.
    #[inline(never)]
    unsafe fn read_together<const WORDS: usize>(
        &self,
        at: RemoteAddr,
        first: usize,
        into: *mut u8,
        bytes: usize,
    ) -> Result<u64, AddrError> {
        let mut words = [0u64; WORDS];
        let words = &mut words[..1 + (first + bytes).div_ceil(8)];
        self.runtime.get_slice(Words::remote(at), words)?;
        // SAFETY: by its length, `words` has `bytes` bytes from `first` on behind
        // its first word; `into` is the caller's.
        unsafe {
            let from = words.as_ptr().cast::<u8>().add(HEADER_BYTES as usize + first);
            into.copy_from_nonoverlapping(from, bytes);
        }
        Ok(words[0])
    }

    /// Pins a page and calls `call` with the address of its bytes.
    #[inline]
    pub(super) fn held<R>(
        &self,
        page: PageId,
        call: impl FnOnce(&Runtime, RemoteAddr) -> Result<R, AddrError>,
    ) -> Result<R, AddrError> {
        let pin =
            PinFast::of(&self.layout, self.runtime.rank(), page, |at| self.words.own(at.offset));
        let mut call = Some(call);
        let access = |entry| {
            let at = self.words.real(self.layout.bytes(entry));
            (call.take().expect("the access is called once"))(&self.runtime, at)
        };
        if let Some(result) = pin.hit(page, Some, access) {
            return result;
        }
        self.hold(page, call.take().expect("the access was not called"))
    }

    /// Does the same if the page is in reach, and does nothing if not. Wait-free, except
    /// for the time of `call`.
    #[inline]
    pub(super) fn held_at_hand<R>(
        &self,
        page: PageId,
        call: impl FnOnce(&Runtime, RemoteAddr) -> Result<R, AddrError>,
    ) -> Option<Result<R, AddrError>> {
        let pin =
            PinFast::of(&self.layout, self.runtime.rank(), page, |at| self.words.own(at.offset));
        let find = |entry| {
            let at = self.words.real(self.layout.bytes(entry));
            matches!(self.runtime.handle().route(&at), Route::Here).then_some(at)
        };
        pin.hit(page, find, |at| call(&self.runtime, at))
    }

    /// Does the same as [`held`](Self::held) for a page that is not in the location cache.
    #[inline(never)]
    fn hold<R>(
        &self,
        page: PageId,
        call: impl FnOnce(&Runtime, RemoteAddr) -> Result<R, AddrError>,
    ) -> Result<R, AddrError> {
        if let Some(post) = &self.post {
            let access = |entry| call(&self.runtime, self.words.real(self.layout.bytes(entry)));
            return post.with(&self.runtime, page, PageAccess::Write, access);
        }
        let (mut call, mut result) = (Some(call), None);
        let access = |entry| {
            let call = call.take().expect("the access is called once");
            result = Some(call(&self.runtime, self.words.real(self.layout.bytes(entry))));
            Ok(0)
        };
        let pin = PagePin::new(self.layout, self.runtime.rank(), page);
        drive(pin, &mut self.driver(), access)?;
        result.expect("the access was called")
    }

    /// Carries out an operation on words of the book. Words of a device's directory
    /// are accessed by the device for this rank, too: no processor touches them.
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        match &self.directory {
            Some(directory) if self.layout.directory() == Some(op.remote.key) => {
                let mut real = *op;
                real.remote.key = directory.key(op.remote.rank);
                self.runtime.handle().carry(&real)
            }
            _ => self.words.carry(op),
        }
    }

    fn store(&self, at: RemoteAddr, value: u64) -> Result<u64, AddrError> {
        self.carry(&Op::put_word(at, Width::W8, value))
    }

    /// The driver of one protocol.
    fn driver(&self) -> WayDriver<'_> {
        WayDriver { engine: self, patience: Patience::default() }
    }
}

impl PageDriver for WayDriver<'_> {
    fn carry(&self, op: &Op) -> Result<u64, AddrError> {
        self.engine.carry(op)
    }

    /// Lets other ranks make progress. If the wait is for `by`, checks that this
    /// rank is alive.
    #[cold]
    fn pause(&mut self, by: Option<Rank>) -> Result<u64, AddrError> {
        self.patience.wait();
        match by {
            // A read of any word of its memory shows whether it is alive.
            Some(rank) => {
                let (bits, _) = self.engine.layout.bit(rank, 0);
                self.engine.carry(&Op::get_word(bits, Width::W8))
            }
            None => Ok(0),
        }
    }
}

impl Patience {
    fn wait(&mut self) {
        self.0 += 1;
        if self.0 < YIELDS { tsumugi_ult::yield_now() } else { tsumugi_ult::sleep(NAP) }
    }
}

/// The maximum number of bytes of a page that are read with its header.
const TOGETHER: usize = 4096;
/// The bytes that are always read with the header; they need only a small part of a
/// stack.
const FEW: usize = 1024;
/// How often a wait yields before it sleeps.
const YIELDS: u32 = 64;
/// How long a wait sleeps between two attempts.
const NAP: Duration = Duration::from_micros(100);
