use super::*;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::thread;

/// A server for one rank that answers as hydra does, except for `odd`.
fn serve(vallen: usize, odd: &'static [(&'static str, &'static str)]) -> OwnedFd {
    let (ours, theirs) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        let mut out = ours.try_clone().unwrap();
        let mut store = HashMap::new();
        for line in BufReader::new(ours).lines() {
            let Ok(line) = line else { return };
            let line = PmiLine::parse(&line).unwrap();
            let command = line.field("cmd").unwrap();
            let key = line.field("key").unwrap_or_default().to_owned();
            let answer = match command {
                "init" => "cmd=response_to_init pmi_version=1 rc=0".to_owned(),
                "get_maxes" => format!("cmd=maxes keylen_max=64 vallen_max={vallen} rc=0"),
                "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1 rc=0".to_owned(),
                "put" => {
                    let value = line.field("value").unwrap().to_owned();
                    assert!(value.len() < vallen, "{value}");
                    assert_eq!(store.insert(key, value), None, "the key was written twice");
                    "cmd=put_result".to_owned()
                }
                "get" => match store.get(&key) {
                    Some(value) => format!("cmd=get_result rc=0 value={value}"),
                    None => "cmd=get_result rc=-1 msg=key not found".to_owned(),
                },
                "barrier_in" => "cmd=barrier_out rc=0".to_owned(),
                "finalize" => "cmd=finalize_ack".to_owned(),
                other => panic!("{other}"),
            };
            let answer = odd
                .iter()
                .find(|(of, _)| *of == command)
                .map_or(answer, |(_, odd)| (*odd).to_owned());
            if answer.is_empty() || out.write_all(format!("{answer}\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    theirs.into()
}

fn pmi(vallen: usize, odd: &'static [(&'static str, &'static str)]) -> Result<Pmi, BootError> {
    Pmi::new(serve(vallen, odd), Rank(0), 2, Duration::from_secs(5))
}

#[test]
fn cards_of_any_length_come_back() {
    for vallen in [16, 1024] {
        let mut pmi = pmi(vallen, &[]).unwrap();
        let mut card = [0; CARD_BYTES_MAX];
        for len in [0, 1, 5, 6, 7, 500, CARD_BYTES_MAX] {
            let own: Vec<u8> = (0..len).map(|index| index as u8 ^ 0xa5).collect();
            pmi.publish(&own).unwrap();
            pmi.barrier().unwrap();
            assert_eq!(pmi.card(Rank(0), &mut card), Ok(len));
            assert_eq!(card[..len], own);
            let mut heads = Vec::new();
            let other = pmi.heads(&mut |rank, head| heads.push((rank, *head)));
            assert_eq!(other, Err(BootError::NoCard { rank: Rank(1) }));
            assert_eq!(heads, [(Rank(0), head_of(&own))]);
        }
        assert_eq!(pmi.card(Rank(1), &mut card), Err(BootError::NoCard { rank: Rank(1) }));
        pmi.leave().unwrap();
    }
}

#[test]
fn a_card_arrives_while_the_barrier_is_pending() {
    // The barrier's answer comes before the card in the first round, after it in the
    // second.
    for answers in ["cmd=barrier_out rc=0\ncmd=get_result rc=0 value=000105", ""] {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut out = ours.try_clone().unwrap();
        let server = thread::spawn(move || {
            for line in BufReader::new(ours).lines() {
                let answer = match PmiLine::parse(&line.unwrap()).unwrap().field("cmd").unwrap() {
                    "init" => "cmd=response_to_init pmi_version=1 rc=0",
                    "get_maxes" => "cmd=maxes vallen_max=1024 rc=0",
                    "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1 rc=0",
                    "barrier_in" => continue,
                    _ if answers.is_empty() => {
                        "cmd=get_result rc=0 value=000105\ncmd=barrier_out rc=0"
                    }
                    _ => answers,
                };
                out.write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
        });
        let mut pmi = Pmi::new(theirs.into(), Rank(0), 2, Duration::from_secs(5)).unwrap();
        pmi.arrive().unwrap();
        assert_eq!(pmi.has_met(Duration::from_millis(1)), Ok(false));
        let mut card = [0; CARD_BYTES_MAX];
        assert_eq!((pmi.card(Rank(1), &mut card), card[0]), (Ok(1), 5));
        assert_eq!(pmi.has_met(Duration::from_secs(5)), Ok(true));
        assert_eq!(pmi.has_met(Duration::ZERO), Ok(true));
        drop(pmi);
        server.join().unwrap();
    }
}

#[test]
fn malformed_answers_of_the_server_are_errors() {
    let mut card = [0; CARD_BYTES_MAX];
    for value in [
        "cmd=get_result value=ffff",
        "cmd=get_result value=0002zz",
        "cmd=get_result value=x",
        "cmd=other",
    ] {
        let odd: &'static [(&str, &str)] = Box::leak(Box::new([("get", value)]));
        let mut pmi = pmi(1024, odd).unwrap();
        assert_eq!(pmi.card(Rank(1), &mut card), Err(GARBLED), "{value}");
    }
    assert_eq!(pmi(1024, &[("get_maxes", "cmd=maxes vallen_max=3")]).unwrap_err(), GARBLED);
    assert_eq!(pmi(1024, &[("init", "hello")]).unwrap_err(), GARBLED);
    let mut refusing = pmi(1024, &[("put", "cmd=put_result rc=-1")]).unwrap();
    assert!(matches!(refusing.publish(&[1]), Err(BootError::Refused { .. })));
}

#[test]
fn a_server_that_closes_or_is_silent_is_an_error() {
    let mut gone = pmi(1024, &[("barrier_in", "")]).unwrap();
    assert_eq!(gone.barrier(), Err(BootError::Disconnected));
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let silent = Pmi::new(theirs.into(), Rank(0), 1, Duration::from_millis(20));
    assert_eq!(silent.unwrap_err(), BootError::TimedOut { what: "the PMI server" });
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(&[b'x'; 20 << 10]).unwrap();
    let endless = Pmi::new(theirs.into(), Rank(0), 1, Duration::from_secs(5));
    assert_eq!(endless.unwrap_err(), GARBLED);
}
