//! What the checking mode knows of a call of a collective, to compare it with those of the other
//! members.

use crate::abi::{MPI_Datatype, MPI_Op};
use crate::object::datatype::DatatypeRef;
use crate::object::operation::OpRef;
use std::fmt;

/// What members of a collective must have in common, as far as the call says it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Shape {
    pub(crate) root: Option<u32>,
    pub(crate) op: Option<MPI_Op>,
    /// The datatype of the standard of which all elements are.
    pub(super) leaf: Option<MPI_Datatype>,
    pub(crate) bytes: Option<usize>,
    /// Other arguments, in words.
    pub(crate) details: String,
    pub(crate) flow: Option<(Flow, FlowUnit)>,
}

/// What a member sends to each, and what it wants from each. `None` is not compared.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) to: Vec<Option<usize>>,
    pub(crate) from: Vec<Option<usize>>,
}

/// What is counted in a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlowUnit {
    Bytes,
    Edges,
}

impl Flow {
    /// Bytes for the root alone.
    pub(crate) fn to_one(size: u32, root: u32, bytes: usize) -> Self {
        let mut flow = Self { to: vec![None; size as usize], from: vec![None; size as usize] };
        flow.to[root as usize] = Some(bytes);
        flow
    }

    /// Bytes from the root alone.
    pub(crate) fn from_one(size: u32, root: u32, bytes: usize) -> Self {
        let Self { to: from, from: to } = Self::to_one(size, root, bytes);
        Self { to, from }
    }

    /// Both lists, as words.
    pub(super) fn bytes(&self) -> Box<[u8]> {
        let word = |len: &Option<usize>| len.map_or(NONE, |len| len as u64);
        self.to.iter().chain(&self.from).flat_map(|len| word(len).to_le_bytes()).collect()
    }
}

impl Shape {
    /// The shape of a call. Elements that are bytes, or of several datatypes, are not compared.
    pub(crate) fn of(
        root: Option<u32>,
        datatype: Option<DatatypeRef>,
        bytes: Option<usize>,
        op: Option<MPI_Op>,
    ) -> Self {
        let leaf = datatype.and_then(|of| match of.leaves[..] {
            [(MPI_Datatype::BYTE | MPI_Datatype::PACKED, _)] => None,
            [(leaf, _)] => Some(leaf),
            _ => None,
        });
        // Handles of operations of the program differ between ranks.
        let op = op.map(|op| OpRef::given(op).map_or(MPI_Op::NULL, |_| op));
        Self { root, op, leaf, bytes, ..Self::default() }
    }

    /// The shape of a call with these arguments.
    pub(crate) fn detailed(details: String) -> Self {
        Self { details, ..Self::default() }
    }

    /// The shape of a call in which each member has edges to some, and from some.
    pub(crate) fn of_edges(edges: Flow) -> Self {
        Self { flow: Some((edges, FlowUnit::Edges)), ..Self::default() }
    }
}

/// Numbers, as details of a call.
pub(crate) fn numbers<T: fmt::Display>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// The word of what is not compared.
pub(super) const NONE: u64 = u64::MAX;
