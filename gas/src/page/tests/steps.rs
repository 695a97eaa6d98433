//! The number of operations of a pin, and its pauses.

use super::super::gate::ReaderEpochs;
use super::*;

/// Runs a pin until its access is due, and returns its operations.
fn enters(own: &mut PagePin, words: &mut Words, mut pauses: impl FnMut(&mut Words)) -> Vec<Op> {
    let mut ops = Vec::new();
    loop {
        match own.act() {
            PageAction::Do(op) => {
                own.answer(Ok(words.carry_out(&op)));
                ops.push(op);
            }
            PageAction::Pause(_) => {
                pauses(words);
                own.answer(Ok(0));
            }
            PageAction::Access(_) => return ops,
            act => panic!("{act:?}"),
        }
    }
}

/// A first pin takes one operation to read the gate, one for the slot, one for the
/// list, one for the entry, two to store it; while the page is known, a pin takes
/// three; and each takes one to leave.
#[test]
fn a_hold_takes_its_minimum_of_operations() {
    for is_apart in [false, true] {
        let layout = layout(3, is_apart);
        let mut words = world(&layout, &[]);
        for (is_first, count) in [(true, 6), (false, 3)] {
            let mut own = PagePin::new(layout, MOVER, PAGE);
            let ops = enters(&mut own, &mut words, |_| panic!("no other rank is active"));
            assert_eq!(ops.len(), count, "{is_apart} {is_first}: {ops:?}");
            own.answer(Ok(0));
            let PageAction::Do(go) = own.act() else { panic!("{own:?}") };
            own.answer(Ok(words.carry_out(&go)));
            assert!(matches!(own.act(), PageAction::Over(_)));
        }
        assert!(PageLayout::may_hold(*words.at(layout.holders(PAGE)), MOVER));
    }
}

/// The pin pauses while the page moves, and while another page has the slot.
#[test]
fn a_hold_tries_again_after_a_pause() {
    let layout = layout(8, false);
    let moving = PageState::Moving { owner: FIRST.owner, frame: FIRST.frame, by: Rank(2) };
    let later = FIRST.moved(Rank(2), 1);
    for is_moving in [true, false] {
        let mut words = world(&layout, &[]);
        let gate = layout.gate(MOVER, PAGE);
        if is_moving {
            *words.at(layout.entry(PAGE)) = moving.to_bits();
        } else {
            *words.at(gate) = Gate::new(PageId(4), GateState::Valid, 1).to_bits();
        }
        let (mut own, mut pauses) = (PagePin::new(layout, MOVER, PAGE), 0);
        enters(&mut own, &mut words, |words| {
            pauses += 1;
            if pauses == 3 {
                *words.at(layout.entry(PAGE)) = later.to_bits();
                *words.at(gate) = 0;
            }
        });
        assert_eq!(pauses, 3);
        assert!(matches!(own.act(), PageAction::Access(entry) if entry == later));
    }
}

/// A frame beyond the first word of bits is taken and given back by its number.
#[test]
fn a_frame_of_a_later_word_is_numbered_across_words() {
    let homes = Homes::new(3, 3, Distribution::Block);
    let shape = PageShape { homes, page_bytes: 8, slots: 4, frames: 200 };
    let layout = PageLayout::new(shape, RegionKey::new(0, 1), 0).unwrap();
    let mut words = world(&layout, &[]);
    let bits = |words: &mut Words, frame| *words.at(layout.bit(MOVER, frame).0);
    *words.at(layout.bits(MOVER, 0)) = u64::MAX;
    *words.at(layout.bits(MOVER, 1)) = 0b111;
    let mut own = Relocation::new(layout, MOVER, PAGE);
    loop {
        match own.act() {
            PageAction::Do(op) => own.answer(Ok(words.carry_out(&op))),
            PageAction::Access(PageCopy { to, .. }) => {
                assert_eq!(to, layout.bytes(DirectoryEntry { owner: MOVER, frame: 67, epoch: 0 }));
                own.answer(Ok(0));
            }
            PageAction::Over(_) => break,
            act => panic!("{act:?}"),
        }
    }
    assert_eq!(bits(&mut words, 67), 0b1111);
    assert_eq!(
        PageState::from_bits(*words.at(layout.entry(PAGE))),
        PageState::At(FIRST.moved(MOVER, 67))
    );
}

/// A grace period that loses the turn to a new reader turns the phase that it finds then,
/// and waits for both readers.
#[test]
fn a_sweep_waits_for_a_reader_that_came_during_the_turn() {
    let layout = layout(1, false);
    let (mut own, mut words) = (GracePeriod::new(layout), Words(Vec::new()));
    let epochs = layout.reader_epochs(Rank(0));
    *words.at(epochs) = ReaderEpochs(0).come().0;
    let (mut lost, mut pauses) = (false, 0);
    loop {
        match own.act() {
            PageAction::Do(op) => {
                if op.kind == Kind::CompareSwap && !lost {
                    lost = true;
                    let now = ReaderEpochs(*words.at(epochs)).come().0;
                    *words.at(epochs) = now;
                }
                own.answer(Ok(words.carry_out(&op)));
            }
            PageAction::Pause(_) => {
                pauses += 1;
                // The first reader leaves, and later the second one.
                *words.at(epochs) -= ReaderEpochs::one(0);
                own.answer(Ok(0));
            }
            PageAction::Over(_) => break,
            act => panic!("{act:?}"),
        }
    }
    assert_eq!((pauses, ReaderEpochs(*words.at(epochs)).count(0)), (2, 0));
    assert_eq!(ReaderEpochs(*words.at(epochs)).phase(), 1, "the phase was turned once");
}
