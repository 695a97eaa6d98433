//! Collectives that have begun, and go on while the program does other things.

use super::handle::{Group, THRESHOLDS, check_len, elements_of};
use super::operation::{Operation, combine_of};
use crate::{Error, Plain};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tsumugi_core::coll::schedule::{Blocks, BufferSpan, CollBuffer, CollPlan};
use tsumugi_runtime::service::collectives::{CollBuffers, CombineFn, Parts, StartedCollective};

/// A collective that has begun. It goes on while the program does other things, also if
/// this is dropped; its result is waited for, awaited, or looked for.
#[must_use = "a collective that fails says so by its result"]
pub struct Pending<T: Plain> {
    begun: StartedCollective,
    values: PhantomData<Vec<T>>,
}

/// What a collective keeps until it has ended.
struct Kept<T> {
    input: Vec<T>,
    output: Vec<T>,
    scratch: Vec<u128>,
}

/// Which of the vectors of a collective is which buffer.
enum Form<T> {
    /// Input and output are one.
    InPlace(Vec<T>),
    /// The output has so many values.
    Apart(Vec<T>, usize),
}

impl Group {
    /// Begins a [`barrier`](Self::barrier).
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    pub fn begin_barrier(&self) -> Result<Pending<u8>, Error> {
        let plan = THRESHOLDS.barrier(self.handle().member(), self.handle().view());
        self.begin(plan, Form::InPlace(Vec::new()), None)
    }

    /// Begins a [`broadcast`](Self::broadcast). The result has the values of the root.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or there is no member `root`.
    pub fn begin_broadcast<T: Plain>(
        &self,
        values: Vec<T>,
        root: u32,
    ) -> Result<Pending<T>, Error> {
        let (root, len) = (self.handle().root(root)?, size_of_val(&*values));
        let plan = THRESHOLDS.broadcast(self.handle().member(), self.handle().view(), root, len);
        self.begin(plan, Form::InPlace(values), None)
    }

    /// Begins an [`allreduce`](Self::allreduce).
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    pub fn begin_allreduce<T: Plain>(
        &self,
        values: Vec<T>,
        operation: impl Operation<T> + 'static,
    ) -> Result<Pending<T>, Error> {
        let elements = elements_of(&values, &operation);
        let plan = THRESHOLDS.allreduce(self.handle().member(), self.handle().view(), elements);
        self.begin(plan, Form::InPlace(values), Some(Box::new(combine_of(operation))))
    }

    /// Begins a [`reduce`](Self::reduce). The result has the combined values at the root,
    /// and the given ones at others.
    ///
    /// # Errors
    ///
    /// Those of [`begin_broadcast`](Self::begin_broadcast).
    pub fn begin_reduce<T: Plain>(
        &self,
        values: Vec<T>,
        root: u32,
        operation: impl Operation<T> + 'static,
    ) -> Result<Pending<T>, Error> {
        let (root, elements) = (self.handle().root(root)?, elements_of(&values, &operation));
        let plan = THRESHOLDS.reduce(self.handle().member(), self.handle().view(), root, elements);
        self.begin(plan, Form::InPlace(values), Some(Box::new(combine_of(operation))))
    }

    /// Begins a [`scan`](Self::scan).
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    pub fn begin_scan<T: Plain>(
        &self,
        values: Vec<T>,
        operation: impl Operation<T> + 'static,
    ) -> Result<Pending<T>, Error> {
        self.begin_scan_any(values, operation, false)
    }

    /// Begins an [`exscan`](Self::exscan).
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    pub fn begin_exscan<T: Plain>(
        &self,
        values: Vec<T>,
        operation: impl Operation<T> + 'static,
    ) -> Result<Pending<T>, Error> {
        self.begin_scan_any(values, operation, true)
    }

    fn begin_scan_any<T: Plain>(
        &self,
        values: Vec<T>,
        operation: impl Operation<T> + 'static,
        exclusive: bool,
    ) -> Result<Pending<T>, Error> {
        let elements = elements_of(&values, &operation);
        let plan = THRESHOLDS.scan(self.handle().member(), elements, exclusive);
        self.begin(plan, Form::InPlace(values), Some(Box::new(combine_of(operation))))
    }

    /// Begins a [`gather`](Self::gather).
    ///
    /// # Errors
    ///
    /// Those of [`begin_broadcast`](Self::begin_broadcast).
    pub fn begin_gather<T: Plain>(&self, values: Vec<T>, root: u32) -> Result<Pending<T>, Error> {
        let root = self.handle().root(root)?.root;
        let len = if self.rank() == root { values.len() * self.size() as usize } else { 0 };
        let (member, bytes) = (self.handle().member(), size_of_val(&*values));
        let plan = THRESHOLDS.rooted(member, root, bytes, false, false);
        self.begin(plan, Form::Apart(values, len), None)
    }

    /// Begins a [`scatter`](Self::scatter) of blocks of `len` values.
    ///
    /// # Errors
    ///
    /// Those of [`scatter`](Self::scatter).
    pub fn begin_scatter<T: Plain>(
        &self,
        values: Vec<T>,
        len: usize,
        root: u32,
    ) -> Result<Pending<T>, Error> {
        let root = self.handle().root(root)?.root;
        if self.rank() == root {
            check_len(values.len(), len * self.size() as usize)?;
        }
        let (member, bytes) = (self.handle().member(), len * size_of::<T>());
        let plan = THRESHOLDS.rooted(member, root, bytes, true, false);
        self.begin(plan, Form::Apart(values, len), None)
    }

    /// Begins an [`allgather`](Self::allgather).
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died.
    pub fn begin_allgather<T: Plain>(&self, values: Vec<T>) -> Result<Pending<T>, Error> {
        let (bytes, size) = (size_of_val(&*values), self.size() as usize);
        let own = BufferSpan::first(CollBuffer::Input, bytes);
        let (at, total) = (self.rank() as usize * bytes, size * bytes);
        let blocks = Blocks::Even { bytes };
        let plan = THRESHOLDS.allgather(self.handle().member(), own, at, total, blocks);
        let len = values.len() * size;
        self.begin(plan, Form::Apart(values, len), None)
    }

    /// Begins an [`alltoall`](Self::alltoall).
    ///
    /// # Errors
    ///
    /// Those of [`alltoall`](Self::alltoall).
    pub fn begin_alltoall<T: Plain>(&self, values: Vec<T>) -> Result<Pending<T>, Error> {
        let (size, len) = (self.size() as usize, values.len());
        check_len(len, len / size * size)?;
        let plan = THRESHOLDS.alltoall(self.handle().member(), size_of_val(&*values) / size);
        self.begin(plan, Form::Apart(values, len), None)
    }

    /// Begins a [`reduce_scatter`](Self::reduce_scatter).
    ///
    /// # Errors
    ///
    /// Those of [`reduce_scatter`](Self::reduce_scatter).
    pub fn begin_reduce_scatter<T: Plain>(
        &self,
        values: Vec<T>,
        operation: impl Operation<T> + 'static,
    ) -> Result<Pending<T>, Error> {
        let size = self.size() as usize;
        let len = values.len() / size;
        check_len(values.len(), len * size)?;
        let bytes = len * size_of::<T>();
        let own = self.rank() as usize * bytes;
        let (member, elements) = (self.handle().member(), elements_of(&values, &operation));
        let blocks = Blocks::Even { bytes };
        let plan = THRESHOLDS.reduce_scatter(member, elements, blocks, own..own + bytes);
        let combine = Box::new(combine_of(operation));
        self.begin(plan, Form::Apart(values, len), Some(combine))
    }

    fn begin<T: Plain>(
        &self,
        plan: CollPlan,
        form: Form<T>,
        combine: Option<Box<CombineFn<'static>>>,
    ) -> Result<Pending<T>, Error> {
        let scratch = Vec::with_capacity(plan.scratch_bytes().div_ceil(size_of::<u128>()));
        let (input, output) = match form {
            Form::InPlace(values) => (Vec::new(), values),
            // SAFETY: all bits are values of a `Plain` type.
            Form::Apart(values, len) => (values, vec![unsafe { std::mem::zeroed() }; len]),
        };
        let is_in_place = input.is_empty();
        let mut kept = Kept { input, output, scratch };
        let output: *mut u8 = kept.output.as_mut_ptr().cast();
        let input = if is_in_place { output.cast_const() } else { kept.input.as_ptr().cast() };
        let buffers = CollBuffers { input, output, scratch: kept.scratch.as_mut_ptr().cast() };
        let parts = Parts { kept: Box::new(kept), combine, blocks: Default::default() };
        // SAFETY: the vectors stay where they are, and no other code uses them before
        // the end.
        let begun = unsafe { self.handle().begin(plan, buffers, parts) }?;
        Ok(Pending { begun, values: PhantomData })
    }
}

impl<T: Plain> Pending<T> {
    /// Whether the collective has ended; moves it on if it has not. Never waits.
    pub fn is_done(&self) -> bool {
        self.begun.is_done()
    }

    /// Waits for the end, and returns the values that are the result. Blocking.
    ///
    /// # Errors
    ///
    /// [`Error::Coll`]: a rank of the job has died, or members have given lengths that do
    /// not fit.
    pub fn wait(self) -> Result<Vec<T>, Error> {
        Ok(output_of(self.begun.wait()?))
    }
}

impl<T: Plain> Future for Pending<T> {
    type Output = Result<Vec<T>, Error>;

    /// # Panics
    ///
    /// If it is polled after it has completed.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let kept = ready!(Pin::new(&mut self.begun).poll(context));
        Poll::Ready(kept.map(output_of))
    }
}

fn output_of<T: Plain>(kept: Box<dyn Any + Send>) -> Vec<T> {
    kept.downcast::<Kept<T>>().expect("a collective keeps its own buffers").output
}

impl<T: Plain> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({:?})", self.begun)
    }
}

impl<T: Plain> Unpin for Pending<T> {}
