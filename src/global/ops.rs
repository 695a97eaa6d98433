//! Accesses to global memory as [values](crate::deferred).

use super::at_hand::UNKNOWN;
use super::{Copy, Global, GlobalAddr, GlobalPtr, Operation};
use crate::deferred::{
    Begin, Begun, Carried, Deferred, Flight, Internal, Loaded, Nothing, OfRank, Steps, Value,
    carry_out,
};
use crate::ops::{bits_of, word_of};
use crate::{AddrError, Plain, Runtime, Word};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use tsumugi_core::completion::Why;
use tsumugi_core::mem::Need;
use tsumugi_core::op::{Kind, Op};
use tsumugi_gas::order::After;
use tsumugi_gas::request::GlobalRequest;
use tsumugi_runtime::panic::call_back;

/// The accesses to global memory, each as a [value](crate::deferred). Each method has the
/// name of the blocking call of [`Global`] that it describes; the errors of its result are
/// those of that call.
#[derive(Clone, std::marker::Copy)]
pub struct GlobalOps<'a> {
    global: &'a Global,
}

/// An operation on one word; `V` says what it returns: [`Loaded`] or [`Nothing`].
pub struct WordAt<V> {
    at: GlobalAddr,
    op: Op,
    value: PhantomData<fn() -> V>,
}

/// A copy, a list of copies, or a change of a word, of [`Global::begin`].
pub struct OfRequest<'a> {
    global: &'a Global,
    request: GlobalRequest,
}

impl Global {
    /// The accesses to global memory as values, which are waited for, awaited, tried, or
    /// given a function: see [`deferred`](crate::deferred).
    #[inline(always)]
    pub fn ops(&self) -> GlobalOps<'_> {
        GlobalOps { global: self }
    }
}

/// An operation on a word that is carried out at once, or by a ULT.
type OnGlobal<'a, V> = Carried<'a, Global, WordAt<V>>;

impl<'a> GlobalOps<'a> {
    /// Reads the word at `from`, as [`Global::get`]. The result is
    /// `Result<T, AddrError<GlobalAddr>>`.
    ///
    /// A `T` that is no word of 1, 2, 4 or 8 bytes is an error at compile time: use
    /// [`copy`](Self::copy).
    #[inline(always)]
    pub fn get<T: Plain>(self, from: GlobalPtr<T>) -> Deferred<OnGlobal<'a, Loaded<T>>> {
        self.word(from, Op::get_word(UNKNOWN, const { word_of::<T>() }))
    }

    /// Writes the word `value` to `to`, as [`Global::put`]. The result is
    /// `Result<(), AddrError<GlobalAddr>>`.
    ///
    /// A `T` that is no word of 1, 2, 4 or 8 bytes is an error at compile time.
    #[inline(always)]
    pub fn put<T: Plain>(self, to: GlobalPtr<T>, value: T) -> Deferred<OnGlobal<'a, Nothing>> {
        self.word(to, Op::put_word(UNKNOWN, const { word_of::<T>() }, bits_of(value)))
    }

    /// Copies `count` values from `src` to `dst`, as [`Global::copy`]. The result is
    /// `Result<u64, AddrError<GlobalAddr>>`: 0.
    ///
    /// # Panics
    ///
    /// If so many values have 2^64 bytes or more.
    pub fn copy<T: Plain>(
        self,
        dst: GlobalPtr<T>,
        src: GlobalPtr<T>,
        count: usize,
    ) -> Deferred<OfRequest<'a>> {
        let bytes = count.checked_mul(size_of::<T>()).expect("the values fit in memory") as u64;
        self.request(Copy::new(dst.addr(), src.addr(), bytes))
    }

    /// A [`Copy`](struct@super::Copy), a [`ListCopy`](super::ListCopy) or a [`Change`](super::Change), as
    /// [`Global::begin`]. The result is `Result<u64, AddrError<GlobalAddr>>`: the old value
    /// for a change, else 0.
    pub fn request(self, request: impl Into<GlobalRequest>) -> Deferred<OfRequest<'a>> {
        Deferred::new(OfRequest { global: self.global, request: request.into() })
    }

    /// Adds `value`, wrapping, as [`Global::fetch_add`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_add<T: Word>(
        self,
        at: GlobalPtr<T>,
        value: T,
    ) -> Deferred<OnGlobal<'a, Loaded<T>>> {
        self.word(at, Op::atomic(Kind::FetchAdd, UNKNOWN, value))
    }

    /// Keeps the bits of `mask`, as [`Global::fetch_and`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_and<T: Word>(
        self,
        at: GlobalPtr<T>,
        mask: T,
    ) -> Deferred<OnGlobal<'a, Loaded<T>>> {
        self.word(at, Op::atomic(Kind::FetchAnd, UNKNOWN, mask))
    }

    /// Sets the bits of `mask`, as [`Global::fetch_or`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_or<T: Word>(self, at: GlobalPtr<T>, mask: T) -> Deferred<OnGlobal<'a, Loaded<T>>> {
        self.word(at, Op::atomic(Kind::FetchOr, UNKNOWN, mask))
    }

    /// Flips the bits of `mask`, as [`Global::fetch_xor`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_xor<T: Word>(
        self,
        at: GlobalPtr<T>,
        mask: T,
    ) -> Deferred<OnGlobal<'a, Loaded<T>>> {
        self.word(at, Op::atomic(Kind::FetchXor, UNKNOWN, mask))
    }

    /// Writes `value`, as [`Global::swap`]. The result is the old value.
    #[inline(always)]
    pub fn swap<T: Word>(self, at: GlobalPtr<T>, value: T) -> Deferred<OnGlobal<'a, Loaded<T>>> {
        self.word(at, Op::atomic(Kind::Swap, UNKNOWN, value))
    }

    /// Writes `new` if the old value is `expected`, as [`Global::compare_swap`]. The result
    /// is the old value.
    #[inline(always)]
    pub fn compare_swap<T: Word>(
        self,
        at: GlobalPtr<T>,
        expected: T,
        new: T,
    ) -> Deferred<OnGlobal<'a, Loaded<T>>> {
        self.word(at, Op::compare_swap(UNKNOWN, expected, new))
    }

    /// Adds `value`, wrapping, as [`Global::add`]. The old value is not returned.
    #[inline(always)]
    pub fn add<T: Word>(self, at: GlobalPtr<T>, value: T) -> Deferred<OnGlobal<'a, Nothing>> {
        self.word(at, Op::atomic(Kind::FetchAdd, UNKNOWN, value))
    }

    /// Keeps the bits of `mask`, as [`Global::and`]. The old value is not returned.
    #[inline(always)]
    pub fn and<T: Word>(self, at: GlobalPtr<T>, mask: T) -> Deferred<OnGlobal<'a, Nothing>> {
        self.word(at, Op::atomic(Kind::FetchAnd, UNKNOWN, mask))
    }

    /// Sets the bits of `mask`, as [`Global::or`]. The old value is not returned.
    #[inline(always)]
    pub fn or<T: Word>(self, at: GlobalPtr<T>, mask: T) -> Deferred<OnGlobal<'a, Nothing>> {
        self.word(at, Op::atomic(Kind::FetchOr, UNKNOWN, mask))
    }

    /// Flips the bits of `mask`, as [`Global::xor`]. The old value is not returned.
    #[inline(always)]
    pub fn xor<T: Word>(self, at: GlobalPtr<T>, mask: T) -> Deferred<OnGlobal<'a, Nothing>> {
        self.word(at, Op::atomic(Kind::FetchXor, UNKNOWN, mask))
    }

    #[inline(always)]
    fn word<T: Plain, V: Value>(self, at: GlobalPtr<T>, op: Op) -> Deferred<OnGlobal<'a, V>> {
        carry_out(self.global, WordAt { at: at.addr(), op, value: PhantomData })
    }
}

impl OfRank for Global {
    /// The global memory is open, and this is smaller.
    type Kept = Runtime;

    fn of_rank(&self) -> &Runtime {
        &self.runtime
    }

    fn keep(&self) -> Runtime {
        self.runtime.clone()
    }

    fn with_kept<R>(kept: &Runtime, call: impl FnOnce(&Self) -> R) -> R {
        call(&kept.global().expect("the global memory is open"))
    }
}

impl<V: Value> Steps<Global> for WordAt<V> {
    type Output = Result<V::Value, AddrError<GlobalAddr>>;

    #[inline]
    fn at_once(self, on: &Global) -> Result<Self::Output, Self> {
        let need = if self.op.writes() { Need::Write } else { Need::Read };
        let done = on.try_word(self.at, &self.op).or_else(|| {
            let is_noted = on.note(self.at, self.op.bytes(), need);
            if is_noted { on.try_word_fenced(self.at, &self.op) } else { None }
        });
        let Some(done) = done else { return Err(self) };
        if done.must_tick {
            on.tick();
        }
        Ok(Ok(V::of(done.old)))
    }

    #[inline(always)]
    fn carry(&mut self, on: &Global) -> Self::Output {
        on.carry(GlobalPtr::<u8>::new(self.at), self.op).map(V::of)
    }

    fn cut_off(&mut self) -> Self::Output {
        Err(AddrError::Ended)
    }
}

impl OfRequest<'_> {
    /// Carries a copy out, if both ends are at hand.
    fn is_done_at_once(&self) -> bool {
        let GlobalRequest::Copy(copy) = &self.request else { return false };
        copy.plain().is_some_and(|(dst, src, bytes)| self.global.try_copy(dst, src, bytes))
    }

    fn begin(&self) -> Option<Operation> {
        self.global.try_begin_after(self.request, After::Nothing).ok()
    }
}

impl Internal for OfRequest<'_> {}

impl Begin for OfRequest<'_> {
    type Output = Result<u64, AddrError<GlobalAddr>>;
    type Flight = Operation;

    fn wait(self) -> Self::Output {
        match self.is_done_at_once() {
            true => Ok(0),
            false => self.global.begin(self.request).wait(),
        }
    }

    fn try_begin(self) -> Result<Begun<Self>, (Self, Why)> {
        if self.is_done_at_once() {
            return Ok(Begun::Done(Ok(0)));
        }
        self.begin().map(Begun::Pending).ok_or((self, Why::NoTag))
    }

    fn then<F>(self, then: F) -> Result<(), (Self, F, Why)>
    where
        F: FnOnce(Self::Output) + Send + 'static,
    {
        if self.is_done_at_once() {
            call_back(|| then(Ok(0)));
            return Ok(());
        }
        let global = self.global;
        global.begin_then(self.request, then).map_err(|(then, why)| (self, then, why))
    }

    fn make_room(&self) {
        self.global.tick();
    }
}

impl Flight for Operation {
    type Output = Result<u64, AddrError<GlobalAddr>>;

    fn is_done(&self) -> bool {
        self.has_ended()
    }

    fn wait(self) -> Self::Output {
        Operation::wait(self)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(self).poll(context)
    }
}

impl fmt::Debug for GlobalOps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalOps({:?})", self.global)
    }
}

impl<V> fmt::Debug for WordAt<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WordAt({:?} at {})", self.op.kind, self.at)
    }
}

impl fmt::Debug for OfRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OfRequest({:?})", self.request)
    }
}
