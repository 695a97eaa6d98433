//! Pages that move, explored exhaustively and run on a network that does its
//! worst.
//!
//! | hazard | where |
//! |---|---|
//! | O1 to O11 by atomics alone, every interleaving of small programs | `words` |

mod desk;
mod history;
mod messages;
mod random;
mod words;
#[path = "../../../core/tests/explore/search.rs"]
#[allow(dead_code)]
mod search;
