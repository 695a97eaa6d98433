//! The states of a request: its own, that of its offer, and that of a split copy.

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestState {
    Free,
    /// A send that has found no room.
    Waiting,
    /// A send that was announced: the receiver has the place of the bytes.
    Told,
    /// A send, while its bytes are copied into the peer's buffer.
    Pushing,
    /// A send, while its bytes are copied into a receive of the peer's board.
    Claiming,
    /// A send, while its bytes go through slots.
    Streaming,
    /// A receive without a message.
    Posted,
    /// A receive, while the sender copies the bytes, or sends them through slots.
    Coming,
    /// A receive that copies the bytes itself.
    Fetching,
    /// A receive that copies the bytes together with the sender.
    Helping,
    /// Only a last packet is left to send.
    Closing,
    Ended,
}

/// Whether the source has a posted receive as an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferState {
    No,
    /// The source should get the offer, and an earlier receive prevents that.
    Held,
    /// The source will get the offer with the next packet.
    Ripe,
    Yes,
    /// The source has the offer, and was asked to forget it. The entry is not
    /// free before the answer, even if the receive has ended.
    Cancelling,
}

/// The packet that a request must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuePacket {
    Nothing,
    Copied,
    Fin,
    Cts,
    Cancel,
    Data,
}

/// How far a message that both sides copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitProgress {
    /// One side copies it, or no copy has begun.
    No,
    /// This side copies, or will.
    Copying,
    /// This side copies, and the other side has reported the end of its part.
    Heard,
    /// At a sender: the receiver still reads its buffer. At a receiver: the
    /// sender waits for the report that the receiver does not read its buffer any
    /// more.
    Owed,
}
