//! Adopted memory that is mapped, dropped and mapped again at one address. A put sends
//! the bytes of the new pages, and not those of pages that were registered with the
//! device before.

use std::ptr::{NonNull, null_mut};
use tsumugi::{Adoptable, Error, Rank, Runtime};

/// Pages from the system.
struct Mapping(NonNull<u64>);

impl Mapping {
    /// Maps new pages, at the address `at` if there is one.
    fn new(at: Option<NonNull<u64>>) -> Self {
        let fixed = at.map_or(0, |_| libc::MAP_FIXED_NOREPLACE);
        let wanted = at.map_or(null_mut(), NonNull::as_ptr);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        // SAFETY: the call maps new pages and replaces none.
        let place = unsafe {
            libc::mmap(wanted.cast(), BYTES, access, flags | libc::MAP_ANONYMOUS | fixed, -1, 0)
        };
        assert_ne!(place, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Self(NonNull::new(place.cast()).expect("mapped"))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages belong to this value, and no reference to them is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES) };
    }
}

// SAFETY: the pages belong to the value until it is dropped.
unsafe impl Adoptable for Mapping {
    type Value = u64;
    fn values(&self) -> &[u64] {
        // SAFETY: the pages are mapped as long as `self`, which is borrowed.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), WORDS) }
    }
    fn values_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), WORDS) }
    }
}

/// In each round, each rank puts its values to the next rank and gets them back.
pub fn play(rt: &Runtime, rounds: u64) -> Result<(), Error> {
    let words = rt.share::<u64>(WORDS)?;
    let next = words.at(Rank((rt.rank().0 + 1) % rt.size()), 0);
    let before = rt.network_counts().unwrap_or_default();
    let mut place = None;
    for round in 0..rounds {
        let expected =
            |rank: u32| (0..WORDS as u64).map(move |at| at ^ round << 40 | u64::from(rank) << 32);
        let mut mapping = Mapping::new(place);
        place = Some(mapping.0);
        mapping
            .values_mut()
            .iter_mut()
            .zip(expected(rt.rank().0))
            .for_each(|(to, value)| *to = value);
        let mut values = rt.adopt(mapping);
        rt.put_slice(next, &values)?;
        rt.barrier()?;
        let mut own = vec![0; WORDS];
        let from = (rt.rank().0 + rt.size() - 1) % rt.size();
        rt.get_slice(words.own().at(0), &mut own)?;
        assert!(own.into_iter().eq(expected(from)), "round {round}");
        values.fill(0);
        rt.get_slice(next, &mut values)?;
        assert!(values.iter().copied().eq(expected(rt.rank().0)), "round {round}");
        rt.barrier()?;
    }
    let after = rt.network_counts().unwrap_or_default();
    let (shown, bounced) = (after.shown - before.shown, after.bounced - before.bounced);
    let times = format!("{rounds} times mapped at one place");
    crate::roles::say(&format!("{times}: {shown} times shown, {bounced} bytes copied"));
    Ok(())
}

const WORDS: usize = 1 << 17;
const BYTES: usize = WORDS * size_of::<u64>();
