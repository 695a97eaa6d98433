//! Collectives between two groups: what one group gives comes to the other one. Each member
//! exchanges messages with all of the other group, or with its root.

use crate::abi;
use crate::arguments::count;
use crate::arguments::is_in_place;
use crate::collective::edges;
use crate::collective::prepared::Prepared;
use crate::collective::spread::Spread;
use crate::fault::{Answer, fail, need};
use crate::job::Job;
use crate::object::communicator::{CommRef, Remote};
use crate::object::data::check_memory;
use crate::object::exchange::{Edge, Edges, Exchange};
use crate::object::operation::combine;
use std::ffi::{c_int, c_void};
use tsumugi_core::coll::schedule::CombineOrder;

/// What this rank is in a collective with a root.
pub(crate) enum Part {
    /// The root, to which or from which all data of the other group goes.
    Root,
    /// A member of the group of the root, which has no part.
    Beside,
    /// A member of the other group, with its edge to the root.
    Member(Edge),
}

impl Remote {
    /// The part of this rank.
    pub(crate) fn part(&self, root: c_int) -> Answer<Part> {
        match root {
            abi::ROOT => Ok(Part::Root),
            abi::PROC_NULL => Ok(Part::Beside),
            root => match usize::try_from(root).ok().and_then(|root| self.ranks.get(root)) {
                Some(rank) => Ok(Part::Member(Edge { rank: *rank, slot: 0 })),
                None => fail!(
                    abi::ERR_ROOT,
                    "root {root} is not one of the {} ranks of the other group",
                    self.ranks.len()
                ),
            },
        }
    }

    fn edges(&self) -> Edges {
        self.ranks.iter().map(|rank| Some(Edge { rank: *rank, slot: 0 })).collect()
    }

    /// The edges of this rank in a collective with a root.
    pub(crate) fn edges_of(&self, part: &Part) -> Edges {
        match part {
            Part::Root => self.edges(),
            Part::Beside => Vec::new(),
            Part::Member(edge) => vec![Some(*edge)],
        }
    }
}

/// Data that goes to the root, or comes from it: `is_to_root`. `spread` makes the blocks of this
/// rank, as many as it has edges.
pub(crate) fn rooted<'a>(
    remote: &Remote,
    root: c_int,
    is_to_root: bool,
    spread: impl FnOnce(&Part) -> Answer<Spread>,
) -> Answer<Prepared<'a>> {
    let part = remote.part(root)?;
    let blocks = if matches!(part, Part::Beside) { Spread::none() } else { spread(&part)? };
    let edges = remote.edges_of(&part);
    Ok(match matches!(part, Part::Root) == is_to_root {
        true => edges::receive(edges, blocks),
        false => edges::send(edges, blocks),
    })
}

/// Data of each member for each member of the other group.
pub(crate) fn all<'a>(
    remote: &Remote,
    buffer: *const c_void,
    from: impl FnOnce() -> Answer<Spread>,
    into: impl FnOnce() -> Answer<Spread>,
) -> Answer<Prepared<'a>> {
    need!(!is_in_place(buffer), abi::ERR_BUFFER, "MPI_IN_PLACE between two groups");
    Ok(edges::exchange((remote.edges(), from()?), (remote.edges(), into()?)))
}

/// A barrier of both groups.
pub(crate) fn barrier<'a>(remote: &Remote) -> Prepared<'a> {
    let mut exchange = Exchange::default();
    for edge in remote.edges().into_iter().flatten() {
        exchange.receive(edge, std::ptr::null_mut(), 0);
        exchange.send(edge, std::ptr::null_mut(), 0);
    }
    Prepared::exchange(exchange, || ())
}

/// The values of a reduction, and which of the results come to this rank.
pub(crate) struct Reduced {
    pub(crate) from: *const c_void,
    pub(crate) into: *mut c_void,
    pub(crate) count: i64,
    pub(crate) datatype: abi::MPI_Datatype,
    pub(crate) op: abi::MPI_Op,
    /// The first result that comes, and their number.
    pub(crate) part: (usize, usize),
}

/// Values of one group whose combination comes to the other one: to its root, or, without one,
/// to all, in both directions. Every member receives all values of the other group, and combines
/// them in the order of the ranks.
pub(crate) fn reduce<'a>(
    job: &Job,
    comm: &'a CommRef,
    remote: &Remote,
    root: Option<c_int>,
    values: Reduced,
) -> Answer<Prepared<'a>> {
    let part = root.map(|root| remote.part(root)).transpose()?;
    if matches!(part, Some(Part::Beside)) {
        // The other arguments mean nothing here.
        return Ok(Prepared::exchange(Exchange::default(), || ()));
    }
    let Reduced { from, into, count: number, datatype, op, part: (first, results) } = values;
    need!(!is_in_place(from), abi::ERR_BUFFER, "MPI_IN_PLACE in {}, between two groups", &**comm);
    let count = count(number, "elements")?;
    let of = job.datatype(datatype)?;
    of.committed()?;
    let combine = combine(job.operation(op)?, &of)?;
    let (sends, receives) = match part {
        None => (remote.edges(), remote.edges()),
        Some(Part::Root) => (Vec::new(), remote.edges()),
        Some(part) => (remote.edges_of(&part), Vec::new()),
    };
    let mut own = match sends.is_empty() {
        true => Spread::none(),
        false => Spread::even(job, from.cast_mut(), number, 1, datatype)?,
    };
    if !receives.is_empty() {
        check_memory(into.cast_const().cast(), results, &of)?;
    }
    let bytes = of.bytes(count)?;
    let mut exchange = Exchange::default();
    for (edge, at) in sends.into_iter().flatten().zip(own.sent().into_iter().cycle()) {
        exchange.send(edge, at, bytes);
    }
    let mut packed = vec![0; bytes * receives.len()];
    let members = receives.len();
    for (member, edge) in receives.into_iter().flatten().enumerate() {
        exchange.receive(edge, packed[member * bytes..].as_mut_ptr(), bytes);
    }
    let into = crate::collective::prepared::Kept(into.cast::<u8>());
    Ok(Prepared::exchange(exchange, move || {
        drop(own);
        if members == 0 || results == 0 {
            return;
        }
        // The results alone, each element with its extent; its bytes begin at its lower bound.
        let extent = of.bounds.extent();
        let room = extent.cast_unsigned() * results;
        let base = |memory: &mut Vec<u8>| memory.as_mut_ptr().wrapping_offset(-of.bounds.lb);
        let elements = |member: usize| {
            let mut memory = vec![0u8; room];
            let at = packed[member * bytes + first * of.size..].as_ptr();
            // SAFETY: the memory has the extents of so many elements.
            unsafe { of.unpack(at, results * of.size, base(&mut memory)) };
            memory
        };
        let mut result = elements(members - 1);
        for member in (0..members - 1).rev() {
            let lower = elements(member);
            combine(lower.as_ptr(), result.as_mut_ptr(), room, CombineOrder::FromFirst);
        }
        let mut packed = vec![0; results * of.size];
        // SAFETY: the contract of the call: so many elements may be written.
        unsafe {
            of.pack(base(&mut result), results, packed.as_mut_ptr());
            of.unpack(packed.as_ptr(), packed.len(), into.get());
        }
    }))
}
