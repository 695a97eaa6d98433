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

fn ended(errands: &mut Emulation) -> Vec<Completion> {
    let mut completions = [Completion::EMPTY; SLOTS];
    let count = errands.poll(&mut completions);
    completions[..count].to_vec()
}

/// The parcels that errands send, as far as there is room.
fn sent(errands: &mut Emulation, room: usize) -> Vec<Vec<u8>> {
    let mut parcels = Vec::new();
    errands.send(
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

#[test]
fn every_errand_is_done_once_with_little_room_in_any_order() {
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

#[test]
fn errors_are_the_same_after_encoding() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let addr = add(0, 1).remote;
    let errors = [
        AddrError::StaleKey { addr },
        AddrError::OutOfRange { addr, bytes: 8, region_bytes: Some(12) },
        AddrError::Unaligned { addr, align: 8 },
        AddrError::ReadOnly { addr },
        AddrError::PeerLost { rank: SERVES },
    ];
    for error in errors {
        assert!(asks.begin(&add(7, 1), || None));
        let request = &sent(&mut asks, 1)[0];
        assert!(serves.handle(ASKS, request, &nothing(), |_| Err(error)));
        assert!(asks.handle(SERVES, &sent(&mut serves, 1)[0], &nothing(), |_| Ok(0)));
        let done = ended(&mut asks)[0];
        assert_eq!((done.tag, done.result), (Tag::from_bits(7), Err(error)));
    }
}

#[test]
fn a_loss_ends_requests_in_flight_and_unsent_ones() {
    let mut asks = Emulation::new(ASKS);
    for tag in 0..40 {
        assert!(asks.begin(&add(tag, 1), || None));
    }
    let late = sent(&mut asks, 5);
    asks.lose(|rank| (rank == SERVES).then_some(rank));
    let done = ended(&mut asks);
    let lost = Err(AddrError::PeerLost { rank: SERVES });
    assert!(done.len() == 40 && done.iter().all(|done| done.result == lost));
    assert_eq!(asks.unsent(), 0);
    let mut serves = Emulation::new(SERVES);
    assert!(serves.handle(ASKS, &late[0], &nothing(), |_| Ok(0)));
    let answer = &sent(&mut serves, 1)[0];
    assert!(!asks.handle(SERVES, answer, &nothing(), |_| Ok(0)), "the answer comes too late");
    assert!(asks.begin(&add(1, 1), || None));
    asks.send(&nothing(), |_| false, false, |_, _| Sent::Lost(Rank(9)));
    let because = Err(AddrError::PeerLost { rank: Rank(9) });
    assert_eq!(ended(&mut asks)[0].result, because);
}

#[test]
fn hostile_bytes_do_nothing() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    assert!(asks.begin(&add(1, 1), || None));
    let request = sent(&mut asks, 1).remove(0);
    for length in 0..request.len() {
        assert!(!serves.handle(ASKS, &request[..length], &nothing(), |_| panic!("{length} bytes")));
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
        serves.handle(from, &bytes, &nothing(), |asked| match asked {
            EmulatedRequest::Word(op) => {
                assert!(op.remote.rank == SERVES && op.width().is_some());
                Ok(0)
            }
            // The thread that serves a request checks its address.
            EmulatedRequest::Put(addr, ..)
            | EmulatedRequest::Joined(addr, ..)
            | EmulatedRequest::Get(addr, _) => Err(AddrError::StaleKey { addr }),
        });
        // An answer counts only if it comes from the target.
        if from != SERVES {
            let mut answer = [ANSWER; ANSWER_BYTES];
            answer[4..8].copy_from_slice(&id(0, 1).to_le_bytes());
            assert!(!asks.handle(from, &answer, &nothing(), |_| Ok(0)));
        }
        sent(&mut serves, usize::MAX);
    }
    assert!(ended(&mut asks).is_empty());
}

#[test]
fn memory_moves_in_pieces() {
    for pieces in 1..4 {
        let whole = pieces * PIECE_BYTES;
        for long in [whole - 1, whole, whole + 1, whole + 100] {
            moves_in_pieces(long);
        }
    }
}

fn moves_in_pieces(long: usize) {
    let (here, there) = (Memory::new(ASKS), Memory::new(SERVES));
    let mut own: Vec<u8> = (0..long).map(|at| (at * 7) as u8).collect();
    let mut theirs = vec![0; long + 8];
    let register = |memory: &Memory, bytes: &mut [u8], access| {
        let base = NonNull::from(&mut *bytes).cast();
        // SAFETY: the vectors outlive the tables' use.
        unsafe { memory.table.register(base, bytes.len() as u64, access) }.unwrap().key
    };
    let local = LocalAddr { key: register(&here, &mut own, Access::Local), offset: 0 };
    let key = register(&there, &mut theirs, Access::ReadWrite);
    let remote = RemoteAddr { offset: 8, rank: SERVES, key };
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let mut carry = |op: Op, served: &mut dyn FnMut(EmulatedRequest<'_>)| {
        assert!(asks.begin(&op, || None));
        loop {
            let (mut to, mut back) = (Vec::new(), Vec::new());
            asks.send(
                &here,
                |_| false,
                false,
                |_, bytes| {
                    to.push(bytes.to_vec());
                    Sent::Yes
                },
            );
            for parcel in to {
                let serve = |asked: EmulatedRequest<'_>| {
                    served(asked);
                    match asked {
                        EmulatedRequest::Put(to, bytes, _) => {
                            tsumugi_core::backend::store_bytes(&there, to, bytes).map(|()| 0)
                        }
                        EmulatedRequest::Get(from, bytes) => {
                            there.resolve(from, bytes, Need::Read).map(|_| 0)
                        }
                        EmulatedRequest::Word(_) | EmulatedRequest::Joined(..) => {
                            panic!("no word was requested")
                        }
                    }
                };
                assert!(serves.handle(ASKS, &parcel, &there, serve));
            }
            serves.send(
                &there,
                |_| false,
                false,
                |_, bytes| {
                    back.push(bytes.to_vec());
                    Sent::Yes
                },
            );
            for parcel in back {
                assert!(asks.handle(SERVES, &parcel, &here, |_| panic!("an answer")));
            }
            if let [done] = ended(&mut asks)[..] {
                return done.result;
            }
        }
    };
    let mut notified = Vec::new();
    let put = Op::put(local, remote, long as u64).notifying();
    let result = carry(put, &mut |asked| {
        if let EmulatedRequest::Put(_, _, notify) = asked {
            notified.push(notify);
        }
    });
    let last = long.div_ceil(PIECE_BYTES) - 1;
    let expected: Vec<bool> = (0..=last).map(|piece| piece == last).collect();
    assert_eq!((result, notified), (Ok(0), expected), "{long} bytes");
    assert_eq!(carry(Op::get(remote.add(1), local, long as u64 - 1), &mut |_| {}), Ok(0));
    assert_eq!(carry(Op::get(remote, local, 0), &mut |_| {}), Ok(0));
    let beyond = carry(Op::put(local, remote.add(1), long as u64), &mut |_| {});
    assert!(matches!(beyond, Err(AddrError::OutOfRange { .. })), "{beyond:?}");
    assert!(theirs[..8] == [0; 8] && (0..long).all(|at| theirs[8 + at] == (at * 7) as u8));
    assert!((1..long).all(|at| own[at - 1] == (at * 7) as u8));
}

/// A put and the word behind it are one parcel with one answer, and the thread that
/// is notified goes first: the answer waits.
#[test]
fn a_put_and_its_atomic_are_one_parcel() {
    let here = Memory::new(ASKS);
    let mut own = vec![7u8; JOINED_BYTES as usize];
    let base = NonNull::from(&mut own[..]).cast();
    // SAFETY: the vector outlives the table's use.
    let region = unsafe { here.table.register(base, JOINED_BYTES, Access::Local) }.unwrap();
    let to = RemoteAddr { offset: 8, rank: SERVES, key: RegionKey::new(4, 1) };
    for bytes in [0, 8, JOINED_BYTES] {
        let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
        let put = Op::put(LocalAddr { key: region.key, offset: 0 }, to, bytes);
        let then = add(0, 5).notifying();
        assert!(asks.begin(&put.tagged(Tag::from_bits(1)), || Some(then)));
        let mut parcels = Vec::new();
        let mut keep = |_: Rank, bytes: &[u8]| {
            parcels.push(bytes.to_vec());
            Sent::Yes
        };
        asks.send(&here, |_| false, true, &mut keep);
        assert_eq!(parcels.len(), 1);
        let request = parcels.remove(0);
        for length in 0..request.len() {
            let cut = &request[..length];
            assert!(!serves.handle(ASKS, cut, &nothing(), |_| panic!("{length} bytes")));
        }
        let serve = |asked: EmulatedRequest<'_>| match asked {
            EmulatedRequest::Joined(at, found, word) => {
                assert_eq!((at, found), (to, &own[..bytes as usize]));
                assert_eq!((word.remote, word.operand()), (then.remote, 5));
                assert!(word.notify && word.kind == Kind::FetchAdd);
                Ok(3)
            }
            other => panic!("{other:?}"),
        };
        assert!(serves.handle(ASKS, &request, &nothing(), serve));
        serves.send(&nothing(), |_| false, true, |_, _| panic!("the answer is put off"));
        assert!(!serves.is_idle() && serves.unsent() == 1);
        for _ in 0..PATIENCE {
            assert!(sent(&mut serves, 1).is_empty());
        }
        let answer = sent(&mut serves, 1).remove(0);
        assert!(asks.handle(SERVES, &answer, &here, |_| panic!("an answer")));
        assert_eq!(ended(&mut asks)[0].result, Ok(3));
    }
}

/// Notified threads are busy, and parcels come all the time.
#[test]
fn an_answer_that_is_put_off_is_sent_in_the_end() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    assert!(asks.begin(&add(1, 1).notifying(), || None));
    let request = &sent(&mut asks, 1)[0];
    assert!(serves.handle(ASKS, request, &nothing(), |_| Ok(3)));
    let mut gone = 0;
    let mut tries = 0;
    while gone == 0 {
        serves.send(
            &nothing(),
            |_| false,
            true,
            |_, _| {
                gone += 1;
                Sent::Yes
            },
        );
        tries += 1;
    }
    assert_eq!((gone, tries), (1, u32::from(PUT_OFF_MAX) + 1));
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

/// After a lack of room for an answer that was put off, one parcel of each kind is sent
/// first; then answers are sent before requests.
#[test]
fn after_a_lack_of_room_one_parcel_of_each_kind_goes_first() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let own = RemoteAddr { rank: ASKS, ..add(0, 0).remote };
    for (at, is_patient) in [true, false, false, false].into_iter().enumerate() {
        let op = add(at as u64, 1);
        assert!(asks.begin(&if is_patient { op.notifying() } else { op }, || None));
        let request = sent(&mut asks, 1).remove(0);
        assert!(serves.handle(ASKS, &request, &nothing(), |_| Ok(at as u64)));
    }
    for _ in 0..3 {
        assert!(serves.begin(&Op::atomic(Kind::FetchAdd, own, 1_u64), || None));
    }
    assert!(sent(&mut serves, 0).is_empty());
    let value = |parcel: &Vec<u8>| (parcel[0] == ANSWER).then(|| parcel[8]);
    let went: Vec<_> = sent(&mut serves, 3).iter().map(value).collect();
    assert_eq!(went, [Some(0), Some(1), None]);
    let went: Vec<_> = sent(&mut serves, MANY).iter().map(value).collect();
    assert_eq!(went, [Some(2), None, Some(3), None]);
    assert_eq!(serves.unsent(), 0);
}

/// Only an answer that was put off is left, and finds no room: it goes before what comes
/// meanwhile. One that has gone leaves answers their place before those that are put off.
#[test]
fn an_answer_that_was_put_off_and_finds_no_room_goes_first() {
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let mut asked = |serves: &mut Emulation, at: u64, notifies: bool| {
        let op = add(at, 1);
        assert!(asks.begin(&if notifies { op.notifying() } else { op }, || None));
        let request = sent(&mut asks, 1).remove(0);
        assert!(serves.handle(ASKS, &request, &nothing(), |_| Ok(at)));
    };
    let values = |serves: &mut Emulation, room| -> Vec<u8> {
        sent(serves, room).iter().map(|parcel| parcel[8]).collect()
    };
    asked(&mut serves, 0, true);
    assert_eq!(values(&mut serves, 0), []);
    asked(&mut serves, 1, false);
    asked(&mut serves, 2, false);
    assert_eq!(values(&mut serves, MANY), [0, 1, 2]);
    asked(&mut serves, 3, true);
    assert_eq!(values(&mut serves, MANY), [3]);
    asked(&mut serves, 4, true);
    asked(&mut serves, 5, false);
    assert_eq!(values(&mut serves, MANY), [5, 4]);
    assert_eq!(serves.unsent(), 0);
}

/// What the parser of requests does not accept, although it is well-formed in parts.
#[test]
fn a_request_of_another_form_is_refused() {
    let own = [7u8; 8];
    let here = Memory::new(ASKS);
    let base = NonNull::from(&own).cast();
    // SAFETY: the array outlives the table's use, which only reads it.
    let region = unsafe { here.table.register(base, 8, Access::Local) }.unwrap();
    let local = LocalAddr { key: region.key, offset: 0 };
    let to = add(0, 0).remote;
    let parcel = |op: Op, then: Option<Op>| {
        let mut room = [0; REQUEST_BYTES + PIECE_BYTES];
        request(&op, then.as_ref(), 2, 0, &here, &mut room).unwrap().to_vec()
    };
    let is_good = |bytes: &[u8]| parse_request(bytes, SERVES).is_some();
    let joined = |then: Op| parcel(Op::put(local, to, 8), Some(then));
    let word = add(0, u64::MAX);
    assert!(is_good(&joined(word)) && is_good(&parcel(word, None)));
    assert!(is_good(&joined(Op::put_word(to, Width::W2, 9))));
    assert!(!is_good(&joined(Op::get_word(to, Width::W8))), "it changes nothing");
    assert!(!is_good(&joined(Op::put(local, to, 0))), "it is on no word");
    // The second request says that it has one of its own.
    let mut bytes = joined(word);
    bytes[REQUEST_BYTES + 3] = request::JOINED;
    assert!(!is_good(&bytes));
    // The first one is no put of memory.
    for (at, value) in [(1, Kind::Get as u8), (1, Kind::Swap as u8), (2, 8)] {
        let mut bytes = joined(word);
        bytes[at] = value;
        assert!(!is_good(&bytes), "byte {at} is {value}");
    }
    for bytes in [Op::put(local, to, 8), Op::put(local, to, 8).notifying()] {
        let mut long = parcel(bytes, None);
        assert!(is_good(&long));
        long.push(7);
        assert!(!is_good(&long), "a byte too many");
    }
    for (bytes, good) in [(PIECE_BYTES, true), (PIECE_BYTES + 1, false)] {
        for notify in [0, 1] {
            let mut get = parcel(Op::get(to, local, 8), None);
            get[3] = notify;
            get[24..32].copy_from_slice(&(bytes as u64).to_le_bytes());
            assert_eq!(is_good(&get), good, "a get of {bytes} bytes, notify {notify}");
        }
    }
}

/// A parcel is built where another one was: the bytes between its fields are zero.
#[test]
fn a_parcel_has_no_bytes_of_another_one() {
    let mut room = [0xff; REQUEST_BYTES + PIECE_BYTES];
    let bytes = request(&add(0, 1), None, 0, 0, &nothing(), &mut room).unwrap();
    assert_eq!((bytes.len(), &bytes[12..16]), (REQUEST_BYTES, &[0; 4][..]));
    let answer = EmulatedReply { to: ASKS, id: 9, result: Ok(5), patience: 0, bytes: None };
    let mut room = [0xff; REQUEST_BYTES + PIECE_BYTES];
    let bytes = answer.write(&nothing(), &mut room);
    assert_eq!(bytes, [ANSWER, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
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

/// How many answers go while something has just come.
fn go_at_once(serves: &mut Emulation) -> usize {
    let mut gone = 0;
    serves.send(
        &nothing(),
        |_| false,
        true,
        |_, _| {
            gone += 1;
            Sent::Yes
        },
    );
    gone
}

#[test]
fn answers_are_not_put_off_if_they_are_many() {
    let many = WINDOW as usize / 2;
    for (count, gone) in [(many - 1, 0), (many, many)] {
        let mut serves = owing(count, |at| add(at, 1).notifying());
        assert_eq!(go_at_once(&mut serves), gone, "{count} answers");
        assert_eq!(serves.unsent(), count - gone);
    }
}

#[test]
fn each_answer_is_put_off_as_long() {
    let mut serves = owing(1, |at| add(at, 1).notifying());
    let again = owing(1, |at| add(at, 1).notifying()).patient;
    for _ in 0..2 {
        let mut put_off = 0;
        while go_at_once(&mut serves) == 0 {
            put_off += 1;
        }
        assert_eq!(put_off, PUT_OFF_MAX);
        serves.patient.extend(again.iter());
    }
    // Patience is lost only where nothing has come.
    serves.patient[0].patience = 2;
    assert_eq!((go_at_once(&mut serves), go_at_once(&mut serves)), (0, 0));
    let gone: Vec<_> = (0..3).map(|_| sent(&mut serves, 1).len()).collect();
    assert_eq!(gone, [0, 0, 1]);
}

/// A thread waits for the answer to a put that notifies, and for no answer to a put with a
/// second operation.
#[test]
fn an_answer_for_which_a_thread_waits_goes_before_one_that_frees_a_place() {
    let here = Memory::new(ASKS);
    let base = NonNull::from(&[7u8; 8]).cast();
    // SAFETY: the bytes are constant, and only read.
    let region = unsafe { here.table.register(base, 8, Access::Local) }.unwrap();
    let put = |at| Op::put(LocalAddr { key: region.key, offset: 0 }, add(0, 0).remote, at);
    let (mut asks, mut serves) = (Emulation::new(ASKS), Emulation::new(SERVES));
    let begun = [(put(1), Some(add(1, 1))), (put(2).notifying(), None), (put(3), None)];
    for (value, (op, then)) in (1..).zip(begun) {
        assert!(asks.begin(&op, || then));
        asks.send(
            &here,
            |_| false,
            false,
            |_, request| {
                assert!(serves.handle(ASKS, request, &nothing(), |_| Ok(value)));
                Sent::Yes
            },
        );
    }
    let patience = |answers: &VecDeque<EmulatedReply>| -> Vec<_> {
        answers.iter().map(|answer| (answer.result, answer.patience)).collect()
    };
    assert_eq!(patience(&serves.answers), [(Ok(3), 0)]);
    assert_eq!(patience(&serves.patient), [(Ok(2), 0), (Ok(1), PATIENCE)]);
}

#[test]
fn errands_are_idle_if_nothing_waits() {
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

/// New requests to a lost rank end, however many were under way; and it is owed nothing.
#[test]
fn nothing_is_kept_of_a_lost_rank() {
    let lost = |rank| (rank == ASKS || rank == SERVES).then_some(rank);
    for notifies in [false, true] {
        let op = |at| if notifies { add(at, 1).notifying() } else { add(at, 1) };
        let mut serves = owing(3, op);
        assert!(serves.handle(Rank(2), &owed_request(), &nothing(), |_| Ok(0)));
        serves.lose(lost);
        assert_eq!((serves.unsent(), serves.owed.get(&0), serves.owed[&2]), (1, None, 1));
    }
    let mut asks = Emulation::new(ASKS);
    for tag in 0..u64::from(WINDOW) {
        assert!(asks.begin(&add(tag, 1), || None));
    }
    assert_eq!(sent(&mut asks, MANY).len(), WINDOW as usize);
    asks.lose(lost);
    assert_eq!(ended(&mut asks).len(), WINDOW as usize);
    assert!(asks.begin(&add(99, 1), || None));
    asks.send(&nothing(), |_| false, false, |to, _| Sent::Lost(to));
    assert_eq!(ended(&mut asks)[0].result, Err(AddrError::PeerLost { rank: SERVES }));
    assert!(asks.is_idle());
}

fn owed_request() -> Vec<u8> {
    let mut asks = Emulation::new(Rank(2));
    assert!(asks.begin(&add(0, 1), || None));
    sent(&mut asks, 1).remove(0)
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
