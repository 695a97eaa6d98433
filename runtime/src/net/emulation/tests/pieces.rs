//! Puts and gets of memory, in pieces, and puts with a second operation.

use super::*;

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
