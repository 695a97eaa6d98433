//! Which of the three containers a table is.

/// The kind of the elements of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// Keys.
    Set,
    /// Keys with a count each.
    Multiset,
    /// Keys with one value each.
    Map,
}
