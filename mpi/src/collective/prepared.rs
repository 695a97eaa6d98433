//! Collectives that are ready to run or to begin: a plan, with the memory of this member.

use crate::abi::{MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request};
use crate::call::call_on;
use crate::fault::Answer;
use crate::job::Job;
use crate::object::communicator::CommRef;
use crate::object::data::Data;
use crate::object::exchange::Exchange;
use crate::object::operation::CombineBytes;
use crate::object::request::Request;
use crate::object::shape::{Flow, FlowUnit, Shape};
use crate::object::task::{Begin, CollectiveWork, Task, Work};
use crate::object::verification::{Verification, verify};
use std::ffi::c_int;
use std::ptr;
use tsumugi::group::RawCollective;

/// A collective of this member.
pub(crate) struct Prepared<'a> {
    pub(crate) plan: Plan<'a>,
    pub(crate) input: *const u8,
    pub(crate) output: *mut u8,
    pub(crate) combine: Option<CombineBytes>,
    /// What is done at the end: data with holes goes to its elements. It keeps the memory
    /// of copies until then.
    pub(crate) end: Box<dyn FnOnce() + Send>,
    /// What the members' calls have in common; set in the checking mode.
    pub(crate) shape: Shape,
}

/// What the members do.
#[allow(clippy::large_enum_variant, reason = "it lives on the stack of one call")]
pub(crate) enum Plan<'a> {
    Collective(RawCollective<'a>),
    Exchange(Exchange),
}

impl<'a> Prepared<'a> {
    /// A collective without memory.
    pub(crate) fn of(plan: RawCollective<'a>) -> Self {
        Self::planned(Plan::Collective(plan))
    }

    /// Messages that know their memory.
    pub(crate) fn exchange(exchange: Exchange, end: impl FnOnce() + Send + 'static) -> Self {
        Self { end: Box::new(end), ..Self::planned(Plan::Exchange(exchange)) }
    }

    fn planned(plan: Plan<'a>) -> Self {
        Self {
            plan,
            input: ptr::null(),
            output: ptr::null_mut(),
            combine: None,
            end: Box::new(|| ()),
            shape: Shape::default(),
        }
    }

    /// Data of this member, which comes to `into`.
    pub(crate) fn moving(plan: RawCollective<'a>, mut from: Data, mut into: Data) -> Self {
        let (input, output) = (from.at().cast_const(), into.at());
        let end = Box::new(move || {
            drop(from);
            into.arrived(into.bytes);
        });
        Self { input, output, end, ..Self::of(plan) }
    }

    /// Says what this member sends to each, and wants from each.
    pub(crate) fn with_flow(mut self, job: &Job, flow: impl FnOnce() -> Flow) -> Self {
        if job.checks {
            self.shape.flow = Some((flow(), FlowUnit::Bytes));
        }
        self
    }

    /// Says more of the arguments that the members' calls have in common.
    pub(crate) fn detailed(mut self, job: &Job, details: impl FnOnce() -> String) -> Self {
        if job.checks {
            self.shape.details = details();
        }
        self
    }

    /// Says what the members' calls have in common.
    #[inline]
    pub(crate) fn called(
        mut self,
        job: &Job,
        root: Option<u32>,
        datatype: Option<MPI_Datatype>,
        bytes: Option<usize>,
        op: Option<MPI_Op>,
    ) -> Self {
        if job.checks {
            self.shape = Shape::of(root, datatype.and_then(|of| job.datatype(of).ok()), bytes, op);
        }
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(self, name: &str, job: &Job, comm: &CommRef) -> Answer {
        let plan = match self.plan {
            Plan::Collective(plan) => plan,
            Plan::Exchange(exchange) => {
                exchange
                    .begin(job.agreements, comm.context(), &job.messages)?
                    .finish(&job.messages)?;
                (self.end)();
                return Ok(());
            }
        };
        if job.checks {
            verify(name, comm, &self.shape)?;
        }
        let combine = self.combine.as_deref();
        // SAFETY: the contract of the call: the memory has the bytes of the plan, and
        // nothing else uses it until this returns.
        unsafe { plan.run(self.input, self.output, combine.map(|combine| combine as _)) }?;
        (self.end)();
        Ok(())
    }

    /// Begins it.
    fn begin(self, name: &'static str, job: &Job, comm: &CommRef) -> Answer<Task> {
        let plan = match self.plan {
            Plan::Collective(plan) => plan,
            Plan::Exchange(exchange) => {
                let begun = exchange.begin(job.agreements, comm.context(), &job.messages)?;
                return Ok(Task { work: Work::Exchange(begun, self.end), comm: comm.clone() });
            }
        };
        let verification = job
            .checks
            .then(|| Verification::begin(name, comm, &self.shape, || job.reap()))
            .transpose()?;
        let combine = self.combine.map(|combine| combine as Box<_>);
        // SAFETY: the contract of the call, until the request has ended.
        let started = unsafe { plan.begin(self.input, self.output, combine, || job.reap()) };
        match started {
            Ok(started) => {
                let work = CollectiveWork { call: name, started, end: self.end, verification };
                Ok(Task { work: Work::Collective(Box::new(work)), comm: comm.clone() })
            }
            // Members that call others are the reason, if there are any.
            Err(error) => Err(match verification.map(|of| of.wait(name)) {
                Some(Err(fault)) => fault,
                _ => error.into(),
            }),
        }
    }
}

/// Runs a collective.
pub(crate) fn run(
    name: &str,
    comm: MPI_Comm,
    prepare: impl for<'a> FnOnce(&Job, &'a CommRef) -> Answer<Prepared<'a>>,
) -> c_int {
    call_on(name, comm, |job, comm| prepare(job, comm)?.run(name, job, comm))
}

/// Begins a collective, and writes its request.
///
/// # Safety
///
/// `request` is valid for a write.
pub(crate) unsafe fn begin(
    name: &'static str,
    comm: MPI_Comm,
    request: *mut MPI_Request,
    prepare: impl for<'a> FnOnce(&Job, &'a CommRef) -> Answer<Prepared<'a>>,
) -> c_int {
    call_on(name, comm, |job, comm| {
        let task = prepare(job, comm)?.begin(name, job, comm)?;
        // SAFETY: the caller's.
        unsafe { request.write(job.add_task(task)?) };
        Ok(())
    })
}

/// Makes a persistent request of a collective, and writes it.
///
/// # Safety
///
/// `request` is valid for a write.
pub(crate) unsafe fn prepare_for(
    name: &'static str,
    comm: MPI_Comm,
    request: *mut MPI_Request,
    prepare: impl for<'a> Fn(&Job, &'a CommRef) -> Answer<Prepared<'a>> + Send + 'static,
) -> c_int {
    call_on(name, comm, |job, comm| {
        // Wrong arguments are found now.
        let Prepared { plan, shape, .. } = prepare(job, comm)?;
        if job.checks && matches!(plan, Plan::Collective(_)) {
            verify(name, comm, &shape)?;
        }
        let comm = comm.clone();
        let start: Begin = Box::new(move || prepare(job, &comm)?.begin(name, job, &comm));
        // SAFETY: the caller's.
        unsafe { request.write(job.add_request(Request::persistent(start))?) };
        Ok(())
    })
}

/// Arguments of the program that a persistent request keeps.
pub(crate) struct Kept<T>(pub(crate) T);

// SAFETY: by the contract of the call the program leaves its memory alone until the request
// is freed.
unsafe impl<T> Send for Kept<T> {}

impl<T: Copy> Kept<T> {
    /// The arguments.
    pub(crate) fn get(&self) -> T {
        self.0
    }
}

/// Defines a collective: blocking, begun and persistent, with both types of counts.
macro_rules! collectives {
    ($($name:literal [$run:ident $run_c:ident] [$begin:ident $begin_c:ident]
        [$init:ident $init_c:ident] ($($arg:ident: $type:ty),* $(,)?) |$job:ident, $comm:ident, $lists:ident| $body:block)*) => { $(
        collectives!(@one $name, $run, $begin, $init, std::ffi::c_int, ($($arg: $type),*),
            $job, $comm, $lists, $body);
        collectives!(@one $name, $run_c, $begin_c, $init_c, i64, ($($arg: $type),*),
            $job, $comm, $lists, $body);
    )* };
    (@one $name:literal, $run:ident, $begin:ident, $init:ident, $count:ty,
        ($($arg:ident: $type:ty),*), $job:ident, $comm:ident, $lists:ident, $body:block) => {
        #[allow(clippy::useless_conversion, reason = "the type of counts may be the wide one")]
        mod $run {
            use super::*;
            #[allow(dead_code, reason = "not every collective has a count")]
            type N = $count;

            #[allow(unused_variables, reason = "not every collective has lists")]
            fn prepare<'a>(
                $job: &Job, $comm: &'a CommRef, $lists: &crate::collective::spread::Lists, $($arg: $type),*
            ) -> Answer<Prepared<'a>> $body

            #[doc = $name]
            ///
            /// # Safety
            ///
            /// Pointers are valid as the MPI standard says of this function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $run($($arg: $type,)* comm: MPI_Comm) -> std::ffi::c_int {
                let lists = crate::collective::spread::Lists::default();
                run(&stringify!($run)[1..], comm, |job, comm| prepare(job, comm, &lists, $($arg),*))
            }

            #[doc = $name]
            /// begins.
            ///
            /// # Safety
            ///
            /// Pointers are valid as the MPI standard says of this function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $begin(
                $($arg: $type,)* comm: MPI_Comm, request: *mut MPI_Request,
            ) -> std::ffi::c_int {
                let lists = crate::collective::spread::Lists::default();
                // SAFETY: the caller's.
                unsafe {
                    begin(&stringify!($begin)[1..], comm, request, |job, comm| {
                        prepare(job, comm, &lists, $($arg),*)
                    })
                }
            }

            #[doc = $name]
            /// is prepared.
            ///
            /// # Safety
            ///
            /// Pointers are valid as the MPI standard says of this function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $init(
                $($arg: $type,)* comm: MPI_Comm, _info: crate::abi::MPI_Info,
                request: *mut MPI_Request,
            ) -> std::ffi::c_int {
                let kept = crate::collective::prepared::Kept(($($arg,)*));
                let lists = crate::collective::spread::Lists::kept();
                // SAFETY: the caller's.
                unsafe {
                    crate::collective::prepared::prepare_for(&stringify!($init)[1..], comm, request, move |job, comm| {
                        let ($($arg,)*) = kept.get();
                        prepare(job, comm, lists.again(), $($arg),*)
                    })
                }
            }
        }
    };
}
pub(crate) use collectives;
