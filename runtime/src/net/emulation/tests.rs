//! Operations that are emulated between two ranks, whose parcels a test carries by hand.

mod lost;
mod pieces;
mod put_off;
mod request;

use super::*;
use std::ptr::NonNull;
use tsumugi_conformance::Seeded;
use tsumugi_core::mem::{Access, LocalAddr, Need, RegionTable};
use tsumugi_core::tag::Tag;

const ASKS: Rank = Rank(0);
const SERVES: Rank = Rank(1);

/// The registered memory of one rank.
struct Memory {
    rank: Rank,
    table: RegionTable<4>,
}

impl Memory {
    fn new(rank: Rank) -> Self {
        Self { rank, table: RegionTable::new() }
    }
}

// SAFETY: a table of memory that outlives it in these tests.
unsafe impl LoadStore for Memory {
    fn size(&self) -> u32 {
        2
    }

    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError> {
        assert_eq!(addr.rank, self.rank);
        self.table.resolve(addr, bytes, need)
    }

    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError> {
        let addr = RemoteAddr { offset: addr.offset, rank: self.rank, key: addr.key };
        self.table.resolve(addr, bytes, Need::Local)
    }

    fn notify(&self, _: RemoteAddr, _: NonNull<u8>) {}
}

fn nothing() -> Memory {
    Memory::new(ASKS)
}

fn word(asked: EmulatedRequest<'_>) -> Op {
    match asked {
        EmulatedRequest::Word(op) => op,
        other => panic!("{other:?} is not a request for a word"),
    }
}

fn add(tag: u64, value: u64) -> Op {
    let remote = RemoteAddr { offset: 8, rank: SERVES, key: RegionKey::new(3, 1) };
    Op::atomic(Kind::FetchAdd, remote, value).tagged(Tag::from_bits(tag))
}

fn ended(emulation: &mut Emulation) -> Vec<Completion> {
    let mut completions = [Completion::EMPTY; SLOTS];
    let count = emulation.poll(&mut completions);
    completions[..count].to_vec()
}

/// The parcels that the emulation sends, as far as there is room.
fn sent(emulation: &mut Emulation, room: usize) -> Vec<Vec<u8>> {
    let mut parcels = Vec::new();
    emulation.send(
        &nothing(),
        |_| false,
        false,
        |_, bytes| {
            if parcels.len() == room {
                return Sent::Full;
            }
            parcels.push(bytes.to_vec());
            Sent::Yes
        },
    );
    parcels
}

/// A rank with its answers to so many requests.
fn owing(requests: usize, op: impl Fn(u64) -> Op) -> Emulation {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    for at in 0..requests {
        assert!(asks.begin(&op(at as u64), || None));
        let request = sent(&mut asks, 1).remove(0);
        assert!(serves.handle(ASKS, &request, &nothing(), |_| Ok(at as u64)));
    }
    serves
}

fn owed_request() -> Vec<u8> {
    let mut asks = Emulation::new(Rank(2));
    assert!(asks.begin(&add(0, 1), || None));
    sent(&mut asks, 1).remove(0)
}

#[test]
fn every_operation_is_done_once_with_little_room_in_any_order() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let (mut seeded, mut word, mut results) = (Seeded(5), 0_u64, Vec::new());
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let mut begun = 0;
    while results.len() < 1000 {
        while begun < 1000 && asks.begin(&add(begun, 1), || None) {
            begun += 1;
        }
        there.extend(sent(&mut asks, 3));
        back.extend(sent(&mut serves, 2));
        if !there.is_empty() {
            let parcel = there.swap_remove(seeded.below(there.len() as u64) as usize);
            let was_known = serves.handle(ASKS, &parcel, &nothing(), |asked| {
                let op = self::word(asked);
                assert_eq!((op.remote.rank, op.kind, op.operand()), (SERVES, Kind::FetchAdd, 1));
                word += 1;
                Ok(word - 1)
            });
            assert!(was_known);
        }
        if !back.is_empty() {
            let parcel = back.swap_remove(seeded.below(back.len() as u64) as usize);
            assert!(
                asks.handle(SERVES, &parcel, &nothing(), |_| panic!("an answer has no request"))
            );
        }
        results.extend(ended(&mut asks).into_iter().map(|done| done.result.unwrap()));
    }
    results.sort_unstable();
    assert!(results.into_iter().eq(0..1000));
    assert_eq!((asks.unsent(), serves.unsent(), word), (0, 0, 1000));
}

#[test]
fn requests_beyond_the_window_are_not_sent_or_served() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    for tag in 0..40 {
        assert!(asks.begin(&add(tag, 1), || None));
    }
    let parcels = sent(&mut asks, usize::MAX);
    assert_eq!((parcels.len(), asks.unsent()), (WINDOW as usize, 40 - WINDOW as usize));
    for parcel in &parcels {
        assert!(serves.handle(ASKS, parcel, &nothing(), |_| Ok(0)));
    }
    assert!(!serves.handle(ASKS, &parcels[0], &nothing(), |_| panic!("beyond the window")));
    assert!(serves.handle(Rank(2), &parcels[0], &nothing(), |_| Ok(0)), "another rank's window");
}

/// There is room for one parcel at a time, and a rank sends more requests than fit
/// through: own requests, and answers that were put off, go all the same.
#[test]
fn a_rank_with_many_requests_does_not_starve_others() {
    const FLOODS: Rank = Rank(2);
    let (mut floods, mut asks) = (Emulation::new(FLOODS), Emulation::new(ASKS));
    let mut serves = Emulation::new(SERVES);
    let own = RemoteAddr { rank: ASKS, ..add(0, 0).remote };
    let mut own_requests = 0;
    for round in 0..100 {
        while floods.begin(&add(round, 1), || None) {}
        for request in sent(&mut floods, usize::MAX) {
            assert!(serves.handle(FLOODS, &request, &nothing(), |_| Ok(0)));
        }
        // Now and then a request that notifies, and a request of its own.
        if round % 10 == 0 {
            assert!(asks.begin(&add(round, 1).notifying(), || None));
            let request = sent(&mut asks, 1).remove(0);
            assert!(serves.handle(ASKS, &request, &nothing(), |_| Ok(7)));
            assert!(serves.begin(&Op::atomic(Kind::FetchAdd, own, 1_u64), || None));
        }
        let mut gone = None;
        serves.send(
            &nothing(),
            |_| false,
            true,
            |to, parcel| match gone {
                Some(_) => Sent::Full,
                None => {
                    gone = Some((to, parcel.to_vec()));
                    Sent::Yes
                }
            },
        );
        match gone.expect("a parcel in each round") {
            (_, parcel) if parcel[0] == REQUEST => own_requests += 1,
            (FLOODS, parcel) => assert!(floods.handle(SERVES, &parcel, &nothing(), |_| panic!())),
            (_, parcel) => assert!(asks.handle(SERVES, &parcel, &nothing(), |_| panic!())),
        }
        ended(&mut floods);
    }
    assert_eq!((own_requests, ended(&mut asks).len()), (10, 10));
}

#[test]
fn no_request_goes_to_a_rank_for_which_the_device_holds_operations() {
    const OTHER: Rank = Rank(2);
    let mut asks = Emulation::new(ASKS);
    let remote = RemoteAddr { rank: OTHER, ..add(0, 0).remote };
    for op in [add(1, 1), Op::atomic(Kind::FetchAdd, remote, 1_u64), add(3, 1)] {
        assert!(asks.begin(&op, || None));
    }
    let went = |asks: &mut Emulation, held: Option<Rank>| {
        let mut went = Vec::new();
        asks.send(
            &nothing(),
            |rank| Some(rank) == held,
            false,
            |to, _| {
                went.push(to);
                Sent::Yes
            },
        );
        went
    };
    assert_eq!(went(&mut asks, Some(SERVES)), [OTHER]);
    assert_eq!(asks.unsent(), 2);
    assert_eq!(went(&mut asks, None), [SERVES; 2]);
}

#[test]
fn the_emulation_is_idle_if_nothing_waits() {
    let mut asks = Emulation::new(ASKS);
    assert!(asks.is_idle());
    assert!(asks.begin(&add(1, 1), || None));
    assert!(!asks.is_idle(), "a request");
    let request = sent(&mut asks, 1).remove(0);
    assert!(asks.is_idle(), "the answer is on its way");
    for notifies in [false, true] {
        let mut serves = owing(1, |at| if notifies { add(at, 1).notifying() } else { add(at, 1) });
        assert!(!serves.is_idle(), "an answer");
        assert_eq!(sent(&mut serves, 1).len(), 1);
        assert!(serves.is_idle());
    }
    let mut serves = Emulation::new(SERVES);
    assert!(serves.handle(ASKS, &request, &nothing(), |_| Ok(0)));
    assert!(asks.handle(SERVES, &sent(&mut serves, 1)[0], &nothing(), |_| Ok(0)));
    assert!(!asks.is_idle(), "a completion");
    assert_eq!(ended(&mut asks).len(), 1);
    assert!(asks.is_idle());
}

#[test]
fn the_reported_footprint_is_that_of_the_tables() {
    let Emulation { slots, free, unsent, ended, answers, patient, .. } = Emulation::new(ASKS);
    let bytes = slots.capacity() * size_of::<OriginSlot>()
        + (free.capacity() + unsent.capacity()) * size_of::<u16>()
        + ended.capacity() * size_of::<Completion>()
        + (answers.capacity() + patient.capacity()) * size_of::<EmulatedReply>();
    assert_eq!(footprint(), bytes + size_of::<RequestBytes>());
}
