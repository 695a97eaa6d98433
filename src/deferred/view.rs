//! The operations of a rank on the memory of all ranks, each as a value.

use super::begin::Deferred;
use super::buffer::OnBuffer;
use super::carried::{Carried, carry_out};
use super::steps::{Barrier, PutSignal};
use super::until::WaitUntil;
use super::word::{Loaded, Nothing, OnWord};
use crate::ops::{bits_of, signal_op, word_of};
use crate::{Buffer, Plain, Remote, Runtime, Signal, Until, Word};
use std::fmt;
use tsumugi_core::op::{Kind, Op};

/// The operations of a rank as [values](super). Each method has the name of the blocking
/// call of [`Runtime`] that it describes; the errors of its result are those of that call.
#[derive(Clone, Copy)]
pub struct Ops<'a> {
    runtime: &'a Runtime,
}

impl Runtime {
    /// The operations of this rank as values, which are waited for, awaited, tried, or
    /// given a function: see [`deferred`](crate::deferred).
    #[inline(always)]
    pub fn ops(&self) -> Ops<'_> {
        Ops { runtime: self }
    }
}

impl<'a> Ops<'a> {
    /// Reads the word at `from`, as [`Runtime::get`]. The result is
    /// `Result<T, AddrError>`.
    ///
    /// A `T` that is no word of 1, 2, 4 or 8 bytes is an error at compile time: use
    /// [`get_buffer`](Self::get_buffer).
    #[inline(always)]
    pub fn get<T: Plain>(self, from: Remote<T>) -> Deferred<OnWord<'a, Loaded<T>>> {
        self.on_word(Op::get_word(from.addr(), const { word_of::<T>() }))
    }

    /// Writes the word `value` to `to`, as [`Runtime::put`]. The result is
    /// `Result<(), AddrError>`.
    ///
    /// A `T` that is no word of 1, 2, 4 or 8 bytes is an error at compile time: use
    /// [`put_buffer`](Self::put_buffer).
    #[inline(always)]
    pub fn put<T: Plain>(self, to: Remote<T>, value: T) -> Deferred<OnWord<'a, Nothing>> {
        self.on_word(Op::put_word(to.addr(), const { word_of::<T>() }, bits_of(value)))
    }

    /// Reads as many values as `buf` has from `from` on into the buffer. The result is
    /// [`Outcome<Buffer<T>>`](crate::Outcome), with the buffer.
    ///
    /// # Panics
    ///
    /// If the buffer belongs to another rank or another job: ranks that are threads of
    /// one process can hand a buffer over, and a program can keep one.
    pub fn get_buffer<T: Plain>(
        self,
        from: Remote<T>,
        buf: Buffer<T>,
    ) -> Deferred<OnBuffer<'a, T>> {
        let op = Op::get(from.addr(), buf.local(self.runtime), size_of_val(&*buf) as u64);
        Deferred::new(OnBuffer::new(self.runtime, op, buf))
    }

    /// Writes all values of `buf` from `to` on. The result is
    /// [`Outcome<Buffer<T>>`](crate::Outcome), with the buffer.
    ///
    /// # Panics
    ///
    /// As [`get_buffer`](Self::get_buffer).
    pub fn put_buffer<T: Plain>(self, to: Remote<T>, buf: Buffer<T>) -> Deferred<OnBuffer<'a, T>> {
        let op = Op::put(buf.local(self.runtime), to.addr(), size_of_val(&*buf) as u64);
        Deferred::new(OnBuffer::new(self.runtime, op, buf))
    }

    /// Adds `value`, wrapping, as [`Runtime::fetch_add`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_add<T: Word>(self, at: Remote<T>, value: T) -> Deferred<OnWord<'a, Loaded<T>>> {
        self.on_word(Op::atomic(Kind::FetchAdd, at.addr(), value))
    }

    /// Keeps the bits of `mask`, as [`Runtime::fetch_and`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_and<T: Word>(self, at: Remote<T>, mask: T) -> Deferred<OnWord<'a, Loaded<T>>> {
        self.on_word(Op::atomic(Kind::FetchAnd, at.addr(), mask))
    }

    /// Sets the bits of `mask`, as [`Runtime::fetch_or`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_or<T: Word>(self, at: Remote<T>, mask: T) -> Deferred<OnWord<'a, Loaded<T>>> {
        self.on_word(Op::atomic(Kind::FetchOr, at.addr(), mask))
    }

    /// Flips the bits of `mask`, as [`Runtime::fetch_xor`]. The result is the old value.
    #[inline(always)]
    pub fn fetch_xor<T: Word>(self, at: Remote<T>, mask: T) -> Deferred<OnWord<'a, Loaded<T>>> {
        self.on_word(Op::atomic(Kind::FetchXor, at.addr(), mask))
    }

    /// Writes `value`, as [`Runtime::swap`]. The result is the old value.
    #[inline(always)]
    pub fn swap<T: Word>(self, at: Remote<T>, value: T) -> Deferred<OnWord<'a, Loaded<T>>> {
        self.on_word(Op::atomic(Kind::Swap, at.addr(), value))
    }

    /// Writes `new` if the old value is `expected`, as [`Runtime::compare_swap`]. The
    /// result is the old value.
    #[inline(always)]
    pub fn compare_swap<T: Word>(
        self,
        at: Remote<T>,
        expected: T,
        new: T,
    ) -> Deferred<OnWord<'a, Loaded<T>>> {
        self.on_word(Op::compare_swap(at.addr(), expected, new))
    }

    /// Adds `value`, wrapping, as [`Runtime::add`]. The old value is not returned.
    #[inline(always)]
    pub fn add<T: Word>(self, at: Remote<T>, value: T) -> Deferred<OnWord<'a, Nothing>> {
        self.on_word(Op::atomic(Kind::FetchAdd, at.addr(), value))
    }

    /// Keeps the bits of `mask`, as [`Runtime::and`]. The old value is not returned.
    #[inline(always)]
    pub fn and<T: Word>(self, at: Remote<T>, mask: T) -> Deferred<OnWord<'a, Nothing>> {
        self.on_word(Op::atomic(Kind::FetchAnd, at.addr(), mask))
    }

    /// Sets the bits of `mask`, as [`Runtime::or`]. The old value is not returned.
    #[inline(always)]
    pub fn or<T: Word>(self, at: Remote<T>, mask: T) -> Deferred<OnWord<'a, Nothing>> {
        self.on_word(Op::atomic(Kind::FetchOr, at.addr(), mask))
    }

    /// Flips the bits of `mask`, as [`Runtime::xor`]. The old value is not returned.
    #[inline(always)]
    pub fn xor<T: Word>(self, at: Remote<T>, mask: T) -> Deferred<OnWord<'a, Nothing>> {
        self.on_word(Op::atomic(Kind::FetchXor, at.addr(), mask))
    }

    /// Changes the word `at` and wakes the threads that wait for it, as
    /// [`Runtime::signal`]. The result is the old value.
    #[inline(always)]
    pub fn signal(self, at: Remote<u64>, signal: Signal) -> Deferred<OnWord<'a, Loaded<u64>>> {
        self.on_word(signal_op(at, signal))
    }

    /// Writes all values of `buf` from `to` on, then changes the word `at` and wakes the
    /// threads that wait for it, as [`Runtime::put_signal`]. The result is
    /// [`Outcome<Buffer<T>>`](crate::Outcome), with the buffer.
    ///
    /// # Panics
    ///
    /// As [`get_buffer`](Self::get_buffer).
    pub fn put_signal<T: Plain>(
        self,
        to: Remote<T>,
        buf: Buffer<T>,
        at: Remote<u64>,
        signal: Signal,
    ) -> Deferred<Carried<'a, Runtime, PutSignal<T>>> {
        buf.assert_of(self.runtime);
        carry_out(self.runtime, PutSignal::new(to, buf, at, signal))
    }

    /// Waits until a word of this rank's own memory satisfies `until`, as
    /// [`Runtime::wait_until`]. The result is the value that did. A wait that is dropped
    /// in flight ends.
    pub fn wait_until(self, word: Remote<u64>, until: Until) -> Deferred<WaitUntil<'a>> {
        Deferred::new(WaitUntil { runtime: self.runtime, word, until })
    }

    /// Waits for all ranks, as [`Runtime::barrier`]. The result is `Result<(), Error>`. A
    /// rank is in one collective at a time, also while it does not wait for it.
    pub fn barrier(self) -> Deferred<Carried<'a, Runtime, Barrier>> {
        carry_out(self.runtime, Barrier)
    }

    #[inline(always)]
    fn on_word<V: super::word::Value>(self, op: Op) -> Deferred<OnWord<'a, V>> {
        Deferred::new(OnWord::new(self.runtime, op))
    }
}

impl fmt::Debug for Ops<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ops({:?})", self.runtime)
    }
}
