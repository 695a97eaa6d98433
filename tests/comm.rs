//! Messages by source and tag, on ranks that are threads.

use tsumugi as api;
use tsumugi::comm::Message;
use tsumugi::{Comm, Error, MessageError, Rank, Received, Runtime, Source, Tags, run_ranks};

#[path = "job/mixture.rs"]
mod mixture;

fn two(main: impl Fn(&Runtime, &Comm, Rank) -> Result<(), Error> + Sync) {
    run_ranks(2, |rt: &Runtime| main(rt, &rt.comm(), Rank(1 - rt.rank().0))).unwrap();
}

#[test]
fn any_length_arrives_from_and_into_any_memory() {
    two(|rt, comm, peer| {
        for bytes in [0, 1, 8, 31, 32, 33, 88, 89, 200, 201, 2048, 8192, 8193, 100_000, 3 << 20] {
            for (inside, into_inside) in
                [(true, true), (true, false), (false, true), (false, false)]
            {
                let value = |at: usize| (at * 7 + bytes) as u8;
                if rt.rank() == Rank(0) {
                    let values: Vec<u8> = (0..bytes).map(value).collect();
                    if inside {
                        let mut buf = rt.buffer(bytes)?;
                        buf.copy_from_slice(&values);
                        comm.send(peer, 1, &buf)?;
                    } else {
                        comm.send(peer, 1, &values)?;
                    }
                } else {
                    let mut vector = vec![0; bytes];
                    let mut buf = rt.buffer(bytes)?;
                    let into = if into_inside { &mut buf[..] } else { &mut vector[..] };
                    let received = comm.recv(peer, 1, into)?;
                    assert_eq!(received, Received { source: peer, tag: 1, bytes });
                    assert!(
                        into.iter().enumerate().all(|(at, byte)| *byte == value(at)),
                        "{bytes}"
                    );
                }
            }
        }
        Ok(())
    });
}

#[test]
fn a_message_too_long_for_its_buffer_is_an_error_and_the_next_one_is_not() {
    two(|rt, comm, peer| {
        for bytes in [10u32, 1000, 20_000, 100_000] {
            let room = bytes as usize - 3;
            if rt.rank() == Rank(0) {
                comm.send(peer, bytes, &vec![5u8; bytes as usize])?;
                comm.send(peer, bytes, &rt.buffer::<u8>(bytes as usize)?)?;
                comm.send(peer, bytes, b"next")?;
            } else {
                let mut into = rt.buffer::<u8>(room)?;
                let error = comm.recv(peer, bytes, &mut into).unwrap_err();
                assert_eq!(
                    error.to_string(),
                    format!(
                        "a message of {bytes} bytes from rank 0 with tag {bytes} does not fit in a \
                         buffer of {room} bytes"
                    )
                );
                assert!(into.iter().all(|byte| *byte == 5), "the beginning arrives");
                assert!(comm.recv(peer, bytes, &mut vec![0u8; room]).is_err());
                let mut next = [0u8; 4];
                assert_eq!(comm.recv(peer, bytes, &mut next)?.bytes, 4);
                assert_eq!(&next, b"next");
            }
        }
        Ok(())
    });
}

/// The messages are too long to be there without the receiver, and its only worker computes
/// until all have come.
#[test]
fn a_rank_that_computes_takes_the_long_messages_of_many_peers() {
    const RANKS: u32 = 12;
    run_ranks(RANKS, |rt| {
        let (comm, count) = (rt.comm(), rt.starter(Rank(0)));
        for round in 1..=5 {
            if rt.rank() > Rank(0) {
                comm.send(Rank(0), round, &rt.buffer::<u8>(64 << 10)?)?;
                rt.add(count, 1)?;
            } else {
                let into = |peer| Ok(comm.irecv(Rank(peer), round, rt.buffer::<u8>(64 << 10)?)?);
                let handles: Result<Vec<_>, Error> = (1..RANKS).map(into).collect();
                while rt.get(count)? < u64::from(round * (RANKS - 1)) {
                    std::hint::spin_loop();
                }
                for handle in handles? {
                    handle.wait()?;
                }
            }
            rt.barrier()?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_rank_sends_to_itself() {
    two(|rt, comm, _| {
        let own = rt.rank();
        comm.send(own, 1, &[1u32, 2, 3])?;
        comm.send(own, 2, &[4u32])?;
        let mut one = [0u32];
        assert_eq!(comm.recv(own, 2, &mut one)?.bytes, 4);
        let (received, values) = comm.recv_vec::<u32>(Source::Any, Tags::Any)?;
        assert_eq!((received.tag, values, one), (1, vec![1, 2, 3], [4]));
        let long = vec![9u8; 1 << 20];
        let mut into = vec![0u8; 1 << 20];
        let received = comm.send_recv(own, 3, &long, own, 3, &mut into)?;
        assert_eq!((received.bytes, &into), (1 << 20, &long));
        Ok(())
    });
}

#[test]
fn communicators_do_not_mix() {
    two(|rt, comm, peer| {
        let other = comm.duplicate()?;
        if rt.rank() == Rank(0) {
            comm.send(peer, 1, b"first")?;
            other.send(peer, 1, b"other")?;
        } else {
            let mut bytes = [0u8; 5];
            other.recv(Source::Any, Tags::Any, &mut bytes)?;
            assert_eq!(&bytes, b"other");
            assert!(other.try_probe(Source::Any, Tags::Any).is_none());
            comm.recv(Source::Any, Tags::Any, &mut bytes)?;
            assert_eq!(&bytes, b"first");
        }
        Ok(())
    });
}

#[test]
fn a_probe_finds_the_message_that_is_received() {
    two(|rt, comm, peer| {
        if rt.rank() == Rank(0) {
            comm.send(peer, 5, &[1.5f64, 2.5])?;
            comm.send(peer, 6, &[1u8; 7])?;
        } else {
            let found = comm.probe(Source::Any, Tags::Is(5))?;
            assert_eq!((found.bytes, found.values::<f64>()), (16, Some(2)));
            assert_eq!(comm.try_probe(peer, 5), Some(found));
            let (_, values) = comm.recv_vec::<f64>(found.source, found.tag)?;
            assert_eq!(values, [1.5, 2.5]);
            let uneven = comm.recv_vec::<u32>(peer, 6).unwrap_err();
            assert_eq!(
                uneven.to_string(),
                "a message of 7 bytes from rank 0 with tag 6 is not a multiple of 4 bytes, the \
                 size of a value"
            );
            assert_eq!(comm.try_probe(Source::Any, Tags::Any), None);
        }
        Ok(())
    });
}

#[test]
fn a_probe_finds_a_message_that_another_receive_has_polled() {
    two(|rt, comm, peer| {
        if rt.rank() == Rank(0) {
            for round in 0..200u32 {
                let prober = rt.spawn(move |rt| rt.comm().probe(peer, 1 + round));
                comm.send(peer, 0, &[round])?;
                // Takes the probed message out of the lane, too.
                comm.recv(peer, 0, &mut [0u32])?;
                assert_eq!(prober.join().unwrap()?.tag, 1 + round);
                comm.recv(peer, 1 + round, &mut [0u8; 3])?;
            }
        } else {
            for round in 0..200u32 {
                comm.recv(peer, 0, &mut [0u32])?;
                comm.send(peer, 1 + round, &[7u8; 3])?;
                comm.send(peer, 0, &[round])?;
            }
        }
        Ok(())
    });
}

#[test]
fn wait_any_returns_the_first_message() {
    two(|rt, comm, peer| {
        if rt.rank() == Rank(0) {
            let handles = [7, 8, 9].map(|tag| comm.irecv(peer, tag, vec![0u64; 1]).unwrap());
            comm.send(peer, 1, b"go")?;
            let all: Vec<&dyn Message> = handles.iter().map(|one| one as &dyn Message).collect();
            assert_eq!(comm.wait_any(&all), 1);
            comm.send(peer, 1, b"go")?;
            comm.wait_all(&all);
            let values = handles.map(|handle| handle.wait().unwrap().1[0]);
            assert_eq!(values, [70, 80, 90]);
        } else {
            comm.recv(peer, 1, &mut [0u8; 2])?;
            comm.send(peer, 8, &[80u64])?;
            comm.recv(peer, 1, &mut [0u8; 2])?;
            comm.send(peer, 9, &[90u64])?;
            comm.send(peer, 7, &[70u64])?;
        }
        Ok(())
    });
}

#[test]
fn a_cancelled_receive_takes_nothing() {
    two(|rt, comm, peer| {
        if rt.rank() == Rank(0) {
            for bytes in [8, 4096] {
                let handle = comm.irecv(peer, 3, rt.buffer::<u8>(bytes)?)?;
                handle.cancel();
                assert_eq!(handle.wait().unwrap_err(), MessageError::Cancelled);
            }
            comm.send(peer, 1, b"go")?;
            let mut bytes = rt.buffer::<u8>(4096)?;
            assert_eq!(comm.recv(peer, 3, &mut bytes)?.bytes, 4096);
        } else {
            comm.recv(peer, 1, &mut [0u8; 2])?;
            comm.send(peer, 3, &rt.buffer::<u8>(4096)?)?;
        }
        Ok(())
    });
}

#[test]
fn a_flood_is_held_at_its_source_and_nothing_is_lost() {
    const MESSAGES: u32 = 5000;
    two(|rt, comm, peer| {
        if rt.rank() == Rank(0) {
            let sender = rt.spawn(move |rt| {
                let comm = rt.comm();
                (0..MESSAGES).try_for_each(|number| comm.send(peer, 2, &[number; 50]))
            });
            // The flood, which the receiver does not take yet, must not delay this message.
            comm.send(peer, 1, &rt.buffer::<u8>(100_000)?)?;
            sender.join().unwrap()?;
        } else {
            comm.recv(peer, 1, &mut rt.buffer::<u8>(100_000)?)?;
            for number in 0..MESSAGES {
                let mut values = [0u32; 50];
                comm.recv(peer, 2, &mut values)?;
                assert_eq!(values, [number; 50]);
            }
        }
        Ok(())
    });
}

#[test]
fn a_thousand_ults_exchange_messages_at_once() {
    const ULTS: u32 = 1000;
    two(|rt, _, peer| {
        let talk = move |rt: &Runtime, number: u32| -> Result<(), MessageError> {
            let comm = rt.comm();
            let mut values = [0u32; 30];
            for round in 0..5 {
                comm.send_recv(peer, number, &[number + round; 30], peer, number, &mut values)?;
                assert_eq!(values, [number + round; 30]);
            }
            Ok(())
        };
        let ults: Vec<_> = (0..ULTS).map(|number| rt.spawn(move |rt| talk(rt, number))).collect();
        ults.into_iter().try_for_each(|ult| ult.join().unwrap())?;
        Ok(())
    });
}

#[test]
fn a_rank_that_does_not_exist_is_named() {
    two(|_, comm, _| {
        let error = comm.send(Rank(2), 1, b"").unwrap_err();
        assert_eq!(error, MessageError::NoSuchRank { rank: Rank(2), size: 2 });
        assert_eq!(error.to_string(), "rank 2 does not exist: the job has 2 ranks");
        let error = comm.recv(Rank(7), 1, &mut [0u8]).unwrap_err();
        assert_eq!(error, MessageError::NoSuchRank { rank: Rank(7), size: 2 });
        assert!(comm.probe(Rank(7), Tags::Any).is_err());
        Ok(())
    });
}

#[test]
fn a_scope_ends_after_its_messages() {
    two(|_, comm, peer| {
        let (sent, mut received) = ([[1u16; 40], [2; 40]], [[0u16; 40]; 2]);
        for _ in 0..3 {
            received = [[0; 40]; 2];
            let [first, second] = &mut received;
            comm.scope(|scope| {
                let handle = scope.irecv(peer, 1, first)?;
                scope.irecv(peer, 2, second)?;
                scope.isend(peer, 2, &sent[1])?;
                scope.isend(peer, 1, &sent[0])?;
                scope.wait_all()?;
                let (got, values) = handle.wait()?;
                assert_eq!((got.tag, values[39]), (1, 1));
                Ok::<_, MessageError>(())
            })?;
            assert_eq!(received, sent);
        }
        assert_eq!(received, sent);
        // A receive without a message is cancelled when the scope unwinds.
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            comm.scope(|scope| {
                let _handle = scope.irecv(peer, 99, &mut received[0]).unwrap();
                panic!("the scope unwinds");
            })
        }));
        assert!(panic.is_err());
        Ok(())
    });
}

#[test]
fn random_messages_follow_the_rules() {
    run_ranks(3, |rt: &Runtime| mixture::play(rt, 5000, 100)).unwrap();
}
