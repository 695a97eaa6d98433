//! Pages that move to the ranks that use them most, and back.

use tsumugi::array::{ArrayOptions, Distribution};
use tsumugi::{Error, Rank, Runtime};

/// Each page is used most by the rank after its first owner, and moves there; then one
/// page moves to the rank that a function chooses; then all pages return. They keep their
/// values. Collective.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    for first in [Distribution::Block, Distribution::Cyclic] {
        let options = ArrayOptions::new().page_len(PAGE_LEN).distribution(first);
        let pages = 4 * rt.size() as usize;
        let array = options.create::<u64>(rt, pages * PAGE_LEN)?;
        let uses = array.uses()?;
        let starts = || (0..pages).map(|page| page * PAGE_LEN);
        let next = |rank: Rank| Rank((rank.0 + 1) % rt.size());
        for at in starts() {
            // All ranks use the page; one of them uses it more than the others.
            let times = if next(array.first_owner(at)?) == rt.rank() { 3 } else { 1 };
            for _ in 0..times {
                array.fetch_add(at + 1, 1)?;
            }
            uses.note(at, times);
        }
        let moved = uses.to_most_used_by()?;
        assert_eq!(moved, if rt.size() == 1 { 0 } else { 4 });
        for at in starts() {
            assert_eq!(array.owner(at)?, next(array.first_owner(at)?), "{first:?}, {at}");
            assert_eq!(array.get(at + 1)?, u64::from(rt.size()) + 2);
        }
        rt.barrier()?;
        // No page has been used since.
        assert_eq!(uses.to_most_used_by()?, 0);
        uses.note(0, 1);
        let moved = uses.balance(|used| {
            assert_eq!((used.page, used.own), (array.page(0), 1));
            rt.rank() == Rank(0)
        })?;
        assert_eq!(moved, usize::from(rt.rank() == Rank(0) && rt.size() > 1));
        assert_eq!(array.owner(0)?, Rank(0));
        array.return_home()?;
        for at in starts() {
            assert_eq!(array.owner(at)?, array.first_owner(at)?);
        }
        rt.barrier()?;
    }
    Ok(())
}

const PAGE_LEN: usize = 5;
