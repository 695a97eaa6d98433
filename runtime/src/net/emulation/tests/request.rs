//! The format of requests and answers.

use super::*;

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
    bytes[REQUEST_BYTES + 3] = crate::net::emulation::request::JOINED;
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
