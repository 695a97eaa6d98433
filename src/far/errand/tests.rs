use super::*;
use tsumugi_conformance::Seeded;
use tsumugi_core::tag::Tag;

const ASKS: Rank = Rank(0);
const SERVES: Rank = Rank(1);

fn add(tag: u64, value: u64) -> Op {
    let remote = RemoteAddr { offset: 8, rank: SERVES, key: RegionKey::new(3, 1) };
    Op::atomic(Kind::FetchAdd, remote, value).tagged(Tag::from_bits(tag))
}

fn ended(errands: &mut Errands) -> Vec<Completion> {
    let mut completions = [Completion::EMPTY; SLOTS];
    let count = errands.poll(&mut completions);
    completions[..count].to_vec()
}

/// What one sends, as far as there is room.
fn sent(errands: &mut Errands, room: usize) -> Vec<Vec<u8>> {
    let mut parcels = Vec::new();
    errands.send(|_, bytes| {
        if parcels.len() == room {
            return Sent::Full;
        }
        parcels.push(bytes.to_vec());
        Sent::Yes
    });
    parcels
}

#[test]
fn every_errand_is_done_once_through_a_narrow_door_in_any_order() {
    let (mut asks, mut serves) = (Errands::new(ASKS), Errands::new(SERVES));
    let (mut seeded, mut word, mut results) = (Seeded(5), 0_u64, Vec::new());
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let mut begun = 0;
    while results.len() < 1000 {
        while begun < 1000 && asks.begin(&add(begun, 1)) {
            begun += 1;
        }
        there.extend(sent(&mut asks, 3));
        back.extend(sent(&mut serves, 2));
        if !there.is_empty() {
            let parcel = there.swap_remove(seeded.below(there.len() as u64) as usize);
            let was_known = serves.handle(ASKS, &parcel, |op| {
                assert_eq!((op.remote.rank, op.kind, op.operand()), (SERVES, Kind::FetchAdd, 1));
                word += 1;
                Ok(word - 1)
            });
            assert!(was_known);
        }
        if !back.is_empty() {
            let parcel = back.swap_remove(seeded.below(back.len() as u64) as usize);
            assert!(asks.handle(SERVES, &parcel, |_| panic!("an answer asks for nothing")));
        }
        results.extend(ended(&mut asks).into_iter().map(|done| done.result.unwrap()));
    }
    results.sort_unstable();
    assert!(results.into_iter().eq(0..1000));
    assert_eq!((asks.unsent(), serves.unsent(), word), (0, 0, 1000));
}

#[test]
fn a_window_is_kept_and_more_is_not_answered() {
    let (mut asks, mut serves) = (Errands::new(ASKS), Errands::new(SERVES));
    for tag in 0..40 {
        assert!(asks.begin(&add(tag, 1)));
    }
    let parcels = sent(&mut asks, usize::MAX);
    assert_eq!((parcels.len(), asks.unsent()), (WINDOW as usize, 40 - WINDOW as usize));
    for parcel in &parcels {
        assert!(serves.handle(ASKS, parcel, |_| Ok(0)));
    }
    assert!(!serves.handle(ASKS, &parcels[0], |_| panic!("one too many")));
    assert!(serves.handle(Rank(2), &parcels[0], |_| Ok(0)), "another's window");
}

#[test]
fn errors_come_back_as_they_were() {
    let (mut asks, mut serves) = (Errands::new(ASKS), Errands::new(SERVES));
    let addr = add(0, 1).remote;
    let errors = [
        AddrError::StaleKey { addr },
        AddrError::OutOfRange { addr, bytes: 8, region_bytes: 12 },
        AddrError::Unaligned { addr, align: 8 },
        AddrError::ReadOnly { addr },
        AddrError::PeerLost { rank: SERVES },
    ];
    for error in errors {
        assert!(asks.begin(&add(7, 1)));
        let request = &sent(&mut asks, 1)[0];
        assert!(serves.handle(ASKS, request, |_| Err(error)));
        assert!(asks.handle(SERVES, &sent(&mut serves, 1)[0], |_| Ok(0)));
        let done = ended(&mut asks)[0];
        assert_eq!((done.tag, done.result), (Tag::from_bits(7), Err(error)));
    }
}

#[test]
fn a_loss_ends_what_is_under_way_and_what_is_not() {
    let mut asks = Errands::new(ASKS);
    for tag in 0..40 {
        assert!(asks.begin(&add(tag, 1)));
    }
    let late = sent(&mut asks, 5);
    asks.lose(|rank| rank == SERVES);
    let done = ended(&mut asks);
    let lost = Err(AddrError::PeerLost { rank: SERVES });
    assert!(done.len() == 40 && done.iter().all(|done| done.result == lost));
    assert_eq!(asks.unsent(), 0);
    let mut serves = Errands::new(SERVES);
    assert!(serves.handle(ASKS, &late[0], |_| Ok(0)));
    let answer = &sent(&mut serves, 1)[0];
    assert!(!asks.handle(SERVES, answer, |_| Ok(0)), "it comes too late");
    assert!(asks.begin(&add(1, 1)));
    asks.send(|_, _| Sent::Lost);
    assert_eq!(ended(&mut asks)[0].result, lost);
}

#[test]
fn hostile_bytes_do_nothing() {
    let (mut asks, mut serves) = (Errands::new(ASKS), Errands::new(SERVES));
    assert!(asks.begin(&add(1, 1)));
    let request = sent(&mut asks, 1).remove(0);
    for length in 0..request.len() {
        assert!(!serves.handle(ASKS, &request[..length], |_| panic!("{length} bytes")));
    }
    let mut seeded = Seeded(9);
    for _ in 0..20_000 {
        let mut bytes = request.clone();
        for _ in 0..=seeded.below(3) {
            bytes[seeded.below(16) as usize] = seeded.next() as u8;
        }
        bytes[0] = seeded.below(4) as u8;
        bytes.truncate(seeded.below(60) as usize);
        let from = Rank(seeded.below(3) as u32);
        serves.handle(from, &bytes, |op| {
            assert!(op.remote.rank == SERVES && op.width().is_some());
            Ok(0)
        });
        // Nobody but the one that was asked can answer, and only once.
        if from != SERVES {
            assert!(!asks.handle(from, &answer(id(255, 1), Ok(1)), |_| Ok(0)));
        }
        sent(&mut serves, usize::MAX);
    }
    assert!(ended(&mut asks).is_empty());
}
