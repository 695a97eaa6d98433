//! Operations that go in one parcel with a put, from when they are begun until the
//! link takes them. Such an operation is on a word of the same rank, and is carried
//! out after the put's bytes have landed.
//!
//! The engine carries one descriptor; it has the number of a place in this table.
//!
//! Progress: a short lock.

use std::sync::{Mutex, PoisonError};
use tsumugi_core::op::Op;

/// The table. See the module.
#[derive(Debug)]
pub(super) struct Joined(Mutex<[Option<Op>; PLACES]>);

impl Joined {
    pub(super) const fn new() -> Self {
        Self(Mutex::new([None; PLACES]))
    }

    /// Keeps an operation. Returns its number, which is not 0, or `None` if there is
    /// no room.
    pub(super) fn keep(&self, op: &Op) -> Option<u8> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = places.iter().position(Option::is_none)?;
        places[at] = Some(*op);
        Some(at as u8 + 1)
    }

    /// Takes the operation with that number; no operation has number 0.
    pub(super) fn take(&self, along: u8) -> Option<Op> {
        let at = usize::from(along).checked_sub(1)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at)?.take()
    }
}

/// More than a rank's part in the global memory has under way would be waste.
const PLACES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use tsumugi_core::mem::{Rank, RemoteAddr};
    use tsumugi_core::mem::{RegionKey, Width};

    #[test]
    fn a_number_belongs_to_one_operation_until_it_is_taken() {
        let joined = Joined::new();
        let op = |offset| {
            let at = RemoteAddr { offset, rank: Rank(0), key: RegionKey::new(0, 1) };
            Op::get_word(at, Width::W8)
        };
        let numbers: Vec<u8> = (0..PLACES as u64).map(|at| joined.keep(&op(at)).unwrap()).collect();
        assert_eq!(joined.keep(&op(0)), None);
        assert!(joined.take(0).is_none() && joined.take(u8::MAX).is_none());
        assert_eq!(joined.take(numbers[5]).unwrap().remote.offset, 5);
        assert!(joined.take(numbers[5]).is_none());
        assert_eq!(joined.keep(&op(9)), Some(numbers[5]));
    }
}
