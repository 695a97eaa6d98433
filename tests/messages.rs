//! Active messages: calls of handlers and services of other ranks, on ranks that are
//! threads.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use tsumugi::{AddrError, CallError, Error, Rank, Runtime, Until, run_ranks};

const ECHO: u32 = 1;
const COUNT: u32 = 2;
const BROKEN: u32 = 3;
const SERVICE: u32 = 4;
const SIZE: u32 = 5;
const NOBODY: u32 = 99;

fn reversed(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().rev().copied().collect()
}

#[test]
fn a_call_brings_an_answer() {
    run_ranks(3, |rt: &Runtime| {
        rt.handler(ECHO, |message| reversed(message.bytes));
        rt.handler(BROKEN, |_| -> [u8; 0] { panic!("the test panics here") });
        rt.handler(SIZE, |_| [0; 225]);
        rt.barrier()?;
        for to in rt.ranks() {
            assert_eq!(rt.call(to, ECHO, b"silk")?, b"klis");
            assert_eq!(rt.call(to, ECHO, b"")?, b"");
            assert_eq!(rt.call(to, ECHO, &[7; 224])?, [7; 224]);
            let failed = rt.call(to, BROKEN, b"").unwrap_err();
            assert!(matches!(failed, Error::Call(CallError::Failed)), "{failed}");
            let failed = rt.call(to, SIZE, b"").unwrap_err();
            assert!(matches!(failed, Error::Call(CallError::Failed)), "{failed}");
            let unknown = rt.call(to, NOBODY, b"").unwrap_err();
            assert_eq!(unknown.to_string(), "handler 99 is not registered at the called rank");
        }
        let nobody = rt.call(Rank(3), ECHO, b"").unwrap_err();
        let wanted = AddrError::NoSuchRank { rank: Rank(3), size: 3 };
        assert!(matches!(nobody, Error::Addr(error) if error == wanted), "{nobody}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn long_payloads_are_read_where_they_are() {
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        rt.handler(SIZE, |message| {
            let sum: u64 = message.bytes.iter().map(|byte| u64::from(*byte)).sum();
            [message.bytes.len() as u64, sum].map(u64::to_le_bytes).concat()
        });
        rt.barrier()?;
        let wanted = |len: u64| [len, 3 * len].map(u64::to_le_bytes).concat();
        for len in [225, 10_000, 256 << 10] {
            assert_eq!(rt.call(peer, SIZE, &vec![3; len])?, wanted(len as u64));
        }
        let mut buf = rt.buffer::<u8>(5000)?;
        buf.fill(3);
        let (buf, answer) = rt.call_buffer(peer, SIZE, buf)?;
        assert_eq!((buf.len(), answer), (5000, wanted(5000)));
        let limit = Duration::from_secs(60);
        assert_eq!(rt.call_timeout(peer, SIZE, &[3; 300], limit)?, wanted(300));
        rt.cast(peer, SIZE, &[3; 300])?;
        let too_long = rt.call(peer, SIZE, &vec![3; (256 << 10) + 1]).unwrap_err();
        let said = "a message of 262145 bytes is too long: the limit is 262144 bytes";
        assert_eq!(too_long.to_string(), said);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn messages_of_one_rank_are_handled_in_their_order() {
    const MESSAGES: u64 = 2000;
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        let (send, receive) = mpsc::channel();
        rt.handler(COUNT, move |message| {
            send.send(u64::from_le_bytes(message.bytes[..8].try_into().unwrap())).unwrap();
            []
        });
        rt.barrier()?;
        for number in 0..MESSAGES {
            let bytes = number.to_le_bytes();
            match number % 97 {
                0 => rt.cast(peer, COUNT, &[bytes; 40].concat())?,
                1 => assert_eq!(rt.call(peer, COUNT, &bytes)?, b""),
                _ => rt.cast(peer, COUNT, &bytes)?,
            }
        }
        rt.barrier()?;
        // The last casts may still be in flight.
        rt.call(peer, COUNT, &MESSAGES.to_le_bytes())?;
        rt.barrier()?;
        let came: Vec<u64> = receive.try_iter().collect();
        assert!(came.iter().copied().eq(0..=MESSAGES), "{came:?}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn calls_of_many_ults_at_once_all_end() {
    const ULTS: u64 = 400;
    run_ranks(3, |rt: &Runtime| {
        rt.handler(ECHO, |message| reversed(message.bytes));
        rt.barrier()?;
        let ults: Vec<_> = (0..ULTS)
            .map(|ult| {
                rt.spawn(move |rt| {
                    for round in 0..10 {
                        let to = Rank(((ult + round) % 3) as u32);
                        let bytes = [ult.to_le_bytes(), round.to_le_bytes()].concat();
                        assert_eq!(rt.call(to, ECHO, &bytes).unwrap(), reversed(&bytes));
                    }
                })
            })
            .collect();
        ults.into_iter().for_each(|ult| ult.join().unwrap());
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_service_may_block() {
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        rt.handler(ECHO, |message| reversed(message.bytes));
        let words = Arc::new(rt.share::<u64>(1)?);
        rt.service(SERVICE, {
            let words = words.clone();
            move |rt, from, bytes| {
                if bytes == b"panic" {
                    panic!("the test panics here");
                }
                // The service calls back, and waits for a signal of the caller.
                let answer = rt.call(from, ECHO, bytes).unwrap();
                rt.wait_until(words.own().at(0), Until::AtLeast(1)).unwrap();
                answer
            }
        });
        rt.barrier()?;
        let call = rt.spawn(move |rt| rt.call(peer, SERVICE, b"abc"));
        rt.signal(words.at(peer, 0), tsumugi::Signal::Add(1))?;
        assert_eq!(call.join().unwrap()?, b"cba");
        let failed = rt.call(peer, SERVICE, b"panic").unwrap_err();
        assert!(matches!(failed, Error::Call(CallError::Failed)), "{failed}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_call_ends_at_its_time_limit() {
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        let words = Arc::new(rt.share::<u64>(1)?);
        rt.service(SERVICE, {
            let words = words.clone();
            move |rt, _, bytes| {
                rt.wait_until(words.own().at(0), Until::Equal(1)).unwrap();
                bytes.to_vec()[..1].to_vec()
            }
        });
        rt.barrier()?;
        for bytes in [&[1; 8][..], &[1; 1000]] {
            let limit = Duration::from_millis(5);
            let late = rt.call_timeout(peer, SERVICE, bytes, limit).unwrap_err();
            assert!(matches!(late, Error::Call(CallError::Timeout)), "{late}");
        }
        rt.signal(words.at(peer, 0), tsumugi::Signal::Set(1))?;
        assert_eq!(rt.call(peer, SERVICE, &[9; 3])?, [9]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn os_threads_call_too() {
    run_ranks(2, |rt: &Runtime| {
        let peer = Rank(1 - rt.rank().0);
        rt.handler(ECHO, |message| reversed(message.bytes));
        rt.barrier()?;
        let thread = std::thread::spawn({
            let rt = rt.clone();
            move || rt.call(peer, ECHO, b"thread").unwrap()
        });
        assert_eq!(thread.join().unwrap(), b"daerht");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn calls_to_a_lost_rank_end() {
    let failed = run_ranks(2, |rt: &Runtime| {
        let words = Arc::new(rt.share::<u64>(1)?);
        rt.service(SERVICE, {
            let words = words.clone();
            move |rt, _, _| {
                let _ = rt.wait_until(words.own().at(0), Until::Equal(1));
                []
            }
        });
        rt.barrier()?;
        if rt.rank() == Rank(1) {
            return Err(Error::program("no more"));
        }
        let lost = rt.call(Rank(1), SERVICE, b"").unwrap_err();
        let wanted = CallError::PeerLost { rank: Rank(1) };
        assert!(matches!(lost, Error::Call(error) if error == wanted), "{lost}");
        let lost = rt.cast(Rank(1), SERVICE, b"").unwrap_err();
        assert!(matches!(lost, Error::Call(error) if error == wanted), "{lost}");
        Err::<(), _>(Error::program("we neither"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no more");
}
