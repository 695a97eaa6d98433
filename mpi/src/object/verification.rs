//! The checking mode of collectives: before each of them its members tell each other what they
//! call, and the call fails at all of them if two calls differ.
//!
//! ```text
//!  records: name, root, operation, elements, details ─► all members compare them with the first
//!  flows: what each sends to each, and wants         ─► all members compare both ends
//! ```
//!
//! Each exchange is an allgather of the same communicator. Records have one length for all calls.
//! Flows are exchanged by calls with a length for each member, after records that are equal.

use crate::abi::{self, MPI_Datatype, MPI_Op};
use crate::fault::{Answer, fail};
use crate::object::basic::basic;
use crate::object::communicator::CommRef;
use crate::object::operation::name_of;
use crate::object::shape::{FlowUnit, NONE, Shape};
use std::fmt;
use std::mem;
use tsumugi::group::StartedCollective;

/// A call of a member, as the others get it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Record([u8; RECORD]);

impl Record {
    fn new(name: &str, shape: &Shape) -> Self {
        let mut record = [0; RECORD];
        let name = name.strip_suffix("_c").unwrap_or(name).as_bytes();
        let len = name.len().min(NAME_MAX);
        record[..len].copy_from_slice(&name[..len]);
        let words = [
            shape.root.map_or(NONE, u64::from),
            shape.op.map_or(NONE, |op| op.0 as u64),
            shape.leaf.map_or(NONE, |leaf| leaf.0 as u64),
            shape.bytes.map_or(NONE, |bytes| bytes as u64),
            hash(&shape.details),
        ];
        let details = shape.details.as_bytes();
        let len = details.len().min(DETAILS_MAX);
        record[NAME_MAX..][..len].copy_from_slice(&details[..len]);
        for (at, word) in record[WORDS_FROM..].chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        Self(record)
    }

    fn name(&self) -> &str {
        text_of(&self.0[..NAME_MAX])
    }

    fn details(&self) -> &str {
        text_of(&self.0[NAME_MAX..WORDS_FROM])
    }

    fn words(&self) -> [Option<u64>; WORDS] {
        let mut words = [None; WORDS];
        for (word, bytes) in words.iter_mut().zip(self.0[WORDS_FROM..].as_chunks::<8>().0) {
            *word = Some(u64::from_le_bytes(*bytes)).filter(|word| *word != NONE);
        }
        words
    }

    /// Whether the two can be calls of one collective: what only one of them has is not
    /// compared.
    fn fits(&self, other: &Self) -> bool {
        let both = self.words().into_iter().zip(other.words());
        self.name() == other.name()
            && both.into_iter().all(|pair| !matches!(pair, (Some(one), Some(two)) if one != two))
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [root, op, leaf, bytes, _] = self.words();
        let mut parts = Vec::new();
        let leaf = leaf.and_then(|leaf| basic(MPI_Datatype(leaf as usize)));
        match (leaf, bytes) {
            (Some(leaf), Some(bytes)) => {
                let size = leaf.value.layout().0.max(1) as u64;
                parts.push(format!("{} {}", bytes / size, leaf.name));
            }
            (Some(leaf), None) => parts.push(leaf.name.to_owned()),
            (None, Some(bytes)) => parts.push(format!("{bytes} bytes")),
            (None, None) => {}
        }
        match op.map(|op| MPI_Op(op as usize)) {
            Some(MPI_Op::NULL) => parts.push("an operation of the program".to_owned()),
            Some(op) => parts.push(name_of(op).to_owned()),
            None => {}
        }
        parts.extend(root.map(|root| format!("root {root}")));
        parts.extend(Some(self.details().to_owned()).filter(|details| !details.is_empty()));
        f.write_str(self.name())?;
        if parts.is_empty() { Ok(()) } else { write!(f, "({})", parts.join(", ")) }
    }
}

/// Text up to its end.
fn text_of(bytes: &[u8]) -> &str {
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    str::from_utf8(&bytes[..len]).unwrap_or("what is no text")
}

/// FNV-1a; details that are cut are compared by it.
fn hash(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash & u64::MAX >> 1
}

/// What all members have told.
struct Told {
    /// `None`: they have.
    exchange: Option<StartedCollective>,
    // Boxes, because the exchange has their addresses.
    _own: Box<[u8]>,
    all: Box<[u8]>,
}

impl Told {
    /// Tells them, and waits until they have told.
    fn now(comm: &CommRef, own: Box<[u8]>) -> Answer<Self> {
        let mut all = vec![0; own.len() * comm.size() as usize].into_boxed_slice();
        let plan = comm.group.raw_allgather(own.len())?;
        // SAFETY: both buffers have the bytes of the plan until it has run.
        unsafe { plan.run(own.as_ptr(), all.as_mut_ptr(), None) }?;
        Ok(Self { exchange: None, _own: own, all })
    }

    /// Begins to tell them; `busy` is called while there is no room for it.
    fn begin(comm: &CommRef, own: Box<[u8]>, busy: impl FnMut()) -> Answer<Self> {
        let mut all = vec![0; own.len() * comm.size() as usize].into_boxed_slice();
        let plan = comm.group.raw_allgather(own.len())?;
        // SAFETY: both buffers have the bytes of the plan. What has begun is only dropped after
        // its end.
        let exchange = unsafe { plan.begin(own.as_ptr(), all.as_mut_ptr(), None, busy) }?;
        Ok(Self { exchange: Some(exchange), _own: own, all })
    }

    /// What `compare` finds, once all have told.
    fn look(&self, compare: impl FnOnce(&[u8]) -> Answer) -> Option<Answer> {
        let is_done = self.exchange.as_ref().is_none_or(StartedCollective::is_done);
        is_done.then(|| compare(&self.all))
    }

    /// Waits until all have told.
    fn wait(self, call: &'static str, compare: impl FnOnce(&[u8]) -> Answer) -> Answer {
        self.exchange.map_or(Ok(()), |exchange| exchange.wait_named(call))?;
        compare(&self.all)
    }
}

/// The flow that is told, if the call has one, and there are not too many ranks.
fn flow(comm: &CommRef, shape: &Shape) -> Option<(Box<[u8]>, FlowUnit)> {
    let flow = shape.flow.as_ref().filter(|_| comm.size() <= FLOW_RANKS_MAX);
    flow.map(|(flow, unit)| (flow.bytes(), *unit))
}

/// Compares a call with those of the other members, and waits for them.
pub(crate) fn verify(name: &str, comm: &CommRef, shape: &Shape) -> Answer {
    compare(&Told::now(comm, Box::new(Record::new(name, shape).0))?.all)?;
    match flow(comm, shape) {
        Some((flow, unit)) => compare_flows(&Told::now(comm, flow)?.all, unit),
        None => Ok(()),
    }
}

/// A comparison that has begun, for a collective that is not waited for yet.
pub(crate) struct Verification {
    records: Told,
    flows: Option<(Told, FlowUnit)>,
}

impl Verification {
    /// Begins a comparison; `busy` is called while there is no room for it.
    pub(crate) fn begin(
        name: &str,
        comm: &CommRef,
        shape: &Shape,
        mut busy: impl FnMut(),
    ) -> Answer<Self> {
        let records = Told::begin(comm, Box::new(Record::new(name, shape).0), &mut busy)?;
        let told = |(flow, unit)| Told::begin(comm, flow, busy).map(|told| (told, unit));
        match flow(comm, shape).map(told).transpose() {
            Ok(flows) => Ok(Self { records, flows }),
            Err(fault) => {
                // The exchange goes on, with its memory.
                mem::forget(records);
                Err(fault)
            }
        }
    }

    /// Whether all members have come, and their calls differ; `None`: not all have come.
    pub(crate) fn differs(&self) -> Option<bool> {
        match (self.records.look(compare)?, &self.flows) {
            (Err(_), _) => Some(true),
            (Ok(()), None) => Some(false),
            (Ok(()), Some((told, unit))) => {
                Some(told.look(|all| compare_flows(all, *unit))?.is_err())
            }
        }
    }

    /// Waits until all members have come.
    pub(crate) fn wait(self, call: &'static str) -> Answer {
        let Self { records, flows } = self;
        let compared = records.wait(call, compare);
        match flows {
            Some((told, unit)) if compared.is_ok() => {
                told.wait(call, |all| compare_flows(all, unit))
            }
            flows => {
                // Members with other calls may never tell theirs: the memory stays.
                mem::forget(flows);
                compared
            }
        }
    }
}

/// Compares the calls of all members with that of the first.
fn compare(all: &[u8]) -> Answer {
    let mut records = all.as_chunks::<RECORD>().0.iter().map(|record| Record(*record));
    let Some(first) = records.next() else { return Ok(()) };
    match records.enumerate().find(|(_, record)| !first.fits(record)) {
        None => Ok(()),
        Some((at, other)) => fail!(
            abi::ERR_NOT_SAME,
            "the calls differ: rank 0 calls {first}, and rank {} calls {other}",
            at + 1
        ),
    }
}

/// Compares what each member sends to each with what the receiver wants. A row has the lengths that
/// a member sends, and those that it wants.
fn compare_flows(all: &[u8], unit: FlowUnit) -> Answer {
    let words: Vec<u64> = all.as_chunks::<8>().0.iter().map(|of| u64::from_le_bytes(*of)).collect();
    let size = (words.len() / 2).isqrt();
    for (sender, row) in words.chunks_exact(2 * size).enumerate() {
        for (receiver, sent) in row[..size].iter().enumerate() {
            let wanted = words[(2 * receiver + 1) * size + sender];
            if *sent == wanted || *sent == NONE || wanted == NONE {
                continue;
            }
            let words = match unit {
                FlowUnit::Bytes => ["lengths", "bytes for", "wants", "of"],
                FlowUnit::Edges => ["edges", "to", "has", "from"],
            };
            let [what, to, has, from] = words;
            fail!(
                abi::ERR_NOT_SAME,
                "the {what} differ: rank {sender} has {sent} {to} rank {receiver}, which {has} \
                 {wanted} {from} it"
            );
        }
    }
    Ok(())
}

/// The longest name of a function has fewer bytes.
const NAME_MAX: usize = 48;
/// Other arguments are cut to so many bytes.
const DETAILS_MAX: usize = 64;
const WORDS_FROM: usize = NAME_MAX + DETAILS_MAX;
const WORDS: usize = 5;
const RECORD: usize = WORDS_FROM + WORDS * 8;
/// With more ranks lengths are not compared: each has those of all pairs.
const FLOW_RANKS_MAX: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::shape::Flow;

    #[test]
    fn what_both_calls_have_is_compared() {
        let shape = Shape {
            root: Some(1),
            leaf: Some(MPI_Datatype::INT),
            bytes: Some(16),
            ..Shape::default()
        };
        let one = Record::new("MPI_Bcast", &shape);
        assert_eq!(one.to_string(), "MPI_Bcast(4 MPI_INT, root 1)");
        assert!(one.fits(&Record::new("MPI_Bcast_c", &Shape { leaf: None, ..shape.clone() })));
        for other in [
            Record::new("MPI_Ibcast", &shape),
            Record::new("MPI_Bcast", &Shape { details: "x".repeat(65), ..shape.clone() }),
            Record::new("MPI_Bcast", &Shape { root: Some(0), ..shape.clone() }),
            Record::new("MPI_Bcast", &Shape { bytes: Some(12), ..shape.clone() }),
            Record::new("MPI_Bcast", &Shape { leaf: Some(MPI_Datatype::FLOAT), ..shape.clone() }),
        ] {
            assert!(!one.fits(&other), "{other}");
            let fault = compare(&[one.0, one.0, other.0].concat()).unwrap_err();
            assert!(fault.text.contains("and rank 2 calls MPI_"), "{}", fault.text);
        }
    }
    #[test]
    fn details_that_are_cut_are_compared() {
        let of = |details: &str| Record::new("MPI_Cart_create", &Shape::detailed(details.into()));
        assert_eq!(of("dims 2 3").to_string(), "MPI_Cart_create(dims 2 3)");
        let long = "1 ".repeat(100);
        assert!(of(&long).fits(&of(&long)) && !of(&long).fits(&of(&(long.clone() + "2"))));
    }

    #[test]
    fn both_ends_of_each_pair_are_compared() {
        let some = |lens: [usize; 2]| lens.map(Some).to_vec();
        let rows = |wanted| {
            let first = Flow { to: some([1, 2]), from: vec![Some(1), None] };
            let second = Flow { to: vec![Some(7), None], from: some([wanted, 9]) };
            [first.bytes(), second.bytes()].concat()
        };
        assert!(compare_flows(&rows(2), FlowUnit::Bytes).is_ok());
        for (unit, wanted) in [
            (
                FlowUnit::Bytes,
                "the lengths differ: rank 0 has 2 bytes for rank 1, which wants 3 of it",
            ),
            (FlowUnit::Edges, "the edges differ: rank 0 has 2 to rank 1, which has 3 from it"),
        ] {
            assert_eq!(&*compare_flows(&rows(3), unit).unwrap_err().text, wanted);
        }
        assert_eq!(Flow::from_one(2, 1, 5).from, [None, Some(5)]);
    }
}
