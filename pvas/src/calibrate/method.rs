//! The methods of moving bytes that are measured.

/// How bytes get from one core's memory to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransferMethod {
    /// Inside the lines that are polled.
    Inline,
    /// Through slots, by two copies that overlap.
    Bounce,
    /// The giver copies, with plain stores.
    Push,
    /// The giver copies, in short pieces.
    Pieces,
    /// The giver copies, with plain stores, and announces two halves.
    Halves,
    /// The same, with each half in short pieces.
    HalvesInPieces,
    /// The giver copies, with streaming stores.
    Stream,
    /// The taker copies, with plain stores.
    Pull,
    /// Both threads copy, from either end.
    Both,
}
