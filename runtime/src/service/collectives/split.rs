//! Splitting a group: the members agree on a context number for the new groups.

use super::buffers::CollBuffers;
use super::group::GroupHandle;
use super::row_table::RowOffer;
use super::rows::GroupRows;
use crate::error::Error;
use tsumugi_core::coll::CollError;
use tsumugi_core::coll::schedule::{Blocks, BufferSpan, CollBuffer, CollPlan};
use tsumugi_core::mem::Rank;

impl GroupHandle {
    /// Claims a context number that is free at all members. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), and [`CollError::NoContext`].
    pub fn claim_context(&self) -> Result<u16, Error> {
        let service = self.service();
        let mut from = 0;
        loop {
            let free = service.contexts().first_free(from);
            let number = self.combine_words(free.unwrap_or(u32::MAX).into(), u64::max)? as u32;
            if number == u32::MAX {
                return Err(Error::Coll(CollError::NoContext));
            }
            // Another thread may have claimed it for another group meanwhile.
            let is_mine = service.contexts().claim(number);
            let all = self.combine_words(is_mine.into(), u64::min);
            match all {
                Ok(1) => return Ok(number as u16),
                _ if is_mine => service.contexts().free(number),
                _ => {}
            }
            all?;
            from = number + 1;
        }
    }

    /// Makes groups of the members that bring the same color; in each group the order
    /// is that of the keys, and of the places here for equal ones. `None` for a member
    /// without a color. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`claim_context`](Self::claim_context).
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>, Error> {
        let color = color.map_or(u64::MAX, u64::from);
        let offer = self.service().rows().offer(self.service().member());
        let split = self.split_with(color, key, offer);
        let kept = match &split {
            Ok(Some((_, Some(row)))) => 1 << row,
            _ => 0,
        };
        self.service().rows().take_back(offer.free & !kept);
        Ok(split?.map(|(group, _)| group))
    }

    /// The new group, and which of the rows that were offered it uses.
    fn split_with(
        &self,
        color: u64,
        key: i64,
        offer: RowOffer,
    ) -> Result<Option<(Self, Option<usize>)>, Error> {
        let own = [color, key.cast_unsigned(), offer.free, offer.top];
        let mut all = vec![[0u64; 4]; self.size() as usize];
        let bytes = size_of_val(&own);
        let (span, total) = (BufferSpan::first(CollBuffer::Input, bytes), size_of_val(&*all));
        let blocks = Blocks::Even { bytes };
        let at = self.me() as usize * bytes;
        let mut plan = CollPlan::default();
        self.choice().allgather(&mut plan, self.member(), span, at, total, blocks);
        let mut scratch = vec![0u64; plan.scratch_bytes().div_ceil(size_of::<u64>())];
        let buffers = CollBuffers {
            input: (&raw const own).cast(),
            output: all.as_mut_ptr().cast(),
            scratch: scratch.as_mut_ptr().cast(),
        };
        // SAFETY: local buffers, of the sizes of the plan.
        unsafe { self.run(&plan, &self.tables(), &buffers, None) }?;
        let context = self.claim_context()?;
        let mut members: Vec<(i64, u32)> = (0..)
            .zip(&all)
            .filter(|(_, [other, ..])| *other == color)
            .map(|(member, [_, key, ..])| (key.cast_signed(), member))
            .collect();
        if color == u64::MAX {
            self.service().contexts().free(context.into());
            return Ok(None);
        }
        members.sort_unstable();
        let me = members.iter().position(|(_, member)| *member == self.me());
        let me = me.expect("this rank has this color") as u32;
        let ranks: Box<[Rank]> = members.iter().map(|(_, member)| self.rank_of(*member)).collect();
        let offers = all.iter().filter(|[other, ..]| *other == color);
        let free = offers.clone().fold(u64::MAX, |free, [_, _, offered, _]| free & offered);
        let base = offers.map(|[.., top]| *top).max().unwrap_or(0);
        let row = (free != 0).then_some(free.trailing_zeros() as usize);
        let in_row = |row| GroupRows::new(self.service(), ranks.iter().copied(), me, (row, base));
        let rows = row.and_then(in_row);
        let row = row.filter(|_| rows.is_some());
        Ok(Some((self.part(context, ranks, me, rows), row)))
    }
}
