//! Algorithms that a job takes whatever the lengths and the members are: the thresholds of the
//! choice follow from measurements of these.
//!
//! ```text
//!  all=ring,far.broadcast=chain,gather=direct
//!  ─┬─ ─┬─  ─┬─ ────┬────
//!   │   │    │      └ of which collective; `all`: of each that has the algorithm
//!   │   │    └ among members on several nodes, or the leaders of nodes;
//!   │   │      `near`: among members that share memory; neither: among both
//!   │   └ the algorithm; `nodes`, `direct`: whether members on several nodes go by nodes;
//!   │     `auto`: what the choice takes
//!   └ later words have precedence
//! ```

/// A collective, as the choice of its algorithm distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollKind {
    /// Barrier.
    Barrier,
    /// Broadcast.
    Broadcast,
    /// Reduce to one member.
    Reduce,
    /// Reduce to all members.
    Allreduce,
    /// Scan, inclusive or exclusive.
    Scan,
    /// Gather and scatter.
    Rooted,
    /// Allgather.
    Allgather,
    /// Alltoall.
    Alltoall,
    /// Reduce, and scatter the result.
    ReduceScatter,
}

/// An algorithm that can be forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollAlgorithm {
    /// Rows of cells, for values that fit; each member reads all that it needs.
    Rows,
    /// Rows of cells; one member reads those of all, and publishes the result.
    RootedRows,
    /// A binomial tree.
    Tree,
    /// Each member by itself.
    Flat,
    /// A chain in pieces.
    Chain,
    /// A tree spreads the blocks, and a ring gathers them.
    Spread,
    /// Dissemination.
    Dissemination,
    /// Recursive doubling.
    Doubling,
    /// Recursive halving.
    Halving,
    /// A ring.
    Ring,
    /// Bruck's algorithm.
    Bruck,
    /// Each pair in a round of its own.
    Pairwise,
}

/// What is forced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollForced {
    near: [Option<CollAlgorithm>; KINDS],
    far: [Option<CollAlgorithm>; KINDS],
    by_nodes: [Option<bool>; KINDS],
}

/// A word that forces nothing, and the words that stand at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownWord<'t> {
    /// The word.
    pub word: &'t str,
    /// Those that are known.
    pub choices: &'static [&'static str],
}

impl CollKind {
    /// All of them.
    pub const ALL: [Self; KINDS] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Scan,
        Self::Rooted,
        Self::Allgather,
        Self::Alltoall,
        Self::ReduceScatter,
    ];

    /// The name, as in `broadcast=chain`.
    pub const fn name(self) -> &'static str {
        PLACES[self as usize]
    }

    /// The words for its algorithms, and for whether it goes by nodes.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Barrier => &["rows", "rooted_rows", "dissemination", "nodes", "direct"],
            Self::Broadcast => &["rows", "tree", "flat", "chain", "spread", "nodes", "direct"],
            Self::Reduce => &["rows", "tree", "nodes", "direct"],
            Self::Allreduce => {
                &["rows", "rooted_rows", "doubling", "halving", "ring", "nodes", "direct"]
            }
            Self::Scan => &["rows", "doubling"],
            Self::Rooted => &["rows", "tree", "flat", "nodes", "direct"],
            Self::Allgather => &["rows", "doubling", "bruck", "ring", "nodes", "direct"],
            Self::Alltoall => &["rows", "bruck", "pairwise", "nodes", "direct"],
            Self::ReduceScatter => &["rows", "halving", "pairwise", "nodes", "direct"],
        }
    }
}

impl CollAlgorithm {
    const ALL: [Self; 12] = [
        Self::Rows,
        Self::RootedRows,
        Self::Tree,
        Self::Flat,
        Self::Chain,
        Self::Spread,
        Self::Dissemination,
        Self::Doubling,
        Self::Halving,
        Self::Ring,
        Self::Bruck,
        Self::Pairwise,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::RootedRows => "rooted_rows",
            Self::Tree => "tree",
            Self::Flat => "flat",
            Self::Chain => "chain",
            Self::Spread => "spread",
            Self::Dissemination => "dissemination",
            Self::Doubling => "doubling",
            Self::Halving => "halving",
            Self::Ring => "ring",
            Self::Bruck => "bruck",
            Self::Pairwise => "pairwise",
        }
    }
}

impl CollForced {
    /// Nothing is forced.
    pub const NONE: Self =
        Self { near: [None; KINDS], far: [None; KINDS], by_nodes: [None; KINDS] };

    /// Reads words with commas between them.
    ///
    /// # Errors
    ///
    /// The first word that is not known; the whole text if that word is empty.
    pub fn parse(text: &str) -> Result<Self, UnknownWord<'_>> {
        let mut forced = Self::NONE;
        for word in text.split(',').map(str::trim) {
            let shown = if word.is_empty() { text } else { word };
            forced.take(word).map_err(|unknown| UnknownWord { word: shown, ..unknown })?;
        }
        Ok(forced)
    }

    /// Forces the word `algorithm` of one collective, near and far.
    ///
    /// # Errors
    ///
    /// The collective has no such word.
    pub fn with(mut self, kind: CollKind, algorithm: &str) -> Result<Self, UnknownWord<'_>> {
        self.set(kind, algorithm, [true; 2])?;
        Ok(self)
    }

    fn take<'t>(&mut self, word: &'t str) -> Result<(), UnknownWord<'t>> {
        let (place, algorithm) = word.split_once('=').unwrap_or((word, ""));
        let (sides, name) = match place.split_once('.') {
            Some(("near", name)) => ([true, false], name),
            Some(("far", name)) => ([false, true], name),
            Some(_) => return Err(UnknownWord { word, choices: &SIDES }),
            None => ([true; 2], place),
        };
        if name == ALL {
            let has_it = |kind: &CollKind| algorithm == AUTO || kind.words().contains(&algorithm);
            if !CollKind::ALL.iter().any(has_it) {
                return Err(UnknownWord { word, choices: &EVERY });
            }
            let those = CollKind::ALL.into_iter().filter(has_it);
            return those.into_iter().try_for_each(|kind| self.set(kind, algorithm, sides));
        }
        let kind = CollKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or(UnknownWord { word, choices: &PLACES })?;
        self.set(kind, algorithm, sides).map_err(|unknown| UnknownWord { word, ..unknown })
    }

    fn set<'t>(
        &mut self,
        kind: CollKind,
        word: &'t str,
        [near, far]: [bool; 2],
    ) -> Result<(), UnknownWord<'t>> {
        let (at, choices) = (kind as usize, kind.words());
        if word != AUTO && !choices.contains(&word) {
            return Err(UnknownWord { word, choices });
        }
        let algorithm = CollAlgorithm::ALL.into_iter().find(|algorithm| algorithm.name() == word);
        if algorithm.is_some() || word == AUTO {
            if near {
                self.near[at] = algorithm;
            }
            if far {
                self.far[at] = algorithm;
            }
        }
        // Nodes matter to members that do not share memory.
        if algorithm.is_none() && (word != AUTO || far) {
            self.by_nodes[at] = (word != AUTO).then_some(word == BY_NODES);
        }
        Ok(())
    }

    /// The algorithm among members that share memory, or that do not.
    pub(super) const fn algorithm(&self, kind: CollKind, is_near: bool) -> Option<CollAlgorithm> {
        let side = if is_near { &self.near } else { &self.far };
        side[kind as usize]
    }

    /// Whether members on several nodes go by nodes.
    pub(super) const fn goes_by_nodes(&self, kind: CollKind) -> Option<bool> {
        self.by_nodes[kind as usize]
    }
}

const KINDS: usize = 9;
/// The names, the word for all of them, and how those of one side are written.
const PLACES: [&str; KINDS + 3] = [
    "barrier",
    "broadcast",
    "reduce",
    "allreduce",
    "scan",
    "gather",
    "allgather",
    "alltoall",
    "reduce_scatter",
    ALL,
    SIDES[0],
    SIDES[1],
];
const SIDES: [&str; 2] = ["near.COLLECTIVE", "far.COLLECTIVE"];
const ALL: &str = "all";
/// Nothing is forced.
const AUTO: &str = "auto";
const BY_NODES: &str = "nodes";
/// All words for algorithms.
const EVERY: [&str; 14] = [
    "rows",
    "rooted_rows",
    "tree",
    "flat",
    "chain",
    "spread",
    "dissemination",
    "doubling",
    "halving",
    "ring",
    "bruck",
    "pairwise",
    BY_NODES,
    "direct",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_force_algorithms_near_and_far() {
        let forced = CollForced::parse("all=ring, far.broadcast=chain,gather=direct").unwrap();
        let of = |kind, is_near| forced.algorithm(kind, is_near);
        for kind in [CollKind::Allreduce, CollKind::Allgather] {
            assert_eq!([true, false].map(|near| of(kind, near)), [Some(CollAlgorithm::Ring); 2]);
        }
        assert_eq!(of(CollKind::Broadcast, false), Some(CollAlgorithm::Chain));
        assert_eq!((of(CollKind::Broadcast, true), of(CollKind::Scan, true)), (None, None));
        let by_nodes = |kind| forced.goes_by_nodes(kind);
        assert_eq!((by_nodes(CollKind::Rooted), by_nodes(CollKind::Barrier)), (Some(false), None));
    }

    #[test]
    fn auto_forces_nothing() {
        let parse = |text| CollForced::parse(text).unwrap();
        assert_eq!(parse("all=auto"), CollForced::NONE);
        assert_eq!(parse("all=ring,allgather=direct,all=auto"), CollForced::NONE);
        assert_eq!(parse("broadcast=chain,near.broadcast=auto"), parse("far.broadcast=chain"));
        assert_eq!(parse("gather=nodes,near.gather=auto"), parse("gather=nodes"));
        assert_eq!(parse("gather=nodes,far.gather=auto"), CollForced::NONE);
    }

    #[test]
    fn an_unknown_word_names_what_is_known() {
        for (text, word, choice) in [
            ("broadcast=chian", "broadcast=chian", "chain"),
            ("all=tree,brodcast=tree", "brodcast=tree", "broadcast"),
            ("all=trees", "all=trees", "tree"),
            ("scan=ring", "scan=ring", "doubling"),
            ("fra.scan=doubling", "fra.scan=doubling", "far.COLLECTIVE"),
            ("brodcast=tree", "brodcast=tree", "near.COLLECTIVE"),
            ("all=ring,", "all=ring,", "broadcast"),
            (",", ",", "broadcast"),
            ("broadcast", "broadcast", "spread"),
            ("", "", "broadcast"),
        ] {
            let unknown = CollForced::parse(text).unwrap_err();
            assert_eq!(unknown.word, word);
            assert!(unknown.choices.contains(&choice), "{text}: {unknown:?}");
        }
    }

    #[test]
    fn every_algorithm_is_one_of_some_collective() {
        for word in EVERY {
            assert!(CollKind::ALL.iter().any(|kind| kind.words().contains(&word)), "{word}");
        }
        for (kind, name) in CollKind::ALL.into_iter().zip(PLACES) {
            assert_eq!(kind.name(), name);
            for word in kind.words() {
                assert!(EVERY.contains(word), "{word}");
                assert_ne!(CollForced::NONE.with(kind, word), Ok(CollForced::NONE));
            }
        }
    }
}
